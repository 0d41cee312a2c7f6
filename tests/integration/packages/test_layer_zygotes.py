"""Zygotes of layers: the second run with the same packages asks for one, later runs find their modules loaded, and what a hostile module
does at its import stays with the runs of its own layer."""

import os
import tempfile
import time
from pathlib import Path

import pytest

from cli import caisson
from daemon import until
from keys import Keys, bearer
from private_index import PrivateIndex
from test_packages import completed, run, serving, settings_of

LOADED = 'import sys; print("{0}" in sys.modules); import {0}; print({0}.VALUE)'
# Modules that leave something at their import, with the reason that the record has.
HOSTILE = {
    'threading-module': ('import threading, time\nthreading.Thread(target=time.sleep, args=(600,), daemon=True).start()\n', 'starts threads'),
    'forking-module': ('import os\npid = os.fork()\nif not pid: os._exit(0)\nos.waitpid(pid, 0)\n', 'forks'),
    'spawning-module': ('import os\nos.posix_spawn("/usr/bin/sleep", ["sleep", "600"], {})\n', 'forks'),
    'leaving-module': ('import os\nif not os.fork():\n    import time\n    time.sleep(600)\n', 'forks'),
    'opening-module': ('FILE = open("/etc/passwd")\n', 'leaves a descriptor'),
    'signals-module': ('import signal\nsignal.signal(signal.SIGUSR1, lambda *_: None)\n', 'changes signal handlers'),
    'masking-module': ('import signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2])\n', 'changes signal handlers'),
    'slow-module': ('import time\ntime.sleep(2)\n', 'takes longer than 1000 ms'),
    'busy-module': ('import time\nend = time.monotonic() + 2\nwhile time.monotonic() < end: pass\n', 'takes longer than 1000 ms'),
    'stubborn-module': ('import time\nend = time.monotonic() + 2\nwhile time.monotonic() < end:\n    try:\n        time.sleep(0.1)\n'
                        '    except BaseException:\n        pass\n', 'takes longer than 1000 ms'),
}
# What a module may try at its import, where it has the rights of a zygote.
ATTACKS = '''
import ctypes, glob, os, socket
VALUE = 1
TRIED = []
libc = ctypes.CDLL(None, use_errno=True)

def attempt(name, function):
    try:
        function()
        TRIED.append(name)
    except OSError:
        pass

def call(*arguments):
    if libc.syscall(*arguments) < 0:
        raise OSError(ctypes.get_errno(), 'refused')

def write_memory(pid):
    open(f'/proc/{pid}/mem', 'r+b').close()

attempt('write to the layer', lambda: open('/opt/packages/evil.py', 'w'))
attempt('write to the runners', lambda: open('/opt/caisson/evil', 'w'))
attempt('network', lambda: socket.create_connection(('127.0.0.1', PORT), 1))
attempt('raw socket', lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW))
attempt('mount', lambda: call(165, b'none', b'/tmp', b'tmpfs', 0, None))
attempt('umount', lambda: call(166, b'/tmp', 2))
attempt('open_tree', lambda: call(428, -100, b'/', 1))
attempt('unshare', lambda: call(272, 0x10000000))
attempt('chroot', lambda: call(161, b'/opt'))
attempt('ptrace', lambda: call(101, 16, 1, 0, 0))
attempt('memory of process 1', lambda: write_memory(1))
attempt('root of process 1', lambda: os.listdir('/proc/1/root'))
attempt('descriptors of process 1', lambda: os.listdir('/proc/1/fd'))
attempt('namespace of process 1', lambda: os.open('/proc/1/ns/mnt', os.O_RDONLY))
def steal():
    fd = os.pidfd_open(1)
    try:
        call(438, fd, 3, 0)
    finally:
        os.close(fd)

def other_layers():
    if not os.listdir('/tmp'):
        raise OSError('nothing there')

attempt('descriptor of process 1', steal)
attempt('kill process 1', lambda: os.kill(1, 9))
attempt('another user', lambda: os.setuid(0))
attempt('another layer', other_layers)
attempt('device', lambda: os.mknod('/tmp/device', 0o020666, os.makedev(1, 1)) or open('/tmp/device', 'rb'))
others = [pid for pid in os.listdir('/proc') if pid.isdigit() and int(pid) > 1 and int(pid) != os.getpid()]
if others:
    TRIED.append('sees processes of others: ' + ' '.join(others))
'''


