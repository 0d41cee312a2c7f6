"""What reviews use: sums that are exact under load, budgets of keys, and reviews with and without a daemon (U-26, S0-11)."""

import concurrent.futures
import json
import re
import signal
import sqlite3

import pytest

from cli import caisson
from daemon import Daemon, until
from keys import Keys, bearer
from model_server import SECURE, ModelServer
from web import Web

PRICES = {'mode': 'required', 'price.input': '1000', 'price.output': '2000'}     # USD per million tokens: 10^6 and 2 * 10^6 nano-dollars each
ONE = {'prompt_tokens': 1, 'completion_tokens': 1, 'total_tokens': 2}


def say_one(_, handler):
    handler.say(SECURE, usage=ONE)


class Place(Keys):
    """A daemon with keys, and the server that it asks."""

    def __init__(self, folder, script=(say_one,), **settings):
        super().__init__(folder)
        self.key = self.make('a', '--tenant', 'alice', '--scopes', 'run,read,admin')
        self.server = ModelServer(script)
        self.options = self.server.settings(**{**PRICES, **settings})
        self.web = None

    def __enter__(self):
        self.server.__enter__()
        self.web = Web(self.folder, *self.options, keyless=False)
        return self

    def __exit__(self, *_):
        self.server.__exit__()
        assert self.web.daemon.stop(signal.SIGTERM) == 0

    def run(self, code, key=None, **more):
        return self.web.ask('POST', '/v1/runs', {'language': 'bash', 'code': code, **more}, **bearer(key or self.key))[2]

    def usage(self, query=''):
        status, _, answer = self.web.ask('GET', '/v1/usage' + query, **bearer(self.key))
        assert status == 200, answer
        return answer

    def metric(self, name):
        text = self.web.ask('GET', '/metrics', **bearer(self.key))[2].decode()
        return float(re.search(rf'^{re.escape(name)} (\S+)$', text, flags=re.M)[1])


def stats(folder):
    done = caisson('stats', '--json', '--set', f'engine.state_dir={folder}')
    assert done.status == 0, done.err
    return json.loads(done.out)


def test_a_hundred_reviews_add_up(tmp_path):
    """S0-64: 100 reviews at once of one token each way are exactly 100."""
    with Place(tmp_path) as place:
        with concurrent.futures.ThreadPoolExecutor(25) as pool:
            records = list(pool.map(lambda n: place.run(f': {n}'), range(100)))
        assert [record['status'] for record in records] == ['completed'] * 100
        assert all(record['review']['usage']['cost_nanousd'] == 3000000 for record in records)      # S0-60: of each call
        total = place.usage()['total']
        assert total == {'calls': 100, 'usage_missing': 0, 'prompt_tokens': 100, 'completion_tokens': 100, 'total_tokens': 200,
                         'cached_tokens': 0, 'reasoning_tokens': 0, 'cost_nanousd': 300000000, 'cost_usd': '0.300000000'}
        assert [(one['component'], one['calls']) for one in place.usage()['usage']] == [('CodeSecurityReviewer', 100)]
        assert [(one['model'], one['calls']) for one in place.usage('?by=model')['usage']] == [('stub', 100)]
        assert [(one['tenant'], one['key'], one['calls']) for one in place.usage('?by=key')['usage']] == [
            ('alice', place.key.split('_')[1], 100)]
        assert place.metric('caisson_review_calls_total{verdict="secure"}') == 100
        assert place.metric('caisson_review_tokens_total{kind="prompt"}') == 100
        assert place.metric('caisson_review_cost_nanousd_total') == 300000000
        assert place.metric('caisson_review_seconds_count') == 100
    report = caisson('stats', '--set', f'engine.state_dir={tmp_path}').out
    assert 'Total LLM Calls: 100\nTotal Tokens: 200\n  - Prompt Tokens: 100\n  - Completion Tokens: 100\nTotal Cost: $0.3000\n' in report


def test_a_verdict_of_the_cache_uses_nothing(tmp_path):
    with Place(tmp_path) as place:
        assert place.run(':')['review']['cached'] is False and place.run(':')['review']['cached'] is True
        assert place.usage()['total']['calls'] == 1
        assert place.metric('caisson_review_calls_total{verdict="secure"}') == 2 and place.metric('caisson_review_seconds_count') == 1


