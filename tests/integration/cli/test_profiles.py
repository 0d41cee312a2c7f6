"""The profiles of the seeds, and those of the table of conflicts: the same programs under each have the documented status."""

import json
import re
import signal

import pytest

from cli import ROOT, caisson, python, refused, run, write
from daemon import Daemon

# A program: what it does.  The words are keys of STATUS below.
PROGRAMS = {
    'plain': 'print(sum(range(10)))',
    'datetime': 'import datetime\nprint(datetime.date(2020, 1, 1))',
    'json': 'import json\nprint(json.dumps([1]))',
    'os': 'import os\nprint(os.getcwd())',
    'http': 'import http.client\nprint(1)',
    'open': 'open("a.txt", "w").write("x")\nprint(open("a.txt").read())',
    'eval': 'print(eval("1 + 1"))',
    'syntax': 'print(',
    'raise': 'raise ValueError("x")',
}
OFF = dict.fromkeys(PROGRAMS, 'completed') | {'syntax': 'syntax_error', 'raise': 'failed'}


def blocks(*names):
    return OFF | dict.fromkeys(names, 'blocked')


STATUS = {     # U-19: the documented status of each program under each profile
    'standard': OFF,
    'tools': OFF,
    'data': OFF,
    'grade': OFF,
    'allowlist': blocks('json', 'os', 'http', 'eval'),
    'kodeagent': blocks('json', 'os', 'http', 'eval'),
    'denylist': blocks('os', 'http', 'eval'),
    'codemie': blocks('os', 'eval'),
    'agentos': blocks('http', 'open', 'eval'),
    'linx': blocks('eval'),
    'mcp-light': blocks('open', 'eval'),
}


@pytest.mark.parametrize('name', STATUS)
def test_one_set_of_programs_has_the_documented_status_under_each_profile(name):
    """U-19, 6.1, C-01, C-03: the source policies differ, and what a program may do in the sandbox does not."""
    got = {}
    for key, code in PROGRAMS.items():
        got[key] = python(code, '--profile', name)['status']
    assert got == STATUS[name]


LIMITS = {     # 6.1: every number of the table, and those of the seeds
    'allowlist': {'wall_ms': 30000, 'cpu_ms': 20000, 'cpu_milli': 1000, 'memory_bytes': 256 << 20, 'disk_bytes': 100 << 20, 'disk_files': 100, 'pids': 32},
    'denylist': {'wall_ms': 30000, 'cpu_milli': 1000, 'memory_bytes': 256 << 20, 'disk_bytes': 100 << 20, 'pids': 64},
    'grade': {'wall_ms': 30000, 'cpu_milli': 1000, 'memory_bytes': 256 << 20, 'disk_bytes': 16 << 20, 'pids': 16},
    'build': {'cpu_milli': 2000, 'pids': 256},
    'kodeagent': {'wall_ms': 30000, 'cpu_ms': 20000, 'memory_bytes': 256 << 20, 'disk_files': 100},
    'agentos': {'wall_ms': 30000, 'memory_bytes': 256 << 20},
    'linx': {'wall_ms': 30000, 'cpu_milli': 1000, 'memory_bytes': 512 << 20, 'disk_bytes': 100 << 20},
    'codemie': {'wall_ms': 30000, 'cpu_milli': 1000, 'memory_bytes': 256 << 20},
    'mcp-light': {'wall_ms': 30000, 'output_bytes': 1000000},
    'tools': {'wall_ms': 30000, 'cpu_milli': 500, 'memory_bytes': 512 << 20, 'pids': 256, 'tmp_bytes': 32 << 20, 'output_bytes': 200000, 'code_bytes': 60000},
    'lightweight': {'wall_ms': 15000, 'cpu_milli': 250, 'memory_bytes': 256 << 20},
    'code_execution': {'wall_ms': 30000, 'cpu_milli': 500, 'memory_bytes': 512 << 20},
    'data_processing': {'wall_ms': 120000, 'cpu_milli': 1000, 'memory_bytes': 1 << 30},
    'ml_inference': {'wall_ms': 60000, 'cpu_milli': 2000, 'memory_bytes': 2 << 30},
}


def profile(name, *args):
    return [one for one in json.loads(caisson('profiles', 'list', '--json', *args).out) if one['name'] == name][0]


@pytest.mark.parametrize('name', LIMITS)
def test_the_numbers_of_a_profile(name):
    """S0-58, S1-07, S2-36, S4-05, S4-26: the numbers of the seeds."""
    limits = json.loads(caisson('profiles', 'show', name, '--json').out)['limits']
    assert {field: limits[field] for field in LIMITS[name]} == LIMITS[name]


def test_the_tools_of_the_later_light_executor():
    """S4-26: 200 calls with 200,000 bytes; none of them is required, and the program need not import json."""
    assert profile('tools')['sets']['tools'] == {'enabled': True, 'calls': 200, 'payload_bytes': 200000}
    assert python('print(len(json.dumps(tools.list_tools())))', '--profile', 'tools')['stdout'] == '2\n'


