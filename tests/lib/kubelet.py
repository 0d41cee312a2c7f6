"""A kubelet for kube_stub.py: it binds new pods and reports them Running and Ready, or runs a process for each.

    kubelet = Kubelet(stub, delay=0.1)                       # no processes: for a thousand pods
    kubelet = Kubelet(stub, start=lambda pod, address: subprocess.Popen(['worker', '--listen', f'{address}:8080']))

start(pod, address) gets the value of the pod and a loopback address that no other pod has (127.0.1.1 and on).  It
returns the process, or (process, address), or None for a pod without a process.  The pod's probes (httpGet, tcpSocket)
decide whether the process is ready; probe_scale shortens their periods.  A deleted pod gets SIGTERM, after the grace
period SIGKILL, and is removed once the process has ended.  A process that ends is started again by the pod's
restartPolicy, with restartCount and lastState.

    kubelet.kill(name, 'OOMKilled')     SIGKILL; the reason of lastState.  Without a process only the status changes
    kubelet.evict(name)                 phase Failed, reason Evicted
    kubelet.ready(name, False)          of a pod without a process
    kubelet.waiting = ('ImagePullBackOff', 'text')     new containers wait with this reason
    kubelet.unschedulable = 'text'      new pods are bound to no node
    kubelet.retry()                     after `waiting` or `unschedulable` were set to None
    kubelet.lose_node(node)             its pods are reported not ready, and nothing follows their deletion
    kubelet.process(name), kubelet.address(name), kubelet.stop()
"""

import heapq
import http.client
import itertools
import os
import select
import signal
import socket
import threading
import time

from kube_store import PODS, Refused, merged_lists, now


class Container:
    """The only container of a pod: its process and what its status tells."""

    def __init__(self, pod, address):
        self.pod, self.address, self.process = pod, address, None
        self.restarts, self.reason, self.last, self.started = 0, None, {}, now()
        self.is_ready, self.grace, self.grace_seen = False, None, None
        self.is_lost, self.is_removed, self.is_over, self.leads_group = False, False, False, False
        self.wake = None         # an eventfd, while a thread follows the process

    def prod(self):
        """Wake the thread of the process."""
        if self.wake is not None:
            os.eventfd_write(self.wake, 1)

    def runs(self, process):
        self.process = process
        try:
            self.leads_group = os.getpgid(process.pid) == process.pid
        except ProcessLookupError:
            self.leads_group = False

    def end(self):
        """SIGKILL for the process, and for its group if the process leads one."""
        try:
            if self.leads_group:
                os.killpg(self.process.pid, signal.SIGKILL)
            elif self.process:
                self.process.kill()
        except ProcessLookupError:
            pass


