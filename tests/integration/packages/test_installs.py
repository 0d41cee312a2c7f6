"""An installation that a program types: in a sandbox without network one line answers, with a network the real pip and npm work."""

import shutil
import time

import pytest

from cli import caisson
from private_index import PrivateIndex, make_wheel
from test_packages import serving, settings_of

LINE = '{}: this sandbox has no network. Name packages in the field "packages" of the request for the run or the sandbox; {}.\n'
OF_IMAGE = 'it has those of the image'
needs_npm = pytest.mark.skipif(not shutil.which('npm', path='/usr/bin'), reason='needs npm')


@pytest.fixture(name='web', scope='module')
def running(tmp_path_factory):
    with PrivateIndex() as index:
        index.add_wheel('six', '2.0', {'six.py': 'VERSION = "2.0"\n'})
        index.add_wheel('other-one', '1.0', {'other_one.py': ''})
        index.add_npm('left', '1.0.0')
        index.add_npm('@scope/right', '1.0.0')
        with serving(tmp_path_factory.mktemp('installs'), *settings_of(index, f'packages.node.registry_url={index.npm_url}')) as web:
            yield web


def bash(web, code, **more):
    status, _, record = web.ask('POST', '/v1/runs', {'language': 'bash', 'code': code, **more})
    assert status == 200, record
    return record


def real(command):
    return shutil.which(command, path='/usr/bin') is not None


@pytest.mark.parametrize('command', ['pip install six', 'pip3 install -q "six>=1" other', 'python3 -m pip install six', 'python3 -m pip -q install --upgrade six',
                                     '/usr/bin/pip install -r wanted.txt', 'python3 -m pip install --index-url https://pypi.org/simple six',
                                     'pip install git+https://github.com/x/y', 'pip install six ./local.whl',
                                     'python3 -c "import pip, runpy, sys; sys.argv = [\'pip\', \'install\', \'six\']; runpy.run_module(\'pip\', run_name=\'__main__\')"'])
def test_an_installation_by_pip_is_answered_in_one_line(web, command):
    begun = time.monotonic()
    record = bash(web, command)
    assert (record['exit_code'], record['stdout'], record['stderr']) == (1, '', LINE.format('pip', OF_IMAGE)), record
    assert time.monotonic() - begun < 10


@needs_npm
@pytest.mark.parametrize('command', ['npm install left', 'npm i left', 'npm install', 'npm ci', 'npm --silent add @scope/right', 'npm install left@1 ./x'])
def test_an_installation_by_npm_is_answered_in_one_line(web, command):
    record = bash(web, command)
    assert (record['exit_code'], record['stdout'], record['stderr']) == (1, '', LINE.format('npm', OF_IMAGE)), record


def test_the_line_names_the_packages_of_the_run(web):
    record = bash(web, 'pip install x; npm install x', packages={'python': ['six', 'other-one'], 'node': ['left', '@scope/right']})
    assert record['stderr'] == LINE.format('pip', 'its packages are other_one 1.0, six 2.0') + LINE.format('npm', 'its packages are left, @scope/right'), record


def test_a_program_of_python_or_node_gets_the_line(web):
    code = 'import subprocess, sys\nprint(subprocess.run([sys.executable, "-m", "pip", "install", "six"], stderr=subprocess.PIPE, text=True).stderr, end="")\n'
    _, _, record = web.ask('POST', '/v1/runs', {'language': 'python', 'code': code})
    assert record['stdout'] == LINE.format('pip', OF_IMAGE), record
    code = 'console.log(require("node:child_process").spawnSync("npm", ["install", "left"], { encoding: "utf8" }).stderr.trim())'
    _, _, record = web.ask('POST', '/v1/runs', {'language': 'javascript', 'code': code})
    assert record['stdout'] == LINE.format('npm', OF_IMAGE), record


def test_other_commands_go_on_to_the_real_programs(web):
    record = bash(web, 'pip --version; python3 -m pip list --format=freeze | head -1; pip install --help | head -2; python3 -m pip config list')
    assert record['stdout'].startswith('pip ') and 'Usage' in record['stdout'] and 'no network' not in record['stderr'], record
    if real('npm'):
        record = bash(web, 'npm --version; echo \'{"scripts": {"say": "echo said it"}}\' > package.json; npm run say; npm install --help | head -1')
        assert 'said it' in record['stdout'] and 'no network' not in record['stderr'], record


def test_a_wheel_of_the_program_is_installed(web):
    content, _ = make_wheel('local', '1.0', {'local.py': 'VALUE = 7\n'})
    code = '''import subprocess, sys
open('local-1.0-py3-none-any.whl', 'wb').write(bytes.fromhex(%r))
subprocess.run([sys.executable, '-m', 'pip', 'install', '-q', '--no-index', '--no-deps', '--target', 'there', './local-1.0-py3-none-any.whl'], check=True)
sys.path.insert(0, 'there')
import local
print(local.VALUE)
''' % content.hex()
    _, _, record = web.ask('POST', '/v1/runs', {'language': 'python', 'code': code})
    assert record['stdout'] == '7\n', record


def test_a_venv_keeps_its_interpreter(web):
    record = bash(web, 'python3 -m venv v && v/bin/pip --version; v/bin/pip install six', limits={'wall_ms': 60000})
    assert '/home/user/v/lib' in record['stdout'] and record['stderr'] == LINE.format('pip', OF_IMAGE), record


def test_the_answer_does_not_depend_on_words_of_the_shell(web):
    record = bash(web, "pip install '$(touch pwned)' '`id`' '; id' '*'; ls; npm install '$(touch pwned)'; ls")
    assert record['stdout'] == 'main.sh\nmain.sh\n' or 'pwned' not in record['stdout'], record
    assert 'uid=' not in record['stdout'] + record['stderr']


def test_with_a_network_the_real_programs_are_called(web):
    record = bash(web, 'echo "[$PIP_PYTHON]"; pip install --no-input --retries 0 --timeout 2 six 2>&1 | tail -1', network='public')
    assert record['status'] in ('completed', 'failed'), record
    assert record['stdout'].startswith('[]\n') and 'this sandbox has no network' not in record['stdout'], record


def test_root_of_a_lasting_sandbox_has_the_real_pip(web):
    status, _, sandbox = web.ask('POST', '/v1/sandboxes', {'root': True})
    if status != 201:
        pytest.skip('this host gives no root inside of sandboxes')
    status, _, record = web.ask('POST', f'/v1/sandboxes/{sandbox["id"]}/processes', {'command': 'echo "[$PIP_PYTHON] $PATH"', 'user': 'root'})
    assert status in (200, 201) and '[] /opt/caisson/installs/bin:/usr/local/sbin' in str(record), record


def test_a_program_on_the_host_has_no_such_answer():
    done = caisson('run', '--language', 'bash', '--code', 'echo "[$PIP_PYTHON]"', '--backend', 'host')
    assert done.out != '[/opt/caisson/installs/pip]\n', done
