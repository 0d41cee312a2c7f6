"""The client of sdk/python: runs, gradings, batches and errors, at a daemon and at a server that misbehaves."""

import json
import pickle
import socket
import threading
import time

import pytest

import caisson
from caisson import batch
from daemon import until
from grade_stub import GradeStub, masked, result

GOOD = {'code': 'def f(x):\n    return x + 1\n', 'function': 'f', 'cases': [{'args': [1], 'expected': 2}, {'args': [2], 'expected': 3}]}
BAD = {**GOOD, 'code': 'def f(x):\n    return 2\n'}


# ---- at a daemon ----

def test_a_program_runs_at_a_private_daemon(client):
    run = client.run('print(int(input()) * 7)', stdin='6\n')
    assert (run.status, run.stdout, run.exit_code, run.ok) == ('completed', '42\n', 0, True)
    assert run.raise_for_status() is run and run.language == 'python'


def test_a_program_that_fails_is_a_result(client):
    run = client.run('import sys\nsys.exit(3)')
    assert (run.status, run.exit_code) == ('failed', 3)
    with pytest.raises(caisson.CaissonError) as caught:
        run.raise_for_status()
    assert caught.value.code == 'failed'


def test_a_submission_is_graded(client):
    grade = client.grade(GOOD, id='a')
    assert (grade.all_passed, grade.score, grade.mask, grade.id) == (True, 1.0, False, 'a')
    assert [case.passed for case in grade.cases] == [True, True] and grade.reward['passed'] == 2
    half = client.grade(**BAD)
    assert (half.all_passed, half.score, half.reward['partial'], half.reward['first_fail_index']) == (False, 0.5, 0.5, 1)


def test_a_batch_keeps_its_order_and_the_ids_of_the_caller(client):
    requests = [{**(GOOD if number % 3 else BAD), **({'id': f'mine {number}'} if number % 2 else {})} for number in range(60)]
    grades = client.grade_many(requests)
    assert [grade.all_passed for grade in grades] == [bool(number % 3) for number in range(60)]
    assert [grade.id for grade in grades] == [f'mine {number}' if number % 2 else None for number in range(60)]
    assert client.grade_many([]) == []


def test_a_batch_above_the_longest_body_is_divided(client, monkeypatch):
    monkeypatch.setattr(batch, 'BODY_MAX', 1000)
    assert [grade.all_passed for grade in client.grade_many([GOOD, BAD] * 20)] == [True, False] * 20


def test_a_line_that_is_wrong_is_bad_request_and_names_the_field(client):
    good, wrong = client.grade_many([GOOD, {'code': 'x = 1', 'cases': 3}])
    assert good.all_passed and (wrong.status, wrong.mask, wrong.score) == ('bad_request', False, 0.0)
    assert wrong.error['field'] == '/cases' and wrong.reason


def test_a_body_that_is_wrong_is_an_exception_with_the_field(client):
    with pytest.raises(caisson.InvalidRequest) as caught:
        client.grade(code='x = 1', cases=3)
    assert (caught.value.status, caught.value.code, caught.value.field) == (422, 'bad_request', '/cases') and caught.value.request_id
    with pytest.raises(ValueError):
        client.run(5)


def test_text_that_utf8_does_not_have_is_sent_all_the_same(client):
    grade = client.grade_many([{'code': 'print("\ud800")\nprint(input())', 'cases': [{'stdin': 'é', 'expected_stdout': '?\né'}]}])[0]
    assert grade.all_passed, grade


def test_a_server_with_keys_is_asked_by_tcp_with_the_key_of_the_environment(daemon_of_all, monkeypatch):
    web, keys = daemon_of_all
    url = f'http://127.0.0.1:{web.port}'
    monkeypatch.setenv('CAISSON_URL', url)
    with pytest.raises(caisson.AuthError) as caught:
        caisson.Client().grade(GOOD)
    assert caught.value.status == 401
    with pytest.raises(caisson.AuthError):
        caisson.Client().grade_many([GOOD])
    monkeypatch.setenv('CAISSON_KEY', keys.make('sdk', '--tenant', 'sdk', '--scopes', 'run'))
    assert caisson.Client().grade_many([GOOD, BAD])[0].all_passed
    assert caisson.Client(url).run('print(1)', idempotency_key='one').stdout == '1\n'
    assert caisson.default_client().address == caisson.Client().address


