"""Workspaces: folders of users that last from run to run, over HTTP; whose they are, and what is left in them."""

import concurrent.futures
import json
import os
import signal
import time

import pytest

from daemon import until
from test_files_http import make, quoted
from keys import bearer


def path_of(name, what, user=None, path=None):
    query = [f'{key}={quoted(value)}' for key, value in (('user', user), ('path', path)) if value is not None]
    return f'/v1/workspaces/{quoted(name)}/{what}' + ('?' + '&'.join(query) if query else '')


def names(place, name, user=None, key=None):
    status, _, answer = place.ask('GET', path_of(name, 'files', user), key=key)
    assert status == 200, answer
    return [file['name'] for file in answer['files']]


def folders(place):
    return sorted(path.name for path in (place.folder / 'workspaces').iterdir())


@pytest.fixture(name='place', scope='module')
def made(tmp_path_factory):
    place = make(tmp_path_factory.mktemp('workspaces'))
    yield place
    assert place.is_consistent() and place.web.daemon.stop(signal.SIGTERM) == 0


# ---- from run to run ----

def test_what_a_run_makes_changes_and_removes_is_so_for_the_next(place):
    first = place.run('mkdir -p d/e; echo 1 > d/e/f; echo 2 > changed; echo 3 > removed; echo 4 > same', workspace='w', user='u')
    assert first['workspace'] == 'w' and 'work_dir' not in first and first['inputs'] == [] and first['warnings'] == []
    assert all('path' not in file and 'error' not in file for file in first['files'])
    second = place.run('cat d/e/f changed removed same; echo 5 >> changed; rm removed; rm -r d', workspace='w', user='u')
    assert second['stdout'] == '1\n2\n3\n4\n' and [file['name'] for file in second['inputs']] == ['changed', 'd/e/f', 'removed', 'same']
    assert [(file['name'], file['changed']) for file in second['files']] == [('changed', True)]
    assert names(place, 'w', 'u') == ['changed', 'same']
    assert place.ask('GET', path_of('w', 'file', 'u', 'changed'))[2] == b'2\n5\n'
    assert place.run('ls', workspace='w', user='u')['stdout'].split() == ['changed', 'main.sh', 'same']
    assert str(place.folder) not in json.dumps([first, second])


def test_it_does_not_matter_how_a_run_ended(place):
    for code, status in (('exit 1', 'failed'), ('sleep 60', 'timeout'), ('kill -9 $$', 'crashed')):
        record = place.run('rm -f *.txt; touch $(ls | wc -l).txt; echo x > ' + status + '; ' + code, workspace='ends', limits={'wall_ms': 1500})
        assert record['status'] == status and status in names(place, 'ends')
    before = names(place, 'ends')
    record = place.run('echo (', workspace='ends', policy='linx')     # nothing ran
    assert record['status'] != 'completed' and names(place, 'ends') == before


def test_a_link_or_a_fifo_is_not_kept(place):
    place.run('echo 1 > a; echo 2 > b; echo 3 > c; mkdir d; echo 4 > d/x; echo 5 > e', workspace='kinds')
    record = place.run('rm a b c e; ln -s /etc/passwd a; mkfifo b; mkdir c; echo 6 > c/y; rm -r d; echo 7 > d; ln -s /etc etc; ln d e', workspace='kinds')
    files = {file['name']: file.get('error') for file in record['files']}
    assert files['c/y'] is None and 'hard links' in files['e'] and 'a' not in files and 'b' not in files
    assert 'hard links' in files['d']
    assert names(place, 'kinds') == ['c/y', 'e']                      # e as it was before: the new one has two names
    kinds = {os.path.islink(path) or not (path.is_file() or path.is_dir()) for path in (place.folder / 'workspaces').rglob('*')}
    assert kinds == {False}


def test_all_that_changed_is_written_back_whatever_the_record_lists(place):
    record = place.run('for i in $(seq 50); do echo $i > f$i; done', workspace='many', limits={'output_files': 5})
    assert len(record['files']) == 5 and record['files_truncated'] and len(names(place, 'many')) == 50
    place.run('rm f*', workspace='many', limits={'output_files': 5})
    assert names(place, 'many') == []


