"""The stages of a run in its record (S0-01, S2-07): verdicts in order, up to the stage that ended the run."""

import pytest

from cli import run

ALL = ['syntax', 'policy', 'review', 'packages', 'queue', 'prepare', 'run', 'collect']


def stages(record):
    return {one['name']: one['verdict'] for one in record['stages']}


def test_a_program_goes_through_all_stages(web):
    record = web.run('print(1)', 'python', policy='linx')
    assert [one['name'] for one in record['stages']] == ALL
    assert stages(record) == {name: 'skipped' if name in ('review', 'packages') else 'passed' for name in ALL}
    assert next(one for one in record['stages'] if one['name'] == 'policy')['findings'] == 0


@pytest.mark.parametrize('code', ['print(1)', 'import time; time.sleep(0.2)', '1/0'])
def test_stages_agree_with_the_timings(web, code):
    record = web.run(code, 'python', policy='linx')
    times, timings = {one['name']: one['ms'] for one in record['stages']}, record['timings']
    assert min(times.values()) >= 0
    assert times['queue'] == pytest.approx(timings['queue_ms'], abs=0.01)
    assert times['syntax'] + times['run'] == pytest.approx(timings['run_ms'], abs=0.01)
    assert times['policy'] + times['prepare'] <= timings['prepare_ms'] + 0.01
    assert sum(times.values()) <= timings['total_ms'] + 0.01


def test_the_stage_that_ended_the_run_is_the_last(web):
    assert stages(web.run('def f(:', 'python')) == {'syntax': 'refused'}
    assert stages(web.run('def f(:', 'python', policy='linx')) == {'syntax': 'refused'}
    blocked = web.run('eval("1")', 'python', policy='linx')
    assert stages(blocked) == {'syntax': 'passed', 'policy': 'refused'}
    assert blocked['stages'][-1]['findings'] == len(blocked['findings']) == 1
    failed = stages(web.run('1/0', 'python'))
    assert (failed['policy'], failed['run'], failed['collect']) == ('skipped', 'failed', 'passed')
    slow = stages(web.run('while true; do :; done', 'bash', limits={'wall_ms': 100}))
    assert (slow['run'], slow['collect']) == ('failed', 'passed')


def test_a_request_that_is_wrong_has_no_stages(web):
    record = web.run('1', 'python', limits={'code_bytes': 1}, name='a/b')
    assert record['status'] == 'bad_request' and 'stages' not in record


def test_a_policy_that_is_missing_is_a_failure_of_that_stage():
    record = run('-l', 'python', '--policy', 'nope', '-c', '1')
    assert stages(record)['policy'] == 'failed'


def test_an_execution_in_a_context_has_stages(web):
    sandbox = web.ask('POST', '/v1/sandboxes', {})[2]['id']
    context = web.ask('POST', f'/v1/sandboxes/{sandbox}/contexts', {})[2]['id']
    record = web.ask('POST', '/v1/runs', {'context': context, 'code': '1 + 1'})[2]
    assert [one['name'] for one in record['stages']] == ALL and stages(record)['run'] == 'passed'
    web.ask('DELETE', f'/v1/sandboxes/{sandbox}')


@pytest.mark.parametrize('mode', ['interpreter', 'files'])
def test_a_run_after_the_end_of_its_session_or_sandbox_is_never_taken(web, mode):
    """U-39: from the answer to DELETE on there is no such session, sandbox or context."""
    for _ in range(5):
        session = web.ask('POST', '/v1/sessions', {'mode': mode})[2]
        assert web.ask('POST', f'/v1/sessions/{session["id"]}/runs', {'code': '1'})[2]['status'] == 'completed'
        assert web.ask('DELETE', f'/v1/sessions/{session["id"]}')[0] == 204
        assert web.ask('POST', f'/v1/sessions/{session["id"]}/runs', {'code': '1'})[0] == 404
        sandbox = web.ask('POST', '/v1/sandboxes', {})[2]['id']
        context = web.ask('POST', f'/v1/sandboxes/{sandbox}/contexts', {})[2]['id']
        assert web.ask('DELETE', f'/v1/sandboxes/{sandbox}')[0] == 204
        record = web.ask('POST', '/v1/runs', {'context': context, 'code': '1'})[2]
        assert (record['status'], record['error']['field']) == ('bad_request', '/context')


def test_a_figure_that_is_not_shown_is_told(web):
    """U-32: without the image data, plt.show() says what to do instead."""
    pytest.importorskip('matplotlib')
    record = web.run('import matplotlib.pyplot as plt\nplt.plot([1])\nplt.show()', 'python')
    assert "savefig('figure.png')" in record['stderr'] and record['status'] == 'completed'
