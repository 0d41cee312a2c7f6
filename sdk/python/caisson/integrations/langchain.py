"""LangChain: a tool that runs code, for bind_tools() and agents."""

from __future__ import annotations

from typing import Any, Optional

from langchain_core.tools import StructuredTool

from ..async_client import AsyncClient
from ..client import Client
from ._common import DESCRIPTION, code_functions

SCHEMA = {
    'type': 'object',
    'properties': {
        'code': {'type': 'string', 'description': 'The text of the program.'},
        'language': {'type': 'string', 'enum': ['python', 'javascript', 'typescript', 'bash'], 'default': 'python'},
    },
    'required': ['code'],
}


def code_tool(
    client: Optional[Client] = None,
    async_client: Optional[AsyncClient] = None,
    *,
    name: str = 'run_code',
    description: str = DESCRIPTION,
    **fields: Any,
) -> StructuredTool:
    """A tool with a synchronous and an asynchronous function; `fields` are those of Client.run()."""
    run_code, run_code_async = code_functions(client, async_client, fields)
    tool: StructuredTool = StructuredTool.from_function(
        func=run_code, coroutine=run_code_async, name=name, description=description, args_schema=SCHEMA
    )
    return tool
