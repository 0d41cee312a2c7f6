"""A daemon of an ordinary user: what it does for runs, sandboxes and gradings is the same, and the record says that it has no privileges."""

import os
import tempfile
from pathlib import Path

import pytest

from web import Web

USER = 65534

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason='the other tests run without privileges, too')


@pytest.fixture(name='web', scope='module')
def running():
    with tempfile.TemporaryDirectory() as name:        # the folders of pytest are for root alone
        os.chown(name, USER, USER)
        web = Web(Path(name), user=USER, group=USER, extra_groups=[])
        yield web
        assert web.daemon.stop(15) == 0


def run(web, code, **more):
    status, _, record = web.ask('POST', '/v1/runs', {'language': 'bash', 'code': code, **more})
    assert status == 200, record
    return record


@pytest.mark.parametrize('code, names', [
    ('echo x > f', ['f']), ('mkdir d; echo x > d/f; echo y > g', ['d/f', 'g']), ('mkdir d; echo x > d/f; chmod 500 d', ['d/f']),
    ('echo x > f; chmod 0 f', ['f']),
])
def test_files_that_a_program_made_are_in_the_record(web, code, names):
    record = run(web, code)
    assert [file['name'] for file in record['files']] == names and record['warnings'] == [], record
    assert all('error' not in file and len(file['sha256']) == 64 for file in record['files'])
    assert record['boundary']['rootless'] is True


def test_an_input_that_did_not_change_is_no_output(web):
    assert run(web, 'cat a', files=[{'name': 'a', 'content': 'x'}])['files'] == []


def test_a_file_is_kept_and_fetched(web):
    record = run(web, 'printf content > a.txt', exports=[{'pattern': '*.txt'}])
    [file] = record['files']
    assert web.ask('GET', file['url'].removeprefix('sandbox:'))[2] == b'content'


def test_a_workspace_keeps_files(web):
    run(web, 'printf 1 > state', user='u', workspace='w')
    assert run(web, 'cat state', user='u', workspace='w')['stdout'] == '1'


def test_a_sandbox_keeps_its_files_and_contexts(web):
    status, _, sandbox = web.ask('POST', '/v1/sandboxes', {})
    assert status == 201, sandbox
    path = f'/v1/sandboxes/{sandbox["id"]}'
    status, _, context = web.ask('POST', f'{path}/contexts', {'language': 'python'})
    assert status == 201, context
    for code, output in (('x = 1', ''), ('print(x + 1)', '2\n')):
        status, _, record = web.ask('POST', f'/v1/contexts/{context["id"]}/runs', {'code': code})
        assert status == 200 and record['stdout'] == output, record
    assert web.ask('DELETE', path)[0] == 204


def test_a_program_is_graded(web):
    status, _, report = web.ask('POST', '/v1/grade', {'language': 'python', 'code': 'def f(x):\n    return x + 1\n', 'function': 'f',
                                                     'cases': [{'args': [1], 'expected': 2}]})
    assert status == 200 and report['all_passed'] is True, report
