"""A real Kubernetes API server with etcd on loopback, from programs that tests/debian/apiserver has built.

    with KubeServer(programs, folder) as server:     # programs: the folder that `tests/debian/apiserver build` prints
        server.url, server.ca, server.token          # the token is that of a cluster administrator

The server is started twice: its watch cache begins with the second start, so that a watch from revision 1 is too old.
No controller, scheduler or kubelet runs: pods stay Pending, and a namespace that is deleted stays Terminating.
Kubelet of kubelet.py is for the stub alone.
"""

import http.client
import signal
import socket
import ssl
import subprocess
import time
from pathlib import Path

from kube_stub import make_certificate

START_SECONDS = 120
QUIET = '--v=0'


def free_ports(count):
    sockets = [socket.create_server(('127.0.0.1', 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


class KubeServer:
    def __init__(self, programs, folder, token='admin-token'):
        self.programs, self.folder, self.token, self.processes = Path(programs), Path(folder), token, []
        self.folder.mkdir(parents=True, exist_ok=True)
        self.ca, _ = make_certificate(self.folder)
        self.host = '127.0.0.1'
        self.port, client, peer = free_ports(3)
        self.url = f'https://{self.host}:{self.port}'
        try:
            self.start(client, peer)
        except BaseException:
            self.stop()
            raise

    def start(self, client, peer):
        (self.folder / 'tokens.csv').write_text(f'{self.token},admin,admin,"system:masters"\n', encoding='ascii')
        for words in (['genrsa', '-out', 'sa.key', '2048'], ['rsa', '-in', 'sa.key', '-pubout', '-out', 'sa.pub']):
            subprocess.run(['openssl', *words], check=True, cwd=self.folder, capture_output=True)
        client_url, peer_url = f'http://127.0.0.1:{client}', f'http://127.0.0.1:{peer}'
        self.run('etcd', '--data-dir', 'etcd', '--listen-client-urls', client_url, '--advertise-client-urls',
                 client_url, '--listen-peer-urls', peer_url, '--initial-advertise-peer-urls', peer_url,
                 '--initial-cluster', f'default={peer_url}')
        for _ in range(2):
            self.run_server(client_url)

    def run_server(self, client_url):
        if len(self.processes) > 1:
            self.end(self.processes.pop())
        self.run('kube-apiserver', '--etcd-servers', client_url, '--bind-address', self.host, '--advertise-address',
                 self.host, '--secure-port', str(self.port), '--endpoint-reconciler-type', 'none', '--tls-cert-file',
                 'server.crt', '--tls-private-key-file', 'server.key', '--client-ca-file', 'ca.crt',
                 '--token-auth-file', 'tokens.csv', '--authorization-mode', 'RBAC', '--service-account-key-file',
                 'sa.pub', '--service-account-signing-key-file', 'sa.key', '--service-account-issuer',
                 'https://kubernetes.default.svc', '--service-cluster-ip-range', '10.213.64.0/20',
                 '--disable-admission-plugins', 'ServiceAccount', QUIET)
        end = time.monotonic() + START_SECONDS
        while not self.is_ready():
            for process in self.processes:
                assert process.poll() is None, f'{process.args[0]} ended: {self.tail(process)}'
            assert time.monotonic() < end, f'kube-apiserver is not ready after {START_SECONDS} s'
            time.sleep(0.2)

    def run(self, name, *words):
        with open(self.folder / f'{name}.log', 'wb') as log:
            self.processes.append(subprocess.Popen([self.programs / name, *words], cwd=self.folder,
                                                   stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
                                                   env={'PATH': '/usr/bin:/bin'}))

    def tail(self, process):
        return (self.folder / f'{process.args[0].name}.log').read_text(errors='replace')[-500:]

    def connect(self):
        return http.client.HTTPSConnection(self.host, self.port, timeout=20,
                                           context=ssl.create_default_context(cafile=self.ca))

    def is_ready(self):
        try:
            client = self.connect()
            client.request('GET', '/readyz')
            return client.getresponse().status == 200
        except (OSError, http.client.HTTPException):
            return False

    @staticmethod
    def end(process):
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def stop(self):
        while self.processes:
            self.end(self.processes.pop())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()
