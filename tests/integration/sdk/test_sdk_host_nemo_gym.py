"""caisson.integrations.nemo_gym beside a stand-in of its host.

Repository: NVIDIA-NeMo/Gym, commit 07d6b0d0 (nemo-gym 0.5.1).  File: nemo_gym/sandbox/providers/base.py, protocol SandboxProvider and its values; the
entry-point group nemo_gym.sandbox_providers is in nemo_gym/sandbox/providers/registry.py, which makes a provider by `provider_class(**config)`.
"""

import asyncio
import dataclasses
import enum
from typing import Any, Optional

import pytest

from hosts import check, stand_in

SIGNATURES = {
    'create': 'async (self, spec)',
    'exec': 'async (self, handle, command, *, cwd=None, env=None, timeout_s=None, user=None)',
    'upload_file': 'async (self, handle, source_path, target_path)',
    'download_file': 'async (self, handle, source_path, target_path)',
    'status': 'async (self, handle)',
    'close': 'async (self, handle)',
    'aclose': 'async (self)',
}


class SandboxStatus(str, enum.Enum):
    STARTING, RUNNING, STOPPED, ERROR, UNKNOWN = 'starting', 'running', 'stopped', 'error', 'unknown'


@dataclasses.dataclass(frozen=True)
class SandboxResources:
    cpu: Optional[float] = None
    memory_mib: Optional[int] = None
    disk_gib: Optional[int] = None
    gpu: Optional[int] = None
    gpu_type: Optional[str] = None


@dataclasses.dataclass(frozen=True)
class SandboxSpec:
    image: Optional[str] = None
    ttl_s: Any = None
    ready_timeout_s: Any = None
    workdir: Optional[str] = None
    env: Any = dataclasses.field(default_factory=dict)
    files: Any = dataclasses.field(default_factory=dict)
    metadata: Any = dataclasses.field(default_factory=dict)
    resources: Any = dataclasses.field(default_factory=SandboxResources)
    entrypoint: Any = None
    provider_options: Any = dataclasses.field(default_factory=dict)
    ports: Any = ()


@dataclasses.dataclass
class SandboxHandle:
    sandbox_id: str
    provider_name: str
    raw: Any


@dataclasses.dataclass(frozen=True)
class SandboxExecResult:
    stdout: Optional[str]
    stderr: Optional[str]
    return_code: int
    error_type: Optional[str] = None


class SandboxCreateError(RuntimeError):
    pass


@pytest.fixture(name='provider')
def provider_beside_the_host(monkeypatch, client):
    module = stand_in(monkeypatch, 'nemo_gym', nemo_gym__sandbox__providers__base={one.__name__: one for one in (
        SandboxCreateError, SandboxExecResult, SandboxHandle, SandboxSpec, SandboxStatus)})
    check(module.CaissonProvider, SIGNATURES)
    return module.CaissonProvider(**{'base_url': str(client.address)})


def test_a_sandbox_is_made_used_and_closed(provider, client, tmp_path):
    async def main():
        spec = SandboxSpec(ttl_s=60, env={'X': 'y'}, files={'d/a': 'é'}, metadata={'k': 'v'}, resources=SandboxResources(1.0, 300, 1), workdir='/tmp',
                           provider_options={'limits': {'memory_bytes': 300 << 20, 'pids': 30}})
        handle = await provider.create(spec)
        assert (handle.provider_name, await provider.status(handle)) == ('caisson', SandboxStatus.RUNNING)
        assert await provider.exec(handle, 'echo $X $Z; pwd; exit 3', env={'Z': 'z'}) == SandboxExecResult('y z\n/tmp\n', '', 3)
        assert (await provider.exec(handle, 'pwd', cwd='/home/user')).stdout == '/home/user\n'
        assert (await provider.exec(handle, 'sleep 60', timeout_s=0.5)).error_type == 'timeout'
        (tmp_path / 'in').write_bytes(b'\xff')
        await provider.upload_file(handle, tmp_path / 'in', 'up')
        await provider.download_file(handle, 'up', tmp_path / 'deep/out')
        assert (tmp_path / 'deep/out').read_bytes() == b'\xff' and (await provider.exec(handle, 'cat /home/user/d/a')).stdout == 'é'
        await provider.close(handle)
        assert await provider.status(handle) == SandboxStatus.STOPPED
        await provider.close(handle)
        await provider.aclose()
    asyncio.run(main(), debug=True)
    assert list(client.sandboxes.list()) == []


@pytest.mark.parametrize('spec', [SandboxSpec(ports=(80,)), SandboxSpec(entrypoint=['x']), SandboxSpec(resources=SandboxResources(gpu=1)), SandboxSpec(image='nonesuch'),
                                  SandboxSpec(provider_options={'colour': 1})])
def test_what_cannot_be_made_is_an_error_of_the_host(provider, spec):
    with pytest.raises(SandboxCreateError):
        asyncio.run(provider.create(spec))
