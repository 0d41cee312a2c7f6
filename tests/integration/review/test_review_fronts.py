"""U-25: programs pass the reviewer by way of every front, and without a daemon."""

import contextlib
import json
import os
import subprocess
import textwrap

import pytest

from cli import LIBRARY, ROOT, caisson, environment
from daemon import children, until
from model_server import SECURE, ModelServer, code_of
from sandboxes import Sandbox
from test_review import Place

TEXT = 'Code execution blocked due to security concerns: it reads secrets'
GRADED = {'code': 'def f(x):\n    return x\n', 'function': 'f', 'cases': [{'args': [n], 'expected': n} for n in range(3)]}
JSON = {'Content_Type': 'application/json'}


def refuses_bad(request, handler):
    """The stub's own policy: it refuses programs with the word bad."""
    answer = handler.answer_insecure if 'bad' in code_of(request['body']) else handler.answer_secure
    answer(request['body'])


@pytest.fixture(name='place', scope='module')
def reviewed(tmp_path_factory):
    with Place(tmp_path_factory.mktemp('fronts'), mode='required', script=[refuses_bad]) as place:
        yield place


# ---- HTTP and its relatives ----

def test_http(place):
    assert place.run('echo bad', 'bash')['error']['message'] == TEXT
    status, _, state = place.web.ask('POST', '/v1/runs', {'language': 'bash', 'code': 'echo bad'}, Prefer='respond-async')
    assert status == 202
    record = until(lambda: [answer for _, _, answer in [place.web.ask('GET', f'/v1/runs/{state["id"]}')] if answer.get('status') == 'blocked'])[0]
    assert record['status'] == 'blocked' and record['review']['verdict'] == 'insecure'


def test_piston(place):
    body = {'language': 'bash', 'version': '*', 'files': [{'content': 'echo bad'}]}
    status, _, answer = place.web.ask('POST', '/api/v2/execute', json.dumps(body), **JSON)
    assert status == 400 and answer['message'] == TEXT, answer


def test_sandbox_fusion(place):
    status, _, answer = place.web.ask('POST', '/run_code', {'code': 'print("bad")', 'language': 'python'})
    assert status == 200 and answer['status'] != 'Success' and 'security concerns' in json.dumps(answer), answer


def test_judge0(place):
    status, _, answer = place.web.ask('POST', '/submissions?wait=true', {'source_code': 'echo bad', 'language_id': 46})
    assert status in (200, 201) and not answer.get('stdout') and answer['status']['id'] != 3, answer


def test_the_unix_socket(place):
    with place.web.daemon.client() as client:
        client.run(1, 'echo bad')
        record, out, _ = client.results(1)[1]
    assert record['status'] == 'blocked' and record['error']['code'] == 'review' and out == b''
    done = caisson('run', '--daemon', 'always', '--set', f'engine.socket={place.web.daemon.path}', '-l', 'bash', '-c', 'echo bad')
    assert done.status == 126 and TEXT in done.err


def test_mcp(place):
    meta = {'io.modelcontextprotocol/protocolVersion': '2026-07-28', 'io.modelcontextprotocol/clientCapabilities': {}}
    body = {'jsonrpc': '2.0', 'id': 1, 'method': 'tools/call',
            'params': {'name': 'run_code', 'arguments': {'language': 'bash', 'code': 'echo bad'}, '_meta': meta}}
    headers = {'Accept': 'application/json, text/event-stream', 'MCP_Protocol_Version': meta['io.modelcontextprotocol/protocolVersion'],
               'Mcp_Method': 'tools/call', 'Mcp_Name': 'run_code', **JSON}
    status, _, answer = place.web.ask('POST', '/mcp', json.dumps(body), **headers)
    if isinstance(answer, bytes):
        answer = json.loads(answer.decode().strip().splitlines()[-1].removeprefix('data: '))
    assert status == 200 and TEXT in json.dumps(answer), answer


# ---- persistent sandboxes ----

def test_contexts(place):
    """S0-10: an execution has the names of its sandbox's tools; what the reviewer refuses does not reach the interpreter."""
    with Sandbox(place.web, tools={'allow': ['lookup']}) as sandbox:
        context = sandbox.good('POST', '/contexts', {})['id']
        def execute(code):
            return place.web.ask('POST', f'/v1/contexts/{context}/runs', {'code': code})[2]
        assert execute('x = 7')['review']['verdict'] == 'secure'
        assert '\n- lookup\n' in place.server.requests[-1]['body']['messages'][0]['content']
        assert execute('x = "bad"')['error']['message'] == TEXT
        assert execute('print(x)')['stdout'] == '7\n'


def test_processes_are_not_reviewed(place):
    """docs/use/review.md says so: a command line in a persistent sandbox is no program of a run."""
    with Sandbox(place.web) as sandbox:
        asked = len(place.server.requests)
        assert sandbox.out('echo bad') == 'bad\n'
        assert len(place.server.requests) == asked


