"""POST /v1/tool: the tool code_execution, with the names by which clients of the five systems send a program."""

import json
import re
import signal

import pytest

from cli import ROOT
from web import Web


@pytest.fixture(name='web', scope='module')
def running(tmp_path_factory):
    web = Web(tmp_path_factory.mktemp('tool'))
    yield web
    assert web.daemon.stop(signal.SIGTERM) == 0


def call(web, code='print(6 * 7)', **more):
    status, _, answer = web.ask('POST', '/v1/tool', {'tool': 'code_execution', 'code': code, **more})
    assert status == 200, answer
    return answer


def refused(web, field, *words, **body):
    status, headers, answer = web.ask('POST', '/v1/tool', {'tool': 'code_execution', 'code': 'print(1)', **body})
    assert status == 422 and 'problem+json' in headers['Content-Type'], answer
    assert answer['code'] == 'bad_request' and answer['field'].strip('/') == field, answer
    for word in words:
        assert word in answer['detail'], answer['detail']


def test_the_body_of_the_prompt_format(web):
    """S2-65, S2-64, S2-02: what a model without function calls writes is accepted as it is."""
    body = json.loads('{"tool":"code_execution","code":"import math\\nprint(math.sqrt(16))","language":"python"}')
    status, _, answer = web.ask('POST', '/v1/tool', body)
    assert (status, answer['status'], answer['stdout'], answer['text'].strip()) == (200, 'completed', '4.0\n', 'Code executed successfully:\n4.0')
    assert answer['aliases']['success'] is True and answer['aliases']['output'] == '4.0\n'


def test_the_language_is_that_of_the_profile_and_else_python(web):
    assert call(web)['language'] == 'python'
    assert call(web, 'echo $((6 * 7))', language='sh')['stdout'] == '42\n'
    assert call(web, profile='codemie', format='codemie')['language'] == 'python'


def test_a_timeout_is_in_seconds(web):
    """S0-04, S1-07, S2-33: 0.5 is half a second, and more than the ceiling is refused with its name."""
    answer = call(web, 'import time; print("begun", flush=True); time.sleep(60)', timeout=0.5)
    assert answer['status'] == 'timeout' and answer['limits']['wall_ms'] == 500 and answer['stdout'] == 'begun\n'
    assert call(web, timeout='7')['limits']['wall_ms'] == 7000
    for value in (0, -1, 'soon', True, [], 86401):
        refused(web, 'timeout', 'seconds', timeout=value)


def test_names_of_kodeagent(web):
    """S0-02, S0-04: the options of CodeRunner; what has no meaning is told in the record's warnings."""
    answer = call(web, 'import datetime, os; print(datetime.date(2020, 1, 1), os.getcwd())', format='linx', env='kodeagent', allowed_imports=['os'],
                  env_vars_to_set={'WHO': 'me'}, model_name='gpt-x', litellm_params={}, pip_packages=None, timeout=30, task_id='t1', usage_tracker=None)
    assert answer['stdout'] == '2020-01-01 /home/user\n'       # the modules of the request come to those of the profile
    answer = call(web, 'import datetime; print(who())', format='linx', env='kodeagent', tools_code='def who():\n    return "me"', model_name='gpt-x',
                  task_id='t1', timeout=30)
    assert answer['profile'] == 'kodeagent' and answer['task_id'] == 't1'
    notes = [one['text'] for one in answer['warnings'] if one['code'] == 'name_without_meaning']
    assert notes == ['model_name has no meaning here: the model of reviews is the setting review.model']
    answer = call(web, env='docker')
    assert answer['status'] == 'bad_request' and answer['error']['code'] == 'unknown_profile'
    assert answer['error']['message'].startswith('Unsupported code execution env: docker; known profiles are standard, ')


def test_packages_have_three_names(web):
    for name in ('packages', 'pip_packages', 'explicit_dependencies'):
        answer = call(web, **{name: ['requests==2.31.*']})
        assert answer['packages'] == ['requests==2.31.*'], answer
    assert call(web, pip_packages='requests==2.31.*, tabulate')['packages'] == ['requests==2.31.*', 'tabulate']


def test_names_of_agentos(web):
    """S1-07: four knobs."""
    answer = call(web, profile='agentos', format='linx', timeout=30.0, max_memory_mb=128, allow_imports=True)
    assert answer['limits']['memory_bytes'] == 128 << 20 and answer['limits']['wall_ms'] == 30000
    refused(web, 'func_name', 'POST /v1/grade', func_name='add')
    refused(web, 'test_cases', 'POST /v1/grade', test_cases=[])
    refused(web, 'max_memory_mb', 'MiB', max_memory_mb=-1)


def test_names_of_linx(web):
    """S2-02, S2-06: the user of the context is in the record, and nothing of the context is in the sandbox."""
    answer = call(web, 'import os; print(os.listdir())', profile='linx', context={'user_id': '123', 'task_id': 't', 'team': 7}, agent_id='a1')
    assert (answer['user'], answer['task_id'], answer['labels']) == ('123', 't', {'team': '7', 'agent_id': 'a1'})
    assert answer['stdout'] == "['main.py']\n"
    refused(web, 'context', 'input', context={'secrets': {'a': 'b'}})