def test_names_that_no_input_could_have_are_told_and_left(place):
    record = place.run("echo x > $'a\\nb'; echo x > $'\\xff'; echo x > '[Video] (1) é.txt'", workspace='names')
    errors = [file.get('error') for file in record['files']]
    assert errors.count(None) == 1 and names(place, 'names') == ['[Video] (1) é.txt']


def test_one_run_at_a_time(place):
    where = place.ask('POST', '/v1/runs', {'language': 'bash', 'code': 'sleep 60', 'workspace': 'busy', 'user': 'u'}, Prefer='respond-async')[1]['Location']
    status, headers, problem = place.ask('POST', '/v1/runs', {'language': 'bash', 'code': 'true', 'workspace': 'busy', 'user': 'u'})
    assert (status, problem['code'], problem['field'], problem['retryable']) == (429, 'capacity', '/workspace', True) and headers['Retry-After']
    line = json.dumps({'language': 'bash', 'code': 'true', 'workspace': 'busy', 'user': 'u'}) + '\n'
    record = json.loads(place.web.stream_raw('POST', '/v1/runs/bulk', line, Authorization=f'Bearer {place.alice}').read())['record']
    assert record['status'] == 'capacity' and record['error']['field'] == '/workspace'
    assert place.ask('PUT', path_of('busy', 'file', 'u', 'x'), b'x')[0] == 429
    assert place.ask('DELETE', path_of('busy', 'file', 'u', 'x'))[0] == 429
    assert place.ask('DELETE', '/v1/workspaces/busy?user=u')[0] == 429
    assert place.run('true', workspace='busy', user='v')['status'] == 'completed'    # another's
    assert place.ask('DELETE', where)[0] == 202
    assert until(lambda: place.ask('PUT', path_of('busy', 'file', 'u', 'x'), b'x')[0] == 201)


def test_many_at_once_never_mix(place):
    def run(i):
        status, _, answer = place.ask('POST', '/v1/runs', {'language': 'bash', 'code': 'cat n 2>/dev/null | wc -l; echo x >> n', 'workspace': 'race'})
        return status, answer
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(run, range(40)))
    done = [int(answer['stdout']) for status, answer in answers if status == 200 and answer['status'] == 'completed']
    assert sorted(done) == list(range(len(done))) and len(done) >= 1
    assert all(status in (200, 429) for status, _ in answers)
    assert place.ask('GET', path_of('race', 'file', path='n'))[2] == b'x\n' * len(done)


# ---- whose ----

def test_users_of_any_name_have_folders_of_their_own(place):
    users = ['..', 'a/b', 'a_b', '', 'a', '/', '.', '../../etc', 'ü', 'A', ' a', "'; DROP TABLE workspaces; --"]
    for user in users:
        place.run(f'test ! -e who && printf %s "{user}" > who', workspace='x', user=user)
    for workspace in ('b', '/b', 'x/x', '..', '.', '../x'):
        assert place.run('ls', workspace=workspace, user='a')['stdout'] == 'main.sh\n'
    for user in users:
        assert place.run('cat who', workspace='x', user=user)['stdout'] == user
    listed = [one for one in place.ask('GET', '/v1/workspaces')[2]['workspaces'] if one['name'] == 'x']
    assert sorted(one['user'] for one in listed) == sorted(users) and len({one['id'] for one in listed}) == len(users)
    assert all(name.startswith('ws_') and len(name) == 67 for name in folders(place))
    assert [one['name'] for one in place.ask('GET', '/v1/workspaces?user=..')[2]['workspaces']] == ['x']


def test_no_user_at_all_is_the_user_without_a_name(place):
    place.run('echo 1 > f', workspace='none')
    assert place.run('cat f', workspace='none', user='')['stdout'] == '1\n'


