"""Profiles, packages, limits, ceilings and settings, by the command line."""

import json
import os
import re
import subprocess

import pytest

from cli import CAISSON, bash, caisson, environment, python, refused, run, schema, write


# ---- packages, modules, profiles ----

def test_packages_are_checked_and_recorded():
    record = python('1', '--packages', " numpy, pandas>=1.0,<3 ; 'requests==2.28.0','@scope/x@1.2.3',markitdown[all,pdf]")
    assert record['packages'] == ['numpy', 'pandas>=1.0,<3', 'requests==2.28.0', '@scope/x@1.2.3', 'markitdown[all,pdf]']
    assert [w['code'] for w in record['warnings']] == ['packages_not_installed']


@pytest.mark.parametrize('text', ['-r x.txt', '--index-url=http://x', 'git+https://x/y', 'http://x', '../x', '/etc/passwd', 'a b', 'a;b c',
                                  'numpy==', 'a\nb', '$(id)', 'x' * 201])
def test_what_is_no_package_is_refused(text):
    refused(python('1', '--packages', text), field='/packages')


def test_modules_are_there_before_the_program_starts():
    assert python('json.dumps(math.floor(1.5))', '--preload', 'json', '--preload', 'math')['result'] == {'type': 'str', 'value': '1'}
    assert run('-l', 'js', '-c', 'path.basename("/a/b")', '--preload', 'path')['result']['value'] == 'b'
    assert python('1', '--preload', 'nosuchmodule')['status'] == 'completed'


@pytest.mark.parametrize('name', ['a,b', 'a b', 'a=b', '', 'a:b'])
def test_what_is_no_module_is_refused(name):
    refused(python('1', '--preload', name), field='/preload')


PROFILES = ['standard', 'strict', 'data', 'lightweight', 'code_execution', 'data_processing', 'ml_inference', 'e2b', 'tools', 'allowlist', 'denylist', 'grade',
            'kodeagent', 'agentos', 'linx', 'codemie', 'mcp-light']


@pytest.mark.parametrize('name', PROFILES)
def test_each_profile_sets_what_it_shows(name):
    shown = json.loads(caisson('profiles', 'show', name, '--json').out)
    record = python('1', '--profile', name)
    if name == 'strict' and record['status'] == 'isolation_unavailable':
        pytest.skip(f'needs cgroup: {record["error"]["message"]}')
    assert record['profile'] == name and record['limits'] == shown['limits'], record['error']
    assert record['boundary']['strict_proc'] == (name == 'strict')


def test_options_win_over_the_profile():
    assert python('1', '--profile', 'data', '--timeout', '7s')['limits']['wall_ms'] == 7000


def test_the_list_of_profiles():
    assert [line.split()[0] for line in caisson('profiles', 'list').out.splitlines()] == [*PROFILES, 'build', 'host']
    assert caisson('profiles').out == caisson('profiles', 'list').out
    assert 'limits.wall_ms' in caisson('profiles', 'show', 'data').out


def test_an_unknown_profile_is_refused_with_the_known_ones():
    record = python('1', '--profile', 'nosuch')      # S0-02: an environment that is no profile
    assert (record['status'], record['error']['code'], record['error']['field'], record['exit']) == ('bad_request', 'unknown_profile', '/profile', 64)
    assert record['error']['message'].startswith('Unsupported code execution env: nosuch; known profiles are standard, ')
    assert 'mcp-light' in record['error']['message'] and 'build' not in record['error']['message']
    done = caisson('profiles', 'show', 'nosuch')
    assert done.status == 64 and 'standard' in done.err


def test_profiles_of_ones_own(tmp_path):
    write(tmp_path / 'mine.yaml', 'description: Mine.\nextends: lightweight\nlimits: {pids: 9}\nenv: {A: b}\n')
    where = ('--set', f'engine.profiles_dir={tmp_path}')
    record = python('import os; print(os.environ["A"])', '--profile', 'mine', *where)
    assert record['stdout'] == 'b\n' and record['limits']['pids'] == 9 and record['limits']['cpu_milli'] == 250
    assert 'Mine.' in caisson('profiles', 'list', *where).out
    write(tmp_path / 'bad.yaml', 'limits:\n  nosuch: 1\n')
    done = caisson('profiles', 'show', 'bad', *where)
    assert done.status == 78 and 'bad.yaml:2' in done.err


# ---- limits ----

