"""caisson check: what goes in (files, folders, lines of JSON) and what comes out (JSON, SARIF, packages)."""

import json
import os
import re

import jsonschema
import pytest

from cli import caisson, write


def lines(done):
    return [json.loads(line) for line in done.out.splitlines()]


# ---- JSON lines ----

def jsonl(*requests, options=()):
    text = ''.join((one if isinstance(one, str) else json.dumps(one)) + '\n' for one in requests)
    done = caisson('check', '--jsonl', *options, stdin=text.encode())
    return lines(done), done.status


def test_an_empty_input_is_an_error(tmp_path):
    (tmp_path / 'empty').write_text('\n')
    for done in (caisson('check', '--jsonl', stdin=b''), caisson('check', '--jsonl', tmp_path / 'empty')):
        assert done.status == 64 and 'there is no request in the input' in done.err, done.err


def test_each_line_is_answered_by_a_line():
    got, status = jsonl({'id': 'a', 'language': 'python', 'code': 'eval("1")'},
                        {'id': 'b', 'language': 'py', 'code': 'print(1)', 'policy': 'codemie'},
                        {'id': 'c', 'language': 'python', 'code': 'import json', 'policy': 'kodeagent'},
                        {'id': 'd', 'language': 'python', 'code': 'import json', 'policy': 'kodeagent', 'allow_imports': ['json']})
    assert [(one['id'], one['verdict']) for one in got] == [('a', 'deny'), ('b', 'allow'), ('c', 'deny'), ('d', 'allow')]
    assert [one['rule'] for one in got[0]['findings']] == ['dynamic_code'] and status == 2


@pytest.mark.parametrize('bad', ['nothing', '{"id": "x", "code": 1}', '{"id": "x", "language": "python"', '[]', '{"id": "x", "code": "1"}',
                                 '{"id": "x", "language": "cobol", "code": "1"}', '{"language": "python", "code": "1", "nosuch": 1}'])
def test_a_bad_line_does_not_end_the_run(bad):
    good = {'language': 'python', 'code': 'x = 1'}
    got, status = jsonl({**good, 'id': '1'}, '', bad, {**good, 'id': '4'})
    assert [one.get('id') for one in (got[0], got[2])] == ['1', '4'] and status == 64
    assert got[1]['line'] == 3 and got[1]['error']['message'] and 'verdict' not in got[1]


def test_options_are_what_lines_do_not_say():
    got, _ = jsonl({'code': 'import os'}, {'code': 'import os', 'policy': 'off'}, options=['-l', 'python', '--policy', 'codemie'])
    assert [one['policy'] for one in got] == ['codemie', 'off'] and got[0]['findings'] and not got[1]['findings']


@pytest.mark.parametrize(('words', 'policy', 'verdict'), [
    (['--profile', 'kodeagent'], 'kodeagent', 'deny'),
    (['--profile', 'kodeagent', '--allow-import', 'json'], 'kodeagent', 'allow'),
    (['--policy', 'kodeagent', '--allow-import', 'json'], 'kodeagent', 'deny'),         # no profile: datetime is not allowed
    (['--profile', 'kodeagent', '--policy', 'off'], 'off', 'allow'),
    (['--set', 'engine.profile=kodeagent'], 'kodeagent', 'deny'),
    (['--profile', 'standard'], 'linx', 'allow'),
])
def test_a_check_by_profile_agrees_with_a_run(words, policy, verdict):
    """U-24: the policy and the modules of a profile hold for a check as for a run of the program."""
    code = 'import datetime, json'
    got = lines(caisson('check', '--json', '-l', 'python', *words, '-c', code))[0]
    assert (got['policy'], got['verdict']) == (policy, verdict), got
    run = json.loads(caisson('run', '--json', '-l', 'python', *words, '-c', code).out)
    assert run['status'] == {'deny': 'blocked', 'allow': 'completed'}[verdict]
    assert verdict == 'allow' or run['error']['message'] == got['reason']


def test_an_unknown_profile_is_refused():
    done = caisson('check', '-l', 'python', '--profile', 'nosuch', '-c', '1')
    assert done.status == 64 and 'known profiles are standard, strict' in done.err, done.err
    got, status = jsonl({'language': 'python', 'code': '1', 'profile': 'nosuch'}, {'language': 'python', 'code': '1'})
    assert status == 64 and 'nosuch' in got[0]['error']['message'] and got[1]['verdict'] == 'allow', got


