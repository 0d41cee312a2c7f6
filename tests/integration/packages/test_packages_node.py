"""Packages of Node: npm resolves and installs in closed sandboxes from a private registry; both kinds of modules, and each refusal."""

import shutil
import urllib.request

import pytest

from private_index import PrivateIndex
from test_packages import serving

pytestmark = pytest.mark.skipif(not shutil.which('npm', path='/usr/bin'), reason='needs npm')

LEFT = 'const left = require("left"); console.log(left, require.resolve("left"))'


def settings_of(index, *more, url=''):
    pairs = [f'packages.node.registry_url={url or index.npm_url}', *more]
    return [word for pair in pairs for word in ('--set', pair)]


@pytest.fixture(name='index', scope='module')
def indexed():
    with PrivateIndex() as index:
        index.add_npm('left', '1.0.0')
        index.add_npm('left', '2.0.0')
        index.add_npm('right', '1.0.0', {'index.js': 'module.exports = "right " + require("left")\n'}, dependencies={'left': '^2'})
        index.add_npm('@scope/named', '1.2.3', {'index.mjs': 'export default "scoped"\n'}, main='index.mjs', exports='./index.mjs')
        index.add_npm('tool', '1.0.0', {'index.js': '', 'cli.js': '#!/usr/bin/env node\nconsole.log("from the command", require("left"))\n'},
                      bin={'tool': 'cli.js'}, dependencies={'left': '1'})
        yield index


@pytest.fixture(name='web', scope='module')
def running(tmp_path_factory, index):
    with serving(tmp_path_factory.mktemp('node'), *settings_of(index, 'packages.max_bytes=64MiB', 'packages.deny=denied', 'packages.allow=left, right')) as web:
        yield web


def run(web, code, language='javascript', **more):
    status, _, record = web.ask('POST', '/v1/runs', {'language': language, 'code': code, **more})
    assert status == 200, record
    return record


def completed(web, code, **more):
    record = run(web, code, **more)
    assert record['status'] == 'completed', record
    return record


def test_a_package_is_installed_and_required(web):
    record = completed(web, LEFT, packages=['left'])
    assert record['stdout'] == '2.0.0 /opt/node_modules/left/index.js\n'
    [layer] = record['layers']
    assert layer['packages'] == ['left@2.0.0'] and layer['language'] == 'javascript'