class Kubelet:
    def __init__(self, stub, start=None, delay=0.0, end_delay=0.0, nodes=('node-0',), probe_scale=0.1,
                 restart_delay=0.1, first_address=1):
        self.stub, self.store, self.start = stub, stub.store, start
        self.delay, self.end_delay, self.nodes, self.probe_scale, self.restart_delay = delay, end_delay, list(
            nodes), probe_scale, restart_delay
        self.numbers, self.order = itertools.count(first_address), itertools.count()
        self.containers, self.timers, self.threads = {}, [], []          # containers by uid
        self.waiting = self.unschedulable = None
        self.lost, self.stopped = set(), False
        self.errors = []          # exceptions of this kubelet: there must be none
        with self.store.changed:
            self.revision = self.store.revision
            for stored in self.store.all(PODS):
                self.see(stored)
        self.thread = threading.Thread(target=self.follow, daemon=True)
        self.thread.start()

    # ---- what tests ask ----

    def container(self, name, namespace=None):
        stored = self.store.find(PODS, namespace or self.stub.namespaces[0], name)
        return self.containers[stored.uid]

    def process(self, name, namespace=None):
        return self.container(name, namespace).process

    def address(self, name, namespace=None):
        return self.container(name, namespace).address

    def kill(self, name, reason='Error', namespace=None, code=137):
        container = self.container(name, namespace)
        container.reason = reason
        if container.process:
            os.kill(container.process.pid, signal.SIGKILL)
            return
        with self.store.changed:
            self.ended(container, code)
            container.restarts += 1
            self.report(container, False)
            self.later(self.restart_delay, self.report, container, True)

    def ready(self, name, is_ready, namespace=None):
        self.report(self.container(name, namespace), is_ready)

    def evict(self, name, message='The node was low on resource: memory.', namespace=None):
        container = self.container(name, namespace)
        container.is_over = True
        with self.store.changed:
            container.prod()
        container.end()
        self.report(container, False, 'Failed', {'terminated': {'exitCode': 137, 'reason': 'Error',
                                                                'finishedAt': now()}}, reason='Evicted',
                    message=message)

    def lose_node(self, node):
        self.lost.add(node)
        with self.store.changed:
            for stored in self.store.all(PODS):
                container = self.containers.get(stored.uid)
                if container and stored.value['spec'].get('nodeName') == node:
                    container.is_lost = True
                    conditions = [{'type': 'Ready', 'status': 'False', 'lastProbeTime': None,
                                   'lastTransitionTime': now()}]
                    self.store.modify(stored, conditions=merged_lists(stored.value['status'].get('conditions') or [],
                                                                      conditions, 'type'), reason='NodeLost',
                                      message=f'Node {node} which was running pod {stored.name} is unresponsive')

    def retry(self):
        """Look at all pods again, after `waiting` or `unschedulable` were changed."""
        with self.store.changed:
            for stored in self.store.all(PODS):
                container = self.containers.get(stored.uid)
                if container is None or container.reason == 'waiting':
                    self.containers.pop(stored.uid, None)
                    self.see(stored)

    def stop(self):
        """End all processes."""
        self.stopped = True
        with self.store.changed:
            self.store.changed.notify_all()
        self.thread.join()
        for container in list(self.containers.values()):
            container.is_over = True
            with self.store.changed:
                container.prod()
            container.end()
        for thread in self.threads:
            thread.join()
        assert not self.errors, self.errors

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    # ---- the loop ----

    def later(self, seconds, action, *words):
        heapq.heappush(self.timers, (time.monotonic() + seconds, next(self.order), action, words))
        self.store.changed.notify_all()

    def follow(self):
        with self.store.changed:
            while not self.stopped:
                if self.revision < self.store.oldest:
                    self.revision = self.store.revision
                    for stored in self.store.all(PODS):
                        self.see(stored)
                while self.revision < self.store.revision:
                    self.revision += 1
                    change = self.store.changes.get(self.revision)
                    if change and (change.new or change.old).kind is PODS:
                        self.see(change.new) if change.new else self.forget(change.old)
                while self.timers and self.timers[0][0] <= time.monotonic():
                    _, _, action, words = heapq.heappop(self.timers)
                    action(*words)
                if self.revision >= self.store.revision:
                    self.store.changed.wait(max(0, self.timers[0][0] - time.monotonic()) if self.timers else None)

    def see(self, stored):
        """A state of a pod, new or not.  The caller has the lock."""
        metadata, node = stored.value['metadata'], stored.value['spec'].get('nodeName')
        container = self.containers.get(stored.uid)
        if container is None:
            if not metadata.get('deletionTimestamp') and stored.value['status'].get('phase') == 'Pending':
                self.take(stored, node)
            return
        grace = metadata.get('deletionGracePeriodSeconds')
        if grace is not None and node not in self.lost and grace != container.grace:
            is_first, container.grace = container.grace is None, grace
            container.prod()
            if is_first and container.process is None:
                self.later(self.end_delay, self.remove, container)

    def take(self, stored, node):
        """A new pod: bind it and begin its container."""
        if not node:
            if self.unschedulable:
                condition = {'type': 'PodScheduled', 'status': 'False', 'reason': 'Unschedulable',
                             'message': self.unschedulable, 'lastTransitionTime': now()}
                self.store.modify(stored, conditions=[condition])
                return
            node = self.nodes[len(self.containers) % len(self.nodes)]
            try:
                stored = self.store.bind(stored, node)
            except Refused:
                return           # a later state of the pod follows
        elif node not in self.nodes:
            return
        if not stored:
            return
        number = next(self.numbers) - 1
        container = self.containers[stored.uid] = Container(stored, f'127.0.{1 + number // 254}.{1 + number % 254}')
        if self.waiting:
            container.reason = 'waiting'
            self.report(container, False, 'Pending', {'waiting': {'reason': self.waiting[0],
                                                                  'message': self.waiting[1]}})
        elif self.start:
            container.wake = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
            thread = threading.Thread(target=self.live, args=(container,), daemon=True)
            self.threads.append(thread)
            thread.start()
        else:
            self.later(self.delay, self.report, container, True)

    def forget(self, stored):
        container = self.containers.pop(stored.uid, None)
        if container:
            container.is_removed = container.is_over = True
            container.prod()

    def remove(self, container):
        try:
            self.store.delete(PODS, container.pod.namespace, container.pod.name, uid=container.pod.uid, grace=0)
        except Refused:
            pass         # another client was first

    def ended(self, container, code):
        reason = container.reason if container.reason not in (None,
                                                              'waiting') else 'Completed' if code == 0 else 'Error'
        container.last = {'terminated': {'exitCode': code, 'reason': reason, 'startedAt': container.started,
                                         'finishedAt': now(), 'containerID': 'stub://0'}}
        container.reason, container.started = None, now()
        return container.last

    def report(self, container, is_ready, phase='Running', state=None, **more):
        """Write the status of a pod, unless it is on a node that is lost."""
        if container.is_lost or container.is_removed:
            return
        container.is_ready = is_ready
        ready = 'True' if is_ready else 'False'
        spec = container.pod.value['spec']['containers'][0]
        with self.store.changed:
            stored = self.store.objects[PODS].get(container.pod.key)
            if not stored or stored.uid != container.pod.uid:
                return
            status = stored.value['status']
            before = {one['type']: one for one in status.get('conditions') or []}
            conditions = [before[kind] if before.get(kind, {}).get('status') == wanted
                          else {'type': kind, 'status': wanted, 'lastProbeTime': None, 'lastTransitionTime': now()}
                          for kind, wanted in (('Initialized', 'True'), ('Ready', ready), ('ContainersReady', ready),
                                               ('PodScheduled', 'True'))]
            self.store.modify(stored, phase=phase, conditions=conditions, hostIP='127.0.0.1', podIP=container.address,
                              podIPs=[{'ip': container.address}], startTime=status.get('startTime') or now(),
                              containerStatuses=[{'name': spec['name'], 'image': spec['image'], 'imageID': '',
                                                  'ready': is_ready, 'started': phase == 'Running',
                                                  'restartCount': container.restarts, 'lastState': container.last,
                                                  'state': state or {'running': {'startedAt': container.started}}}],
                              **more)

    # ---- processes ----

    def live(self, container):
        """The thread of one pod."""
        try:
            self.serve(container)
        except (OSError, Refused, KeyError, TypeError, AttributeError, ValueError) as error:
            self.errors.append((container.pod.name, error))
        finally:
            with self.store.changed:         # prod() is called with the lock
                os.close(container.wake)
                container.wake = None

    def serve(self, container):
        """Start, probe and restart the process of a pod, and end it."""
        policy = container.pod.value['spec'].get('restartPolicy', 'Always')
        if self.delay:
            time.sleep(self.delay)
        while not container.is_over:
            try:
                found = self.start(container.pod.value, container.address)
            except Exception as error:       # pylint: disable=broad-except  # a failed start is a state of a pod
                self.report(container, False, 'Pending', {'waiting': {'reason': 'CreateContainerError',
                                                                      'message': repr(error)}})
                return
            if isinstance(found, tuple):
                found, container.address = found
            if found is not None:
                container.runs(found)
            else:
                self.report(container, True)
                return
            self.report(container, not has_probe(container.pod))
            code = self.attend(container)
            if self.stopped or container.is_removed or container.pod.uid not in self.containers:
                return
            terminated = self.ended(container, code)
            if container.is_over:
                return
            if container.grace is not None or policy == 'Never' or (policy == 'OnFailure' and code == 0):
                self.report(container, False, 'Failed' if code else 'Succeeded', terminated)
                if container.grace is not None:
                    self.remove(container)
                    return
                container.process = None
                return
            container.restarts += 1
            self.report(container, False, 'Running', terminated)
            self.sleep(container, min(10, self.restart_delay * (2 ** (container.restarts - 1) - 1)))
            if container.grace is not None:
                self.remove(container)
                return

    @staticmethod
    def sleep(container, seconds):
        """A restart waits; deletion ends the wait."""
        end = time.monotonic() + seconds
        while container.grace is None and not container.is_over and time.monotonic() < end:
            poll = select.poll()
            poll.register(container.wake, select.POLLIN)
            poll.poll(max(0, end - time.monotonic()) * 1000)
            drain(container.wake)

    def attend(self, container):
        """Probe a process until it ends; send the signals of a deletion.  Returns the exit code of the container."""
        process = container.process
        probes = [Probe(container, name, self.probe_scale) for name in ('startupProbe', 'readinessProbe',
            'livenessProbe')]
        startup, readiness, liveness = probes
        descriptor = os.pidfd_open(process.pid)
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        poll.register(container.wake, select.POLLIN)
        kill_at, is_ending = None, False
        try:
            while process.poll() is None:
                if container.is_over:
                    container.end()
                    break
                if container.grace is not None and (not is_ending or container.grace_seen != container.grace):
                    if not is_ending:
                        process.send_signal(signal.SIGTERM)
                    is_ending, container.grace_seen = True, container.grace
                    kill_at = time.monotonic() + container.grace
                if kill_at is not None and time.monotonic() >= kill_at:
                    container.end()
                    break
                startup.ask()
                if startup.passed:
                    readiness.ask()
                    if readiness.passed != container.is_ready and process.poll() is None:
                        self.report(container, readiness.passed)
                    if kill_at is None and not liveness.ask():
                        process.send_signal(signal.SIGTERM)
                        kill_at = time.monotonic() + container.pod.value['spec'].get('terminationGracePeriodSeconds',
                            30)
                elif startup.failed and kill_at is None:
                    kill_at = time.monotonic()
                times = [probe.next for probe in probes if probe.spec and (startup.passed or probe is startup)]
                left = [one - time.monotonic() for one in [*times, *([kill_at] if kill_at is not None else [])]]
                poll.poll(max(0, min(left)) * 1000 if left else None)
                drain(container.wake)
        finally:
            os.close(descriptor)
        code = process.wait()
        container.end()
        return code if code >= 0 else 128 - code


