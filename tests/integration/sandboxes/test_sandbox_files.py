"""Files of persistent sandboxes: written, read, listed, changed, watched, many at once."""

import contextlib
import hashlib
import io
import json
import os
import tarfile
import threading
import time

import pytest

from daemon import memory_of, until
from sandboxes import Sandbox, quote

NAMES = ['plain', 'ü and 漢字', 'a b\tc', 'new\nline', '-rf', '*', '"quoted" \'\\', '.hidden', 'x' * 255, '%41', 'a+b', 'semi;colon&=', '~']


@pytest.fixture(name='box')
def one(web):
    with Sandbox(web) as box:
        yield box


@contextlib.contextmanager
def memory_stays(web, most):
    """The daemon never has that much more in use while this goes on."""
    pid, stop = web.daemon.process.pid, threading.Event()
    seen = [memory_of(pid)]

    def look():
        while not stop.is_set():
            seen.append(memory_of(pid))
            time.sleep(.01)
    watcher = threading.Thread(target=look)
    watcher.start()
    yield
    stop.set()
    watcher.join()
    assert max(seen) - seen[0] < most, f'{seen[0]} became {max(seen)}'


# ---- whole files ----

def test_a_file_goes_in_and_comes_out(box):
    entry = box.put('folder/below/f', b'a\0\xffz')
    assert (entry['path'], entry['name'], entry['type'], entry['size_bytes'], entry['mode']) == ('folder/below/f', 'f', 'file', 4, '0644')
    status, headers, content = box.ask('GET', '/files?path=folder/below/f')
    assert (status, content, headers['Content-Length'], headers['Accept-Ranges']) == (200, b'a\0\xffz', '4', 'bytes')
    assert headers['Content-Type'] == 'application/octet-stream' and headers['Last-Modified'].endswith('GMT')
    assert box.out('stat -c "%a %U %s" folder/below/f; stat -c %a folder').split() == ['644', 'user', '4', '755']
    assert box.get('/home/user/folder/below/f') == b'a\0\xffz'
    assert box.put('empty', b'')['size_bytes'] == 0 and box.get('empty') == b''
    assert box.put('script', b'#!/bin/sh\necho ran', '&mode=755')['mode'] == '0755'
    assert box.out('./script') == 'ran\n'
    assert box.put('script', b'#!/bin/sh\necho again')['mode'] == '0755' and box.out('./script') == 'again\n'


def test_two_hundred_megabytes_in_no_memory(web):
    with Sandbox(web, limits={'disk_bytes': 300 << 20, 'memory_bytes': 600 << 20}) as box:
        part = os.urandom(1 << 20)
        digest = hashlib.sha256(part * 200).hexdigest()
        with memory_stays(web, 24 << 20):
            connection = web.open(120)
            connection.putrequest('PUT', f'{box.path}/files?path=big')
            connection.putheader('Content-Length', str(200 << 20))
            connection.endheaders()
            for _ in range(200):
                connection.send(part)
            answer = connection.getresponse()
            assert answer.status == 201 and json.loads(answer.read())['size_bytes'] == 200 << 20
            assert box.out('sha256sum big').split()[0] == digest
            connection.request('GET', f'{box.path}/files?path=big')
            answer, sum = connection.getresponse(), hashlib.sha256()
            time.sleep(.5)   # a client that is slow to begin
            while piece := answer.read(1 << 20):
                sum.update(piece)
            assert sum.hexdigest() == digest
            connection.close()


def test_a_body_in_chunks(box):
    connection = box.web.open()
    connection.request('PUT', f'{box.path}/files?path=c', iter([b'a' * 10, b'b' * 100000, b'c']), {'Transfer-Encoding': 'chunked'}, encode_chunked=True)
    assert connection.getresponse().status == 201
    assert box.get('c') == b'a' * 10 + b'b' * 100000 + b'c'


