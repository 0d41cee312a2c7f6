"""A stub of the Docker API: containers are processes of this host with namespaces of their own.

It answers what src/backend/docker asks, as Docker 20.10 does, and on demand as an engine that is old, slow, broken or lying:

    api='1.41'           version of the header Api-Version
    attach=101           status of attach: 101, or 200 as an engine without the upgrade
    split=0              frames of the streams are sent in pieces of so many bytes
    fail={'create': (500, 'text')}   statuses of calls: ping, list, create, attach, start, inspect, remove
    delay={'start': 2}   seconds before the answer to a call
    hang={'create'}      calls that have no answer
    refuses_uid=False    options of tmpfs are refused as podman 4.3 refuses them
    program=None         the command of process 1 instead of the guest; tests/lib is /opt/lib inside
    facts={}             members of HostConfig and State in the answer to inspect
"""

import http.server
import json
import os
import socketserver
import struct
import subprocess
import threading
import time
import urllib.parse
from pathlib import Path

RUNNERS = Path(os.environ['CAISSON_BUILD']).resolve() / 'lang'
LIB = Path(__file__).resolve().parent
# Folders of this source may be below those that are covered, so they are held open.
MOUNTS = '''
exec 8<"$RUNNERS" 9<"$LIB" && mount --make-rprivate / && mount -t tmpfs -o size=1m none /home && mkdir /home/user &&
mount -t tmpfs -o "$TMPFS" none /home/user && mount -t tmpfs none /opt && mkdir /opt/caisson /opt/lib &&
mount --no-canonicalize --bind /proc/self/fd/8 /opt/caisson && mount --no-canonicalize --bind /proc/self/fd/9 /opt/lib && exec 8<&- 9<&- && mount -t tmpfs none /dev/shm && mount -t tmpfs none /tmp && chmod 1777 /dev/shm /tmp && ip link set lo up && cd / &&
exec setpriv --reuid "$GUEST_UID" --regid "$GUEST_GID" --clear-groups --inh-caps=-all --bounding-set=-all --no-new-privs "$@"
'''