def test_a_thousand_lines_meet_one_worker():
    got, status = jsonl(*({'id': str(i), 'language': 'python', 'code': f'x = {i}'} for i in range(1000)))
    assert [one['id'] for one in got] == [str(i) for i in range(1000)] and status == 0


# ---- messages ----

@pytest.mark.parametrize('code, message', [
    ("x = 'rm -rf /'\ny = 'more'", 'Dangerous rm command: rm -rf /'), ('x = "rm -rf /"; y = 1', 'Dangerous rm command: rm -rf /'),
    ('x = "sh -c \'rm -rf /\'" # tail', "Dangerous rm command: sh -c 'rm -rf /'"), ("x = '" "''rm -rf ~'" "''", 'Dangerous rm command: rm -rf ~'),
    ("x = 'mkfs.ext4 /dev/sda'", 'Dangerous disk command: mkfs.ext4 /dev/sda'), ("x = 'rm -r' + 'f /'", 'Dangerous rm command: rm -rf /'),
])
def test_a_message_has_the_text_that_was_found_and_nothing_behind_it(code, message):
    got, _ = jsonl({'language': 'python', 'code': code, 'policy': 'kodeagent'})
    assert [finding['message'] for finding in got[0]['findings']] == [message] and got[0]['reason'].endswith(message)


# ---- files and folders ----

def test_a_folder_is_all_programs_below_it(tmp_path):
    for name in ('b.py', 'a/c.py', 'a/.hidden.py', '.git/x.py', 'notes.txt', 'a/b/d.PY'):
        write(tmp_path / name, 'x = 1')
    (tmp_path / 'link.py').symlink_to(tmp_path / 'b.py')
    (tmp_path / 'linked').symlink_to(tmp_path / 'a')
    done = caisson('check', '--json', tmp_path, '-', '-l', 'python', stdin=b'eval("1")')
    assert [one['file'] for one in lines(done)] == [*(str(tmp_path / name) for name in ('a/b/d.PY', 'a/c.py', 'b.py')), '-']
    assert done.status == 2


# ---- SARIF ----

TEXT = {'type': 'object', 'required': ['text'], 'properties': {'text': {'type': 'string'}}}
REGION = {'type': 'object', 'additionalProperties': False, 'required': ['startLine'],
          'properties': {**{name: {'type': 'integer', 'minimum': 1} for name in ('startLine', 'startColumn', 'endLine', 'endColumn')},
                         'snippet': TEXT}}
# What the schema of SARIF 2.1.0 says of the parts that we write.
SARIF = {
    'type': 'object', 'required': ['version', 'runs'], 'additionalProperties': False,
    'properties': {
        '$schema': {'type': 'string', 'format': 'uri'}, 'version': {'enum': ['2.1.0']},
        'runs': {'type': 'array', 'minItems': 1, 'maxItems': 1, 'items': {
            'type': 'object', 'required': ['tool'], 'additionalProperties': False,
            'properties': {
                'columnKind': {'enum': ['utf16CodeUnits', 'unicodeCodePoints']},
                'invocations': {'type': 'array', 'items': {'type': 'object', 'required': ['executionSuccessful'], 'properties': {
                    'executionSuccessful': {'type': 'boolean'},
                    'toolExecutionNotifications': {'type': 'array', 'items': {'type': 'object', 'required': ['message'],
                                                                              'properties': {'message': TEXT}}}}}},
                'tool': {'type': 'object', 'required': ['driver'], 'properties': {'driver': {
                    'type': 'object', 'required': ['name'], 'properties': {
                        'name': {'type': 'string'}, 'version': {'type': 'string'},
                        'rules': {'type': 'array', 'uniqueItems': True, 'items': {
                            'type': 'object', 'required': ['id', 'shortDescription', 'help'], 'additionalProperties': False,
                            'properties': {'id': {'type': 'string'}, 'shortDescription': TEXT, 'help': TEXT}}}}}}},
                'results': {'type': 'array', 'items': {
                    'type': 'object', 'required': ['message', 'ruleId', 'level', 'locations'], 'additionalProperties': False,
                    'properties': {
                        'ruleId': {'type': 'string'}, 'ruleIndex': {'type': 'integer', 'minimum': 0},
                        'level': {'enum': ['none', 'note', 'warning', 'error']}, 'message': TEXT,
                        'locations': {'type': 'array', 'items': {
                            'type': 'object', 'required': ['physicalLocation'], 'properties': {'physicalLocation': {
                                'type': 'object', 'required': ['artifactLocation'], 'additionalProperties': False, 'properties': {
                                    'artifactLocation': {'type': 'object', 'required': ['uri'], 'properties': {'uri': {'type': 'string'}}},
                                    'region': REGION, 'contextRegion': REGION}}}}}}}}}}}}}


