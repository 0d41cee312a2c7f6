"""Preludes, modules and inputs: files beside the program that shift none of its lines."""

import base64
import json

import pytest

from cli import run

PRELUDES = {
    'python': ('"""Tools."""\nimport math\ndef add(a, b):\n    return a + b\n', 'print(add(2, 3), math.floor(2.5))', '5 2\n'),
    'javascript': ("const fs = require('fs');\nfunction add(a, b) { return a + b; }\nclass Pair {}\n",
                   "console.log(add(2, 3), new Pair() instanceof Pair, fs.existsSync('/usr'))", '5 true true\n'),
    'typescript': ('interface Two { a: number; b: number }\nfunction add(two: Two): number { return two.a + two.b; }\n',
                   'const sum: number = add({ a: 2, b: 3 });\nconsole.log(sum)', '5\n'),
    'bash': ('add() { echo $(( $1 + $2 )); }\nLIMIT=7\n', 'add 2 3\necho $LIMIT', '5\n7\n'),
}
FAILURES = {
    'python': ('x = 1\nraise ValueError("no key")\n', 'ValueError', 2),
    'javascript': ('let a = 1;\nfunction f() { throw new RangeError("no key"); }\nf();\n', 'RangeError', 2),
    'typescript': ('let a: number = 1;\nthrow new RangeError("no key");\n', 'RangeError', 2),
    'bash': ('echo before\nexit 3\n', 'ExitStatus', None),
}
BROKEN = {
    'python': ('x = 1\ndef f(:\n', 2),
    'javascript': ('let a = 1;\nlet b = ;\n', 2),
    'typescript': ('let a: number = 1;\nlet b: = ;\n', 2),
    'bash': ('x=1\nif then\n', 2),
}
LANGUAGES = sorted(PRELUDES)


@pytest.mark.parametrize('language', LANGUAGES)
@pytest.mark.parametrize('mode', ['pooled', 'cold'])
def test_the_program_finds_what_its_prelude_defines(web, language, mode):
    """S0-15, S0-97: tools as functions, on each way in which an interpreter starts."""
    prelude, code, out = PRELUDES[language]
    more = {'env': {'LC_ALL': 'C.UTF-8'}} if mode == 'cold' else {}     # which an interpreter reads at its start
    record = web.run(code, language, prelude=prelude, **more)
    assert (record['status'], record['stdout'], record['stderr']) == ('completed', out, '')
    assert record['files'] == [] and record['inputs'] == []


def test_lines_are_those_of_the_program_and_a_future_import_stays_possible(web):
    """S0-15: a traceback names both files, and `from __future__` is the program's first statement."""
    code = 'from __future__ import annotations\ndef f(x: Nope): return add(1, x)\nf("2")\n'
    record = web.run(code, 'python', prelude=PRELUDES['python'][0])
    assert (record['status'], record['error']['type'], record['error']['line']) == ('failed', 'TypeError', 2)
    assert 'code' not in record['error']
    trace = '\n'.join(record['error']['traceback'])
    assert 'File "/home/user/main.py", line 3' in trace and 'File "/home/user/prelude.py", line 4' in trace
    assert 'return a + b' in trace


@pytest.mark.parametrize('language', LANGUAGES)
def test_an_error_of_the_prelude_is_told_as_such(web, language):
    """S0-14: the user's own tools are told apart from the program, which does not run."""
    prelude, kind, line = FAILURES[language]
    code = {'python': 'print("ran")', 'bash': 'echo ran'}.get(language, 'console.log("ran")')
    record = web.run(code, language, prelude=prelude)
    error = record['error']
    assert (record['status'], error['code'], error['field'], error['type'], error.get('line')) == (
        'failed', 'prelude_failed', '/prelude', kind, line)
    assert 'ran' not in record['stdout'] and record['exit_code'] != 0
    assert 'The prelude failed, and the program did not run.' in record['feedback'][-1]
    if line:
        assert record['feedback'][0].startswith(f'Prelude, line {line}: {kind}: ')


