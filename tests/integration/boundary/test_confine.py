"""What a daemon gives up before it listens: as the kernel says, and by what does not work any more."""

import os
import re
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

import pytest

from cli import children
from daemon import Daemon, alive, command_line, supervisors, until
from web import Web

ROOT_ONLY = pytest.mark.skipif(os.geteuid() != 0, reason='needs root: to become another user')
LEAVES = 'echo x > open; mkdir closed; echo y > closed/file; chmod 0 open closed/file closed; ln -s /etc/passwd link; mkfifo pipe; ln closed hard || true'


@pytest.fixture
def place():
    """A folder that every user can enter, which those of pytest are not."""
    folder = Path(tempfile.mkdtemp(prefix='caissond-'))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def start(place):
    daemons = []

    def one(*options, **more):
        daemons.append(Daemon(place, *options, **more))
        return daemons[-1]
    yield one
    for daemon in daemons:
        daemon.stop()


def facts(pid):
    return dict(line.split(':\t', 1) for line in Path(f'/proc/{pid}/status').read_text().splitlines() if ':\t' in line)


def record(daemon, code, language='bash', **more):
    with daemon.client() as client:
        client.run(1, code, language, **more)
        return client.results(1)[1][0]


@ROOT_ONLY
def test_it_is_nobody_and_has_nothing(start):
    daemon = start().ready()
    found = facts(daemon.process.pid)
    assert set(found['Uid'].split()) == {str(1879048192 + 1048576)} == set(found['Gid'].split()) and found['Groups'].strip() == ''
    assert {int(found[name], 16) for name in ('CapEff', 'CapPrm', 'CapInh', 'CapBnd', 'CapAmb')} == {0}
    assert (found['NoNewPrivs'], found['Seccomp']) == ('1', '2')
    with daemon.client() as client:
        said = client.status()['daemon']['confinement']
    assert said == {'uid': 1879048192 + 1048576, 'capabilities': False, 'no_new_privs': True, 'seccomp': True, 'landlock_abi': said['landlock_abi']}


@ROOT_ONLY
@pytest.mark.parametrize('user', ['daemon', '54321'])
def test_the_user_can_be_chosen(start, user):
    daemon = start('--set', f'engine.user={user}').ready()
    assert facts(daemon.process.pid)['Uid'].split()[0] == ('54321' if user == '54321' else '1')
    assert record(daemon, 'echo x')['stdout'] == 'x\n'


@ROOT_ONLY
def test_a_user_that_is_not_there_stops_the_start(start, place):
    assert start('--set', 'engine.user=nosuchuser').stop(0) == 78
    assert 'no user' in (place / 'log').read_text()


@ROOT_ONLY
def test_a_user_that_cannot_reach_its_files_stops_the_start_or_is_not_taken(start, place):
    (place / 'closed/policies').mkdir(parents=True)
    (place / 'closed').chmod(0o700)
    folder = f'engine.policies_dir={place}/closed/policies'
    assert start('--set', folder, '--set', 'engine.user=54321').stop(0) == 78
    assert 'closed/policies' in (place / 'log').read_text()
    daemon = start('--set', folder).ready()      # nobody said whom: it stays who it is, and says so
    found = facts(daemon.process.pid)
    assert found['Uid'].split()[0] == '0' and int(found['CapEff'], 16) == 0 and found['Seccomp'] == '2'
    assert 'the daemon stays root' in (place / 'log').read_text()
    assert [one['name'] for one in record(daemon, LEAVES)['files']] == ['closed/file', 'open']


def test_files_that_a_program_has_closed_are_collected(start):
    found = record(start().ready(), LEAVES)
    assert [(one['name'], one['size_bytes']) for one in found['files']] == [('closed/file', 2), ('open', 2)]


