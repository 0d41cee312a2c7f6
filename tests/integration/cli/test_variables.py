"""Variables of the environment that the systems before had: each changes a setting, or draws one sentence.

S2-67 to S2-69, S3-01 to S3-20, U-56: none is ignored in silence.
"""

import json
import re
import signal

import pytest

from cli import ROOT, caisson, run
from daemon import Daemon

SETS = {   # variable: a value, the settings that it changes
    'CODE_EXECUTION_TIMEOUT': ('7', {'limits.wall_ms': '7s'}),
    'CODE_EXECUTION_MEMORY_MB': ('64', {'limits.memory_bytes': '64MiB'}),
    'CODE_EXECUTION_CPU_CORES': ('0.5', {'limits.cpu_milli': '500m'}),
    'DEPENDENCY_CACHE_DIR': ('/srv/layers', {'packages.cache_dir': '/srv/layers'}),
    'DEPENDENCY_CACHE_TTL_HOURS': ('1.5', {'packages.cache_ttl': '5400s'}),
    'CODE_EXECUTOR_EXECUTION_TIMEOUT': ('60.5', {'limits.wall_ms': '60.500s'}),
    'CODE_EXECUTOR_MEMORY_LIMIT': ('64Mi', {'limits.memory_bytes': '64MiB'}),
    'CODE_EXECUTOR_CPU_LIMIT': ('500m', {'limits.cpu_milli': '500m'}),
    'CODE_EXECUTOR_EPHEMERAL_STORAGE_LIMIT': ('1Mi', {'limits.disk_bytes': '1MiB'}),
    'CODE_EXECUTOR_VERBOSE': ('yes', {'engine.log_level': 'debug'}),
    'CODE_EXECUTOR_MAX_POD_POOL_SIZE': ('6', {'engine.pool_max': '6', 'engine.running_max': '6', 'kubernetes.pool_max': '6'}),
    'CODE_EXECUTOR_SESSION_TIMEOUT': ('60.0', {'sessions.idle': '60s', 'kubernetes.idle': '60s'}),
    'CODE_EXECUTOR_DEFAULT_TIMEOUT': ('45', {'engine.copy_ms': '45s'}),
    'CODE_EXECUTOR_DOCKER_IMAGE': ('python-data', {'images.python': 'python-data', 'kubernetes.image': 'python-data'}),
    'DOCKER_HOST': ('tcp://10.0.0.1:2376', {'docker.host': 'tcp://10.0.0.1:2376'}),
    'DOCKER_TLS_VERIFY': ('1', {'docker.tls_verify': 'true'}),
    'DOCKER_CERT_PATH': ('/etc/docker', {'docker.cert_path': '/etc/docker'}),
}
PODS = {   # variable: a value of its system, the setting of a gateway's pods, words of the sentence where there are no pods
    'CODE_EXECUTOR_NAMESPACE': ('codemie-runtime', 'kubernetes.namespace', 'engine.cgroup_parent'),
    'CODE_EXECUTOR_POD_NAME_PREFIX': ('codemie-executor-', 'kubernetes.pod_prefix', 'task_id'),
    'CODE_EXECUTOR_MEMORY_REQUEST': ('128Mi', 'kubernetes.memory_request', 'limits.memory_bytes'),
    'CODE_EXECUTOR_CPU_REQUEST': ('500m', 'kubernetes.cpu_request', 'limits.cpu_milli'),
    'CODE_EXECUTOR_RUN_AS_USER': ('1002', 'kubernetes.run_as_user', 'uid 1000'),
    'CODE_EXECUTOR_RUN_AS_GROUP': ('1002', 'kubernetes.run_as_group', 'gid 1000'),
    'CODE_EXECUTOR_FS_GROUP': ('1002', 'kubernetes.fs_group', 'volumes'),
}
NOTES = {   # variable: a value of its system, words of the sentence
    'CODE_EXECUTOR_WORKDIR_BASE': ('/home/codemie', '/home/user'),
    'CODE_EXECUTOR_SKIP_ENVIRONMENT_SETUP': ('true', 'sets up nothing'),
    'CODE_EXECUTOR_EXECUTION_MODE': ('local', 'engine.allow_host'),
    'CODE_EXECUTOR_SECURITY_THRESHOLD': ('LOW', 'block_at'),
    'CODE_EXECUTOR_YAML_POLICY_PATH': ('', 'engine.policies_dir'),
    'CODE_EXECUTOR_KEEP_TEMPLATE': ('true', 'engine.pool_min'),
    'CODE_EXECUTOR_KUBECONFIG_PATH': ('', 'Kubernetes'),
    'CODE_EXECUTOR_SANDBOX_MODE': ('shared', 'POST /v1/sessions'),
    'CODE_EXECUTOR_RUNTIME_CLASS_NAME': ('gvisor', 'caisson doctor'),
}


