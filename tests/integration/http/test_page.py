"""The page at /ui/ and previews, as a browser and as an attacker ask for them."""

import gzip
import hashlib
import http.client
import json
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import time

import pytest

from cli import caisson
from daemon import memory_of, until
from keys import Keys, bearer
from web import Web

ROOT = pathlib.Path(__file__).parents[3]
POLICY = re.compile("default-src 'none'; script-src 'self'; style-src 'self' 'nonce-([0-9a-f]{32})'; connect-src 'self'; img-src 'self' data:; "
                    "frame-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'")
FIRST_LOAD_MAX, ALL_MAX = 200 << 10, 400 << 10          # bytes on the wire


@pytest.fixture(name='web', scope='module')
def running(tmp_path_factory):
    web = Web(tmp_path_factory.mktemp('page'))
    yield web
    assert web.daemon.stop(signal.SIGTERM) == 0


@pytest.fixture(name='page')
def asked(web):
    """The text of the page, where this build has it."""
    why = web.ask('GET', '/v1/me')[2]['page']
    if why:
        pytest.skip(why)
    status, headers, text = web.ask('GET', '/ui/')
    assert status == 200 and headers['Content-Type'] == 'text/html; charset=utf-8'
    return text.decode()


def names(page):
    return sorted(set(re.findall(r'(?:src|href)="(/ui/[^"]+)"', page)))


def all_files(web, page):
    """Content and size on the wire of each file that the page can load, from file to file."""
    found, waiting = {}, names(page)
    while waiting:
        path = waiting.pop()
        if path in found:
            continue
        status, headers, packed = web.ask('GET', path, Accept_Encoding='gzip, br')
        assert (status, headers['Content-Encoding']) == (200, 'gzip'), path
        content = gzip.decompress(packed)
        found[path] = content, len(packed)
        waiting += ['/ui/' + name for name in re.findall(r'["\'`]\./([a-z]+-[A-Z0-9]{8}\.(?:js|css))["\'`]', content.decode('utf-8', 'replace'))]
    return found


# ---- answers ----

def test_the_first_answer_has_a_policy_with_a_nonce_of_its_own(web, page):
    nonces = set()
    for _ in range(3):
        _, headers, text = web.ask('GET', '/ui/')
        nonce = POLICY.fullmatch(headers['Content-Security-Policy'])[1]
        assert f'<meta name="csp-nonce" content="{nonce}">'.encode() in text and b'__CSP_NONCE__' not in text
        assert (headers['Cache-Control'], headers['X-Content-Type-Options'], headers['Referrer-Policy'], headers['Cross-Origin-Opener-Policy']) == (
            'no-store', 'nosniff', 'no-referrer', 'same-origin')
        nonces.add(nonce)
    assert len(nonces) == 3
    assert not re.search(r'<style|style=|<script(?! type="module" src="/ui/)|\bon[a-z]+=|https?://', page), page


def test_files_are_packed_once_named_by_their_hash_and_kept_for_ever(web, page):
    for path in names(page):
        status, headers, packed = web.ask('GET', path, Accept_Encoding='gzip')
        assert (status, headers['Cache-Control'], headers['Vary']) == (200, 'public, max-age=31536000, immutable', 'Accept-Encoding')
        assert (headers['X-Content-Type-Options'], headers['Referrer-Policy'], headers['Cross-Origin-Resource-Policy']) == ('nosniff', 'no-referrer', 'same-origin')
        assert web.ask('GET', path, Accept_Encoding='gzip')[2] == packed and packed[4:8] == b'\0\0\0\0'
        content = gzip.decompress(packed)
        assert headers['ETag'] == f'"{hashlib.sha256(content).hexdigest()[:32]}-gzip"'
        for coding, is_packed in (('identity', False), ('br', False), ('gzip;q=0', False), ('gzip; q=0.000', False), ('x-gzipped', False), ('*', True),
                                  ('br, GZIP;q=0.5', True), ('deflate,gzip', True)):
            status, other, text = web.ask('GET', path, Accept_Encoding=coding)
            assert status == 200 and (other['Content-Encoding'] == 'gzip') == is_packed and text == (packed if is_packed else content), coding
            assert (other['ETag'] == headers['ETag']) == is_packed
            again = web.ask('GET', path, Accept_Encoding=coding, If_None_Match=other['ETag'])
            assert (again[0], again[1]['ETag'], again[1]['Content-Encoding'], again[2]) == (304, other['ETag'], None, b'')
        assert web.ask('GET', path, If_None_Match='"other"')[0] == 200


