"""Checkers of the four kinds, and the control that tells a broken checker from an output that breaks one."""

import pytest
from grading import one, statuses

FILES = 'import sys\nfirst, second, third = (open(name).read() for name in sys.argv[1:])\n'


def judged(kind, code, output='b', expected='a', **more):
    """The result of a submission that writes this output."""
    submission = 'import sys\nsys.stdout.buffer.write(%r)' % (output if isinstance(output, bytes) else output.encode())
    return one(code=submission, checker={'kind': kind, 'code': code, **more}, cases=[{'stdin': 'in', 'expected_stdout': expected}])


@pytest.mark.parametrize('kind, code, accepted', [
    ('command', 'import sys\nassert open("input").read() == "in"\nsys.exit(open("output").read() != open("expected").read())', 'a'),
    ('testlib', FILES + 'assert first == "in"\nsys.exit(second != third)', 'a'),
    ('testlib', FILES + 'sys.exit(2 if second != third else 0)', 'a'),
    ('testlib', FILES + 'sys.exit(4 if second != third else 0)', 'a'),
    ('testlib', FILES + 'sys.exit(8 if second != third else 0)', 'a'),
    ('openr1', FILES + 'assert first == "in"\nprint(int(second == third))', 'a'),
    ('openr1', FILES + 'print(1.0 if second == third else 0.75)', 'a'),
    ('scalebox', 'import sys\nassert open("stdin.txt").read() == "in"\nsys.exit(open("stdout.txt").read() != open("answer.txt").read())', 'a'),
])
def test_a_checker_accepts_and_refuses(kind, code, accepted):
    good, bad = judged(kind, code, output=accepted), judged(kind, code)
    assert statuses(good) == ['passed'] and good['score'] == 1 and good['runs'] == 2, good
    assert statuses(bad) == ['failed'] and bad['score'] == 0 and not bad['mask'] and bad['signs'] == [] and bad['runs'] == 2, bad
    assert bad['cases'][0]['detail'].startswith('the checker refuses it')


def test_the_order_of_the_files_is_that_of_the_originals():
    shows = FILES + 'print(first, second, third, file=sys.stderr)\n'
    assert judged('testlib', shows + 'sys.exit(1)')['cases'][0]['detail'] == 'the checker refuses it: in b a'
    assert statuses(judged('openr1', FILES + 'print(int((first, second, third) == ("in", "a", "b")))')) == ['passed']


@pytest.mark.parametrize('kind, code', [
    ('command', 'int(open("output").read())'),
    ('testlib', FILES + 'sys.exit(3 if second != third else 0)'),
    ('testlib', FILES + 'sys.exit(77 if second != third else 0)'),
    ('testlib', FILES + 'sys.exit(7 if second != third else 0)'),
    ('openr1', FILES + 'print("yes" if third == "b" else 1)'),
    ('openr1', FILES + 'print("nan" if third == "b" else 0)'),
    ('openr1', FILES + 'print(1)\nsys.exit(third == "b")'),
    ('scalebox', 'import os, sys\nsys.exit(2 if open("answer.txt").read() == "b" else 1)'),
    ('command', 'import os\nif open("output").read() == "b": os.kill(os.getpid(), 9)'),
    ('command', 'held = []\nwhile open("output").read() == "b": held.append(bytearray(b"x" * (64 << 20)))'),
    ('command', 'open("output", encoding="utf-8").read()'),
])
def test_an_output_that_breaks_a_checker_has_failed(kind, code):
    output = b'b' if 'utf-8' not in code else b'\xff'
    result = judged(kind, code, output=output, expected='1')
    assert (statuses(result), result['score'], result['mask'], result['runs']) == (['failed'], 0, False, 3), result
    assert result['signs'][0]['sign'] == 'breaks_checker' and result['signs'][0]['case_name'] == 'case 1'
    assert result['cases'][0]['detail'].startswith('the output breaks the checker: ')