class Container:
    def __init__(self, name, body):
        self.name, self.body, self.id = name, body, os.urandom(32).hex()
        self.process = None
        self.streams = None          # the connection that is attached
        self.killed_for_memory = False

    def start(self, stub):
        uid, gid = self.body['User'].split(':')
        tmpfs = self.body['HostConfig']['Tmpfs']['/home/user']
        options = [option for option in tmpfs.split(',') if option not in ('rw', 'exec')]
        command = stub.program or [*self.body['Entrypoint'], *self.body['Cmd']]
        self.process = subprocess.Popen(
            ['unshare', '--mount', '--pid', '--net', '--ipc', '--uts', '--fork', '--mount-proc', '--kill-child', 'sh', '-c', MOUNTS, 'sh', *command],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0,
            env={'PATH': os.environ['PATH'], 'RUNNERS': str(RUNNERS), 'LIB': str(LIB), 'TMPFS': ','.join(options), 'GUEST_UID': uid, 'GUEST_GID': gid})
        errors = threading.Thread(target=self.pump, args=(stub, 2, self.process.stderr), daemon=True)
        errors.start()
        threading.Thread(target=self.pump, args=(stub, 1, self.process.stdout, errors), daemon=True).start()
        threading.Thread(target=self.feed, daemon=True).start()

    def pump(self, stub, number, pipe, errors=None):
        while part := pipe.read(65536):
            frame = struct.pack('>BxxxI', number, len(part)) + part
            piece = stub.split or len(frame)
            try:
                for at in range(0, len(frame), piece):
                    self.streams.sendall(frame[at:at + piece])
            except OSError:
                return
        if errors:
            errors.join()
            self.process.wait()
            self.hang_up()

    def feed(self):
        try:
            while part := self.streams.recv(65536):
                self.process.stdin.write(part)
        except OSError:
            pass
        try:
            self.process.stdin.close()       # StdinOnce
        except OSError:
            pass

    def hang_up(self):
        try:
            self.streams.shutdown(2)
        except OSError:
            pass

    def remove(self):
        if self.process:
            self.process.kill()
            self.process.wait()
        if self.streams:
            self.hang_up()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'

    def log_message(self, *_):
        pass

    def address_string(self):
        return 'unix'

    def answer(self, status, value=None, headers=()):
        body = b'' if value is None else json.dumps(value).encode()
        self.send_response(status)
        for name, text in headers:
            self.send_header(name, text)
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def trouble(self, call):
        """Whether this call has been answered as an engine with faults would."""
        stub = self.server.stub
        stub.calls.append((call, self.path))
        time.sleep(stub.delay.get(call, 0))
        if call in stub.hang:
            stub.stopped.wait()
            return True
        if call in stub.fail:
            status, text = stub.fail[call]
            self.answer(status, {'message': text})
            return True
        return False

    def container(self):
        name = urllib.parse.urlparse(self.path).path.split('/')[3]
        return self.server.stub.containers.get(name)

    def do_GET(self):
        stub, path = self.server.stub, urllib.parse.urlparse(self.path)
        if path.path == '/_ping':
            if not self.trouble('ping'):
                self.answer(200, headers=[('Api-Version', stub.api)] if stub.api else [])
        elif path.path.endswith('/containers/json'):
            if not self.trouble('list'):
                wanted = json.loads(urllib.parse.parse_qs(path.query)['filters'][0])['label'][0].partition('=')
                self.answer(200, [{'Id': one.id} for one in stub.containers.values() if one.body['Labels'].get(wanted[0]) == wanted[2]])
        elif not self.trouble('inspect'):
            container = self.container()
            if not container:
                self.answer(404, {'message': 'No such container'})
                return
            code = container.process.poll() if container.process else 0
            state = {'Running': code is None, 'ExitCode': 0 if code is None else code if code >= 0 else 128 - code,
                     'OOMKilled': container.killed_for_memory}
            self.answer(200, {'Id': container.id, 'State': {**state, **stub.facts.get('State', {})},
                              'HostConfig': {'PidMode': '', 'UTSMode': '', 'CgroupnsMode': 'host', **container.body['HostConfig'],
                                             **stub.facts.get('HostConfig', {})}})

    def do_POST(self):
        stub, path = self.server.stub, urllib.parse.urlparse(self.path)
        body = self.rfile.read(int(self.headers.get('Content-Length') or 0))
        if path.path.endswith('/containers/create'):
            if not self.trouble('create'):
                container = Container(urllib.parse.parse_qs(path.query)['name'][0], json.loads(body))
                if container.body['Image'] not in stub.images:
                    self.answer(404, {'message': f'No such image: {container.body["Image"]}:latest'})
                    return
                if stub.refuses_uid and 'uid=' in container.body['HostConfig']['Tmpfs']['/home/user']:
                    self.answer(500, {'message': 'container create: unknown mount option "uid=1001": invalid mount option'})
                    return
                stub.containers[container.name] = container
                stub.made.append(container)
                self.answer(201, {'Id': container.id, 'Warnings': []})
        elif path.path.endswith('/images/create'):
            if not self.trouble('pull'):
                stub.images.add(urllib.parse.parse_qs(path.query)['fromImage'][0])
                self.answer(200, {'status': 'Pulled'})
        elif path.path.endswith('/attach'):
            if not self.trouble('attach'):
                self.attach(self.container(), body)
        elif path.path.endswith('/start') and not self.trouble('start'):
            self.container().start(stub)
            self.answer(204)

    def attach(self, container, body):
        stub = self.server.stub
        assert not body, 'podman would hand a body to the program'
        if stub.attach == 101:
            head = 'HTTP/1.1 101 UPGRADED\r\nContent-Type: application/vnd.docker.raw-stream\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n'
        else:
            head = 'HTTP/1.1 200 OK\r\nContent-Type: application/vnd.docker.raw-stream\r\n\r\n'
        container.streams = self.connection
        self.connection.sendall(head.encode())
        while container.name in stub.containers and not stub.stopped.wait(0.05):
            pass
        self.close_connection = True

    def do_DELETE(self):
        stub = self.server.stub
        name = urllib.parse.urlparse(self.path).path.split('/')[3]
        if self.trouble('remove'):
            return
        found = [one for one in stub.containers.values() if name in (one.name, one.id)]
        for container in found:
            container.remove()
            stub.containers.pop(container.name, None)
        self.answer(204 if found else 404, None if found else {'message': 'No such container'})


class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, *_):
        pass


class DockerStub:
    def __init__(self, folder, images=('base',), **faults):
        self.path = str(folder / 'docker.sock')
        self.images = set(images)
        self.containers, self.made, self.calls = {}, [], []
        self.stopped = threading.Event()
        self.api, self.attach, self.split, self.program, self.refuses_uid = '1.41', 101, 0, None, False
        self.fail, self.delay, self.hang, self.facts = {}, {}, set(), {}
        for name, value in faults.items():
            assert hasattr(self, name), name
            setattr(self, name, value)
        self.server = Server(self.path, Handler)
        self.server.stub = self
        threading.Thread(target=self.server.serve_forever, kwargs={'poll_interval': 0.05}, daemon=True).start()

    def counted(self, call):
        return sum(one == call for one, _ in self.calls)

    def stop(self):
        """As an engine that is killed: its containers end with it."""
        self.stopped.set()
        self.server.shutdown()
        self.server.server_close()
        Path(self.path).unlink(missing_ok=True)
        for container in list(self.containers.values()):
            container.remove()
        self.containers.clear()