def test_a_key_that_may_only_run_serves_tools_and_ends_runs(daemon_of_all):
    web, keys = daemon_of_all
    client = caisson.Client(f'http://127.0.0.1:{web.port}', keys.make('narrow', '--tenant', 'narrow', '--scopes', 'run'))

    def double(value: int) -> int:
        return 2 * value
    assert client.run('print(tools.double(value=4))', tools=[double]).stdout == '8\n'
    with client.stream('import time\ntime.sleep(600)') as stream:
        assert next(iter(stream)).type == 'start'
        stream.cancel()
    with pytest.raises(caisson.AuthError):
        list(client.runs.list())
    with pytest.raises(caisson.AuthError):
        client.sandbox()
    until(lambda: not web.runs())


def test_a_client_is_pickled_without_the_private_daemon(client):
    other = pickle.loads(pickle.dumps(client))
    assert other.address == client.address and other._lease is None and other.grade(GOOD).all_passed


# ---- addresses ----

@pytest.mark.parametrize('url', ['localhost:8080', 'ftp://host', 'http://', 'unix:relative', 'http://host:port', 'http://host:99999'])
def test_an_address_that_is_none_is_refused_with_the_forms_that_are(url):
    with pytest.raises(caisson.InvalidRequest) as caught:
        caisson.Client(url)
    assert caught.value.field == 'base_url' and url in str(caught.value)


@pytest.mark.parametrize('url, shown', [
    ('http://host:8080', 'http://host:8080'), ('https://host/base/', 'https://host/base'), ('http://[::1]:80', 'http://[::1]:80'),
    ('unix:/run/s.http', 'unix:/run/s.http'), ('unix:///run/s.http', 'unix:/run/s.http')])
def test_an_address_is_shown_as_it_is_written(url, shown):
    assert str(caisson.Client(url).address) == shown


def test_no_server_is_unreachable_and_may_be_tried_again(tmp_path):
    with pytest.raises(caisson.Unreachable) as caught:
        caisson.Client(f'unix:{tmp_path}/none').grade(GOOD)
    assert caught.value.retryable and str(tmp_path) in str(caught.value)


# ---- a server that misbehaves ----

def test_a_batch_is_one_request():
    with GradeStub(['passed']) as stub:
        assert len(caisson.Client(stub.url, 'secret').grade_many([GOOD] * 50)) == 50
        request, = stub.requests
        assert request['path'] == '/v1/grade' and request['headers']['Content-Type'] == 'application/x-ndjson'
        assert request['headers']['Authorization'] == 'Bearer secret' and len(request['lines']) == 50


@pytest.mark.parametrize('fault', ['limited', 'draining', 'nothing'])
def test_a_batch_that_was_not_taken_is_sent_again(fault):
    with GradeStub([fault, fault, 'passed']) as stub:
        assert all(grade.all_passed for grade in caisson.Client(stub.url).grade_many([GOOD] * 3))
        assert [len(request['lines']) for request in stub.requests] == [3, 3, 3]


def test_retry_after_of_the_server_is_waited_for(monkeypatch):
    pauses = []
    monkeypatch.setattr(time, 'sleep', pauses.append)
    with GradeStub([lambda handler, _: handler.problem(429, 'capacity', retry_after='7'), 'passed']) as stub:
        caisson.Client(stub.url).grade_many([GOOD])
    assert pauses == [7.0]


def test_after_a_connection_that_breaks_only_lines_without_an_answer_are_sent_again():
    with GradeStub(['cut', 'cut', 'passed']) as stub:
        assert len(caisson.Client(stub.url).grade_many([GOOD] * 8)) == 8
        assert [len(request['lines']) for request in stub.requests] == [8, 4, 2]
        assert {line['id'] for line in stub.requests[1]['lines']} == {'4', '5', '6', '7'}


def test_attempts_end_where_nothing_is_answered():
    with GradeStub(['nothing']) as stub:
        with pytest.raises(caisson.Unreachable):
            caisson.Client(stub.url, retries=2).grade_many([GOOD])
        assert len(stub.requests) == 3
    with GradeStub(['limited']) as stub:
        with pytest.raises(caisson.RateLimited) as caught:
            caisson.Client(stub.url, retries=1).grade_many([GOOD])
        assert caught.value.quota == 'queue_max' and len(stub.requests) == 2


def test_lines_that_find_no_room_are_sent_again():
    with GradeStub(['busy_line', 'busy_line', 'passed']) as stub:
        assert all(grade.all_passed for grade in caisson.Client(stub.url).grade_many([GOOD] * 4))
        assert [len(request['lines']) for request in stub.requests] == [4, 3, 2]