@pytest.mark.parametrize('size', range(1, 700 << 10, 43 << 10))
def test_the_end_of_an_upload_comes_however_full_the_way_is(box, size):
    """The sandbox stands still while the body comes; the upload waits, and is whole when it goes on."""
    connection = box.web.open()
    connection.putrequest('PUT', f'{box.path}/files?path=f')
    connection.putheader('Content-Length', str(size))
    connection.endheaders()
    until(lambda: [name for name in box.names() if name.startswith('.upload-')])
    box.good('POST', '/pause')
    sender = threading.Thread(target=connection.send, args=[b'x' * size])
    sender.start()
    time.sleep(.05)
    box.good('POST', '/resume')
    sender.join()
    answer = connection.getresponse()
    assert answer.status == 201 and json.loads(answer.read())['size_bytes'] == size
    connection.close()


def test_a_client_that_breaks_off_leaves_no_file_and_the_old_one(box):
    box.put('f', b'old')
    for path in ('f', 'new/g'):
        connection = box.web.open()
        connection.putrequest('PUT', f'{box.path}/files?path={path}')
        connection.putheader('Content-Length', '1000000')
        connection.endheaders()
        connection.send(b'x' * 500000)
        until(lambda: [name for name in box.names('.', 2) if '.upload-' in name])
        connection.close()
        until(lambda: not [name for name in box.names('.', 2) if '.upload-' in name])
    assert box.get('f') == b'old' and box.ask('GET', '/files?path=new/g')[0] == 404


def test_a_file_is_replaced_at_once(box):
    """Whoever reads meanwhile has the old content or the new, never a part."""
    box.put('f', b'a' * 500000)
    program = box.start(['/usr/bin/python3', '-uc', '''
import os
print("ready")
while not os.path.exists("stop"):
    content = open("f", "rb").read()
    assert content in (b"a" * 500000, b"b" * 500000), len(content)
'''])
    program.has_printed('ready')
    for letter in b'ba' * 10:
        box.put('f', bytes([letter]) * 500000)
    box.put('stop', b'')
    assert program.over()['exit_code'] == 0, program.record()


# ---- parts ----

@pytest.mark.parametrize('wanted, status, content, told', [
    ('bytes=0-0', 206, b'0', 'bytes 0-0/10'), ('bytes=2-5', 206, b'2345', 'bytes 2-5/10'), ('bytes=5-', 206, b'56789', 'bytes 5-9/10'),
    ('bytes=8-100', 206, b'89', 'bytes 8-9/10'), ('bytes=0-99999999999999999999', 206, b'0123456789', 'bytes 0-9/10'),
    ('bytes=10-', 416, None, 'bytes */10'), ('bytes=99999999999999999999-', 416, None, 'bytes */10'), ('bytes=-3', 200, b'0123456789', None),
    ('bytes=5-2', 200, b'0123456789', None), ('bytes=1-2,4-5', 200, b'0123456789', None), ('lines=1-2', 200, b'0123456789', None),
    ('bytes=a-b', 200, b'0123456789', None), ('', 200, b'0123456789', None)])
@pytest.mark.parametrize('name', ['f', 'link'])
def test_a_part_of_a_file(box, name, wanted, status, content, told):
    box.put('f', b'0123456789')
    box.run('ln -s f link')
    got, headers, body = box.ask('GET', f'/files?path={name}', Range=wanted)
    assert (got, headers.get('Content-Range')) == (status, told)
    assert content is None and body['status'] == 416 or body == content


def test_a_file_that_says_it_has_nothing(box):
    assert b'processor' in box.get('/proc/cpuinfo')
    assert box.ask('GET', '/files?path=/proc/cpuinfo', Range='bytes=5-9')[0] in (200, 416)


# ---- names ----

@pytest.mark.parametrize('name', NAMES, ids=lambda name: repr(name)[:12])
def test_names_of_every_kind(box, name):
    assert box.put(name, name.encode())['path'] == name
    assert box.get(name) == name.encode() and box.names() == [name] and box.entry(name)['name'] == name
    assert box.out('for f in * .[!.]*; do test -e "$f" && cat -- "$f"; done; true') == name
    box.good('PATCH', f'/files?path={quote(name)}', {'action': 'rename', 'to': 'other/' + name})
    assert box.names('.', 2) == ['other', 'other/' + name]
    box.good('DELETE', f'/files?path=other/{quote(name)}')
    assert box.names('other') == []