def settings(**env):
    done = caisson('config', 'show', '--json', env=env)
    assert done.status == 0, done.err
    return {row['key']: row for row in json.loads(done.out)}, done.err


def test_every_variable_of_the_table_is_tested_here():
    table = (ROOT / 'src/model/variables.def').read_text(encoding='utf-8')
    rows = dict(re.findall(r'^(?:ALIAS|IMAGE|POD|NOTE)\("([A-Z_]+)", ("?)', table, flags=re.M))
    assert {name for name in rows if not name.startswith('OTEL_')} == set(SETS) | set(PODS) | set(NOTES)


@pytest.mark.parametrize('variable', SETS)
def test_a_variable_that_changes_settings(variable):
    """config show names the variable as the source; a newer variable of ours wins."""
    value, keys = SETS[variable]
    before, _ = settings()
    rows, err = settings(**{variable: value})
    assert err == '' and {key: rows[key]['value'] for key in keys} == keys
    for key in keys:
        assert rows[key]['source'] == f'environment {variable}' and before[key]['value'] != rows[key]['value']
        assert settings(**{variable: value, before[key]['variable']: before[key]['value']})[0][key]['source'] == f'environment {before[key]["variable"]}'


@pytest.mark.parametrize('variable', PODS)
def test_a_variable_of_pods_sets_them_and_has_no_meaning_without_a_gateway(variable):
    value, key, word = PODS[variable]
    sentence = f'caisson: environment {variable} has no meaning here: '
    done = caisson('run', '-l', 'bash', '-c', 'echo hi', env={variable: value})
    assert (done.status, done.out) == (0, 'hi\n') and done.err.count('\n') == 1 and done.err.startswith(sentence) and word in done.err, done.err
    rows, err = settings(**{variable: value, 'CAISSON_KUBERNETES_MODE': 'owned'})
    assert err == '' and rows[key]['value'] == value and rows[key]['source'] == f'environment {variable}'
    rows, err = settings(**{variable: ''})
    assert err.count('\n') == 1 and rows[key]['source'] == 'default'


def test_an_image_of_pods_needs_no_image_here():
    rows, err = settings(CODE_EXECUTOR_DOCKER_IMAGE='registry.example/caisson:1', CAISSON_KUBERNETES_MODE='owned')
    assert err == '' and rows['kubernetes.image']['value'] == 'registry.example/caisson:1' and rows['images.python']['source'] == 'default'


@pytest.mark.parametrize('variable', NOTES)
def test_a_variable_without_a_meaning_draws_one_sentence(variable):
    value, word = NOTES[variable]
    done = caisson('run', '-l', 'bash', '-c', 'echo hi', env={variable: value})
    assert (done.status, done.out) == (0, 'hi\n')
    assert done.err.count('\n') == 1 and done.err.startswith(f'caisson: environment {variable} has no meaning here: ') and word in done.err, done.err
    before, _ = settings()
    assert {key: row['value'] for key, row in settings(**{variable: value})[0].items()} == {key: row['value'] for key, row in before.items()}


def test_an_image_of_a_registry_draws_a_sentence():
    """S3-02: epamairun/codemie-python:2.2.9 is no name of an image here."""
    rows, err = settings(CODE_EXECUTOR_DOCKER_IMAGE='epamairun/codemie-python:2.2.9')
    assert rows['images.python']['source'] == 'default' and rows['kubernetes.image']['value'] == 'epamairun/codemie-python:2.2.9'
    assert 'CODE_EXECUTOR_DOCKER_IMAGE has no meaning here' in err and 'caisson image import' in err


