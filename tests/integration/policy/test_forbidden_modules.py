"""A request's own list of forbidden modules, the codes of refusals, and programs that must not be refused."""

import json

import pytest

from cli import caisson, run


def blocked(record):
    return [one['message'] for one in record['findings'] if one['rule'] == 'forbidden_module'] if record['status'] == 'blocked' else None


def check(web, code, language='python', **more):
    status, _, answer = web.ask('POST', '/v1/check', {'language': language, 'code': code, **more})
    assert status == 200, answer
    return answer


@pytest.mark.parametrize(('code', 'forbidden', 'found'), [
    ('import os, subprocess', ['subprocess'], ['subprocess']),
    ('import os.path', ['os'], ['os']),
    ('from os import path', ['os'], ['os']),
    ('import os as o', ['o*'], ['os']),
    ('__import__("o" + "s")', ['os'], ['os']),
    ('import importlib\nimportlib.import_module("socket")', ['socket'], ['socket']),
    ('import os\nos.system("id")', ['os.system'], ['os.system']),
    ('x = "import httpx"\nimport http_tools, requests_mock', ['httpx', 'http', 'requests'], None),
    ('import json, math', ['*'], ['json', 'math']),
    ('from __future__ import annotations\nprint(1)', ['*'], None),
    ('import Subprocess', ['subprocess'], None),
])
def test_forbidden_modules_of_python(web, code, forbidden, found):
    """S1-07, S1-10, S1-14: import nodes, with aliases, and no text of the program; with the policy off."""
    answer = check(web, code, policy='off', forbidden_modules=forbidden)
    messages = [one['message'] for one in answer['findings']]
    assert (answer['verdict'], messages) == (('deny', [f'Forbidden import: {name}' for name in found]) if found else ('allow', []))


@pytest.mark.parametrize(('code', 'forbidden', 'found'), [
    ("require('fs')", ['fs'], 'fs'),
    ("import { readFile } from 'node:fs/promises'", ['fs'], 'fs'),
    ("const m = require('lodash/fp')", ['lodash'], 'lodash'),
    ("require('fs')", ['node:fs'], 'node:fs'),
    ("process.getBuiltinModule('fs')", ['fs'], 'fs'),
    ("const { binding: b } = process\nb('fs')", ['fs'], 'fs'),
    ("require('path')", ['fs'], None),
    ("const x = 'require(\"fs\")'", ['*'], None),
])
def test_forbidden_modules_of_javascript(web, code, forbidden, found):
    answer = check(web, code, 'javascript', policy='off', forbidden_modules=forbidden)
    assert (answer['verdict'], answer['reason']) == (('deny', f'Forbidden import: {found}') if found else ('allow', ''))


def test_all_may_be_forbidden_but_those_that_are_allowed(web):
    """S1-09: no imports at all."""
    answer = check(web, 'import json, math', policy='off', forbidden_modules=['*'], allow_imports=['json'])
    assert [one['message'] for one in answer['findings']] == ['Forbidden import: math']
    assert check(web, 'import json', policy='off', forbidden_modules=['*'], allow_imports=['json'])['verdict'] == 'allow'


def test_an_import_that_cannot_be_known_is_no_way_around(web):
    answer = check(web, '__import__(input())', policy='off', forbidden_modules=['os'])
    assert (answer['verdict'], answer['code']) == ('deny', 'disallowed_import')
    assert check(web, '__import__(input())', policy='off', forbidden_modules=[])['verdict'] == 'allow'


def test_the_list_takes_the_place_of_the_policys_own(web):
    """S1-08, S1-10: null is the default list, and [] forbids nothing."""
    code = 'import shutil, subprocess\nprint(5)'
    default = check(web, code, policy='agentos')
    assert default['reason'] == 'SECURITY VIOLATION: Forbidden import: shutil; Forbidden import: subprocess'
    assert check(web, code, policy='agentos', forbidden_modules=[])['verdict'] == 'allow'
    assert check(web, code, policy='agentos', forbidden_modules=['socket'])['verdict'] == 'allow'
    assert check(web, code + '\neval("1")', policy='agentos', forbidden_modules=[])['code'] == 'forbidden_builtin'
    for name in ('ftp', 'ftplib', 'os.system', 'socket', 'requests', 'urllib', 'http'):
        text = 'import os\nos.system("x")' if name == 'os.system' else f'import {name}'
        assert check(web, text, policy='agentos')['reason'] == f'SECURITY VIOLATION: Forbidden import: {name}'


def test_no_threshold_lifts_the_list(web):
    assert check(web, 'import os', policy='codemie', block_at='SAFE')['verdict'] == 'allow'
    assert check(web, 'import os', policy='codemie', block_at='SAFE', forbidden_modules=['os'])['verdict'] == 'deny'


def test_runs_gradings_and_profiles_have_the_list(tmp_path):
    record = run('-l', 'python', '--forbid-import', 'os', '-c', 'import os')
    assert (record['exit'], blocked(record), record['error']['code']) == (126, ['Forbidden import: os'], 'disallowed_import')
    assert record['feedback'][0] == 'Code violates sandbox security rules; avoid system calls and I/O.'
    (tmp_path / 'listed.yaml').write_text('forbidden_modules: [os, "sub*"]\n')
    profile = run('--set', f'engine.profiles_dir={tmp_path}', '--profile', 'listed', '-l', 'python', '-c', 'import subprocess')
    assert blocked(profile) == ['Forbidden import: subprocess']
    request = {'language': 'python', 'code': 'import os\ndef f(): return 1', 'function': 'f', 'forbidden_modules': ['os'],
               'cases': [{'args': [], 'expected': 1}]}
    result = json.loads(caisson('grade', '--json', '-', stdin=json.dumps(request).encode()).out)
    assert (result['status'], [one['message'] for one in result['findings']]) == ('blocked', ['Forbidden import: os'])
    done = caisson('check', '--policy', 'off', '--forbid-import', 'os', '-l', 'python', '-c', 'import os')
    assert done.status == 2 and 'Forbidden import: os' in done.out


