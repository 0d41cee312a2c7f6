"""Packages of persistent sandboxes, contexts and sessions: built before the sandbox is made, read-only for root as well."""

import shutil
import threading

import pytest

from daemon import until
from private_index import PrivateIndex
from test_packages import run, serving, settings_of

SIX = 'import six\nprint(six.VERSION, six.__file__)'


@pytest.fixture(name='index', scope='module')
def indexed():
    with PrivateIndex() as index:
        index.add_wheel('six', '1.0', {'six.py': 'VERSION = "1.0"\n'})
        index.add_wheel('slow', '1.0', {'slow.py': ''})
        index.behave('slow', delay=3)
        index.add_wheel('plainmod', '1.0', {'plainmod.py': 'VERSION = "1.0"\n'})
        index.add_wheel('broken', '1.0', {'broken.py': ''})
        index.behave('broken', status=500)
        index.add_file('source', '1.0', 'source-1.0.tar.gz', b'no archive')
        yield index


@pytest.fixture(name='web', scope='module')
def running(tmp_path_factory, index):
    with serving(tmp_path_factory.mktemp('lasting'), *settings_of(index)) as web:
        yield web


def made(web, **request):
    status, _, sandbox = web.ask('POST', '/v1/sandboxes', request)
    assert status == 201, sandbox
    return sandbox


def context(web, sandbox, **request):
    status, _, answer = web.ask('POST', f'/v1/sandboxes/{sandbox["id"]}/contexts', request)
    assert status == 201, answer
    return answer


def executed(web, one, code, **more):
    status, _, record = web.ask('POST', f'/v1/contexts/{one["id"]}/runs', {'code': code, **more})
    assert status == 200 and record['status'] == 'completed', record
    return record


def end(web, sandbox):
    assert web.ask('DELETE', f'/v1/sandboxes/{sandbox["id"]}')[0] == 204


def sandboxes(web):
    return web.ask('GET', '/v1/sandboxes')[2]['sandboxes']


def test_every_context_of_a_sandbox_has_its_packages(web):
    sandbox = made(web, packages=['six'])
    assert [(layer['language'], layer['packages']) for layer in sandbox['layers']] == [('python', ['six==1.0'])]
    for _ in range(2):
        assert executed(web, context(web, sandbox), SIX)['stdout'] == '1.0 /opt/packages/six.py\n'
    shell = context(web, sandbox, language='bash')
    assert executed(web, shell, f"/usr/bin/python3 -c '{SIX}'")['stdout'] == '1.0 /opt/packages/six.py\n'
    assert executed(web, context(web, sandbox, fresh=True), SIX)['stdout'] == '1.0 /opt/packages/six.py\n'
    end(web, sandbox)


def test_a_run_and_a_sandbox_share_a_layer(web, index):
    first = run(web, 'import plainmod', packages=['plainmod'])['layers'][0]
    asked = len(index.requests)
    sandbox = made(web, requirements='plainmod\n')
    assert sandbox['layers'][0] == {**first, 'cached': True, 'wait_ms': 0} and len(index.requests) == asked
    end(web, sandbox)
    named = made(web, layers=[first['id']])
    assert named['layers'] == sandbox['layers'] and executed(web, context(web, named), 'import plainmod; print(plainmod.VERSION)')['stdout'] == '1.0\n'
    end(web, named)


def test_a_sandbox_without_packages_has_none(web):
    sandbox = made(web)
    assert 'layers' not in sandbox
    assert executed(web, context(web, sandbox), 'import os, sys\nprint(os.path.exists("/opt/packages/six.py"), "/opt/packages" in sys.path)')['stdout'] == 'False False\n'
    end(web, sandbox)


@pytest.mark.parametrize('root', [False, True])
def test_a_layer_is_read_only_and_stays_where_it_is(web, root):
    sandbox = made(web, packages=['six'], root=root)
    one = context(web, sandbox, language='bash', user='root' if root else 'user')
    code = '''cd /
for path in /opt/packages/six.py /opt/packages/new; do (echo x > $path) 2>/dev/null && echo written; done
rm -rf /opt/packages 2>/dev/null; mv /opt/packages /opt/elsewhere 2>/dev/null; umount /opt/packages 2>/dev/null && echo unmounted
mount -o remount,rw,bind /opt/packages 2>/dev/null && echo remounted
chmod 777 /opt/packages/six.py 2>/dev/null && echo changed
cat /opt/packages/six.py'''
    assert executed(web, one, code)['stdout'] == 'VERSION = "1.0"\n'
    end(web, sandbox)
    assert run(web, SIX, packages=['six'])['stdout'] == '1.0 /opt/packages/six.py\n'


@pytest.mark.parametrize('package, status, code', [
    ('nothing-of-the-kind', 422, 'package_not_found'), ('source', 422, 'no_wheel'), ('broken', 429, 'index_unreachable')])