# It takes the watch away, and leaves a process.
BURNING = '''
import gc, os, sys
VALUE = 1
for thing in gc.get_objects():
    if isinstance(thing, type) and thing.__name__ == 'Watch' and hasattr(thing, 'too_slow'):
        thing.end = lambda self: None
if sys.orig_argv[1].endswith('/zygote.py'):
    if not os.fork():
        while True:
            pass
'''


# It lets the steps fail by which a child gives up its rights, and the child then says that it has none.
UNCONFINED = '''
import ctypes, sys
VALUE = 1
if sys.orig_argv[1].endswith('/zygote.py'):
    libc = ctypes.CDLL(None)
    address = ctypes.cast(libc.prctl, ctypes.c_void_p).value
    if libc.mprotect(ctypes.c_void_p(address & ~4095), 8192, 7) == 0:
        ctypes.memmove(address, bytes((0x31, 0xc0, 0xc3)), 3)        # xor eax, eax; ret
'''


@pytest.fixture(name='index', scope='module')
def indexed():
    with PrivateIndex() as index:
        index.add_wheel('plain', '1.0', {'plain.py': 'import time\ntime.sleep(0.2)\nVALUE = 1\n'})
        index.add_wheel('base', '1.0', {'base/__init__.py': 'VALUE = "of the base"\n', 'base/more.py': 'VALUE = 2\n'})
        index.add_wheel('top', '1.0', {'top.py': 'import base\nVALUE = base.VALUE\n', 'tests/__init__.py': ''}, requires=['base'])
        index.add_wheel('failing', '1.0', {'failing.py': 'raise ValueError("on purpose")\n'})
        index.add_wheel('shadow', '1.0', {'shadow.py': 'VALUE = 1\n', 'colorsys.py': 'VALUE = "of the layer"\n'})
        index.add_wheel('remembering', '1.0', {'remembering.py': 'VALUE = 1\nSEEN = []\n'})
        index.add_extension('native', '1.0')
        index.add_wheel('asking', '1.0', {'asking.py': 'import subprocess\nVALUE = subprocess.check_output(["echo", "hello"], text=True).strip()\n'})
        for name, (source, _) in HOSTILE.items():
            index.add_wheel(name, '1.0', {name.replace('-', '_') + '.py': source + 'VALUE = 1\n'})
        index.add_wheel('attacker', '1.0', {'attacker.py': ATTACKS.replace('PORT', index.url.rsplit(':', 1)[1].split('/', 1)[0])})
        index.add_wheel('burning', '1.0', {'burning.py': BURNING})
        index.add_wheel('unconfined', '1.0', {'unconfined.py': UNCONFINED})
        index.add_wheel('eating', '1.0', {'eating.py': 'EATEN = bytearray(200_000_000)\nVALUE = 1\n'})
        for number in range(6):
            index.add_wheel(f'many{number}', '1.0', {f'many{number}.py': 'VALUE = 1\n'})
        yield index


@pytest.fixture(name='web', scope='module')
def running(tmp_path_factory, index):
    folder = tmp_path_factory.mktemp('zygotes')
    with serving(folder, *settings_of(index, 'packages.preload=base.more, absent.module', 'packages.zygotes_max=3')) as web:
        yield web


@pytest.fixture(name='hasty', scope='module')
def running_with_little_time(tmp_path_factory, index):
    with serving(tmp_path_factory.mktemp('hasty'), *settings_of(index, 'packages.preload_wall=1000ms')) as web:
        yield web


def is_loaded(web, module, **more):
    record = completed(web, LOADED.format(module), **more)
    return record['stdout'].split('\n')[0] == 'True' and record


def warm(web, module, **more):
    """The record of a run that found the module loaded."""
    return until(lambda: is_loaded(web, module, **more))