def test_a_name_that_is_no_utf8(box):
    assert box.good('PUT', '/files?path=a%ff%fe', b'x')['path_base64'] == 'Yf/+'
    assert box.good('GET', '/files?path=a%ff%fe') == b'x'
    assert box.good('GET', '/entries?path=.')['entries'][0] | {'modified_at': ''} == {
        'path': 'a��', 'name': 'a��', 'type': 'file', 'size_bytes': 1, 'mode': '0644', 'modified_at': '', 'owner': 'user', 'group': 'user',
        'path_base64': 'Yf/+'}
    assert box.ask('GET', '/files?path=b%ff')[2]['detail'].isprintable()


def test_a_list_is_in_order_and_says_where_links_lead(box):
    box.run('mkdir -p b/c a && touch b/z b/c/x a/y d && ln -s b/z link && ln -s nowhere lost && ln -s b folder')
    entries = box.good('GET', '/entries?path=.&depth=3')['entries']
    assert [entry['path'] for entry in entries] == ['a', 'a/y', 'b', 'b/c', 'b/c/x', 'b/z', 'd', 'folder', 'link', 'lost']
    by_name = {entry['path']: entry for entry in entries}
    assert (by_name['link']['type'], by_name['link']['target'], by_name['link']['real_path'], by_name['link']['real_type']) == (
        'link', 'b/z', '/home/user/b/z', 'file')
    assert by_name['folder']['real_type'] == 'folder' and 'real_path' not in by_name['lost']


def test_whose_a_file_is(box):
    box.put('mine', b'')
    assert (box.entry('mine')['owner'], box.entry('mine')['group']) == ('user', 'user')


def test_names_that_cannot_be(box):
    for query in ('', '?path=', '?path=' + 'x' * 4096, '?path=x%00y', '?path=x&nothing=1'):
        assert box.ask('GET', f'/files{query}')[0] == 422, query
        assert box.ask('PUT', f'/files{query}', b'x')[0] == 422, query
    assert box.ask('PUT', '/files?path=' + 'x' * 256, b'x')[0] == 422
    assert box.ask('PUT', '/files?path=' + 'x/' * 2047, b'x')[0] == 422
    assert box.ask('PUT', '/files?path=folder/', b'x')[0] == 422
    assert box.ask('PUT', '/files?path=x&mode=9', b'x')[0] == 422 and box.ask('PUT', '/files?path=x&mode=77777', b'x')[0] == 422
    assert [name for name in box.names('.', 1) if not name.startswith('x') and name != 'folder'] == []
    deep = '/'.join(['d' * 200] * 19) + '/f'
    assert box.put(deep, b'deep')['size_bytes'] == 4 and box.get(deep) == b'deep'
    box.good('DELETE', '/files?path=' + 'd' * 200)


def test_dots_lead_where_programs_can_go_too(box):
    box.put('a/b/../../c', b'c')
    assert box.get('../user/c') == b'c' and box.get('../../../../../home/user/c') == b'c'
    assert box.ask('GET', '/files?path=../../../../../../etc/shadow')[0] in (403, 404)
    assert box.ask('PUT', '/files?path=/etc/x', b'')[0] in (403, 404, 422) and box.ask('PUT', '/files?path=/x', b'')[0] == 403
    box.put('/tmp/t', b't')
    assert box.out('cat /tmp/t') == 't'


# ---- what is no regular file ----

