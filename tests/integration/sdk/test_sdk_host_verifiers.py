"""caisson.integrations.verifiers beside a stand-in of its host.

Repository: PrimeIntellect-ai/verifiers, commit a60a606e (after 0.3.0).  File: verifiers/v1/runtimes/base.py, classes Runtime, BaseRuntimeInfo, ProgramResult.
"""

import abc
import asyncio
import dataclasses
from typing import Optional

import pytest

from hosts import check, stand_in

SIGNATURES = {
    'start': 'async (self)',
    'cleanup': '(self)',
    'run': 'async (self, argv, env)',
    '_read': 'async (self, path)',
    'write': 'async (self, path, data)',
}


@dataclasses.dataclass(frozen=True)
class ProgramResult:
    exit_code: int
    stdout: str
    stderr: str


@dataclasses.dataclass
class BaseRuntimeInfo:
    id: Optional[str] = None
    borrowed: bool = False


class Runtime(abc.ABC):
    def __init__(self, name=None):
        self.name, self.env, self.stopped = name or 'vf-1', {}, False

    @property
    def type(self):
        return self.config.type

    def process_env(self, env):
        return {**self.env, **env}

    async def stop(self):
        self.stopped = True
        await asyncio.get_running_loop().run_in_executor(None, self.cleanup)


for one in ('start', 'run', '_read', 'write'):
    setattr(Runtime, one, abc.abstractmethod(lambda self: None))
abc.update_abstractmethods(Runtime) if hasattr(abc, 'update_abstractmethods') else None


@pytest.fixture(name='kind')
def adapter_beside_the_host(monkeypatch, client):
    assert client.is_live
    return stand_in(monkeypatch, 'verifiers', verifiers__v1__runtimes__base={one.__name__: one for one in (BaseRuntimeInfo, ProgramResult, Runtime)}).CaissonRuntime


def test_a_runtime_runs_programs(kind, client):
    check(kind, SIGNATURES)

    async def main():
        runtime = kind('task', limits={'pids': 30})
        with pytest.raises(RuntimeError):
            await runtime.run(['true'], {})
        await runtime.start()
        runtime.env = {'X': 'y'}
        assert runtime.type == 'caisson' and runtime.info.id == runtime.sandbox.id and not runtime.is_local
        assert await runtime.run(['sh', '-c', 'echo $X $Z; exit 3'], {'Z': 'z'}) == ProgramResult(3, 'y z\n', '')
        assert (await runtime.run(['/nonexistent'], {})).exit_code == 127
        await runtime.write('d/a', b'\xff')
        assert await runtime._read('d/a') == b'\xff'
        await runtime.stop()
        await runtime.stop()
        return runtime
    runtime = asyncio.run(main(), debug=True)
    assert list(client.sandboxes.list()) == []
    runtime.cleanup()


def test_a_runtime_is_freed_without_an_event_loop(kind, client):
    runtime = kind()
    asyncio.run(runtime.start())
    runtime.cleanup()
    assert list(client.sandboxes.list()) == []
