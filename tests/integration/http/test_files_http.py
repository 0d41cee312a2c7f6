"""Files that are kept (/v1/files): uploads, downloads, what runs take and leave; two tenants, one of them hostile."""

import base64
import concurrent.futures
import hashlib
import http.client
import json
import os
import re
import signal
import socket
import sqlite3
import time
import urllib.parse

import pytest

from daemon import until
from keys import Keys, bearer
from web import Web

NAMES = ['[Video] Template (1) é.pptx', 'a\nb', '"quoted" \'name\'', '%41', '-rf', '...', 'ü (1).txt', ' ', '😀' * 63, 'n' * 255, b'\xff\xfe\xe9.bin']


def quoted(name):
    return urllib.parse.quote(name, safe='')


def sha256(data):
    return hashlib.sha256(data).hexdigest()


class Place(Keys):
    def start(self, *options):
        (self.folder / 'log').unlink(missing_ok=True)      # the port of the one before is in it
        self.web = Web(self.folder, *options, keyless=False)
        return self

    def ask(self, method, path, body=None, key=None, **headers):
        return self.web.ask(method, path, body, **bearer(key or self.alice), **headers)

    def upload(self, name, data, key=None, status=201):
        got, _, answer = self.ask('POST', '/v1/files?name=' + quoted(name), data, key)
        assert got == status, answer
        return answer

    def run(self, code, key=None, **more):
        status, _, record = self.ask('POST', '/v1/runs', {'language': 'bash', 'code': code, **more}, key)
        assert status == 200, record
        return record

    def content(self):
        """The names in the folder of contents."""
        return sorted(path.name for path in (self.folder / 'files').iterdir())

    def rows(self):
        with sqlite3.connect(self.folder / 'caisson.db') as db:
            return sorted(row[0] for row in db.execute('SELECT id FROM files'))

    def is_consistent(self):
        with sqlite3.connect(self.folder / 'caisson.db') as db:
            sums = dict(db.execute('SELECT tenant, bytes FROM bytes_kept WHERE bytes <> 0'))
            counted = {}
            for tenant, size in [*db.execute('SELECT tenant, size + 512 FROM files'), *db.execute('SELECT tenant, bytes FROM records'),
                                 *db.execute('SELECT tenant, bytes FROM workspaces')]:
                counted[tenant] = counted.get(tenant, 0) + size
        assert sums == counted and self.content() == self.rows()
        return True


def make(folder, *options):
    place = Place(folder)
    place.alice = place.make('a', '--tenant', 'alice', '--scopes', 'run,read,files')
    place.mallory = place.make('m', '--tenant', 'mallory', '--scopes', 'run,read,files')
    return place.start(*options)


@pytest.fixture(name='place', scope='module')
def made(tmp_path_factory):
    place = make(tmp_path_factory.mktemp('files'))
    yield place
    assert place.web.daemon.stop(signal.SIGTERM) == 0


# ---- up and down ----

def test_a_file_is_kept_as_it_came(place):
    data = os.urandom(100_000)
    status, headers, file = place.ask('POST', '/v1/files?name=a.png&user=u', data)
    assert status == 201 and headers['Location'] == f'/v1/files/{file["id"]}' and file['url'] == f'sandbox:/v1/files/{file["id"]}'
    assert (file['name'], file['size_bytes'], file['sha256'], file['mime'], file['user']) == ('a.png', 100_000, sha256(data), 'image/png', 'u')
    assert len(file['id']) == 37 and file['created_at'] < file['expires_at']
    status, headers, back = place.ask('GET', f'/v1/files/{file["id"]}')
    assert (status, back) == (200, data)
    assert headers['Content-Type'] == 'application/octet-stream' and headers['X-Content-Type-Options'] == 'nosniff'
    assert place.ask('GET', f'/v1/files/{file["id"]}/info')[2] == file
    assert place.ask('HEAD', f'/v1/files/{file["id"]}')[1]['Content-Length'] == '100000'
    assert place.ask('DELETE', f'/v1/files/{file["id"]}')[0] == 204 and place.ask('DELETE', f'/v1/files/{file["id"]}')[0] == 404
    assert file['id'] not in place.content()