@pytest.mark.parametrize('language', LANGUAGES)
def test_a_prelude_that_does_not_parse_is_no_syntax_error_of_the_program(web, language):
    prelude, line = BROKEN[language]
    code = {'python': 'print("ran")', 'bash': 'echo ran'}.get(language, 'console.log("ran")')
    record = web.run(code, language, prelude=prelude)
    assert (record['status'], record['error']['code'], record['error']['line'], record['stdout']) == ('failed', 'prelude_failed', line, '')


def test_a_prelude_that_exits_is_a_failure_and_the_programs_mistake_comes_first(web):
    record = web.run('print("ran")', 'python', prelude='import sys\nsys.exit(0)\n')
    assert (record['status'], record['error']['code'], record['error']['type']) == ('failed', 'prelude_failed', 'SystemExit')
    record = web.run('def f(:', 'python', prelude='print("prelude")')
    assert (record['status'], record['stdout'], record['error']['line']) == ('syntax_error', '', 1)


def test_a_program_of_bash_finds_nothing_of_ours_but_the_prelude(web):
    code = 'declare -F; env | grep -c BASH_ENV; env | grep -c __caisson; trap; ls /proc/self/fd | wc -l; echo "$0 $LINENO $*"'
    record = web.run(code, 'bash', prelude='add() { :; }', args=['a', 'b'])
    assert record['stdout'] == 'declare -f add\n0\n0\n4\n/home/user/main.sh 1 a b\n'


def test_a_module_of_javascript_finds_the_prelude(web):
    code = "import path from 'path';\nconst add2 = add(1, 1);\nconsole.log(add2, path.basename('/a/b'))"
    assert web.run(code, 'javascript', prelude=PRELUDES['javascript'][0])['stdout'] == '2 b\n'


def test_a_context_of_python_takes_a_prelude(web):
    sandbox = web.ask('POST', '/v1/sandboxes', {})[2]['id']
    context = web.ask('POST', f'/v1/sandboxes/{sandbox}/contexts', {})[2]['id']
    other = web.ask('POST', f'/v1/sandboxes/{sandbox}/contexts', {'language': 'bash'})[2]['id']

    def execute(code, where=context, **more):
        return web.ask('POST', '/v1/runs', {'context': where, 'code': code, **more})[2]

    assert execute('add(1, 2)', prelude='def add(a, b):\n    return a + b')['result']['value'] == 3
    assert execute('add(2, 2)')['result']['value'] == 4
    failed = execute('print("ran")', prelude='\n1/0')
    assert (failed['status'], failed['error']['code'], failed['error']['line'], failed['stdout']) == ('failed', 'prelude_failed', 2, '')
    refused = execute('true', other, prelude='x=1')
    assert (refused['status'], refused['error']['field']) == ('bad_request', '/prelude')
    for field, value in (('modules', [{'name': 'a.py', 'content': ''}]), ('input', 1)):
        assert execute('1', **{field: value})['error']['field'] == f'/{field}'
    web.ask('DELETE', f'/v1/sandboxes/{sandbox}')


def test_prelude_and_program_are_checked_separately(web):
    """S0-14: findings say which of the two they are in."""
    record = web.run('x = 1\ny = eval("2")', 'python', policy='kodeagent', prelude='import socket\n')
    assert (record['status'], record['error']['code']) == ('blocked', 'forbidden_builtin')
    assert [(one.get('file'), one['line']) for one in record['findings'] if one['rule'] == 'disallowed_import'] == [('prelude', 1)]
    assert {one.get('file') for one in record['findings'] if one['rule'] == 'forbidden_builtin'} == {None}
    alone = web.run('print(1)', 'python', policy='kodeagent', prelude='\nimport socket\n')
    assert (alone['status'], alone['error']['code']) == ('blocked', 'disallowed_import')
    assert alone['error']['message'].startswith('Prelude: The following imports are disallowed:\nsocket')
    assert 'Prelude, line 2: Disallowed import: socket' in alone['feedback']
    broken = web.run('print(1)', 'python', policy='kodeagent', prelude='def f(:')
    assert (broken['status'], broken['error']['code']) == ('blocked', 'prelude_failed')


