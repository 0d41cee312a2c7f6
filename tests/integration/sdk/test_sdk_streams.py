"""Both clients of sdk/python at servers that hang, answer garbage, or close in the middle."""

import asyncio
import json
import socket
import threading
import time

import pytest

import caisson
from caisson import async_transport, tools
from raw_server import CLOSE, END, RECORD, START, STREAM, RawServer, answer, chunk, drip, events, hang, problem, record
from twins import Async, Sync

TWINS = pytest.mark.parametrize('twin', [Sync, Async], ids=lambda twin: twin.name)


def failing(twin, script, kind, use=lambda one: one.call('run', 'x'), **options):
    """The exception, and the server."""
    with RawServer(script) as server:
        with pytest.raises(kind) as caught:
            use(twin(server.url, **{'retries': 0, 'timeout': 5, **options}))
        return caught.value, server


# ---- garbage ----

GARBAGE = {
    'no HTTP': b'SSH-2.0-OpenSSH_9.2\r\n\r\n',
    'bytes': bytes(range(128, 256)) * 10 + b'\r\n\r\n',
    'no JSON': answer(b'<html>'),
    'a list': answer(b'[]'),
    'a number': answer(b'7'),
    'deep': answer(b'[' * 100_000),
    'half of JSON': answer(json.dumps(RECORD).encode()[:-5]),
    'no status': answer(b'{"id": "run_1"}'),
    'status of a wrong type': answer(b'{"status": 3}'),
    'no UTF-8': answer(b'{"status": "\xff"}'),
    'a chunk without a size': STREAM + b'zz\r\n',
    'a negative chunk': STREAM + b'-5\r\nhello',
    'a head without an end': b'HTTP/1.1 200 OK\r\nX: ' + b'y' * 200_000,
}


@TWINS
@pytest.mark.parametrize('name', GARBAGE)
def test_garbage_is_an_error_of_the_engine(twin, name):
    error, _ = failing(twin, [GARBAGE[name]], caisson.EngineError)
    assert str(error)


@TWINS
@pytest.mark.parametrize('line', [b'{}', b'[]', b'{"type": 3}', b'no JSON', b'{"type": "stdout", "text": 5}', b'{"type": "stdout", "text": "", "base64": "%"}'])
def test_garbage_in_a_stream_is_an_error(twin, line):
    with RawServer([STREAM + chunk(line + b'\n') + b'0\r\n\r\n', answer(b'')]) as server:
        with pytest.raises(caisson.EngineError) as caught:
            twin(server.url, retries=0).stream('x')
        assert caught.value.code == 'bad_answer' and not caught.value.retryable


@TWINS
def test_an_end_without_a_record_is_asked_for(twin):
    with RawServer([events(START, {'type': 'end', 'record': None}), record(stdout='long')]) as server:
        assert twin(server.url).stream('x')[1].stdout == 'long'
        assert server.lines() == ['POST /v1/runs', 'GET /v1/runs/run_1']


@TWINS
@pytest.mark.parametrize('value', [3, [], {'id': 'x'}])
def test_an_end_with_a_record_that_is_none_is_an_error(twin, value):
    error, _ = failing(twin, [events(START, {'type': 'end', 'record': value})], caisson.EngineError, lambda one: one.stream('x'))
    assert error.code == 'bad_answer'


def test_a_line_without_an_end_has_a_limit(monkeypatch):
    monkeypatch.setattr(async_transport, 'LINE_MAX', 1000)
    error, _ = failing(Async, [STREAM + chunk(b'x' * 2000) + b'0\r\n\r\n', answer(b'')], caisson.EngineError, lambda one: one.stream('x'))
    assert '1000' in str(error)


def test_a_head_has_a_limit():
    error, _ = failing(Async, [b'HTTP/1.1 200 OK\r\nX: ' + b'y' * 200_000], caisson.EngineError)
    assert str(async_transport.HEAD_MAX) in str(error)


# ---- time ----

@TWINS
@pytest.mark.parametrize('entry', [hang, lambda one: (one.send(b'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n'), hang(one)),
                                   lambda one: (one.send(events(START, end=False)), hang(one))], ids=['no head', 'no body', 'no event'])
def test_a_server_that_hangs_is_a_timeout(twin, entry):
    began = time.monotonic()
    error, _ = failing(twin, [entry], caisson.TimedOut, lambda one: one.call('run', 'x', on_stdout=print), timeout=0.3)
    assert time.monotonic() - began < 5 and error.retryable


