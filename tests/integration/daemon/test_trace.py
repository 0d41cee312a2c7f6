"""Which trace a request and its runs belong to (W3C Trace Context)."""

import json
import re
import signal

import pytest

from cli import caisson
from daemon import until
from web import Web

TRACE, SPAN = '0af7651916cd43dd8448eb211c80319c', 'b7ad6b7169203331'
PARENT = f'00-{TRACE}-{SPAN}-01'


@pytest.fixture(name='web', scope='module')
def running(tmp_path_factory):
    web = Web(tmp_path_factory.mktemp('trace'))
    yield web
    assert web.daemon.stop(signal.SIGTERM) == 0


def trace_of(headers):
    """(trace, span, flags) of an answer."""
    found = re.fullmatch(r'00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})', headers['traceparent'])
    assert found and set(found[1]) != {'0'} and set(found[2]) != {'0'}
    return found.groups()


def audit(web):
    """{run: trace} of the audit."""
    done = caisson('runs', '--json', *web.state)
    assert done.status == 0, done.err
    return {run['id']: run['trace_id'] for run in json.loads(done.out)}


def test_the_answer_has_the_trace_of_its_request_and_a_span_of_ours(web):
    spans = set()
    for path in ('/healthz', '/nothing', '/v1/profiles?colour=red'):
        trace, span, flags = trace_of(web.ask('GET', path, traceparent=PARENT)[1])
        assert (trace, flags) == (TRACE, '01') and span != SPAN
        spans.add(span)
    assert len(spans) == 3
    assert trace_of(web.ask('GET', '/healthz', traceparent=PARENT[:-1] + '0')[1])[2] == '00'


@pytest.mark.parametrize('bad', ['', 'x', f'00-{TRACE}-{SPAN}', f'00-{TRACE.upper()}-{SPAN}-01', f'00-{"0" * 32}-{SPAN}-01', f'ff-{TRACE}-{SPAN}-01', PARENT + '-x',
                                 PARENT + ',' + PARENT, 'a' * 5000])
def test_what_is_no_trace_begins_a_new_one(web, bad):
    status, headers, _ = web.ask('GET', '/healthz', traceparent=bad)
    assert status == 200 and trace_of(headers)[0] != TRACE
    assert trace_of(web.ask('GET', '/healthz')[1])[0] != trace_of(headers)[0]


def test_two_traces_are_none(web):
    answer = web.raw(f'GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\ntraceparent: {PARENT}\r\nTraceParent: {PARENT}\r\n\r\n'.encode())
    assert answer.startswith(b'HTTP/1.1 200') and TRACE.encode() not in answer and b'traceparent: 00-' in answer


def test_the_audit_has_the_trace_of_each_run(web):
    waited = web.ask('POST', '/v1/runs', {'language': 'bash', 'code': 'true'}, traceparent=PARENT)[2]['id']
    started = web.ask('POST', '/v1/runs', {'language': 'bash', 'code': 'true'}, Prefer='respond-async', traceparent=PARENT)[2]['id']
    own = web.ask('POST', '/v1/runs', {'language': 'bash', 'code': 'true'})
    lines = web.stream_raw('POST', '/v1/runs/bulk', b'{"language": "bash", "code": "true"}\n' * 2, traceparent=PARENT).read().splitlines()
    web.daemon.caisson('run', '-l', 'bash', '-c', 'true')
    rows = until(lambda: (lambda rows: len(rows) >= 6 and rows)(audit(web)))
    many = [json.loads(line)['record']['id'] for line in lines]
    assert len(many) == 2 and all(rows[run] == TRACE for run in (waited, started, *many))
    assert rows[own[2]['id']] == trace_of(own[1])[0] != TRACE
    assert len(rows) == 6 and list(rows.values()).count(None) == 1     # the one of the Unix socket
