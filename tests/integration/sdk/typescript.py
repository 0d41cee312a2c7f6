"""The compiled package of sdk/typescript for tests, and programs of Node that use it."""

import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from cli import ROOT

SDK = ROOT / 'sdk/typescript'
MODULES = SDK / 'node_modules'
NODE = os.environ.get('CAISSON_NODE', 'node')     # another version of Node


def needs_node():
    if not shutil.which('node'):
        pytest.skip('needs node, see scripts/setup')
    if not (MODULES / '.bin/tsc').exists():
        pytest.skip('needs the packages of sdk/typescript, see scripts/setup')


def command(*words, **more):
    done = subprocess.run(list(map(str, words)), capture_output=True, text=True, timeout=280, check=False, **more)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def compile_into(folder):
    """tsc with the options of the package."""
    return subprocess.run([MODULES / '.bin/tsc', '-p', SDK / 'tsconfig.json', '--outDir', str(folder)], capture_output=True, text=True, timeout=280, check=False)


class Built:
    """A folder below node_modules, so that the compiled modules find the peers."""

    def __init__(self):
        self.folder = Path(tempfile.mkdtemp(prefix='.caisson-', dir=MODULES))
        (self.folder / 'package.json').write_text('{"type": "module"}')
        done = compile_into(self.folder)
        assert done.returncode == 0, done.stdout + done.stderr

    def node(self, text, *args, stdin='', env=None):
        """What a module prints; it can import from './index.js'."""
        file = tempfile.NamedTemporaryFile('w', suffix='.mjs', dir=self.folder, delete=False)
        with file:
            file.write(text)
        own = {name: value for name, value in os.environ.items() if not name.startswith('CAISSON_')}
        return command(NODE, file.name, *args, input=stdin, env={**own, **(env or {})})

    def json(self, text, *args, **more):
        return json.loads(self.node(text, *args, **more))

    def remove(self):
        shutil.rmtree(self.folder)