@TWINS
def test_a_slow_answer_is_no_timeout(twin):
    data = record(stdout='é', feedback=['x' * 200])
    begin = data.index(b'{')
    with RawServer([drip(data, 0.004, begin)]) as server:
        assert twin(server.url, timeout=0.8).call('run', 'x').stdout == 'é'
    assert (len(data) - begin) * 0.004 > 0.8


@TWINS
def test_unicode_that_is_split_between_packets_stays_whole(twin):
    with RawServer([drip(events(START, {'type': 'stdout', 'text': 'aé😀𝄞'}, END), 0.001)]) as server:
        got, _ = twin(server.url).stream('x')
        assert ''.join(event.text for event in got) == 'aé😀𝄞'


@TWINS
def test_bytes_of_an_event_are_exact(twin):
    with RawServer([events(START, {'type': 'stdout', 'text': 'a\ufffd', 'base64': 'Yf8='}, END)]) as server:
        assert [event.content for event in twin(server.url).stream('x')[0] if event.type == 'stdout'] == [b'a\xff']


@TWINS
def test_ten_megabytes_of_output_come_whole(twin):
    text = 'é' * (5 << 20)
    with RawServer([events(START, *[{'type': 'stdout', 'text': text[:1 << 20]}] * 5, {'type': 'end', 'record': {**RECORD, 'stdout': text}})]) as server:
        got, run = twin(server.url).stream('x')
        assert sum(len(event.content) for event in got) == 10 << 20 and run.stdout == text


# ---- connections that end ----

@TWINS
@pytest.mark.parametrize('entry', [CLOSE, b'HTTP/1.1 200 OK\r\nContent-Le', answer(b'{"status": "completed"}')[:-3]], ids=['at once', 'in the head', 'in the body'])
def test_a_connection_that_ends_is_unreachable_and_the_run_is_not_sent_twice(twin, entry):
    error, server = failing(twin, [entry], caisson.Unreachable, retries=3)
    assert error.retryable and len(server.requests) == 1


@TWINS
def test_a_get_is_sent_again(twin):
    with RawServer([CLOSE, CLOSE, answer(b'{"status": "ready"}')]) as server:
        assert twin(server.url).call('health') == {'status': 'ready'}


@TWINS
def test_a_stream_goes_on_after_the_last_event(twin):
    script = [events(START, {'type': 'stdout', 'text': 'a'}, end=False), events({'type': 'lost', 'events': 3}, {'type': 'stdout', 'text': 'b'}, end=False),
              CLOSE, events(END)]
    with RawServer(script) as server:
        got, run = twin(server.url).stream('x')
        assert ([event.text for event in got if event.type == 'stdout'], run.status) == (['a', 'b'], 'completed')
        assert server.lines() == ['POST /v1/runs', 'GET /v1/runs/run_1/events?after=2', 'GET /v1/runs/run_1/events?after=6',
                                  'GET /v1/runs/run_1/events?after=6']


@TWINS
def test_a_stream_that_is_lost_is_given_up_and_ended(twin):
    with RawServer([events(START, end=False), CLOSE, CLOSE, answer(b'', '204 No Content')]) as server:
        with pytest.raises(caisson.Unreachable):
            twin(server.url, retries=1).call('run', 'x', on_stdout=print)
        assert server.lines()[-1] == 'DELETE /v1/runs/run_1'


@TWINS
def test_a_record_instead_of_a_stream_is_the_result(twin):
    with RawServer([record(status='bad_request', error={'message': 'no'})]) as server:
        got, run = twin(server.url).stream('x')
        assert [event.type for event in got] == ['end'] and run.status == 'bad_request'


# ---- attempts ----

@TWINS
@pytest.mark.parametrize('status', [429, 503])
def test_a_run_that_was_refused_is_sent_again(twin, status):
    with RawServer([problem(status, 'capacity', Retry_After='0'), record()]) as server:
        assert twin(server.url).call('run', 'x').ok and len(server.requests) == 2
    with RawServer([problem(status, 'capacity', Retry_After='0'), events(START, END)]) as server:
        assert twin(server.url).stream('x')[1].ok and len(server.requests) == 2


