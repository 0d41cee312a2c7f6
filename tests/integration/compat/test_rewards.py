"""Reward URLs of slime and OpenRLHF: a number or a list of numbers, and no number without a verdict."""

import json
import signal
import threading
from contextlib import closing

import pytest

from daemon import until
from keys import Keys, bearer
from web import Web

PROBLEM = {'function': 'f', 'cases': [{'args': [2], 'expected': 4}, {'args': [3], 'expected': 9}]}
GOOD = 'Here it is:\n```python\ndef f(x):\n    return x * x\n```\nDone.'
HALF = '```python\ndef f(x):\n    return 4\n```'
SLOW = '```python\nimport time\ntime.sleep(100)\ndef f(x):\n    return x\n```'
BAD_CHECKER = {'cases': [{'stdin': '1', 'expected_stdout': '1'}], 'checker': {'kind': 'testlib', 'language': 'python', 'code': 'import sys; sys.exit(3)'}}
NO_LANGUAGE = {'language': 'cobol', 'cases': [{'stdin': '1', 'expected_stdout': '1'}]}


@pytest.fixture(name='web', scope='module')
def running(tmp_path_factory):
    web = Web(tmp_path_factory.mktemp('rewards'))
    yield web
    assert web.daemon.stop(signal.SIGTERM) == 0


def slime(web, response, label, query='', **more):
    return web.ask('POST', '/reward/slime' + query, {'prompt': 'Square it.', 'response': response, 'label': label}, **more)


def openrlhf(web, queries, labels, query='', prompts=None, **more):
    return web.ask('POST', '/reward/openrlhf' + query, {'query': queries, 'prompts': prompts or [''] * len(queries), 'labels': labels, **more})


# ---- slime ----

@pytest.mark.parametrize('label', [PROBLEM, json.dumps(PROBLEM), '\n ' + json.dumps(PROBLEM)], ids=['object', 'text', 'blanks'])
@pytest.mark.parametrize('response, reward', [(GOOD, 1), (HALF, 0), ('I do not know.', 0), ('', 0), ('```python\ndef f(:\n```', 0)])
def test_the_reward_of_an_answer_is_a_number(web, label, response, reward):
    status, headers, answer = slime(web, response, label)
    assert status == 200 and headers['Content-Type'] == 'application/json'
    assert isinstance(answer, (int, float)) and not isinstance(answer, bool) and answer == reward


def test_the_part_that_has_passed(web):
    assert slime(web, HALF, PROBLEM, '?reward=partial')[2] == 0.5
    assert slime(web, GOOD, PROBLEM, '?reward=partial')[2] == 1
    assert slime(web, HALF, PROBLEM, '?reward=binary')[2] == 0


def test_the_query_says_how_the_answer_is_read_and_compared(web):
    label = {'cases': [{'stdin': '', 'expected_stdout': '1 2'}]}
    text = '```python\nprint("1")\nprint("2")\n```'
    assert slime(web, text, label)[2] == 0 and slime(web, text, label, '?compare=tokens')[2] == 1
    assert slime(web, 'print("1 2")', label)[2] == 0 and slime(web, 'print("1 2")', label, '?extract=none')[2] == 1


def test_an_answer_with_the_submission_of_the_label_is_not_graded_by_it(web):
    assert slime(web, HALF, {**PROBLEM, 'code': 'def f(x): return x * x'})[2] == 0


@pytest.mark.parametrize('label, words', [
    (None, 'label'), (7, 'label'), ([], 'label'), ('', 'SET/ID'), ('nothing', 'SET/ID'), ('{', 'JSON'), ('{"a": 1, "a": 2}', 'JSON'), ('[1]', 'SET/ID'),
    ('none/here', 'none'), ({'function': 'f', 'casess': []}, 'casess'), ({'cases': [{'args': [1], 'expected': 1}]}, 'function'), ({'cases': 7}, 'cases'),
    ({**PROBLEM, 'setup': '1/0'}, 'set-up')])