def sarif(*args, **more):
    done = caisson('check', '--sarif', *args, **more)
    document = json.loads(done.out)
    jsonschema.Draft7Validator(SARIF).validate(document)
    run = document['runs'][0]
    for result in run['results']:
        assert run['tool']['driver']['rules'][result['ruleIndex']]['id'] == result['ruleId']
    return run, done.status


def test_findings_as_sarif(tmp_path):
    write(tmp_path / 'a b.py', 'é = 1; eval("1")\nimport os\nos.system("x")\n')
    write(tmp_path / 'c.py', 'def f(:\n')
    run, status = sarif('--policy', 'linx', 'a b.py', tmp_path / 'c.py', cwd=tmp_path)
    places = [one['locations'][0]['physicalLocation'] for one in run['results']]
    assert places[0]['region'] == {'startLine': 1, 'startColumn': 8, 'endLine': 1, 'endColumn': 12, 'snippet': {'text': 'eval'}} or \
        places[0]['region']['snippet']['text'] == 'eval("1")'
    assert places[0]['contextRegion'] == {'startLine': 1, 'snippet': {'text': 'é = 1; eval("1")'}}
    assert places[0]['artifactLocation']['uri'] == 'a%20b.py' and places[-1]['artifactLocation']['uri'] == f'file://{tmp_path}/c.py'
    assert run['results'][0]['level'] == 'error' and run['results'][-1]['ruleId'] == 'syntax_error' and status == 3
    assert run['invocations'][0]['executionSuccessful'] is True
    assert len({rule['id'] for rule in run['tool']['driver']['rules']}) == len(run['tool']['driver']['rules'])


@pytest.mark.parametrize('severity, level', [('LOW', 'note'), ('MEDIUM', 'warning'), ('HIGH', 'error'), ('CRITICAL', 'error')])
def test_severities_are_levels(tmp_path, severity, level):
    write(tmp_path / 'mine.yaml', f'policy: mine\nblock_at: CRITICAL\nrules:\n  - {{ id: r, severity: {severity}, import: [a], message: "{{name}}" }}\n')
    run, _ = sarif('--policy', 'mine', '-l', 'python', '-c', 'import a', '--set', f'engine.policies_dir={tmp_path}')
    assert [one['level'] for one in run['results']] == [level]


def test_what_cannot_be_checked_is_told_in_the_document():
    run, status = sarif('--policy', 'nope', '-l', 'python', '-c', '1')
    assert run['invocations'][0]['executionSuccessful'] is False and not run['results'] and status == 64


# ---- packages ----

def imports(code, *args, **more):
    done = caisson('check', '--imports', '--json', '-l', 'python', '-c', code, *args, **more)
    return json.loads(done.out)['packages']


@pytest.mark.parametrize('code, packages', [
    ('import os, json, re', []), ('import numpy', ['numpy']), ('import numpy as np\nfrom numpy.linalg import norm', ['numpy']),
    ('import cv2, PIL.Image, sklearn.svm, yaml, bs4', ['beautifulsoup4', 'opencv-python', 'pillow', 'pyyaml', 'scikit-learn']),
    ('try:\n    import x\nexcept ImportError:\n    x = None', ['x']), ('from . import a\nfrom .b import c\nfrom .. import d', []),
    ('# import a\ns = "import b"\n"""\nimport c\n"""', []), ('from google.protobuf import message', ['protobuf']),
    ('import google.cloud.storage', ['google-cloud-storage']), ('import importlib\nimportlib.import_module("requests")', ['requests']),
    ('def f():\n    import pandas', ['pandas']), ('from __future__ import annotations\nimport __main__', []),
    ('from dateutil import parser', ['python-dateutil']), ('import os.path, xml.etree.ElementTree as e', []), ('__import__("zmq")', ['pyzmq']),
])
def test_the_packages_that_a_program_needs(code, packages):
    assert imports(code) == packages


