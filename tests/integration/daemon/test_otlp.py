"""Spans to a collector (OTLP over HTTP): which there are, what is in them, and what becomes of them when nobody takes them."""

import contextlib
import http.server
import json
import re
import shutil
import signal
import socket
import ssl
import subprocess
import threading
import time

import pytest

from cli import caisson
from daemon import Daemon, until
from web import KEYLESS, Web

TRACE, SPAN = '0af7651916cd43dd8448eb211c80319c', 'b7ad6b7169203331'
PARENT = f'00-{TRACE}-{SPAN}-01'


class Collector:
    """Takes what comes, by the rules of OTLP; `answers` are statuses for the next requests, 200 afterwards."""

    def __init__(self, port=0):
        self.requests, self.answers, self.body, self.gate, self.headers, self.times = [], [], b'{}', threading.Event(), {}, []
        self.gate.set()
        collector = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = 'HTTP/1.1'

            def do_POST(self):
                text = self.rfile.read(int(self.headers['Content-Length']))
                status = collector.answers.pop(0) if collector.answers else 200
                collector.times.append(time.monotonic())
                collector.requests.append((self.path, dict(self.headers), json.loads(text), status))
                collector.gate.wait(60)
                with contextlib.suppress(OSError):
                    self.send_response(status)
                    for name, value in {**collector.headers, 'Content-Type': 'application/json', 'Content-Length': len(collector.body)}.items():
                        self.send_header(name, str(value))
                    self.end_headers()
                    self.wfile.write(collector.body)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(('127.0.0.1', port), Handler)
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()

    def close(self):
        self.gate.set()
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()

    def spans(self, status=200):
        """All that were taken, flat: attributes as a dict of plain values."""
        return [flat(span) for _, _, body, answer in self.requests if answer == status
                for resource in body['resourceSpans'] for scope in resource['scopeSpans'] for span in scope['spans']]


def plain(attributes):
    assert all(len(one['value']) == 1 for one in attributes)
    return {one['key']: int(one['value']['intValue']) if 'intValue' in one['value'] else next(iter(one['value'].values())) for one in attributes}


def flat(span):
    assert re.fullmatch('[0-9a-f]{32}', span['traceId']) and re.fullmatch('[0-9a-f]{16}', span['spanId'])
    assert isinstance(span['startTimeUnixNano'], str) and int(span['startTimeUnixNano']) <= int(span['endTimeUnixNano'])
    return {**span, 'begun': int(span['startTimeUnixNano']), 'ended': int(span['endTimeUnixNano']), 'attributes': plain(span['attributes'])}


@pytest.fixture(name='collector')
def collecting():
    one = Collector()
    yield one
    one.close()


@pytest.fixture(name='web')
def running(tmp_path, collector):
    web = Web(tmp_path, '--set', f'engine.otlp_endpoint=http://127.0.0.1:{collector.port}')
    yield web
    if web.daemon.process.poll() is None:
        assert web.daemon.stop(signal.SIGTERM) == 0


def counts(web):
    text = web.ask('GET', '/metrics')[2].decode()
    return {name: int(number) for name, number in re.findall(r'^caisson_spans_(\w+) (\d+)$', text, flags=re.M)}


def named(collector, name, n=1):
    """The spans of this name, when there are n of them."""
    return until(lambda: (lambda found: len(found) >= n and found)([span for span in collector.spans() if span['name'] == name]))


# ---- what is sent ----