PROBE = r'''
import os
found = []
for top, folders, files in os.walk('/'):
    if top.startswith('/proc') or top.startswith('/sys') or top.startswith('/usr'):
        continue
    for name in files + folders:
        path = os.path.join(top, name)
        try:
            with open(path if os.path.isfile(path) else '/dev/null', 'rb') as file:
                text = file.read(1000)
        except OSError:
            text = b''
        if 'secret-of-alice' in path or b'content-of-alice' in text and path != '/home/user/main.py':
            found.append(path)
others = [name for name in os.listdir('/proc') if name.isdigit() and b'444' in open(f'/proc/{name}/cmdline', 'rb').read()]
signalled = 0
for pid in range(2, 5000):
    if pid == os.getpid():
        continue
    try:
        os.kill(pid, 0)
        signalled += 1
    except OSError:
        pass
print(found, others, signalled)
'''


@pytest.mark.parametrize('key, user', [('alice', 'bob'), ('mallory', 'alice')])
def test_a_user_cannot_reach_anything_of_another(place, key, user):
    where = place.ask('POST', '/v1/runs', {'language': 'bash', 'code': 'echo content-of-alice > secret-of-alice; echo on; sleep 444', 'workspace': 'w2', 'user': 'alice'},
                      Prefer='respond-async')[1]['Location']
    events = place.web.stream('GET', where + '/events', Accept='application/x-ndjson', **bearer(place.alice))
    until(lambda: b'"stdout"' in events.readline())
    events.close()
    record = place.run(PROBE, getattr(place, key), language='python', workspace='w2', user=user)
    assert record['status'] == 'completed' and record['stdout'] == '[] [] 0\n'
    assert place.ask('DELETE', where)[0] == 202
    record = until(lambda: (lambda got: got[0] == 200 and got[2])(place.ask('GET', where)))
    assert record['status'] == 'cancelled' and names(place, 'w2', 'alice') == ['secret-of-alice']
    record = place.run(PROBE, getattr(place, key), language='python', workspace='w2', user=user)
    assert record['stdout'] == '[] [] 0\n'


def test_another_tenant_is_told_the_same_as_of_nothing(place):
    place.run('echo secret > f', workspace='private', user='u')
    own = [one['id'] for one in place.ask('GET', '/v1/workspaces?user=u')[2]['workspaces'] if one['name'] == 'private'][0]
    assert place.ask('GET', '/v1/workspaces', key=place.mallory)[2]['workspaces'] == [] or \
        own not in json.dumps(place.ask('GET', '/v1/workspaces', key=place.mallory)[2])

    def told(name, method, what, path, key):
        status, _, problem = place.ask(method, path_of(name, what, 'u', path) if what else f'/v1/workspaces/{name}?user=u', key=key)
        return status, {key: value for key, value in problem.items() if key not in ('instance', 'request_id')}
    for method, what, path in (('GET', 'files', None), ('GET', 'file', 'f'), ('DELETE', 'file', 'f'), ('DELETE', None, None)):
        nothing = told('nothing', method, what, path, place.mallory)
        assert nothing[0] == 404
        assert told('private', method, what, path, place.mallory) == told(own, method, what, path, place.mallory) == nothing
    assert place.ask('GET', path_of(own, 'file', 'v', 'f'))[0] == 404    # an id does not make up for the wrong user
    assert place.ask('GET', path_of(own, 'file', 'u', 'f'))[2] == b'secret\n'
    assert place.ask('PUT', path_of(own, 'file', 'u', 'f'), b'x', key=place.mallory)[0] == 201   # his own, of that name
    assert place.ask('GET', path_of('private', 'file', 'u', 'f'))[2] == b'secret\n'


# ---- files of one ----