def test_a_link_is_followed_inside(box):
    with open('/etc/passwd', 'rb') as file:
        ours = file.read()
    box.run('ln -s /etc/passwd p; ln -s /etc/shadow s; ln -s loop loop; ln -s /proc/1/root/etc/passwd q; ln -s /nothing/there dangling; echo real > r; ln -s r l')
    if box.ask('GET', '/files?path=p')[0] == 200:
        assert box.get('p').decode() == box.out('cat /etc/passwd') and box.get('p') != ours
    if box.ask('GET', '/files?path=q')[0] == 200:   # of process 1's own root, which is that of the sandbox
        assert box.get('q') == box.get('p')
    for name in ('s', 'dangling'):
        assert box.ask('GET', f'/files?path={name}')[0] in (403, 404), name
    assert box.ask('GET', '/files?path=loop')[0] == 422
    entry = box.entry('l')
    assert (entry['type'], entry['target']) == ('link', 'r')
    assert box.put('l', b'written')['path'].endswith('r') and box.out('cat r; readlink l') == 'writtenr\n'
    assert box.ask('PUT', '/files?path=p', b'x')[0] in (403, 404) and box.ask('PUT', '/files?path=loop', b'x')[0] in (201, 422)
    box.good('DELETE', '/files?path=l')
    assert box.get('r') == b'written'


def test_pipes_devices_and_sockets_do_not_hang(box):
    box.run('mkfifo fifo; python3 -c "import socket; socket.socket(socket.AF_UNIX).bind(\'sock\')"; mkdir folder')
    for name, reading, writing in [('fifo', 422, 422), ('sock', 422, 422), ('/dev/null', 422, 422), ('/dev/zero', 422, 422), ('folder', 409, 409),
                                   ('/dev/pts/ptmx', 422, 422), ('/dev/full', 422, 422), ('/dev/ptmx', 422, 422)]:
        began = time.monotonic()
        assert box.ask('GET', f'/files?path={name}')[0] in (reading, 404, 403), name
        assert box.ask('PUT', f'/files?path={name}', b'x')[0] in (writing, 403), name
        assert time.monotonic() - began < 30
    assert box.entry('fifo')['type'] == box.entry('sock')['type'] == 'other' and box.entry('folder')['type'] == 'folder'
    box.good('DELETE', '/files?path=fifo')
    box.good('DELETE', '/files?path=sock')


# ---- changes ----

def test_changes_and_what_hinders_them(box):
    assert box.good('PATCH', '/files?path=a/b/c', {'action': 'folder'})['type'] == 'folder'
    assert box.good('PATCH', '/files?path=a/b/c', {'action': 'folder'})['type'] == 'folder'
    box.put('f', b'f')
    assert box.ask('PATCH', '/files?path=f', {'action': 'folder'})[0] == 409
    assert box.ask('PATCH', '/files?path=f/g', {'action': 'folder'})[0] in (404, 409)
    assert box.good('PATCH', '/files?path=f', {'action': 'mode', 'mode': '0600'})['mode'] == '0600'
    assert box.good('PATCH', '/files?path=f', {'action': 'mode', 'mode': '0'})['mode'] == '0000'
    status, _, problem = box.ask('GET', '/files?path=f')
    assert (status, problem['code']) == (403, 'permission_denied') and problem['detail'].startswith('cannot read f: permission is denied'), problem
    for path in ('../../x', '/usr/x'):
        status, _, problem = box.ask('PUT', f'/files?path={path}', b'x')
        assert (status, problem['code']) == (403, 'permission_denied') and '/home/user' in problem['detail'], problem
    for body, field in [({'action': 'mode', 'mode': '9'}, '/mode'), ({'action': 'mode'}, '/mode'), ({'action': 'rename'}, '/to'), ({'action': 'x'}, '/action'),
                        ({}, '/action'), ({'action': 'folder', 'y': 1}, '/y')]:
        status, _, problem = box.ask('PATCH', '/files?path=f', body)
        assert (status, problem['field']) == (422, field)
    for method, path, body, status in [
            ('PATCH', 'nothing', {'action': 'rename', 'to': 'x'}, 404), ('PATCH', 'nothing', {'action': 'mode', 'mode': '0644'}, 404),
            ('DELETE', 'nothing', None, 404), ('GET', 'f/g', None, 404), ('PATCH', 'a', {'action': 'rename', 'to': '/tmp/x'}, 422),
            ('PATCH', 'a', {'action': 'rename', 'to': 'a/b/x'}, 422), ('PATCH', 'f', {'action': 'rename', 'to': 'a'}, 409)]:
        assert box.ask(method, f'/files?path={path}', body)[0] == status, (method, path, body)
    box.good('DELETE', '/files?path=a')
    assert box.names() == ['f']