def test_a_package_that_is_optional_is_marked(tmp_path):
    """S2-43: imported in a try statement that handles ImportError, and nowhere else in all programs."""
    one = 'import numpy\ntry:\n    import yaml\n    import cv2\nexcept ImportError:\n    yaml = cv2 = None\n'
    done = caisson('check', '--imports', '--json', '-l', 'python', '-c', one)
    assert json.loads(done.out) == {'imports': ['cv2', 'numpy', 'yaml'], 'packages': ['numpy', 'opencv-python', 'pyyaml'],
                                    'optional_packages': ['opencv-python', 'pyyaml']}
    write(tmp_path / 'one.py', one)
    write(tmp_path / 'two.py', 'import yaml\n')
    assert caisson('check', '--imports', tmp_path).out == 'numpy\n# opencv-python (optional)\npyyaml\n'


def test_types_need_no_packages():
    code = "import type { A } from 'left-pad'; import { type B } from 'fs'; import { type C } from 'lodash'; let d: import('chalk').E;"
    done = caisson('check', '--imports', '--json', '-l', 'typescript', '-c', code)
    assert json.loads(done.out)['packages'] == ['lodash']    # of which nothing is taken, but it is loaded


def test_modules_beside_the_program_are_its_own(tmp_path):
    write(tmp_path / 'main.py', 'import helper, parts.one, numpy\n')
    write(tmp_path / 'helper.py', '')
    write(tmp_path / 'parts/one.py', 'import helper, jwt\n')
    assert caisson('check', '--imports', 'main.py', cwd=tmp_path).out == 'numpy\n'
    assert caisson('check', '--imports', tmp_path).out == 'numpy\npyjwt\n'


def test_what_does_not_parse_needs_nobody_knows_what():
    done = caisson('check', '--imports', '-l', 'python', '-c', 'import (')
    assert done.out == '' and done.status == 3 and 'Line 1' in done.err


# ---- syntax errors ----

@pytest.mark.parametrize('code', ['x = 1\ndef f(:\n    pass', 'print "a"', 'if x\n  y', 'x = (1,\n', 'é = = 1', 'return 1', 'a b'])
def test_syntax_errors_are_told_in_pythons_words(code):
    [got] = lines(caisson('check', '--json', '-l', 'python', '-c', code))
    try:
        compile(code, 'main.py', 'exec')
        raise AssertionError
    except SyntaxError as error:
        if got['verdict'] == 'allow':
            assert 'return' in error.msg      # it parses, and the compiler alone refuses it
            return
        assert (got['error']['message'], got['error']['line'], got['error']['column']) == (error.msg, error.lineno, error.offset)
    assert re.match(f"Line {got['error']['line']}: ", got['reason'])


@pytest.mark.parametrize('code', [
    'await x', 'def f(a, *, a): pass', 'lambda a, a: 1', 'f(a=1, a=2)', 'class A[T]: pass', 'def f[T](x): pass', 'type X = int', r'"\N{foo}"', '*a = 1',
    '*a, *b = c', 'from __future__ import braces', 'import os\nfrom __future__ import annotations', 'def f():\n  x = 1\n  global x',
    'def f():\n  from os import *', '__debug__ = 1', 'def f():\n  nonlocal x', 'def f():\n  async with a: pass', 'def f():\n  async for a in b: pass',
    'def f():\n  [x async for x in y]', 'async def f():\n  yield from a', 'async def f():\n  yield 1\n  return 2', 'f"{x["a"]}"', 'print(x)\nglobal x',
    '[i for i in (lambda: (j := x))]', 'async def f(x=await y): pass', 'match x:\n  case a: pass\n  case b: pass',
    # And what is right, at least somewhere.
    'async def f():\n  await x\n  yield 1', 'match x:\n  case 1: pass', r'"\N{BULLET}"', 'def f():\n  x = 1\n  def g():\n    nonlocal x'])
def test_what_only_the_compiler_refuses_is_refused(code):
    try:
        compile(code, 'main.py', 'exec', dont_inherit=True)
        wanted = None
    except SyntaxError as error:
        wanted = error
    done = caisson('check', '--json', '-p', 'off', '-l', 'python', '-c', code)
    [got] = lines(done)
    assert (got['verdict'], done.status) == (('deny', 3) if wanted else ('allow', 0))
    if wanted:
        assert (got['error']['type'], got['error']['message'], got['error']['line']) == ('SyntaxError', wanted.msg, wanted.lineno)
        assert got['findings'] == [] and got['reason'] == f'Line {wanted.lineno}: {wanted.msg}'


@pytest.mark.parametrize('language, code', [('javascript', 'let = = 1'), ('typescript', 'let x: = 1'), ('bash', 'if x; then'), ('python', 'x = = 1')])
def test_what_kind_of_error_it_is_is_said_once(language, code):
    done = caisson('check', '-p', 'off', '-l', language, '-c', code)
    assert done.status == 3 and done.out.splitlines()[0].count('SyntaxError') == 1