def test_files_are_put_read_and_removed(place):
    data = os.urandom(2_000_000)
    status, _, file = place.ask('PUT', path_of('own', 'file', 'u', 'data/[Video] (1) é.bin'), data)
    assert (status, file['name'], file['size_bytes']) == (201, 'data/[Video] (1) é.bin', 2_000_000)
    status, headers, back = place.ask('GET', path_of('own', 'file', 'u', 'data/[Video] (1) é.bin'))
    assert (status, back) == (200, data) and headers['Content-Disposition'].startswith("attachment; filename*=UTF-8''%5BVideo%5D")
    assert place.ask('GET', path_of('own', 'file', 'u', 'data/[Video] (1) é.bin'), Range='bytes=10-19')[2] == data[10:20]
    assert place.run('stat -c %s data/*', workspace='own', user='u')['stdout'] == '2000000\n'
    assert place.ask('PUT', path_of('own', 'file', 'u', 'data/x/y'), b'1')[0] == 201
    assert place.ask('PUT', path_of('own', 'file', 'u', 'data/x/y'), b'22')[0] == 201
    assert place.ask('GET', path_of('own', 'file', 'u', 'data/x/y'))[2] == b'22'
    for path in ('data', 'data/x/y/z'):
        status, _, problem = place.ask('PUT', path_of('own', 'file', 'u', path), b'x')
        assert (status, problem['field']) == (422, 'path')
    assert place.ask('GET', path_of('own', 'file', 'u', 'data'))[0] == 404
    assert place.ask('DELETE', path_of('own', 'file', 'u', 'data/x/y'))[0] == 204 and place.ask('DELETE', path_of('own', 'file', 'u', 'data/x/y'))[0] == 404
    assert names(place, 'own', 'u') == ['data/[Video] (1) é.bin']
    listed = [one for one in place.ask('GET', '/v1/workspaces?user=u')[2]['workspaces'] if one['name'] == 'own'][0]
    assert listed['stored_bytes'] == 2_000_000 + 2 * 512
    assert place.ask('DELETE', '/v1/workspaces/own?user=u')[0] == 204 and place.ask('DELETE', '/v1/workspaces/own?user=u')[0] == 404
    assert listed['id'] not in folders(place) and place.is_consistent()


@pytest.mark.parametrize('path', ['', '../x', '/etc/x', 'a/../../b', 'a\0b', '.', 'a//b', 'x' * 256, b'\xff', 'a\nb'])
def test_paths_stay_in_the_workspace(place, path):
    for method, body in (('PUT', b'x'), ('GET', None), ('DELETE', None)):
        status, _, problem = place.ask(method, path_of('paths', 'file', 'u', path), body)
        assert (status, problem['field']) == (422, 'path'), problem
    assert place.ask('GET', path_of('paths', 'file', 'u'))[2]['field'] == 'path'


def test_links_in_the_folder_itself_are_not_followed(place):
    place.run('echo x > f', workspace='planted')
    own = [one['id'] for one in place.ask('GET', '/v1/workspaces?user=')[2]['workspaces'] if one['name'] == 'planted'][0]
    inside = place.folder / 'workspaces' / own / 'files'
    (inside / 'passwd').symlink_to('/etc/passwd')
    (inside / 'etc').symlink_to('/etc')
    os.mkfifo(inside / 'fifo')
    for path in ('passwd', 'etc/passwd', 'fifo'):
        assert place.ask('GET', path_of('planted', 'file', path=path))[0] == 404
    assert place.ask('PUT', path_of('planted', 'file', path='etc/x'), b'x')[0] in (422, 500) and not os.path.exists('/etc/x')
    assert place.ask('PUT', path_of('planted', 'file', path='passwd'), b'mine')[0] == 201 and not (inside / 'passwd').is_symlink()
    assert names(place, 'planted') == ['f', 'passwd']
    assert place.run('ls', workspace='planted')['stdout'].split() == ['f', 'main.sh', 'passwd']
    assert place.ask('DELETE', '/v1/workspaces/planted')[0] == 204 and os.path.exists('/etc/passwd')


def test_names_that_cannot_be(place):
    for more, field in (({'workspace': ''}, '/workspace'), ({'workspace': 'w', 'work_dir': '/tmp'}, '/workspace')):
        record = place.run('true', **more)
        assert (record['status'], record['error']['field']) == ('bad_request', field)
    assert place.ask('POST', '/v1/runs', {'language': 'bash', 'code': 'true', 'workspace': 'w' * 256})[0] == 422
    assert place.ask('PUT', path_of('w' * 256, 'file', path='x'), b'x')[0] == 422
    assert place.ask('PUT', path_of('w', 'file', 'u' * 1025, 'x'), b'x')[0] == 422


# ---- how much, and how long ----