@pytest.mark.parametrize('name', NAMES)
def test_every_name_that_linux_allows(place, name):
    file = place.upload(name, b'x')
    raw = name if isinstance(name, bytes) else name.encode()
    if isinstance(name, bytes):
        assert base64.b64decode(file['name_base64']) == raw
    else:
        assert file['name'] == name and 'name_base64' not in file
    _, headers, _ = place.ask('GET', f'/v1/files/{file["id"]}')
    kind, _, value = headers['Content-Disposition'].partition("; filename*=UTF-8''")
    assert kind == 'attachment' and urllib.parse.unquote(value) == raw.decode(errors='replace') and '\n' not in value


@pytest.mark.parametrize('name', ['', '.', '..', '../x', '/etc/x', 'a/../../b', 'a\0b', 'n' * 256])
def test_what_is_no_name_is_refused(place, name):
    problem = place.upload(name, b'x', status=422)
    assert problem['field'] == 'name'
    assert place.ask('POST', '/v1/files', b'x')[2]['field'] == 'name'


def test_parts_of_a_file(place):
    file = place.upload('digits', b'0123456789')
    path = f'/v1/files/{file["id"]}'
    for given, body, said in (('bytes=2-4', b'234', '2-4'), ('bytes=7-', b'789', '7-9'), ('bytes=-3', b'789', '7-9'), ('bytes=-30', b'0123456789', '0-9'),
                              ('bytes=5-100', b'56789', '5-9')):
        status, headers, got = place.ask('GET', path, Range=given)
        assert (status, got, headers['Content-Range']) == (206, body, f'bytes {said}/10'), given
    for given in ('bytes=4-2', 'lines=1-2', 'bytes=1-2,4-5', 'bytes=', 'bytes=-', 'bytes=x'):
        assert place.ask('GET', path, Range=given)[::2] == (200, b'0123456789'), given
    for given in ('bytes=10-', 'bytes=99999999999999999999-', 'bytes=-0'):
        status, headers, problem = place.ask('GET', path, Range=given)
        assert (status, headers['Content-Range'], problem['field']) == (416, 'bytes */10', 'Range'), given
    empty = place.upload('empty', b'')
    assert place.ask('GET', f'/v1/files/{empty["id"]}')[::2] == (200, b'')