def test_the_page_is_small_enough(web, page):
    files = all_files(web, page)
    first = sum(size for path, (_, size) in files.items() if path in names(page))
    assert 0 < first <= FIRST_LOAD_MAX and sum(size for _, size in files.values()) <= ALL_MAX, (first, {path: size for path, (_, size) in files.items()})


def test_the_page_is_that_of_the_file_of_hashes(web, page):
    hashes = dict(line.split('  ')[::-1] for line in (ROOT / 'web/HASHES').read_text().splitlines())
    served = {path.removeprefix('/ui/'): hashlib.sha256(content).hexdigest() for path, (content, _) in all_files(web, page).items()}
    nonce = re.search(r'content="([0-9a-f]{32})"', page)[1]
    served['index.html'] = hashlib.sha256(page.replace(nonce, '__CSP_NONCE__').encode()).hexdigest()
    assert served == hashes


def test_head_and_range(web, page):
    for path in ('/ui/', names(page)[0]):
        connection = http.client.HTTPConnection('127.0.0.1', web.port, timeout=20)
        connection.request('HEAD', path)
        head = connection.getresponse()
        assert head.status == 200 and head.read() == b''
        connection.request('GET', path, headers={'Range': 'bytes=5-9', 'Accept-Encoding': 'identity'})
        whole = connection.getresponse()
        assert whole.status == 200 and len(whole.read()) == int(head.headers['Content-Length'] if path != '/ui/' else whole.headers['Content-Length'])
        connection.close()


def test_a_browser_comes_to_the_page_from_the_root(web, page):
    assert page
    for path, accept in (('/', 'text/html,application/xhtml+xml,*/*;q=0.8'), ('/ui', '*/*')):
        status, headers, _ = web.ask('GET', path, Accept=accept)
        assert (status, headers['Location']) == (302, '/ui/')
    assert web.ask('GET', '/', Accept='*/*')[0] == 404 and web.ask('GET', '/')[0] == 404


# ---- attacks ----

PATHS = ['/ui/..', '/ui/../v1/me', '/ui/../../etc/passwd', '/ui/%2e%2e/%2e%2e/etc/passwd', '/ui/..%2f..%2fetc%2fpasswd', '/ui/%2fetc%2fpasswd', '/ui/%00', '/ui/index.html%00.js',
         '/ui//', '/ui/./', '/ui/index.html', '/ui/manifest.json', '/ui/page.js', '/ui/' + 'x' * 9000, '/ui/\\..\\x', '/ui/%ff', '/ui/a/b', '/uix/', '/UI/']


@pytest.mark.parametrize('path', PATHS)
def test_no_path_leads_elsewhere(web, path):
    answer = web.raw(f'GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n'.encode())
    assert re.match(rb'HTTP/1\.1 (404|422|400) ', answer) and b'root:' not in answer, answer[:300]


@pytest.mark.parametrize('host, status', [('localhost', 200), ('127.0.0.1:1', 200), ('[::1]:80', 200), ('192.0.2.7:8080', 200), ('[2001:db8::1]', 200), ('box.lan', 200),
                                          ('BOX.lan:8080', 200), ('evil.example', 403), ('localhost.evil.example', 403), ('127.0.0.1.evil.example', 403), ('box.lan.evil.example', 403),
                                          ('xbox.lan', 403), ('box', 403), ('1.2.3', 403), ('[::1].evil.example', 403), ('[evil]', 403), ('lan', 403), ('127.0.0.1x', 403)])