def test_names_of_codemie(web):
    """S3-24: files go in and out by the names of CodeExecutorTool."""
    answer = call(web, 'open("out.csv", "w").write(open("[in] a.csv").read() * 2)', profile='codemie', user_id='u',
                  input_files=[{'name': '[in] a.csv', 'mime_type': 'text/csv', 'owner': 'u', 'content': 'a,b\n'}], export_files=['out.csv'])
    assert answer['status'] == 'completed' and answer['user'] == 'u', answer
    kept = [one for one in answer['files'] if one['name'] == 'out.csv'][0]
    assert web.ask('GET', kept['url'].split(':', 1)[1])[2] == b'a,b\na,b\n'
    assert f"File 'out.csv': {kept['url']}" in answer['text']


def test_names_of_the_light_executor(web):
    """S4-05: four knobs."""
    answer = call(web, 'print("x" * 5000)', profile='mcp-light', format='linx', timeout=30.0, max_output_size=1000, verbose=False)
    assert answer['limits']['output_bytes'] == 1000 and answer['truncated']['stdout_bytes'] > 0
    assert [one['code'] for one in answer['warnings']] == ['output_truncated', 'name_without_meaning']


def test_an_unknown_name_is_an_error_that_lists_the_known_ones(web):
    refused(web, 'time_out', 'time_out', 'timeout', 'explicit_dependencies', 'input_files', time_out=3)
    refused(web, 'time_out', 'time_out', time_out=None)
    refused(web, 'tool', 'code_execution', tool='web_search')
    refused(web, 'timeout', 'wall_ms', timeout=3, limits={'wall_ms': 3000})
    assert call(web, timeout=3, limits={'pids': 9})['limits']['pids'] == 9
    status, _, answer = web.ask('POST', '/v1/tool', '[1]')
    assert status == 422, answer
    status, _, answer = web.ask('POST', '/v1/tool', {'tool': 'code_execution'})
    assert status == 422 and answer['field'] == '/code', answer


def test_the_form_of_the_text_is_the_requests_or_the_profiles_and_else_that_of_linx(web):
    """S2-66: the default profile names no form."""
    assert call(web, 'pass')['text'] == 'Code executed successfully (no output)\n' == call(web, 'pass', profile='data')['text']
    assert call(web, '1/0')['text'].startswith('Code execution failed:\nTraceback')
    code = 'print("out"); import sys; print("err", file=sys.stderr)'
    assert 'STDERR:' in call(web, code, format='codemie')['text']
    assert call(web, code, profile='codemie', policy='off')['text'] == call(web, code, format='codemie')['text']
    assert call(web, code, format='plain')['text'] != call(web, code, format='brief')['text']


def test_a_fields_value_is_judged_as_in_a_run(web):
    refused(web, 'format', format='nosuch')
    refused(web, 'args', args='x')
    assert call(web, work_dir='/etc')['error']['field'] == '/work_dir'
    refused(web, 'files/0', input_files=['a.csv'])
    refused(web, 'input_files', input_files={'name': 'a'})


@pytest.mark.parametrize('body', ['{"tool": "code_execution", "code": "print(1)", "context": ' + '{"a":' * 200 + '1' + '}' * 200 + '}',
                                  '{"tool": "code_execution", "code": "print(1)", "timeout": 1e999}', '{"code": "\\ud800"}', '{', '',
                                  '{"code": "print(1)", "env": "\\u0000"}', '{"code": "1", "labels": [], "agent_id": "x"}',
                                  '{"code": "1", "limits": 3, "timeout": 3}', '{"code": "1", "pip_packages": "' + 'a,' * 3000 + '"}'])
def test_hostile_bodies_are_refused(web, body):
    status, _, answer = web.ask('POST', '/v1/tool', body)
    assert status in (400, 413, 422) and answer['detail'], answer
    assert call(web)['stdout'] == '42\n'


def test_every_name_of_the_table_is_tested_here():
    table = re.search(r'\n} names\[\] = \{(.*?)\n};', (ROOT / 'src/front/compat/tool_names.c').read_text(encoding='utf-8'), flags=re.S).group(1)
    names = re.findall(r'^ +\{ "([a-z_]+)"', table, flags=re.M)
    here = (ROOT / 'tests/integration/compat/test_tool_call.py').read_text(encoding='utf-8')
    untested = {'tool_names', 'setup_code', 'file_repository', 'tools_api'}      # in the test below
    assert len(names) > 20 and {name for name in names if f'{name}=' not in here and f"'{name}'" not in here} <= untested


def test_the_rest_of_the_names(web):
    answer = call(web, tool_names=['weather'], setup_code='x = 1', file_repository='s3', tools_api='x')
    assert {one['code'] for one in answer['warnings']} >= {'name_without_meaning', 'tool_not_found'}
    assert call(web, 'import os', allow_imports=False)['status'] in ('blocked', 'completed')
