"""caisson.integrations.deepagents beside a stand-in of its host.

Repository: langchain-ai/deepagents, commit 23b83ad5.  Files: libs/deepagents/deepagents/backends/protocol.py (SandboxBackendProtocol and the responses),
libs/deepagents/deepagents/backends/sandbox.py (BaseSandbox), libs/code/deepagents_code/integrations/sandbox_provider.py (SandboxProvider).
"""

import abc
import dataclasses
from typing import Any, Optional

import pytest

from hosts import check, stand_in

SIGNATURES = {
    'id': '(self)',
    'execute': '(self, command, *, timeout=None)',
    'upload_files': '(self, files)',
    'download_files': '(self, paths)',
}
PROVIDER = {'metadata': '(self)', 'get_or_create': '(self, *, sandbox_id=None, **kwargs)', 'delete': '(self, *, sandbox_id, **kwargs)'}


@dataclasses.dataclass
class ExecuteResponse:
    output: str
    exit_code: Optional[int] = None
    truncated: bool = False


@dataclasses.dataclass
class FileDownloadResponse:
    path: str
    content: Optional[bytes] = None
    error: Optional[str] = None


@dataclasses.dataclass
class FileUploadResponse:
    path: str
    error: Optional[str] = None


class BaseSandbox(abc.ABC):
    @property
    @abc.abstractmethod
    def id(self):
        """Of the sandbox."""

    @abc.abstractmethod
    def execute(self, command, *, timeout=None):
        """Run a command."""

    @abc.abstractmethod
    def upload_files(self, files):
        """Write files."""

    @abc.abstractmethod
    def download_files(self, paths):
        """Read files."""


class SandboxProvider(abc.ABC):
    @abc.abstractmethod
    def get_or_create(self, *, sandbox_id=None, **kwargs):
        """A back-end."""

    @abc.abstractmethod
    def delete(self, *, sandbox_id, **kwargs):
        """End one."""


class SandboxNotFoundError(Exception):
    pass


@dataclasses.dataclass(frozen=True)
class SandboxInstallHint:
    kind: str
    name: str


@dataclasses.dataclass(frozen=True)
class SandboxProviderMetadata:
    name: str
    working_dir: str
    install: Any = None


@pytest.fixture(name='adapter')
def adapter_beside_the_host(monkeypatch, client):
    assert client.is_live
    return stand_in(
        monkeypatch, 'deepagents',
        deepagents__backends__protocol={one.__name__: one for one in (ExecuteResponse, FileDownloadResponse, FileUploadResponse)},
        deepagents__backends__sandbox={'BaseSandbox': BaseSandbox},
        deepagents_code__integrations__sandbox_provider={one.__name__: one for one in (SandboxProvider, SandboxNotFoundError, SandboxInstallHint, SandboxProviderMetadata)})


def test_the_signatures_are_those_of_the_host(adapter):
    check(adapter.CaissonBackend, SIGNATURES)
    check(adapter.CaissonProvider, PROVIDER)


def test_a_backend_runs_commands_and_moves_files(adapter, client):
    backend = adapter.CaissonBackend(client.sandbox())
    assert backend.execute('echo hi; echo bad >&2; exit 3') == ExecuteResponse('hi\n\n<stderr>bad</stderr>', 3, False)
    late = backend.execute('echo before; sleep 60', timeout=1)
    assert late.exit_code == 124 and 'before' in late.output and 'timed out after 1 seconds' in late.output
    assert [one.error for one in backend.upload_files([('a/b', b'\xff'), ('/etc/x', b''), ('a', b'')])] == [None, 'permission_denied', 'is_directory']
    got = backend.download_files(['a/b', 'none', 'a'])
    assert got[0] == FileDownloadResponse('a/b', b'\xff', None) and got[1].error == 'file_not_found' and got[1].content is None and got[2].error == 'is_directory'
    backend.close()
    assert list(client.sandboxes.list()) == []


def test_a_provider_finds_and_deletes_sandboxes(adapter, client):
    provider = adapter.CaissonProvider(client)
    assert provider.metadata.name == 'caisson' and provider.metadata.working_dir == '/home/user'
    made = provider.get_or_create(limits={'pids': 20})
    assert provider.get_or_create(sandbox_id=made.id).execute('echo 1').output == '1\n'
    provider.delete(sandbox_id=made.id)
    for call in (provider.get_or_create, provider.delete):
        with pytest.raises(SandboxNotFoundError):
            call(sandbox_id=made.id)