def test_other_names_of_this_host_are_refused(tmp_path_factory, host, status):
    web = named(tmp_path_factory)
    expected = status if not web.ask('GET', '/v1/me')[2]['page'] or status == 403 else 404
    for path in ('/ui/', '/ui/x'):
        answer = web.ask('GET', path, Host=host)
        assert answer[0] == expected or (path == '/ui/x' and expected == 200 and answer[0] == 404), (path, answer[2])
    preview = web.ask('POST', '/v1/previews', {'html': 'x'})[2]['url']
    assert web.ask('GET', preview, Host=host)[0] == status


WEBS = []


def named(tmp_path_factory):
    if not WEBS:
        WEBS.append(Web(tmp_path_factory.mktemp('named'), '--set', 'http.allowed_hosts=caisson.example, box.lan'))
    return WEBS[0]


def test_names_are_allowed_without_a_key_too(tmp_path_factory):
    web = named(tmp_path_factory)
    assert web.ask('GET', '/v1/profiles', Host='box.lan')[0] == web.ask('GET', '/v1/profiles', Host='caisson.example:99')[0] == 200
    status, _, problem = web.ask('GET', '/v1/profiles', Host='other.example')
    assert status == 403 and 'http.allowed_hosts' in problem['detail']
    WEBS.pop()
    assert web.daemon.stop(signal.SIGTERM) == 0


def test_pages_of_other_origins_are_refused(web, page):
    here, script = f'127.0.0.1:{web.port}', names(page)[0]
    for origin in ('http://evil.example', 'null', 'http://127.0.0.1', f'http://127.0.0.1:{web.port + 1}', f'ftp://{here}', f'http://{here}.evil.example', here):
        for path in ('/ui/', script):
            assert web.ask('GET', path, Origin=origin)[0] == 403, (path, origin)
        assert web.ask('POST', '/v1/runs', {'language': 'bash', 'code': ':'}, Origin=origin)[0] == 403
        assert web.ask('GET', '/v1/events', Origin=origin)[0] == 403
    assert web.ask('GET', script, Origin=f'http://{here}')[0] == 200
    assert web.ask('POST', '/v1/runs', {'language': 'bash', 'code': ':'}, Origin=f'http://{here}')[2]['status'] == 'completed'
    assert 'Access-Control-Allow-Origin' not in web.ask('GET', script)[1]


# ---- where there is a page ----

def free_port():
    with socket.socket() as other:
        other.bind(('127.0.0.1', 0))
        return other.getsockname()[1]


@pytest.mark.parametrize('mode, address, shown', [('auto', '127.0.0.1', True), ('off', '127.0.0.1', False), ('auto', '0.0.0.0', False), ('on', '0.0.0.0', True)])
def test_the_setting_and_the_address_decide(tmp_path, web, mode, address, shown):
    built = not (web.ask('GET', '/v1/me')[2]['page'] or '').startswith('this program')
    key = Keys(tmp_path).make('k', '--scopes', 'run,read')
    port = free_port()
    other = Web.__new__(Web)
    started = Web(tmp_path, '--set', f'engine.http={address}:{port}', '--set', f'http.web={mode}', keyless=False) if address == '127.0.0.1' else None
    if not started:
        daemon = type(web.daemon)(tmp_path, '--set', f'engine.state_dir={tmp_path}', '--set', f'engine.http={address}:{port}', '--set', f'http.web={mode}').ready()
        other.key, other.port, other.daemon = None, port, daemon
        started = other
        until(lambda: socket.socket().connect_ex(('127.0.0.1', port)) == 0)
    status, _, answer = started.ask('GET', '/ui/')
    me = started.ask('GET', '/v1/me', **bearer(key))[2]
    if shown and built:
        assert status == 200 and me['page'] is None
    else:
        assert status == 404 and me['page'] in answer['detail'] and ('http.web' in me['page'] or not built)
    assert started.ask('GET', '/docs')[0] == 200
    assert started.daemon.stop(signal.SIGTERM) == 0


