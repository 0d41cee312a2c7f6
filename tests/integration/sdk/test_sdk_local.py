"""Private daemons of sdk/python: one for a tree of processes, and none is left."""

import asyncio
import gc
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pytest

import caisson
from caisson import config, local
from caisson.aio import in_thread
from cli import children
from daemon import alive, until

GOOD = {'code': 'def f(x):\n    return x + 1\n', 'function': 'f', 'cases': [{'args': [1], 'expected': 2}]}


def passes(client=None):
    return (client or caisson.default_client()).grade(GOOD).all_passed


def daemon_of(client):
    """The process id of the daemon of a client in the process that started the daemon."""
    child, = children(client._lease.daemon.watcher.pid)
    return child


def script(text, **more):
    """A program that does not find the daemon of these tests."""
    env = {name: value for name, value in os.environ.items() if name != local.SOCKET_VARIABLE}
    return subprocess.Popen([sys.executable, '-c', textwrap.dedent(text)], env=env, stdout=subprocess.PIPE, text=True, **more)


# ---- forks and children ----

def in_child(function):
    """The exit status of a forked child that calls a function."""
    child = os.fork()
    if child == 0:
        os._exit(0 if function() else 1)
    return os.waitpid(child, 0)[1]


def test_a_forked_process_uses_the_daemon_of_its_parent_and_does_not_end_it(client):
    address = client.address

    def work():
        used = caisson.default_client()
        good = used.address == address and passes(used) and local._shared.starter != os.getpid()
        used.close()
        local.stop_all()
        gc.collect()
        return good
    assert in_child(work) == 0
    assert passes(client) and client.is_live


def test_a_fork_beside_threads_that_grade_works(client):
    stop = threading.Event()

    def work():
        while not stop.is_set():
            assert passes()
    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    statuses = [in_child(passes) for _ in range(6)]
    stop.set()
    for thread in threads:
        thread.join()
    assert statuses == [0] * 6 and client.is_live


@pytest.mark.parametrize('method', ['fork', 'spawn', 'forkserver'])
def test_processes_of_multiprocessing_share_the_daemon(client, method):
    with multiprocessing.get_context(method).Pool(2) as pool:
        addresses = pool.map(address_after_grading, range(4))
    assert set(addresses) == {str(client.address)} and passes(client)


def address_after_grading(_):
    used = caisson.default_client()
    assert passes(used)
    return str(used.address)


# ---- event loops ----