def test_a_request_a_run_and_its_stages(web, collector):
    code = 'echo hidden-code; sleep .1; exit 3'
    body = {'language': 'bash', 'code': code, 'task_id': 'job 7', 'policy': 'linx'}
    status, headers, record = web.ask('POST', '/v1/runs', body, traceparent=PARENT, X_Request_Id='mine')
    assert (status, record['status']) == (200, 'failed'), record
    request = named(collector, 'POST /v1/runs')[0]
    spans = {span['name']: span for span in collector.spans()}
    assert set(spans) == {'POST /v1/runs', 'execute', 'check', 'queue', 'prepare', 'run', 'collect'}
    assert {span['traceId'] for span in spans.values()} == {TRACE} and len({span['spanId'] for span in spans.values()}) == len(spans)
    assert (request['parentSpanId'], request['spanId'], request['kind']) == (SPAN, headers['traceparent'].split('-')[2], 2)
    assert request['attributes'] == {'http.request.method': 'POST', 'http.route': '/v1/runs', 'url.path': '/v1/runs', 'url.scheme': 'http',
                                     'http.response.status_code': 200, 'caisson.request.id': 'mine', 'caisson.tenant': 'local'}
    assert 'status' not in request
    run = spans['execute']
    assert (run['parentSpanId'], run['kind']) == (request['spanId'], 1) and request['begun'] <= run['begun'] + 1000
    some = {'caisson.run.id': record['id'], 'caisson.run.status': 'failed', 'caisson.language': 'bash', 'caisson.task_id': 'job 7', 'caisson.policy': 'linx',
            'process.exit.code': 3, 'error.type': 'failed', 'caisson.memory_peak_bytes': record['usage']['memory_peak_bytes']}
    assert some.items() <= run['attributes'].items()
    took = {name: (span['ended'] - span['begun']) / 1e6 for name, span in spans.items()}
    for name in ('queue', 'run'):
        assert took[name] == pytest.approx(record['timings'][name + '_ms'], abs=0.1)
    assert took['check'] + took['prepare'] == pytest.approx(record['timings']['prepare_ms'], abs=0.1) and took['run'] >= 100
    stages = [spans[name] for name in ('check', 'queue', 'prepare', 'run', 'collect')]
    assert all(stage['parentSpanId'] == run['spanId'] and stage['attributes'] == {} for stage in stages)
    assert all(abs(one['ended'] - two['begun']) < 1e6 for one, two in zip(stages, stages[1:]))
    assert 'hidden-code' not in json.dumps([body for _, _, body, _ in collector.requests])


def test_the_request_is_what_a_collector_expects(tmp_path, collector):
    env = {'OTEL_EXPORTER_OTLP_ENDPOINT': f'http://localhost:{collector.port}/base/', 'OTEL_SERVICE_NAME': 'judge €',
           'OTEL_EXPORTER_OTLP_HEADERS': 'Authorization=Bearer%20s3cret, x-scope = team%2Ca'}
    folder = tmp_path / 'd'
    folder.mkdir()
    daemon = Daemon(folder, *KEYLESS, '--set', f'engine.state_dir={tmp_path}', '--set', 'engine.http=127.0.0.1:0', '--set', 'engine.log_level=debug', env=env).ready()
    port = int(until(lambda: re.findall(r'serving http://127\.0\.0\.1:(\d+)', (folder / 'log').read_text()))[-1])
    connection = http.client.HTTPConnection('127.0.0.1', port)
    connection.request('GET', '/v1/languages')
    connection.getresponse().read()
    until(lambda: collector.requests)
    path, headers, body, _ = collector.requests[0]
    assert path == '/base/v1/traces' and headers['Content-Type'] == 'application/json'
    assert headers['Authorization'] == 'Bearer s3cret' and headers['x-scope'] == 'team,a' and headers['Host'] == f'localhost:{collector.port}'
    resource = body['resourceSpans'][0]
    assert plain(resource['resource']['attributes'])['service.name'] == 'judge €'
    assert plain(resource['resource']['attributes'])['process.pid'] == daemon.process.pid
    assert resource['scopeSpans'][0]['scope']['name'] == 'caisson'
    assert daemon.stop(signal.SIGTERM) == 0
    assert 's3cret' not in (folder / 'log').read_text()


def test_which_requests_are_sent(web, collector):
    """Those of /v1, and whatever belongs to a trace that somebody keeps; nothing of one that nobody keeps."""
    web.ask('GET', '/healthz')
    web.ask('GET', '/v1/languages', traceparent=PARENT[:-1] + '0')
    assert web.ask('GET', '/v1/languages')[1]['traceparent'].endswith('-01')
    web.ask('GET', '/healthz', traceparent=PARENT)
    web.ask('PUT', '/nothing/' + 'x' * 2000, traceparent=PARENT)
    put = named(collector, 'PUT')[0]
    assert sorted(span['name'] for span in collector.spans()) == ['GET /healthz', 'GET /v1/languages', 'PUT']
    assert put['attributes']['http.response.status_code'] == 404 and 'http.route' not in put['attributes'] and len(put['attributes']['url.path']) == 500
    own = named(collector, 'GET /v1/languages')[0]
    assert own['traceId'] != TRACE and 'parentSpanId' not in own


def test_each_run_of_many_has_a_span(web, collector):
    web.stream_raw('POST', '/v1/runs/bulk', b'{"language": "bash", "code": "true"}\n' * 3).read()
    runs = named(collector, 'execute', 3)
    request = named(collector, 'POST /v1/runs/bulk')[0]
    assert {run['parentSpanId'] for run in runs} == {request['spanId']} and len({run['spanId'] for run in runs}) == 3
    assert len(named(collector, 'run', 3)) == 3


