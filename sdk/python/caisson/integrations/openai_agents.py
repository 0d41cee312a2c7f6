"""OpenAI Agents SDK: a tool that runs code, and a sandbox as the executor of ShellTool.

Agent(tools=[code_tool()]) or Agent(tools=[ShellTool(executor=shell_executor(sandbox))]).  Its E2B client works with the
interface for clients of E2B, too.
"""

from __future__ import annotations

from typing import Any, Awaitable, Callable, List, Optional

from agents import FunctionTool, ShellCallOutcome, ShellCommandOutput, ShellCommandRequest, ShellResult, function_tool

from ..async_client import AsyncClient
from ..async_sandbox import AsyncSandbox
from ._common import DESCRIPTION, code_functions, exit_code_of


def code_tool(
    client: Optional[AsyncClient] = None, *, name: str = 'run_code', description: str = DESCRIPTION, **fields: Any
) -> FunctionTool:
    """A tool for an Agent; `fields` are those of AsyncClient.run()."""
    _, run_code = code_functions(None, client, fields)
    tool: FunctionTool = function_tool(run_code, name_override=name, description_override=description)
    return tool


def shell_executor(sandbox: AsyncSandbox) -> Callable[[ShellCommandRequest], Awaitable[ShellResult]]:
    """The executor of a ShellTool: each command is a program in the sandbox, and files stay from one to the next."""

    async def execute(request: ShellCommandRequest) -> ShellResult:
        action = request.data.action
        most = action.max_output_length
        output: List[ShellCommandOutput] = []
        for command in action.commands:
            timeout = action.timeout_ms / 1000 if action.timeout_ms else None
            done = await sandbox.exec(command, timeout=timeout)
            outcome = (
                ShellCallOutcome(type='timeout')
                if done.timed_out
                else ShellCallOutcome(type='exit', exit_code=exit_code_of(done))
            )
            output.append(
                ShellCommandOutput(stdout=done.stdout[:most], stderr=done.stderr[:most], outcome=outcome, command=command)
            )
            if done.timed_out:
                break
        return ShellResult(output=output, max_output_length=most)

    return execute
