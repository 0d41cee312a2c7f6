"""The kubelet of the tests' own Kubernetes API server (tests/lib/kubelet.py): pods without and with a process.

    /usr/bin/python3 -m pytest -q tests/integration/gateway/test_kubelet.py
"""

import os
import signal
import subprocess
import sys
import time

import pytest
from kube_stub import KubeStub
from kubelet import Kubelet

PORT = 8080
# A worker that is ready 0.2 s after its start; SIGTERM ends it with 0 after a while, or never.
WORKER = f'''
import http.server, os, signal, sys, threading, time

address, on_term = sys.argv[1:]
begun = time.monotonic()

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        is_ready = self.path == '/readyz' and time.monotonic() - begun > 0.2
        self.send_response(200 if is_ready else 503)
        self.send_header('Content-Length', '0')
        self.end_headers()

    def log_message(self, *_):
        pass

signal.signal(signal.SIGTERM, signal.SIG_IGN if on_term == 'ignore' else lambda *_: os._exit(0))
http.server.ThreadingHTTPServer((address, {PORT}), Handler).serve_forever()
'''
PROBE = {'httpGet': {'path': '/readyz', 'port': PORT}, 'periodSeconds': 1, 'failureThreshold': 2}


def worker(on_term='end', **group):
    return lambda _pod, address: subprocess.Popen([sys.executable, '-c', WORKER, address, on_term], **group)


def container(**more):
    return [{'name': 'worker', 'image': 'worker', 'readinessProbe': PROBE, **more}]


def is_ready(stub, name):
    pod = stub.pod(name)
    return bool(pod) and any(one['type'] == 'Ready' and one['status'] == 'True'
                             for one in pod['status'].get('conditions', ()))


def status_of(stub, name):
    return stub.pod(name)['status']['containerStatuses'][0]


def history(stub, revision):
    """(phase, ready, deletionTimestamp is set) of each state of all pods after a revision, without repetitions."""
    found = []
    for number in range(revision + 1, stub.store.revision + 1):
        pod = (stub.store.changes[number].new or stub.store.changes[number].old).value
        ready = any(one['type'] == 'Ready' and one['status'] == 'True' for one in pod['status'].get('conditions', ()))
        state = pod['status']['phase'], ready, 'deletionTimestamp' in pod['metadata']
        if found[-1:] != [state]:
            found.append(state)
    return found


def is_alive(process):
    return process.poll() is None


@pytest.fixture(name='stub')
def fresh_stub():
    with KubeStub() as stub:
        yield stub
        assert not stub.errors


# ---- without processes ----


def test_a_thousand_pods(stub):
    with Kubelet(stub, nodes=['node-0', 'node-1']):
        before = time.monotonic()
        for number in range(1000):
            stub.create_pod(f'w-{number}')
        stub.wait_for(lambda: all(is_ready(stub, f'w-{number}') for number in (0, 500, 999)))
        stub.wait_for(lambda: sum(pod['status']['phase'] == 'Running' for pod in stub.pods()) == 1000)
        assert time.monotonic() - before < 10
        assert len({pod['status']['podIP'] for pod in stub.pods()}) == 1000
        assert {pod['spec']['nodeName'] for pod in stub.pods()} == {'node-0', 'node-1'}
        for number in range(1000):
            stub.delete_pod(f'w-{number}', grace=30)
        stub.wait_for(lambda: not stub.pods())


def test_a_delay_before_and_after(stub):
    with Kubelet(stub, delay=0.2, end_delay=0.2):
        begun = time.monotonic()
        stub.create_pod('a')
        stub.wait_for(lambda: is_ready(stub, 'a'))
        assert time.monotonic() - begun >= 0.2
        begun = time.monotonic()
        stub.delete_pod('a', grace=30)
        stub.wait_for(lambda: not stub.pod('a'))
        assert time.monotonic() - begun >= 0.2