def has_probe(pod):
    container = pod.value['spec']['containers'][0]
    return bool(container.get('readinessProbe') or container.get('startupProbe'))


class Probe:
    """A probe of a pod; ask() tries it when its time has come.  Without a specification it has passed."""

    def __init__(self, container, name, scale):
        self.container = container
        self.spec = container.pod.value['spec']['containers'][0].get(name)
        self.passed = not self.spec or name == 'livenessProbe'
        self.failed, self.failures, self.next = False, 0, 0
        if self.spec:
            self.period = self.spec['periodSeconds'] * scale
            self.is_startup = name == 'startupProbe'
            self.next = time.monotonic() + self.spec.get('initialDelaySeconds', 0) * scale

    def ask(self):
        """Whether the limit of failures is not reached."""
        if not self.spec or time.monotonic() < self.next or (self.is_startup and self.passed):
            return not self.failed
        if self.answers():
            self.passed, self.failed, self.failures = True, False, 0
        else:
            self.failures += 1
            if self.failures >= self.spec['failureThreshold']:
                self.passed, self.failed = False, True
        # A container that is not ready yet is asked more often, so that tests need not wait for a period.
        self.next = time.monotonic() + (self.period if self.passed else min(self.period, 0.02))
        return not self.failed

    def answers(self):
        get = self.spec.get('httpGet') or self.spec.get('tcpSocket')
        if not get:
            return True
        port = get['port']
        if isinstance(port, str):
            port = next(one['containerPort'] for one in self.container.pod.value['spec']['containers'][0]['ports']
                        if one.get('name') == port)
        seconds = self.spec['timeoutSeconds']
        try:
            if 'tcpSocket' in self.spec:
                socket.create_connection((self.container.address, port), seconds).close()
                return True
            client = http.client.HTTPConnection(self.container.address, port, timeout=seconds)
            try:
                client.request('GET', get.get('path', '/'), headers={'User-Agent': 'kube-probe/stub'})
                return 200 <= client.getresponse().status < 400
            finally:
                client.close()
        except (OSError, http.client.HTTPException):
            return False


def drain(descriptor):
    try:
        os.eventfd_read(descriptor)
    except BlockingIOError:
        pass


class Census(threading.Thread):
    """The most pods that there ever were, in every phase, from the changes of the stub's store."""

    def __init__(self, stub):
        super().__init__(daemon=True)
        self.stub, self.most, self.names, self.over = stub, 0, set(), False
        self.start()

    def run(self):
        with self.stub.store.changed:
            while not self.over:
                pods = [pod['metadata']['name'] for pod in self.stub.pods()]
                self.most, self.names = max(self.most, len(pods)), self.names | set(pods)
                self.stub.store.changed.wait(0.5)

    def end(self):
        self.over = True
        with self.stub.store.changed:
            self.stub.store.changed.notify_all()
        self.join()