def form(*parts, boundary='--x-y'):
    lines = []
    for name, filename, data in parts:
        file = f'; filename="{filename}"' if filename is not None else ''
        lines += [f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"{file}\r\n\r\n'.encode(), data, b'\r\n']
    return b''.join(lines) + f'--{boundary}--\r\n'.encode(), {'Content-Type': f'multipart/form-data; boundary={boundary}'}


def test_a_form_has_several_files(place):
    big = os.urandom(3_000_000)
    body, headers = form(('a', 'one.txt', b'1'), ('a', '[Video] (1) é%22%0A.bin', big), ('b', 'empty', b''))
    status, _, answer = place.ask('POST', '/v1/files', body, **headers)
    assert status == 201, answer
    assert [(file['name'], file['sha256']) for file in answer['files']] \
        == [('one.txt', sha256(b'1')), ('[Video] (1) é"\n.bin', sha256(big)), ('empty', sha256(b''))]
    assert place.ask('GET', f'/v1/files/{answer["files"][1]["id"]}')[2] == big


def test_a_form_that_comes_in_pieces_has_the_same_files(place):
    body, headers = form(('a', 'empty', b''), ('a', 'one', b'1'), ('b', 'two', b'22'), ('b', 'empty', b''))
    for at in [match.end() for match in re.finditer(rb'\r\n\r\n', body)]:
        connection = place.web.open(60)
        connection.putrequest('POST', '/v1/files')
        for name, value in {'Content-Length': str(len(body)), **headers, **bearer(place.alice)}.items():
            connection.putheader(name.replace('_', '-'), value)
        connection.endheaders()
        connection.send(body[:at])
        time.sleep(0.1)         # libmicrohttpd has read the first piece
        connection.send(body[at:])
        answer = json.loads(connection.getresponse().read())
        connection.close()
        assert [(file['name'], file['size_bytes']) for file in answer['files']] == [('empty', 0), ('one', 1), ('two', 2), ('empty', 0)], at


def test_a_form_is_taken_as_a_whole_or_not(place):
    before = place.content()
    for parts in ((('a', 'x', b'1'), ('b', '../y', b'2')), (('a', 'x', b'1'), ('b', None, b'2')), ()):
        body, headers = form(*parts)
        assert place.ask('POST', '/v1/files', body, **headers)[0] == 422
    body, headers = form(('a', 'x', b'1'))
    assert place.ask('POST', '/v1/files', body[:-10], **headers)[0] == 422
    assert place.ask('POST', '/v1/files', body, Content_Type='multipart/form-data')[0] == 422
    assert place.content() == before


def test_lists_go_on_where_they_ended(place):
    files = [place.upload(f'list{i}', b'x')['id'] for i in range(5)][::-1]
    _, _, first = place.ask('GET', '/v1/files?limit=3')
    assert [file['id'] for file in first['files']] == files[:3]
    _, _, second = place.ask('GET', f'/v1/files?limit=2&before={files[2]}')
    assert [file['id'] for file in second['files']] == files[3:]
    for query in ('limit=0', 'limit=x', 'limit=1001', 'before=file_0', 'x=1'):
        assert place.ask('GET', '/v1/files?' + query)[0] == 422


def test_two_megabytes_take_milliseconds(place):
    data, times = os.urandom(2_000_000), []
    connection = place.web.open()
    for _ in range(10):
        begun = time.perf_counter()
        connection.request('POST', '/v1/files?name=x', data, bearer(place.alice))
        answer = connection.getresponse()
        file = json.loads(answer.read())
        times.append(time.perf_counter() - begun)
        assert answer.status == 201 and file['sha256'] == sha256(data)
    times.sort()
    print(f'2 MB: {times[0] * 1000:.1f} ms at best, {times[5] * 1000:.1f} ms in the middle')
    assert times[0] < 0.5


def test_an_upload_costs_no_memory(place):
    def peak():
        return int(open(f'/proc/{place.web.daemon.process.pid}/status').read().partition('VmHWM:')[2].split()[0])
    part, n = os.urandom(1 << 20), 200
    before = peak()
    connection = place.web.open()
    connection.request('POST', '/v1/files?name=big', (part for _ in range(n)), bearer(place.alice), encode_chunked=True)
    file = json.loads(connection.getresponse().read())
    assert file['size_bytes'] == n << 20 and peak() - before < 32 * 1024
    got = place.web.stream('GET', f'/v1/files/{file["id"]}', **bearer(place.alice))
    digest = hashlib.sha256()
    while piece := got.read(1 << 20):
        digest.update(piece)
    assert digest.hexdigest() == file['sha256'] and peak() - before < 32 * 1024
    assert place.ask('DELETE', f'/v1/files/{file["id"]}')[0] == 204


def test_who_goes_in_the_middle_leaves_nothing(place):
    until(lambda: place.content() == place.rows())      # a helper thread removes the content of files that were deleted before
    before = place.content()
    head = f'POST /v1/files?name=x HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {place.alice}\r\nContent-Length: 1000000\r\n\r\n'
    for size in (0, 1, 1000, 30_000, *range(100_000, 500_000, 17_000)):   # whether the end comes with the last bytes is a matter of luck
        with socket.create_connection(('127.0.0.1', place.web.port)) as connection:
            connection.sendall(head.encode() + b'x' * size)
            until(lambda: [name for name in place.content() if name.startswith('new.')])
        until(lambda: place.content() == before)
    assert place.is_consistent()


def test_who_has_sent_all_may_close_his_side(place):
    data = os.urandom(1_000_000)
    with socket.create_connection(('127.0.0.1', place.web.port)) as connection:
        connection.sendall(f'POST /v1/files?name=x HTTP/1.0\r\nHost: x\r\nAuthorization: Bearer {place.alice}\r\nContent-Length: {len(data)}\r\n\r\n'.encode())
        connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)
        answer = b''.join(iter(lambda: connection.recv(65536), b''))
    assert answer.startswith(b'HTTP/1.0 201') or answer.startswith(b'HTTP/1.1 201'), answer
    assert sha256(data).encode() in answer


# ---- two tenants ----

