"""caisson.integrations.langchain beside a stand-in of its host.

Repository: langchain-ai/langchain, commit 00445192 (langchain-core 1.x).  File: libs/core/langchain_core/tools/structured.py, class StructuredTool.
"""

import asyncio

import jsonschema
import pytest

from hosts import shape, stand_in

FROM_FUNCTION = ("(cls, func=None, coroutine=None, name=None, description=None, return_direct=False, args_schema=None, infer_schema=True, *, "
                 "response_format='content', parse_docstring=False, error_on_invalid_docstring=False, **kwargs)")


class StructuredTool:
    @classmethod
    def from_function(cls, func=None, coroutine=None, name=None, description=None, return_direct=False, args_schema=None, infer_schema=True, *,
                      response_format='content', parse_docstring=False, error_on_invalid_docstring=False, **kwargs):
        assert infer_schema and not (return_direct or parse_docstring or error_on_invalid_docstring or kwargs) and response_format == 'content'
        tool = cls()
        tool.func, tool.coroutine, tool.name, tool.description, tool.args_schema = func, coroutine, name, description, args_schema
        return tool


@pytest.fixture(name='adapter')
def adapter_beside_the_host(monkeypatch, client):
    assert client.is_live
    return stand_in(monkeypatch, 'langchain', langchain_core__tools={'StructuredTool': StructuredTool})


def test_the_tool_has_a_schema_and_two_functions(adapter, client):
    assert shape(StructuredTool.from_function.__func__) == FROM_FUNCTION
    tool = adapter.code_tool(client, name='run', timeout=20)
    jsonschema.Draft202012Validator.check_schema(tool.args_schema)
    assert tool.name == 'run' and tool.args_schema['required'] == ['code'] and shape(tool.func) == shape(tool.coroutine) == "(code, language='python')"
    assert tool.func(code='print(1); 2') == '1\n\nvalue: 2' and asyncio.run(tool.coroutine(code='echo hi', language='bash')) == 'hi\n'
    assert 'status: timeout' in adapter.code_tool(timeout=0.3).func('while True: pass') and tool.func('x = 1') == 'The program printed nothing.'
