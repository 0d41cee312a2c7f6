"""The package index that a resolver reaches (src/packages/index): what it hides, what it verifies, and where it does not go."""

import contextlib
import http.client
import json
import os
import re
import shutil
import socket
import subprocess
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import pytest

from cli import BUILD
from private_index import DAY, JSON_TYPE, PrivateIndex, make_certificate
from steps import TRIES, place

SERVE = BUILD / 'tests/unit/package-index-serve'
PROBED = BUILD / 'tests/unit/package-index-serve-probed'
PATIENCE = 30
TOKEN = 'very-secret-4711'


class Gateway:
    """The program package-index-serve: the index of this source, on a port."""

    def __init__(self, url, *settings, kind='python', program=SERVE):
        self.process = subprocess.Popen([program, kind, url, *settings], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.errors = ''
        line = self.process.stdout.readline()
        assert line, self.process.stderr.read()
        self.port = int(line)

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        self.process.stdin.close()
        status = self.process.wait(PATIENCE)
        self.errors = self.process.stderr.read()
        assert kind or status == 0, self.errors
        assert kind or not re.sub(r'.*loop: a step of 0x[0-9a-f]+ took .*\n', '', self.errors), self.errors

    @property
    def base(self):
        return f'http://127.0.0.1:{self.port}'

    def ask(self, command, argument=''):
        self.process.stdin.write(f'{command} {argument}\n')
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def get(self, path, method='GET'):
        connection = http.client.HTTPConnection('127.0.0.1', self.port, timeout=PATIENCE)
        connection.request(method, path)
        answer = connection.getresponse()
        return answer.status, answer.read(), answer.headers

    def files(self, name):
        """The files that are offered: {filename: entry}."""
        status, content, headers = self.get(f'/simple/{name}/')
        assert (status, headers['Content-Type']) == (200, JSON_TYPE), content
        return {entry['filename']: entry for entry in json.loads(content)['files']}

    def npm(self, name):
        status, content, _ = self.get(f'/{name}')
        assert status == 200, content
        return json.loads(content)


@pytest.fixture(name='upstream')
def private_index():
    with PrivateIndex() as index:
        yield index


@contextlib.contextmanager
def served(index, *settings, kind='python', **more):
    with Gateway(index.npm_url if kind == 'node' else index.url, *settings, kind=kind, **more) as gateway:
        yield gateway


def pip(gateway, *words, **more):
    # pip asks for rustc, and a proxy of rustup makes a folder at HOME: neither is on this path.
    environment = {'PATH': '/usr/bin:/bin', 'HOME': tempfile.gettempdir(), 'PIP_CONFIG_FILE': '/dev/null'}
    return subprocess.run(['/usr/bin/python3', '-m', 'pip', '--isolated', '--disable-pip-version-check', words[0], '--index-url', f'{gateway.base}/simple',
                           '--no-cache-dir', *words[1:]], capture_output=True, text=True, check=False, env=environment, timeout=120, **more)


def report(gateway, *requirements):
    """{name: (version, url)} of what pip resolves."""
    done = pip(gateway, 'install', '--dry-run', '--ignore-installed', '--only-binary', ':all:', '--quiet', '--report', '-', *requirements)
    assert done.returncode == 0, done.stderr
    return {one['metadata']['name']: (one['metadata']['version'], one['download_info']) for one in json.loads(done.stdout)['install']}


# ---- pip as the client ----

def test_pip_downloads_a_wheel_through_the_index(upstream, tmp_path):
    made = upstream.add_wheel('alpha', '1.0')
    with served(upstream) as gateway:
        done = pip(gateway, 'download', '--no-deps', '--dest', tmp_path, 'alpha')
        assert done.returncode == 0, done.stderr
        assert (tmp_path / made.filename).read_bytes() == made.content
        assert gateway.ask('usage')['downloads'] == 1


def test_pip_resolves_dependencies_and_the_lock_is_known_to_the_index(upstream):
    upstream.add_wheel('Alpha_One', '1.0', requires=['beta>=2'])
    upstream.add_wheel('beta', '1.0')
    upstream.add_wheel('beta', '2.5')
    with served(upstream) as gateway:
        found = report(gateway, 'alpha-one')
        assert {name: version for name, (version, _) in found.items()} == {'Alpha_One': '1.0', 'beta': '2.5'}
        info = found['beta'][1]
        known = gateway.ask('file', info['url'])
        assert (known['name'], known['version'], known['hash']) == ('beta', '2.5', info['archive_info']['hash'].removeprefix('sha256='))
        assert known['upload_time_ms'] > 0 and known['size'] > 0
        assert gateway.ask('file', f'{gateway.base}/files/{"0" * 64}/beta/beta-2.5-py3-none-any.whl') is None
        fetched = gateway.ask('download', info['url'])
        assert (fetched['problem'], fetched['size'], fetched['readable']) == ('', known['size'], True)


def test_pip_falls_back_to_the_newest_file_that_is_old_enough(upstream):
    upstream.add_wheel('alpha', '1.0', age=3 * DAY)
    upstream.add_wheel('alpha', '1.1', age=2 * DAY)
    upstream.add_wheel('alpha', '2.0', age=60)
    with served(upstream, f'min_age_ms={DAY * 1000}') as gateway:
        assert report(gateway, 'alpha')['alpha'][0] == '1.1'
        counts = gateway.ask('project', 'ALPHA')['counts']
        assert (counts['offered'], counts['age']) == (2, 1)


def test_the_metadata_of_a_wheel_is_served_without_the_wheel(upstream):
    upstream.add_wheel('alpha', '1.0', requires=['beta'])
    upstream.add_wheel('beta', '1.0')
    with served(upstream) as gateway:
        entry = gateway.files('alpha')['alpha-1.0-py3-none-any.whl']
        assert 'dist-info-metadata' not in entry and len(entry['core-metadata']['sha256']) == 64
        status, content, _ = gateway.get(f'{entry["url"]}.metadata')
        assert status == 200 and b'Requires-Dist: beta' in content
        assert not any(path.endswith('.whl') for path in upstream.paths())


def test_pip_installs_each_kind_of_wheel_that_the_private_index_makes(upstream, tmp_path):
    upstream.add_wheel('plain', '1.0', {'plain/__init__.py': 'def main(): print("plain")\n'}, scripts={'plain-command': 'plain:main'})
    upstream.add_wheel('startup', '1.0', {'startup.pth': 'import sys\n', 'startup.py': ''})
    upstream.add_wheel('big', '1.0', {'big.py': ''}, giant={'zeros.bin': 5_000_000})
    upstream.add_extension('native', '1.0')
    upstream.add_wheel('foreign', '1.0', tag='cp27-cp27m-win32')
    upstream.add_wheel('link', '1.0', {'link.py': ''}, links={'link_out': '../../../etc/passwd'})
    with served(upstream) as gateway:
        done = pip(gateway, 'install', '--target', tmp_path / 'made', 'plain', 'startup', 'big', 'native')
        assert done.returncode == 0, done.stderr
        program = 'import native, plain; print(native.answer()); plain.main()'
        done = subprocess.run(['/usr/bin/python3', '-c', program], env={'PYTHONPATH': tmp_path / 'made'}, capture_output=True, text=True, check=True)
        assert done.stdout == '42\nplain\n' and (tmp_path / 'made/bin/plain-command').exists() and (tmp_path / 'made/zeros.bin').stat().st_size == 5_000_000
        assert 'No matching distribution' in pip(gateway, 'download', '--dest', tmp_path / 'other', 'foreign').stderr
        assert pip(gateway, 'download', '--dest', tmp_path / 'other', 'link').returncode == 0


# ---- what is hidden, and why ----

def test_files_are_hidden_by_kind_age_hash_and_yanking(upstream):
    upstream.add_wheel('alpha', '1.0')
    upstream.add_wheel('alpha', '1.1', yanked=True)
    upstream.add_wheel('alpha', '1.2', age=60)
    upstream.add_wheel('alpha', '1.3', age=-DAY)
    upstream.add_file('alpha', '1.4', 'alpha-1.4.tar.gz', b'source')
    upstream.add_wheel('alpha', '1.5', filename='beta-1.5-py3-none-any.whl')
    upstream.add_wheel('alpha', '1.6', filename='alpha-1.6.whl')
    upstream.add_wheel('alpha', '1.0', {'evil.py': ''})
    with served(upstream, f'min_age_ms={DAY * 1000}') as gateway:
        assert list(gateway.files('alpha')) == ['alpha-1.0-py3-none-any.whl']
        project = gateway.ask('project', 'alpha')
        assert project['counts'] == {'offered': 1, 'age': 2, 'time': 0, 'kind': 4, 'yanked': 1, 'hash': 0}
        assert project['text'] == 'files hidden: 2 too new (the minimum age is 24h), 4 not a wheel, 1 yanked'


@pytest.mark.parametrize('options, wheel, settings, problem', [
    ({}, {'age': 60}, [f'min_age_ms={DAY * 1000}'], 'too_new'),
    ({'upload_times': False}, {}, [], 'no_upload_time'),
    ({'html_only': True}, {}, [], 'no_upload_time'),
    ({'hashes': False}, {}, [], 'index_untrusted'),
    ({}, {'filename': 'alpha-1.0.tar.gz'}, [], 'no_wheel'),
    ({}, {'yanked': True}, [], 'package_not_found'),
    ({'status': 404}, {}, [], 'package_not_found'),
    ({'status': 500}, {}, [], 'index_unreachable'),
    ({'status': 401}, {}, [], 'index_unreachable'),
    ({'delay': 5}, {}, ['request_ms=300'], 'index_unreachable'),
    ({'document_name': 'beta'}, {}, [], 'index_untrusted'),
    ({'content_type': 'image/png'}, {}, [], 'index_untrusted'),
    ({'body': b'{"meta": {'}, {}, [], 'index_untrusted'),
    ({'body': b'{"meta": {"api-version": "2.0"}, "files": []}'}, {}, [], 'index_untrusted'),
    ({'body': b'[' * 100000}, {}, [], 'index_untrusted'),
    ({}, {}, ['deny=AL.pha', 'deny=alpha'], 'not_allowed'),
    ({}, {}, ['allow=beta', 'allow=gamma-*'], 'not_allowed'),
])
def test_the_reason_for_an_empty_project_has_a_name(options, wheel, settings, problem):
    with PrivateIndex(**options) as index, served(index, *settings) as gateway:
        index.add_wheel('alpha', '1.0', **wheel)
        status, content, _ = gateway.get('/simple/alpha/')
        project = gateway.ask('project', 'alpha')
        assert (project['problem'], project['loaded']) == (problem, True), project
        assert status in (200, 403, 404, 424) and (status != 200 or json.loads(content)['files'] == [])
        assert project['text'] and str(index.server.server_port) not in project['text']
        assert (not index.requests) == (problem == 'not_allowed')


def test_lists_compare_canonical_names(upstream):
    upstream.add_wheel('Alpha.One', '1.0')
    with served(upstream, 'allow=ALPHA__one') as gateway:
        assert gateway.files('alpha-one')
    with served(upstream, 'allow=alpha-*', 'deny=alpha-two') as gateway:
        assert gateway.files('alpha.ONE')
    with served(upstream, 'allow=*', 'deny=Alpha_One') as gateway:
        assert gateway.get('/simple/alpha-one/')[0] == 403
        assert gateway.ask('usage')['list'] == 1


def test_without_the_age_rule_files_without_a_time_and_html_are_offered(tmp_path):
    for options in ({'upload_times': False}, {'html_only': True}):
        with PrivateIndex(**options) as index, served(index, 'require_upload_time=0', f'min_age_ms={DAY * 1000}') as gateway:
            made = index.add_wheel('alpha', '1.0', requires_python='>=3.0')
            index.add_wheel('alpha', '1.1', yanked=True)
            index.add_file('alpha', '1.2', 'alpha-1.2.zip', b'source')
            assert gateway.files('alpha')[made.filename]['requires-python'] == '>=3.0'
            assert len(gateway.files('alpha')) == 1
            done = pip(gateway, 'download', '--no-deps', '--dest', tmp_path, 'alpha')
            assert done.returncode == 0 and (tmp_path / made.filename).read_bytes() == made.content, done.stderr
            assert gateway.ask('file', gateway.files('alpha')[made.filename]['url'])['upload_time_ms'] == 0


def test_source_archives_are_offered_on_demand(upstream):
    upstream.add_file('alpha-one', '1.4', 'Alpha_One-1.4.tar.gz', b'source')
    upstream.add_file('alpha-one', '1.4', 'alpha-one-extra-1.4.exe', b'program')
    with served(upstream, 'wheels_only=0') as gateway:
        [entry] = gateway.files('alpha-one').values()
        assert entry['filename'] == 'Alpha_One-1.4.tar.gz' and gateway.ask('file', entry['url'])['version'] == '1.4'


# ---- what is verified ----

def test_other_bytes_than_the_document_promised_are_not_served(upstream, tmp_path):
    upstream.add_wheel('alpha', '1.0')
    upstream.behave('alpha', wrong_hash=True, wrong_metadata=True)
    with served(upstream) as gateway:
        entry = gateway.files('alpha')['alpha-1.0-py3-none-any.whl']
        status, content, _ = gateway.get(entry['url'])
        assert status == 424 and content.startswith(b'hash_mismatch: '), content
        status, content, _ = gateway.get(entry['url'] + '.metadata')
        assert status == 424 and content.startswith(b'hash_mismatch: '), content
        assert gateway.ask('download', entry['url'])['problem'] == 'hash_mismatch'
        assert pip(gateway, 'download', '--no-deps', '--dest', tmp_path, 'alpha').returncode != 0
        assert not list(tmp_path.iterdir())


def test_files_have_ceilings_of_bytes_and_number(upstream):
    upstream.add_wheel('alpha', '1.0', {'big.bin': os.urandom(300000)})
    upstream.add_wheel('beta', '1.0')
    upstream.add_wheel('beta', '1.1')
    with served(upstream, 'max_bytes=100000') as gateway:
        entry = gateway.files('alpha')['alpha-1.0-py3-none-any.whl']
        assert gateway.ask('download', entry['url'])['problem'] == 'too_large'
        assert len(upstream.requests) == 1
        upstream.projects['alpha'][0].content += b'more'      # the size of the document is no promise
    with served(upstream, 'max_files=1') as gateway:
        first, second = gateway.files('beta').values()
        assert gateway.ask('download', first['url'])['problem'] == ''
        assert gateway.ask('download', second['url'])['problem'] == 'too_many'
        assert gateway.ask('download', first['url'])['problem'] == ''


def test_a_file_that_is_longer_than_its_document_says_stops_at_the_ceiling(upstream):
    made = upstream.add_wheel('alpha', '1.0')
    with served(upstream, 'max_bytes=100000') as gateway:
        url = gateway.files('alpha')[made.filename]['url']
        made.content = bytes(50_000_000)
        assert gateway.ask('download', url)['problem'] == 'too_large'
        assert gateway.ask('usage')['bytes'] < 2_000_000


def test_a_file_is_fetched_once(upstream, tmp_path):
    made = upstream.add_wheel('alpha', '1.0', {'big.bin': os.urandom(3_000_000)})
    with served(upstream, f'spool_folder={tmp_path}') as gateway:
        url = gateway.files('alpha')[made.filename]['url']
        assert gateway.get(url)[1] == made.content
        assert gateway.get(url)[1] == made.content
        assert gateway.ask('download', url)['size'] == len(made.content)
        assert len(upstream.requests) == 2 and not list(tmp_path.iterdir())


def test_only_files_that_were_offered_are_served(upstream):
    made = upstream.add_wheel('alpha', '1.0')
    with served(upstream) as gateway:
        path = f'/files/{"a" * 64}/alpha/{made.filename}'
        assert gateway.get(path)[0] == 404
        url = gateway.files('alpha')[made.filename]['url']
        for wrong in (path, url + 'x', url.replace('/alpha/', '/beta/'), f'{url}/..', '/files/', '/files', f'/files/alpha/{made.filename}', url + '?x=1'):
            assert gateway.get(wrong)[0] == 404, wrong
        assert gateway.get(url)[1] == made.content


# ---- where the index does not go ----

def test_a_redirect_to_another_private_address_is_refused(upstream):
    with PrivateIndex() as other:
        other.add_wheel('alpha', '1.0')
        upstream.add_wheel('alpha', '1.0')
        for target in (f'{other.base}{{path}}', other.base.replace('http', 'https'), 'https://10.0.0.1/', 'https://[::1]/', 'file:///etc/passwd', 'http://169.254.169.254/latest',
                       f'{upstream.base.replace("http", "https")}{{path}}'):
            upstream.behave('alpha', redirect=target)
            with served(upstream) as gateway:
                assert gateway.get('/simple/alpha/')[0] == 424, target
                assert gateway.ask('project', 'alpha')['problem'] == 'index_untrusted', target
        assert other.requests == []


def test_files_at_another_private_address_are_refused(upstream):
    with PrivateIndex() as other:
        other.add_wheel('alpha', '1.0')
        made = upstream.add_wheel('alpha', '1.0')
        for options in ({'file_base': other.base}, {'file_base': '', 'file_redirect': f'{other.base}{{path}}'}):
            upstream.behave('alpha', **options)
            with served(upstream) as gateway:
                url = gateway.files('alpha')[made.filename]['url']
                assert gateway.ask('download', url)['problem'] == 'index_untrusted', options
        assert other.requests == []


def test_redirects_at_the_same_address_are_followed_three_times(upstream):
    upstream.add_wheel('beta', '1.0', filename='alpha-1.0-py3-none-any.whl')
    upstream.behave('beta', document_name='alpha')
    upstream.behave('alpha', redirect='/simple/beta/')
    with served(upstream) as gateway:
        assert gateway.files('alpha')
    upstream.behave('beta', redirect='/simple/alpha/')
    with served(upstream) as gateway:
        assert gateway.get('/simple/alpha/')[0] == 424
    assert upstream.paths()[2:] == ['/simple/alpha/', '/simple/beta/'] * 2


@pytest.mark.parametrize('given, header', [(TOKEN, f'Bearer {TOKEN}'), (f'user:{TOKEN}', 'Basic dXNlcjp2ZXJ5LXNlY3JldC00NzEx')])
def test_the_token_goes_to_the_upstream_and_nowhere_else(upstream, given, header):
    made = upstream.add_wheel('alpha', '1.0')
    upstream.behave('alpha', token=header)
    with served(upstream, f'token={given}') as gateway:
        status, content, headers = gateway.get('/simple/alpha/')
        assert status == 200 and TOKEN not in content.decode() + str(headers)
        assert gateway.ask('download', gateway.files('alpha')[made.filename]['url'])['problem'] == ''
        upstream.add_wheel('beta', '1.0')
        upstream.behave('beta', token='other')
        status, content, headers = gateway.get('/simple/beta/')
        assert status == 424 and TOKEN not in content.decode() + str(headers)
        assert TOKEN not in json.dumps(gateway.ask('project', 'beta'))


def test_settings_that_cannot_be_are_refused():
    for words in (['ftp://127.0.0.1/'], ['http://user:word@127.0.0.1/'], ['http://127.0.0.1/?x=1'], ['http://127.0.0.1/', f'token={TOKEN}\r\nX: y'], ['http://']):
        done = subprocess.run([SERVE, 'python', *words], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL, timeout=PATIENCE)
        assert done.returncode == 1 and 'index' in done.stderr and TOKEN not in done.stderr, words


def test_a_certificate_is_checked_with_the_given_authority(tmp_path):
    certificate = make_certificate(tmp_path)
    (tmp_path / 'other').mkdir()
    other = make_certificate(tmp_path / 'other')
    with PrivateIndex(certificate=certificate) as index:
        made = index.add_wheel('alpha', '1.0')
        with served(index, f'ca_pem={certificate[0].read_text()}', f'token={TOKEN}') as gateway:
            url = gateway.files('alpha')[made.filename]['url']
            assert gateway.ask('download', url)['problem'] == ''
        asked = len(index.requests)
        for settings in ([], [f'ca_pem={other[0].read_text()}']):
            with served(index, f'token={TOKEN}', *settings) as gateway:
                assert gateway.get('/simple/alpha/')[0] == 424
                assert gateway.ask('project', 'alpha')['problem'] == 'index_untrusted', settings
        assert len(index.requests) == asked == 2


@pytest.mark.parametrize('text', ['', 'none', '-----BEGIN CERTIFICATE-----\nTk9ORQ==\n-----END CERTIFICATE-----\n'])
def test_authorities_that_cannot_be_read_are_an_error(text):
    done = subprocess.run([SERVE, 'python', 'https://127.0.0.1/', f'ca_pem={text}'], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL, timeout=PATIENCE)
    assert done.returncode == 1 and 'certificate' in done.stderr


def test_no_step_is_long_with_many_authorities(tmp_path):
    certificate = make_certificate(tmp_path)
    end = '-----END CERTIFICATE-----\n'
    authorities = Path('/etc/ssl/certs/ca-certificates.crt').read_text().split(end)[:70]        # as long as an argument may be
    many = certificate[0].read_text() + ''.join(one + end for one in authorities)
    for _ in range(TRIES):
        with PrivateIndex(certificate=certificate) as index:
            index.add_wheel('alpha', '1.0')
            with served(index, f'ca_pem={many}', program=PROBED) as gateway:
                assert gateway.get('/simple/alpha/')[0] == 200
        if not gateway.errors:
            return
    raise AssertionError(gateway.errors)


# ---- clients ----

def test_other_requests_have_a_line_as_answer(upstream):
    with served(upstream) as gateway:
        assert gateway.get('/simple/alpha/', 'POST')[0] == 405
        assert gateway.get('/simple/alpha/', 'HEAD')[0] == 405
        for path in ('/', '/simple/', '/alpha', '/simple/a/b/', '/simple/%00/', '/simple/a%2fb', '/simple/..%2f..%2fetc', '/simple/-a/', '/-/npm/v1/security'):
            status, content, _ = gateway.get(path)
            assert status == 404 and re.fullmatch(rb'[^\n]+\n', content), path
        assert upstream.requests == []


@pytest.mark.parametrize('head', [b'\r\n\r\n', b'GET /\r\n\r\n', b'GET\r\n\r\n', b'\x00\r\n\r\n', b'GET /simple/a/ FTP/1\r\n\r\n', b'G' * 9000])
def test_heads_that_are_none_are_refused(upstream, head):
    with served(upstream) as gateway, socket.create_connection(('127.0.0.1', gateway.port), PATIENCE) as client:
        client.sendall(head)
        assert client.makefile('rb').read().startswith(b'HTTP/1.1 40')


def test_more_connections_than_may_be_wait(upstream):
    upstream.add_wheel('alpha', '1.0')
    with served(upstream) as gateway:
        idle = [socket.create_connection(('127.0.0.1', gateway.port), PATIENCE) for _ in range(16)]
        with socket.create_connection(('127.0.0.1', gateway.port), PATIENCE) as late:
            late.sendall(b'GET /simple/alpha/ HTTP/1.1\r\n\r\n')
            late.settimeout(0.3)
            with pytest.raises(TimeoutError):
                late.recv(1)
            for client in idle:
                client.close()
            late.settimeout(PATIENCE)
            assert late.makefile('rb').read().startswith(b'HTTP/1.1 200')


def test_a_client_that_leaves_ends_the_transfer(upstream):
    upstream.add_wheel('alpha', '1.0')
    upstream.behave('alpha', delay=1)
    with served(upstream) as gateway:
        with socket.create_connection(('127.0.0.1', gateway.port), PATIENCE) as client:
            client.sendall(b'GET /simple/alpha/ HTTP/1.1\r\n\r\n')
            while not upstream.requests:
                time.sleep(0.01)
            assert gateway.ask('project', 'alpha')['loaded'] is False
        upstream.behave('alpha', delay=0)
        assert gateway.files('alpha')
        assert len(upstream.requests) == 2


def test_the_index_ends_while_documents_and_files_are_on_their_way(upstream):
    upstream.add_wheel('alpha', '1.0')
    upstream.behave('alpha', delay=3)
    with served(upstream) as gateway:
        client = socket.create_connection(('127.0.0.1', gateway.port), PATIENCE)
        client.sendall(b'GET /simple/alpha/ HTTP/1.1\r\n\r\n')
        while not upstream.requests:
            time.sleep(0.01)
    assert client.makefile('rb').read() == b''


def test_a_long_document_is_parsed_in_a_helper_thread(upstream):
    for number in range(2000):
        upstream.add_file('alpha', f'{number}', f'alpha-{number}-py3-none-any.whl', b'wheel')
    with served(upstream) as gateway:
        assert len(gateway.files('alpha')) == 2000
        assert gateway.ask('load', 'alpha')['counts']['offered'] == 2000


@pytest.mark.parametrize('kind', ['python', 'node'])
def test_no_step_of_the_loop_is_long(upstream, kind):
    """20,000 files in a document, and a file of 60 MB."""
    content = os.urandom(60_000_000)
    if kind == 'node':
        upstream.add_npm('alpha', '1.0.0')
        upstream.packages['alpha'] *= 5000
        upstream.packages['alpha'] = [replace(one, version=f'1.0.{number}', filename=f'alpha-{number}.tgz', document={**one.document, 'version': f'1.0.{number}'})
                                      for number, one in enumerate(upstream.packages['alpha'])]
        upstream.packages['alpha'][-1].content = content
    else:
        for number in range(20000):
            upstream.add_file('alpha', f'{number}', f'alpha-{number}-py3-none-any.whl', b'wheel')
        upstream.projects['alpha'][-1].content = content
    for _ in range(TRIES):
        with served(upstream, kind=kind, program=PROBED) as gateway:
            assert gateway.ask('load', 'alpha')['counts']['offered'] == (5000 if kind == 'node' else 20000)
            if kind == 'node':
                path = gateway.npm('alpha')['versions']['1.0.4999']['dist']['tarball'].removeprefix(gateway.base)
            else:
                path = gateway.files('alpha')['alpha-19999-py3-none-any.whl']['url']
            assert gateway.get(path)[1] == content
        if not gateway.errors:
            return
    raise AssertionError(', '.join(f'{place(address, PROBED)}: {us} us' for address, us in re.findall(r'a step of (0x[0-9a-f]+) took (\d+)', gateway.errors)))


# ---- npm ----

def npm(gateway, folder, *words):
    environment = {'PATH': os.environ['PATH'], 'HOME': str(folder), 'npm_config_cache': str(folder / 'cache')}
    return subprocess.run(['npm', *words, '--registry', f'{gateway.base}/', '--ignore-scripts', '--no-audit', '--no-fund', '--fetch-retries=0', '--userconfig=/dev/null'],
                          cwd=folder, capture_output=True, text=True, check=False, env=environment, timeout=120)


def test_npm_documents_have_old_versions_only_and_latest_moves(upstream):
    upstream.add_npm('@scope/left', '1.0.0', scripts={'postinstall': 'evil'}, dependencies={'right': '^1'}, secret='not for a resolver')
    upstream.add_npm('@scope/left', '1.2.0')
    upstream.add_npm('@scope/left', '2.0.0-beta.1', latest=False)
    upstream.add_npm('@scope/left', '1.10.0')
    upstream.add_npm('@scope/left', '1.11.0', age=60)
    with served(upstream, f'min_age_ms={DAY * 1000}', kind='node') as gateway:
        document = gateway.npm('@scope%2fleft')
        assert document['dist-tags'] == {'latest': '1.10.0'}
        assert set(document['versions']) == {'1.0.0', '1.2.0', '1.10.0', '2.0.0-beta.1'}
        first = document['versions']['1.0.0']
        assert first['hasInstallScript'] is True and first['dependencies'] == {'right': '^1'} and 'secret' not in first and 'scripts' not in first
        assert first['dist']['tarball'].startswith(f'{gateway.base}/files/')
        known = gateway.ask('file', first['dist']['tarball'])
        assert (known['name'], known['version'], known['filename']) == ('@scope/left', '1.0.0', 'left-1.0.0.tgz')
        assert known['hash'] == first['dist']['integrity'] and known['install_script'] is True
        assert gateway.get(known['path'])[1] == upstream.packages['@scope/left'][0].content
        assert gateway.npm('@scope/left') == document


@pytest.mark.parametrize('options, more, problem', [
    ({}, {'age': 60}, 'too_new'),
    ({'upload_times': False}, {}, 'no_upload_time'),
    ({'hashes': False}, {}, 'index_untrusted'),
    ({'status': 404}, {}, 'package_not_found'),
    ({'status': 503}, {}, 'index_unreachable'),
    ({'document_name': 'other'}, {}, 'index_untrusted'),
    ({'body': b'{}'}, {}, 'index_untrusted'),
    ({'content_type': 'text/html'}, {}, 'index_untrusted'),
])
def test_the_reason_for_an_empty_package_of_npm_has_a_name(options, more, problem):
    with PrivateIndex(**options) as index, served(index, f'min_age_ms={DAY * 1000}', kind='node') as gateway:
        index.add_npm('left', '1.0.0', **more)
        gateway.get('/left')
        assert gateway.ask('project', 'left')['problem'] == problem


def test_tarballs_are_verified(upstream):
    upstream.add_npm('left', '1.0.0')
    upstream.behave('left', wrong_hash=True)
    with served(upstream, kind='node') as gateway:
        status, content, _ = gateway.get(gateway.npm('left')['versions']['1.0.0']['dist']['tarball'].removeprefix(gateway.base))
        assert status == 424 and content.startswith(b'hash_mismatch: ')


@pytest.mark.skipif(not shutil.which('npm'), reason='needs npm')
def test_npm_installs_two_packages_and_again_from_the_lock(upstream, tmp_path):
    upstream.add_npm('left', '1.0.0', dependencies={'@scope/right': '^2.0.0'})
    upstream.add_npm('@scope/right', '2.0.1')
    upstream.add_npm('@scope/right', '2.1.0', age=60)
    (tmp_path / 'package.json').write_text('{"name": "program", "version": "1.0.0", "dependencies": {"left": "1"}}')
    with served(upstream, f'min_age_ms={DAY * 1000}', kind='node') as gateway:
        done = npm(gateway, tmp_path, 'install', '--package-lock-only')
        assert done.returncode == 0, done.stderr
        locked = json.loads((tmp_path / 'package-lock.json').read_text())['packages']
        assert locked['node_modules/@scope/right']['version'] == '2.0.1'
        files = [gateway.ask('file', one['resolved']) for path, one in locked.items() if path]
        assert sorted((one['name'], one['version']) for one in files) == [('@scope/right', '2.0.1'), ('left', '1.0.0')]
        done = npm(gateway, tmp_path, 'ci')
        assert done.returncode == 0, done.stderr
        assert "'2.0.1'" in (tmp_path / 'node_modules/@scope/right/index.js').read_text()