@TWINS
def test_retry_after_is_waited_for(twin):
    with RawServer([problem(429, 'capacity', Retry_After='1'), record()]) as server:
        began = time.monotonic()
        assert twin(server.url).call('run', 'x').ok and time.monotonic() - began >= 1


@TWINS
def test_a_pause_of_an_hour_is_the_callers(twin):
    error, server = failing(twin, [problem(429, 'capacity', Retry_After='3600')], caisson.RateLimited, retries=5)
    assert error.retry_after == 3600 and len(server.requests) == 1


@TWINS
def test_a_date_in_retry_after_is_as_good_as_none(twin):
    error, _ = failing(twin, [problem(429, 'capacity', Retry_After='Wed, 21 Oct 2026 07:28:00 GMT')], caisson.RateLimited)
    assert error.retry_after is None


@TWINS
@pytest.mark.parametrize('status, kind', [(401, caisson.AuthError), (403, caisson.AuthError), (404, caisson.NotFound), (410, caisson.NotFound),
                                          (422, caisson.InvalidRequest), (413, caisson.InvalidRequest), (500, caisson.EngineError)])
def test_each_status_has_its_exception(twin, status, kind):
    error, server = failing(twin, [problem(status, 'some_code')], kind, retries=3)
    assert (error.status, error.code, len(server.requests)) == (status, 'some_code', 1)


@TWINS
def test_a_redirect_is_not_followed(twin):
    for use in (lambda one: one.call('run', 'x'), lambda one: one.stream('x')):
        error, server = failing(twin, [answer(b'', '301 Moved', Location='https://elsewhere.example/')], caisson.EngineError, use, retries=3)
        assert 'https://elsewhere.example/' in str(error) and len(server.requests) == 1


@TWINS
@pytest.mark.parametrize('location', ['http://elsewhere.example/v1/runs/run_1', '//elsewhere.example/v1/runs/run_1', '/etc/passwd', '/v1/runs/a b', ''])
def test_a_location_that_is_no_path_of_the_interface_is_not_used(twin, location):
    stream = events(START, {'type': 'stdout', 'text': 'a'}, end=False).replace(b'/v1/runs/run_1', location.encode(), 1)
    with RawServer([stream]) as server:
        with pytest.raises(caisson.Unreachable):
            twin(server.url, retries=2).stream('x')
        assert len(server.requests) == 1


@TWINS
def test_a_long_program_is_read_by_events(twin):
    with RawServer([events(START, END)]) as server:
        assert twin(server.url, timeout=10).call('run', 'x', timeout=6).ok and 'application/x-ndjson' in server.requests[0].head
    with RawServer([record()]) as server:
        assert twin(server.url, timeout=10).call('run', 'x', timeout=4).ok and 'application/x-ndjson' not in server.requests[0].head


@TWINS
def test_a_key_with_a_line_feed_is_not_sent(twin):
    with RawServer([record()]) as server:
        with pytest.raises(ValueError):
            twin(server.url, 'csn_x\r\nX-Other: 1').call('run', 'x')
        assert not server.requests