LIMITS = {   # option: field, a value, its number, values out of bounds, the bounds as they are told
    'timeout': ('wall_ms', '5s', 5000, ['0', '86401s', '-1', 'x', '5d'], ['1ms', '86400s']),
    'cpu-time': ('cpu_ms', '1min', 60000, ['86401s', '-1', 'x'], ['86400s']),
    'cpus': ('cpu_milli', '0.5', 500, ['0.001', '1025', '-1', 'x'], ['1024']),
    'memory': ('memory_bytes', '128MiB', 134217728, ['1MiB', '2000GiB', '-1', 'x', '1Q'], ['4MiB', '1TiB']),
    'pids': ('pids', '32', 32, ['0', '100001', '-1', 'x', '1.5'], ['1', '100000']),
    'disk': ('disk_bytes', '1M', 1000000, ['1k', '2000GiB', '-1', 'x'], ['64KiB', '1TiB']),
    'code-size': ('code_bytes', '60k', 60000, ['0', '1048577', '-1', 'x'], ['1', '1MiB']),
    'disk-files': ('disk_files', '99', 99, ['15', '100000001', '-1', 'x'], ['16', '100000000']),
    'tmp': ('tmp_bytes', '64KiB', 65536, ['100', '2000GiB', '-1', 'x'], ['4KiB', '1TiB']),
    'open-files': ('open_files', '64', 64, ['15', '4097', '-1', 'x'], ['16', '4096']),
    'output': ('output_bytes', '0', 0, ['257MiB', '-1', 'x'], ['256MiB']),
    'background': ('background_ms', '250ms', 250, ['61s', '-1', 'x'], ['60s']),
    'value': ('value_bytes', '1KiB', 1024, ['17MiB', '-1', 'x'], ['16MiB']),
    'output-files': ('output_files', '0', 0, ['100001', '-1', 'x'], ['100000']),
    'input': ('input_bytes', '1MiB', 1048576, ['2000GiB', '-1', 'x'], ['1TiB']),
}


@pytest.mark.parametrize('option', LIMITS)
def test_a_limit_is_accepted_and_stands_in_the_record(option):
    field, text, number, _, _ = LIMITS[option]
    record = bash('true', f'--{option}', text)
    assert record['status'] == 'completed' and record['limits'][field] == number


@pytest.mark.parametrize('option', LIMITS)
def test_a_limit_out_of_bounds_is_refused_with_name_value_and_range(option):
    for value in LIMITS[option][3]:
        record = refused(bash('true', f'--{option}={value}'), f'--{option}', value, *LIMITS[option][4])
        assert record['exit'] == 64


def test_every_limit_has_its_tests():
    numbers = {name for name, field in schema('limits')['properties'].items() if field['type'] == 'integer'}
    assert {row[0] for row in LIMITS.values()} == numbers


def test_the_output_action():
    assert bash('echo 12345', '--output', '2')['status'] == 'completed'
    record = bash('yes', '--output', '100', '--output-action', 'kill')
    assert (record['status'], record['exit'], record['signal']) == ('output_limit', 137, 9)
    assert 'output_bytes=100' in record['error']['hint'] and record['truncated']['stdout_total_bytes'] > 100
    refused(bash('1', '--output-action', 'x'), 'continue', 'kill')


@pytest.mark.parametrize('option,field,asked,ceiling', [
    ('timeout', 'wall_ms', '10s', '5s'), ('memory', 'memory_bytes', '256MiB', '128MiB'), ('pids', 'pids', '33', '32'),
    ('cpus', 'cpu_milli', '2', '1000m'), ('disk', 'disk_bytes', '2MiB', '1MiB'), ('output', 'output_bytes', '2k', '1k'),
    ('open-files', 'open_files', '65', '64'), ('value', 'value_bytes', '11', '10')])
def test_a_ceiling_is_told_wherever_it_was_set(tmp_path, option, field, asked, ceiling):
    path = write(tmp_path / 'c.yaml', f'ceilings:\n  {field}: {ceiling}\n')
    for more in ({'env': {f'CAISSON_CEILINGS_{field.upper()}': ceiling}}, {'env': {'CAISSON_CONFIG': str(path)}}):
        refused(bash('true', f'--{option}', asked, **more), f'limits.{field}', f'ceilings.{field}', 'administrator')
    refused(bash('true', f'--{option}', asked, '--config', path), f'ceilings.{field}')
    refused(bash('true', f'--{option}', asked, '--set', f'ceilings.{field}={ceiling}'), f'ceilings.{field}')