def test_the_bundles_of_the_seeds():
    """S0-20, S0-57, S0-91, C-05: policy, imports, network, state and form of each system."""
    rows = {name: (one['sets'].get('policy'), one['sets'].get('network'), one.get('session'), one['sets'].get('format'), one['sets'].get('language'))
            for name in ('kodeagent', 'agentos', 'linx', 'codemie', 'mcp-light') for one in [profile(name)]}
    assert rows == {'kodeagent': ('kodeagent', 'public', 'none', 'kodeagent', 'python'), 'agentos': ('agentos', None, 'none', 'agentos', 'python'),
                    'linx': ('linx', None, 'none', 'linx', 'python'), 'codemie': ('codemie', None, 'files', 'codemie', 'python'),
                    'mcp-light': ('mcp-light', None, 'none', 'mcp-light', 'python')}
    assert profile('kodeagent')['sets']['allow_imports'] == ['datetime', 'typing', 'mimetypes']
    assert profile('denylist')['session'] == 'files' and 'session' not in profile('standard')


def test_a_file_too_many():
    """U-11, S0-58: the 101st file is refused in the profile allowlist."""
    record = python('for i in range(120):\n    open(f"f{i}", "w").close()', '--profile', 'allowlist')
    assert record['status'] == 'disk_exceeded' and 'File limit of 100 files reached' in record['error']['message'], record['error']
    assert len(record['files']) == 99              # and the program itself


def test_a_program_of_another_language_keeps_its_own(tmp_path):
    write(tmp_path / 'x.sh', 'echo $((6 * 7))\n')
    assert run(tmp_path / 'x.sh', '--profile', 'linx')['stdout'] == '42\n'
    assert caisson('run', '--profile', 'codemie', '-', stdin=b'print(6 * 7)').out == '42\n'     # and without one it is the profile's


# ---- the internal profile ----

def test_the_profile_of_builds_cannot_be_named():
    """6.1: build is internal."""
    refused(python('1', '--profile', 'build'), "the engine's own", field='/profile')
    done = caisson('config', 'show', '--set', 'engine.profile=build')
    assert done.status == 78 and 'engine.profile' not in done.out and 'build' in done.err
    assert profile('build')['internal'] is True and 'internal' not in profile('standard')


def test_the_profile_of_builds_follows_the_settings():
    """The numbers are those that a build has (src/packages/build.c), under the ceilings."""
    args = ('--set', 'packages.build_wall=77s', '--set', 'packages.max_bytes=1MiB', '--set', 'packages.max_files=50', '--set', 'ceilings.memory_bytes=1GiB',
            '--set', 'ceilings.pids=99')
    limits = profile('build', *args)['sets']['limits']
    assert (limits['wall_ms'], limits['cpu_ms'], limits['disk_bytes'], limits['tmp_bytes'], limits['disk_files']) == (77000, 77000, 3 << 20, 2 << 20, 100)
    assert (limits['memory_bytes'], limits['pids']) == (1 << 30, 99)


# ---- files of profiles ----

def own(tmp_path, text):
    write(tmp_path / 'mine.yaml', text)
    return ('--set', f'engine.profiles_dir={tmp_path}')


def test_a_profile_of_ones_own_sets_the_new_fields(tmp_path):
    where = own(tmp_path, 'extends: codemie\nsession: interpreter\nextract: last_fence\nforbidden_modules: [socket]\nformat: linx\npolicy: linx\n')
    one = profile('mine', *where)
    assert one['session'] == 'interpreter' and one['sets']['extract'] == 'last_fence' and one['sets']['forbidden_modules'] == ['socket']
    assert one['sets']['format'] == 'linx' and one['sets']['policy'] == 'linx' and one['sets']['image'] == 'data'
    assert profile('mine', *own(tmp_path, 'session: interpreter\nextends: codemie\n'))['session'] == 'interpreter'     # in any order


@pytest.mark.parametrize('text, words', [
    ('session: always\n', ['mine.yaml:1', 'session', 'none, files or interpreter']), ('format: nosuch\n', ['mine.yaml:1', 'kodeagent', 'mcp-light']),
    ('extract: all\n', ['mine.yaml:1', 'last_fence']), ('prelude: x\n', ['mine.yaml:1', 'a profile cannot set this field', 'forbidden_modules, advise']),
    ('modules: []\n', ['mine.yaml:1']), ('code: x\n', ['mine.yaml:1', 'format, aliases, tools'])])
def test_a_wrong_profile_is_told_with_its_line(tmp_path, text, words):
    done = caisson('profiles', 'show', 'mine', *own(tmp_path, text))
    assert done.status == 78 and all(word in done.err for word in words), done.err


