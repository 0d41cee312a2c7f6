"""The command line as users of the five older systems know theirs; each test names rows of the checklist."""

import json
import re

import pytest

from cli import bash, caisson, python, run, write

FENCED = 'Sure!\n\n```python\nx = 1\nraise ValueError(f"line {x + 1}")\n```\n\nThis raises.\n'


# ---- S0-92: code fences ----

@pytest.mark.parametrize('extract', ['last_fence', 'tagged_fence'])
def test_a_program_is_taken_out_of_the_markdown_around_it(tmp_path, extract):
    """S0-92: lines are those of the program, and a warning names its first line in the text."""
    path = write(tmp_path / 'answer.md', FENCED)
    record = run('--extract', extract, path)
    assert (record['language'], record['status'], record['error']['line'], record['error']['summary']) == ('python', 'failed', 2, 'ValueError: line 2')
    assert [w['text'] for w in record['warnings'] if w['code'] == 'extracted'] == [f'the program begins in line 4 of code, because extract is {extract}']
    assert run('-l', 'python', path)['status'] == 'syntax_error'


def test_a_fence_inside_of_a_string_stays():
    """S0-92: the trap of the seed."""
    assert python('```python\nprint("""\n```\nx\n```\n""")\n```\n', '--extract', 'last_fence')['stdout'] == '\n```\nx\n```\n\n'
    assert python('print("```")', '--extract', 'last_fence')['stdout'] == '```\n'


def test_the_tag_names_the_language_where_nothing_else_does():
    assert run('--extract', 'tagged_fence', '-', stdin=b'```bash\necho $((6 * 7))\n```\n')['stdout'] == '42\n'
    assert run('--extract', 'last_fence', '-', stdin=b'```js\nconsole.log(1)\n```\n')['stdout'] == '1\n'
    for text in (b'```\necho\n```\n', b'echo'):
        assert 'no language is given' in run('--extract', 'last_fence', '-', stdin=text)['error']['message']
    record = run('-l', 'bash', '--extract', 'tagged_fence', '-', stdin=b'```python\nprint(1)\n```\n```sh\necho 2\n```\n```\n3\n```\n')
    assert record['stdout'] == '2\n'


def test_what_is_checked_is_the_program_alone():
    """S0-92: extraction comes before the policy."""
    text = 'import os is forbidden.\n```python\nprint(1)\n```\n'
    assert python(text, '--extract', 'last_fence', '--policy', 'kodeagent')['stdout'] == '1\n'
    blocked = python('```python\nimport os\n```\n', '--extract', 'last_fence', '--policy', 'kodeagent')
    assert blocked['status'] == 'blocked' and blocked['findings'][0]['line'] == 1


# ---- names of the seeds in the record ----

def test_a_record_has_the_names_of_all_seeds():
    """U-03, S0-66, S1-01, S2-03, S2-04: fields of the record, and aliases on request."""
    record = python('print("hi"); open("f", "w").write("x"); 42', '--aliases')
    aliases = record['aliases']
    assert (record['stdout'], record['stderr'], aliases['return_code'], aliases['generated_files']) == ('hi\n', '', 0, ['f'])
    assert {'success', 'exception', 'duration', 'max_memory_mb', 'test_results', 'all_passed'} <= set(aliases) and 'exit_code' in record
    assert {'execution_id', 'success', 'output', 'error', 'return_value', 'metrics', 'execution_time_seconds', 'sandbox_id', 'validation_result',
            'started_at', 'completed_at'} <= set(aliases) and 'status' in record
    assert (aliases['output'], aliases['success'], aliases['error'], aliases['return_value']) == ('hi\n', True, '', 42)


@pytest.mark.parametrize('code, options, exception', [
    ('def f(:', (), 'Syntax error: Line 1: invalid syntax'),
    ('import os', ('--policy', 'kodeagent'), 'Security check failed'),
    ('1', ('--policy', 'nosuch'), None),
    ('while True: pass', ('--timeout', '1'), 'Timeout after 1s'),
])
def test_code_that_never_ran_has_return_code_minus_one(code, options, exception):
    """S0-17 and S0-67: -1, and the status says why; S1-13, S1-17, S1-29: the exceptions of agentos."""
    record = python(code, '--aliases', *options)
    assert record['status'] != 'completed' and record['aliases']['return_code'] == -1 and not record['aliases']['success'], record
    assert exception in (None, record['aliases']['exception']), record['aliases']