# ---- policies ----

@pytest.mark.parametrize('policy, language, reason', [
    ('kodeagent', 'bash', 'kodeagent has no rules for bash'), ('mcp-light', 'javascript', 'mcp-light has no rules for javascript'),
    ('kodeagent', 'python', 'No suspicious patterns detected'), ('linx', 'bash', ''), ('off', 'bash', '')])
def test_a_policy_without_rules_for_a_language_says_so(policy, language, reason):
    [got] = lines(caisson('check', '--json', '-p', policy, '-l', language, '-c', 'true' if language == 'bash' else '1'))
    assert (got['verdict'], got['reason']) == ('allow', reason)


@pytest.mark.parametrize('text', ['', 'description: x\n', 'policy: mine\nblock_at: LOW\n'])
def test_a_policy_that_decides_nothing_is_an_error(tmp_path, text):
    write(tmp_path / 'mine.yaml', text)
    done = caisson('check', '-p', 'mine', '-l', 'python', '-c', 'eval("1")', f'--set=engine.policies_dir={tmp_path}')
    assert done.status not in (0, 1, 2, 3) and 'mine.yaml:1: ' in done.err and 'needs rules, extends, deny or allow' in done.err


def test_a_fifo_among_the_policies_is_an_error(tmp_path):
    os.mkfifo(tmp_path / 'mine.yaml')
    option = f'--set=engine.policies_dir={tmp_path}'
    for words in (['check', '-p', 'linx', '-l', 'python', '-c', 'x = 1'], ['policy', 'list']):
        done = caisson(*words, option)
        assert done.status not in (0, 1, 2, 3) and 'mine.yaml is no regular file' in done.err


def test_policies_are_listed_and_shown(tmp_path):
    write(tmp_path / 'mine.yaml', 'policy: mine\nextends: linx\ndeny: [requests]\n')
    option = f'--set=engine.policies_dir={tmp_path}'
    names = [one['name'] for one in json.loads(caisson('policy', 'list', '--json', option).out)]
    assert {'mine', 'kodeagent', 'off'} <= set(names) and not [name for name in names if name.startswith('_')]
    mine = json.loads(caisson('policy', 'show', 'mine', '--json', option).out)
    assert mine['extends'][0] == 'linx' and [rule['id'] for rule in mine['rules'] if not rule['inherited']] == ['denied']
    text = caisson('policy', 'show', 'mine', option).out
    assert 'extends: linx' in text and 'dynamic_code  HIGH' in text and 'requests' in text
    assert caisson('policy', 'show', 'nope').status == 64 and caisson('policy', 'paint').status == 64


UNREADABLE = 'print >>f\n'        # an expression of Python 3, and a statement to a parser that knows Python 2


def test_what_only_the_interpreter_can_read_is_refused_with_words_for_it(tmp_path):
    write(tmp_path / 'a.py', UNREADABLE)
    got = json.loads(caisson('check', '--json', tmp_path / 'a.py').out)
    if got['verdict'] == 'deny':
        assert 'Python can read this' in got['reason'] and got['error']['line'] == 1
    lines = '\n'.join(json.dumps({'language': 'python', 'code': code}) for code in (UNREADABLE, 'x = 1', UNREADABLE, 'eval("1")'))
    answers = [json.loads(line) for line in caisson('check', '--jsonl', stdin=lines.encode()).out.splitlines()]
    assert len(answers) == 4 and [answers[1]['verdict'], answers[3]['verdict']] == ['allow', 'deny']
    record = json.loads(caisson('run', '--json', '--policy', 'linx', tmp_path / 'a.py').out)
    assert record['status'] == ('blocked' if got['verdict'] == 'deny' else 'failed')


def test_a_policy_is_tested_with_programs(tmp_path):
    right = write(tmp_path / 'right.cases', '=== a\n--- deny linx[dynamic_code] codemie\neval("1")\n\n=== b\n--- allow *\nx = 1\n')
    wrong = write(tmp_path / 'wrong.cases', '=== c\n--- allow linx\neval("1")\n')
    assert caisson('policy', 'test', 'linx', '-l', 'python', right).status == 0
    done = caisson('policy', 'test', 'linx', '-l', 'python', wrong)
    assert done.status == 1 and ':1: c: allow wanted, deny[dynamic_code] found' in done.out