def test_nobody_else_has_it(place):
    file = place.upload('secret', b'alice only')['id']
    nothing = 'file_' + '0' * 32
    for method, path in (('GET', '/v1/files/{}'), ('GET', '/v1/files/{}/info'), ('DELETE', '/v1/files/{}')):
        foreign, unknown = (place.ask(method, path.format(one), key=place.mallory) for one in (file, nothing))
        assert foreign[0] == unknown[0] == 404
        assert [{name: value for name, value in answer[2].items() if name not in ('instance', 'request_id')} for answer in (foreign,)] \
            == [{name: value for name, value in answer[2].items() if name not in ('instance', 'request_id')} for answer in (unknown,)]
    assert file not in json.dumps(place.ask('GET', '/v1/files', key=place.mallory)[2])
    records = [place.run('cat *', place.mallory, files=[{'id': one, 'name': 'x'}]) for one in (file, nothing)]
    assert records[0]['error']['message'].replace(file, nothing) == records[1]['error']['message']
    assert [(record['status'], record['error']['field']) for record in records] == [('bad_request', '/files')] * 2
    assert place.ask('GET', f'/v1/files/{file}')[2] == b'alice only'
    for bad in ('x', '..%2f..%2fetc%2fpasswd', "'%20OR%201=1", '%00', 'FILE_' + file[5:]):
        assert place.ask('GET', f'/v1/files/{bad}')[0] == 404


def test_a_key_needs_the_scope(place):
    runs = place.make('r', '--tenant', 'alice', '--scopes', 'run,read')
    file = place.upload('x', b'x')['id']
    assert place.ask('GET', f'/v1/files/{file}', key=runs)[0] == 403 and place.ask('POST', '/v1/files?name=x', b'x', key=runs)[0] == 403
    for more, field in (({'files': [{'id': file}]}, '/files'), ({'exports': [{'pattern': '*'}]}, '/exports'), ({'workspace': 'w'}, '/workspace')):
        record = place.run('true', runs, **more)
        assert (record['status'], record['error']['field']) == ('bad_request', field) and 'scope files' in record['error']['message']


# ---- runs ----

def test_inputs_by_id(place):
    data = os.urandom(2_000_000)
    file = place.upload('[Video] Template (1) é.pptx', data)
    record = place.run('sha256sum "[Video] Template (1) é.pptx" other/name', files=[{'id': file['id']}, {'id': file['id'], 'name': 'other/name'}])
    assert record['stdout'].split('\n')[0].startswith(sha256(data)) and record['stdout'].split('\n')[1] == f'{sha256(data)}  other/name'
    assert [(one['name'], one['sha256']) for one in record['inputs']] == [(file['name'], sha256(data)), ('other/name', sha256(data))]
    assert record['files'] == []


@pytest.mark.parametrize('name', ['../x', '/etc/x', 'a/../../b'])
def test_inputs_have_names_below_the_home_directory(place, name):
    file = place.upload('x', b'x')['id']
    for one in ({'id': file, 'name': name}, {'content': 'x', 'name': name}):
        record = place.run('true', files=[one])
        assert (record['status'], record['error']['field']) == ('bad_request', '/files')


def test_a_name_that_cannot_be_one_inside_is_refused_until_another_is_given(place):
    file = place.upload('a\nb', b'x')['id']
    assert place.run('true', files=[{'id': file}])['status'] == 'bad_request'
    assert place.run('cat y', files=[{'id': file, 'name': 'y'}])['stdout'] == 'x'
    for one in ({'id': file, 'content': 'x', 'name': 'y'}, {'name': 'y'}):
        assert place.run('true', files=[one])['status'] == 'bad_request'


def test_exports_are_kept_and_have_urls(place):
    record = place.run('mkdir d; printf 1,2 > d/out.csv; echo note > note.txt', exports=[{'pattern': '*.csv'}], user='u')
    csv, note = record['files']
    assert csv['url'].startswith('sandbox:/v1/files/file_') and 'url' not in note and 'path' not in csv
    status, headers, content = place.ask('GET', csv['url'].removeprefix('sandbox:'))
    assert (status, content) == (200, b'1,2') and headers['Content-Disposition'].endswith("''out.csv")
    _, _, info = place.ask('GET', csv['url'].removeprefix('sandbox:') + '/info')
    assert (info['name'], info['run'], info['user'], info['sha256']) == ('out.csv', record['id'], 'u', csv['sha256'])
    assert [file['id'] for file in place.ask('GET', f'/v1/files?run={record["id"]}')[2]['files']] == [info['id']]
    again = place.run('printf 1,2 > out.csv', exports=[{'pattern': '*.csv'}, {'pattern': 'out*'}])['files'][0]
    assert again['url'] != csv['url'] and place.ask('GET', csv['url'].removeprefix('sandbox:'), key=place.mallory)[0] == 404


