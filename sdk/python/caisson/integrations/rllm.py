"""rLLM: a sandbox with the methods of its protocol; the module needs no package of the host."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Optional

from ..client import Client
from ..errors import CaissonError
from ._common import archive_of, exit_code_of, sync_client, user_of

SHOWN = 600  # characters of standard error in an exception


class CaissonSandbox:
    """`fields` are those of Client.sandbox(), such as image, profile and limits."""

    def __init__(self, name: str = '', *, client: Optional[Client] = None, **fields: Any) -> None:
        self.name = name
        self.sandbox = sync_client(client).sandbox(labels={'name': name[:200]} if name else None, **fields)

    def exec(self, command: str, timeout: Optional[float] = None, user: Optional[str] = None) -> str:
        """Standard output of a command line.  RuntimeError where it fails."""
        done = self.sandbox.exec(command, timeout=timeout, user=user_of(user))
        if done.timed_out:
            raise RuntimeError(f'Command timed out after {timeout} s: {command}')
        if exit_code_of(done):
            tail = done.stderr[-SHOWN:]
            raise RuntimeError(f'Command failed (exit {exit_code_of(done)}): {command}\nstderr (tail):\n{tail}')
        return done.stdout

    def upload_file(self, local_path: str, remote_path: str) -> None:
        self.sandbox.files.write(remote_path, Path(local_path))

    def upload_dir(self, local_path: str, remote_path: str) -> None:
        self.sandbox.files.write_tar(remote_path, archive_of(local_path))

    def close(self) -> None:
        self.sandbox.kill()

    def is_alive(self) -> bool:
        try:
            return str(self.sandbox.refresh().get('state')) == 'running'
        except CaissonError:
            return False