def test_the_summary_of_an_error_is_the_last_line_of_its_traceback():
    """S2-38 and S1-44: a short error, and the last lines of standard error."""
    record = python('print(undefined_variable)', '--aliases')
    assert record['error']['summary'] == record['aliases']['error'] == "NameError: name 'undefined_variable' is not defined"
    assert record['error']['tail'] == record['stderr'].rstrip('\n').split('\n')[-5:] and record['error']['tail'][-1] == record['error']['summary']
    assert python('raise KeyError')['error']['summary'] == 'KeyError' or python('raise KeyError')['error']['summary'].startswith('KeyError: ')
    assert run('-l', 'js', '-c', 'null.x')['error']['summary'].startswith('TypeError: ')
    assert bash('for i in 1 2 3 4 5 6 7; do echo $i; done >&2; exit 1')['error']['tail'] == ['3', '4', '5', '6', '7']
    silent = bash('exit 1')['error']
    assert 'tail' not in silent and 'summary' not in silent
    assert 'tail' not in bash('echo warning >&2') and bash('echo warning >&2')['error'] is None


def test_success_is_the_exit_status_alone():
    """S2-40: a warning on standard error is no failure, and a silent failure has its sentence."""
    assert bash('echo warning >&2', '--aliases')['aliases']['success']
    record = bash('exit 4', '--aliases')
    assert not record['aliases']['success'] and record['aliases']['error'] == 'Process exited with code 4'


def test_a_failure_of_the_engine_has_no_trace_of_the_engine():
    """S1-30."""
    record = python('1', '--set', 'engine.cgroup_parent=no/such/cgroup')
    assert record['status'] in ('engine_error', 'isolation_unavailable') and record['error']['message'], record
    assert record['stderr'] == '' and 'Traceback' not in json.dumps(record) and '.c:' not in json.dumps(record)


# ---- files ----

def test_files_of_one_name_in_two_folders_do_not_clash(tmp_path):
    """S0-80."""
    record = python('import os\nfor d in "ab":\n    os.mkdir(d)\n    open(d + "/x.png", "w").write(d)', '--export', f'*.png:{tmp_path}/out')
    assert [file['path'] for file in record['files']] == [f'{tmp_path}/out/{d}/x.png' for d in 'ab']
    assert [(tmp_path / 'out' / d / 'x.png').read_text() for d in 'ab'] == ['a', 'b']


@pytest.mark.parametrize('pattern, error', [
    ('missing.csv', 'there is no file of this name'), ('*.png', 'no new or changed regular file has such a name'), ('/etc/passwd', 'an absolute name'),
    ('../../etc/passwd', '"." and ".." are not allowed'), ('link', 'it is a link'),
])
def test_an_export_that_fails_has_an_error_and_a_line(tmp_path, pattern, error):
    """S0-81, S3-71, S3-75, U-30: in the record, on standard error and in a text; the others come all the same."""
    code = 'import os; os.symlink("/etc/passwd", "link"); open("good", "w").write("1")'
    options = ('--export', f'{pattern}:{tmp_path}/out', '--export', f'good:{tmp_path}/out')
    record = python(code, *options)
    files = {file['name']: file for file in record['files']}
    assert files[pattern]['error'].startswith(error) and files['good']['path'] == f'{tmp_path}/out/good', record['files']
    for form in ((), ('--format', 'codemie')):
        done = caisson('run', '-l', 'python', '-c', code, *options, *form)
        assert f'caisson: not exported: {pattern}: {error}' in done.err and (tmp_path / 'out/good').read_text() == '1'
    assert f"File 'good': {tmp_path}/out/good\nFile '{pattern}': not exported: {error}" in done.out


def test_each_input_has_its_time(tmp_path):
    """S3-94."""
    record = bash('wc -c < big', '--file', write(tmp_path / 'big', b'x' * 5_000_000), '--file', write(tmp_path / 'small', 'x'))
    big, small = record['inputs']
    assert big['ms'] > small['ms'] >= 0


# ---- texts ----

def test_a_profile_chooses_the_form_of_the_text(tmp_path):
    """Without --format the output is printed as it comes; a profile or a request that names a form gets text."""
    write(tmp_path / 'seed.yaml', 'extends: standard\nlanguage: python\nformat: linx\n')
    seed = ('--set', f'engine.profiles_dir={tmp_path}', '--profile', 'seed')
    assert caisson('run', '-c', '1', *seed).out == 'Code executed successfully:\n1\n'
    assert caisson('run', '-c', 'print(1)', *seed, '--format', 'plain').out == '1\n'
    assert caisson('run', '-l', 'python', '-c', 'print(1)').out == '1\n'
    request = write(tmp_path / 'request.json', json.dumps({'language': 'python', 'code': 'x = 1', 'format': 'codemie'}))
    assert caisson('run', '--request', request).out == 'Code executed successfully with no output.\n'
    assert run('-c', '1', *seed)['format'] == 'linx'


def test_an_unknown_form_has_a_suggestion():
    done = caisson('run', '--format', 'codemi', '-l', 'bash', '-c', '1')
    assert done.status == 64 and 'codemie' in done.err and 'mcp-light' in done.err


