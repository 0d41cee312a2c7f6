"""inspect_ai: `sandbox="caisson"` of a task, by the entry point of this distribution.

`sandbox=("caisson", "PROFILE")` names a profile.  Each sample has a sandbox, whose working folder is /home/user.
"""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Union

from inspect_ai.util import (
    ExecResult,
    OutputLimitExceededError,
    SandboxEnvironment,
    SandboxEnvironmentLimits,
    SandboxUnavailableError,
    sandboxenv,
)

from ..async_sandbox import AsyncSandbox
from ..errors import AuthError, EngineError, InvalidRequest, NotFound
from ..results import Entry
from ._common import NOT_FOUND, async_client, exit_code_of, is_not_started, user_of

HOME = '/home/user'


def fields_of(config: Any) -> Dict[str, Any]:
    """The name of a profile, or an object with members of a request for a sandbox."""
    if config is None:
        return {}
    return {'profile': config} if isinstance(config, str) else dict(config.model_dump(exclude_none=True))


@sandboxenv(name='caisson')
class CaissonSandboxEnvironment(SandboxEnvironment):
    def __init__(self, sandbox: AsyncSandbox) -> None:
        super().__init__()
        self.sandbox = sandbox

    @classmethod
    async def sample_init(
        cls, task_name: str, config: Any, metadata: Dict[str, str]
    ) -> Dict[str, SandboxEnvironment]:
        sandbox = await async_client().sandbox(labels={'task': task_name[:200]}, **fields_of(config))
        return {'default': cls(sandbox)}

    @classmethod
    async def sample_cleanup(
        cls, task_name: str, config: Any, environments: Dict[str, SandboxEnvironment], interrupted: bool
    ) -> None:
        for environment in environments.values():
            await environment.as_type(cls).sandbox.kill()

    async def exec(
        self,
        cmd: List[str],
        input: Union[str, bytes, None] = None,
        cwd: Optional[str] = None,
        env: Optional[Dict[str, str]] = None,
        user: Optional[str] = None,
        timeout: Optional[int] = None,
        timeout_retry: bool = True,
        concurrency: bool = True,
    ) -> ExecResult[str]:
        folder = cwd if cwd is None or cwd.startswith('/') else f'{HOME}/{cwd}'
        try:
            done = await self.sandbox.exec(
                cmd, stdin=input, cwd=folder, env=env, user=user_of(user), timeout=None if timeout is None else float(timeout)
            )
        except InvalidRequest as error:
            if is_not_started(error):
                return ExecResult(success=False, returncode=NOT_FOUND, stdout='', stderr=error.message)
            raise
        except AuthError as error:
            raise PermissionError(error.message) from error
        except (NotFound, EngineError) as error:
            raise SandboxUnavailableError(error.message) from error
        if done.timed_out:
            raise TimeoutError(f'the command ran longer than {timeout} s')
        for text in (done.stdout, done.stderr):
            self._check_size(len(text.encode()), SandboxEnvironmentLimits.MAX_EXEC_OUTPUT_SIZE, text)
        code = exit_code_of(done)
        return ExecResult(success=code == 0, returncode=code, stdout=done.stdout, stderr=done.stderr)

    async def write_file(self, file: str, contents: Union[str, bytes]) -> None:
        try:
            await self.sandbox.files.write(file, contents)
        except AuthError as error:
            raise PermissionError(error.message) from error
        except InvalidRequest as error:
            entry = await self._entry(file)
            raise (IsADirectoryError(file) if entry and entry.type == 'folder' else error) from error

    async def read_file(self, file: str, text: bool = True) -> Union[str, bytes]:
        entry = await self._entry(file)
        if not entry:
            raise FileNotFoundError(file)
        if 'folder' in (entry.type, entry.extra.get('real_type')):
            raise IsADirectoryError(file)
        self._check_size(entry.size_bytes, SandboxEnvironmentLimits.MAX_READ_FILE_SIZE, None)
        try:
            content = await self.sandbox.files.read(file)
        except NotFound as error:
            raise FileNotFoundError(file) from error
        except AuthError as error:
            raise PermissionError(error.message) from error
        self._check_size(len(content), SandboxEnvironmentLimits.MAX_READ_FILE_SIZE, None)
        return content.decode('utf-8') if text else content

    async def _entry(self, file: str) -> Optional[Entry]:
        try:
            return await self.sandbox.files.stat(file)
        except NotFound:
            return None
        except AuthError as error:
            raise PermissionError(error.message) from error

    @staticmethod
    def _check_size(size: int, most: int, text: Optional[str]) -> None:
        if size > most:
            raise OutputLimitExceededError(limit_str=f'{most} bytes', truncated_output=text and text[:most])
