"""Fixtures of the tests of pods: a stand-in API server, and a kubelet that reports pods as ready."""

import pytest

from kube_stub import KubeStub
from kubelet import Kubelet


@pytest.fixture(name='stub')
def a_stub():
    with KubeStub() as stub:
        yield stub
        assert not stub.errors


@pytest.fixture(name='kubelet')
def a_kubelet(stub):
    with Kubelet(stub) as kubelet:
        yield kubelet