def test_what_a_tenant_keeps_is_bounded(tmp_path):
    place = make(tmp_path)
    small = place.make('s', '--tenant', 'small', '--scopes', 'run,read,files', '--stored', '100000')
    record = place.run('head -c 50000 /dev/zero > one; head -c 90000 /dev/zero > two; echo x > three', small, workspace='w')
    files = {file['name']: file.get('error') for file in record['files']}
    assert files['one'] is None and files['three'] is None and 'stored_bytes' in files['two'] and names(place, 'w', key=small) == ['one', 'three']
    status, _, problem = place.ask('PUT', path_of('w', 'file', path='four'), b'x' * 60_000, small)
    assert (status, problem['field']) == (507, 'stored_bytes') and '100000' in problem['detail']
    record = place.run('rm one; head -c 70000 /dev/zero > two', small, workspace='w')          # what goes makes room
    assert 'error' not in record['files'][0] and names(place, 'w', key=small) == ['three', 'two']
    assert place.ask('PUT', path_of('w', 'file', path='four'), b'x' * 10_000, small)[0] == 201
    assert place.ask('POST', '/v1/files?name=x', b'x' * 30_000, small)[0] == 507                # both count
    assert place.is_consistent() and place.web.daemon.stop(signal.SIGTERM) == 0


def test_a_workspace_fits_into_the_home_directory(tmp_path):
    place = make(tmp_path, '--set', 'limits.disk_bytes=1MiB', '--set', 'ceilings.disk_bytes=1MiB')
    record = place.run('head -c 900000 /dev/zero > a; head -c 900000 /dev/zero > b', workspace='w')
    assert record['status'] == 'disk_exceeded' and sum(file['size_bytes'] for file in place.ask('GET', path_of('w', 'files'))[2]['files']) <= 1 << 20
    status, _, problem = place.ask('PUT', path_of('w', 'file', path='c'), b'x' * 900_000)
    assert status == 507 and 'ceilings.disk_bytes' in problem['detail']
    assert place.is_consistent() and place.web.daemon.stop(signal.SIGTERM) == 0


def test_workspaces_go_when_nobody_used_them(tmp_path):
    place = make(tmp_path, '--set', 'engine.workspace_keep_ms=2s')
    place.run('echo x > f', workspace='old')
    time.sleep(2.1)
    place.run('echo x > f', workspace='new')
    assert place.web.daemon.stop() == -signal.SIGKILL
    place.start('--set', 'engine.workspace_keep_ms=2s')
    until(lambda: [one['name'] for one in place.ask('GET', '/v1/workspaces')[2]['workspaces']] != ['new', 'old'])
    until(lambda: len(folders(place)) <= 1)        # a helper thread removes them
    assert place.is_consistent()
    assert place.web.daemon.stop(signal.SIGTERM) == 0


# ---- crashes ----

def test_kill_9_while_runs_write_back(tmp_path):
    place = make(tmp_path)
    code = 'for i in $(seq 40); do head -c 100000 /dev/urandom > f$i; done'
    for round_ in range(4):
        def run(i):
            try:
                for _ in range(100):
                    place.run(code, workspace=f'w{i}')
            except (OSError, AssertionError, ValueError):
                pass
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            futures = [pool.submit(run, i) for i in range(4)]
            until(lambda: len(list((tmp_path / 'workspaces').glob('*/files/f*'))) > 20)
            time.sleep(.05 * round_)
            assert place.web.daemon.stop() == -signal.SIGKILL
            concurrent.futures.wait(futures)
        (tmp_path / 'workspaces' / ('ws_' + '0' * 64)).mkdir()       # a folder without a row, as a crash can leave one
        place.start()
        assert list((tmp_path / 'workspaces').glob('*/new/*')) == [] and 'ws_' + '0' * 64 not in folders(place)
        assert all(path.stat().st_size == 100_000 for path in (tmp_path / 'workspaces').glob('*/files/f*'))
        assert place.is_consistent()
        for one in place.ask('GET', '/v1/workspaces')[2]['workspaces']:
            sizes = [path.stat().st_size + 512 for path in (tmp_path / 'workspaces' / one['id'] / 'files').iterdir()]
            assert one['stored_bytes'] == sum(sizes) + 512
    assert place.web.daemon.stop(signal.SIGTERM) == 0