def test_a_wrong_mode_stops_the_start():
    done = caisson('config', 'show', '--set', 'http.web=maybe')
    assert done.status and 'http.web' in done.err and 'auto' in done.err


def test_names_of_a_file_are_a_list_or_a_text(tmp_path):
    for given in ('[a.example, b.example]', 'a.example,b.example'):
        (tmp_path / 'caisson.yaml').write_text(f'http:\n  allowed_hosts: {given}\n  web: off\ngateway:\n  workers: [http://a:1, http://b:1]\n')
        shown = {one['key']: one['value'] for one in json.loads(caisson('config', 'show', '--json', '--config', tmp_path / 'caisson.yaml').out)}
        assert (shown['http.allowed_hosts'], shown['http.web']) == ('a.example,b.example', 'off')
        assert shown['gateway.workers'] == 'http://a:1,http://b:1'


# ---- previews ----

def test_a_preview_is_shown_by_its_link_alone_and_cannot_reach_out(web):
    document = '<script>fetch("/v1/me")</script>' + 'ä' * 1000
    status, _, made = web.ask('POST', '/v1/previews', {'html': document})
    assert status == 201 and re.fullmatch(r'/v1/previews/[0-9a-f]{32}\?sig=[0-9a-f]{64}', made['url'])
    status, headers, text = web.ask('GET', made['url'])
    assert (status, text.decode(), headers['Content-Type']) == (200, document, 'text/html; charset=utf-8')
    assert headers['Content-Security-Policy'] == ("sandbox allow-scripts; default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
                                                  "frame-ancestors 'self'")
    assert headers['X-Content-Type-Options'] == 'nosniff' and headers['Cache-Control'] == 'no-store' and headers['Referrer-Policy'] == 'no-referrer'


def test_no_other_signature_opens_a_preview(web):
    first, second = (web.ask('POST', '/v1/previews', {'html': text})[2]['url'] for text in ('first', 'second'))
    place, signature = first.split('?sig=')
    flipped = signature[:-1] + ('0' if signature[-1] != '0' else '1')
    told = set()
    for link in (place, f'{place}?sig=', f'{place}?sig={flipped}', f'{place}?sig={signature[:-1]}', f'{place}?sig={signature}0', f'{place}?sig={signature.upper()}',
                 f'{place}?sig={second.split("=")[1]}', f'{place}?sig={"0" * 64}', f'/v1/previews/{"0" * 32}?sig={signature}', f'/v1/previews/x?sig={signature}'):
        if link == first:
            continue
        status, _, problem = web.ask('GET', link)
        assert status == 404, link
        told.add(problem['detail'])
    assert len(told) == 1 and web.ask('GET', first)[2] == b'first'
    assert web.ask('GET', f'{place}?signature={signature}')[0] == 422


def test_previews_are_bounded_and_a_tenant_loses_its_own(tmp_path):
    keys = Keys(tmp_path)
    alice, mallory, reader = keys.make('a', '--tenant', 'alice', '--scopes', 'run'), keys.make('m', '--tenant', 'mallory', '--scopes', 'run'), keys.make('r', '--scopes', 'read')
    web = Web(tmp_path, keyless=False)
    assert web.ask('POST', '/v1/previews', {'html': 'x'}, **bearer(reader))[0] == 403 and web.ask('POST', '/v1/previews', {'html': 'x'})[0] == 401
    kept = web.ask('POST', '/v1/previews', {'html': 'kept'}, **bearer(alice))[2]['url']
    links = [web.ask('POST', '/v1/previews', {'html': str(number)}, **bearer(mallory))[2]['url'] for number in range(140)]
    assert [web.ask('GET', link)[0] for link in links] == [404] * 12 + [200] * 128 and web.ask('GET', kept)[2] == b'kept'
    large = [web.ask('POST', '/v1/previews', {'html': 'x' * (4 << 20)}, **bearer(mallory))[2]['url'] for _ in range(6)]
    assert [web.ask('GET', link)[0] for link in large] == [404, 404, 200, 200, 200, 200] and web.ask('GET', kept)[2] == b'kept'
    for body, status in (({'html': 'x' * ((4 << 20) + 1)}, 422), ({}, 422), ({'html': 5}, 422), ({'html': 'x', 'more': 1}, 422)):
        assert web.ask('POST', '/v1/previews', body, **bearer(alice))[0] == status
    assert web.daemon.stop(signal.SIGTERM) == 0