def test_a_label_that_is_no_problem_is_an_error_of_the_label(web, label, words):
    status, _, problem = slime(web, GOOD, label)
    assert status == 400 and problem['field'].startswith('/label') and words in problem['detail'], problem


@pytest.mark.parametrize('body, field', [({'prompt': '', 'label': {}}, '/response'), ({'prompt': '', 'response': 1, 'label': {}}, '/response'), ({'response': ''}, '/label')])
def test_members_that_are_missing_or_wrong(web, body, field):
    status, _, problem = web.ask('POST', '/reward/slime', body)
    assert status == 400 and problem['field'] == field, problem


@pytest.mark.parametrize('query, field', [('?format=nothing', 'format'), ('?extract=x', 'extract'), ('?prelude=x', 'prelude'), ('?compare=x', 'compare'), ('?instance=x', 'instance'), ('?reward=x', 'reward'), ('?other=1', 'other')])
def test_a_query_that_is_wrong(web, query, field):
    status, _, problem = slime(web, GOOD, PROBLEM, query)
    assert status in (400, 422) and field in problem.get('field', '') + problem['detail'], problem


@pytest.mark.parametrize('path', ['/reward/slime', '/reward/openrlhf'])
@pytest.mark.parametrize('body', [b'', b'{', b'[]', b'7', b'[' * 100000, b'{"a":' + b'[' * 200 + b']' * 200 + b'}', b'\xff\xfe'])
def test_hostile_bodies(web, path, body):
    status, _, problem = web.ask('POST', path, body)
    assert status == 400 and problem['code'] == 'bad_request', problem


# ---- no verdict, no number ----

def test_a_grading_without_a_verdict_is_503_and_no_number(web):
    status, headers, problem = slime(web, GOOD, NO_LANGUAGE)
    assert status == 503 and headers['Retry-After'] == '1' and headers['Content-Type'] == 'application/problem+json'
    assert problem['retryable'] and 'unsupported_language' in problem['detail'], problem


def test_a_checker_that_fails_gives_no_number(web):
    status, headers, problem = slime(web, '```python\nprint(1)\n```', BAD_CHECKER)
    assert status == 503 and headers['Retry-After'] == '1' and 'checker_failed' in problem['detail'], problem


def test_one_sample_without_a_verdict_takes_the_batch(web):
    status, headers, problem = openrlhf(web, [GOOD, GOOD, GOOD], [PROBLEM, NO_LANGUAGE, PROBLEM])
    assert status == 503 and headers['Retry-After'] == '1' and 'sample 1' in problem['detail'] and 'rewards' not in problem, problem
    until(lambda: not [run for run in web.runs() if run['owner'] != 'judge'])


def test_a_daemon_that_ends_gives_no_number(tmp_path):
    web = Web(tmp_path, '--set', 'engine.shutdown_ms=1s')
    answers = []
    thread = threading.Thread(target=lambda: answers.append(slime(web, SLOW, {**PROBLEM, 'limits': {'wall_ms': 60000}})))
    thread.start()
    until(web.runs)
    assert web.daemon.stop(signal.SIGTERM) == 0
    thread.join()
    assert answers[0][0] == 503 and answers[0][1]['Retry-After'] == '1' and 'cancelled' in answers[0][2]['detail'], answers


# ---- OpenRLHF ----

def test_rewards_are_in_the_order_of_the_samples(web):
    texts = [GOOD if n % 3 else HALF for n in range(150)]
    status, _, answer = openrlhf(web, texts, [json.dumps(PROBLEM)] * 150)
    assert status == 200 and answer == {'rewards': [1 if n % 3 else 0 for n in range(150)]}


def test_no_samples_are_no_rewards(web):
    assert openrlhf(web, [], [])[2] == {'rewards': []}