def test_a_client_that_goes_is_an_error(web, collector):
    connection = web.open()
    connection.request('POST', '/v1/runs', json.dumps({'language': 'bash', 'code': 'sleep 1000'}))
    until(web.runs)
    connection.close()
    request = named(collector, 'POST /v1/runs')[0]
    assert request['attributes']['error.type'] == 'client_gone' and request['status']['code'] == 2
    assert 'http.response.status_code' not in request['attributes']
    assert named(collector, 'execute')[0]['attributes']['caisson.run.status'] == 'cancelled'


# ---- what becomes of them ----

def test_many_go_together(web, collector):
    collector.gate.clear()
    web.ask('GET', '/v1/languages')
    until(lambda: collector.requests)
    for _ in range(30):
        web.ask('GET', '/v1/languages')
    assert counts(web)['queued'] == 31 and counts(web)['sent_total'] == 0
    collector.gate.set()
    until(lambda: counts(web)['sent_total'] == 31)
    assert [len(body['resourceSpans'][0]['scopeSpans'][0]['spans']) for _, _, body, _ in collector.requests] == [1, 30]


def test_what_may_be_sent_again_is(web, collector):
    collector.answers = [503, 429]
    web.ask('GET', '/v1/languages')
    span = named(collector, 'GET /v1/languages')[0]
    assert [status for *_, status in collector.requests] == [503, 429, 200]
    assert [one['spanId'] for status in (503, 429, 200) for one in collector.spans(status)] == [span['spanId']] * 3
    until(lambda: counts(web) == {'sent_total': 1, 'dropped_total': 0, 'queued': 0})


def test_a_collector_says_how_long_to_wait(web, collector):
    collector.answers, collector.headers = [503], {'Retry-After': '3'}
    web.ask('GET', '/v1/languages')
    until(lambda: len(collector.times) == 2)
    assert collector.times[1] - collector.times[0] > 2.9


def test_it_is_not_tried_for_ever(web, collector):
    collector.answers = [503] * 4
    web.ask('GET', '/v1/languages')
    until(lambda: counts(web) == {'sent_total': 0, 'dropped_total': 1, 'queued': 0})
    web.ask('GET', '/v1/policies')
    named(collector, 'GET /v1/policies')
    assert [status for *_, status in collector.requests] == [503, 503, 503, 503, 200]
    gaps = [two - one for one, two in zip(collector.times, collector.times[1:4])]
    assert all(gap > wait for gap, wait in zip(gaps, (0.9, 1.9, 3.9)))


def test_what_may_not_is_dropped_and_counted(web, collector):
    collector.answers = [400]
    web.ask('GET', '/v1/languages')
    until(lambda: counts(web)['dropped_total'] == 1)
    web.ask('GET', '/v1/policies')
    named(collector, 'GET /v1/policies')
    assert [status for *_, status in collector.requests] == [400, 200]
    assert 'does not take 1 spans' in web.log.read_text() and 'it answers 400' in web.log.read_text()


def test_what_a_collector_refuses_is_counted(web, collector):
    collector.body = json.dumps({'partialSuccess': {'rejectedSpans': '1', 'errorMessage': 'no'}}).encode()
    web.ask('GET', '/v1/languages')
    until(lambda: counts(web) == {'sent_total': 0, 'dropped_total': 1, 'queued': 0})


def test_a_collector_that_hangs_holds_nobody_up_and_costs_no_more_than_a_queue(web, collector):
    collector.gate.clear()
    web.ask('GET', '/v1/languages')
    until(lambda: collector.requests)
    connection = web.open()
    for _ in range(2100):
        connection.request('GET', '/v1/languages')
        connection.getresponse().read()
    now = counts(web)
    assert now == {'sent_total': 0, 'queued': 2048 + 1, 'dropped_total': 2100 - 2048}
    assert web.run('echo on')['stdout'] == 'on\n'
    collector.gate.set()
    until(lambda: counts(web)['queued'] == 0)
    assert counts(web)['sent_total'] == 2049 and max(len(body['resourceSpans'][0]['scopeSpans'][0]['spans']) for _, _, body, _ in collector.requests) == 512