def test_a_preview_ends_after_its_minute(web):
    made = web.ask('POST', '/v1/previews', {'html': 'x'})[2]
    left = time.mktime(time.strptime(made['expires_at'][:19], '%Y-%m-%dT%H:%M:%S')) - time.mktime(time.gmtime())
    assert 55 < left <= 61
    time.sleep(57)
    assert web.ask('GET', made['url'])[0] == 200
    time.sleep(4)
    assert web.ask('GET', made['url'])[0] == 404


# ---- the build ----

def test_a_page_that_is_not_that_of_the_hashes_is_not_built(tmp_path):
    folder = tmp_path / 'web'
    (folder / 'dist').mkdir(parents=True)
    content = b'<!doctype html><meta name="csp-nonce" content="__CSP_NONCE__">'
    digest = hashlib.sha256(content).hexdigest()
    (folder / 'dist/index.html').write_bytes(content)
    (folder / 'dist/manifest.json').write_text(json.dumps([{'path': '/ui/', 'file': 'index.html', 'type': 'text/html; charset=utf-8', 'immutable': False, 'first': True,
                                                            'sha256': digest}]))

    def built():
        return subprocess.run([ROOT / 'scripts/web-assets', folder, tmp_path / 'out.c', tmp_path / 'out.d', '-'], capture_output=True, text=True, check=False)

    (folder / 'HASHES').write_text(f'{digest}  index.html\n')
    assert built().returncode == 0 and f'.hash = "{digest}"' in (tmp_path / 'out.c').read_text() and 'HASHES' in (tmp_path / 'out.d').read_text()
    compiler = shutil.which('cc')
    assert subprocess.run([compiler, '-fsyntax-only', '-Wall', '-Werror', f'-I{ROOT}/src', tmp_path / 'out.c'], check=False).returncode == 0
    for hashes in (f'{"0" * 64}  index.html\n', f'{digest}  index.html\n{digest}  other.js\n', ''):
        (folder / 'HASHES').write_text(hashes)
        done = built()
        assert done.returncode and 'make web' in done.stderr
    (folder / 'HASHES').write_text(f'{digest}  index.html\n')
    (folder / 'dist/index.html').write_bytes(content + b'<script src="//evil.example"></script>')
    assert built().returncode and 'SHA-256' in built().stderr


def test_slow_readers_of_previews_and_files_hold_no_copies(tmp_path):
    web = Web(tmp_path)
    link = web.ask('POST', '/v1/previews', {'html': 'x' * (4 << 20)})[2]['url']
    before = memory_of(web.daemon.process.pid)

    def lazy(path):
        one = socket.socket()
        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        one.connect(('127.0.0.1', web.port))
        one.sendall(f'GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n'.encode())
        return one

    readers = [lazy(link) for _ in range(60)]
    readers += [lazy(path) for path in names(web.ask('GET', '/ui/')[2].decode()) for _ in range(30)] if not web.ask('GET', '/v1/me')[2]['page'] else []
    assert web.ask('GET', '/healthz')[0] == 200
    assert memory_of(web.daemon.process.pid) - before < 40 << 20
    kept = [lazy(web.ask('POST', '/v1/previews', {'html': 'x' * (4 << 20)})[2]['url']) for _ in range(3)]
    until(lambda: web.ask('POST', '/v1/previews', {'html': 'x'})[0] == 429)          # the tenant's half is in answers that nobody reads
    for one in readers + kept:
        one.close()
    until(lambda: web.ask('POST', '/v1/previews', {'html': 'x' * (4 << 20)})[0] == 201)
    assert web.daemon.stop(signal.SIGTERM) == 0
