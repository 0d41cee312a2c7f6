"""What the adapters share: the server, exit codes, folders as archives, and a tool that runs code."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path
from typing import Any, Awaitable, Callable, Optional, Tuple, Union

from ..async_client import AsyncClient
from ..client import Client
from ..config import default_client
from ..errors import InvalidRequest
from ..results import Process, Run

DESCRIPTION = (
    'Run a program in a sandbox without a network, and get its output and the value of its last expression. '
    'language is python, javascript, typescript or bash.'
)
NOT_FOUND = 127  # of a shell, for a program that does not exist


def async_client(client: Optional[AsyncClient] = None) -> AsyncClient:
    """The client, or one of the default server; the private daemon stays for as long as this process."""
    if client:
        return client
    shared = default_client()
    return AsyncClient(str(shared.address), shared.key, timeout=shared.timeout, retries=shared.retries)


def sync_client(client: Optional[Client] = None) -> Client:
    return client or default_client()


def exit_code_of(process: Process) -> int:
    """The exit status; 128 + n of a signal, as a shell has it."""
    return process.exit_code if process.exit_code is not None else 128 + (process.signal or 9)


def is_not_started(error: InvalidRequest) -> bool:
    return error.field == 'command'


def user_of(user: Union[str, int, None]) -> Optional[str]:
    """The user of a program: root, or the user of the sandbox."""
    if user in (None, 'user', 1000, '1000'):
        return None
    if user in ('root', 0, '0'):
        return 'root'
    raise InvalidRequest(f'the user is {user!r}; a sandbox has root and user', field='user')


def archive_of(folder: Union[str, Path]) -> bytes:
    """A folder as a tar archive, without its own name."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode='w') as tar:
        for path in sorted(Path(folder).iterdir()):
            tar.add(str(path), arcname=path.name)
    return stream.getvalue()


def unpack(archive: bytes, folder: Union[str, Path]) -> None:
    """The regular files and folders of an archive that is not trusted: no link, no device, no name that leads outside."""
    root = Path(folder)
    root.mkdir(parents=True, exist_ok=True)
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        for member in tar:
            parts = [part for part in Path(member.name).parts if part != '.']
            if '..' in parts or Path(member.name).is_absolute() or not (member.isdir() or member.isfile()):
                continue
            target = root.joinpath(*parts)
            if any(parent.is_symlink() for parent in (target, *target.parents) if root in parent.parents):
                continue
            (target if member.isdir() else target.parent).mkdir(parents=True, exist_ok=True)
            source = tar.extractfile(member) if member.isfile() else None
            if source:
                target.write_bytes(source.read())


def text_of(run: Run) -> str:
    """A run as a text for a model."""
    parts = [run.stdout, f'stderr:\n{run.stderr}' if run.stderr else '', f'value: {run.text}' if run.text else '']
    names = ', '.join(file.name for file in run.files)
    parts.append(f'files: {names}' if names else '')
    if not run.ok:
        parts.append(f'status: {run.status}. {" ".join(run.why())}')
    return '\n'.join(part for part in parts if part) or 'The program printed nothing.'


def code_functions(
    client: Optional[Client], asynchronous: Optional[AsyncClient], fields: Any
) -> Tuple[Callable[[str, str], str], Callable[[str, str], Awaitable[str]]]:
    """A function that runs code for a model, and its asynchronous twin."""

    def run_code(code: str, language: str = 'python') -> str:
        return text_of(sync_client(client).run(code, language, **fields))

    async def run_code_async(code: str, language: str = 'python') -> str:
        return text_of(await async_client(asynchronous).run(code, language, **fields))

    for function in (run_code, run_code_async):
        function.__name__ = 'run_code'
        function.__doc__ = DESCRIPTION
    return run_code, run_code_async
