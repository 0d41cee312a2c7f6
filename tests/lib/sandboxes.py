"""What the tests of persistent sandboxes share: one, and what is asked of it, by way of HTTP."""

import contextlib
import json
import os
import re
import urllib.parse
from pathlib import Path

from daemon import until


def quote(path):
    return urllib.parse.quote(path, safe='')


class Sandbox:
    """A persistent sandbox.  Whatever is not `ask` asserts that it was done."""

    def __init__(self, web, headers=None, **request):
        self.web, self.headers = web, headers or {}
        status, headers, self.made = web.ask('POST', '/v1/sandboxes', request, **self.headers)
        assert status == 201, self.made
        self.id = self.made['id']
        self.path = f'/v1/sandboxes/{self.id}'
        assert headers['Location'] == self.path

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.ask('DELETE')

    def ask(self, method, below='', body=None, **headers):
        return self.web.ask(method, self.path + below, body, **self.headers, **headers)

    def good(self, method, below='', body=None, **headers):
        status, _, answer = self.ask(method, below, body, **headers)
        assert status in (200, 201, 202, 204), (status, answer)
        return answer

    # ---- programs ----

    def run(self, command, **more):
        """A command line for bash, or a list; its record."""
        return self.good('POST', '/processes', ({'command': command} if isinstance(command, str) else {'args': command}) | more)

    def out(self, command, **more):
        record = self.run(command, **more)
        assert record.get('exit_code') == 0, record
        return record['stdout']

    def python(self, code, *words, **more):
        return self.run(['/usr/bin/python3', '-c', code, *words], **more)

    def start(self, command, **more):
        body = ({'command': command} if isinstance(command, str) else {'args': command}) | more
        return Program(self, self.good('POST', '/processes', body, Prefer='respond-async'))

    # ---- files ----

    def put(self, path, content, more=''):
        return self.good('PUT', f'/files?path={quote(path)}{more}', content)

    def get(self, path, more='', **headers):
        return self.good('GET', f'/files?path={quote(path)}{more}', **headers)

    def entry(self, path):
        return self.good('GET', f'/entry?path={quote(path)}')

    def names(self, path='.', depth=1):
        return sorted(entry['path'] for entry in self.good('GET', f'/entries?path={quote(path)}&depth={depth}')['entries'])

    # ---- from outside ----

    def processes(self):
        """The pids on the host of what is in it: our test's own processes are not, and its process 1 is."""
        return [int(pid) for folder in self.cgroups() for pid in (folder / 'cgroup.procs').read_text().split()]

    def cgroups(self):
        return [Path(root, name) for root, folders, _ in os.walk('/sys/fs/cgroup') for name in folders if name.startswith(f'sandbox-{self.id[4:16]}-')]


class Program:
    """A program that goes on, or is over."""

    def __init__(self, sandbox, record):
        self.sandbox, self.number = sandbox, record['id']
        self.below = f'/processes/{self.number}'
        self.path = sandbox.path + self.below

    def record(self):
        return self.sandbox.good('GET', self.below)

    def over(self, seconds=60):
        return until(lambda: (lambda record: record['state'] == 'over' and record)(self.record()), seconds)

    def has_printed(self, text, stream='stdout', seconds=60):
        until(lambda: text in self.record()[stream], seconds)

    def write(self, data, end=False):
        return self.sandbox.good('POST', f'{self.below}/stdin' + ('?end=true' if end else ''), data)

    def signal(self, name):
        return self.sandbox.good('POST', f'{self.below}/signal', {'signal': str(name)})

    def events(self, after=None, **headers):
        """All of them up to the end, as NDJSON."""
        answer = self.sandbox.web.stream('GET', f'{self.path}/events' + (f'?after={after}' if after is not None else ''), None,
                                         Accept='application/x-ndjson', **self.sandbox.headers, **headers)
        assert answer.status == 200
        with contextlib.closing(answer):
            return [json.loads(line) for line in answer if line.strip()]


def sse(answer):
    """The events of a text/event-stream, one after another: (id, type, data)."""
    one = {}
    for line in answer:
        line = line.decode().rstrip('\n')
        if not line and one:
            yield int(one.get('id', 0)), one['event'], json.loads(one['data'])
            one = {}
        elif line and not line.startswith(':'):
            name, value = re.split(': ', line, maxsplit=1)
            one[name] = value
