"""Gateways and their workers as local processes that can be killed, stopped and started again at the same address.

    with Fleet(folder, workers=2, gateways=1) as fleet:
        fleet.gateways[0].ask('POST', '/v1/runs', {...})
        fleet.workers[0].kill()
        fleet.workers[0].start()

Each fleet has loopback addresses of its own, so a port is still free when a process comes back.
"""

import http.client
import itertools
import json
import os
import signal
import socket
import struct
import subprocess
import threading
import time
from pathlib import Path

from cli import CAISSON, environment
from daemon import until

SECRET = 'a-secret-of-this-fleet-0123456789abcdef'
FOLDER = Path(CAISSON).parent
PORT = 8080
numbers = itertools.count(1)


def new_address():
    """A loopback address that no other fleet of this host has, as long as its process lives."""
    number = next(numbers)
    return f'127.{64 + os.getpid() // 65536 % 64}.{os.getpid() // 256 % 256}.{os.getpid() % 256}', PORT + number


class Connection(http.client.HTTPConnection):
    """Without a delay of small packets, and under the name that is answered without a key."""

    def putheader(self, header, *values):
        super().putheader(header, *(('localhost',) if header == 'Host' else values))

    def connect(self):
        super().connect()
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


class Process:
    """A program that serves HTTP at one address."""

    program, settings = None, ()

    def __init__(self, name, folder, *settings, program=None):
        self.name, self.folder, self.more = name, folder, settings
        self.program = program or self.program
        self.host, self.port = new_address()
        self.process, self.stopped, self.starts = None, False, 0
        folder.mkdir(parents=True, exist_ok=True)

    @property
    def url(self):
        return f'http://{self.host}:{self.port}'

    @property
    def log(self):
        return (self.folder / 'log').read_text(encoding='utf-8', errors='replace')

    def words(self):
        raise NotImplementedError

    def start(self):
        settings = [word for one in (*self.words(), *self.more) for word in ('--set', one)]
        with open(self.folder / 'log', 'ab') as log:
            self.process = subprocess.Popen([self.program, *settings], env=environment(), stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.starts += 1
        self.stopped = False
        return self

    def accepts(self):
        assert self.process.poll() is None, f'{self.name} ended with {self.process.returncode}:\n{self.log[-3000:]}'
        try:
            socket.create_connection((self.host, self.port), 5).close()
        except OSError:
            return False
        return True

    def ready(self):
        until(self.accepts)
        return self

    def kill(self):
        self.process.kill()
        return self.process.wait()

    def stop(self):
        """SIGSTOP: it accepts connections, and answers nothing."""
        self.stopped = True
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self):
        self.stopped = False
        self.process.send_signal(signal.SIGCONT)

    def end(self):
        """Its exit status after SIGTERM."""
        if self.process is None or self.process.returncode is not None:
            return None
        if self.stopped:
            self.go_on()
        if self.process.poll() is None:
            self.process.terminate()
        try:
            return self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.kill()
            raise

    def cpu_seconds(self):
        """CPU time of all threads, in steps of nanoseconds."""
        return time.clock_gettime(~self.process.pid << 3 | 2)

    def open(self, timeout=60):
        return Connection(self.host, self.port, timeout=timeout)

    def ask(self, method, path, body=None, headers=None, timeout=60):
        """(status, headers, JSON or bytes)."""
        connection = self.open(timeout)
        try:
            data = body if isinstance(body, (bytes, type(None))) else json.dumps(body).encode()
            kind = {} if data is None else {'Content-Type': 'application/json'}
            connection.request(method, path, data, {**kind, **(headers or {})})
            answer = connection.getresponse()
            content = answer.read()
        finally:
            connection.close()
        is_json = (answer.headers['Content-Type'] or '').split(';')[0] in ('application/json', 'application/problem+json')
        return answer.status, answer.headers, json.loads(content) if is_json and content else content


