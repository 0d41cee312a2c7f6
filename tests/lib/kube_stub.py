"""A stub of a Kubernetes API server: it answers what `caisson gateway` asks, and has faults on demand.

    stub = KubeStub(namespaces=['workers'])      # http://127.0.0.1:PORT; tls=FOLDER makes a CA and serves https
    kubelet = Kubelet(stub)                      # kubelet.py: new pods become Running and Ready
    stub.url, stub.token, stub.ca                # for clients: stub.kubeconfig(path), stub.service_account(folder)
    stub.requests, stub.count(verb='create')     # requests: verb, resource, namespace, name, query, status, user ...
    stub.stop()

State is in stub.store (kube_store.py): stub.pods(), stub.pod(name), stub.create_pod(name, labels),
stub.delete_pod(name), stub.quota(pods=2).  stub.replace_pod(name) makes DELETED and ADDED of the same name with another
uid.  stub.wait_for(question) asks again after each change of an object.

Faults, each for the next requests or until it is taken back:

    cut_watches(middle=False)    every open watch ends without the end of its answer; middle: after half of a line
    expire()                     old revisions and pages are 410, as after a compaction
    error_watches()              an ERROR event 410 on each open watch
    error_next_watches(n)        an ERROR event 410 as the first event of the next n watches
    hold_events()                watches have BOOKMARK events only, of this revision, until release_events()
    send_bookmarks()             a BOOKMARK on every open watch now; bookmark_seconds is the usual interval
    throttle(n, seconds)         429 with Retry-After for the next n requests
    fail(status, reason, message, times=1, verb=None, resource=None, name=None)    any other answer
    lose_answers(n, verb=None)   the request is carried out, and the connection is closed without an answer
    rotate_token()               the old token is 401; files of service_account() have the new one
    forbid(verb, resource)       403 of RBAC, until allow(...); add_user(token, name, rules) has rules of a Role
    silence()                    requests are read and nothing is answered, watches are silent, until speak()
    delay = {'create': 0.2}      seconds before the answer to a verb
    stop(), start()              the server is away; the port and the state are kept

version=(1, 20) behaves as that server: no fieldValidation, no sendInitialEvents, no member that is newer.
"""

import argparse
import base64
import itertools
import json
import select
import socket
import ssl
import subprocess
import sys
import threading
import time
import urllib.parse
from pathlib import Path

import kube_schema
from kube_store import (JSON_PATCH, KINDS, MERGE, PODS, QUOTAS, STRATEGIC, Refused, Selection, Store, Stored,
                        bad_request, details_of, full_name, kind_prefix)

REASONS = {200: 'OK', 201: 'Created', 400: 'Bad Request', 401: 'Unauthorized', 403: 'Forbidden', 404: 'Not Found',
           405: 'Method Not Allowed', 409: 'Conflict', 410: 'Gone', 415: 'Unsupported Media Type',
           422: 'Unprocessable Entity', 429: 'Too Many Requests', 500: 'Internal Server Error',
           503: 'Service Unavailable', 504: 'Gateway Timeout'}
EVERYBODYS = ('/version', '/healthz', '/livez', '/readyz')       # system:public-info-viewer
ADMIN = [{'apiGroups': ['*'], 'resources': ['*'], 'verbs': ['*']}]
WATCH_SECONDS = 1800
LONG_BODY, CHUNK = 2048, 16384
ENDS_LIST = 'k8s.io/initial-events-end'


class Hangup(Exception):
    """The connection ends without an answer."""


