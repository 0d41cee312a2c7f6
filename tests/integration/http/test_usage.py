"""Usage of models: caisson stats, /v1/usage and budgets of keys, over sums in the store."""

import datetime
import json
import signal
import sqlite3

import pytest

from keys import Keys, bearer
from web import Web

DAY = 86400
TODAY = int(datetime.datetime.now(datetime.timezone.utc).timestamp() // DAY)

# S0-63: kodeagent's report, to the letter
REPORT = '''\
LLM Usage Report
============================================================
Total LLM Calls: 5
Total Tokens: 1,234,811
  - Prompt Tokens: 1,234,211
  - Completion Tokens: 600
Total Cost: $0.3176

Breakdown by Component:
------------------------------------------------------------

CodeSecurityReviewer:
  Calls: 4 | Tokens: 1,234,801 | Cost: $0.3175

Other:
  Calls: 1 | Tokens: 10 | Cost: $0.0001
============================================================
'''
EMPTY = '''\
LLM Usage Report
============================================================
Total LLM Calls: 0
Total Tokens: 0
  - Prompt Tokens: 0
  - Completion Tokens: 0
Total Cost: $0.0000
============================================================
'''


class Place(Keys):
    def add(self, tenant, key, model, *numbers, component='CodeSecurityReviewer', day=TODAY):
        with sqlite3.connect(self.folder / 'caisson.db') as db:
            db.execute(f'INSERT INTO usage VALUES (?, ?, ?, ?, ?, {", ".join(map(str, numbers))})', (tenant, key, component, model, day))
        db.close()

    def stats(self, *options):
        done = self.ask('stats', *options)
        assert done.status == 0, done.err
        return done.out


@pytest.fixture(name='place')
def made(tmp_path):
    place = Place(tmp_path)
    place.alice = place.make('a', '--tenant', 'alice', '--scopes', 'read')
    place.id = place.alice.split('_')[1]
    return place


def fill(place):
    # calls, usage_missing, prompt, completion, total, cached, reasoning, nano-dollars
    place.add('alice', place.id, 'small', 2, 0, 1234000, 500, 1234500, 1000, 0, 317250000)
    place.add('alice', place.id, 'large', 1, 1, 0, 0, 0, 0, 0, 0, day=TODAY - 40)
    place.add('bob', '', 'large', 1, 0, 201, 100, 301, 0, 50, 250000)
    place.add('bob', '', 'large', 1, 0, 10, 0, 10, 0, 0, 100000, component='Other')


def test_the_report_is_kodeagents(place):
    """S0-62, S0-63: totals, components by cost, thousands with commas, four digits behind the point."""
    assert place.stats() == EMPTY
    fill(place)
    assert place.stats() == place.stats('--text') == REPORT


def test_sums_by_model_and_key(place):
    """S0-61."""
    fill(place)
    answer = json.loads(place.stats('--by', 'model', '--json'))
    assert [(one['model'], one['calls'], one['usage_missing'], one['cost_usd']) for one in answer['usage']] == [
        ('small', 2, 0, '0.317250000'), ('large', 3, 1, '0.000350000')]
    assert answer['total']['cost_nanousd'] == 317600000 and answer['total']['total_tokens'] == 1234811 and answer['since'] is None
    by_key = json.loads(place.stats('--by', 'key', '--json'))
    assert [(one['tenant'], one['key'], one['calls']) for one in by_key['usage']] == [('alice', place.id, 3), ('bob', '', 2)]
    assert place.id + ':\n' in place.stats('--by', 'key') and '(without a key):\n' in place.stats('--by', 'key')


def test_a_time_and_a_tenant_choose(place):
    fill(place)
    assert json.loads(place.stats('--json', '--since', '30d', '--tenant', 'alice'))['total']['calls'] == 2
    assert json.loads(place.stats('--json', '--since', '41d', '--tenant', 'alice'))['total']['calls'] == 3
    today = datetime.date.fromordinal(datetime.date(1970, 1, 1).toordinal() + TODAY).isoformat()
    assert json.loads(place.stats('--json', '--since', today))['since'] == f'{today}T00:00:00.000Z'
    assert json.loads(place.stats('--json', '--tenant', 'nobody'))['total']['calls'] == 0


@pytest.mark.parametrize('options, words', [(('--since', 'yesterday'), 'since is "yesterday"; it has to be a day such as 2026-11-01'),
                                            (('--since', '2026-02-30'), 'since is "2026-02-30"'),
                                            (('--since', '2026-11-01x'), 'since is'), (('--since', '-3d'), 'since is'),
                                            (('--since', '1000000d'), 'since is'),
                                            (('--by', 'day'), 'by is "day"; it has to be component, model or key'), (('--frob',), 'frob'),
                                            (('more',), 'more')])
def test_wrong_questions_are_named(place, options, words):
    done = place.ask('stats', *options)
    assert done.status == 64 and words in done.err and not done.out


def test_a_name_is_one_line(place):
    place.add('alice', '', 'm\n\x1b[31mTotal Cost: $0', 1, 0, 1, 1, 2, 0, 0, 5)
    assert 'm\\x0a\\x1b[31mTotal Cost: $0:\n' in place.stats('--by', 'model')


def test_a_reset_begins_anew(place):
    """S0-62: reset, of a tenant or of all."""
    fill(place)
    assert 'Total LLM Calls: 3' in place.stats('--reset', '--tenant', 'alice')
    assert 'Total LLM Calls: 2' in place.stats('--reset')
    assert place.stats() == EMPTY


@pytest.mark.parametrize('amount', ['0', '-1', '1e3', '1000001', '0.0000000001', 'ten', ''])
def test_a_budget_is_an_amount_of_dollars(place, amount):
    done = place.ask('keys', 'create', '--name', 'x', f'--review-budget={amount}')
    assert done.status == 64 and '--review-budget' in done.err and not done.out


def test_a_key_has_a_budget(place):
    place.make('b', '--review-budget', '2.5')
    keys = json.loads(place.ask('keys', 'list', '--json').out)
    assert [one['review_budget_usd'] for one in keys] == [None, '2.500000000']


def test_usage_over_http(place):
    fill(place)
    admin = place.make('root', '--tenant', 'ops', '--scopes', 'admin')
    runner = place.make('r', '--tenant', 'alice', '--scopes', 'run')
    web = Web(place.folder, keyless=False)

    def ask(path, key, method='GET'):
        return web.ask(method, path, **bearer(key))[::2]
    try:
        status, answer = ask('/v1/usage?by=key', place.alice)
        assert status == 200 and [one['key'] for one in answer['usage']] == [place.id] and answer['total']['calls'] == 3
        assert ask('/v1/usage?tenant=alice', place.alice)[0] == 200
        for tenant in ('bob', '*'):
            status, answer = ask(f'/v1/usage?tenant={tenant}', place.alice)
            assert status == 403 and 'scope admin' in answer['detail']
        assert ask('/v1/usage', runner)[0] == 403
        assert ask('/v1/usage?tenant=*', admin)[1]['total']['calls'] == 5
        assert ask('/v1/usage?tenant=bob&by=component', admin)[1]['usage'][0] == {
            'component': 'CodeSecurityReviewer', 'calls': 1, 'usage_missing': 0, 'prompt_tokens': 201, 'completion_tokens': 100,
            'total_tokens': 301, 'cached_tokens': 0, 'reasoning_tokens': 50, 'cost_nanousd': 250000, 'cost_usd': '0.000250000'}
        assert ask('/v1/usage', admin)[1]['total']['calls'] == 0
        assert ask('/v1/usage?by=day', admin)[0] == 422 and ask('/v1/usage?since=x', admin)[0] == 422
        assert ask('/v1/usage/reset', place.alice, 'POST')[0] == 403
        assert ask('/v1/usage/reset?tenant=bob', admin, 'POST')[0] == 204
        assert ask('/v1/usage?tenant=*', admin)[1]['total']['calls'] == 3
        assert ask('/v1/usage/reset?tenant=*', admin, 'POST')[0] == 204 and ask('/v1/usage?tenant=*', admin)[1]['usage'] == []
        metrics = web.ask('GET', '/metrics', **bearer(admin))[2].decode()
        for line in ('caisson_review_calls_total{verdict="secure"} 0', 'caisson_review_tokens_total{kind="prompt"} 0',
                     'caisson_review_cost_nanousd_total 0', 'caisson_review_seconds_count 0', 'caisson_review_seconds_bucket{le="+Inf"} 0'):
            assert line + '\n' in metrics
    finally:
        assert web.daemon.stop(signal.SIGTERM) == 0