@pytest.mark.parametrize('code, status', [('exit 3', 'failed'), ('sleep 60', 'timeout'), ('kill -SEGV $$', 'crashed')])
def test_exports_after_a_run_that_did_not_end_well(place, code, status):
    record = place.run('echo kept > out.txt; ' + code, exports=[{'pattern': 'out.txt'}], limits={'wall_ms': 2000})
    assert record['status'] == status and place.ask('GET', record['files'][0]['url'].removeprefix('sandbox:'))[2] == b'kept\n'


def test_what_cannot_be_exported_says_why_and_the_others_are_kept(place):
    names = ['../../etc/passwd', '/etc/passwd', 'link', 'dirlink/passwd', 'fifo', 'folder', 'missing.csv', 'hard', 'in.txt', 'good.txt']
    record = place.run('ln -s /etc/passwd link; ln -s /etc dirlink; mkfifo fifo; mkdir folder; echo x > hard; ln hard hard2; echo good > good.txt',
                       files=[{'name': 'in.txt', 'content': 'as it was'}], exports=[{'pattern': name} for name in names])
    files = {file['name']: file for file in record['files']}
    assert record['status'] == 'completed' and [name for name, file in files.items() if 'url' in file] == ['good.txt']
    for name in names[:-1]:
        assert files[name]['error'], name
    assert 'link' in files['link']['error'] and 'no file' in files['missing.csv']['error'] and 'hard links' in files['hard']['error']
    assert place.ask('GET', files['good.txt']['url'].removeprefix('sandbox:'))[2] == b'good\n'


def test_folders_of_the_server_stay_out_of_reach(place, tmp_path):
    for more in ({'exports': [{'pattern': '*', 'path': str(tmp_path / 'out')}]}, {'files': [{'path': '/etc/hostname'}]}, {'work_dir': str(tmp_path)}):
        assert place.run('echo x > y', **more)['status'] == 'bad_request'
    assert list(tmp_path.iterdir()) == []


def test_runs_of_a_stream_and_of_a_bulk_keep_files_too(place):
    file = place.upload('x', b'content')['id']
    request = {'language': 'bash', 'code': 'cat x > y', 'files': [{'id': file}], 'exports': [{'pattern': 'y'}]}
    answer = place.web.stream_raw('POST', '/v1/runs/bulk', json.dumps(request) + '\n', **bearer(place.alice))
    bulk = json.loads(answer.read())['record']
    stream = place.web.stream('POST', '/v1/runs', request, Accept='application/x-ndjson', **bearer(place.alice))
    ended = [json.loads(line) for line in stream.read().splitlines() if line.strip()][-1]['record']
    for record in (bulk, ended):
        assert place.ask('GET', record['files'][0]['url'].removeprefix('sandbox:'))[2] == b'content'


# ---- how much, and how long ----

def test_a_tenant_keeps_what_its_key_allows(tmp_path):
    place = make(tmp_path)
    small = place.make('s', '--tenant', 'small', '--scopes', 'run,read,files', '--stored', '100000')
    first = place.upload('x', b'x' * 60_000, small)
    status, _, problem = place.ask('POST', '/v1/files?name=y', b'y' * 60_000, small)
    assert (status, problem['code'], problem['field'], problem['retryable']) == (507, 'capacity', 'stored_bytes', False)
    for number in ('100000', '60512'):
        assert number in problem['detail']
    chunked = place.web.open()
    chunked.request('POST', '/v1/files?name=y', (b'y' * 10_000 for _ in range(6)), bearer(small), encode_chunked=True)
    assert chunked.getresponse().status == 507
    record = place.run('head -c 60000 /dev/zero > big; echo s > small', small, exports=[{'pattern': '*'}])
    files = {file['name']: file for file in record['files']}
    assert record['status'] == 'completed' and 'stored_bytes' in files['big']['error'] and 'url' in files['small']
    place.upload('y', b'y' * 60_000)                                 # another tenant has room
    assert place.ask('DELETE', f'/v1/files/{first["id"]}', key=small)[0] == 204
    place.upload('y', b'y' * 60_000, small)
    for i in range(200):
        if place.ask('POST', '/v1/files?name=empty', b'', small)[0] == 507:
            break
    assert 10 < i < 100                                              # empty files are not for nothing
    assert place.is_consistent() and place.web.daemon.stop(signal.SIGTERM) == 0