@pytest.mark.parametrize('path', ['/', '/home', '/home/user', '.', '..', '/home/user/', '/home/user/.', '/tmp', '/tmp/', '/dev', '/dev/shm', '/proc', '/usr', '/opt/caisson',
                                  '/home/user/a/..', 'root'])
def test_the_sandbox_itself_is_not_removed(box, path):
    box.put('a/f', b'kept')
    box.put('/tmp/a/f', b'kept')
    box.put('/dev/shm/f', b'kept')
    box.run('ln -s / root')
    status, _, problem = box.ask('DELETE', f'/files?path={path}')
    assert status in (403, 409, 204), problem
    assert status != 204 or path == 'root'   # the link alone
    assert box.get('a/f') == box.get('/tmp/a/f') == box.get('/dev/shm/f') == b'kept'
    assert box.out('echo alive') == 'alive\n'


def test_a_deep_and_a_locked_tree_are_removed(box):
    box.python('''
import os
os.makedirs("t/locked/x"); open("t/locked/x/f", "w"); os.chmod("t/locked/x", 0); os.chmod("t/locked", 0)
os.mkdir("t/deep"); os.chdir("t/deep")
for _ in range(3000):
    os.mkdir("d"); os.chdir("d")
''')
    box.run('ln -s /home/user/kept t/link; mkdir kept; touch kept/f')
    box.good('DELETE', '/files?path=t')
    assert box.names('.', 2) == ['kept', 'kept/f']


# ---- lists ----

def test_a_list_is_as_deep_as_was_asked_and_bounded(box):
    box.run('mkdir -p a/b/c/d; touch a/1 a/b/2 a/b/c/3; ln -s . self')
    assert box.names('.') == ['a', 'self']
    assert box.names('.', 2) == ['a', 'a/1', 'a/b', 'self'] and len(box.names('.', 64)) == 8
    for depth in ('0', '65', 'x', '-1', ''):
        assert box.ask('GET', f'/entries?path=.&depth={depth}')[0] == 422
    assert box.ask('GET', '/entries?path=nothing')[0] == 404 and box.ask('GET', '/entries?path=a/1')[0] == 404
    assert box.ask('GET', '/entry?path=nothing')[0] == 404
    box.run('mkdir /dev/shm/many; cd /dev/shm/many; for i in $(seq 3000); do : > $i; done')
    answer = box.good('GET', '/entries?path=/dev/shm/many')
    assert len(answer['entries']) == 3000 and answer['truncated'] is False


def test_a_list_of_long_names_is_bounded(web):
    with Sandbox(web) as box:
        box.python('''
import os
for i in range(3000):
    os.symlink("\\1" * 4000, f"{i:04}" + "\\1" * 250)
''')
        with memory_stays(web, 200 << 20):
            answer = box.good('GET', '/entries?path=.')
        assert answer['truncated'] is True and 500 < len(answer['entries']) < 3000


# ---- tar ----

def tar_of(*members):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode='w') as tar:
        for name, content, more in members:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            for key, value in more.items():
                setattr(info, key, value)
            tar.addfile(info, io.BytesIO(content))
    return out.getvalue()