class FleetWorker(Process):
    program = str(FOLDER / 'caissond')

    def __init__(self, name, folder, key_file, *settings):
        super().__init__(name, folder, *settings)
        self.key_file = key_file

    def words(self):
        return (f'engine.http={self.host}:{self.port}', f'engine.state_dir={self.folder}/state', f'engine.socket={self.folder}/sock',
                'engine.http_keyless=true', f'gateway.key_file={self.key_file}')

    def rows(self):
        """The audit of this worker: one row for each run that began.  Also of a worker that does not run."""
        rows, before = [], []
        while True:
            done = subprocess.run([CAISSON, 'runs', '--json', '--limit', '1000', *before, '--set', f'engine.state_dir={self.folder}/state'],
                                  env=environment(), capture_output=True, check=True)
            page = json.loads(done.stdout)
            page = page['runs'] if isinstance(page, dict) else page
            rows += page
            if len(page) < 1000:
                return rows
            before = ['--before', page[-1]['id']]


class GatewayProcess(Process):
    program = str(FOLDER / 'caisson-gateway')

    def __init__(self, name, folder, key_file, workers, *settings, program=None):
        super().__init__(name, folder, *settings, program=program)
        self.key_file, self.urls = key_file, workers

    def words(self):
        urls = [f'gateway.workers={",".join(self.urls)}'] if self.urls else []
        return (*urls, f'gateway.key_file={self.key_file}', f'gateway.listen={self.host}:{self.port}')

    def states(self):
        """The state of each worker by its name, as the gateway sees it."""
        status, _, listed = self.ask('GET', '/v1/workers')
        assert status == 200, listed
        return {one['name']: one['state'] for one in listed['workers']}

    def has_ready(self, n):
        return until(lambda: sum(state == 'ready' for state in self.states().values()) >= n)


class Fleet:
    def __init__(self, folder, workers=2, gateways=1, worker_settings=(), gateway_settings=(), gateway_program=None, cutters=0):
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.key_file = self.folder / 'key'
        self.key_file.write_text(SECRET + '\n', encoding='utf-8')
        self.workers = [FleetWorker(f'worker{i}', self.folder / f'worker{i}', self.key_file, *worker_settings) for i in range(workers)]
        self.cutters = [Cutter(worker) for worker in self.workers[:cutters]]
        urls = [one.url for one in (*self.cutters, *self.workers[cutters:])]
        self.gateways = [GatewayProcess(f'gateway{i}', self.folder / f'gateway{i}', self.key_file, urls,
                                        *gateway_settings, program=gateway_program) for i in range(gateways)]

    def __enter__(self):
        try:
            for process in (*self.workers, *self.gateways):
                process.start()
            for process in (*self.workers, *self.gateways):
                process.ready()
            for gateway in self.gateways:
                gateway.has_ready(len(self.workers))
        except BaseException:
            self.close()
            raise
        return self

    def close(self):
        ends = {process.name: process.end() for process in (*self.gateways, *self.workers)}
        for cutter in self.cutters:
            cutter.close()
        return ends

    def __exit__(self, kind, *_):
        ends = self.close()
        assert kind or all(status in (0, None) for status in ends.values()), ends


class Cutter:
    """A relay before a worker that can break all its connections at once, by reset."""

    def __init__(self, target):
        self.host, self.port = new_address()
        self.target, self.pairs, self.lock = target, [], threading.Lock()
        self.listener = socket.create_server((self.host, self.port), backlog=256)
        threading.Thread(target=self.accept, daemon=True).start()

    @property
    def url(self):
        return f'http://{self.host}:{self.port}'

    def accept(self):
        while True:
            try:
                client = self.listener.accept()[0]
            except OSError:
                return
            try:
                worker = socket.create_connection((self.target.host, self.target.port), 60)
            except OSError:
                reset(client)
                continue
            worker.settimeout(None)
            with self.lock:
                self.pairs = [pair for pair in self.pairs if pair[0].fileno() >= 0] + [(client, worker)]
            for pair in ((client, worker), (worker, client)):
                threading.Thread(target=self.pass_on, args=pair, daemon=True).start()

    @staticmethod
    def pass_on(source, sink):
        try:
            while data := source.recv(65536):
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            reset(source)
            reset(sink)

    def cut(self):
        with self.lock:
            pairs, self.pairs = self.pairs, []
        for pair in pairs:
            for one in pair:
                reset(one)
        return len(pairs)

    def close(self):
        self.listener.close()
        self.cut()


def reset(one):
    """Close with RST, so that the other side sees an error and no end.  A thread that waits for bytes is woken."""
    try:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
        one.shutdown(socket.SHUT_RD)
    except OSError:
        pass
    one.close()