@pytest.mark.parametrize('code, found', [
    (':', []),
    ('touch $f; chmod 600 $f', []),
    ('chmod u+w $f; printf "#" | dd of=$f bs=1 conv=notrunc status=none', [('f', 'changed')]),
    ('chmod u+w $f; truncate -s 1 $f', [('f', 'changed')]),
    ('mv $f other; echo new > $f', [('f', 'changed'), ('other', 'whole')]),
    ('mv $f other; cp other $f', [('other', 'whole')]),
    ('mv $f other; mv other $f', []),
    ('mkdir d; mv $f d/other; echo new > $f', [('f', 'changed'), ('d/other', 'whole')]),
    ('rm $f', []),
    ('rm $f; ln -s /etc/passwd $f', []),
    ('rm $f; mkdir $f; echo x > $f/in', [('f/in', 'new')]),
    ('ln $f other', [('f', 'linked'), ('other', 'linked')]),
    ('mv $f other; ln other $f; rm other', []),
    ('(sleep 1; echo more >> $f) & chmod u+w $f; echo x >> $f; sleep 0.1', [('f', 'changed')])])
def test_what_a_program_does_to_its_own_file_is_seen(start, code, found):
    whole = 'f=$(ls); { ' + code + '; exit 0; }'           # bash reads on in its file
    daemon = start().ready()
    for more in ({}, {'env': {'BASH_COMPAT': '5.1'}}):         # by an interpreter that waits, and by one that is started
        seen = record(daemon, whole, limits={'background_ms': 0}, **more)
        assert (seen['status'], seen['stderr']) == ('completed', '')
        assert {(one['name'].replace('main.sh', 'f'), 'linked' if 'more than one name' in one.get('error', '') else 'changed' if one['changed'] else
                 'whole' if one['size_bytes'] == len(whole) else 'new') for one in seen['files']} == set(found)


def test_a_program_can_execute_its_own_file(start):
    code = '#!/bin/bash\n[ "$1" ] || { chmod u+x $0; exec $0 again; }; echo $1'
    assert record(start().ready(), code)['stdout'] == 'again\n'


def test_nobody_is_asked_about_a_program_that_left_itself_alone(start):
    daemon = start().ready()
    record(daemon, 'echo x > f')
    pid, = [pid for pid in children(daemon.process.pid) if command_line(pid).startswith(b'caisson-opener')]
    os.kill(pid, signal.SIGSTOP)
    for language, code in (('python', 'print(1)'), ('node', 'console.log(1)'), ('bash', 'echo 1')):
        for _ in range(2):
            seen = record(daemon, code, language)
            assert (seen['stdout'], seen['files']) == ('1\n', [])
    os.kill(pid, signal.SIGCONT)
    assert [one['name'] for one in record(daemon, 'echo x > f')['files']] == ['f']


def test_every_language_works(start):
    daemon = start().ready()
    for language, code, out in (('python', 'open("f", "w").write("x"); print(1)', '1\n'), ('node', 'console.log(2)', '2\n'), ('bash', 'echo 3', '3\n')):
        for _ in range(3):
            assert record(daemon, code, language)['stdout'] == out


def test_what_helps_it_is_replaced_when_it_dies(start):
    daemon = start().ready()
    assert record(daemon, 'echo x > f', policy='linx')['files'][0]['name'] == 'f'

    def helpers(name):
        return [pid for pid in children(daemon.process.pid) if command_line(pid).startswith(name)]
    for name in (b'caisson-opener', b'caisson-policy', b'caisson-supervisor'):
        pid, = helpers(name)
        os.kill(pid, signal.SIGKILL)
        until(lambda pid=pid: not alive(pid))
        until(lambda: record(daemon, 'echo x > f', policy='linx')['files'])
        assert len(helpers(name)) == 1 and helpers(name) != [pid]


@ROOT_ONLY
def test_its_helpers_have_what_they_need_and_no_more(start):
    daemon = start().ready()
    record(daemon, 'echo x > f', policy='linx')
    own = facts(daemon.process.pid)['Uid'].split()[0]
    for pid in children(daemon.process.pid):
        name, found = Path(f'/proc/{pid}/cmdline').read_bytes().split(b'\0')[0], facts(pid)
        if name == b'caisson-opener':
            assert found['Uid'].split() == [own] * 4 and int(found['CapEff'], 16) == int(found['CapPrm'], 16) == 1 << 2 and found['Seccomp'] == '2'
        elif name == b'caisson-policy':
            assert found['Uid'].split() == [own] * 4 and int(found['CapEff'], 16) == 0 and found['Seccomp'] == '2'
        else:
            assert name in (b'caisson-starter', b'caisson-supervisor') and found['Uid'].split()[0] == '0'