def test_a_prelude_of_any_bytes_is_checked(web):
    latin1 = {'prelude_base64': base64.b64encode(b'# coding: latin-1\ntext = "\xe9"\n').decode()}
    record = web.run('print(ascii(text))', 'python', policy='linx', **latin1)
    assert (record['status'], record['stdout']) == ('completed', "'\\xe9'\n"), record['error']


def test_a_definition_with_the_name_of_a_tool_is_found(web):
    """S0-10: names of the prelude, and of the tools of the request; the finding refuses nothing."""
    record = web.run('def add(a):\n    return a\nprint(add(1))', 'python', policy='agentos', prelude=PRELUDES['python'][0])
    assert (record['status'], record['stdout']) == ('completed', '1\n')
    assert [(one['rule'], one['line'], one['message']) for one in record['findings']] == [
        ('shadows_tool', 1, 'The program defines add, which is the name of a tool')]
    checked = web.ask('POST', '/v1/check', {'language': 'python', 'policy': 'agentos', 'tools': ['weather'],
                                            'code': 'class weather: pass\nother = 1'})[2]
    assert (checked['verdict'], [one['rule'] for one in checked['findings']]) == ('allow', ['shadows_tool'])
    used = web.ask('POST', '/v1/check', {'language': 'python', 'policy': 'agentos', 'tools': ['weather'], 'code': 'print(weather)'})[2]
    assert used['findings'] == []


# ---- modules

HELPERS = {'name': 'helpers.py', 'content': 'def hi():\n    return "hi"\n'}


def test_modules_are_imported_and_cannot_be_changed(web):
    """S0-73: in a folder of their own, read-only, neither in the home nor among the files."""
    code = '''
import helpers, pack.deep as deep, os
place = helpers.__file__
print(helpers.hi(), deep.X, place, sorted(os.listdir('.')))
for change in (lambda: open(place, 'w'), lambda: os.chmod(place, 0o777), lambda: os.unlink(place), lambda: os.utime(place),
               lambda: open(os.path.dirname(place) + '/new', 'w'), lambda: os.symlink('/', os.path.dirname(place) + '/link')):
    try:
        change()
        print('changed')
    except OSError as error:
        print(error.errno)
'''
    record = web.run(code, 'python', modules=[HELPERS, {'name': 'pack/__init__.py', 'content': ''}, {'name': 'pack/deep.py', 'content': 'X = 5'}])
    assert record['stdout'] == "hi 5 /opt/caisson/modules/helpers.py ['main.py']\n" + '30\n' * 6
    assert record['files'] == [] and record['inputs'] == []


@pytest.mark.parametrize(('language', 'code'), [
    ('javascript', "console.log(require('helpers').hi())"),
    ('javascript', "import { hi } from 'helpers'; console.log(hi())"),
    ('javascript', "import('helpers.js').then((helpers) => console.log(helpers.hi()))"),
    ('typescript', "import { hi } from 'helpers'; const text: string = hi(); console.log(text)"),
    ('bash', '. helpers.sh; hi'),
])
def test_other_languages_find_modules_by_name(web, language, code):
    modules = [{'name': 'helpers.js', 'content': 'exports.hi = () => "hi";'}, {'name': 'helpers.sh', 'content': 'hi() { echo hi; }'}]
    record = web.run(code, language, modules=modules)
    assert (record['stdout'], record['stderr']) == ('hi\n', '')


def test_modules_are_bytes(web):
    """S0-73: a copy as text would lose them."""
    record = web.run('print(open("/opt/caisson/modules/data.bin", "rb").read())', 'python',
                     modules=[{'name': 'data.bin', 'content_base64': '/wD+'}])
    assert record['stdout'] == "b'\\xff\\x00\\xfe'\n"


def named(*names):
    return [{'name': name, 'content': ''} for name in names]