def test_an_unknown_variable_of_these_systems_draws_a_sentence():
    _, err = settings(CODE_EXECUTOR_MEMORY_LIMITS='1Gi', CODE_EXECUTION_FOO='1', DEPENDENCY_CACHE_SIZE='1', CODE_EXECUTIVE='x')
    assert 'CODE_EXECUTOR_MEMORY_LIMITS: no such variable is known, and it changes nothing; did you mean CODE_EXECUTOR_MEMORY_LIMIT;' in err
    assert 'CODE_EXECUTION_FOO: no such' in err and 'DEPENDENCY_CACHE_SIZE: no such' in err and 'EXECUTIVE' not in err
    _, err = settings(**{'CODE_EXECUTOR_\x1b[31m': '1'})
    assert '\x1b' not in err and 'CODE_EXECUTOR_?[31m' in err


def test_very_many_unknown_variables_draw_a_bounded_number_of_sentences():
    _, err = settings(**{f'CODE_EXECUTOR_X{i}': '1' for i in range(500)})
    assert err.count('\n') == 64


@pytest.mark.parametrize('variable, value, words', [
    ('CODE_EXECUTION_TIMEOUT', 'soon', ['"soon"', '1ms to 86400s']), ('CODE_EXECUTION_MEMORY_MB', '1', ['4MiB']), ('CODE_EXECUTION_CPU_CORES', '-1', ['1024']),
    ('DEPENDENCY_CACHE_TTL_HOURS', 'x', ['"x', 'packages.cache_ttl']), ('CODE_EXECUTOR_MAX_POD_POOL_SIZE', '0', ['"0"', '1 to 100000']),
    ('CODE_EXECUTOR_MAX_POD_POOL_SIZE', 'five', ['"five"']), ('CODE_EXECUTOR_SESSION_TIMEOUT', '0.5', ['1s to 86400s']),
    ('CODE_EXECUTOR_DEFAULT_TIMEOUT', '30x', ['engine.copy_ms']), ('CODE_EXECUTOR_VERBOSE', 'maybe', ['true or false']),
    ('CODE_EXECUTOR_MEMORY_LIMIT', '1Zi', ['limits.memory_bytes'])])
def test_a_wrong_value_stops_the_start(variable, value, words):
    """S3-21, S3-22, U-56: the error names the variable, the value and the range."""
    for args in (('config', 'show'), ('run', '-l', 'bash', '-c', 'true')):
        done = caisson(*args, env={variable: value})
        assert done.status == 78 and f'environment {variable}: ' in done.err and all(word in done.err for word in words), done.err


def test_the_daemon_logs_each_sentence_once(tmp_path):
    """At the start; and what a variable changes holds for its runs."""
    env = {'CODE_EXECUTOR_WORKDIR_BASE': '/home/codemie', 'CODE_EXECUTOR_KEEP_TEMPLATE': 'x', 'CODE_EXECUTION_TIMEOUT': '9', 'CODE_EXECUTOR_NOSUCH': '1'}
    daemon = Daemon(tmp_path, env=env).ready()
    record = json.loads(daemon.caisson('run', '--json', '-l', 'bash', '-c', 'true').out)
    assert record['limits']['wall_ms'] == 9000
    assert daemon.stop(signal.SIGTERM) == 0
    lines = [json.loads(line) for line in (tmp_path / 'log').read_text().splitlines() if line.startswith('{')]
    for variable in ('CODE_EXECUTOR_WORKDIR_BASE', 'CODE_EXECUTOR_KEEP_TEMPLATE', 'CODE_EXECUTOR_NOSUCH'):
        assert [line['level'] for line in lines if variable in json.dumps(line)] == ['warn'], lines


def test_a_setting_that_a_variable_changes_reaches_the_run():
    assert run('-l', 'bash', '-c', 'true', env={'CODE_EXECUTOR_EPHEMERAL_STORAGE_LIMIT': '1Mi'})['limits']['disk_bytes'] == 1 << 20