class Request:
    """A request, and when it is answered its status."""

    def __init__(self, method, target, headers, body):
        self.time, self.method, self.target, self.headers, self.raw = time.monotonic(), method, target, headers, body
        parts = urllib.parse.urlsplit(target)
        self.path, self.query = parts.path, {name: values[-1] for name,
                                             values in urllib.parse.parse_qs(parts.query,
                                                 keep_blank_values=True).items()}
        self.kind, self.namespace, self.name, self.subresource = None, '', '', ''
        self.status, self.user, self.verb = None, None, method.lower()
        words = [urllib.parse.unquote(word) for word in self.path.split('/')[1:]]
        if words[:2] == ['api', 'v1']:
            self.route('', words[2:])
        elif words[:1] == ['apis'] and words[2:3] == ['v1']:
            self.route(words[1], words[3:])

    def route(self, group, words):
        if words[:1] == ['namespaces'] and len(words) > 2 and words[2] != 'status':
            self.namespace, words = words[1], words[2:]
        if not words or (group, words[0]) not in KINDS:
            return
        self.kind = KINDS[group, words[0]]
        self.name, self.subresource = [*words[1:3], '', ''][:2]
        many = {'GET': 'watch' if self.flag('watch') else 'list', 'DELETE': 'deletecollection', 'POST': 'create'}
        one = {'GET': 'get', 'DELETE': 'delete', 'PUT': 'update', 'PATCH': 'patch', 'POST': 'create'}
        self.verb = (one if self.name else many).get(self.method, self.method.lower())

    @property
    def resource(self):
        return self.kind.name if self.kind else None

    def flag(self, name):
        return self.query.get(name) in ('1', 'true', 'True')

    def number(self, name, default=0):
        try:
            return int(self.query.get(name) or default)
        except ValueError as error:
            raise bad_request(f'{name}: invalid value {self.query[name]!r}') from error

    def body(self, empty=None):
        try:
            value = json.loads(self.raw) if self.raw or empty is None else empty
        except ValueError as error:
            raise bad_request(
                f'the object provided is unrecognized (must be of type {self.kind.kind}): {error}') from error
        return value

    def matches(self, **wanted):
        return all(value is None or getattr(self, name) == value for name, value in wanted.items())

    def __repr__(self):
        return f'<{self.verb} {self.target} {self.status}>'


class Watch:
    """An open watch.  Its thread alone writes; other threads set `orders` and notify."""

    def __init__(self, stub, selection, revision, bookmarks):
        self.stub, self.selection, self.revision, self.bookmarks, self.orders = stub, selection, revision, bookmarks, []

    def line(self, kind, stored):
        return b'{"type":"' + kind.encode() + b'","object":' + stored.full() + b'}\n'

    def bookmark(self, annotations=None):
        metadata = {'resourceVersion': str(self.revision), 'creationTimestamp': None,
                    **({'annotations': annotations} if annotations else {})}
        value = json.dumps({'metadata': metadata, **({'spec': {'containers': None}, 'status': {}}
                                                     if self.selection.kind is PODS else {})}, separators=(',', ':'))
        return b'{"type":"BOOKMARK","object":' + kind_prefix(self.selection.kind) + value.encode()[1:] + b'}\n'

    def news(self):
        """Lines of all changes since the last call.  The caller has the lock."""
        store, lines = self.stub.store, []
        last = store.revision if self.stub.held is None else min(store.revision, self.stub.held)
        if self.revision < store.oldest and self.revision < last:
            self.orders.append('error')          # the watch is slower than the changes that are kept
            return lines
        while self.revision < last:
            self.revision += 1
            if event := self.selection.event(store.changes[self.revision]):
                lines.append(self.line(*event))
        return lines


class Connection:
    """One client: requests in a row, until one of both closes."""

    def __init__(self, stub, sock):
        self.stub, self.socket = stub, sock

    def run(self):
        try:
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self.stub.tls:
                self.socket = self.stub.tls.wrap_socket(self.socket, server_side=True)
            with self.socket.makefile('rb') as reader:
                while self.serve(reader):
                    pass
        except (OSError, ValueError, Hangup):
            pass
        finally:
            self.stub.connections.discard(self)
            try:
                self.socket.close()
            except OSError:
                pass

    def serve(self, reader):
        first = reader.readline(65536).split()
        if len(first) != 3:
            return False
        headers = {}
        while (line := reader.readline(65536).strip()):
            name, _, value = line.decode('latin-1').partition(':')
            headers[name.lower()] = value.strip()
        if headers.get('expect', '').lower() == '100-continue':
            self.socket.sendall(b'HTTP/1.1 100 Continue\r\n\r\n')
        if headers.get('transfer-encoding', '').lower() == 'chunked':
            parts = []
            while size := int(reader.readline(65536).split(b';')[0], 16):
                parts.append(reader.read(size))
                reader.readline()
            reader.readline()
            body = b''.join(parts)
        else:
            body = reader.read(int(headers.get('content-length') or 0))
        request = Request(first[0].decode(), first[1].decode(), headers, body)
        self.stub.answer(self, request)
        return headers.get('connection', '').lower() != 'close'

    def send(self, request, status, body, headers=(), content_type='application/json'):
        request.status = status
        # A Go server sends a short body with its length, a longer one in chunks.
        length = 'Transfer-Encoding: chunked' if len(body) > LONG_BODY else f'Content-Length: {len(body)}'
        head = [f'HTTP/1.1 {status} {REASONS.get(status, "Status")}', f'Content-Type: {content_type}', length,
                'Cache-Control: no-cache, private', *(f'{name}: {value}' for name, value in headers)]
        if len(body) > LONG_BODY:
            body = b''.join(b'%x\r\n%b\r\n' % (len(part), part) for part in pieces(body)) + b'0\r\n\r\n'
        self.socket.sendall('\r\n'.join([*head, '', '']).encode() + body)

    def send_chunks(self, lines):
        if lines:
            self.socket.sendall(b''.join(b'%x\r\n%b\r\n' % (len(line), line) for line in lines))

    def client_closed(self):
        """A client sends nothing during a watch, so a readable socket is one that the client closed."""
        poll = select.poll()
        poll.register(self.socket, select.POLLIN)
        return bool(poll.poll(0))

    def hang_up(self):
        try:
            socket.socket.shutdown(self.socket,
                                   socket.SHUT_RDWR)      # that of SSLSocket would change what its thread uses
        except OSError:
            pass