def test_the_interpreter_of_e2b(place):
    key = {'X-API-Key': 'e2b_0123456789'}
    status, _, made = place.web.ask('POST', '/sandboxes', {'templateID': 'code-interpreter-v1', 'timeout': 600}, **key)
    assert status == 201
    headers = {'E2b-Sandbox-Id': made['sandboxID'], 'E2b-Sandbox-Port': '49999'}
    status, _, answer = place.web.ask('POST', '/execute', {'code': 'print("b" + "ad", "bad")'}, **headers)
    assert status == 200 and b'security concerns' in answer and b'"stdout"' not in answer, answer
    status, _, answer = place.web.ask('POST', '/execute', {'code': 'print("good")'}, **headers)
    assert status == 200 and b'good' in answer


# ---- gradings ----

def graded(place, **more):
    status, _, result = place.web.ask('POST', '/v1/grade', {**GRADED, **more})
    assert status == 200, result
    return result


def test_a_grading_asks_once(place):
    asked = len(place.server.requests)
    streams = [{'stdin': f'{n}', 'expected_stdout': f'{n}\n'} for n in range(3)]
    result = graded(place, code='def f(x):\n    return x\nif __name__ == "__main__":\n    print(input())\n', cases=GRADED['cases'] + streams)
    assert result['passed'] == 6 and result['review']['verdict'] == 'secure', result
    assert len(place.server.requests) == asked + 1


def test_a_grading_is_refused(place):
    result = graded(place, code='def f(x):\n    return "bad"\n')
    assert result['status'] == 'blocked' and result['error']['message'] == TEXT and result['error']['code'] == 'review'
    assert result['runs'] == 0 and {case['status'] for case in result['cases']} == {'not_run'}


def test_the_findings_of_a_submission(place):
    """A submission that its policy denies is not reviewed."""
    asked = len(place.server.requests)
    result = graded(place, code='import os\ndef f(x):\n    return os.system("ls")\n', policy='linx')
    assert result['status'] == 'blocked' and result['error'].get('code') != 'review' and len(place.server.requests) == asked
    assert graded(place, code='def f(x):\n    return x  # fine\n', policy='linx')['all_passed']


def test_the_policy_of_a_profile_holds_before_the_review_of_a_submission(place):
    """S0-01: what the policy of the profile denies is not sent to the reviewer; its findings are, with the rest."""
    n = len(place.server.requests)
    result = graded(place, code='import os\ndef f(x):\n    return x\n', profile='kodeagent')
    assert (result['status'], result['error']['code'], 'review' in result) == ('blocked', 'disallowed_import', False)
    result = graded(place, code='import shutil\ndef f(x):\n    return x\n', forbidden_modules=['shutil'])
    assert result['error']['message'] == 'Forbidden import: shutil' and 'review' not in result
    assert len(place.server.requests) == n
    assert graded(place, code='import datetime\ndef f(x):\n    return x\n', profile='kodeagent')['all_passed'] and len(place.server.requests) == n + 1
    assert graded(place, code='eval("1")\ndef f(x):\n    return x\n', forbidden_modules=['shutil'])['review']['verdict'] == 'secure'


def test_a_grading_by_advice(tmp_path):
    with Place(tmp_path, script=['insecure']) as place:
        result = graded(place, review='advisory')
        assert result['all_passed'] and [warning['code'] for warning in result['warnings']] == ['review_insecure']
        place.server.restart('wrong_schema')
        result = graded(place, code='def f(x):\n    return x + 0\n', review='required')
        assert result['error']['code'] == 'review_unavailable' and result['error']['retryable'] is True
        assert 'review' not in graded(place)


# ---- without a daemon ----

@contextlib.contextmanager
def alone(*script, **more):
    with ModelServer(script) as server:
        yield server, server.settings(**more)


@pytest.mark.parametrize('answer, mode, status', [('secure', 'required', 'completed'), ('insecure', 'required', 'blocked'),
                                                  ('insecure', 'advisory', 'completed'), ('two', 'required', 'blocked')])
def test_caisson_run(answer, mode, status):
    with alone(answer) as (server, settings):
        done = caisson('run', '--json', *settings, '--review', mode, '-l', 'bash', '-c', 'echo 1', '--env', 'KEY=0123456789')
        record = json.loads(done.out)
        assert record['status'] == status and record['review']['mode'] == mode and len(server.requests) == 1
        assert done.status == (126 if status == 'blocked' else 0)


def test_caisson_run_by_a_file_of_settings(tmp_path):
    """The process of the review has the settings of the command, and not those of other files."""
    with alone('insecure') as (server, _):
        config = tmp_path / 'c.yaml'
        config.write_text(f'review:\n  base_url: {server.url}\n  model: stub\n  mode: required\n')
        assert caisson('run', '--config', config, '-l', 'bash', '-c', 'echo 1').status == 126
        done = caisson('run', '-l', 'bash', '-c', 'echo 1',
                       env={'CAISSON_REVIEW_BASE_URL': server.url, 'CAISSON_REVIEW_MODEL': 'stub', 'CAISSON_REVIEW_MODE': 'required'})
        assert done.status == 126 and TEXT in done.err