def test_the_answer_is_what_follows_the_prompt(web):
    prompt = 'Example:\n```python\ndef f(x):\n    return x * x\n```\nNow you.'
    assert openrlhf(web, [prompt + 'I cannot.'], [PROBLEM], prompts=[prompt])[2] == {'rewards': [0]}
    assert openrlhf(web, [prompt + GOOD], [PROBLEM], prompts=[prompt])[2] == {'rewards': [1]}
    assert openrlhf(web, [prompt + 'I cannot.'], [PROBLEM], prompts=['Another.'])[2] == {'rewards': [1]}


def test_metas_may_be_there(web):
    assert openrlhf(web, [GOOD], [PROBLEM], metas=[{'a': 1}])[2] == {'rewards': [1]}
    assert openrlhf(web, [GOOD], [PROBLEM], metas=None)[2] == {'rewards': [1]}


@pytest.mark.parametrize('body, field', [
    ({}, '/query'), ({'query': 'a', 'prompts': [], 'labels': []}, '/query'), ({'query': ['a'], 'prompts': [], 'labels': ['a/b']}, '/prompts'),
    ({'query': ['a'], 'prompts': [''], 'labels': []}, '/labels'), ({'query': ['a'], 'prompts': [''], 'labels': [{}], 'metas': []}, '/metas'),
    ({'query': [1], 'prompts': [''], 'labels': [{}]}, '/query/0'), ({'query': ['a', 'b'], 'prompts': ['', ''], 'labels': [{}, 5]}, '/labels/1'),
    ({'query': ['a'] * 4097, 'prompts': [''] * 4097, 'labels': [PROBLEM] * 4097}, '/query')])
def test_lists_that_are_wrong(web, body, field):
    status, _, problem = web.ask('POST', '/reward/openrlhf', body)
    assert status == 400 and problem['field'] == field, problem


def test_a_label_of_a_batch_is_named(web):
    status, _, problem = openrlhf(web, [GOOD] * 3, [PROBLEM, PROBLEM, {**PROBLEM, 'casess': 1}])
    assert status == 400 and problem['field'] == '/labels/2/casess', problem


# ---- who asks ----

def test_a_client_that_goes_is_graded_no_further(web):
    connection = web.open()
    connection.request('POST', '/reward/openrlhf', json.dumps({'query': [SLOW] * 5, 'prompts': [''] * 5, 'labels': [PROBLEM] * 5}))
    until(lambda: [run for run in web.runs() if run['owner'] != 'judge'])
    connection.close()
    until(lambda: not [run for run in web.runs() if run['owner'] != 'judge'])


def test_long_bodies(web):
    """A label of megabytes: a helper thread parses it."""
    cases = [{'args': [n], 'expected': n * n, 'name': 'x' * 500} for n in range(4000)]
    with closing(web.open(600)) as connection:
        connection.request('POST', '/reward/slime', json.dumps({'prompt': '', 'response': GOOD, 'label': json.dumps({'function': 'f', 'cases': cases})}))
        answer = connection.getresponse()
        assert (answer.status, json.load(answer)) == (200, 1)


def test_keys_and_quotas(tmp_path):
    keys = Keys(tmp_path)
    run, read = keys.make('run', '--tenant', 'a', '--scopes', 'run'), keys.make('read', '--tenant', 'a', '--scopes', 'read')
    few = keys.make('few', '--tenant', 'b', '--scopes', 'run', '--running', '1', '--queued', '200')
    web = Web(tmp_path, keyless=False)
    assert slime(web, GOOD, PROBLEM)[0] == 401
    assert slime(web, GOOD, PROBLEM, **bearer(read))[0] == 403
    assert slime(web, GOOD, PROBLEM, **bearer(run))[2] == 1
    assert openrlhf(web.with_key(few), [GOOD] * 20, [PROBLEM] * 20)[2] == {'rewards': [1] * 20}
    assert web.daemon.stop(signal.SIGTERM) == 0