@pytest.mark.parametrize('kind, code, why', [
    ('command', 'raise ValueError("mine")', 'ValueError: mine'), ('command', 'def (', 'SyntaxError'),
    ('testlib', FILES + 'print("no answer", file=sys.stderr)\nsys.exit(3)', 'judge failure: no answer'),
    ('testlib', 'import sys\nsys.exit(9)', 'exit status 9'), ('openr1', 'print("?")', 'no score on standard output: ?'),
    ('openr1', 'print(1, 1)', 'no score'), ('openr1', '', 'no score'), ('scalebox', 'import sys\nsys.exit(2)', 'exit status 2'),
    ('scalebox', 'import os\nos.abort()', 'crashed'),
])
def test_a_checker_that_breaks_on_the_expected_output_too_gives_no_verdict(kind, code, why):
    result = judged(kind, code)
    error = result['error']
    assert (result['status'], error['code'], error['field']) == ('engine_error', 'checker_failed', '/checker/code'), result
    assert why in error['message']
    assert (result['score'], result['reward'], result['mask'], result['retryable'], result['all_passed'], result['runs']) == (None, None, True, False, False, 3)


@pytest.mark.parametrize('output, expected, status, detail', [
    ('5', '5', 'passed', 'points 5 of 5'), ('6.5', '5', 'passed', 'points 6.5 of 5'), ('3', '5', 'failed', 'points 3 of 5'),
    ('0', '0', 'failed', 'points 0 of 0'), ('1', 'full', 'failed', 'points 1, and the expected output gets no points that would be full'),
])
def test_the_points_of_the_expected_output_are_full(output, expected, status, detail):
    code = FILES + 'if second == "full": sys.exit(0)\nprint("points", second, "well done", file=sys.stderr)\nsys.exit(7)'
    result = judged('testlib', code, output=output, expected=expected)
    assert (statuses(result), result['cases'][0]['detail'], result['mask']) == ([status], detail, False), result


def test_a_checker_has_limits_of_its_own():
    """The submission's do not hold for it, or a checker of a small problem could not read its files."""
    result = one(code='print("b")', case_cpu_ms=100, checker={'code': 'import time\nbegun = time.process_time()\nwhile time.process_time() < begun + .5: pass'},
                 cases=[{'stdin': '', 'expected_stdout': 'a'}])
    assert statuses(result) == ['passed'], result


def test_a_checker_has_nothing_of_the_submission():
    code = 'import os, sys\nsys.exit(not {"left", "mine.txt"}.isdisjoint(os.listdir(".")) or "SECRET" in os.environ)'
    result = one(code='open("left", "w").write("x")\nprint("b")', env={'SECRET': '1'}, files=[{'name': 'mine.txt', 'content': 'x'}],
                 checker={'code': code}, cases=[{'stdin': '', 'expected_stdout': 'a'}])
    assert statuses(result) == ['passed'], result


def test_a_checker_in_another_language():
    assert statuses(judged('command', 'cmp -s output expected', output='a', language='bash')) == ['passed']
    assert statuses(judged('command', 'cmp -s output expected', language='bash')) == ['failed']


@pytest.mark.parametrize('request_, field, text', [
    ({'checker': {'language': 'cpp', 'code': 'int main() {}'}}, '/checker/language', 'engine.languages_dir'),
    ({'checker': {'code': '', 'kind': 'judge'}}, '/checker/kind', 'testlib'),
    ({'checker': {'code': ''}, 'compare': 'lcb'}, '/compare', 'leave compare out'),
    ({'compare': 'program'}, '/checker', 'give checker'),
])
def test_a_wrong_request_is_named(request_, field, text):
    result = one(code='print(1)', cases=[{'stdin': '', 'expected_stdout': 'a'}], **request_)
    assert (result['status'], result['error']['field'], result['mask']) == ('bad_request', field, False) and text in result['error']['message'], result