class KubeStub:
    def __init__(self, namespaces=('workers',), version=(1, 32), tls=None, seed=0, token='stub-token',
                 bookmark_seconds=60):
        self.namespaces, self.version, self.seed, self.token = list(namespaces), version, seed, token
        self.store = Store(namespaces, seed, version)
        self.requests, self.connections, self.watches = [], set(), []
        self.errors = []                     # exceptions of this stub: there must be none
        self.users = {token: ('stub-admin', ADMIN)}
        self.delay, self.bookmark_seconds, self.held, self.closing = {}, bookmark_seconds, None, False
        self.faults, self.forbidden, self.watch_errors, self.accounts = [], set(), 0, []
        self.speaks, self.tokens = threading.Event(), itertools.count(1)
        self.speaks.set()
        self.host, self.port, self.listener, self.ca, self.tls = '127.0.0.1', 0, None, None, None
        if tls:
            self.ca, self.tls = make_certificate(Path(tls))
        self.start()

    # ---- the server ----

    @property
    def url(self):
        return f'http{"s" if self.tls else ""}://{self.host}:{self.port}'

    def start(self):
        assert self.listener is None
        self.closing = False
        self.listener = socket.create_server((self.host, self.port), backlog=1024)
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, args=(self.listener,), daemon=True).start()

    def accept(self, listener):
        while True:
            try:
                sock, _ = listener.accept()
            except OSError:
                return
            connection = Connection(self, sock)
            self.connections.add(connection)
            threading.Thread(target=connection.run, daemon=True).start()
            if self.closing:
                connection.hang_up()

    def stop(self):
        """The server is away: connections end, the port refuses.  start() goes on with the same port and state."""
        if self.listener is None:
            return
        self.closing = True
        try:
            self.listener.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.listener.close()
        self.listener = None
        for connection in list(self.connections):
            connection.hang_up()
        with self.store.changed:
            self.store.changed.notify_all()
        self.wait_for(lambda: not self.watches and not self.connections, notified=False)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    # ---- state ----

    def pods(self, namespace=''):
        return [pod.value for pod in self.store.all(PODS, namespace)]

    def pod(self, name, namespace=None):
        """The value of a pod, or None."""
        found = self.store.objects[PODS].get((namespace or self.namespaces[0], name))
        return found and found.value

    def create_pod(self, name, labels=None, namespace=None, **spec):
        body = {'metadata': {'name': name, 'labels': labels or {}},
                'spec': {'containers': [{'name': 'worker', 'image': 'worker'}], **spec}}
        return self.store.create(PODS, namespace or self.namespaces[0], body).value

    def delete_pod(self, name, namespace=None, grace=None):
        """As another client would; grace=0 removes the pod at once."""
        self.store.delete(PODS, namespace or self.namespaces[0], name, grace=grace)

    def edit_pod(self, name, change, namespace=None):
        """change(value) edits a copy of the whole object, its status as well."""
        with self.store.changed:
            value = self.store.find(PODS, namespace or self.namespaces[0], name).copy()
            change(value)
            return self.store.write(self.store.find(PODS, namespace or self.namespaces[0], name), value, PODS).value

    def replace_pod(self, name, namespace=None):
        """DELETED and ADDED of the same name with another uid, and nothing between them."""
        namespace = namespace or self.namespaces[0]
        with self.store.changed:
            old = self.store.find(PODS, namespace, name)
            self.store.delete(PODS, namespace, name, grace=0)
            metadata = {key: value for key, value in old.copy()['metadata'].items()
                        if key in ('name', 'labels', 'annotations')}
            spec = {key: value for key, value in old.copy()['spec'].items() if key != 'nodeName'}
            return self.store.create(PODS, namespace, {'metadata': metadata, 'spec': spec}).value

    def quota(self, pods, name='pods', namespace=None):
        """At most so many pods in the namespace; more are 403.  None takes the quota back."""
        namespace = namespace or self.namespaces[0]
        if (namespace, name) in self.store.objects[QUOTAS]:
            self.store.delete(QUOTAS, namespace, name)
        if pods is not None:
            self.store.create(QUOTAS, namespace, {'metadata': {'name': name}, 'spec': {'hard': {'pods': str(pods)}}})

    def wait_for(self, question, seconds=10, notified=True):
        """The first true answer of question().  notified: only changes of objects can make the answer true."""
        if notified:
            return self.store.wait_for(question, seconds)
        end = time.monotonic() + seconds
        while not (answer := question()):
            assert time.monotonic() < end, f'no answer after {seconds} s'
            time.sleep(0.002)
        return answer

    def asked(self, **wanted):
        """Requests with these attributes: verb, resource, namespace, name, status, user, path ..."""
        return [request for request in list(self.requests) if request.matches(**wanted)]

    def count(self, **wanted):
        return len(self.asked(**wanted))

    # ---- faults ----

    def order(self, word, watches=None):
        """Give each open watch an order, and wait until each has ended or obeyed."""
        with self.store.changed:
            chosen = list(self.watches)
            for watch in chosen:
                watch.orders.append(word)
            self.store.changed.notify_all()
        self.wait_for(lambda: all(not watch.orders or watch not in self.watches for watch in chosen), notified=False)
        return len(chosen)

    def cut_watches(self, middle=False):
        return self.order('half' if middle else 'cut')

    def error_watches(self):
        return self.order('error')

    def error_next_watches(self, times=1):
        self.watch_errors = times

    def send_bookmarks(self):
        return self.order('bookmark')

    def expire(self):
        self.store.expire()

    def hold_events(self):
        with self.store.changed:
            self.held = self.store.revision

    def release_events(self):
        with self.store.changed:
            self.held = None
            self.store.changed.notify_all()

    def fail(self, status, reason, message='', times=1, verb=None, resource=None, name=None, headers=(), **details):
        self.faults.append([times, {'verb': verb, 'resource': resource, 'name': name},
                            Refused(status, reason, message or reason, headers, **details)])

    def throttle(self, times=1, seconds=1, verb=None, resource=None):
        self.fail(429, 'TooManyRequests', 'Too many requests, please try again later.', times, verb, resource,
                  headers=[('Retry-After', seconds)], retryAfterSeconds=seconds)

    def lose_answers(self, times=1, verb=None, resource=None):
        self.faults.append([times, {'verb': verb, 'resource': resource}, None])

    def forbid(self, verb='*', resource='*'):
        self.forbidden.add((verb, resource))

    def allow(self, verb='*', resource='*'):
        self.forbidden.discard((verb, resource))

    def add_user(self, token, name, rules=(), namespace=None):
        """rules: those of a Role of the namespace, or of a ClusterRole if the namespace is None."""
        self.users[token] = (name, list(rules) if namespace is None
                             else [{**rule, 'namespace': namespace} for rule in rules])

    def rotate_token(self, token=None):
        user = self.users.pop(self.token)
        self.token = token or f'stub-token-{next(self.tokens)}'
        self.users[self.token] = user
        for folder in self.accounts:
            write_file(folder / 'token', self.token)
        return self.token

    def silence(self):
        self.speaks.clear()

    def speak(self):
        self.speaks.set()
        with self.store.changed:
            self.store.changed.notify_all()

    # ---- files of clients ----

    def service_account(self, folder, namespace=None):
        """The files of /var/run/secrets/kubernetes.io/serviceaccount; rotate_token() writes the new token there."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        write_file(folder / 'token', self.token)
        write_file(folder / 'namespace', namespace or self.namespaces[0])
        if self.ca:
            write_file(folder / 'ca.crt', Path(self.ca).read_text(encoding='ascii'))
        self.accounts.append(folder)
        return folder

    def kubeconfig(self, path, namespace=None):
        cluster = {'server': self.url}
        if self.ca:
            cluster['certificate-authority-data'] = base64.b64encode(Path(self.ca).read_bytes()).decode()
        write_file(Path(path), json.dumps({'apiVersion': 'v1', 'kind': 'Config', 'current-context': 'stub',
                                           'clusters': [{'name': 'stub', 'cluster': cluster}],
                                           'users': [{'name': 'stub', 'user': {'token': self.token}}],
                                           'contexts': [{'name': 'stub',
                                                         'context': {'cluster': 'stub', 'user': 'stub',
                                                                     'namespace': namespace or self.namespaces[0]}}]}))
        return path

    # ---- answers ----

    def answer(self, connection, request):
        self.requests.append(request)
        self.pause(connection)
        if request.verb in self.delay:
            time.sleep(self.delay[request.verb])
        try:
            self.identify(request)
            lost = self.fault_of(request)
            if request.kind is None:
                self.answer_other(connection, request)
                return
            if request.verb == 'watch' or (request.verb == 'get' and request.flag('watch')):
                self.watch(connection, request)
                return
            status, body, headers = self.carry_out(request)
            if lost:
                request.status = status
                raise Hangup
            connection.send(request, status, body, headers)
        except Refused as refused:
            self.refuse(connection, request, refused)
        except (TypeError, KeyError, AttributeError, IndexError) as error:
            self.errors.append((request, error))
            self.refuse(connection, request, Refused(500, 'InternalError', f'Internal error occurred: {error!r}'))

    def refuse(self, connection, request, refused):
        connection.send(request, refused.code, json.dumps(refused.status()).encode() + b'\n', refused.headers)

    def pause(self, connection):
        while not self.speaks.wait(0.1):
            if connection not in self.connections or self.closing:
                raise Hangup

    def identify(self, request):
        """401 and 403."""
        word, _, token = request.headers.get('authorization', '').partition(' ')
        name, rules = 'system:anonymous', []
        if word:
            if word.lower() != 'bearer' or token not in self.users:
                raise Refused(401, 'Unauthorized', 'Unauthorized')
            name, rules = self.users[token]
        request.user = name
        verb, resource = request.verb, '/'.join(filter(None, [request.resource, request.subresource]))
        wild = [(verb, resource), (verb, '*'), ('*', resource), ('*', '*')]
        if request.kind is None:
            if not rules and request.path not in EVERYBODYS:
                raise Refused(403, 'Forbidden',
                              f'forbidden: User "{name}" cannot {request.method.lower()} path "{request.path}"')
        elif any(one in self.forbidden for one in wild) or not any(grants(rule, request, resource) for rule in rules):
            where = f' in the namespace "{request.namespace}"' if request.namespace else ' at the cluster scope'
            what = full_name(request.kind) + (f' "{request.name}"' if request.name else '')
            raise Refused(403, 'Forbidden',
                          f'{what} is forbidden: User "{name}" cannot {verb} resource "{resource}" '
                          f'in API group "{request.kind.group}"{where}',
                          **details_of(request.kind, request.name))

    def fault_of(self, request):
        """Raise a fault that was ordered for this request; true if only its answer is to be lost."""
        for fault in self.faults:
            if fault[0] > 0 and request.matches(**fault[1]):
                fault[0] -= 1
                if fault[2]:
                    raise fault[2]
                return True
        return False

    def answer_other(self, connection, request):
        if request.method != 'GET':
            raise Refused(404, 'NotFound', 'the server could not find the requested resource')
        major, minor = self.version
        if request.path == '/version':
            value = {'major': str(major), 'minor': str(minor), 'gitVersion': f'v{major}.{minor}.0', 'gitCommit': '',
                     'gitTreeState': '', 'buildDate': '1970-01-01T00:00:00Z', 'goVersion': 'go1', 'compiler': 'gc',
                     'platform': 'linux/amd64'}
        elif request.path in EVERYBODYS:
            connection.send(request, 200, b'ok', content_type='text/plain; charset=utf-8')
            return
        elif request.path == '/api':
            value = {'kind': 'APIVersions', 'versions': ['v1'],
                     'serverAddressByClientCIDRs': [{'clientCIDR': '0.0.0.0/0', 'serverAddress': self.url}]}
        elif request.path == '/apis':
            version = {'groupVersion': 'coordination.k8s.io/v1', 'version': 'v1'}
            value = {'kind': 'APIGroupList', 'apiVersion': 'v1',
                     'groups': [{'name': 'coordination.k8s.io', 'versions': [version], 'preferredVersion': version}]}
        elif request.path in ('/api/v1', '/apis/coordination.k8s.io/v1'):
            group = 'coordination.k8s.io' if 'apis' in request.path else ''
            verbs = ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch']
            resources = [{'name': kind.name, 'singularName': '', 'namespaced': kind.namespaced, 'kind': kind.kind,
                          'verbs': verbs, **({'shortNames': ['po']} if kind is PODS else {})} for kind in KINDS.values()
                         if kind.group == group]
            resources += [{'name': 'pods/status', 'singularName': '', 'namespaced': True, 'kind': 'Pod',
                           'verbs': ['get', 'patch', 'update']}] * (not group)
            value = {'kind': 'APIResourceList', 'apiVersion': 'v1', 'groupVersion': f'{group}/v1' if group else 'v1',
                     'resources': resources}
        else:
            raise Refused(404, 'NotFound', 'the server could not find the requested resource')
        connection.send(request, 200, json.dumps(value).encode() + b'\n')

    def carry_out(self, request):
        """(status, body, headers)"""
        verb, store, place = request.verb, self.store, (request.kind, request.namespace, request.name)
        if request.subresource and request.subresource not in ('status', 'binding', 'eviction'):
            raise Refused(404, 'NotFound', 'the server could not find the requested resource')
        if verb == 'list':
            return 200, self.list(request), ()
        if verb == 'get':
            return 200, store.find(*place).full() + b'\n', ()
        if verb == 'create' and request.subresource:
            return self.bind_or_evict(request)
        if verb in ('create', 'update'):
            value, warnings = self.object_of(request)
            with store.changed:
                is_new = verb == 'create' or (request.namespace, request.name) not in store.objects[request.kind]
                if verb == 'create':
                    made = store.create(request.kind, request.namespace, value, request.query.get('dryRun') == 'All')
                else:
                    made = store.replace(*place, value, request.subresource)
            headers = [('Warning', f'299 - "{text}"') for text in warnings]
            return (201 if is_new else 200), made.full() + b'\n', headers
        if verb == 'patch':
            return 200, store.patch(*place, *self.patch_of(request), request.subresource,
                                    self.validation(request) == 'Strict').full() + b'\n', ()
        if verb == 'delete':
            left, gone = store.delete(*place, **self.options_of(request))
            if gone and request.kind is not PODS:
                value = {'kind': 'Status', 'apiVersion': 'v1', 'metadata': {}, 'status': 'Success',
                         'details': {**details_of(request.kind, left.name), 'uid': left.uid}}
                return 200, json.dumps(value).encode() + b'\n', ()
            return 200, left.full() + b'\n', ()
        if verb == 'deletecollection':
            options = self.options_of(request)
            with store.changed:
                chosen, revision = store.chosen(self.selection(request)), store.revision
                for one in chosen:
                    store.delete(one.kind, one.namespace, one.name, **options)
            head = kind_prefix(request.kind, 'List') + b'"metadata":{"resourceVersion":"%d"},"items":[' % revision
            return 200, head + b','.join(one.item for one in chosen) + b']}\n', ()
        raise Refused(405, 'MethodNotAllowed', 'the server does not allow this method on the requested resource')

    def validation(self, request):
        return request.query.get('fieldValidation', 'Warn') if self.version >= (1, 25) else 'Ignore'

    def object_of(self, request):
        value = request.body()
        if not isinstance(value, dict) or value.get('kind', request.kind.kind) != request.kind.kind:
            raise bad_request(f'the object provided is unrecognized (must be of type {request.kind.kind})')
        validation = self.validation(request)
        unknown = kube_schema.check(request.kind.kind, value, validation == 'Strict', self.version, bad_request)
        value.pop('kind', None), value.pop('apiVersion', None)
        return value, unknown if validation == 'Warn' else []

    def patch_of(self, request):
        how = request.headers.get('content-type', '').partition(';')[0].strip()
        if how not in (JSON_PATCH, MERGE, STRATEGIC):
            raise Refused(415, 'UnsupportedMediaType',
                          'the body of the request was in an unknown format - accepted media types include: '
                          f'{JSON_PATCH}, {MERGE}, {STRATEGIC}, application/apply-patch+yaml')
        return request.body(), how

    def options_of(self, request):
        """The members of DeleteOptions, of the body or of the query."""
        body = request.body(empty={})
        grace = body.get('gracePeriodSeconds')
        if grace is None and 'gracePeriodSeconds' in request.query:
            grace = request.number('gracePeriodSeconds')
        wanted = body.get('preconditions') or {}
        dry_run = 'All' in (body.get('dryRun') or [request.query.get('dryRun')])
        return {'uid': wanted.get('uid'), 'revision': wanted.get('resourceVersion'), 'grace': grace, 'dry_run': dry_run}

    def selection(self, request):
        fields = request.query.get('fieldSelector', '')
        if request.name:
            fields = ','.join(filter(None, [f'metadata.name={request.name}', fields]))
        return Selection(request.kind, request.namespace, request.query.get('labelSelector', ''), fields)

    def list(self, request):
        wanted = request.number('resourceVersion')
        if wanted > self.store.revision:
            raise Refused(504, 'Timeout',
                          f'Timeout: Too large resource version: {wanted}, current: {self.store.revision}',
                          [('Retry-After', 1)], retryAfterSeconds=1,
                          causes=[{'reason': 'ResourceVersionTooLarge', 'message': 'Too large resource version'}])
        is_cached = request.query.get('resourceVersion') == '0'
        return self.store.list(self.selection(request), request.number('limit'), request.query.get('continue', ''),
                               is_cached)

    def bind_or_evict(self, request):
        if request.subresource == 'binding':
            pod = self.store.find(request.kind, request.namespace, request.name)
            self.store.bind(pod, request.body()['target']['name'])
        else:
            request.raw = json.dumps(request.body().get('deleteOptions') or {}).encode()
            self.store.delete(request.kind, request.namespace, request.name, **self.options_of(request))
        return 201, b'{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success","code":201}\n', ()

    # ---- watches ----

    def watch(self, connection, request):
        selection, store = self.selection(request), self.store
        wanted, initial = request.query.get('resourceVersion', ''), request.query.get('sendInitialEvents')
        revision = request.number('resourceVersion')
        matches = request.query.get('resourceVersionMatch')
        if matches and self.version < (1, 27):
            raise list_options_forbidden('resourceVersionMatch is forbidden for watch')
        if initial and self.version >= (1, 32) and matches != 'NotOlderThan':
            raise list_options_forbidden('sendInitialEvents requires setting resourceVersionMatch to NotOlderThan')
        bookmarks = request.flag('allowWatchBookmarks')
        seconds = request.number('timeoutSeconds') or WATCH_SECONDS
        ends_list = self.version >= (1, 32) and request.flag('sendInitialEvents')
        with store.changed:
            old = bool(revision) and not ends_list and revision < store.oldest
            watch = Watch(self, selection, store.revision, bookmarks)
            lines = []
            if wanted in ('', '0') or ends_list:
                if initial != 'false' or self.version < (1, 32):
                    lines = [watch.line('ADDED', stored) for stored in store.chosen(selection, is_cached=True)]
                if ends_list and bookmarks:
                    lines.append(watch.bookmark({ENDS_LIST: 'true'}))
            else:
                watch.revision = revision
            if self.watch_errors:
                self.watch_errors -= 1
                old = True
            if not old:
                self.watches.append(watch)
        request.status = 200
        try:
            connection.socket.sendall(
                b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nCache-Control: no-cache, private\r\n'
                b'Transfer-Encoding: chunked\r\n\r\n')
            if old:
                connection.send_chunks([error_line(wanted, store.oldest)])
            else:
                connection.send_chunks(lines)
                self.follow(connection, watch, time.monotonic() + seconds)
            connection.socket.sendall(b'0\r\n\r\n')
        finally:
            with store.changed:
                if watch in self.watches:
                    self.watches.remove(watch)

    def follow(self, connection, watch, end):
        """Send changes until the watch's time is over, or a fault ends it."""
        changed = self.store.changed
        next_bookmark = time.monotonic() + self.bookmark_seconds
        while True:
            self.pause(connection)
            with changed:
                lines = watch.news()
                if not lines and not watch.orders:
                    left = min(end, next_bookmark) - time.monotonic()
                    if left > 0 and not self.closing:
                        changed.wait(min(left, 0.5))
                    if self.closing:
                        raise Hangup
                    lines = watch.news() if self.speaks.is_set() else []
                order = watch.orders[0] if watch.orders else None
            connection.send_chunks(lines)
            if order:
                self.obey(connection, watch, order)
                if order == 'error':
                    return
            if time.monotonic() >= end:
                return
            if time.monotonic() >= next_bookmark:
                next_bookmark += self.bookmark_seconds
                if watch.bookmarks:
                    connection.send_chunks([watch.bookmark()])
            if not lines and connection.client_closed():
                raise Hangup

    def obey(self, connection, watch, order):
        if order == 'half':
            line = watch.line('MODIFIED', next(iter(self.store.all(watch.selection.kind)), None)
                              or Stored(PODS, {'metadata': {'name': 'none', 'namespace': 'none',
                                                            'resourceVersion': str(watch.revision)}}))
            connection.socket.sendall(b'%x\r\n%b' % (len(line), line[:len(line) // 2]))
        elif order == 'error':
            connection.send_chunks([error_line(watch.revision, self.store.oldest)])
        elif order == 'bookmark' and watch.bookmarks:
            connection.send_chunks([watch.bookmark()])
        with self.store.changed:
            watch.orders.pop(0)
            if order in ('cut', 'half'):
                self.watches.remove(watch)
        if order in ('cut', 'half'):
            raise Hangup


def pieces(body):
    return [body[at:at + CHUNK] for at in range(0, len(body), CHUNK)]


def list_options_forbidden(why):
    message = f'Forbidden: {why}'
    return Refused(422, 'Invalid', f'ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: {message}',
                   kind='ListOptions', group='meta.k8s.io',
                   causes=[{'reason': 'FieldValueForbidden', 'message': message, 'field': 'resourceVersionMatch'}])


def error_line(revision, oldest):
    """The event of a watch that the server cannot serve."""
    error = Refused(410, 'Expired', f'too old resource version: {revision} ({oldest})')
    return b'{"type":"ERROR","object":' + json.dumps(error.status(), separators=(',', ':')).encode() + b'}\n'


def grants(rule, request, resource):
    """Whether a rule of RBAC allows a request."""
    names = rule.get('resourceNames')
    return (rule.get('namespace', request.namespace) == request.namespace
            and any(one in ('*', request.kind.group) for one in rule.get('apiGroups', ['']))
            and any(one in ('*', resource) for one in rule.get('resources', ()))
            and any(one in ('*', request.verb) for one in rule.get('verbs', ()))
            and (not names or request.name in names))


def write_file(path, text):
    """Replace a file in one step, as the kubelet does."""
    fresh = path.with_name(path.name + '.new')
    fresh.write_text(text, encoding='utf-8')
    fresh.replace(path)


def make_certificate(folder):
    """(file of the CA, context of the server) for 127.0.0.1, localhost and kubernetes.default.svc."""
    folder.mkdir(parents=True, exist_ok=True)

    def openssl(*words):
        subprocess.run(['openssl', *words], check=True, cwd=folder, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)

    curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']
    openssl('req', '-x509', *curve, '-days', '30', '-subj', '/CN=stub CA', '-keyout', 'ca.key', '-out', 'ca.crt')
    openssl('req', *curve, '-subj', '/CN=kube-apiserver', '-keyout', 'server.key', '-out', 'server.csr')
    (folder / 'server.ext').write_text(
        'subjectAltName=IP:127.0.0.1,DNS:localhost,DNS:kubernetes.default.svc\nextendedKeyUsage=serverAuth\n',
        encoding='ascii')
    openssl('x509', '-req', '-in', 'server.csr', '-CA', 'ca.crt', '-CAkey', 'ca.key', '-CAcreateserial', '-days', '30',
            '-extfile', 'server.ext', '-out', 'server.crt')
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / 'server.crt', folder / 'server.key')
    return str(folder / 'ca.crt'), context


def main():
    """A stub for tests in other languages, with a kubelet.

    The first line of its output is {"url", "token", "ca"}.  A line of its input is a call, {"call": "cut_watches",
    "words": {"middle": true}}, and gets one line with what the call returned.  The end of the input ends the stub.
    """
    from kubelet import Kubelet      # pylint: disable=import-outside-toplevel  # kubelet.py has no use for this module
    arguments = argparse.ArgumentParser()
    arguments.add_argument('--tls')
    arguments.add_argument('--version', default='1.32')
    options = arguments.parse_args()
    with KubeStub(version=tuple(map(int, options.version.split('.'))), tls=options.tls) as stub, Kubelet(stub):
        print(json.dumps({'url': stub.url, 'token': stub.token, 'ca': stub.ca}), flush=True)
        for line in sys.stdin:
            call = json.loads(line)
            print(json.dumps(getattr(stub, call['call'])(**call.get('words', {})), default=str), flush=True)


if __name__ == '__main__':
    main()