def reasons(record):
    return [warning['text'] for warning in record['warnings'] if warning['code'] == 'packages_not_preloaded']


def test_later_runs_find_the_modules_loaded(web):
    first = completed(web, LOADED.format('plain'), packages=['plain'])
    assert first['stdout'] == 'False\n1\n'
    record = warm(web, 'plain', packages=['plain'])
    assert record['stdout'] == 'True\n1\n' and reasons(record) == []
    assert record['layers'][0]['id'] == first['layers'][0]['id']


def test_the_modules_of_packages_that_others_need_come_by_import(web):
    record = warm(web, 'top', packages=['top'])
    assert record['stdout'] == 'True\nof the base\n'
    code = 'import sys; print("base" in sys.modules, "base.more" in sys.modules, "tests" in sys.modules)'
    assert completed(web, code, packages=['top'])['stdout'] == 'True True False\n'


def test_a_run_sees_nothing_of_the_run_before(web):
    code = 'import remembering, os; remembering.SEEN.append(1); print(remembering.SEEN, os.path.exists("f")); open("f", "w"); open("/tmp/f", "x")'
    warm(web, 'remembering', packages=['remembering'])
    for _ in range(5):
        assert completed(web, code, packages=['remembering'])['stdout'] == '[1] False\n'


def test_a_module_of_the_layer_with_a_name_of_the_library_is_the_layers(web):
    warm(web, 'shadow', packages=['shadow'])
    assert completed(web, 'import colorsys; print(colorsys.VALUE)', packages=['shadow'])['stdout'] == 'of the layer\n'


def test_a_module_in_the_programs_folder_comes_before_the_layers(web):
    warm(web, 'plain', packages=['plain'])
    files = [{'name': 'plain.py', 'content': 'VALUE = "of the program"\n'}]
    assert completed(web, 'import plain; print(plain.VALUE)', packages=['plain'], files=files)['stdout'] == 'of the program\n'


def test_the_boundary_of_such_a_run_is_that_of_any_run(web):
    usual = completed(web, 'pass')
    warm(web, 'plain', packages=['plain'])
    record = completed(web, 'import sys; print("plain" in sys.modules)', packages=['plain'])
    assert record['stdout'] == 'True\n'
    assert {**record['boundary'], 'host_uid': 0} == {**usual['boundary'], 'host_uid': 0}


def test_limits_hold(web):
    warm(web, 'plain', packages=['plain'])
    more = {'packages': ['plain']}
    assert run(web, 'x = bytearray(900_000_000)', limits={'memory_bytes': 100_000_000}, **more)['status'] == 'memory_exceeded'
    assert run(web, 'while True: pass', limits={'wall_ms': 500}, **more)['status'] == 'timeout'
    code = 'import os\ntry:\n    for _ in range(50): os.fork() or os._exit(0)\nexcept OSError as error: print(error.errno)'
    assert completed(web, code, limits={'pids': 10}, **more)['stdout'] == '11\n'


@pytest.mark.parametrize('name', HOSTILE)
def test_a_module_that_a_fork_cannot_have_is_imported_in_the_run(web, hasty, name):
    web = hasty if HOSTILE[name][1].startswith('takes longer') else web
    module, reason = name.replace('-', '_'), HOSTILE[name][1]
    code = f'import sys; print("{module}" in sys.modules); import {module}; print({module}.VALUE)'
    def with_reason():
        record = run(web, code, packages=[name, 'plain'], limits={'wall_ms': 20000})
        assert record['status'] == 'completed' and record['stdout'].startswith('False\n1\n'), record
        return reasons(record) and record
    record = until(with_reason, 60)
    assert f'{module} ({reason})' in reasons(record)[0]
    if web is not hasty:            # on a busy machine any module may take as long
        assert reasons(record) == [f'imported in the run, and not ahead: {module} ({reason})']
        assert completed(web, 'import sys; print("plain" in sys.modules)', packages=[name, 'plain'])['stdout'] == 'True\n'


def test_a_module_that_runs_a_program_to_its_end_is_loaded_ahead(web):
    assert warm(web, 'asking', packages=['asking'])['stdout'] == 'True\nhello\n'