def test_a_server_that_refuses_before_it_has_read_the_body_is_heard(daemon_of_all):
    web, _ = daemon_of_all
    big = {**GOOD, 'setup': 'x = 1\n' * 100_000}
    with pytest.raises(caisson.AuthError):
        caisson.Client(f'http://127.0.0.1:{web.port}', 'csn_wrong').grade_many([big] * 30)


def read_slowly(listener, size):
    """Read a request in parts, for longer than the time-out of its client, and answer one line."""
    connection, _ = listener.accept()
    with connection:
        got = bytearray()
        while len(got) < size:
            got += connection.recv(1 << 18)
            time.sleep(0.02)
        body = json.dumps({'id': '0', 'line': 1, 'result': result()}).encode() + b'\n'
        connection.sendall(b'HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson\r\nContent-Length: %d\r\n\r\n%s' % (len(body), body))


def test_a_body_that_the_server_reads_slowly_is_no_timeout():
    request = {'code': 'x' * (24 << 20)}
    with socket.create_server(('127.0.0.1', 0)) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 18)
        reader = threading.Thread(target=read_slowly, args=(listener, len(batch.line_of(request, 0))))
        reader.start()
        began = time.monotonic()
        client = caisson.Client(f'http://127.0.0.1:{listener.getsockname()[1]}', timeout=1, retries=0)
        assert client.grade_many([request])[0].all_passed
        assert time.monotonic() - began > 1
        reader.join()


def test_a_key_that_is_refused_is_not_tried_again():
    with GradeStub(['forbidden']) as stub:
        with pytest.raises(caisson.AuthError):
            caisson.Client(stub.url).grade_many([GOOD])
        assert len(stub.requests) == 1


def test_a_masked_result_of_one_grading_is_tried_again_and_then_a_result():
    with GradeStub(['masked']) as stub:
        grade = caisson.Client(stub.url, retries=2).grade(GOOD)
        assert (grade.mask, grade.score, grade.reward, grade.retryable) == (True, None, None, True) and len(stub.requests) == 3
    with GradeStub(['masked', 'passed']) as stub:
        assert caisson.Client(stub.url).grade(GOOD).all_passed


def test_a_server_that_says_nothing_is_a_timeout():
    with GradeStub([lambda *_: time.sleep(1)]) as stub:
        with pytest.raises(caisson.TimedOut):
            caisson.Client(stub.url, timeout=0.3, retries=0).grade_many([GOOD])


def test_a_run_is_not_sent_twice_without_a_key():
    with GradeStub(['nothing']) as stub:
        with pytest.raises(caisson.Unreachable):
            caisson.Client(stub.url).run('print(1)')
        assert len(stub.requests) == 1
        with pytest.raises(caisson.Unreachable):
            caisson.Client(stub.url).run('print(1)', idempotency_key='k')
        assert [request['headers'].get('Idempotency-Key') for request in stub.requests] == [None, 'k', 'k', 'k']


@pytest.mark.parametrize('status', [502, 504])
def test_a_run_whose_server_was_lost_is_not_sent_twice_without_a_key(status):
    """The end of a lost worker at a gateway: the program may have run."""
    with GradeStub([lambda handler, _: handler.problem(status, 'worker_lost')]) as stub:
        with pytest.raises(caisson.CaissonError):
            caisson.Client(stub.url).run('print(1)')
        assert len(stub.requests) == 1
        with pytest.raises(caisson.CaissonError):
            caisson.Client(stub.url, retries=1).run('print(1)', idempotency_key='k')
        assert len(stub.requests) == 3


def test_fields_of_a_newer_server_are_kept():
    with GradeStub([lambda handler, lines: handler.answer_all(lines, {**result(), 'weather': 'fine'})]) as stub:
        assert caisson.Client(stub.url).grade_many([GOOD])[0].extra['weather'] == 'fine'


def test_exceptions_cross_processes():
    error = pickle.loads(pickle.dumps(caisson.RateLimited('slow down', retry_after=2.0, status=429, code='capacity')))
    assert (type(error), error.retry_after, error.status, str(error)) == (caisson.RateLimited, 2.0, 429, 'slow down')
    fault = pickle.loads(pickle.dumps(caisson.EngineFault('x', faults=1, total=2, reasons=['a'])))
    assert (fault.faults, fault.total, fault.reasons) == (1, 2, ('a',))
    assert json.dumps(masked()) and isinstance(fault, caisson.CaissonError)
