"""Calls of a gateway to a worker: the signature of src/hop/sign.c and the ids of src/hop/ids.c, written anew."""

import base64
import hashlib
import hmac
import http.client
import json
import secrets
import time

from daemon import until
from web import Web

SECRET = 'a-secret-of-this-test-0123456789abcdef'
QUOTAS = ('running_max', 'queued_max', 'cpu_ms_per_day', 'stored_bytes', 'review_budget_nanousd')
SCOPES = {name: 1 << i for i, name in enumerate(('run', 'check', 'read', 'files', 'sandboxes', 'metrics', 'admin', 'tools'))}
LETTERS = '0123456789abcdefghijklmnopqrstuvwxyz'


def claims_of(tenant='tenant', key='key1', scopes=('run', 'read', 'files', 'sandboxes', 'check', 'tools'), **quotas):
    """The claims of a key."""
    mask = scopes if isinstance(scopes, int) else sum(SCOPES[name] for name in scopes)
    return {'tenant': tenant, 'key': key, 'scopes': mask, **{name: quotas.get(name, 0) for name in QUOTAS}}


def coded(claims):
    """Claims as they are signed."""
    return base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip('=') if claims is not None else '-'


def sign(secret, method, target, claims=None, at_ms=None, version='v1'):
    """The value of Caisson-Gateway for a call."""
    parts = [version, str(int(time.time() * 1000) if at_ms is None else at_ms), claims if isinstance(claims, str) else coded(claims)]
    mac = hmac.new(secret.encode(), '\n'.join([*parts, method, target]).encode(), hashlib.sha256).hexdigest()
    return ' '.join([*parts, mac])


def attempt():
    """A new id of an attempt."""
    return secrets.token_hex(16)


def base36(number, length):
    """The lowest digits of a number in base 36."""
    digits = ''
    for _ in range(length):
        number, digit = divmod(number, 36)
        digits = LETTERS[digit] + digits
    return digits


def id_of(secret, tag, prefix='run_'):
    """A new id of the worker with this tag."""
    body = tag + secrets.token_hex(8)
    return prefix + body + hmac.new(secret.encode(), b'caisson id ' + body.encode(), hashlib.sha256).hexdigest()[:8]


def tag_of(secret, identifier):
    """The tag of the worker in an id; None: the id has no seal by the secret."""
    digits = identifier.rsplit('_', 1)[-1].replace('-', '')
    if len(digits) == 21 and digits[0] == 'i':
        digits = digits[1:]
    if len(digits) not in (20, 32):
        return None
    body = digits[:24] if len(digits) == 32 else digits[:16]
    seal = hmac.new(secret.encode(), b'caisson id ' + body.encode(), hashlib.sha256).digest()[:8]
    expected = seal[:4].hex() if len(digits) == 32 else base36(int.from_bytes(seal, 'big'), 4)
    if digits[len(body):] != expected:
        return None
    return digits[:8] if len(digits) == 32 else f'{int(digits[:7], 36):08x}'


class Worker(Web):
    """A daemon with gateway.key_file, called by a gateway."""

    def __init__(self, folder, *options, keys='gateway', secret=SECRET, keyless=False, **more):
        self.secret, self.claims = secret, claims_of()
        self.key_file = folder / 'keys' / 'key'
        self.key_file.parent.mkdir(exist_ok=True)
        self.replace_keys(secret)
        super().__init__(folder, '--set', f'gateway.key_file={self.key_file}', '--set', f'gateway.keys={keys}', *options,
                         keyless=keyless, **more)

    def replace_keys(self, *lines):
        """As Kubernetes does: a new file takes the place of the old one."""
        new = self.key_file.with_name('new')
        new.write_text('\n'.join(lines) + '\n')
        new.rename(self.key_file)

    def describe(self):
        return self.call('GET', '/openapi.json')[2]

    def call(self, method, target, body=None, claims=Ellipsis, secret=None, headers=None, value=None, timeout=60):
        """A signed call; (status, headers, JSON or bytes).  claims None: without; value: another signature, "": none."""
        connection = http.client.HTTPConnection('127.0.0.1', self.port, timeout=timeout)
        claims = self.claims if claims is Ellipsis else claims
        value = sign(secret or self.secret, method, target, claims) if value is None else value
        data = body if isinstance(body, (bytes, type(None))) else json.dumps(body).encode()
        named = {**({'Content-Type': 'application/json'} if data is not None else {}), **(headers or {})}
        if value:
            named['Caisson-Gateway'] = value
        connection.request(method, target, data, named)
        answer = connection.getresponse()
        content = answer.read()
        connection.close()
        kind = answer.headers['Content-Type'] or ''
        is_json = 'json' in kind and 'ndjson' not in kind and content
        return answer.status, answer.headers, json.loads(content) if is_json else content

    def run(self, code, language='bash', claims=Ellipsis, **more):
        """The record of a program."""
        status, _, record = self.call('POST', '/v1/runs', {'language': language, 'code': code, **more}, claims)
        assert status == 200, record
        return record

    def status(self):
        return self.call('GET', '/v1/gateway/status', claims=None)[2]

    def wait_ready(self):
        """The status, once the worker can run programs."""
        return until(lambda: (lambda status: status if status['ready'] else None)(self.status()))
