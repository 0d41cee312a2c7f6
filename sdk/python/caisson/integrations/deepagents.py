"""deepagents: a sandbox as the back-end of create_deep_agent(), and the provider `caisson` of deepagents_code."""

from __future__ import annotations

import functools
from typing import Any, Callable, List, Optional, Tuple

from deepagents.backends.protocol import ExecuteResponse, FileDownloadResponse, FileUploadResponse
from deepagents.backends.sandbox import BaseSandbox

from ..client import Client
from ..errors import AuthError, CaissonError, InvalidRequest, NotFound
from ..sandbox import Sandbox
from ._common import exit_code_of, sync_client

TIMED_OUT = 124  # of timeout(1)


def error_of(call: Callable[[], Any]) -> Optional[str]:
    """The word of the protocol for what was in the way of an operation on a file, or None."""
    try:
        call()
    except NotFound:
        return 'file_not_found'
    except AuthError:
        return 'permission_denied'
    except InvalidRequest as error:
        return 'is_directory' if 'folder' in error.message or 'directory' in error.message else 'invalid_path'
    except CaissonError as error:
        return error.message
    return None


class CaissonBackend(BaseSandbox):
    """The back-end of one sandbox.  Its owner ends it by close(), or by the client."""

    def __init__(self, sandbox: Optional[Sandbox] = None, *, timeout: float = 1800.0, **fields: Any) -> None:
        self.sandbox = sandbox or sync_client().sandbox(**fields)
        self.timeout = timeout

    @property
    def id(self) -> str:
        return self.sandbox.id

    def execute(self, command: str, *, timeout: Optional[int] = None) -> ExecuteResponse:
        limit = self.timeout if timeout is None else float(timeout)
        done = self.sandbox.exec(command, timeout=limit)
        output = done.stdout + (f'\n<stderr>{done.stderr.strip()}</stderr>' if done.stderr.strip() else '')
        if done.timed_out:
            output = f'{output}\nCommand timed out after {limit:g} seconds'.lstrip()
        return ExecuteResponse(output=output, exit_code=TIMED_OUT if done.timed_out else exit_code_of(done), truncated=False)

    def upload_files(self, files: List[Tuple[str, bytes]]) -> List[FileUploadResponse]:
        write = self.sandbox.files.write
        return [FileUploadResponse(path=path, error=error_of(functools.partial(write, path, content))) for path, content in files]

    def download_files(self, paths: List[str]) -> List[FileDownloadResponse]:
        return [self._download(path) for path in paths]

    def _download(self, path: str) -> FileDownloadResponse:
        content: List[bytes] = []
        error = error_of(lambda: content.append(self.sandbox.files.read(path)))
        return FileDownloadResponse(path=path, content=content[0] if content else None, error=error)

    def close(self) -> None:
        self.sandbox.kill()


@functools.lru_cache(maxsize=None)
def provider_class() -> Any:
    """The class for the entry-point group deepagents_code.sandbox_providers, which needs that package."""
    from deepagents_code.integrations.sandbox_provider import (
        SandboxInstallHint,
        SandboxNotFoundError,
        SandboxProvider,
        SandboxProviderMetadata,
    )

    class CaissonProvider(SandboxProvider):
        def __init__(self, client: Optional[Client] = None) -> None:
            self.client = client

        @property
        def metadata(self) -> SandboxProviderMetadata:
            hint = SandboxInstallHint(kind='package', name='caisson-sandbox')
            return SandboxProviderMetadata(name='caisson', working_dir='/home/user', install=hint)

        def get_or_create(self, *, sandbox_id: Optional[str] = None, **kwargs: Any) -> CaissonBackend:
            client = sync_client(self.client)
            if sandbox_id is None:
                return CaissonBackend(client.sandbox(**kwargs))
            try:
                return CaissonBackend(client.sandboxes.get(sandbox_id))
            except NotFound as error:
                raise SandboxNotFoundError(error.message) from error

        def delete(self, *, sandbox_id: str, **kwargs: Any) -> None:
            try:
                sync_client(self.client).sandboxes.get(sandbox_id).kill()
            except NotFound as error:
                raise SandboxNotFoundError(error.message) from error

    return CaissonProvider


def __getattr__(name: str) -> Any:
    if name == 'CaissonProvider':
        return provider_class()
    raise AttributeError(name)