@TWINS
def test_no_server_is_unreachable(twin):
    with socket.create_server(('127.0.0.1', 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(caisson.Unreachable) as caught:
        twin(f'http://127.0.0.1:{port}', retries=0).call('health')
    assert caught.value.code == 'not_connected'


@pytest.mark.parametrize('field, options', [('retries', {'retries': -1}), ('timeout', {'timeout': 0})])
def test_options_out_of_range_are_refused(field, options):
    for kind in (caisson.Client, caisson.AsyncClient):
        with pytest.raises(caisson.InvalidRequest) as caught:
            kind('http://127.0.0.1:1', **options)
        assert caught.value.field == field


# ---- many ----

def bulk(*answers):
    return answer(b''.join(json.dumps(one).encode() + b'\n' for one in answers), kind='application/x-ndjson')


def line(number, **more):
    return {'id': str(number), 'line': number + 1, 'record': {**RECORD, 'stdout': str(number), **more}}


@TWINS
def test_many_runs_come_in_order_or_as_they_end(twin):
    for ordered, wanted in ((True, [0, 1, 2]), (False, [2, 0, 1])):
        with RawServer([bulk(line(2), line(0), line(1))]) as server:
            runs = twin(server.url).list('run_many', ['a', 'b', {'code': 'c', 'language': 'bash'}], ordered=ordered)
            assert [run.index for run in runs] == wanted and [run.stdout for run in runs] == list(map(str, wanted))
            assert [json.loads(text)['language'] for text in server.requests[0].body.splitlines()] == ['python', 'python', 'bash']


@TWINS
def test_runs_that_found_no_room_are_sent_again_and_others_are_not(twin):
    full = {'id': '1', 'line': 2, 'error': {'code': 'capacity', 'message': 'full', 'retry_after_s': 0}}
    with RawServer([bulk(line(0), full), bulk(line(1))]) as server:
        assert [run.stdout for run in twin(server.url).list('run_many', ['a', 'b'])] == ['0', '1']
        assert len(server.requests) == 2
    with RawServer([bulk(line(0))]) as server:
        with pytest.raises(caisson.Unreachable):
            twin(server.url).list('run_many', ['a', 'b'])
        assert len(server.requests) == 1


@TWINS
def test_a_line_that_is_wrong_is_a_result(twin):
    with RawServer([bulk({'id': '0', 'line': 1, 'error': {'code': 'bad_request', 'message': 'no', 'field': '/code'}})]) as server:
        run, = twin(server.url).list('run_many', [{'code': 5}])
        assert (run.status, run.error['field'], run.why()) == ('bad_request', '/code', ['no'])


@TWINS
@pytest.mark.parametrize('reply', [b'[]\n', b'{"id": "0"}\n', b'{"id": "0", "record": 5}\n', b'{"id": 0, "record": {}}\n', b'x\n'])
def test_garbage_in_a_batch_is_an_error(twin, reply):
    error, _ = failing(twin, [answer(reply, kind='application/x-ndjson')], caisson.EngineError, lambda one: one.list('run_many', ['a']))
    assert error.code == 'bad_answer'


@TWINS
def test_ids_that_were_not_sent_are_left_out(twin):
    with RawServer([bulk(line(7), {'id': '-1'}, {'id': '9' * 30}, {'id': '²'}, line(0))]) as server:
        assert [run.stdout for run in twin(server.url).list('run_many', ['a'])] == ['0']


@TWINS
def test_concurrency_bounds_the_runs_that_go_on(twin):
    going, most, lock = [0], [0], threading.Lock()

    def slow(connection):
        with lock:
            going[0] += 1
            most[0] = max(most[0], going[0])
        time.sleep(0.05)
        with lock:
            going[0] -= 1
        connection.send(record(stdout=json.loads(connection.body)['code']))
    with RawServer([slow]) as server:
        runs = twin(server.url).list('run_many', (str(number) for number in range(12)), concurrency=3)
        assert [run.stdout for run in runs] == [str(number) for number in range(12)] and most[0] == 3
    for bad in (0, -1):
        with pytest.raises(caisson.InvalidRequest):
            twin('http://127.0.0.1:1').list('run_many', [], concurrency=bad)


@TWINS
def test_a_batch_takes_no_tools(twin):
    for fields in ({'tools': [print]}, {'download': ['*']}):
        with pytest.raises(caisson.InvalidRequest):
            twin('http://127.0.0.1:1').list('run_many', [{'code': 'x', **fields}])


# ---- asyncio ----

def run_async(function):
    return asyncio.run(function(), debug=True)


def test_a_call_that_is_cancelled_before_the_head_ends_the_run():
    """A run whose events are read goes on without its client, so the client waits for its id."""
    def late(connection):
        time.sleep(0.3)
        connection.send(events(START, end=False))
        hang(connection)

    async def cancel():
        with RawServer([late, answer(b'', '204 No Content')]) as server:
            task = asyncio.ensure_future(caisson.AsyncClient(server.url).run('x', on_stdout=print))
            while not server.requests:
                await asyncio.sleep(0.01)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert server.lines() == ['POST /v1/runs', 'DELETE /v1/runs/run_1']
    run_async(cancel)


def test_a_plain_call_that_is_cancelled_ends_its_connection():
    ended = threading.Event()

    def wait(connection):
        if connection.wait_for_end():
            ended.set()

    async def cancel():
        with RawServer([wait]) as server:
            task = asyncio.ensure_future(caisson.AsyncClient(server.url).run('x'))
            while not server.requests:
                await asyncio.sleep(0.01)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert await asyncio.get_running_loop().run_in_executor(None, ended.wait, 10)
    run_async(cancel)


def test_no_thread_waits_for_runs():
    async def count():
        with RawServer([lambda one: (time.sleep(0.3), one.send(record()))]) as server:
            client = caisson.AsyncClient(server.url)
            before = {thread.name for thread in threading.enumerate() if thread.name.startswith('caisson')}
            tasks = [asyncio.ensure_future(client.run('x')) for _ in range(20)]
            while len(server.requests) < 20:
                await asyncio.sleep(0.01)
            assert {thread.name for thread in threading.enumerate() if thread.name.startswith('caisson')} == before
            assert all(run.ok for run in await asyncio.gather(*tasks))
    run_async(count)


def test_a_callback_that_fails_ends_the_run():
    def fail(_):
        raise KeyError('mine')
    for twin in (Sync, Async):
        with RawServer([lambda one: (one.send(events(START, {'type': 'stdout', 'text': 'a'}, end=False)), hang(one)), answer(b'', '204 No Content')]) as server:
            with pytest.raises(KeyError):
                twin(server.url).call('run', 'x', on_stdout=fail)
            assert server.lines() == ['POST /v1/runs', 'DELETE /v1/runs/run_1']


def test_an_asynchronous_callback_is_awaited():
    got = []

    async def take(text):
        await asyncio.sleep(0)
        got.append(text)
    with RawServer([events(START, {'type': 'stdout', 'text': 'a'}, {'type': 'stderr', 'text': 'b'}, END)]) as server:
        assert Async(server.url).call('run', 'x', on_stdout=take, on_stderr=take).ok and got == ['a', 'b']


# ---- tools ----

def tool_call(name='add', **arguments):
    return {'type': 'tool_call', 'call': 'call_1', 'tool': name, 'arguments': arguments}


def answered(twin, event, functions, **fields):
    """What the client answers to an event."""
    taken = threading.Event()

    def stream(connection):
        connection.send(events(START, event, end=False))
        taken.wait(20)
        connection.send(chunk(json.dumps(END).encode() + b'\n') + b'0\r\n\r\n')

    def take(connection):
        connection.send(answer(b'{"taken": 1, "errors": []}'))
        taken.set()
    with RawServer([stream, take]) as server:
        twin(server.url).call('run', 'x', tools=functions, **fields)
        assert server.lines() == ['POST /v1/runs', 'POST /v1/runs/run_1/tool-results']
        result, = json.loads(server.requests[1].body)['results']
        assert result.pop('call') == 'call_1'
        return result


def add(a: int, b: int = 1) -> int:
    """Add."""
    return a + b


async def later(a: int) -> int:
    """Asynchronous."""
    await asyncio.sleep(0)
    return a


def broken() -> None:
    raise KeyError('x' * 10_000)


def opaque() -> object:
    return object()


def nan() -> float:
    return float('nan')


@TWINS
@pytest.mark.parametrize('event, wanted', [
    (tool_call(a=1, b=2), {'result': 3}), (tool_call(a=1), {'result': 2}), (tool_call('nothing'), 'no tool nothing'), (tool_call(a='x'), 'TypeError'),
    (tool_call(c=1), 'TypeError'), (tool_call('broken'), 'KeyError'), (tool_call('opaque'), 'no JSON'), (tool_call('nan'), 'no JSON'),
    ({**tool_call(), 'arguments': [1]}, 'TypeError')])
def test_a_call_is_answered_with_a_result_or_an_error(twin, event, wanted):
    result = answered(twin, event, [add, broken, opaque, nan])
    if isinstance(wanted, dict):
        assert result == wanted
    else:
        assert wanted in result['error'] and len(result['error']) <= tools.ERROR_MAX


def test_a_tool_may_be_asynchronous():
    assert answered(Async, tool_call('later', a=4), [later]) == {'result': 4}


@TWINS
@pytest.mark.parametrize('approve, wanted', [
    (lambda tool, arguments: tool == 'rm' and arguments == {'path': '/'}, {'approve': True}), (lambda *_: False, {'approve': False}),
    (lambda *_: 'not now', {'approve': False, 'error': 'not now'}), (None, {'approve': False, 'error': 'this client approves no calls'})])
def test_approvals_are_asked_of_the_caller(twin, approve, wanted):
    event = {'type': 'approval', 'call': 'call_1', 'tool': 'rm', 'arguments': {'path': '/'}}
    assert answered(twin, event, [add], approve=approve) == wanted
