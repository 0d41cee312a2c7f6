"""SIGHUP: what a daemon takes over while it runs, what it says of the rest, and that an error changes nothing."""

import json
import os
import re
import signal
import socket

import pytest

from daemon import Daemon, until

POLICY = 'policy: mine\nextends: linx\nrules:\n  - {{ id: mine, severity: {severity}, message: "none of that", command: [{command}] }}\n'


class Place:
    """A daemon with a configuration file and a folder of policies of its own."""

    def __init__(self, folder):
        self.folder, self.daemon = folder, None
        (folder / 'policies').mkdir()
        self.log = folder / 'log'

    def write(self, text):
        (self.folder / 'caisson.yaml').write_text(f'engine:\n  log_level: info\n  policies_dir: {self.folder}/policies\n{text}')

    def policy(self, command, severity='CRITICAL'):
        (self.folder / 'policies/mine.yaml').write_text(POLICY.format(command=command, severity=severity))

    def start(self, **env):
        self.daemon = Daemon(self.folder, '--config', self.folder / 'caisson.yaml', env=env).ready()

    def reload(self):
        """What it says about that."""
        before = len(self.log.read_text())
        self.daemon.process.send_signal(signal.SIGHUP)
        said = until(lambda: (lambda text: re.search(r'reload: (settings changed|nothing is changed)', text) and text)(self.log.read_text()[before:]))
        return [(line['level'], line['text']) for line in map(json.loads, said.splitlines()) if 'reload: ' in line['text']]

    def record(self, code, **more):
        with self.daemon.client() as client:
            client.run(1, code, **more)
            return client.results(1)[1][0]


@pytest.fixture
def place(tmp_path):
    one = Place(tmp_path)
    one.write('limits:\n  wall_ms: 10s\n')
    one.policy('shred')
    yield one
    one.daemon.stop()


def says(lines, level, words):
    return any(found == level and re.search(words, text) for found, text in lines)


def test_a_live_setting_is_in_force_at_once_and_a_run_that_goes_on_keeps_its_own(place):
    place.start()
    with place.daemon.client() as client:
        client.run(1, 'echo started; sleep 2; echo x')
        client.get()
        place.write('limits:\n  wall_ms: 500ms\n')
        lines = place.reload()
        assert says(lines, 'info', 'limits.wall_ms is "500ms" now, and was "10s"') and says(lines, 'info', 'changed: 1, waiting for a restart: 0')
        assert client.results(1)[1][0]['status'] == 'completed'
    assert place.record('sleep 2')['status'] == 'timeout'


def test_what_needs_a_restart_is_named_each_time_and_stays(place):
    place.start()
    place.write('  uid_count: 100\n  queue_max: 0\n  running_max: 1\n')
    for times in range(2):
        lines = place.reload()
        assert says(lines, 'warn', 'engine.uid_count stays "1048576"; it needs a restart to become "100"')
        assert says(lines, 'info', 'engine.running_max is "1" now') == (times == 0)
    with place.daemon.client() as client:
        status = client.status()
        assert (status['queue']['max'], status['queue']['waiting_max']) == (1, 0)


@pytest.mark.parametrize('text, words', [
    ('limits:\n  wall_ms: soon\n', r'caisson\.yaml:5'), ('  nosuch: 1\n', 'nosuch'), ('limits: [\n', r'caisson\.yaml'),
    ('ceilings:\n  wall_ms: 1s\nlimits:\n  wall_ms: 2s\n', 'ceilings.wall_ms'), ('  socket_uids: root\n', 'engine.socket_uids'),
    ('  profile: nosuch\n', 'nosuch')])
def test_an_error_leaves_everything_as_it_was(place, text, words):
    place.start()
    place.write('limits:\n  wall_ms: 500ms\n' if 'limits' not in text else '')
    (place.folder / 'caisson.yaml').write_text((place.folder / 'caisson.yaml').read_text() + text if 'limits' in text
                                               else (place.folder / 'caisson.yaml').read_text().replace('limits:', text + 'limits:'))
    lines = place.reload()
    assert says(lines, 'error', f'nothing is changed, because of an error: .*{words}') and len(lines) == 1, lines
    assert place.record('sleep 1; echo x')['stdout'] == 'x\n'
    place.write('limits:\n  wall_ms: 500ms\n')       # and when it has been put right, it works
    assert says(place.reload(), 'info', 'limits.wall_ms is "500ms" now')