def test_the_language_of_programs_may_stand_anywhere(tmp_path):
    file = write(tmp_path / 'a.cases', '=== a\n--- deny linx[dynamic_code]\neval("1")\n')
    for words in (['-l', 'python', 'linx', file], ['linx', file, '-l', 'python'], ['linx', file, '--language=python']):
        done = caisson('policy', 'test', *words)
        assert (done.status, done.out) == (0, '1 of 1 are right\n')
    assert '--language' in caisson('policy', '--help').out


@pytest.mark.parametrize('policy, text, why', [
    ('nope', '=== a\n--- deny nope\neval("1")\n', 'there is no policy "nope"'), ('linx', 'eval("1")\n', 'each begins with a line === TITLE'),
    ('linx', '', 'each begins with a line === TITLE'), ('linx', '=== a\n--- deny codemie\neval("1")\n', 'write --- deny linx or --- allow linx'),
    ('linx', None, 'No such file')])
def test_why_nothing_was_compared(tmp_path, policy, text, why):
    file = tmp_path / 'a.cases'
    if text is not None:
        write(file, text)
    done = caisson('policy', 'test', policy, file, '-l', 'python')
    assert (done.status, done.out) == (64, '') and why in done.err


def test_a_file_that_is_in_no_folder_needs_a_language(tmp_path):
    write(tmp_path / 'a.cases', '=== a\n--- deny linx\neval("1")\n')
    done = caisson('policy', 'test', 'linx', 'a.cases', cwd=tmp_path)
    assert done.status == 64 and 'give -l LANGUAGE' in done.err


@pytest.mark.parametrize('claim, right', [('deny linx[dynamic_code]', True), ('deny linx[dynamic_code,!file]', True), ('deny linx', True),
                                          ('deny linx[]', False), ('deny linx[!dynamic_code]', False), ('deny linx[dynamic_code,file]', False),
                                          ('deny linx@CRITICAL', False), ('allow linx@CRITICAL[dynamic_code]', True), ('deny *', True)])
def test_a_claim_names_all_rules_or_none(tmp_path, claim, right):
    cases = write(tmp_path / 'python' / 'a.cases', f'=== a\n--- {claim}\neval("1")\n')
    assert caisson('policy', 'test', 'linx', cases).status == (0 if right else 1)


@pytest.mark.parametrize('text, why', [('=== a\nx = 1\n', 'a.cases:1: no line after the title says what is right'),
                                       ('\n=== a\n--- perhaps linx\nx = 1\n', 'a.cases:2: "perhaps" is no verdict'),
                                       ('=== a\n--- deny linx[dynamic_code\nx = 1\n', 'a.cases:1: linx[dynamic_code: the rules are to be followed by ]'),
                                       ('=== a\n--- deny nope@LOUD linx@LOUD\nx = 1\n', 'LOUD')])
def test_a_claim_that_is_none_is_named(tmp_path, text, why):
    done = caisson('policy', 'test', 'linx', write(tmp_path / 'python' / 'a.cases', text))
    assert done.status == 64 and why in done.err
    done = caisson('policy', 'test', 'linx', write(tmp_path / 'klingon' / 'a.cases', text))
    assert done.status == 64 and 'klingon' in done.err and 'name of the folder' in done.err


@pytest.mark.parametrize('code, optional', [
    ('try:\n    import a, b.c\n    from d import e\nexcept ImportError:\n    import f', ['a', 'b.c', 'd']),
    ('try:\n    import a\nexcept (KeyError, ModuleNotFoundError) as error:\n    pass', ['a']),
    ('try:\n    import a\nexcept : pass', ['a']),
    ('try:\n    if x:\n        with y:\n            import a\nexcept Exception:\n    pass\nelse:\n    import b\nfinally:\n    import c', ['a']),
    ('try:\n    import a\nexcept ValueError:\n    pass', None),
    ('try:\n    import a\nexcept ImportError:\n    pass\nimport a', None),
    ('try:\n    def f():\n        import a\nexcept ImportError:\n    pass', None),
    ('def f():\n    try:\n        try:\n            import a\n        finally:\n            pass\n    except ImportError:\n        pass', ['a']),
    ('try:\n    import a\nfinally:\n    pass', None)])
def test_an_import_is_optional_where_its_failure_is_handled(code, optional):
    result = json.loads(caisson('check', '--json', '-l', 'python', '-c', code).out)
    assert result.get('optional_imports') == optional and {'a'} <= set(result['imports']), result
