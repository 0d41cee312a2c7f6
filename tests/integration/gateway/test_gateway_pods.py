"""caisson-gateway that owns its pods: each pod is a caissond, made by the stub's kubelet from the pod that the gateway sent.

    /usr/bin/python3 -m pytest -q tests/integration/gateway/test_gateway_pods.py
"""

import http.client
import json
import signal
import subprocess
import threading
import time

import pytest

from cli import BUILD, caisson, environment
from daemon import CAISSOND, until
from gateway import SECRET, tag_of
from keys import Keys, bearer
from kubelet import Kubelet

PROGRAM = BUILD / 'caisson-gateway'


class Gateway:
    """The program, with keys of its own, in front of pods."""

    def __init__(self, stub, folder, *words, name='gateway', port=0):
        self.folder, self.state = folder, folder / 'gateway-state'
        (folder / 'key').write_text(SECRET + '\n')
        if not self.state.exists():
            self.key = Keys(self.state).make('test', '--scopes', 'run,read,sandboxes')
            (folder / 'api-key').write_text(self.key)
        self.key = (folder / 'api-key').read_text()
        account = stub.service_account(folder / 'account')
        settings = [f'gateway.listen=127.0.0.1:{port}', f'gateway.key_file={folder}/key', 'gateway.keys=gateway', f'engine.state_dir={self.state}',
                    f'kubernetes.api_url={stub.url}', f'kubernetes.token_file={account}/token', 'kubernetes.mode=owned', 'kubernetes.image=caisson:1',
                    'kubernetes.key_secret=fleet', 'kubernetes.pod_prefix=w-', 'kubernetes.port=18080', 'engine.log_level=info', *words]
        self.log = folder / f'{name}.log'
        with open(self.log, 'ab') as log:
            flags = [word for setting in settings for word in ('--set', setting)]
            self.process = subprocess.Popen([PROGRAM, *flags], env=environment(), stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.port = until(self.find_port, 30)

    def find_port(self):
        assert self.process.poll() is None, self.log.read_text()
        for line in self.log.read_text().splitlines():
            if 'http://127.0.0.1:' in line:
                return int(line.split('http://127.0.0.1:')[1].split('"')[0].split()[0].rstrip(',./;'))
        return None

    def ask(self, method, path, body=None, timeout=120):
        """(status, value)"""
        connection = http.client.HTTPConnection('127.0.0.1', self.port, timeout=timeout)
        try:
            connection.request(method, path, json.dumps(body) if body is not None else None, {'Content-Type': 'application/json', **bearer(self.key)})
            answer = connection.getresponse()
            content = answer.read()
        finally:
            connection.close()
        return answer.status, json.loads(content) if content.startswith((b'{', b'[')) else content.decode()

    def run(self, code, **more):
        return self.ask('POST', '/v1/runs', {'language': 'bash', 'code': code, **more})

    def wait_ready(self, stub, n, seconds=60):
        """n pods are ready by the kubelet, and the gateway has a ready worker."""
        until(lambda: sum(is_ready(pod) for pod in stub.pods()) == n == len(stub.pods()), seconds)
        until(lambda: self.ask('GET', '/readyz')[0] == 200, seconds)

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)


def is_ready(pod):
    return any(one['type'] == 'Ready' and one['status'] == 'True' for one in pod['status'].get('conditions') or [])


class Workers:
    """Starts a caissond for each pod, with the environment of its container; paths of the pod become paths of the test."""

    def __init__(self, folder):
        self.folder, self.started = folder, []

    def start(self, pod, address):
        container, name = pod['spec']['containers'][0], f'{pod["metadata"]["name"]}-{pod["metadata"]["uid"][:8]}'
        own = self.folder / name
        own.mkdir(exist_ok=True)
        given = {one['name']: one['value'] for one in container['env']}
        assert container['args'] == ['caissond'] and given['CAISSON_ENGINE_HTTP'] == '0.0.0.0:18080'
        assert given['CAISSON_GATEWAY_KEY_FILE'] == '/etc/caisson-gateway/key' and given['CAISSON_GATEWAY_KEYS'] == 'gateway'
        changed = {'CAISSON_ENGINE_HTTP': f'{address}:18080', 'CAISSON_ENGINE_STATE_DIR': f'{own}/state', 'CAISSON_ENGINE_SOCKET': f'{own}/s',
                   'CAISSON_GATEWAY_KEY_FILE': f'{self.folder}/key', 'CAISSON_ENGINE_SHUTDOWN_MS': '10s'}
        self.started.append(name)
        given.pop('CAISSON_LISTEN')
        with open(own / 'log', 'ab') as log:
            return subprocess.Popen([CAISSOND], env=environment(**{**given, **changed}), stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                    start_new_session=True)


