"""caisson.integrations.openai_agents beside a stand-in of its host.

Repository: openai/openai-agents-python, commit 7f7a44f8 (0.22.0).  File: src/agents/tool.py: ShellCallOutcome(type, exit_code=None),
ShellCommandOutput(stdout='', stderr='', outcome=..., command=None, provider_data=None), ShellResult(output, max_output_length=None,
provider_data=None), ShellActionRequest(commands, timeout_ms=None, max_output_length=None), ShellCallData(call_id, action, status=None, raw=None),
ShellCommandRequest(ctx_wrapper, data); ShellExecutor = Callable[[ShellCommandRequest], MaybeAwaitable[str | ShellResult]].
"""

import asyncio
import dataclasses
import inspect
from typing import Any, List, Optional

import pytest

import caisson
from hosts import shape, stand_in

# function_tool(func, *, name_override, description_override, ...): the parameters that the adapter uses.
FUNCTION_TOOL = "(func=None, *, name_override=None, description_override=None, strict_mode=True)"
EXECUTOR = '(request)'


@dataclasses.dataclass
class ShellCallOutcome:
    type: str
    exit_code: Optional[int] = None


@dataclasses.dataclass
class ShellCommandOutput:
    stdout: str = ''
    stderr: str = ''
    outcome: Any = None
    command: Optional[str] = None
    provider_data: Any = None


@dataclasses.dataclass
class ShellResult:
    output: List[ShellCommandOutput]
    max_output_length: Optional[int] = None
    provider_data: Any = None


@dataclasses.dataclass
class ShellActionRequest:
    commands: List[str]
    timeout_ms: Optional[int] = None
    max_output_length: Optional[int] = None


@dataclasses.dataclass
class ShellCallData:
    call_id: str
    action: ShellActionRequest
    status: Any = None
    raw: Any = None


@dataclasses.dataclass
class ShellCommandRequest:
    ctx_wrapper: Any
    data: ShellCallData


@dataclasses.dataclass
class FunctionTool:
    function: Any
    name: str
    description: str


def function_tool(func=None, *, name_override=None, description_override=None, strict_mode=True):
    assert strict_mode and inspect.iscoroutinefunction(func)
    return FunctionTool(func, name_override or func.__name__, description_override or func.__doc__)


@pytest.fixture(name='adapter')
def adapter_beside_the_host(monkeypatch, client):
    assert client.is_live
    names = (FunctionTool, ShellCallOutcome, ShellCommandOutput, ShellCommandRequest, ShellResult, function_tool)
    return stand_in(monkeypatch, 'openai_agents', agents={one.__name__: one for one in names})


def test_the_tool_runs_code(adapter):
    assert shape(function_tool) == FUNCTION_TOOL
    tool = adapter.code_tool(name='python', timeout=20)
    assert tool.name == 'python' and 'sandbox' in tool.description
    assert shape(tool.function) == "(code, language='python')" and all(
        parameter.annotation in (str, 'str') for parameter in inspect.signature(tool.function).parameters.values())
    assert asyncio.run(tool.function('print(6 * 7)')) == '42\n'
    assert 'ZeroDivisionError' in asyncio.run(tool.function('1 / 0', 'python'))


def test_a_sandbox_is_the_executor_of_a_shell(adapter, client):
    async def main():
        async with caisson.AsyncClient(str(client.address)).sandbox() as sandbox:
            execute = adapter.shell_executor(sandbox)
            assert shape(execute) == EXECUTOR
            action = ShellActionRequest(['echo hi > f; cat f', 'cat f; exit 3', 'sleep 60', 'echo never'], 700)
            result = await execute(ShellCommandRequest(None, ShellCallData('1', action)))
            short = await execute(ShellCommandRequest(None, ShellCallData('2', ShellActionRequest(['echo 123456'], None, 3))))
            return result, short
    result, short = asyncio.run(main(), debug=True)
    assert [(one.stdout, one.outcome.type, one.outcome.exit_code) for one in result.output] == [('hi\n', 'exit', 0), ('hi\n', 'exit', 3), ('', 'timeout', None)]
    assert short.output[0].stdout == '123' and short.max_output_length == 3