# ---- S4-18: verbose ----

def test_verbose_shows_the_head_of_the_program_and_the_outcome():
    """S4-18."""
    code = 'print("a")\n' + '#' * 600
    err = caisson('run', '-v', '-l', 'python', '-c', code).err
    rule = '=' * 60
    assert f'{rule}\nSANDBOX EXECUTION\n{rule}\nCode ({len(code)} chars):\n{code[:500]}...\n{rule}\n' in err, err
    assert re.search(r'^✅ Execution successful \(\d+\.\d\ds\)\nOutput: a\n', err, re.M), err
    assert 'SANDBOX' not in caisson('run', '-v', '-q', '-l', 'python', '-c', code).err


@pytest.mark.parametrize('code, options, line', [
    ('import time; time.sleep(9)', ('--timeout', '1'), '⏱️ Timeout: Execution timeout after 1 second'),
    ('import os', ('--policy', 'kodeagent'), '❌ Security error: The following imports are disallowed:'),
    ('1 / 0', (), '❌ Execution error: ZeroDivisionError: division by zero'),
    ('def f(:', (), '❌ Execution error: SyntaxError: invalid syntax'),
])
def test_verbose_names_the_outcome_by_its_kind(code, options, line):
    """S4-18: a syntax error is no security error."""
    for form in ((), ('--format', 'brief')):
        assert line in caisson('run', '-v', '-l', 'python', '-c', code, *options, *form).err.splitlines()


def test_verbose_shows_no_value_of_the_environment():
    """S4-18: the seed prints the code with its secrets."""
    code = 'key = "sk-12345-abc"; other = "sk-12345"; short = "on"; print(1)'
    err = caisson('run', '-v', '-l', 'python', '-c', code, '--env', 'KEY=sk-12345-abc', '--env', 'OTHER=sk-12345', '--env', 'S=on').err
    assert 'sk-12345' not in err and 'key = "***"; other = "***"; short = "on"; print(1)' in err, err
    padding = '#' * 490
    err = caisson('run', '-v', '-l', 'python', '-c', f'{padding}sk-12345-abc', '--env', 'KEY=sk-12345-abc').err
    assert 'sk-' not in err, err


# ---- S3-43: the threshold SAFE ----

@pytest.mark.parametrize('policy, code', [('codemie', 'import os, socket\neval("1")\n'), ('kodeagent', 'import os\neval("1")\n' + 'import threading\n' * 9)])
def test_the_threshold_safe_blocks_nothing(policy, code):
    """S3-43: neither severities nor points."""
    done = caisson('check', '-l', 'python', '--policy', policy, '--block-at', 'SAFE', '--json', '-', stdin=code.encode())
    result = json.loads(done.out)
    assert result['verdict'] == 'allow' and len(result['findings']) >= 3, result
    assert json.loads(caisson('check', '-l', 'python', '--policy', policy, '--block-at', 'LOW', '--json', '-', stdin=code.encode()).out)['verdict'] == 'deny'


def test_a_policy_may_have_the_threshold_safe(tmp_path):
    """S3-43: as `block_at` of a policy; then a run has the findings and goes on."""
    write(tmp_path / 'mild.yaml', 'policy: mild\nextends: codemie\nblock_at: SAFE\n')
    record = python('import os\nprint(1)', '--set', f'engine.policies_dir={tmp_path}', '--policy', 'mild')
    assert record['status'] == 'completed' and [finding['severity'] for finding in record['findings']] == ['LOW']


# ---- S2-41: disk and network in the usage ----

def test_the_usage_has_what_the_home_directory_held_at_the_end():
    """S2-41: bytes and files; a file that was removed counts no more."""
    usage = python('import os\nos.makedirs("a/b")\nopen("a/b/x", "wb").write(b"x" * 1000000)')['usage']
    assert usage['disk_files'] == 4 and 1000000 <= usage['disk_bytes'] < 1100000     # main.py, a, a/b, a/b/x
    usage = python('import os\nopen("x", "wb").write(b"x" * 1000000)\nos.remove("x")')['usage']
    assert usage['disk_files'] == 1 and usage['disk_bytes'] < 100000


def test_the_usage_has_connections_of_a_run_with_a_network_only():
    """S2-41: a refused connection counts, and the proxy's answer to it is no traffic."""
    code = 'import urllib.request, urllib.error\nfor i in range(2):\n    try:\n        urllib.request.urlopen("http://10.0.0.1/")\n    except urllib.error.HTTPError:\n        pass'
    usage = python(code, '--network', 'public')['usage']
    assert {name: usage[name] for name in usage if name.startswith('network')} == {
        'network_connections': 2, 'network_refused': 2, 'network_in_bytes': 0, 'network_out_bytes': 0}
    assert not [name for name in python('pass')['usage'] if name.startswith('network')]
