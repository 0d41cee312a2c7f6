"""kubectl works with the stub of a Kubernetes API server (tests/lib/kube_stub.py), as with a real one.

    /usr/bin/python3 -m pytest -q tests/integration/gateway/test_kubectl.py

Debian 12 has kubectl 1.20.2 (kubernetes-client).  CAISSON_KUBECTL names another program.
"""

import json
import os
import shutil
import subprocess
import time

import pytest
from kube_stub import KubeStub
from kubelet import Kubelet

KUBECTL = os.environ.get('CAISSON_KUBECTL') or shutil.which('kubectl')
END_SECONDS = 0.4       # from the deletion of a pod to its end

pytestmark = pytest.mark.skipif(not KUBECTL, reason='needs kubectl: Debian package kubernetes-client')


class Kubectl:
    def __init__(self, stub, folder):
        self.stub = stub
        self.environment = {'PATH': os.environ['PATH'], 'HOME': str(folder), 'LC_ALL': 'C.UTF-8',
                            'KUBECONFIG': str(stub.kubeconfig(folder / 'config'))}

    def start(self, *words, **more):
        return subprocess.Popen([KUBECTL, *words], env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                text=True, **more)

    def run(self, *words, text=None):
        """(exit status, output, errors)"""
        process = self.start(*words, stdin=subprocess.PIPE)
        output, errors = process.communicate(text, 60)
        return process.returncode, output, errors

    def good(self, *words, text=None):
        status, output, errors = self.run(*words, text=text)
        assert status == 0, errors
        return output

    def create(self, name, **labels):
        # The stub has no OpenAPI document, by which kubectl would check the manifest itself.
        return self.run('create', '--validate=false', '-f', '-', text=json.dumps({
            'apiVersion': 'v1', 'kind': 'Pod', 'metadata': {'name': name, 'labels': labels},
            'spec': {'containers': [{'name': 'worker', 'image': 'worker'}]}}))


@pytest.fixture(name='kubectl')
def kubectl_of_a_stub(tmp_path):
    with KubeStub(tls=tmp_path / 'tls') as stub, Kubelet(stub, end_delay=END_SECONDS):
        yield Kubectl(stub, tmp_path)
        assert not stub.errors


def test_get_with_a_label(kubectl):
    kubectl.stub.create_pod('a', {'app': 'w', 'pool': 'py'})
    kubectl.stub.create_pod('b', {'app': 'w', 'pool': 'js'})
    kubectl.stub.create_pod('c', {'app': 'other'})
    assert kubectl.good('get', 'pods', '-o', 'name').split() == ['pod/a', 'pod/b', 'pod/c']
    assert kubectl.good('get', 'pods', '-l', 'app=w,pool!=js', '-o', 'name').split() == ['pod/a']
    assert kubectl.good('get', 'pods', '-l', 'pool in (py, js)', '-o', 'name').split() == ['pod/a', 'pod/b']
    assert kubectl.good('get', 'pods', '--field-selector', 'metadata.name=c', '-o', 'name').split() == ['pod/c']
    assert kubectl.good('get', 'pods', '--chunk-size=1', '-o', 'name').split() == ['pod/a', 'pod/b', 'pod/c']
    kubectl.stub.wait_for(lambda: kubectl.stub.pod('a')['status']['phase'] == 'Running')
    assert kubectl.good('get', 'pod', 'a', '-o', 'jsonpath={.status.podIP}') == kubectl.stub.pod('a')['status']['podIP']
    status, _, errors = kubectl.run('get', 'pod', 'nothing')
    assert status == 1 and 'Error from server (NotFound): pods "nothing" not found' in errors