def test_a_default_above_its_ceiling_comes_down():
    assert bash('true', '--set', 'ceilings.wall_ms=5s')['limits']['wall_ms'] == 5000
    done = caisson('config', 'show', '--set', 'ceilings.wall_ms=5s')
    assert re.search(r'^limits\.wall_ms +5s +default, lowered to ceilings\.wall_ms$', done.out, flags=re.M)


def test_two_settings_that_contradict_each_other():
    done = caisson('config', 'show', '--set', 'ceilings.wall_ms=5s', '--set', 'limits.wall_ms=6s')
    assert done.status == 78 and 'limits.wall_ms' in done.err and 'ceilings.wall_ms' in done.err


# ---- settings ----

def settings(*args, **more):
    done = caisson('config', 'show', '--json', *args, **more)
    assert done.status == 0, done.err
    return {row['key']: row for row in json.loads(done.out)}


def test_a_credential_is_laid_over_the_file(tmp_path):
    """What systemd hands over (systemd.exec(5), CREDENTIALS_DIRECTORY); the environment and flags win over it."""
    path = write(tmp_path / 'c.yaml', 'limits:\n  wall_ms: 1s\n  pids: 10\n')
    write(tmp_path / 'caisson.yaml', 'limits:\n  wall_ms: 2s\nengine:\n  otlp_headers: secret=1\n')
    env = {'CAISSON_CONFIG': str(path), 'CREDENTIALS_DIRECTORY': str(tmp_path)}
    rows = settings(env=env)
    assert (rows['limits.wall_ms']['value'], rows['limits.pids']['value']) == ('2s', '10')
    assert str(tmp_path / 'caisson.yaml') in rows['limits.wall_ms']['source']
    assert 'secret=1' not in caisson('config', 'show', env=env).out
    assert settings(env={**env, 'CAISSON_LIMITS_WALL_MS': '3s'})['limits.wall_ms']['value'] == '3s'
    write(tmp_path / 'caisson.yaml', 'limits:\n  wall: 2s\n')
    done = caisson('config', 'show', env=env)
    assert done.status == 78 and str(tmp_path / 'caisson.yaml') in done.err
    (tmp_path / 'caisson.yaml').unlink()
    assert settings(env=env)['limits.wall_ms']['value'] == '1s'