def test_a_module_that_fails_fails_in_the_run(web):
    def with_reason():
        record = run(web, 'import failing', packages=['failing'])
        assert record['status'] == 'failed' and 'on purpose' in record['stderr'], record
        return reasons(record)
    assert until(with_reason) == ['imported in the run, and not ahead: failing (ValueError: on purpose)']


def test_an_extension_in_c_is_loaded_ahead(web):
    until(lambda: completed(web, 'import sys; print("native" in sys.modules)', packages=['native'])['stdout'] == 'True\n')
    assert run(web, 'import native; print(native.__name__)', packages=['native'])['stdout'] == 'native\n'


def test_a_hostile_module_gets_nowhere_at_its_import(web):
    warm(web, 'attacker', packages=['attacker'])
    assert completed(web, 'import attacker; print(attacker.TRIED)', packages=['attacker'])['stdout'] == '[]\n'


def zygotes(web, **who):
    """How many zygotes with packages serve."""
    text = web.ask('GET', '/metrics', **who)[2].decode()
    return int(text.partition('caisson_zygote_up{image="packages"} ')[2].split('\n')[0] or 0)


def test_the_least_recently_used_zygote_ends(web):
    for number in range(5):
        warm(web, f'many{number}', packages=[f'many{number}'])
        time.sleep(1)
        assert zygotes(web) <= 3
    assert is_loaded(web, 'many4', packages=['many4'])


def test_tenants_share_no_zygote(tmp_path, index):
    keys = Keys(tmp_path)
    alice, bob = (bearer(keys.make(name, '--tenant', name, '--scopes', 'run,read,metrics')) for name in ('alice', 'bob'))
    with serving(tmp_path, *settings_of(index), keyless=False) as web:
        lock = web.ask('POST', '/v1/layers', {'packages': ['remembering']}, **alice)[2]['id']
        def ask(code, who):
            status, _, record = web.ask('POST', '/v1/runs', {'language': 'python', 'code': code, 'packages': ['remembering']}, **who)
            assert status == 200 and record['status'] == 'completed', record
            return record
        for who in alice, bob:
            until(lambda who=who: ask(LOADED.format('remembering'), who)['stdout'] == 'True\n1\n')
        assert zygotes(web, **alice) == 2
        assert lock == ask('pass', alice)['layers'][0]['id'] != ask('pass', bob)['layers'][0]['id']


def failures(web):
    text = web.ask('GET', '/metrics')[2].decode()
    return int(text.partition('caisson_zygote_failures_total{image="packages"} ')[2].split('\n')[0] or 0)


def descendants(pid, comm):
    """Processes of a daemon with this name, the oldest first."""
    parents, names = {}, {}
    for entry in filter(str.isdigit, os.listdir('/proc')):
        try:
            text = open(f'/proc/{entry}/stat', encoding='utf-8', errors='replace').read()
        except OSError:
            continue
        head, _, tail = text.rpartition(')')
        names[int(entry)], parents[int(entry)] = head.partition('(')[2], int(tail.split()[1])

    def below(one):
        while one > 1 and one != pid:
            one = parents.get(one, 0)
        return one == pid
    return sorted(one for one in names if names[one] == comm and below(one))


def test_foreign_code_that_goes_on_ends_its_zygote(tmp_path, index):
    with serving(tmp_path / 'd', *settings_of(index)) as web:
        for _ in range(3):              # each fork counts for some milliseconds, so few are asked for
            completed(web, 'pass', packages=['burning'])
        until(lambda: failures(web) == 1)
        assert completed(web, 'import burning; print(burning.VALUE)', packages=['burning'])['stdout'] == '1\n'
        until(lambda: len(descendants(web.daemon.process.pid, 'outer-init')) == 1)     # and all processes of the domain have ended with it


