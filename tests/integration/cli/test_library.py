"""The C library beside the command line, and what README.md and docs/use/c.md show of both."""

import json
import os
import re
import shutil
import subprocess
import time

import pytest

from cli import LIBRARY, ROOT, caisson, checked, environment, run, write


# ---- the C library ----

def compiled(tmp_path, source):
    if not shutil.which('gcc'):
        pytest.skip('needs gcc: it is not installed')
    program = tmp_path / 'example'
    done = subprocess.run(['gcc', '-Wall', '-Wextra', '-Werror', f'-I{ROOT}/include', str(write(tmp_path / 'example.c', source)),
                           f'-L{LIBRARY}', '-lcaisson', f'-Wl,-rpath,{LIBRARY}', '-o', str(program)],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    assert done.returncode == 0, done.stdout.decode()
    return program


def test_the_example_of_the_page_compiles_and_runs(tmp_path):
    source = re.search(r'```c\n(.*?)```', (ROOT / 'docs/use/c.md').read_text(), flags=re.S)[1]
    done = subprocess.run([str(compiled(tmp_path, source))], stdout=subprocess.PIPE, env=environment(), check=True)
    first, _, record = done.stdout.decode().partition('\n')
    assert first == '42' and checked(record)['stdout'] == '42\n'


FROM_C = r'''
#include <caisson/caisson.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

static int left;

static void done(void *owner, const char *record, size_t len)
{
        (void)owner;
        fwrite(record, 1, len, stdout);
        puts("");
        left--;
}

/* Requests on standard input, one a line; all at once with an argument, else one after the other. */
int main(int argc, char **argv)
{
        static char line[1 << 20];
        static const struct csn_events events = { .done = done };
        struct csn_engine *engine;
        struct csn_error err;
        (void)argv;
        if (csn_engine_open(NULL, &engine, &err) < 0) {
                fprintf(stderr, "%s\n", err.text);
                return csn_code_exit(err.code);
        }
        while (fgets(line, sizeof line, stdin)) {
                char *record;
                if (argc > 1) {
                        left++;
                        if (csn_submit(engine, line, strlen(line), &events, NULL, NULL, &err) < 0)
                                return 1;
                } else if (csn_run(engine, line, strlen(line), NULL, NULL, &record, &err) == 0) {
                        puts(record);
                        csn_free(record);
                }
        }
        while (left) {
                struct pollfd fd = { .fd = csn_engine_fd(engine), .events = POLLIN };
                poll(&fd, 1, 100);
                if (csn_engine_step(engine, 0, &err) < 0)
                        return 1;
        }
        csn_engine_close(engine);
        return 0;
}
'''


@pytest.fixture(scope='module')
def library(tmp_path_factory):
    return compiled(tmp_path_factory.mktemp('library'), FROM_C)


def from_c(library, *requests, together=False, env=None):
    text = ''.join(json.dumps(request) + '\n' for request in requests)
    done = subprocess.run([str(library), *(['together'] if together else [])], input=text.encode(), stdout=subprocess.PIPE,
                          env=environment(**(env or {})), timeout=60, check=True)
    return [checked(line) for line in done.stdout.splitlines()]


def without_chance(record):
    """What has to be equal between two runs of one request."""
    kept = {name: value for name, value in record.items()
            if name not in ('id', 'started_at', 'finished_at', 'usage', 'timings', 'stages', 'exit', 'aliases')}
    kept['inputs'] = [{**one, 'ms': 0} for one in kept['inputs']]
    if kept['error']:                  # there the command line has its options behind the fields
        kept['error'] = {**kept['error'], 'message': re.sub(r' \((--|-c CODE)[^)]*\)', '', kept['error']['message'])}
    if kept['boundary']:
        kept['boundary'] = {**kept['boundary'], 'host_uid': 0}
    return kept


@pytest.mark.parametrize('request_', [
    {'language': 'python', 'code': 'print(1); open("f", "w").write("x"); {"a": 1}', 'labels': {'a': 'b'}, 'task_id': 'é'},
    {'language': 'python', 'code': '1/0'}, {'language': 'python', 'code': 'def'}, {'language': 'js', 'code': 'x'},
    {'language': 'bash', 'code': 'cat a; exit 4', 'files': [{'name': 'a', 'content': 'b'}]}, {'language': 'cobol', 'code': ''},
    {'language': 'bash', 'code': 'true', 'limits': {'pids': 0}}, {'nosuch': 1}, {'language': 'bash'},
    {'language': 'ts', 'code': 'const x: number = 1; x', 'profile': 'data'}], ids=range(10))
def test_the_command_line_and_the_library_give_equal_records(library, request_):
    [record] = from_c(library, request_)
    assert without_chance(record) == without_chance(run('--request', '-', stdin=json.dumps(request_).encode()))


def test_the_library_runs_many_at_once(library):
    requests = [{'language': 'bash', 'code': f'sleep 2; echo {i}', 'task_id': str(i)} for i in range(20)]
    started = time.monotonic()
    records = from_c(library, *requests, together=True)
    assert time.monotonic() - started < 30     # one after the other they would need 40
    assert sorted(int(r['task_id']) for r in records) == list(range(20))
    assert all(r['stdout'] == r['task_id'] + '\n' for r in records)
    assert len({r['id'] for r in records}) == 20
    if os.geteuid() == 0:
        assert len({r['boundary']['host_uid'] for r in records}) == 20


def test_the_library_tells_a_wrong_setting(library):
    done = subprocess.run([str(library)], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment(CAISSON_LIMITS_PIDS='x'), check=False)
    assert done.returncode == 78 and b'CAISSON_LIMITS_PIDS' in done.stderr


# ---- the README's first run ----

def test_the_first_run_of_the_readme(tmp_path):
    text = (ROOT / 'README.md').read_text()
    code = re.search(r'\$ cat report\.py\n(.*?)\$ ', text, flags=re.S)[1]
    write(tmp_path / 'report.py', code)
    write(tmp_path / 'data.csv', 'city,temp\nOslo,4\nRome,17\n')
    done = caisson('run', 'report.py', '--file', 'data.csv', '--export', '*.json:out', cwd=tmp_path)
    assert done.out == 'rows: 2\n' and (tmp_path / 'out/summary.json').read_text() == '{"mean": 10.5}'


CHECK_FROM_C = r'''
#include <caisson/caisson.h>
#include <stdio.h>
#include <string.h>

/* Requests on standard input, one a line, and what comes of each. */
int main(void)
{
        static char line[1 << 20];
        struct csn_engine *engine;
        struct csn_error err;
        if (csn_engine_open(NULL, &engine, &err) < 0)
                return 1;
        while (fgets(line, sizeof line, stdin)) {
                char *result;
                if (csn_check(engine, line, strlen(line), &result, &err) < 0) {
                        printf("{\\"error\\":%d}\\n", err.code);
                        continue;
                }
                puts(result);
                csn_free(result);
        }
        csn_engine_close(engine);
        return 0;
}
'''.replace('\\\\', '\\')


def test_the_library_checks_as_the_command_line_does(tmp_path):
    program = compiled(tmp_path, CHECK_FROM_C)
    requests = [{'language': 'python', 'code': 'eval("1")', 'id': 'a'}, {'language': 'python', 'code': 'def f(:'},
                {'language': 'python', 'code': 'import json', 'policy': 'kodeagent', 'allow_imports': ['json']}]
    text = ''.join(json.dumps(one) + '\n' for one in requests).encode()
    done = subprocess.run([str(program)], input=text + b'{"nosuch": 1}\n', stdout=subprocess.PIPE, env=environment(), timeout=60, check=True)
    *results, bad = [json.loads(line) for line in done.stdout.splitlines()]
    assert results == [json.loads(line) for line in caisson('check', '--jsonl', stdin=text).out.splitlines()]
    assert [one['verdict'] for one in results] == ['deny', 'deny', 'allow'] and bad['error']