def test_folders_as_tar_both_ways(box):
    box.run('mkdir -p a/b; echo 1 > a/1; echo 2 > a/b/2; ln -s 1 a/l; chmod 750 a/b; head -c 3000000 /dev/urandom > a/big')
    status, headers, content = box.ask('GET', '/files?path=a&format=tar')
    assert status == 200 and headers['Content-Type'] == 'application/x-tar'
    with tarfile.open(fileobj=io.BytesIO(content)) as tar:
        assert sorted(tar.getnames()) == ['.', './1', './b', './b/2', './big', './l'] and tar.getmember('./b').mode == 0o750
    box.run('mkdir other')
    assert box.ask('PUT', '/files?path=other&format=tar', content)[0] in (201, 204)
    assert box.out('diff -r a other && stat -c %a other/b') == '750\n'
    assert box.ask('GET', '/files?path=nothing&format=tar')[0] == 404 and box.ask('GET', '/files?path=a/1&format=tar')[0] == 404
    assert box.ask('PUT', '/files?path=nothing&format=tar', content)[0] == 404
    status, _, problem = box.ask('PUT', '/files?path=other&format=tar', b'this is no archive' * 100)
    assert status == 422 and 'tar' in problem['detail']
    box.run('mkdir -- -x; echo y > -x/y')
    assert box.ask('GET', '/files?path=-x&format=tar')[0] == 200


def test_hostile_archives(box):
    box.run('mkdir in')
    archive = tar_of(('/tmp/absolute', b'x', {}), ('../outside', b'x', {}), ('link', b'', {'type': tarfile.SYMTYPE, 'linkname': '/tmp'}), ('link/through', b'x', {}),
                     ('hard', b'', {'type': tarfile.LNKTYPE, 'linkname': '/etc/passwd'}), ('device', b'', {'type': tarfile.CHRTYPE, 'devmajor': 1, 'devminor': 1}),
                     ('fine', b'fine', {'mode': 0o6755, 'uid': 0, 'uname': 'root'}))
    status, _, problem = box.ask('PUT', '/files?path=in&format=tar', archive)
    assert status == 422 and problem['detail'].startswith('tar failed')
    assert box.names() == ['in'] and box.ask('GET', '/entry?path=/tmp/absolute')[0] == 404
    assert box.out('stat -c %U in/fine; find in -type c -o -type b').startswith('user\n')
    assert box.ask('PUT', '/files?path=in&format=tar', tar_of(('bomb', b'', {})) * 2)[0] in (201, 204)
    with Sandbox(box.web, limits={'disk_bytes': 2 << 20}) as small:
        status, _, problem = small.ask('PUT', '/files?path=.&format=tar', tar_of(('big', b'x' * (5 << 20), {})))
        assert status == 507 and 'tar failed' in problem['detail'], problem


# ---- many files in one body ----

def form(*parts, boundary='----x', end=True):
    body = b''
    for head, content in parts:
        body += f'--{boundary}\r\n{head}\r\n\r\n'.encode() + content + b'\r\n'
    return body + (f'--{boundary}--\r\n'.encode() if end else b'')


def named(name, content, field='file'):
    return f'Content-Disposition: form-data; name="{field}"; filename="{name}"\r\nContent-Type: application/octet-stream', content


def post(box, body, path='.', kind='multipart/form-data; boundary=----x'):
    return box.ask('POST', f'/files?path={quote(path)}', body, Content_Type=kind)


def test_many_files_in_one_body(box):
    contents = {'a': b'', 'b': b'\r\n', 'c': b'\r\n------y\r\n--\r\n------', 'sub/d': os.urandom(300000), 'ü "q"': b'-', 'e': b'\r' * 100000, 'f': b''}
    body = form(*(named(name.replace('"', '\\"'), content) for name, content in contents.items()))
    status, _, answer = post(box, body, 'up')
    assert status == 201 and answer['errors'] == [], answer
    assert [entry['path'] for entry in answer['entries']] == ['up/' + name for name in contents]
    assert [entry['size_bytes'] for entry in answer['entries']] == [len(content) for content in contents.values()]
    for name, content in contents.items():
        assert box.get('up/' + name) == content, name


def test_a_body_in_the_smallest_pieces(box):
    body = b'preamble\r\n' + form(named('a', b'1\r\n--\r\n------y'), named('b', b'2'), boundary='----x') + b'epilogue'
    connection = box.web.open()
    connection.request('POST', f'{box.path}/files?path=.', iter([body[i:i + 1] for i in range(len(body))]),
                       {'Transfer-Encoding': 'chunked', 'Content-Type': 'multipart/form-data; boundary="----x"'}, encode_chunked=True)
    answer = connection.getresponse()
    assert answer.status == 201, answer.read()
    assert box.get('a') == b'1\r\n--\r\n------y' and box.get('b') == b'2'