@pytest.mark.parametrize('signal_number', [9, 19])
def test_a_domain_that_is_killed_or_stopped_takes_no_other_run_along(tmp_path, index, signal_number):
    with serving(tmp_path / 'd', *settings_of(index)) as web:
        warm(web, 'plain', packages=['plain'])

        def two():                      # a process 1 has the name, too, until it gets its own
            found = descendants(web.daemon.process.pid, 'outer-init')
            return found if len(found) == 2 else None

        common, domain = until(two)
        os.kill(domain, signal_number)
        for _ in range(3):              # until the supervisor knows of the signal, a run may begin in the domain, and is lost with it
            assert completed(web, LOADED.format('plain'), packages=['plain'], retry='safe')['stdout'].endswith('1\n')
            assert completed(web, 'print(1)')['stdout'] == '1\n'
        until(lambda: domain not in descendants(web.daemon.process.pid, 'outer-init'))
        assert common in descendants(web.daemon.process.pid, 'outer-init')


def test_an_idle_zygote_ends(tmp_path, index):
    with serving(tmp_path / 'd', *settings_of(index, 'packages.zygote_idle=1s')) as web:
        warm(web, 'plain', packages=['plain'])
        until(lambda: zygotes(web) == 0 and len(descendants(web.daemon.process.pid, 'outer-init')) == 1)
        assert completed(web, LOADED.format('plain'), packages=['plain'])['stdout'] == 'False\n1\n'


def test_a_zygote_has_a_memory_limit(tmp_path, index):
    with serving(tmp_path / 'd', *settings_of(index, 'packages.zygote_memory_bytes=64MiB')) as web:
        until(lambda: completed(web, 'pass', packages=['eating']) and failures(web) == 1)
        assert completed(web, 'import eating; print(eating.VALUE)', packages=['eating'])['stdout'] == '1\n'


def test_no_zygote_where_the_number_is_zero(tmp_path, index):
    with serving(tmp_path / 'd', *settings_of(index, 'packages.zygotes_max=0')) as web:
        for _ in range(4):
            assert completed(web, LOADED.format('plain'), packages=['plain'])['stdout'] == 'False\n1\n'
            time.sleep(0.4)


@pytest.mark.skipif(os.geteuid() != 0, reason='the other tests have no privileges either')
def test_without_privileges_the_same_holds(index):
    with tempfile.TemporaryDirectory() as name:      # the folders of pytest are for root alone
        folder = Path(name)
        os.chown(folder, 65534, 65534)
        check_without_privileges(folder, index)


def check_without_privileges(folder, index):
    with serving(folder, *settings_of(index), user=65534, group=65534, extra_groups=[]) as web:
        record = warm(web, 'plain', packages=['plain'])
        assert record['boundary']['rootless'] is True and record['boundary']['capabilities'] == 0


def test_a_child_that_is_not_confined_runs_nothing(tmp_path, index):
    with serving(tmp_path / 'd', *settings_of(index)) as web:
        until(lambda: completed(web, 'pass', packages=['unconfined']) and zygotes(web) == 1)
        for _ in range(5):
            record = completed(web, 'import unconfined; print(unconfined.VALUE)', packages=['unconfined'])
            assert record['stdout'] == '1\n' and record['boundary']['capabilities'] == 0
        assert 'the zygote\'s child is not confined' in web.log.read_text()


@pytest.mark.parametrize('names', ['pandas;os', 'a/b', 'x\ty'])
def test_names_of_modules_are_checked(names):
    done = caisson('config', 'show', '--set', f'packages.preload={names}')
    assert done.status != 0 and 'packages.preload' in done.err and 'names of modules' in done.err


def test_a_grading_uses_no_such_zygote(tmp_path, index):
    request = {'code': 'import sys\nimport plain\nLOADED = "plain" in sys.modules\ndef f(x):\n    return x + plain.VALUE\n', 'function': 'f',
               'packages': ['plain'], 'cases': [{'args': [1], 'expected': 2}]}
    with serving(tmp_path / 'd', *settings_of(index)) as web:
        for _ in range(4):
            status, _, result = web.ask('POST', '/v1/grade', request)
            assert status == 200 and result['all_passed'], result
            time.sleep(0.4)
        assert zygotes(web) == 0 and len(descendants(web.daemon.process.pid, 'outer-init')) == 1