def test_a_missing_file_is_an_error(place):
    place.start()
    (place.folder / 'caisson.yaml').unlink()
    assert says(place.reload(), 'error', 'nothing is changed.*caisson.yaml')
    assert place.record('echo x')['stdout'] == 'x\n'


def test_flag_and_environment_still_win(place):
    place.start(CAISSON_LIMITS_WALL_MS='10s')
    place.write('limits:\n  wall_ms: 500ms\n')
    assert says(place.reload(), 'info', 'changed: 0')
    assert place.record('sleep 1; echo x')['stdout'] == 'x\n'


def test_policies_are_read_again(place):
    place.start()
    assert place.record('shred x', policy='mine')['status'] == 'blocked'
    assert place.record('shuf x', policy='mine')['status'] == 'failed'
    place.policy('shuf')
    place.reload()
    assert place.record('shuf x', policy='mine')['status'] == 'blocked'
    assert place.record('shred x', policy='mine')['status'] == 'failed'


def test_a_policy_with_an_error_leaves_the_old_one_in_force(place):
    place.start()
    assert place.record('shred x', policy='mine')['status'] == 'blocked'
    place.policy('shuf', severity='LOUD')
    assert says(place.reload(), 'error', r'nothing is changed.*mine\.yaml:4')
    assert place.record('shred x', policy='mine')['status'] == 'blocked'
    assert place.record('shuf x', policy='mine')['status'] == 'failed'


def test_checks_that_go_on_are_answered(place):
    place.start()
    with place.daemon.client() as client:
        for i in range(1, 101):
            client.run(i, f'echo {i}', policy='mine')
            if i % 10 == 0:
                place.reload()
        assert {record['status'] for record, _, _ in client.results(100).values()} == {'completed'}


def test_the_host_backend_stays_off(place):
    place.start()
    place.write('  allow_host: true\nlimits:\n  wall_ms: 10s\n')
    assert says(place.reload(), 'info', 'changed: 0, waiting for a restart: 0')
    assert place.record('id', backend='host')['status'] == 'bad_request'


def test_the_users_that_are_answered_can_change(place):
    place.start()
    place.write('  socket_uids: 4294967294\n')
    place.reload()
    with place.daemon.client() as client:
        client.ended('permission_denied', 'engine.socket_uids')


def test_the_service_manager_is_told_of_it(place):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.settimeout(60)
        manager.bind(str(place.folder / 'notify'))
        place.start(NOTIFY_SOCKET=str(place.folder / 'notify'))

        def next_of(word):
            while not (text := manager.recv(1000).decode()).startswith(word):
                assert text.startswith('WATCHDOG=1'), text
            return text
        next_of('READY=1')
        for text, words in (('limits:\n  wall_ms: 2s\n', 'changed by the last reload: 1'), ('limits:\n  wall_ms: x\n', 'refused')):
            place.write(text)
            place.daemon.process.send_signal(signal.SIGHUP)
            assert re.fullmatch(r'RELOADING=1\nMONOTONIC_USEC=\d+', next_of('RELOADING=1'))
            assert words in next_of('READY=1\nSTATUS=')


def test_while_it_ends_nothing_is_read(place):
    place.start()
    with place.daemon.client() as client:
        client.run(1, 'echo started; sleep 1')
        client.get()
        os.kill(place.daemon.process.pid, signal.SIGTERM)
        until(lambda: 'signal 15' in place.log.read_text())
        place.daemon.process.send_signal(signal.SIGHUP)
        assert client.results(1)[1][0]['status'] == 'completed'
    assert place.daemon.process.wait(60) == 0 and 'reload' not in place.log.read_text()
