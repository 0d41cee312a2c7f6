"""Gradings with long messages: helper threads make and parse them, and the verdicts are whole."""

import contextlib
import http.client
import json
import signal
import threading

import pytest

from daemon import until
from grading import statuses
from steps import Probed, steps_of

CASES = 10_000
SETTINGS = ('--set', 'ceilings.memory_bytes=4GiB')


@pytest.fixture(name='place', scope='module')
def probed(tmp_path_factory):
    with Probed(tmp_path_factory.mktemp('long'), *SETTINGS) as web:
        web.ask('POST', '/v1/grade', {'code': 'def f(x):\n    return x\n', 'function': 'f', 'cases': [{'args': [1], 'expected': 1}]})
        yield web


def graded(place, request, **found):
    """The long steps of grading the request; the result has these members."""
    def work():
        answer = place.ask('POST', '/v1/grade', request)
        assert answer[0] == 200, answer
        assert {name: answer[2].get(name) for name in found} == found, str(answer[2])[:2000]
        results.append(answer[2])
    results = []
    steps_of(place, work)
    return results[-1]


def test_many_cases(place):
    cases = [{'args': [number], 'expected': number * 2 + (number == CASES - 1)} for number in range(CASES)]
    result = graded(place, {'code': 'def f(x):\n    return x * 2\n', 'function': 'f', 'cases': cases}, passed=CASES - 1, all_passed=False)
    assert statuses(result)[-2:] == ['passed', 'failed']


@pytest.mark.parametrize('language, code', [('python', 'def f(text):\n    return text + "x"\n'), ('javascript', 'function f(text) { return text + "x"; }\n')])
def test_cases_with_long_arguments(place, language, code):
    text = 'ä' * 1_000_000
    cases = [{'args': [text], 'expected': text + 'x'}, {'args': [text], 'expected': text}]
    result = graded(place, {'language': language, 'code': code, 'function': 'f', 'cases': cases}, passed=1)
    assert statuses(result) == ['passed', 'failed']


def test_many_values_for_the_judge(place):
    cases = [{'args': [number], 'expected': str(number) * 1000} for number in range(1000, 1500)]
    graded(place, {'code': 'def f(x):\n    return str(x) * 1000\n', 'function': 'f', 'cases': cases}, all_passed=True)


def test_a_long_result(place):
    """The text of each value is near the longest that the channel takes."""
    code = 'def f(x):\n    return [x] * 2_000_000\n'
    result = graded(place, {'code': code, 'function': 'f', 'cases': [{'args': [1], 'expected': 1}] * 4, 'case_cpu_ms': 20000,
                            'limits': {'memory_bytes': 2 << 30}}, passed=0)
    assert statuses(result) == ['failed'] * 4


def test_long_results_and_the_submission_ends(place):
    """The end of the run comes while its last result is parsed."""
    code = 'import os\ndef f(x):\n    if x == 3:\n        os.kill(os.getppid(), 9)\n    return "y" * 4_000_000\n'
    result = graded(place, {'code': code, 'function': 'f', 'cases': [{'args': [number], 'expected': 'y' * 4_000_000} for number in range(5)],
                            'case_cpu_ms': 20000, 'limits': {'memory_bytes': 2 << 30}}, passed=4)
    assert statuses(result)[:3] == ['passed'] * 3 and statuses(result)[4] == 'passed'


@pytest.mark.parametrize('test_code', [{}, {'shared_process': True}])
def test_long_test_code(place, test_code):
    text = '# ' + 'x' * 900_000 + '\n'
    request = {'code': text + 'def f(x):\n    return x\n', 'setup': text, 'tests': text + 'def test_one():\n    assert f(1) == 1\n', 'entry_point': 'f'}
    graded(place, {**request, **test_code}, all_passed=True)


FORGED = """
import json, os, socket, struct
def send(text):
    for fd in range(3, 64):
        try:
            one = socket.socket(fileno=os.dup(fd))
        except OSError:
            continue
        if one.type != socket.SOCK_SEQPACKET:
            continue
        at, most = 0, 60000
        while at < len(text):
            part = text[at:at + most]
            at += most
            one.send(b'CSN1' + bytes([{kind}, 1 if at < len(text) else 0, 0, 0]) + struct.pack('<I', len(part)) + part)
def f(x):
    send(b'E{{"op": "result", "i": 0, "how": "value", "value": "1", "signs": [' + b'{{}},' * 1_000_000 + b'{{}}]}}')
    return x
"""


def test_a_message_with_many_parts_is_refused(place):
    """What a submission writes to its channel costs no more than a message of the runner."""
    code = FORGED.format(kind=10)
    request = {'code': code, 'function': 'f', 'cases': [{'args': [1], 'expected': 1}], 'limits': {'memory_bytes': 1 << 30}}
    result = graded(place, request)
    assert len(statuses(result)) == 1


@pytest.mark.parametrize('after', [0.02, 0.05, 0.1, 0.2, 0.4])
def test_the_client_goes_while_messages_are_made(place, after):
    text = 'x' * 500_000
    request = {'code': 'def f(x):\n    return x\n', 'function': 'f', 'cases': [{'args': [text], 'expected': text}] * 8}

    def work():
        with contextlib.closing(place.open(after)) as connection, contextlib.suppress(OSError):
            connection.request('POST', '/v1/grade', json.dumps(request), {'Content-Type': 'application/json'})
            connection.getresponse()
        until(lambda: not [run for run in place.runs() if run['owner'] != 'judge'])
    steps_of(place, work)


def test_the_daemon_ends_while_messages_are_made(tmp_path):
    text = 'x' * 500_000
    request = {'code': 'def f(x):\n    return x\n', 'function': 'f', 'cases': [{'args': [text], 'expected': text}] * 8}
    with Probed(tmp_path, '--set', 'engine.shutdown_ms=0') as web:
        def ask():
            with contextlib.suppress(OSError, http.client.HTTPException):
                web.ask('POST', '/v1/grade', request)
        threads = [threading.Thread(target=ask) for _ in range(4)]
        for thread in threads:
            thread.start()
        until(web.runs)
        assert web.daemon.stop(signal.SIGTERM) == 0
        web.stopped = 0
        for thread in threads:
            thread.join()


def test_long_lines_of_a_bulk_answer(place):
    """Helper threads write long answers to the file; each is whole, and the short ones between are."""
    texts = [chr(97 + number) * (4_000_000 if number % 2 else 10) for number in range(8)]
    lines = ''.join(json.dumps({'id': number, 'language': 'python', 'code': f'print({text[0]!r} * {len(text)}, end="")', 'limits': {'output_bytes': 5_000_000}}) + '\n'
                    for number, text in enumerate(texts))

    def work():
        answer = place.stream_raw('POST', '/v1/runs/bulk', lines.encode(), **{'Content-Type': 'application/x-ndjson'})
        found = {one['id']: one['record']['stdout'] for one in map(json.loads, answer.read().splitlines())}
        assert found == dict(enumerate(texts))
    steps_of(place, work)
