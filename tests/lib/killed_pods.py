"""Gateways in owned mode before the stand-in API server, whose pods are real workers: pods are killed, evicted and deleted, watches break.

It has what killed_fleet.Fleet has: gateways, workers (one for each pod that there ever was, for their audits), close().
"""

import os
import random
import time
from pathlib import Path

from killed_fleet import PORT, SECRET, FleetWorker, GatewayProcess
from kube_stub import KubeStub
from kubelet import Census, Kubelet

POOL_MIN, POOL_MAX = 2, 4


class PodWorker(FleetWorker):
    """The worker in a pod; its state folder outlives the process and the pod."""

    def __init__(self, name, folder, key_file, address, *settings):
        super().__init__(name, folder, key_file, *settings)
        self.host, self.port = address, PORT

    def rows(self):
        return super().rows() if (self.folder / 'state').exists() else []


class PodFleet:
    def __init__(self, folder, gateways=3, worker_settings=(), gateway_settings=(), gateway_program=None):
        self.folder, self.worker_settings = Path(folder), worker_settings
        self.folder.mkdir(parents=True, exist_ok=True)
        self.key_file = self.folder / 'key'
        self.key_file.write_text(SECRET + '\n', encoding='utf-8')
        self.stub = KubeStub()
        account = self.stub.service_account(self.folder / 'account')
        self.pods, self.cutters = {}, []
        self.kubelet = Kubelet(self.stub, start=self.start_pod, first_address=250 * (1 + os.getpid() % 200))
        self.census = Census(self.stub)
        owned = (f'kubernetes.api_url={self.stub.url}', f'kubernetes.token_file={account}/token', 'kubernetes.mode=owned',
                 'kubernetes.namespace=workers', 'kubernetes.image=caisson:1', 'kubernetes.pod_prefix=w-', f'kubernetes.pool_min={POOL_MIN}',
                 f'kubernetes.pool_max={POOL_MAX}', f'kubernetes.port={PORT}')
        self.gateways = [GatewayProcess(f'gateway{i}', self.folder / f'gateway{i}', self.key_file, [], *owned, *gateway_settings,
                                        program=gateway_program) for i in range(gateways)]

    @property
    def workers(self):
        return list(self.pods.values())

    def start_pod(self, pod, address):
        uid = pod['metadata']['uid']
        if uid not in self.pods:
            self.pods[uid] = PodWorker(f'{pod["metadata"]["name"]} {uid[:8]}', self.folder / uid[:8], self.key_file, address, *self.worker_settings)
        return self.pods[uid].start().process

    def __enter__(self):
        try:
            for gateway in self.gateways:
                gateway.start().ready()
            for gateway in self.gateways:
                gateway.has_ready(POOL_MIN)
        except BaseException:
            self.close()
            raise
        return self

    def close(self):
        ends = {gateway.name: gateway.end() for gateway in self.gateways}
        self.kubelet.stop()
        self.census.end()
        self.stub.stop()
        return ends

    def __exit__(self, kind, *_):
        ends = self.close()
        assert kind or all(status in (0, None) for status in ends.values()), ends
        assert kind or not self.stub.errors, self.stub.errors

    # ---- troubles ----

    deletion_gap, deleted_at = 0, -1e9         # seconds between two pods that go with their stores

    def may_delete(self):
        if time.monotonic() - self.deleted_at < self.deletion_gap:
            return False
        self.deleted_at = time.monotonic()
        return True

    def kill_worker(self):
        """What was done."""
        pods = {pod['metadata']['name']: pod['metadata']['uid'][:8] for pod in self.stub.pods()}
        name, what, grace = random.choice([*pods] or [None]), random.random(), random.choice((0, 1, 30))
        if not name:
            return 'none'
        done = 'killed' if what < 0.6 or not self.may_delete() else 'evicted' if what < 0.7 else f'deleted with grace {grace}'
        try:
            if done == 'killed':
                self.kubelet.kill(name, random.choice(('Error', 'OOMKilled')))
            elif done == 'evicted':
                self.kubelet.evict(name)
            else:
                self.stub.delete_pod(name, grace=grace)
        except Exception as error:         # pylint: disable=broad-except  # it was gone already, or has no process yet
            return f'{name} {pods[name]} not {done}: {error!r}'
        return f'{name} {pods[name]} {done}, of {pods}'

    def break_watches(self):
        """How many broke."""
        what = random.random()
        if what < 0.15:
            self.stub.error_next_watches()
        elif what < 0.25:
            self.stub.expire()
        elif what < 0.35:
            self.stub.throttle()
        return self.stub.error_watches() if what < 0.5 else self.stub.cut_watches(middle=what < 0.75)
