"""NeMo Gym: the sandbox provider `caisson`, by the entry point of this distribution.

The configuration has `sandbox: {caisson: {base_url: ..., key: ...}}`; members of `provider_options` of a sandbox are
those of caisson.types.SandboxRequest.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Dict, Optional, Union

from nemo_gym.sandbox.providers.base import (
    SandboxCreateError,
    SandboxExecResult,
    SandboxHandle,
    SandboxSpec,
    SandboxStatus,
)

from ..async_client import AsyncClient
from ..errors import CaissonError, InvalidRequest, NotFound
from ._common import NOT_FOUND, async_client, exit_code_of, is_not_started, user_of

MIB = 1 << 20
TIMED_OUT = 124  # of timeout(1)
STATES = {'running': SandboxStatus.RUNNING, 'paused': SandboxStatus.STOPPED, 'creating': SandboxStatus.STARTING}


class CaissonProvider:
    name = 'caisson'

    def __init__(self, base_url: Optional[str] = None, key: Optional[str] = None, **options: Any) -> None:
        self.client = AsyncClient(base_url, key, **options) if base_url else async_client()

    async def create(self, spec: SandboxSpec) -> SandboxHandle:
        if spec.ports or spec.entrypoint or spec.resources.gpu:
            raise SandboxCreateError('a sandbox of caisson has no ports, no entrypoint and no GPU')
        try:
            sandbox = await self.client.sandbox(**self._request(spec))
            for path, content in spec.files.items():
                await sandbox.files.write(path, content)
        except CaissonError as error:
            raise SandboxCreateError(error.message) from error
        return SandboxHandle(sandbox_id=sandbox.id, provider_name=self.name, raw={'sandbox': sandbox, 'cwd': spec.workdir})

    @staticmethod
    def _request(spec: SandboxSpec) -> Dict[str, Any]:
        wanted = spec.resources
        limits = {
            'memory_bytes': wanted.memory_mib and wanted.memory_mib * MIB,
            'disk_bytes': wanted.disk_gib and wanted.disk_gib * 1024 * MIB,
            'cpu_milli': wanted.cpu and int(wanted.cpu * 1000),
        }
        given = {name: value for name, value in limits.items() if value}
        return {
            'image': spec.image,
            'ttl': spec.ttl_s,
            'env': spec.env or None,
            'labels': spec.metadata or None,
            'limits': given or None,
            **spec.provider_options,
        }

    async def exec(
        self,
        handle: SandboxHandle,
        command: str,
        *,
        cwd: Optional[str] = None,
        env: Optional[Dict[str, str]] = None,
        timeout_s: Union[int, float, None] = None,
        user: Union[str, int, None] = None,
    ) -> SandboxExecResult:
        folder = cwd or handle.raw['cwd']
        try:
            done = await handle.raw['sandbox'].exec(command, cwd=folder, env=env, timeout=timeout_s, user=user_of(user))
        except InvalidRequest as error:
            if is_not_started(error):
                return SandboxExecResult(stdout='', stderr=error.message, return_code=NOT_FOUND)
            raise
        if done.timed_out:
            return SandboxExecResult(stdout=done.stdout, stderr=done.stderr, return_code=TIMED_OUT, error_type='timeout')
        return SandboxExecResult(stdout=done.stdout, stderr=done.stderr, return_code=exit_code_of(done))

    async def upload_file(self, handle: SandboxHandle, source_path: Path, target_path: str) -> None:
        await handle.raw['sandbox'].files.write(target_path, Path(source_path))

    async def download_file(self, handle: SandboxHandle, source_path: str, target_path: Path) -> None:
        content = await handle.raw['sandbox'].files.read(source_path)
        Path(target_path).parent.mkdir(parents=True, exist_ok=True)
        Path(target_path).write_bytes(content)

    async def status(self, handle: SandboxHandle) -> SandboxStatus:
        try:
            info = await handle.raw['sandbox'].refresh()
        except NotFound:
            return SandboxStatus.STOPPED
        except CaissonError:
            return SandboxStatus.UNKNOWN
        return STATES.get(str(info.get('state')), SandboxStatus.UNKNOWN)

    async def close(self, handle: SandboxHandle) -> None:
        await handle.raw['sandbox'].kill()

    async def aclose(self) -> None:
        """A client holds no connection."""