def test_pods_that_do_not_start(stub):
    with Kubelet(stub) as kubelet:
        kubelet.unschedulable = '0/1 nodes are available: 1 Insufficient memory.'
        stub.create_pod('a')
        condition = stub.wait_for(lambda: stub.pod('a')['status'].get('conditions'))[0]
        assert (condition['reason'], condition['message']) == ('Unschedulable', kubelet.unschedulable)
        kubelet.unschedulable, kubelet.waiting = None, ('ImagePullBackOff', 'Back-off pulling image "worker"')
        kubelet.retry()
        stub.wait_for(lambda: stub.pod('a')['status'].get('containerStatuses'))
        assert status_of(stub, 'a')['state'] == {'waiting': {'reason': 'ImagePullBackOff',
                                                             'message': kubelet.waiting[1]}}
        assert stub.pod('a')['status']['phase'] == 'Pending'
        kubelet.waiting = None
        kubelet.retry()
        stub.wait_for(lambda: is_ready(stub, 'a'))


def test_ends_without_a_process(stub):
    with Kubelet(stub, nodes=['node-0', 'node-1']) as kubelet:
        stub.create_pod('a')
        stub.create_pod('b')
        stub.wait_for(lambda: is_ready(stub, 'a') and is_ready(stub, 'b'))
        kubelet.kill('a', 'OOMKilled')
        assert not is_ready(stub, 'a') and status_of(stub, 'a')['lastState']['terminated']['reason'] == 'OOMKilled'
        stub.wait_for(lambda: is_ready(stub, 'a'))
        assert status_of(stub, 'a')['restartCount'] == 1
        kubelet.ready('a', False)
        assert not is_ready(stub, 'a')
        kubelet.evict('a')
        assert (stub.pod('a')['status']['phase'], stub.pod('a')['status']['reason']) == ('Failed', 'Evicted')
        kubelet.lose_node('node-1')
        assert not is_ready(stub, 'b') and stub.pod('b')['status']['reason'] == 'NodeLost'
        stub.delete_pod('b', grace=1)
        time.sleep(0.2)
        assert stub.pod('b')['metadata']['deletionTimestamp']
        stub.delete_pod('b', grace=0)
        assert stub.pod('b') is None


# ---- with processes ----


def test_a_process_becomes_ready_and_ends_with_its_pod(stub):
    with Kubelet(stub, start=worker()) as kubelet:
        revision = stub.store.revision
        stub.create_pod('a', containers=container())
        stub.create_pod('b', containers=container())
        stub.wait_for(lambda: is_ready(stub, 'a') and is_ready(stub, 'b'))
        assert kubelet.address('a') == stub.pod('a')['status']['podIP'] != stub.pod('b')['status']['podIP']
        assert history(stub, revision) == [('Pending', False, False), ('Running', False, False),
                                           ('Running', True, False)] or set(history(stub, revision)) == {('Pending',
                                               False, False), ('Running', False, False), ('Running', True, False)}
        stub.delete_pod('b', grace=0)
        process = kubelet.process('a')
        revision = stub.store.revision
        stub.delete_pod('a', grace=30)
        stub.wait_for(lambda: not stub.pod('a'))
        assert process.wait(5) == 0
        assert history(stub, revision) == [('Running', True, True), ('Succeeded', False, True)]


def test_a_process_that_ignores_sigterm_is_killed_after_the_grace_period(stub):
    with Kubelet(stub, start=worker('ignore')) as kubelet:
        stub.create_pod('a', containers=container())
        stub.wait_for(lambda: is_ready(stub, 'a'))
        process, begun = kubelet.process('a'), time.monotonic()
        stub.delete_pod('a', grace=1)
        stub.wait_for(lambda: not stub.pod('a'))
        assert 0.9 < time.monotonic() - begun < 5
        assert process.wait(5) == -signal.SIGKILL