def test_what_hinders_one_file_is_told_and_the_others_are_written(box):
    box.run('mkdir folder; mkfifo fifo')
    parts = [named('first', b'1'), named('folder', b'x'), named('fifo', b'x' * 200000), ('Content-Disposition: form-data; name="field"', b'value'),
             named('x' * 256, b'x'), named('first/below', b'x'), named('../../../etc/x', b'x'), named('last', b'2')]
    status, _, answer = post(box, form(*parts))
    assert status == 201
    assert [entry['name'] for entry in answer['entries']] == ['first', 'last']
    assert [error['name'][:8] for error in answer['errors']] == ['folder', 'fifo', '', 'x' * 8, 'first/be', '../../..']
    assert all(error['message'] and error['code'] for error in answer['errors'])
    assert box.get('last') == b'2' and box.names() == ['fifo', 'first', 'folder', 'last']
    assert post(box, form(named('folder', b'x')))[0] == 409   # nothing was written: it is the request that failed


@pytest.mark.parametrize('kind, body, word', [
    ('text/plain', b'x', 'Content-Type'), ('multipart/form-data', b'x', 'boundary'), ('multipart/form-data; boundary=' + 'x' * 71, b'x', 'boundary'),
    ('multipart/form-data; boundary=----x', b'', 'last boundary'), ('multipart/form-data; boundary=----x', form(), 'no file'),
    ('multipart/form-data; boundary=----x', form(named('a', b'1'), end=False), 'last boundary'),
    ('multipart/form-data; boundary=----x', b'------xyz\r\n', 'something else'),
    ('multipart/form-data; boundary=----x', form((f'X: {"y" * 9000}', b'')), 'headers'),
    ('multipart/form-data; boundary=----x', form(*[named('same', b'')] * 1001), 'more than 1000')], ids=range(9))
def test_a_body_that_is_no_form(box, kind, body, word):
    status, _, problem = post(box, body, kind=kind)
    assert status == 422 and word in problem['detail'], problem
    until(lambda: not [name for name in box.names() if name.startswith('.upload')])


def test_a_hundred_megabytes_of_files_in_no_memory(web):
    with Sandbox(web, limits={'disk_bytes': 200 << 20, 'memory_bytes': 400 << 20}) as box, memory_stays(web, 16 << 20):
        part = os.urandom(1 << 20)
        connection = web.open(120)
        connection.request('POST', f'{box.path}/files?path=.', iter([
            piece for n in range(5) for piece in [f'--B\r\nContent-Disposition: form-data; filename={n}\r\n\r\n'.encode(), *[part] * 20, b'\r\n']] + [b'--B--']),
            {'Transfer-Encoding': 'chunked', 'Content-Type': 'multipart/form-data; boundary=B'}, encode_chunked=True)
        answer = connection.getresponse()
        assert answer.status == 201 and len(json.loads(answer.read())['entries']) == 5
        assert box.out('cat 0 1 2 3 4 | sha256sum').split()[0] == hashlib.sha256(part * 100).hexdigest()


def test_a_form_that_breaks_off_or_is_paused(box):
    body = form(named('a', b'1'), named('b', b'x' * 900000))
    connection = box.web.open()
    connection.putrequest('POST', f'{box.path}/files?path=.')
    connection.putheader('Content-Length', str(len(body)))
    connection.putheader('Content-Type', 'multipart/form-data; boundary=----x')
    connection.endheaders()
    connection.send(body[:300000])
    until(lambda: [entry for entry in box.good('GET', '/entries?path=.')['entries'] if entry['name'].startswith('.upload') and entry['size_bytes'] > 290000])
    connection.close()
    until(lambda: box.names() == ['a'])
    connection = box.web.open()
    connection.putrequest('POST', f'{box.path}/files?path=.')
    connection.putheader('Content-Length', str(len(body)))
    connection.putheader('Content-Type', 'multipart/form-data; boundary=----x')
    connection.endheaders()
    connection.send(body[:300000])
    until(lambda: [name for name in box.names() if name.startswith('.upload')])
    box.good('POST', '/pause')
    sender = threading.Thread(target=connection.send, args=[body[300000:]])
    sender.start()
    time.sleep(.1)
    box.good('POST', '/resume')
    sender.join()
    assert connection.getresponse().status == 201 and box.get('b') == b'x' * 900000


