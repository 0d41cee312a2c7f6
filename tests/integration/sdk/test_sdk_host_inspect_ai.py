"""caisson.integrations.inspect_ai beside a stand-in of its host.

Repository: UKGovernmentBEIS/inspect_ai, commit 499e6152 (after 0.3.260).  File: src/inspect_ai/util/_sandbox/environment.py, class
SandboxEnvironment; ExecResult is in src/inspect_ai/util/_subprocess.py, OutputLimitExceededError in src/inspect_ai/util/_sandbox/limits.py.
"""

import abc
import asyncio
import dataclasses

import pytest

from hosts import check, stand_in

SIGNATURES = {
    'exec': 'async (self, cmd, input=None, cwd=None, env=None, user=None, timeout=None, timeout_retry=True, concurrency=True)',
    'write_file': 'async (self, file, contents)',
    'read_file': 'async (self, file, text=True)',
    'sample_init': 'async (cls, task_name, config, metadata)',
    'sample_cleanup': 'async (cls, task_name, config, environments, interrupted)',
}


class SandboxEnvironment(abc.ABC):
    def __init__(self):
        self.is_initialized = True

    def as_type(self, kind):
        assert isinstance(self, kind)
        return self


for one in ('exec', 'write_file', 'read_file', 'sample_cleanup'):
    setattr(SandboxEnvironment, one, abc.abstractmethod(lambda self: None))
abc.update_abstractmethods(SandboxEnvironment) if hasattr(abc, 'update_abstractmethods') else None


@dataclasses.dataclass
class ExecResult:
    success: bool
    returncode: int
    stdout: str
    stderr: str

    def __class_getitem__(cls, _):
        return cls


class OutputLimitExceededError(Exception):
    def __init__(self, limit_str, truncated_output):
        super().__init__(limit_str)
        self.truncated_output = truncated_output


class Limits:
    MAX_EXEC_OUTPUT_SIZE = 1000
    MAX_READ_FILE_SIZE = 2000


class Unavailable(RuntimeError):
    pass


@pytest.fixture(name='adapter')
def adapter_beside_the_host(monkeypatch, client):
    registered = {}

    def sandboxenv(name):
        return lambda kind: registered.setdefault(name, kind)
    module = stand_in(monkeypatch, 'inspect_ai', inspect_ai__util={
        'SandboxEnvironment': SandboxEnvironment, 'ExecResult': ExecResult, 'OutputLimitExceededError': OutputLimitExceededError,
        'SandboxEnvironmentLimits': Limits, 'SandboxUnavailableError': Unavailable, 'sandboxenv': sandboxenv})
    assert list(registered) == ['caisson'] and client.is_live
    return registered['caisson'], module


def test_the_signatures_are_those_of_the_host(adapter):
    check(adapter[0], SIGNATURES)


def sample(adapter, use, config=None):
    """use() with the environment of a sample."""
    async def run():
        environments = await adapter[0].sample_init('task', config, {})
        try:
            return await use(environments['default'])
        finally:
            await adapter[0].sample_cleanup('task', None, environments, False)
    return asyncio.run(run(), debug=True)


def test_programs_and_files(adapter, client):
    async def use(one):
        assert one.is_initialized
        done = await one.exec(['bash', '-c', 'cat; echo $X; pwd; echo e >&2; exit 3'], input='in\n', env={'X': 'y'}, cwd='sub')
        return done
    async def main(one):
        await one.write_file('sub/a.txt', 'é\r\n')
        await one.write_file('b', b'\xff')
        assert await one.read_file('sub/a.txt') == 'é\r\n' and await one.read_file('b', text=False) == b'\xff'
        assert await use(one) == ExecResult(False, 3, 'in\ny\n/home/user/sub\n', 'e\n')
        assert (await one.exec(['/nonexistent'])).returncode == 127 and (await one.exec(['true'])).success
        assert (await one.exec(['bash', '-c', 'kill -9 $$'])).returncode == 137
    sample(adapter, main)
    assert list(client.sandboxes.list()) == []


def test_errors_are_those_of_the_host(adapter):
    async def main(one):
        with pytest.raises(TimeoutError):
            await one.exec(['sleep', '60'], timeout=1)
        with pytest.raises(OutputLimitExceededError) as caught:
            await one.exec(['bash', '-c', 'printf "%2000d" 1'])
        assert len(caught.value.truncated_output) == 1000
        with pytest.raises(FileNotFoundError):
            await one.read_file('none')
        with pytest.raises(IsADirectoryError):
            await one.read_file('/home')
        with pytest.raises(UnicodeDecodeError):
            await one.write_file('b', b'\xff')
            await one.read_file('b')
        with pytest.raises(PermissionError):
            await one.write_file('/etc/x', 'x')
        await one.write_file('big', 'x' * 3000)
        with pytest.raises(OutputLimitExceededError):
            await one.read_file('big')
        await one.exec(['mkdir', 'folder'])
        with pytest.raises(IsADirectoryError):
            await one.write_file('folder', 'x')
        with pytest.raises(ValueError):
            await one.exec(['true'], user='nobody')
        await one.sandbox.kill()
        with pytest.raises(Unavailable):
            await one.exec(['true'])
    sample(adapter, main)


def test_a_configuration_names_a_profile_or_members_of_a_request(adapter):
    async def profile(one):
        return one.sandbox.info['profile']
    assert sample(adapter, profile, 'tools') == 'tools'

    class Config:
        @staticmethod
        def model_dump(exclude_none):
            return {'limits': {'pids': 9}} if exclude_none else {}

    async def pids(one):
        return one.sandbox.info['limits']['pids']
    assert sample(adapter, pids, Config()) == 9
