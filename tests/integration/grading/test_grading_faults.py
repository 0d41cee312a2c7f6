"""Faults of the engine that recur: they are the submission's if an empty program runs, and else ours.

The sandboxes are those of a server that breaks when its program says so, as a host does that a submission has brought down.
"""

import http.server
import json
import threading

import pytest
from web import Web

MADE = json.dumps({'sandboxID': 'i1'}).encode()
METRICS = b'GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n'
NO_FILES = b'{"entries":[]}'


class Fragile(http.server.BaseHTTPRequestHandler):
    """A server of sandboxes in which programs print `1`."""

    protocol_version = 'HTTP/1.1'

    def answer(self):
        body = self.rfile.read(int(self.headers.get('Content-Length') or 0))
        state = self.server.state
        if self.path == '/sandboxes':
            status, answer = 201, MADE
        elif self.path.endswith('/ListDir'):
            status, answer = 200, NO_FILES
        elif self.path == '/execute':
            broken = self.server.breaks(body, state['executed'])
            state['executed'] += 1
            status, answer = (500, b'broken') if broken else (200, b'{"type":"stdout","text":"1\\n"}\n{"type":"end_of_execution"}\n')
        else:
            status, answer = 200, b'y'
        self.send_response(status)
        self.send_header('Content-Length', str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    do_GET = do_POST = do_PUT = do_DELETE = answer

    def log_message(self, *_):
        pass


@pytest.fixture(name='graded', scope='module')
def graded_fixture(tmp_path_factory):
    """graded(breaks, request) -> (HTTP status, result, programs that were executed); breaks(program, programs before it)"""
    folder = tmp_path_factory.mktemp('faults')
    (folder / 'fragile.yaml').write_text('description: fragile\nbackend: e2b\n')
    server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Fragile)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = 'http://127.0.0.1:%d' % server.server_port
    words = {'e2b_api_key': 'e2b_00ff', 'e2b_api_url': url, 'e2b_sandbox_url': url, 'profiles_dir': folder}
    web = Web(folder, *(word for name, value in words.items() for word in ('--set', 'engine.%s=%s' % (name, value))))

    def graded(breaks, **request):
        server.breaks, server.state = breaks, {'executed': 0}
        status, _, result = web.ask('POST', '/v1/grade', {'language': 'bash', 'profile': 'fragile', 'cases': [{'expected_stdout': '1'}], **request})
        return status, result, server.state['executed']

    yield graded
    web.daemon.stop()
    server.shutdown()


def has_mark(program, _):
    return b'MARK' in program


def test_a_host_that_works_gives_a_verdict(graded):
    _, result, executed = graded(has_mark, code='echo 1')
    assert (result['status'], result['score'], result['mask'], executed) == ('completed', 1, False, 1), result


def test_a_submission_that_breaks_its_sandbox_each_time_has_failed(graded):
    status, result, executed = graded(has_mark, code='echo MARK')
    case, = result['cases']
    assert (status, result['status'], result['score'], result['mask'], result['retryable']) == (200, 'completed', 0, False, False), result
    assert case['status'] == 'error' and case['detail'].startswith('the submission breaks its sandbox: ')
    assert [sign['sign'] for sign in result['signs']] == ['breaks_engine'] and result['signs'][0]['case_name'] == 'case 1'
    assert executed == 6            # the submission, three tries, the control, and the submission once more


def test_each_case_that_breaks_is_judged_for_itself(graded):
    cases = [{'name': name, 'expected_stdout': '1', 'argv': []} for name in 'ab']
    _, result, _ = graded(has_mark, code='echo MARK', cases=cases)
    assert [case['status'] for case in result['cases']] == ['error', 'error'] and result['score'] == 0 and not result['mask'], result
    assert sorted(sign['case_name'] for sign in result['signs']) == ['a', 'b']


def test_a_host_on_which_nothing_runs_gives_no_verdict(graded):
    status, result, _ = graded(lambda *_: True, code='echo 1')
    assert (result['status'], result['score'], result['mask'], result['retryable'], result['signs']) == ('engine_error', None, True, True, []), result
    assert result['reward'] is None and not result['all_passed']


def test_a_fault_that_passes_is_nobodys(graded):
    _, result, executed = graded(lambda _, executed: executed < 3, code='echo 1')
    assert (result['status'], result['score'], result['mask'], executed) == ('completed', 1, False, 4), result


def test_a_fault_that_ends_before_the_control_is_not_the_submissions(graded):
    """Four faults, then the control and the submission run."""
    _, result, executed = graded(lambda _, executed: executed < 4, code='echo MARK')
    assert (result['status'], result['score'], result['mask'], result['signs'], executed) == ('completed', 1, False, [], 6), result


def test_judges_take_no_place_of_runs(tmp_path):
    """A judge that waits for its next question is a sandbox that runs; engine.running_max is for programs of clients."""
    web = Web(tmp_path, '--set', 'engine.running_max=1')
    try:
        request = {'code': 'def f(x): return x', 'function': 'f', 'cases': [{'args': [1], 'expected': 1}]}
        assert web.ask('POST', '/v1/grade', request)[2]['all_passed']
        assert len(web.runs()) == 1 and b'\ncaisson_runs_running 0\n' in web.raw(METRICS)
        record = web.ask('POST', '/v1/runs', {'language': 'bash', 'code': 'echo here'})[2]
        assert record['stdout'] == 'here\n' and len(web.runs()) == 1       # the judge was there all the time
    finally:
        web.daemon.stop()