def test_a_killed_process_is_started_again(stub):
    with Kubelet(stub, start=worker(start_new_session=True)) as kubelet:
        stub.create_pod('a', containers=container())
        stub.wait_for(lambda: is_ready(stub, 'a'))
        first, address = kubelet.process('a'), kubelet.address('a')
        revision = stub.store.revision
        kubelet.kill('a', 'OOMKilled')
        stub.wait_for(lambda: status_of(stub, 'a')['restartCount'] == 1 and is_ready(stub, 'a'))
        ended = status_of(stub, 'a')['lastState']['terminated']
        assert (ended['exitCode'], ended['reason']) == (137, 'OOMKilled')
        assert history(stub, revision) == [('Running', False, False), ('Running', True, False)]
        assert kubelet.process('a') is not first and is_alive(kubelet.process('a')) and kubelet.address('a') == address
        os.kill(kubelet.process('a').pid, signal.SIGKILL)
        stub.wait_for(lambda: status_of(stub, 'a')['restartCount'] == 2)
        assert status_of(stub, 'a')['lastState']['terminated']['reason'] == 'Error'


@pytest.mark.parametrize('policy, code, phase', [('Never', 0, 'Succeeded'), ('Never', 3, 'Failed'),
                                                 ('OnFailure', 0, 'Succeeded')])
def test_restart_policies(stub, policy, code, phase):
    start = lambda _pod, _address: subprocess.Popen([sys.executable, '-c',
                                                     f'raise SystemExit({code})'])     # noqa: E731
    with Kubelet(stub, start=start):
        stub.create_pod('a', restartPolicy=policy)
        stub.wait_for(lambda: stub.pod('a')['status']['phase'] == phase)
        assert status_of(stub, 'a')['state']['terminated']['exitCode'] == code


def test_a_process_that_hangs_is_not_ready(stub):
    probe = {**PROBE, 'timeoutSeconds': 1, 'failureThreshold': 1}
    with Kubelet(stub, start=worker()) as kubelet:
        stub.create_pod('a', containers=container(readinessProbe=probe))
        stub.wait_for(lambda: is_ready(stub, 'a'))
        kubelet.process('a').send_signal(signal.SIGSTOP)
        stub.wait_for(lambda: not is_ready(stub, 'a'))
        assert status_of(stub, 'a')['restartCount'] == 0
        kubelet.process('a').send_signal(signal.SIGCONT)
        stub.wait_for(lambda: is_ready(stub, 'a'))


def test_a_failed_liveness_probe_restarts(stub):
    wrong = {'httpGet': {'path': '/nothing', 'port': PORT}, 'periodSeconds': 1, 'failureThreshold': 3}
    with Kubelet(stub, start=worker()):
        stub.create_pod('a', containers=container(livenessProbe=wrong))
        stub.wait_for(lambda: stub.pod('a')['status'].get('containerStatuses')
                      and status_of(stub, 'a')['restartCount'] == 1)


def test_a_start_that_fails(stub):
    def start(_pod, _address):
        raise OSError('no such program')

    with Kubelet(stub, start=start):
        stub.create_pod('a')
        stub.wait_for(lambda: stub.pod('a')['status'].get('containerStatuses'))
        assert status_of(stub, 'a')['state']['waiting']['reason'] == 'CreateContainerError'
        stub.delete_pod('a', grace=30)
        stub.wait_for(lambda: not stub.pod('a'))


def test_a_replaced_pod_has_another_process(stub):
    with Kubelet(stub, start=worker()) as kubelet:
        stub.create_pod('a', containers=container())
        stub.wait_for(lambda: is_ready(stub, 'a'))
        first = kubelet.process('a')
        stub.replace_pod('a')
        assert first.wait(5) == -signal.SIGKILL
        stub.wait_for(lambda: is_ready(stub, 'a'))
        assert kubelet.process('a').pid != first.pid


def test_no_process_is_left(stub):
    kubelet = Kubelet(stub, start=worker('ignore'))
    for name in ('a', 'b'):
        stub.create_pod(name, containers=container())
    stub.wait_for(lambda: is_ready(stub, 'a') and is_ready(stub, 'b'))
    processes = [kubelet.process('a'), kubelet.process('b')]
    kubelet.stop()
    assert [process.wait(5) for process in processes] == [-signal.SIGKILL] * 2