@pytest.mark.parametrize(('policy', 'code', 'word'), [
    ('kodeagent', 'import os', 'disallowed_import'),
    ('kodeagent', 'from . import os', 'disallowed_import'),
    ('kodeagent', 'x = eval("1")', 'forbidden_builtin'),
    ('kodeagent', 'cmd = "rm -rf /"', 'pattern'),
    ('agentos', 'open("x")', 'forbidden_builtin'),
    ('linx', 'import subprocess\nsubprocess.run(["x"])', 'pattern'),
    ('codemie', 'import os', 'disallowed_import'),
])
def test_a_refusal_has_a_code(web, policy, code, word):
    """S0-13, S0-45, U-04."""
    record = web.run(code, 'python', policy=policy)
    assert (record['status'], record['error']['code']) == ('blocked', word)
    assert record['feedback'][0] == 'Code violates sandbox security rules; avoid system calls and I/O.'       # S1-56
    assert any(line.startswith(f'Line {record["findings"][0]["line"]}: ') for line in record['feedback'])


def test_printed_words_are_no_refusal(web):
    """S1-56: the seed searched standard error for the word."""
    record = web.run('import sys\nprint("SECURITY VIOLATION", file=sys.stderr)\n[][1]', 'python', policy='agentos')
    assert record['feedback'] == ['Line 3: IndexError: list index out of range', 'List index out of range. Check bounds.']


# ---- U-23: section 6.3

PYTHON = [
    'import re; re.compile("a")',
    'class Model:\n    def eval(self): return 1\nmodel = Model()\nmodel.eval()',
    'class Frame:\n    def eval(self, text): return 1\ndf = Frame()\ndf.eval("a+b")',
    'import ast; ast.literal_eval("1")',
    'class Resp:\n    content = b"x"\nresp = Resp()\n' + 'resp.content.decode("utf-8")\n' * 4,
    'import platform; platform.system()',
    'class A:\n    def name(self): return self.__class__.__name__\nA().name()',
    'def f():\n    while True: return 1\nf()',
    'def profile(): return 1\nprofile()',
    'class Tools:\n    def open(self, n): return n\nown = Tools()\nown.open(1)',
    '# urlopen("http://example.org")\nx = 1',
    "print('never run rm -rf / please')",
    "x = 'import os now'",
    'import sys; print("Warning: old", file=sys.stderr)',
    'compile = 1',
    'def eval(x): return x\neval(3)',
    'class Box:\n    def system(self): return 1\n    def popen(self, x): return x\nbox = Box()\nbox.system(); box.popen(1)',
    'x = 1\n' + '# a comment that makes the program long\n' * 320,
]
JAVASCRIPT = ['(function(){})()', 'setTimeout(() => {}, 1)', "require('fs')", 'const dfs = []; dfs.push(1)']


@pytest.mark.parametrize('profile', ['standard', 'tools'])
@pytest.mark.parametrize(('language', 'code'), [('python', code) for code in PYTHON] + [('javascript', code) for code in JAVASCRIPT])
def test_false_alarms_of_the_seeds_run(web, profile, language, code):
    record = web.run(code, language, profile=profile)
    assert (record['status'], record['exit_code']) == ('completed', 0), record['error']


@pytest.mark.parametrize('policy', ['kodeagent', 'agentos', 'linx', 'codemie', 'mcp-light'])
@pytest.mark.parametrize('code', ['compile = 1\nprint(compile)', 'def eval(x): return x\nprint(eval(3))',
                                  'class Box:\n    def system(self): return 1\n    def popen(self, x): return x\ndef use(b):\n    return b.system(), b.popen(1)\nuse(Box())'])
def test_own_names_are_not_refused(web, policy, code):
    """S0-12, S0-29: a finding at the most."""
    answer = check(web, code, policy=policy)
    assert answer['verdict'] == 'allow', answer['reason']
    own = [one['rule'] for one in answer['findings']]
    assert own == (['shadowed_builtin'] if policy == 'kodeagent' and 'Box' not in code else [])


@pytest.mark.parametrize(('code', 'message'), [
    ('import os\nos.rename("a", "b")', 'Dangerous os.rename access'),
    ('import os as o\no.replace("a", "b")', 'Dangerous os.replace access'),
    ('x = [0] * 10**9', 'Large memory allocation: list * 1000000000'),
    ('x = 200000000 * ("a", None)', 'Large memory allocation: 200000000 * list'),
    ('x = "A" * 10**9', 'Large memory allocation: string * 1000000000'),
    ('print(os.environ)', 'Dangerous os.environ access'),
    ('x = os.environ["A"]', 'Dangerous os.environ access'),
])
def test_what_the_seed_was_silent_about_is_found(web, code, message):
    """S0-31, S0-39."""
    answer = check(web, code, policy='kodeagent', allow_imports=['os'])
    assert message in [one['message'] for one in answer['findings']]


def test_small_lists_are_no_finding(web):
    assert check(web, 'x = [0] * 10**6\ny = [None] * n', policy='kodeagent')['findings'] == []
