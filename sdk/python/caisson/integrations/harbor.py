"""Harbor: an environment, by `--environment-import-path caisson.integrations.harbor:CaissonEnvironment`.

A task whose folder has a Dockerfile needs an image of the server: `caisson images import`, and the keyword `image`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Dict, Optional, Union

from harbor.environments.base import BaseEnvironment, ExecResult
from harbor.models.environment_type import EnvironmentType

from ..async_sandbox import AsyncSandbox
from ..errors import InvalidRequest
from ._common import NOT_FOUND, archive_of, async_client, exit_code_of, is_not_started, unpack, user_of

MIB = 1 << 20
TIMED_OUT = 124  # of timeout(1)


class CaissonEnvironment(BaseEnvironment):
    def __init__(self, *args: Any, image: Optional[str] = None, fields: Optional[Dict[str, Any]] = None, **kwargs: Any) -> None:
        self.image = image
        self.fields = fields or {}
        self.sandbox: Optional[AsyncSandbox] = None
        super().__init__(*args, **kwargs)

    @staticmethod
    def type() -> EnvironmentType:
        """Harbor's list of types is closed; that of E2B is the nearest: a sandbox elsewhere."""
        kind: EnvironmentType = getattr(EnvironmentType, 'CAISSON', EnvironmentType.E2B)
        return kind

    @property
    def is_mounted(self) -> bool:
        return False

    @property
    def supports_gpus(self) -> bool:
        return False

    @property
    def can_disable_internet(self) -> bool:
        return True

    def _validate_definition(self) -> None:
        wanted = getattr(self.task_env_config, 'docker_image', None)
        if not self.image and (wanted or (Path(self.environment_dir) / 'Dockerfile').exists()):
            raise InvalidRequest(
                f'the environment {self.environment_name} has an image of its own ({wanted or "a Dockerfile"}); '
                'import it with `caisson images import`, and give its name as image=NAME',
                field='image',
            )

    def _request(self) -> Dict[str, Any]:
        config = self.task_env_config
        limits = {
            'memory_bytes': config.memory_mb * MIB if config.memory_mb else None,
            'disk_bytes': config.storage_mb * MIB if config.storage_mb else None,
            'cpu_milli': int(config.cpus * 1000) if config.cpus else None,
        }
        given = {name: value for name, value in limits.items() if value is not None}
        return {'image': self.image, 'limits': given or None, 'labels': {'session': self.session_id[:200]}, **self.fields}

    async def start(self, force_build: bool) -> None:
        self.sandbox = await async_client().sandbox(**self._request())

    async def stop(self, delete: bool) -> None:
        sandbox, self.sandbox = self.sandbox, None
        if sandbox:
            await sandbox.kill()

    def _started(self) -> AsyncSandbox:
        if not self.sandbox:
            raise RuntimeError('the environment is not started')
        return self.sandbox

    async def upload_file(self, source_path: Union[Path, str], target_path: str) -> None:
        await self._started().files.write(target_path, Path(source_path))

    async def upload_dir(self, source_dir: Union[Path, str], target_dir: str) -> None:
        await self._started().files.write_tar(target_dir, archive_of(source_dir))

    async def download_file(self, source_path: str, target_path: Union[Path, str]) -> None:
        content = await self._started().files.read(source_path)
        Path(target_path).parent.mkdir(parents=True, exist_ok=True)
        Path(target_path).write_bytes(content)

    async def download_dir(self, source_dir: str, target_dir: Union[Path, str]) -> None:
        unpack(await self._started().files.read_tar(source_dir), target_dir)

    async def exec(
        self,
        command: str,
        cwd: Optional[str] = None,
        env: Optional[Dict[str, str]] = None,
        timeout_sec: Optional[int] = None,
        user: Union[str, int, None] = None,
    ) -> ExecResult:
        try:
            done = await self._started().exec(
                command,
                cwd=cwd,
                env=self._merge_env(env),
                timeout=None if timeout_sec is None else float(timeout_sec),
                user=user_of(self._resolve_user(user)),
            )
        except InvalidRequest as error:
            if is_not_started(error):
                return ExecResult(stdout='', stderr=error.message, return_code=NOT_FOUND)
            raise
        code = TIMED_OUT if done.timed_out else exit_code_of(done)
        return ExecResult(stdout=done.stdout, stderr=done.stderr, return_code=code)