@pytest.fixture(name='kubelet')
def a_kubelet(stub, tmp_path):
    with Kubelet(stub, start=Workers(tmp_path).start) as kubelet:
        yield kubelet


@pytest.fixture(name='gateway')
def a_gateway(stub, kubelet, tmp_path):
    assert kubelet
    gateway = Gateway(stub, tmp_path, 'kubernetes.pool_min=2', 'kubernetes.pool_max=3')
    yield gateway
    assert gateway.stop() == 0, gateway.log.read_text()


def test_runs_go_to_the_pods_that_the_gateway_made(stub, gateway):
    gateway.wait_ready(stub, 2)
    tags = set()
    for i in range(20):
        status, record = gateway.run(f'echo {i}')
        assert (status, record['stdout']) == (200, f'{i}\n')
        tags.add(tag_of(SECRET, record['id']))
    assert len(tags) == 2 and None not in tags


def test_a_killed_worker_and_a_deleted_pod_are_replaced(stub, kubelet, gateway):
    gateway.wait_ready(stub, 2)
    kubelet.kill('w-0', 'OOMKilled')
    until(lambda: (stub.pod('w-0')['status']['containerStatuses'][0]['restartCount']) == 1)
    assert gateway.run('echo after')[1]['stdout'] == 'after\n'
    old = stub.pod('w-1')['metadata']['uid']
    stub.delete_pod('w-1')
    until(lambda: old not in {pod['metadata']['uid'] for pod in stub.pods()})
    gateway.wait_ready(stub, 2)
    for _ in range(6):
        assert gateway.run('echo again')[1]['stdout'] == 'again\n'


def missing_in_audit(gateway, answers, seconds=10):
    """Ids of answered runs that the gateway's audit does not get; the pods of most of them are gone."""
    end = time.monotonic() + seconds
    while True:
        done = caisson('runs', '--json', '--limit', '10000', '--set', f'engine.state_dir={gateway.state}')
        missing = {answer[1]['id'] for answer in answers if answer[0] == 200} - {row['id'] for row in json.loads(done.out)}
        if not missing or time.monotonic() > end:
            return missing
        time.sleep(0.2)


def test_a_new_template_is_rolled_out_under_load(stub, kubelet, gateway, tmp_path):
    """Failed requests: none.  All runs are in the audit of the gateway."""
    assert kubelet
    gateway.wait_ready(stub, 2)
    gateway.stop()
    old = {pod['metadata']['uid'] for pod in stub.pods()}
    second = Gateway(stub, tmp_path, 'kubernetes.pool_min=2', 'kubernetes.pool_max=3', 'kubernetes.memory_limit=5Gi', name='second')
    answers, over = [], threading.Event()

    def load():
        while not over.is_set():
            answers.append(second.run('sleep 0.05; echo hi'))
    threads = [threading.Thread(target=load) for _ in range(2)]
    try:
        until(lambda: second.ask('GET', '/readyz')[0] == 200, 60)
        for thread in threads:
            thread.start()
        until(lambda: not old & {pod['metadata']['uid'] for pod in stub.pods()} and sum(map(is_ready, stub.pods())) >= 2, 120)
    finally:
        over.set()
        for thread in threads:
            thread.join()
        missing = missing_in_audit(second, answers)
        assert second.stop() == 0, second.log.read_text()
    wrong = [answer for answer in answers if answer[0] != 200 or answer[1]['stdout'] != 'hi\n']
    assert len(answers) > 10 and not wrong, (len(answers), wrong[:3])
    assert not missing, f'{len(missing)} of {len(answers)} runs are not in the audit of the gateway: {sorted(missing)[:3]}'