def test_several_event_loops_use_one_client(client):
    async def both():
        return await asyncio.gather(*(in_thread(passes, client) for _ in range(20)))
    assert all(asyncio.run(both())) and all(asyncio.run(both()))
    found = []
    threads = [threading.Thread(target=lambda: found.append(asyncio.run(both()))) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [[True] * 20] * 3


def test_a_forked_process_has_an_event_loop_of_its_own(client):
    assert asyncio.run(in_thread(passes, client))
    assert in_child(lambda: asyncio.run(in_thread(passes, client))) == 0


# ---- ends ----

def test_a_daemon_ends_with_its_client():
    with caisson.Client.local(settings=['engine.running_max=2']) as own:
        daemon, folder = daemon_of(own), Path(own.address.path).parent
        assert passes(own) and alive(daemon)
    assert not alive(daemon) and not folder.exists()


def test_a_daemon_ends_when_its_client_is_collected():
    own = caisson.Client.local(settings=['engine.running_max=2'])
    daemon, folder = daemon_of(own), Path(own.address.path).parent
    assert passes(own)
    del own
    gc.collect()
    until(lambda: not alive(daemon) and not folder.exists())


def test_clients_of_a_process_share_a_daemon_that_ends_with_the_last(client):
    more = caisson.Client.local()
    assert more.address == client.address
    more.close()
    assert client.is_live and passes(client)


BEGIN = '''
    import os, sys, time
    import caisson
    from caisson import local
    assert caisson.default_client().run('print(1)').stdout == '1\\n'
    daemon = local._shared
    print(daemon.watcher.pid, daemon.path, flush=True)
'''


def begun(process):
    """(process id of the watcher, its daemon, the folder) of a script."""
    watcher, path = process.stdout.readline().split()
    return int(watcher), children(int(watcher))[0], Path(path).parent


def is_gone(watcher, daemon, folder):
    return not alive(watcher) and not alive(daemon) and not folder.exists()




@pytest.mark.parametrize('end', ['', 'sys.exit(3)', 'raise ValueError'])
def test_the_end_of_a_process_ends_its_daemon(end):
    with script(textwrap.dedent(BEGIN) + end, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL) as process:
        line = process.stdout.readline().split()
        process.wait(60)
        assert not alive(int(line[0])) and not Path(line[1]).parent.exists()


@pytest.mark.parametrize('number', [signal.SIGKILL, signal.SIGTERM])
def test_a_process_that_is_killed_leaves_no_daemon(number):
    with script(textwrap.dedent(BEGIN) + 'time.sleep(1000)') as process:
        found = begun(process)
        assert alive(found[1])
        process.send_signal(number)
        process.wait()
        until(lambda: is_gone(*found))


def test_a_daemon_whose_watcher_is_killed_ends():
    with script(textwrap.dedent(BEGIN) + 'time.sleep(1000)') as process:
        watcher, daemon, folder = begun(process)
        os.kill(watcher, signal.SIGKILL)
        until(lambda: not alive(daemon))
        process.kill()
        process.wait()
        shutil.rmtree(folder)


def test_a_forked_process_that_outlives_its_parent_keeps_the_daemon():
    text = textwrap.dedent(BEGIN) + textwrap.dedent('''
        parent = os.getpid()
        if os.fork() == 0:
            while os.getppid() == parent:
                time.sleep(0.01)
            assert caisson.default_client().run('print(2)').stdout == '2\\n'
            print('ran', flush=True)
            sys.stdin.read()
        os._exit(0)
    ''')
    with script(text, stdin=subprocess.PIPE) as process:
        found = begun(process)
        assert process.stdout.readline() == 'ran\n' and alive(found[1])
        process.stdin.close()
        until(lambda: is_gone(*found))


def test_a_daemon_that_was_killed_is_followed_by_another():
    text = textwrap.dedent(BEGIN) + textwrap.dedent('''
        sys.stdin.readline()
        assert caisson.default_client().run('print(2)').stdout == '2\\n'
        print(local._shared.path, flush=True)
    ''')
    with script(text, stdin=subprocess.PIPE) as process:
        found = begun(process)
        os.kill(found[1], signal.SIGKILL)
        until(lambda: is_gone(*found))
        process.stdin.write('\n')
        process.stdin.flush()
        assert process.stdout.readline().strip() not in ('', str(found[2] / 's.http'))
        assert process.wait(60) == 0


# ---- what is in the way ----

def test_without_a_program_the_error_names_the_remedies(monkeypatch):
    monkeypatch.delenv('CAISSON_CAISSOND')
    monkeypatch.setenv('PATH', '/nonexistent')
    with pytest.raises(caisson.Unreachable) as caught:
        local.find_program(None)
    assert not caught.value.retryable and 'CAISSON_URL' in str(caught.value) and 'CAISSON_CAISSOND' in str(caught.value)
    with pytest.raises(caisson.Unreachable) as caught:
        caisson.Client.local(caissond='/etc/passwd')
    assert '/etc/passwd' in str(caught.value)


def test_the_program_is_found_beside_the_command_on_the_path(monkeypatch):
    beside = os.environ['CAISSON_CAISSOND']
    monkeypatch.delenv('CAISSON_CAISSOND')
    monkeypatch.setenv('PATH', str(Path(beside).parent))
    assert local.find_program(None) == beside


def test_a_daemon_that_does_not_start_says_why_and_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(local.tempfile, 'tempdir', str(tmp_path))
    with pytest.raises(caisson.Unreachable) as caught:
        caisson.Client.local(settings=['engine.nonsense=1'])
    assert 'engine.nonsense' in str(caught.value) and not list(tmp_path.iterdir())


def test_a_long_path_of_temporary_folders_is_not_used_for_the_socket(tmp_path, monkeypatch):
    deep = tmp_path / ('d' * 100)
    deep.mkdir()
    monkeypatch.setattr(local.tempfile, 'tempdir', str(deep))
    with caisson.Client.local(settings=['engine.running_max=1']) as own:
        assert own.address.path.startswith('/tmp/') and passes(own)
    assert not list(deep.iterdir())


def test_settings_of_another_daemon_do_not_reach_the_private_one(monkeypatch):
    monkeypatch.setenv('CAISSON_ENGINE_HTTP', '127.0.0.1:1')
    monkeypatch.setenv('CAISSON_URL', 'http://127.0.0.1:1')
    monkeypatch.setenv('CAISSON_KEY', 'nothing')
    monkeypatch.setenv('NOTIFY_SOCKET', '/nonexistent')
    with caisson.Client.local(settings=['engine.running_max=1']) as own:
        assert passes(own) and own.key == ''


def test_a_configured_server_is_used_and_no_daemon_is_started(monkeypatch):
    monkeypatch.setattr(config, '_private', None)
    monkeypatch.setenv('CAISSON_URL', 'http://127.0.0.1:9')
    assert str(caisson.default_client().address) == 'http://127.0.0.1:9' and config._private is None
    caisson.configure(base_url='http://127.0.0.1:10', key='k')
    assert str(caisson.default_client().address) == 'http://127.0.0.1:10' and caisson.default_client().key == 'k'
