"""The stub of a Kubernetes API server agrees with kube-apiserver 1.20.2, as recorded in tests/data/kubernetes.

    /usr/bin/python3 -m pytest -q tests/integration/gateway/test_kube_stub.py

tests/debian/apiserver compares the transcript with a server that it builds.
"""

import http.client
import sys
from pathlib import Path

import pytest
from kube_stub import KubeStub

DATA = Path(__file__).resolve().parents[2] / 'data/kubernetes'
sys.path.insert(0, str(DATA))

from record import Recorder, essence, read     # noqa: E402  (the path is set above)

TRANSCRIPT = read(DATA / 'transcript.jsonl')


@pytest.fixture(name='answers', scope='module')
def answers_of_the_stub():
    """What the stub answers to the recorder, by the name of the exchange."""
    found = []
    with KubeStub(version=(1, 20)) as stub:
        connect = lambda: http.client.HTTPConnection(stub.host, stub.port, timeout=20)     # noqa: E731
        Recorder(connect, stub.token, found.append, settle=0).all()
        assert not stub.errors
    return {exchange['name']: exchange for exchange in found}


@pytest.mark.parametrize('recorded', TRANSCRIPT, ids=[exchange['name'] for exchange in TRANSCRIPT])
def test_the_stub_answers_as_the_server_did(answers, recorded):
    assert essence(answers[recorded['name']]) == essence(recorded)


def test_the_transcript_has_all_exchanges_of_the_recorder(answers):
    assert list(answers) == [recorded['name'] for recorded in TRANSCRIPT]