def flipped(key, value, folder):
    """Another value of a setting that is allowed whatever the others are."""
    others = {'engine.profile': 'data', 'engine.cgroup_parent': 'x', 'engine.landlock': 'off', 'engine.cgroup': 'require',
              'engine.allow_host': 'true', 'engine.network': 'none', 'engine.log_level': 'debug', 'limits.output_action': 'kill', 'limits.cpu_ms': '2s',
              'limits.code_bytes': '60000', 'ceilings.code_bytes': '100000',
              'limits.cpu_milli': '500m', 'ceilings.cpu_milli': '2000m', 'engine.uid_first': '100000', 'engine.uid_count': '100', 'engine.pool_min': '2',
              'engine.pool_warming': '2', 'engine.socket': '/tmp/other.sock', 'engine.socket_mode': '0600', 'engine.socket_group': 'users',
              'engine.socket_uids': '0,1', 'engine.http': '127.0.0.1:1', 'engine.http_keyless': 'true', 'engine.sandbox_root': 'false',
              'engine.otlp_disabled': 'true', 'engine.otlp_service': 'judge', 'engine.log_format': 'text', 'engine.confine': 'false', 'engine.user': '12345',
              'engine.e2b_api_url': 'https://e2b.test', 'engine.e2b_sandbox_url': 'https://e2b.test', 'engine.e2b_domain': 'e2b.test',
              'engine.e2b_template': 'base', 'engine.mcp_file': '/etc/mcp.json', 'engine.tools_user': 'nobody',
              'engine.private_hosts': 'mirror.house:3142', 'http.allowed_hosts': 'box.lan', 'http.web': 'off', 'engine.devices': 'data:/dev/nvidia0', 'volumes.dir': str(folder),
              'images.dir': str(folder), 'images.python': 'python-data', 'images.javascript': 'node', 'images.bash': 'minimal', 'images.e2b': 'debian',
              'images.layers': 'python-data=lyr_0123',
              'docker.host': 'unix:///run/podman/podman.sock', 'docker.image': 'python', 'docker.images': 'bash=debian', 'docker.runtime': 'runsc',
              'docker.user': '4242:4242', 'docker.warm_idle': '59s', 'docker.pull': 'missing', 'docker.guest': 'image', 'docker.gpus': 'all',
              'docker.api_min': '1.44', 'docker.connect_timeout': '9s', 'docker.start_timeout': '9s', 'docker.tls_verify': 'true',
              'docker.cert_path': '/etc/docker', 'docker.plain_tcp': 'true',
              'gateway.listen': '127.0.0.1:1', 'gateway.workers': 'http://10.0.0.5:8080', 'gateway.keys': 'gateway', 'gateway.tls_ca': '/etc/ca.pem',
              'gateway.heartbeat': '2s', 'gateway.down_after': '9s', 'gateway.connect_timeout': '9s', 'gateway.wait': '9s', 'gateway.lost_ttl': '99s', 'gateway.witness_ttl': '3600s',
              'gateway.shutdown': '9s',
              'kubernetes.mode': 'external', 'kubernetes.api_url': 'https://api.test', 'kubernetes.namespace': 'workers', 'kubernetes.selector': 'app=py',
              'kubernetes.tls': 'true', 'kubernetes.pod_prefix': 'py-', 'kubernetes.image': 'registry.test/caisson:1', 'kubernetes.pool_min': '2',
              'kubernetes.memory_request': '1Gi', 'kubernetes.memory_limit': '1Gi', 'kubernetes.cpu_request': '1', 'kubernetes.cpu_limit': '1',
              'kubernetes.disk_limit': '1Gi', 'kubernetes.service_account': 'worker', 'kubernetes.seccomp_profile': 'other.json',
              'kubernetes.key_secret': 'fleet', 'kubernetes.scale_down_after': '59s', 'kubernetes.idle': '59s',
              'packages.allow': 'requests,PyYAML', 'packages.deny': 'left-pad', 'packages.require_upload_time': 'false',
              'sessions.idle': '59s', 'packages.cache_ttl': '59s', 'packages.negative_ttl': '58s', 'packages.min_age': '59s', 'packages.build_wall': '59s',
              'packages.preload': 'pandas,matplotlib.pyplot', 'packages.preload_wall': '9s', 'packages.zygote_idle': '59s',
              'packages.zygote_memory_bytes': '256MiB',
              'review.mode': 'advisory', 'review.base_url': 'https://models.test/v1', 'review.url': 'https://reviews.test', 'review.model': 'm',
              'review.command': '/usr/bin/reviewer', 'review.timeout': '9s', 'review.budget': '9s', 'review.temperature': '0.5',
              'review.response_format': 'text', 'review.only_if': 'findings', 'review.languages': 'python', 'review.price.input': '1',
              'review.price.output': '2', 'review.price.cached': '0.5', 'review.price.file': '/etc/caisson/file',
              'review.max_code_bytes': '1000'}
    if key in others:
        return others[key]
    if key.endswith('_file'):
        return '/etc/caisson/file'
    if key.startswith('packages.') and key.endswith('_url'):
        return 'https://index.test/simple'
    if key.endswith('_endpoint'):
        return 'http://127.0.0.1:4318'
    if key.endswith('_dir'):
        return str(folder)
    if key.endswith('_ms'):
        return '59s' if key != 'limits.wall_ms' and not key.startswith('limits.background') else '29s'
    if key.endswith(('_bytes', '_bytes_max')):
        return '8MiB' if not key.startswith('ceilings.') else '2GiB' if 'output' not in key and 'value' not in key else '9MiB'
    return str(int(value) // 2 or 1) if not key.startswith('ceilings.') else str(int(value) - 1)


def every_key():
    # What is secret is not shown: test_otlp.py, test_backend_e2b.py.
    return sorted(set(settings()) - {'engine.otlp_headers', 'engine.e2b_api_key'}) if os.path.exists(CAISSON) else []


@pytest.mark.parametrize('key', every_key())
def test_each_setting_tells_where_its_value_came_from(tmp_path, key):
    before = settings()[key]
    assert before['source'] == 'default'
    assert before['variable'] == 'CAISSON_' + key.replace('.', '_').upper()
    value = flipped(key, before['value'], tmp_path)
    section, name = key.split('.', 1)
    others = {'review.base_url': 'https://other', 'review.url': 'https://other', 'review.command': '/other'}
    other = others.get(key, '3' if key.startswith('review.price.') and not key.endswith('file') else 'other')
    other = other if not key.startswith('packages.') or not key.endswith('_url') else 'https://other'
    path = write(tmp_path / 'c.yaml', f'# first\n{section}:\n  {name}: {value}\n')
    row = settings('--config', path)[key]
    assert (row['value'], row['source']) == (value, f'file {path}:3') and value != before['value']
    row = settings('--config', path, env={before['variable']: before['value'] or other})[key]
    assert (row['value'], row['source']) == (before['value'] or other, f'environment {before["variable"]}')
    row = settings('--set', f'{key}={value}', '--config', path, env={before['variable']: before['value']})[key]
    assert (row['value'], row['source']) == (value, 'flag --set')


@pytest.mark.parametrize('variable,text,key,value', [
    ('CODE_EXECUTION_TIMEOUT', '7', 'limits.wall_ms', '7s'), ('CODE_EXECUTOR_EXECUTION_TIMEOUT', '8', 'limits.wall_ms', '8s'),
    ('CODE_EXECUTION_MEMORY_MB', '64', 'limits.memory_bytes', '64MiB'), ('CODE_EXECUTOR_MEMORY_LIMIT', '64Mi', 'limits.memory_bytes', '64MiB'),
    ('CODE_EXECUTION_CPU_CORES', '0.5', 'limits.cpu_milli', '500m'), ('CODE_EXECUTOR_CPU_LIMIT', '2', 'limits.cpu_milli', '2000m'),
    ('CODE_EXECUTOR_EPHEMERAL_STORAGE_LIMIT', '1Mi', 'limits.disk_bytes', '1MiB'), ('CODE_EXECUTOR_VERBOSE', 'true', 'engine.log_level', 'debug'),
    ('DEPENDENCY_CACHE_DIR', '/srv/layers', 'packages.cache_dir', '/srv/layers'), ('DEPENDENCY_CACHE_TTL_HOURS', '1.5', 'packages.cache_ttl', '5400s')])
def test_variables_of_older_systems(variable, text, key, value):
    row = settings(env={variable: text})[key]
    assert (row['value'], row['source']) == (value, f'environment {variable}')
    newer = settings()[key]['variable']
    assert settings(env={variable: text, newer: settings()[key]['value']})[key]['source'] == f'environment {newer}'


def test_the_usual_places_of_the_file(tmp_path):
    write(tmp_path / 'caisson/caisson.yaml', 'limits:\n  pids: 11\n')
    assert settings(env={'XDG_CONFIG_HOME': str(tmp_path)})['limits.pids']['value'] == '11'
    write(tmp_path / '.config/caisson/caisson.yaml', 'limits:\n  pids: 12\n')
    assert settings(env={'HOME': str(tmp_path)})['limits.pids']['value'] == '12'
    other = write(tmp_path / 'c.yaml', 'limits:\n  pids: 13\n')
    assert settings(env={'HOME': str(tmp_path), 'CAISSON_CONFIG': str(other)})['limits.pids']['value'] == '13'
    assert settings('--config', write(tmp_path / 'd.yaml', ''), env={'CAISSON_CONFIG': str(other)})['limits.pids']['source'] == 'default'


@pytest.mark.parametrize('text,words', [
    ('limits:\n  wall_ms: x\n', ['c.yaml:2', 'limits.wall_ms', '"x"', '86400s']), ('limits:\n  wall_s: 1\n', ['c.yaml:2', 'wall_s']),
    ('limit:\n  wall_ms: 1\n', ['c.yaml:1', 'limits']), ('limits:\n  pids: 1\n  pids: 2\n', ['c.yaml:3', 'pids']),
    ('limits: [1]\n', ['c.yaml:1']), ('{', ['c.yaml']), ('engine:\n  profile: nosuch\n', ['nosuch', 'standard']),
    ('engine:\n  allow_host: maybe\n', ['c.yaml:2', 'allow_host']), ('a: &x 1\n', ['c.yaml:1'])])
def test_a_wrong_file_stops_the_start(tmp_path, text, words):
    path = write(tmp_path / 'c.yaml', text)
    for args in (('config', 'show'), ('run', '-l', 'bash', '-c', 'true'), ('profiles', 'list')):
        done = caisson(*args, '--config', path)
        assert done.status == 78 and done.out == '' and all(word in done.err for word in words), done.err


def test_a_wrong_variable_or_flag_stops_the_start(tmp_path):
    for env, words in (({'CAISSON_LIMITS_PIDS': 'x'}, ['CAISSON_LIMITS_PIDS', '"x"', '100000']),
                       ({'CAISSON_LIMITS_PIDZ': '1'}, ['CAISSON_LIMITS_PIDZ', 'did you mean CAISSON_LIMITS_PIDS']),
                       ({'CODE_EXECUTION_TIMEOUT': 'soon'}, ['CODE_EXECUTION_TIMEOUT'])):
        done = caisson('config', 'show', env=env)
        assert done.status == 78 and all(word in done.err for word in words), done.err
    for flag, word in (('limits.pidz=1', 'did you mean limits.pids'), ('limits.pids', 'KEY=VALUE'), ('limits.pids=0', '100000')):
        done = caisson('config', 'show', '--set', flag)
        assert done.status == 78 and word in done.err
    done = caisson('config', 'show', '--config', tmp_path / 'none')
    assert done.status == 78 and 'No such file' in done.err


def test_settings_reach_the_run():
    record = bash('true', env={'CAISSON_LIMITS_PIDS': '21', 'CAISSON_ENGINE_PROFILE': 'lightweight'})
    assert record['limits']['pids'] == 21 and record['profile'] == 'lightweight'
    assert bash('true', '--set', 'limits.pids=22')['limits']['pids'] == 22
    assert not bash('true', '--set', 'engine.landlock=off')['boundary']['landlock_abi']


# ---- languages of one's own ----

def test_a_language_is_added_by_a_file(tmp_path):
    write(tmp_path / 'l/awk.yaml', 'title: AWK\ncommand: [/usr/bin/awk, -f, "{file}"]\naliases: [gawk]\nfile: main.awk\nextensions: [awk]\n')
    where = ('--set', f'engine.languages_dir={tmp_path}/l')
    for program in (('-l', 'awk', '-c', 'BEGIN { print "hi", ARGV[1] }'), ('-l', 'GAWK', '-c', 'BEGIN { print "hi", ARGV[1] }'),
                    (write(tmp_path / 'p.awk', 'BEGIN { print "hi", ARGV[1] }'),)):
        record = run(*where, *program, '--', 'you')
        assert (record['status'], record['language'], record['stdout']) == ('completed', 'awk', 'hi you\n'), record['stderr']
    assert 'awk' in run(*where, '-l', 'cobol', '-c', '')['error']['message']
    assert run('-l', 'awk', '-c', '')['status'] == 'unsupported_language'


@pytest.mark.parametrize('text', ['nosuch: 1\n', 'command: awk\n', 'command: [awk]\n', 'title: x\n', 'command: []\n'])
def test_a_wrong_file_of_a_language_is_told(tmp_path, text):
    write(tmp_path / 'bad.yaml', text)
    done = caisson('run', '--set', f'engine.languages_dir={tmp_path}', '-l', 'bash', '-c', 'true')
    assert done.status == 78 and 'bad.yaml:1' in done.err, done.err


@pytest.mark.parametrize('program, error', [('/usr/bin/nosuch', 'No such file'), ('/usr/bin/env/x', 'Not a directory'), ('/usr/lib', 'Permission denied'),
                                            ('/opt/nosuch/lua', 'No such file'), ('/etc/passwd', '')])
def test_a_language_whose_interpreter_is_missing_is_unsupported(tmp_path, program, error):
    write(tmp_path / 'lua.yaml', f'command: [{program}, "{{file}}"]\n')
    record = run('--set', f'engine.languages_dir={tmp_path}', '-l', 'lua', '-c', 'x')
    assert (record['status'], record['exit'], record['error']['code']) == ('unsupported_language', 64, 'unsupported_language'), record['error']
    assert record['error']['field'] == '/language' and program in record['error']['message'] and error in record['error']['message']


@pytest.mark.parametrize('language, program', [('javascript', '/usr/bin/node'), ('typescript', '/usr/bin/node'), ('python', os.path.realpath('/usr/bin/python3')),
                                               ('bash', '/usr/bin/bash')])
def test_a_host_without_the_interpreter_of_a_usual_language_says_so(tmp_path, language, program):
    """The file is covered, in a mount namespace, by one that cannot be executed."""
    if os.geteuid() != 0:
        pytest.skip('needs root')
    cover = write(tmp_path / 'cover', '')
    cover.chmod(0o644)
    done = subprocess.run(['unshare', '--mount', '/usr/bin/dash', '-c', 'mount --bind "$0" "$1" && shift && exec "$@"', cover, program,
                           CAISSON, 'run', '--json', '--daemon', 'never', '-l', language, '-c', '1'],
                          stdin=subprocess.DEVNULL, capture_output=True, env=environment(), timeout=120, check=False)
    record = json.loads(done.stdout)
    assert (record['status'], done.returncode) == ('unsupported_language', 64), record['error']