@ROOT_ONLY
def test_the_state_is_given_to_its_user_and_taken_back(place):
    web = Web(place)
    own = int(facts(web.daemon.process.pid)['Uid'].split()[0])
    assert own and web.run('echo x')['stdout'] == 'x\n'
    assert {(place / name).stat().st_uid for name in ('.', 'caisson.db', 'store.secret')} == {own}
    _, headers, _ = web.ask('POST', '/v1/runs', {'language': 'bash', 'code': 'sleep 1000'}, Prefer='respond-async')
    web.daemon.stop(signal.SIGKILL)
    web = Web(place, '--set', 'engine.user=54321')
    assert (place / 'caisson.db').stat().st_uid == 54321 and web.run('echo x')['stdout'] == 'x\n'
    assert web.ask('GET', headers['Location'])[2]['status'] == 'engine_error'     # the journal went to the new user, too
    assert web.daemon.stop(signal.SIGTERM) == 0


@ROOT_ONLY
def test_layers_of_another_user_are_told_with_the_remedy(place, start):
    """Their trees can be large, so a start does not give them to the new user."""
    index = ['--set', 'packages.python.index_url=http://127.0.0.1:9/simple', '--set', f'engine.state_dir={place}']
    start(*index, '--set', 'engine.user=54321').ready().stop(signal.SIGTERM)
    assert (place / 'layers/.staging').stat().st_uid == 54321
    assert start(*index, '--set', 'engine.user=54322').stop(0) == 78
    said = re.search(r'the folder of layers \S+ belongs to user 54321, and this process is user 54322; as root, with no daemon: (chown -R 54322 \S+)',
                     (place / 'log').read_text())
    assert said, (place / 'log').read_text()
    start('--set', f'engine.state_dir={place}', '--set', 'engine.user=54322').ready().stop(signal.SIGTERM)   # without an index it is a warning
    subprocess.run(said[1].split(), check=True)
    assert start(*index, '--set', 'engine.user=54322').ready().stop(signal.SIGTERM) == 0


def test_a_daemon_whose_starter_is_killed_ends_with_a_reason(place):
    """Not before its runs are over: they need no starter.  Its service manager starts another one."""
    web = Web(place)
    assert web.run('echo x')['stdout'] == 'x\n'
    _, headers, _ = web.ask('POST', '/v1/runs', {'language': 'bash', 'code': 'sleep 2; echo done'}, Prefer='respond-async')
    until(lambda: [run for run in web.runs() if run['state'] == 'running'])
    starter, = [pid for pid in children(web.daemon.process.pid) if command_line(pid).startswith(b'caisson-starter')]
    os.kill(starter, signal.SIGKILL)
    until(lambda: web.ask('GET', '/readyz')[0] == 503, 10)
    assert not os.path.exists(f'/proc/{starter}')     # no zombie
    assert web.ask('POST', '/v1/runs', {'language': 'bash', 'code': 'true'})[0] == 503
    assert web.daemon.process.wait(30) not in (0, None)
    assert 'the process that starts others for the daemon was killed' in web.log.read_text()
    web = Web(place)
    assert web.run('echo x')['stdout'] == 'x\n' and web.ask('GET', headers['Location'])[2]['stdout'] == 'done\n'
    web.daemon.stop()


def test_nothing_of_it_is_left(start, place):
    daemon = start().ready()
    record(daemon, 'echo x > f', policy='linx')
    pids = daemon.tree()
    assert daemon.stop(signal.SIGTERM) == 0
    until(lambda: not any(alive(pid) for pid in pids))
    assert not daemon.path.exists()


def test_it_can_be_switched_off_and_says_so(start, place):
    daemon = start('--set', 'engine.confine=false').ready()
    assert facts(daemon.process.pid)['Seccomp'] == '0' and 'engine.confine is off' in (place / 'log').read_text()
    assert record(daemon, 'echo x > f')['files'][0]['name'] == 'f'
    assert supervisors(daemon.process.pid) and len(children(daemon.process.pid)) == 1
