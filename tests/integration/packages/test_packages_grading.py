"""Packages of gradings: submission, test code and checker have them, the judge has none, and a verdict stays what it is."""

import json

import pytest

from cli import caisson
from private_index import PrivateIndex
from test_packages import serving, settings_of

LAYER = [{'language': 'python', 'packages': ['doubling==1.0']}]
GOOD = {'code': 'import doubling\ndef f(x):\n    return doubling.twice(x)\n', 'function': 'f', 'packages': ['doubling'],
        'cases': [{'args': [2], 'expected': 4}, {'args': ['a'], 'expected': 'aa'}]}


@pytest.fixture(name='index', scope='module')
def indexed():
    with PrivateIndex() as index:
        index.add_wheel('doubling', '1.0', {'doubling.py': 'def twice(x):\n    return 2 * x\n'})
        index.add_wheel('hostile', '1.0', {'hostile.py': 'import builtins, os\nclass Same:\n    def __eq__(self, other): return True\n'})
        index.add_file('source', '1.0', 'source-1.0.tar.gz', b'no archive')
        yield index


@pytest.fixture(name='web', scope='module')
def running(tmp_path_factory, index):
    with serving(tmp_path_factory.mktemp('grading'), *settings_of(index)) as web:
        yield web


def graded(web, **request):
    status, _, result = web.ask('POST', '/v1/grade', request)
    assert status == 200, result
    return result


def verdicts(result):
    return [case['status'] for case in result['cases']]


def test_a_submission_has_the_packages_that_the_request_names(web):
    result = graded(web, **GOOD)
    assert result['all_passed'] and [{name: one[name] for name in LAYER[0]} for one in result['layers']] == LAYER and 'warnings' not in result
    again = graded(web, **GOOD)
    assert again['layers'][0] == {**result['layers'][0], 'cached': True, 'wait_ms': 0}
    by_id = graded(web, **{**GOOD, 'packages': [], 'layers': [again['layers'][0]['id']]})
    assert by_id['all_passed'] and by_id['layers'] == again['layers']


def test_a_submission_without_them_has_none(web):
    result = graded(web, **{**GOOD, 'packages': []})
    assert result['status'] == 'failed' and 'doubling' in json.dumps(result['error']) and 'layers' not in result


@pytest.mark.parametrize('shared', [False, True])
def test_test_code_has_them(web, shared):
    result = graded(web, code='def f(x):\n    return x + x\n', tests='import doubling\nassert f(3) == doubling.twice(3)\nassert f(3) == 7',
                    requirements='doubling==1.0\n', shared_process=shared)
    assert verdicts(result) == ['passed', 'failed'], result


@pytest.mark.parametrize('language, code', [('python', 'import doubling\nprint(doubling.twice(int(input())))'), ('bash', 'read x; echo $((2 * x))')])
def test_a_checker_has_them(web, language, code):
    check = 'import doubling\nraise SystemExit(int(open("output").read()) != doubling.twice(int(open("input").read())))'
    result = graded(web, language=language, code=code, checker='program', check={'code': check}, packages=['doubling'],
                    cases=[{'stdin': '4', 'expected_stdout': ''}])
    assert verdicts(result) == ['passed'], result
    if language == 'python':
        assert [{name: one[name] for name in LAYER[0]} for one in result['layers']] == LAYER


def test_a_package_changes_no_verdict_of_the_judge(web):
    code = 'import hostile\ndef f(x):\n    return hostile.Same()\n'
    result = graded(web, **{**GOOD, 'code': code, 'packages': ['hostile']})
    assert not result['all_passed'] and 'passed' not in verdicts(result), result


@pytest.mark.parametrize('package, code', [('nothing-of-the-kind', 'package_not_found'), ('source', 'no_wheel')])
def test_packages_that_cannot_be_installed_are_no_verdict(web, package, code):
    status, headers, result = web.ask('POST', '/v1/grade', {**GOOD, 'packages': [package]})
    assert status == 503 and headers['Retry-After'] and result['mask'] and result['score'] is None, result
    assert (result['status'], result['error']['code'], result['all_passed']) == ('dependency_failed', code, False), result


def test_each_line_of_many_has_its_own_packages(web):
    lines = [json.dumps({'id': n, **GOOD, 'packages': ['doubling'] if n % 2 else []}) for n in range(8)]
    answer = web.stream_raw('POST', '/v1/grade', '\n'.join(lines) + '\n', **{'Content-Type': 'application/x-ndjson'})
    results = {one['id']: one['result']['all_passed'] for one in map(json.loads, answer.read().splitlines())}
    assert results == {n: n % 2 == 1 for n in range(8)}


def test_without_a_daemon_a_grading_has_a_warning(tmp_path):
    (tmp_path / 'case.json').write_text(json.dumps(GOOD))
    assert 'warning: packages are recorded, not installed' in caisson('grade', tmp_path / 'case.json').out
    done = caisson('grade', '--json', tmp_path / 'case.json')
    assert [one['code'] for one in json.loads(done.out)['warnings']] == ['packages_not_installed'], done