def test_get_with_a_watch(kubectl):
    stub = kubectl.stub
    stub.create_pod('a', {'app': 'w'})
    stub.wait_for(lambda: stub.pod('a')['status']['phase'] == 'Running')
    process = kubectl.start('get', 'pods', '-l', 'app=w', '-w', '--output-watch-events', '-o',
                            r'jsonpath={.type} {.object.metadata.name} {.object.status.phase}{"\n"}')
    try:
        assert process.stdout.readline() == 'ADDED a Running\n'
        stub.wait_for(lambda: stub.watches, notified=False)
        stub.create_pod('other', {'app': 'other'})
        stub.create_pod('b', {'app': 'w'})
        lines = [process.stdout.readline() for _ in range(3)]
        assert lines == ['ADDED b Pending\n', 'MODIFIED b Pending\n', 'MODIFIED b Running\n']
        stub.edit_pod('a', lambda pod: pod['metadata']['labels'].update(app='other'))
        assert process.stdout.readline() == 'DELETED a Running\n'
        stub.delete_pod('b', grace=0)
        assert [process.stdout.readline() for _ in range(2)] == ['MODIFIED b Running\n', 'DELETED b Running\n']
    finally:
        process.kill()
        process.communicate()


def test_create_and_refusals(kubectl):
    assert kubectl.create('a', app='w')[0] == 0
    assert kubectl.stub.pod('a')['metadata']['labels'] == {'app': 'w'}
    status, _, errors = kubectl.create('a')
    assert status == 1 and 'Error from server (AlreadyExists)' in errors
    status, _, errors = kubectl.create('Bad_Name')
    assert status == 1 and 'is invalid: metadata.name: Invalid value: "Bad_Name"' in errors
    kubectl.stub.quota(pods=1)
    status, _, errors = kubectl.create('b')
    assert status == 1 and 'exceeded quota: pods, requested: pods=1, used: pods=1, limited: pods=1' in errors
    kubectl.stub.forbid('create', 'pods')
    status, _, errors = kubectl.create('c')
    assert status == 1 and 'cannot create resource "pods" in API group "" in the namespace "workers"' in errors


def test_delete_waits_for_the_end(kubectl):
    stub = kubectl.stub
    stub.create_pod('a')
    stub.wait_for(lambda: stub.pod('a')['status']['phase'] == 'Running')
    before = time.monotonic()
    assert 'pod "a" deleted' in kubectl.good('delete', 'pod', 'a', '--wait')
    assert time.monotonic() - before >= END_SECONDS
    assert stub.pod('a') is None
    assert stub.count(verb='delete', name='a') == 1 and stub.count(verb='watch') >= 1


def test_patches(kubectl):
    stub = kubectl.stub
    stub.create_pod('a', {'app': 'w', 'old': 'x'})
    kubectl.good('patch', 'pod', 'a', '--type=merge', '-p',
                 '{"metadata": {"annotations": {"cordon": "yes"}, "labels": {"old": null}}}')
    assert stub.pod('a')['metadata']['annotations'] == {'cordon': 'yes'}
    assert stub.pod('a')['metadata']['labels'] == {'app': 'w'}
    kubectl.good('patch', 'pod', 'a', '--type=json', '-p',
                 '[{"op": "add", "path": "/metadata/labels/new", "value": "1"}]')
    assert stub.pod('a')['metadata']['labels'] == {'app': 'w', 'new': '1'}
    kubectl.good('patch', 'pod', 'a', '-p', '{"spec": {"containers": [{"name": "worker", "image": "other"}]}}')
    assert [(one['name'], one['image']) for one in stub.pod('a')['spec']['containers']] == [('worker', 'other')]
    status, _, errors = kubectl.run('patch', 'pod', 'a', '--type=merge', '-p', '{"spec": {"restartPolicy": "Never"}}')
    assert status == 1 and 'pod updates may not change fields other than' in errors


def test_patch_of_the_status(kubectl):
    stub = kubectl.stub
    stub.create_pod('a')
    status, _, errors = kubectl.run('patch', 'pod', 'a', '--subresource=status', '--type=merge', '-p',
                                    '{"status": {"reason": "Test"}, "spec": {"nodeName": "other"}}')
    if 'unknown flag' in errors:
        pytest.skip('needs kubectl 1.24: --subresource')
    assert status == 0, errors
    assert stub.pod('a')['status']['reason'] == 'Test' and stub.pod('a')['spec']['nodeName'] == 'node-0'