def test_a_sandbox_whose_packages_cannot_be_installed_is_not_made(web, package, status, code):
    before = sandboxes(web)
    for _ in range(2):      # the second answer is the failure that is remembered
        got, _, problem = web.ask('POST', '/v1/sandboxes', {'packages': [package]})
        assert got == status and problem['field'] == '/packages' and problem['message'].startswith(code + ': '), problem
        assert problem['retryable'] is (status == 429) and sandboxes(web) == before


@pytest.mark.parametrize('request_, field', [({'packages': ['six @ http://x/']}, '/packages'), ({'requirements': '-r other\n'}, '/requirements'),
                                             ({'layers': ['lyr_' + '0' * 32]}, '/layers'), ({'layers': ['x']}, '/layers')])
def test_what_is_no_package_and_no_layer_is_refused(web, request_, field):
    status, _, problem = web.ask('POST', '/v1/sandboxes', request_)
    assert status == 422 and problem['field'] == field, problem


def test_a_sandbox_that_waits_can_be_ended_and_the_build_goes_on(web, index):
    answers = []
    thread = threading.Thread(target=lambda: answers.append(web.ask('POST', '/v1/sandboxes', {'packages': ['slow']})))
    thread.start()
    waiting = until(lambda: [one for one in sandboxes(web) if one['state'] == 'starting'])[0]
    assert web.ask('POST', f'/v1/sandboxes/{waiting["id"]}/contexts', {})[0] in (409, 429)
    assert web.ask('POST', f'/v1/sandboxes/{waiting["id"]}/pause')[0] == 409
    end(web, waiting)
    thread.join()
    assert answers[0][0] not in (200, 201) and waiting['id'] not in [one['id'] for one in sandboxes(web)]
    sandbox = made(web, packages=['slow'])
    assert sandbox['layers'][0]['packages'] == ['slow==1.0']
    end(web, sandbox)


def test_a_session_has_the_packages_of_its_sandbox(web):
    status, _, session = web.ask('POST', '/v1/sessions', {'sandbox': {'packages': ['six']}})
    assert status == 201, session
    status, _, record = web.ask('POST', f'/v1/sessions/{session["id"]}/runs', {'code': SIX})
    assert status == 200 and record['stdout'] == '1.0 /opt/packages/six.py\n', record
    assert web.ask('DELETE', f'/v1/sessions/{session["id"]}')[0] == 204


def test_packages_of_an_execution_have_a_warning_that_names_the_sandbox(web):
    sandbox = made(web)
    record = executed(web, context(web, sandbox), 'print(1)', packages=['six'])
    assert [(one['code'], 'in the request for the sandbox' in one['text']) for one in record['warnings']] == [('packages_not_installed', True)]
    end(web, sandbox)


@pytest.mark.parametrize('command', ['%pip install plainmod', '!pip install -q plainmod', '!pip3 install plainmod', '!python3 -m pip install plainmod'])
def test_pip_in_a_closed_context_answers_in_one_line(web, command):
    for packages, words in ((['six'], 'its packages are six 1.0.'), ([], 'it has those of the image.')):
        sandbox = made(web, packages=packages)
        one = context(web, sandbox)
        record = executed(web, one, command + '\n_exit_code')
        assert record['stderr'].count('\n') == 1 and 'no network' in record['stderr'] and record['stderr'].endswith(words + '\n'), record
        assert record['result']['value'] == 1 and record['usage']['wall_ms'] < 30000
        end(web, sandbox)


def test_other_commands_of_pip_are_pips(web):
    sandbox = made(web)
    record = executed(web, context(web, sandbox), '!pip --version\n!echo pip install x\n')
    assert record['stdout'].startswith('pip ') and record['stdout'].endswith('pip install x\n')
    end(web, sandbox)


def test_a_sandbox_keeps_its_layer_from_removal(web):
    sandbox = made(web, packages=['six'])
    one = context(web, sandbox)
    shutil.rmtree(web.layers / '.requests')
    (web.layers / '.requests').mkdir()
    done = web.daemon.caisson('layers', 'prune', '--bytes', '1', '--age', '1ms', *web.state)
    assert done.status == 0 and (web.layers / sandbox['layers'][0]['id'][4:]).is_dir(), done
    assert executed(web, one, SIX)['stdout'] == '1.0 /opt/packages/six.py\n'
    end(web, sandbox)
    until(lambda: web.daemon.caisson('layers', 'prune', '--bytes', '1', '--age', '1ms', *web.state).status == 0 and not list(web.layers.glob('[0-9a-f]*')))


def test_without_an_index_a_sandbox_has_a_warning(tmp_path):
    with serving(tmp_path / 'state') as web:
        sandbox = made(web, packages=['six'])
        assert [one['code'] for one in sandbox['warnings']] == ['packages_not_installed'] and 'layers' not in sandbox
        end(web, sandbox)