# ---- show and explain ----

@pytest.mark.parametrize('name', ['standard', 'strict', *STATUS, 'build', 'host', 'e2b'])
def test_show_prints_all_that_a_profile_sets(name):
    text = caisson('profiles', 'show', name).out
    one = profile(name)
    for field in one['sets']:
        if field not in ('limits',):
            assert f'\n  {field} ' in text, field
    for field in one['sets'].get('limits', {}):
        assert f'\n  limits.{field} ' in text
    assert ('\n  session ' in text) == ('session' in one)


def test_explain_says_in_sentences_what_a_profile_means():
    text = caisson('profiles', 'explain', 'kodeagent').out
    for sentence in ('A program whose request names no language is python.', 'A program that the policy refuses does not start.', 'datetime, typing, mimetypes',
                     'Review by a model: off', 'public addresses', 'memory_bytes=256MiB', 'disk_files=100', 'State: nothing lasts', 'has the form kodeagent'):
        assert sentence in text, text
    assert 'in a session the files last' in caisson('profiles', 'explain', 'codemie').out
    assert 'a request cannot name it' in caisson('profiles', 'explain', 'build').out
    assert 'There is no sandbox' in caisson('profiles', 'explain', 'host').out
    assert caisson('profiles', 'explain', 'nosuch').status == 64


def test_explain_says_what_importlib_allows(tmp_path):
    """S0-25: who allows importlib allows everything."""
    where = own(tmp_path, 'extends: kodeagent\nallow_imports: [importlib, json]\n')
    assert 'importlib loads any module by its name, so allowing it allows everything.' in caisson('profiles', 'explain', 'mine', *where).out
    assert 'Allowing importlib allows everything' in caisson('profiles', 'explain', 'linx').out
    assert 'importlib' not in caisson('profiles', 'explain', 'standard').out


def test_the_table_of_the_documentation_has_all_profiles():
    table = (ROOT / 'docs/use/profiles.md').read_text(encoding='utf-8')
    assert re.findall(r'^\| `([a-z0-9_-]+)` \|', table, flags=re.M) == [one['name'] for one in json.loads(caisson('profiles', 'list', '--json').out)]
    for name, policy, network in re.findall(r'^\| `([a-z0-9_-]+)` \| `?([a-z-]+)`? \| ([a-z]+)', table, flags=re.M):
        whole = json.loads(caisson('profiles', 'show', name, '--json').out)
        assert whole['policy'] == policy and (name == 'host' or whole.get('network', 'none') == network), name


# ---- tools without a daemon ----

def test_a_run_that_names_tools_needs_a_daemon(tmp_path):
    """U-49: without one the program does not run without its tools."""
    refused(python('print(1)', '--tool', 'weather'), 'only a daemon has servers of tools', 'caissond', field='/tools/allow')
    where = own(tmp_path, 'tools: {allow: [weather]}\n')
    refused(python('print(1)', '--profile', 'mine', *where), 'only a daemon', field='/tools/allow')
    assert python('print(tools.list_tools())', '--profile', 'mcp-light')['stdout'] == '[]\n'


# ---- examples of configurations ----

EXAMPLES = {     # S3-23: the numbers of CodeMie's examples
    'development': {'limits.wall_ms': '60s', 'engine.log_level': 'debug'},
    'small-server': {'limits.wall_ms': '45s', 'limits.memory_bytes': '256MiB'},
    'production': {'limits.wall_ms': '120s', 'limits.memory_bytes': '512MiB', 'limits.cpu_milli': '2000m', 'engine.pool_max': '10'},
}


def test_each_example_is_tested():
    assert {path.stem for path in (ROOT / 'deploy/examples').iterdir()} == set(EXAMPLES)


@pytest.mark.parametrize('name', EXAMPLES)
def test_an_example_is_loaded_and_serves_runs(tmp_path, name):
    """S3-23: a daemon starts with it, and a run has its limits."""
    path = ROOT / f'deploy/examples/{name}.yaml'
    rows = {row['key']: row for row in json.loads(caisson('config', 'show', '--json', '--config', path).out)}
    assert {key: rows[key]['value'] for key in EXAMPLES[name]} == EXAMPLES[name]
    assert caisson('keys', 'create', '--name', 'client', '--set', f'engine.state_dir={tmp_path}').status == 0
    daemon = Daemon(tmp_path, '--config', path, '--set', f'engine.state_dir={tmp_path}', '--set', 'engine.http=127.0.0.1:0').ready()
    record = json.loads(daemon.caisson('run', '--json', '-l', 'python', '-c', 'print(6 * 7)').out)
    assert (record['status'], record['stdout']) == ('completed', '42\n'), record['error']
    assert record['limits']['wall_ms'] == int(EXAMPLES[name]['limits.wall_ms'][:-1]) * 1000
    assert daemon.stop(signal.SIGTERM) == 0