def test_many_at_once_do_not_exceed_it_together(tmp_path):
    place = make(tmp_path)
    small = place.make('s', '--tenant', 'small', '--scopes', 'files', '--stored', '5MiB')
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        statuses = list(pool.map(lambda i: place.ask('POST', f'/v1/files?name={i}', b'x' * (1 << 20), small)[0], range(16)))
    assert statuses.count(201) <= 4 and statuses.count(201) + statuses.count(507) == 16
    alone = [place.ask('POST', '/v1/files?name=x', b'x' * (1 << 20), small)[0] for _ in range(5)]
    assert statuses.count(201) + alone.count(201) == 4              # refused ones take no room
    assert place.is_consistent() and place.web.daemon.stop(signal.SIGTERM) == 0


def test_one_file_and_all_together_have_limits(tmp_path):
    place = make(tmp_path, '--set', 'engine.file_bytes_max=100000', '--set', 'engine.files_bytes_max=250000')
    status, _, problem = place.ask('POST', '/v1/files?name=x', b'x' * 100_001)
    assert (status, problem['code'], problem['field']) == (413, 'too_large', 'file_bytes_max') and '100000' in problem['detail']
    head = f'POST /v1/files?name=x HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {place.alice}\r\nContent-Length: 99999999999\r\n\r\n'
    assert place.web.raw(head.encode()).startswith(b'HTTP/1.1 413 ')  # before anything of it came
    for key in (place.alice, place.mallory):
        place.upload('x', b'x' * 100_000, key)
    status, _, problem = place.ask('POST', '/v1/files?name=x', b'x' * 100_000)
    assert (status, problem['field']) == (507, 'files_bytes_max') and '250000' in problem['detail']
    assert place.is_consistent() and place.web.daemon.stop(signal.SIGTERM) == 0


def test_files_go_when_their_time_is_over(tmp_path):
    place = make(tmp_path, '--set', 'engine.files_keep_ms=1s')
    file = place.upload('x', b'x')['id']
    until(lambda: place.ask('GET', f'/v1/files/{file}')[0] == 404)
    assert place.ask('GET', f'/v1/files/{file}/info')[0] == 404 and place.ask('GET', '/v1/files')[2]['files'] == []
    assert place.run('true', files=[{'id': file}])['status'] == 'bad_request'
    assert place.web.daemon.stop() == -signal.SIGKILL               # a daemon that died had no time for it
    place.start()
    until(lambda: place.content() == [])
    assert place.is_consistent() and place.web.daemon.stop(signal.SIGTERM) == 0


# ---- crashes ----

def test_kill_9_in_the_middle_of_uploads(tmp_path):
    place = make(tmp_path)
    kept = {}

    def send(i):
        data = bytes([i]) * 1_000_000
        connection = place.web.open()
        try:
            for k in range(1000):
                connection.request('POST', f'/v1/files?name={i}', data, bearer(place.alice))
                answer = connection.getresponse()
                file = json.loads(answer.read())
                kept[file['id']] = sha256(data)
        except (OSError, http.client.HTTPException):
            pass
        finally:
            connection.close()

    for _ in range(4):
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            futures = [pool.submit(send, i) for i in range(8)]
            before = len(kept)
            until(lambda: len(kept) > before + 5)
            assert place.web.daemon.stop() == -signal.SIGKILL
            concurrent.futures.wait(futures)
        place.start()
        assert not [name for name in place.content() if name.startswith('new.')] and place.is_consistent()
    for file, digest in kept.items():
        assert sha256(place.ask('GET', f'/v1/files/{file}')[2]) == digest
    assert place.web.daemon.stop(signal.SIGTERM) == 0


def test_content_that_somebody_took_away_is_a_file_that_is_gone(place):
    file = place.upload('x', b'x')['id']
    (place.folder / 'files' / file).unlink()
    assert place.ask('GET', f'/v1/files/{file}')[0] == 404 and file not in place.rows()
