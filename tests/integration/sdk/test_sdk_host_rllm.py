"""caisson.integrations.rllm and the protocol of its host.

Repository: rllm-org/rllm, commit 9beb6e0f (0.3.0.pre).  File: rllm/sandbox/protocol.py, protocol Sandbox, which is runtime_checkable.
"""

from typing import Protocol, runtime_checkable

import pytest

from caisson.integrations.rllm import CaissonSandbox
from hosts import check

SIGNATURES = {
    'exec': '(self, command, timeout=None, user=None)',
    'upload_file': '(self, local_path, remote_path)',
    'upload_dir': '(self, local_path, remote_path)',
    'close': '(self)',
    'is_alive': '(self)',
}


@runtime_checkable
class Sandbox(Protocol):
    def exec(self, command, timeout=None, user=None): ...
    def upload_file(self, local_path, remote_path): ...
    def upload_dir(self, local_path, remote_path): ...
    def close(self): ...
    def is_alive(self): ...


def test_a_sandbox_has_the_protocol(client, tmp_path):
    check(CaissonSandbox, SIGNATURES)
    sandbox = CaissonSandbox('name', client=client, limits={'pids': 30})
    assert isinstance(sandbox, Sandbox) and sandbox.is_alive() and sandbox.exec('echo hi; echo e >&2') == 'hi\n'
    (tmp_path / 'all/sub').mkdir(parents=True)
    (tmp_path / 'all/sub/a').write_text('1')
    sandbox.upload_file(str(tmp_path / 'all/sub/a'), 'x/y')
    sandbox.upload_dir(str(tmp_path / 'all'), '/home/user/all')
    assert sandbox.exec('cat x/y all/sub/a') == '11'
    for command, words, options in (('echo out; echo why >&2; exit 3', ('exit 3', 'why'), {}), ('sleep 60', ('timed out',), {'timeout': 0.5})):
        with pytest.raises(RuntimeError) as caught:
            sandbox.exec(command, **options)
        assert all(word in str(caught.value) for word in words)
    sandbox.close()
    assert not sandbox.is_alive() and list(client.sandboxes.list()) == []
    sandbox.close()
