"""What the tests of the command line share: running it, and checking each record against the program's own schema."""

import functools
import hashlib
import json
import os
import pty
import subprocess
from pathlib import Path

import jsonschema

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / os.environ.get('CAISSON_BUILD', 'build')
CAISSON = os.environ.get('CAISSON', str(BUILD / 'caisson'))
LIBRARY = Path(os.environ.get('CAISSON_LIBRARY', CAISSON)).parent


def environment(**more):
    """The caller's own, without anything that Caisson reads."""
    env = {name: value for name, value in os.environ.items()
           if not name.startswith(('CAISSON_', 'CODE_EXECUT', 'OTEL_', 'XDG_', 'NO_COLOR'))}
    env['HOME'] = '/nonexistent'
    env['CAISSON_DAEMON'] = 'never'     # a daemon of this host is not what is tested; test_daemon.py starts its own
    return {**env, **more}


class Done:
    def __init__(self, status, out, err):
        self.status, self.bytes, self.out, self.err = status, out, out.decode('utf-8', 'replace'), err.decode('utf-8', 'replace')


def caisson(*args, stdin=None, env=None, cwd=None):
    done = subprocess.run([CAISSON, *map(str, args)], input=stdin if stdin is not None else b'', env=environment(**(env or {})),
                          cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=250, check=False)
    return Done(done.returncode, done.stdout, done.stderr)


@functools.lru_cache(maxsize=None)
def schema(name):
    return json.loads(caisson('schema', name).out)


def checked(text):
    record = json.loads(text)
    jsonschema.Draft202012Validator(schema('result')).validate(record)
    return record


def run(*args, **more):
    """caisson run --json: the record, checked, with the exit status as `exit`."""
    done = caisson('run', '--json', *args, **more)
    record = checked(done.out)
    assert done.out.endswith('}\n') and done.out.count('\n') == 1
    record['exit'] = done.status
    return record


def python(code, *args, **more):
    return run('-l', 'python', '-c', code, *args, **more)


def bash(code, *args, **more):
    return run('-l', 'bash', '-c', code, *args, **more)


def refused(record, *words, field=None, status='bad_request'):
    assert record['status'] == status, record
    assert record['boundary'] is None and record['exit_code'] is None and record['stdout'] == ''
    assert record['error']['message'] and record['error']['code'] == status
    for word in words:
        assert str(word) in record['error']['message'], record['error']['message']
    if field:
        assert record['error']['field'] == field
    return record


def write(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def sha256(content):
    return hashlib.sha256(content).hexdigest()


def on_terminal(*args, env=None):
    """Run with a terminal for all three streams; what the terminal shows."""
    command, env = [CAISSON, *map(str, args)], environment(**{'TERM': 'xterm', **(env or {})})
    pid, fd = pty.fork()
    if pid == 0:
        try:
            os.execvpe(CAISSON, command, env)
        finally:
            os._exit(127)
    shown = b''
    while True:
        try:
            piece = os.read(fd, 65536)
        except OSError:      # EIO: the other end is closed
            piece = b''
        if not piece:
            break
        shown += piece
    _, status = os.waitpid(pid, 0)
    os.close(fd)
    return os.waitstatus_to_exitcode(status), shown


# ---- what a program of ours has made ----

def children(pid):
    return [int(p) for p in Path(f'/proc/{pid}/task/{pid}/children').read_text().split()]


def tree(pid):
    try:
        return [pid] + [p for child in children(pid) for p in tree(child)]
    except (FileNotFoundError, ProcessLookupError):      # it has ended, before its file was opened or since
        return []


def folders_of(pid):
    return [root for root, dirs, _ in os.walk('/sys/fs/cgroup') for name in dirs if name.startswith(f'caisson-{pid}-')]