# ---- watching ----

class Watch:
    def __init__(self, box, path='.', depth=1):
        self.answer = box.web.stream('GET', f'{box.path}/watch?path={quote(path)}&depth={depth}', None, Accept='application/x-ndjson')
        assert self.answer.status == 200, self.answer.read()
        assert self.next()['type'] == 'start'

    def next(self):
        while not (line := self.answer.readline()).strip():
            assert line, 'the stream ended'
        return json.loads(line)

    def until(self, kind, path):
        """Up to this one: what came, as (type, path)."""
        found = []
        while not found or found[-1] != (kind, path):
            event = self.next()
            found.append((event['type'], event['path']))
        return found


def test_what_happens_in_a_folder(box):
    watch = Watch(box)
    box.run('echo 1 > f')
    assert watch.until('changed', 'f')[0] == ('created', 'f')
    box.run('chmod 600 f; mv f g')
    assert watch.until('created', 'g')[:2] == [('attributes', 'f'), ('renamed', 'f')]
    box.run('mkdir sub; echo 1 > sub/unseen; rm g; touch last')
    events = watch.until('created', 'last')
    assert ('created', 'sub') in events and ('removed', 'g') in events and not [path for _, path in events if path.startswith('sub/')]
    assert box.ask('GET', '/watch?path=nothing')[0] == 404 and box.ask('GET', '/watch?path=last')[0] == 404
    assert box.ask('GET', '/watch?path=.&depth=33')[0] == 422
    watch.answer.close()


def test_what_happens_below_and_under_new_names(box):
    box.run('mkdir -p w/a/b')
    watch = Watch(box, 'w', 8)
    box.run('cd w; echo 1 > a/b/f; mkdir -p new/er; echo 1 > new/er/g; touch end1')
    events = watch.until('created', 'end1')
    assert {('created', 'a/b/f'), ('created', 'new'), ('created', 'new/er'), ('created', 'new/er/g')} <= set(events)
    box.run('cd w; mv a moved; touch moved/b/h; touch end2')
    events = watch.until('created', 'end2')
    assert ('renamed', 'a') in events and ('created', 'moved') in events and ('created', 'moved/b/h') in events
    assert not [path for _, path in events if path.startswith('a/')], events   # it has no such name any more
    box.run('mv w/moved away; touch away/b/i; rm -r w/new; touch w/end3')
    events = watch.until('created', 'end3')
    assert ('renamed', 'moved') in events and ('removed', 'new') in events
    assert not [path for _, path in events if 'i' in path.split('/')], events
    watch.answer.close()


def test_more_than_can_be_told_is_lost_and_said_so(web, box):
    with memory_stays(web, 64 << 20):
        watch = Watch(box)
        box.run('python3 -c "\nimport os\nfor i in range(30000):\n  n = f\'{i:0250}\'; open(n, \'w\').close(); os.unlink(n)"')
        while watch.next()['type'] != 'lost':
            pass
        # What happens from now on is told again, as soon as the rest has been read.
        stop = threading.Event()

        def go_on():
            number = 0
            while not stop.wait(.1):
                box.put(f'later{number}', b'')
                number += 1
        toucher = threading.Thread(target=go_on)
        toucher.start()
        while not watch.next()['path'].startswith('later'):
            pass
        stop.set()
        toucher.join()
    watch.answer.close()


def test_watches_that_end_leave_room_for_others(box):
    for _ in range(200):
        Watch(box, depth=3).answer.close()
    until(lambda: Watch(box).answer.close() or True)
    assert box.out('ls /proc/self/fd | wc -l') == '4\n'
