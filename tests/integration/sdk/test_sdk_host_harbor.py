"""caisson.integrations.harbor beside a stand-in of its host.

Repository: harbor, by the public copy LegoX/harbor, commit 73fd120e.  File: src/harbor/environments/base.py, classes BaseEnvironment and ExecResult.
"""

import abc
import asyncio
import dataclasses
import enum
import types
from typing import Optional

import pytest

import caisson
from hosts import check, stand_in

SIGNATURES = {
    'type': '()',
    'is_mounted': '(self)',
    'supports_gpus': '(self)',
    'can_disable_internet': '(self)',
    '_validate_definition': '(self)',
    'start': 'async (self, force_build)',
    'stop': 'async (self, delete)',
    'upload_file': 'async (self, source_path, target_path)',
    'upload_dir': 'async (self, source_dir, target_dir)',
    'download_file': 'async (self, source_path, target_path)',
    'download_dir': 'async (self, source_dir, target_dir)',
    'exec': 'async (self, command, cwd=None, env=None, timeout_sec=None, user=None)',
}


@dataclasses.dataclass
class ExecResult:
    stdout: Optional[str] = None
    stderr: Optional[str] = None
    return_code: int = 0


class EnvironmentType(enum.Enum):
    E2B = 'e2b'


class BaseEnvironment(abc.ABC):
    def __init__(self, environment_dir, environment_name, session_id, trial_paths, task_env_config, logger=None, persistent_env=None, *args, **kwargs):
        self.environment_dir, self.environment_name, self.session_id = environment_dir, environment_name, session_id
        self.trial_paths, self.task_env_config, self.logger = trial_paths, task_env_config, logger
        self.default_user, self._persistent_env = None, persistent_env or {}
        assert not args and not kwargs
        self._validate_definition()

    def _resolve_user(self, user):
        return user if user is not None else self.default_user

    def _merge_env(self, env):
        return {**self._persistent_env, **(env or {})} or None


for one in SIGNATURES:
    setattr(BaseEnvironment, one, abc.abstractmethod(lambda self: None))
abc.update_abstractmethods(BaseEnvironment) if hasattr(abc, 'update_abstractmethods') else None


@pytest.fixture(name='kind')
def adapter_beside_the_host(monkeypatch, client):
    assert client.is_live
    return stand_in(monkeypatch, 'harbor', harbor__environments__base={'BaseEnvironment': BaseEnvironment, 'ExecResult': ExecResult},
                    harbor__models__environment_type={'EnvironmentType': EnvironmentType}).CaissonEnvironment


def environment(kind, folder, **more):
    config = types.SimpleNamespace(cpus=1, memory_mb=300, storage_mb=50, docker_image=more.pop('docker_image', None))
    return kind(folder, 'name', 'session', None, config, **more)


def test_the_signatures_are_those_of_the_host(kind, tmp_path):
    check(kind, SIGNATURES)
    one = environment(kind, tmp_path)
    assert (one.is_mounted, one.supports_gpus, one.can_disable_internet, kind.type()) == (False, False, True, EnvironmentType.E2B)


def test_commands_files_and_folders(kind, tmp_path, client):
    (tmp_path / 'in/sub').mkdir(parents=True)
    (tmp_path / 'in/a').write_text('1')
    (tmp_path / 'in/sub/b').write_bytes(b'\xff')

    async def main():
        one = environment(kind, tmp_path, persistent_env={'X': 'y'})
        with pytest.raises(RuntimeError):
            await one.exec('true')
        await one.start(False)
        limits = one.sandbox.info['limits']
        assert (limits['memory_bytes'], limits['disk_bytes'], limits['cpu_milli']) == (300 << 20, 50 << 20, 1000)
        assert await one.exec('echo $X $Z; pwd; exit 3', cwd='/tmp', env={'Z': 'z'}) == ExecResult('y z\n/tmp\n', '', 3)
        assert (await one.exec('sleep 60', timeout_sec=1)).return_code == 124
        await one.upload_file(tmp_path / 'in/a', '/home/user/deep/a')
        await one.upload_dir(tmp_path / 'in', '/home/user/all')
        assert (await one.exec('cat deep/a; find all -type f | sort')).stdout == '1all/a\nall/sub/b\n'
        await one.exec('ln -s /etc/passwd all/link; ln -s / all/sub/out')
        await one.download_file('/home/user/deep/a', tmp_path / 'x/y')
        await one.download_dir('/home/user/all', tmp_path / 'out')
        await one.stop(True)
        await one.stop(True)
    asyncio.run(main(), debug=True)
    assert (tmp_path / 'x/y').read_text() == '1' and list(client.sandboxes.list()) == []
    assert sorted(str(path.relative_to(tmp_path / 'out')) for path in (tmp_path / 'out').rglob('*')) == ['a', 'sub', 'sub/b'] and (tmp_path / 'out/sub/b').read_bytes() == b'\xff'


def test_a_task_with_an_image_of_its_own_needs_one_of_the_server(kind, tmp_path):
    with pytest.raises(caisson.InvalidRequest) as caught:
        environment(kind, tmp_path, docker_image='python:3')
    assert 'caisson images import' in str(caught.value) and caught.value.field == 'image'
    (tmp_path / 'Dockerfile').write_text('FROM scratch\n')
    with pytest.raises(caisson.InvalidRequest):
        environment(kind, tmp_path)
    assert environment(kind, tmp_path, image='mine')._request()['image'] == 'mine'