@pytest.mark.parametrize(('modules', 'words'), [
    (named('../x.py'), 'cannot be the name of a module'),
    (named('/etc/x.py'), 'cannot be the name of a module'),
    (named('a\nb.py'), 'cannot be the name of a module'),
    (named('a.py', 'a.py'), 'two modules have the name a.py'),
    (named('a', 'a/b.py'), 'is itself a module'),
    (named('d/' * 17 + 'm.py'), 'at most 16 are possible'),
    ([{'name': f'm{i}.py', 'content': '#' * 17000} for i in range(1000)], 'at most 16777216 are possible together'),
])
def test_modules_that_are_refused(web, modules, words):
    status, _, answer = web.ask('POST', '/v1/runs', {'language': 'python', 'code': '1', 'modules': modules})
    error = answer.get('error') or answer
    assert status == 200 and answer['status'] == 'bad_request' or status == 422, answer
    assert words in json.dumps(error) and '/modules' in json.dumps(error)


def test_as_many_modules_as_may_be_fit(web):
    modules = [{'name': f'{"d/" * 15}m{i}.py', 'content': '#' * 16000} for i in range(1000)]
    record = web.run('import os\nprint(sum(len(files) for _, _, files in os.walk("/opt/caisson/modules")))', 'python', modules=modules)
    assert record['stdout'] == '1000\n', record['error']


# ---- input and length

def test_the_input_is_a_file_of_json(web):
    """S2-06: only `input` goes in; it is no output unless it was changed."""
    value = {'user_id': '123', 'list': [1, 2.5, None, 'é']}
    record = web.run('import json; print(json.load(open(".input.json")) == ' + repr(value) + ')', 'python', input=value)
    assert (record['stdout'], record['files']) == ('True\n', [])
    changed = web.run('open(".input.json", "w").write("{}")', 'python', input=value)
    assert [one['name'] for one in changed['files']] == ['.input.json']
    assert web.run('cat .input.json', 'bash', input=None)['stdout'] == 'null'
    clash = web.run('true', 'bash', input=1, files=[{'name': '.input.json', 'content': ''}])
    assert (clash['status'], clash['error']['field']) == ('bad_request', '/files')


def test_a_program_may_be_limited_in_its_length(web):
    """S4-26, S2-27: the limit names itself, and a long program is only called long."""
    limits = {'code_bytes': 60000}
    assert web.run('#' * 60000, 'python', limits=limits)['status'] == 'completed'
    record = web.run('#' * 60001, 'python', limits=limits)
    assert (record['status'], record['error']['field']) == ('bad_request', '/code')
    assert 'code_bytes=60000' in record['error']['message']
    texts = [[one['text'] for one in web.run('#' * length, 'python')['warnings']] for length in (10000, 10001)]
    assert texts == [[], ['Code is very long (>10000 characters)']]
    assert web.run('#' + 'é' * 9999, 'python')['warnings'] == []        # characters, and not bytes


def test_options_of_the_command_line(tmp_path):
    (tmp_path / 'tools.py').write_text('def add(a, b):\n    return a + b\n')
    (tmp_path / 'helpers.py').write_text(HELPERS['content'])
    record = run('-l', 'python', '--prelude', tmp_path / 'tools.py', '--module', tmp_path / 'helpers.py',
                 '--module', f'{tmp_path}/helpers.py:pack/__init__.py', '-c', 'import helpers, pack\nprint(add(1, 2), helpers.hi(), pack.hi())')
    assert record['stdout'] == '3 hi hi\n'
    missing = run('-l', 'python', '--module', tmp_path / 'nothing.py', '-c', '1')
    assert missing['status'] == 'bad_request'


def test_where_there_is_no_prelude(tmp_path):
    (tmp_path / 'languages').mkdir()
    (tmp_path / 'languages/perl.yaml').write_text('command: [/usr/bin/perl, "{file}"]\nextensions: [pl]\n')
    refused = run('--set', f'engine.languages_dir={tmp_path}/languages', '--request', write(tmp_path, language='perl', code='1', prelude='1'))
    assert (refused['status'], refused['error']['field']) == ('bad_request', '/prelude')


def write(folder, **request):
    (folder / 'request.json').write_text(json.dumps(request))
    return folder / 'request.json'