def test_a_collector_that_is_not_there_holds_nobody_up(tmp_path):
    with socket.socket() as free:
        free.bind(('127.0.0.1', 0))
        port = free.getsockname()[1]
    web = Web(tmp_path, '--set', f'engine.otlp_traces_endpoint=http://127.0.0.1:{port}/x', '--set', 'engine.log_level=debug')
    assert web.run('echo on')['stdout'] == 'on\n'
    until(lambda: 'once more' in web.log.read_text())
    collector = Collector(port)      # and now it is
    assert named(collector, 'execute') and collector.requests[0][0] == '/x'
    assert web.daemon.stop(signal.SIGTERM) == 0
    collector.close()


def test_a_collector_that_anybody_could_be_gets_nothing(tmp_path, collector):
    if not shutil.which('openssl'):
        pytest.skip('needs openssl')
    key, certificate = tmp_path / 'key.pem', tmp_path / 'cert.pem'
    subprocess.run(['openssl', 'req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-keyout', key, '-out', certificate, '-days', '2', '-subj', '/CN=localhost',
                    '-addext', 'subjectAltName=DNS:localhost'], check=True, stderr=subprocess.DEVNULL)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate, key)
    collector.server.socket = tls.wrap_socket(collector.server.socket, server_side=True)
    web = Web(tmp_path, '--set', f'engine.otlp_endpoint=https://localhost:{collector.port}')
    web.ask('GET', '/v1/languages')
    until(lambda: counts(web) == {'sent_total': 0, 'dropped_total': 1, 'queued': 0})
    assert 'SSL peer certificate' in web.log.read_text() and not collector.requests
    assert web.daemon.stop(signal.SIGTERM) == 0


def test_the_end_sends_what_is_left(web, collector):
    web.run('true')
    assert web.daemon.stop(signal.SIGTERM) == 0
    assert {'POST /v1/runs', 'execute', 'collect'} <= {span['name'] for span in collector.spans()}


# ---- settings ----

@pytest.mark.parametrize('settings, words', [
    (['engine.otlp_endpoint=localhost:4318'], ['engine.otlp_endpoint', 'localhost:4318', 'http://HOST:PORT']),
    (['engine.otlp_endpoint=ftp://x'], ['ftp://x/v1/traces', 'http://HOST:PORT']),
    (['engine.otlp_traces_endpoint=http://'], ['engine.otlp_traces_endpoint', 'http://']),
    (['engine.otlp_endpoint=http://me:s3cret@x'], ['a password', 'engine.otlp_headers']),
    (['engine.otlp_endpoint=http://x', 'engine.otlp_headers=a=b,s3cret'], ['engine.otlp_headers', 'entry 2']),
    (['engine.otlp_endpoint=http://x', 'engine.otlp_headers=a=s3cret%0d%0aHost: y'], ['engine.otlp_headers', 'entry 1']),
    (['engine.otlp_endpoint=http://x', 'engine.otlp_headers=a=s3cret%2'], ['engine.otlp_headers', 'entry 1']),
    (['engine.otlp_endpoint=http://x', 'engine.otlp_headers=a b=s3cret'], ['engine.otlp_headers', 'entry 1'])], ids=range(8))
def test_a_wrong_setting_stops_the_start_and_shows_no_secret(tmp_path, settings, words):
    flags = [word for one in settings for word in ('--set', one)]
    daemon = Daemon(tmp_path, *KEYLESS, '--set', f'engine.state_dir={tmp_path}', '--set', 'engine.http=127.0.0.1:0', *flags)
    assert daemon.process.wait(60) == 78
    text = (tmp_path / 'log').read_text()
    assert all(word in text for word in words) and 's3cret' not in text
    daemon.stop()


def test_headers_are_not_shown(tmp_path):
    env = {'OTEL_EXPORTER_OTLP_HEADERS': 'a=s3cret', 'OTEL_EXPORTER_OTLP_ENDPOINT': 'http://x'}
    for words in (['config', 'show'], ['config', 'show', '--json']):
        done = caisson(*words, env=env)
        assert done.status == 0 and 's3cret' not in done.out and '(not shown)' in done.out and 'OTEL_EXPORTER_OTLP_HEADERS' in done.out


def test_switched_off(tmp_path, collector):
    web = Web(tmp_path, '--set', f'engine.otlp_endpoint=http://127.0.0.1:{collector.port}', '--set', 'engine.otlp_disabled=true')
    assert web.ask('GET', '/v1/languages')[1]['traceparent'].endswith('-00')
    web.run('true')
    assert web.daemon.stop(signal.SIGTERM) == 0 and not collector.requests