def test_caisson_run_within_its_budget():
    with alone('slow', budget='1s', timeout='30s') as (_, settings):
        done = caisson('run', '--json', *settings, '--review', 'required', '-l', 'bash', '-c', 'echo 1')
        assert json.loads(done.out)['error']['code'] == 'review_unavailable'


def test_caisson_run_with_a_refused_key(tmp_path):
    key = tmp_path / 'key'
    key.write_text('secret')
    key.chmod(0o644)
    with alone('secure', api_key_file=key) as (server, settings):
        done = caisson('run', '--json', *settings, '--review', 'required', '-l', 'bash', '-c', 'echo 1')
        record = json.loads(done.out)
        assert record['status'] == 'blocked' and 'chmod o-r' in record['error']['message'] and not server.requests


def test_caisson_grade():
    lines = ''.join(json.dumps({**GRADED, 'code': code}) + '\n' for code in ('def f(x): return x', 'def f(x): return "bad"'))
    with alone(refuses_bad) as (server, settings):
        done = caisson('grade', '--json', *settings, '--set', 'review.mode=required', stdin=lines.encode())
        results = [json.loads(line) for line in done.out.splitlines()]
        assert [result['status'] for result in results] == ['completed', 'blocked'] and len(server.requests) == 2
        assert results[0]['all_passed'] and results[1]['error']['code'] == 'review'


def test_the_process_of_a_review_ends_with_its_caller():
    """A caller that is killed leaves no process of a review behind."""
    with alone('slow') as (server, settings):
        program = [str(LIBRARY / 'caisson'), 'run', *settings, '--review', 'required', '-l', 'bash', '-c', 'echo 1']
        with subprocess.Popen(program, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as running:
            until(lambda: server.requests)
            below = children(running.pid)
            assert below
            running.kill()
            running.wait()
            until(lambda: not [pid for pid in below if b'caisson-remote' in read_command(pid)])


def read_command(pid):
    try:
        with open(f'/proc/{pid}/cmdline', 'rb') as file:
            return file.read()
    except OSError:
        return b''


LIBRARY_PROGRAM = r'''
#include <caisson/caisson.h>
#include <stdio.h>
#include <string.h>
int main(int argc, char **argv)
{
        struct csn_engine *engine;
        struct csn_error err;
        char *record = NULL;
        const char *request = "{\"language\": \"bash\", \"code\": \"echo bad\"}";
        if (argc < 2 || csn_engine_open(argv[1], &engine, &err) < 0 ||
                csn_run(engine, request, strlen(request), NULL, NULL, &record, &err) < 0)
                return fprintf(stderr, "%s\n", err.text), 1;
        puts(record);
        csn_free(record);
        csn_engine_close(engine);
        return 0;
}
'''


@pytest.mark.skipif('asan' in os.environ.get('CAISSON_BUILD', ''), reason='needs libcaisson without sanitizers: the program has none')
def test_libcaisson(tmp_path):
    source, program, config = tmp_path / 'p.c', tmp_path / 'p', tmp_path / 'c.yaml'
    source.write_text(textwrap.dedent(LIBRARY_PROGRAM))
    subprocess.run(['cc', str(source), f'-I{ROOT / "include"}', f'-L{LIBRARY}', '-lcaisson', f'-Wl,-rpath,{LIBRARY}', '-o', str(program)], check=True)
    with alone(refuses_bad) as (server, _):
        config.write_text(f'review:\n  base_url: {server.url}\n  model: stub\n  mode: required\n')
        done = subprocess.run([str(program), str(config)], env=environment(), capture_output=True, check=True)
        assert json.loads(done.stdout)['error']['code'] == 'review' and len(server.requests) == 1


def test_the_answer_of_the_process_has_a_form(tmp_path):
    """What caisson-remote review reads and writes is JSON; other input is refused."""
    remote = LIBRARY / 'caisson-remote'
    with alone('secure') as (_, settings):
        for text, status in ((b'no json', 64), (b'{"request": {"nonsense": 1}}', 64)):
            done = subprocess.run([str(remote), 'review', *settings], input=text, env=environment(), capture_output=True, check=False)
            assert done.returncode == status and not done.stdout, done
        question = {'request': {'language': 'bash', 'code': 'echo 1'}, 'tools': [], 'findings': [], 'checked': False, 'id': 'run_1'}
        done = subprocess.run([str(remote), 'review', *settings], input=json.dumps(question).encode(), env=environment(), capture_output=True, check=True)
        assert json.loads(done.stdout)['review']['reason'] == SECURE['reason']