@pytest.mark.parametrize('answer', ['usage_null', 'usage_missing', 'usage_absurd'])
def test_a_server_without_usage_is_counted(tmp_path, answer):
    with Place(tmp_path, script=[answer]) as place:
        place.run(':')
        total = place.usage()['total']
        assert (total['calls'], total['usage_missing'], total['total_tokens'], total['cost_nanousd']) == (1, 1, 0, 0)
        assert place.metric('caisson_review_usage_missing_total') == 1


def test_a_review_that_was_given_up_is_counted(tmp_path):
    """A run that is cancelled while its review goes on: the request was sent, and its report is not known."""
    with Place(tmp_path, script=['slow']) as place:
        status, headers, _ = place.web.ask('POST', '/v1/runs', {'language': 'bash', 'code': ':'}, Prefer='respond-async', **bearer(place.key))
        assert status == 202
        until(lambda: place.server.requests)
        assert place.web.ask('DELETE', headers['Location'], **bearer(place.key))[0] == 202
        until(lambda: place.usage()['total']['calls'])
        total = place.usage()['total']
        assert (total['calls'], total['usage_missing'], total['cost_nanousd']) == (1, 1, 0)


def test_a_budget_ends_the_reviews_of_a_key(tmp_path):
    """U-26: one key at its budget, the other keys of the tenant not, and a reset begins anew."""
    with Place(tmp_path) as place:
        poor = place.make('poor', '--tenant', 'alice', '--scopes', 'run', '--review-budget', '0.006')
        assert [place.run(f': {n}', poor)['status'] for n in range(2)] == ['completed'] * 2
        record = place.run(': 2', poor)
        assert record['status'] == 'blocked' and record['error']['code'] == 'review_budget_exhausted'
        assert record['error']['retryable'] is False and record['review']['verdict'] == 'unavailable'
        assert record['review']['error'].startswith('review_budget_exhausted') and len(place.server.requests) == 2
        assert place.run(': 3')['status'] == 'completed'
        graded = place.web.ask('POST', '/v1/grade', {'code': 'f = abs', 'function': 'f', 'cases': [{'args': [-1], 'expected': 1}]}, **bearer(poor))[2]
        assert graded['status'] == 'blocked' and graded['error']['code'] == 'review_budget_exhausted'
        assert place.web.ask('POST', '/v1/usage/reset', **bearer(place.key))[0] == 204
        assert place.run(': 4', poor)['status'] == 'completed'


def test_a_budget_warns_where_the_reviewer_advises(tmp_path):
    with Place(tmp_path, mode='advisory') as place:
        poor = place.make('poor', '--tenant', 'alice', '--scopes', 'run', '--review-budget', '0.000000001')
        assert place.run(':', poor)['status'] == 'completed'
        record = place.run(': 1', poor)
        assert record['status'] == 'completed' and [one['code'] for one in record['warnings']] == ['review_budget_exhausted']


def test_a_store_that_refuses_fails_no_run(tmp_path):
    """S0-65: a failed record of usage is a warning in the log, and the usage is written later."""
    with Place(tmp_path) as place:
        assert place.run(': 0')['status'] == 'completed'
        with sqlite3.connect(tmp_path / 'caisson.db') as db:
            db.execute('ALTER TABLE usage RENAME TO hidden')
        db.close()
        assert place.run(': 1')['status'] == 'completed'
        until(lambda: 'the usage is counted, and written later' in place.web.log.read_text())
        with sqlite3.connect(tmp_path / 'caisson.db') as db:
            db.execute('ALTER TABLE hidden RENAME TO usage')
        db.close()
        assert place.run(': 2')['status'] == 'completed'
        assert place.usage()['total']['calls'] == 3


def test_runs_without_a_daemon_are_counted(tmp_path):
    with ModelServer([say_one]) as server:
        for n in range(2):
            done = caisson('run', '-l', 'bash', '-c', f': {n}', *server.settings(**PRICES), '--set', f'engine.state_dir={tmp_path}')
            assert done.status == 0, done.err
    assert stats(tmp_path)['total']['calls'] == 2 and stats(tmp_path)['total']['cost_nanousd'] == 6000000


def test_a_daemon_without_http_counts(tmp_path):
    with ModelServer([say_one]) as server:
        daemon = Daemon(tmp_path, *server.settings(**PRICES)).ready()
        try:
            assert daemon.caisson('run', '-l', 'bash', '-c', ':').status == 0
        finally:
            assert daemon.stop(signal.SIGTERM) == 0
    assert stats(tmp_path / 'state')['total']['calls'] == 1
