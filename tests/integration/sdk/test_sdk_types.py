"""The types of both SDKs are those of /openapi.json: scripts/sdk-types finds each difference, and writes them anew."""

import importlib.machinery
import importlib.util
import json
import subprocess
import sys
import typing

import pytest

from caisson import types
from cli import ROOT

SCRIPT = ROOT / 'scripts/sdk-types'


def run(*args):
    done = subprocess.run(['/usr/bin/python3', str(SCRIPT), *map(str, args)], capture_output=True, text=True, timeout=120, check=False)
    return done.returncode, done.stdout + done.stderr


@pytest.fixture(name='description')
def description_of(client):
    return client.request('GET', '/openapi.json')


def test_the_types_are_those_of_the_daemon(description, tmp_path):
    file = tmp_path / 'openapi.json'
    file.write_text(json.dumps(description))
    assert run('--check', '--from', file) == (0, '')


def change_type(schemas):
    schemas['run_request']['properties']['code']['type'] = 'integer'


def add_member(schemas):
    schemas['run_request']['properties']['colour'] = {'type': 'string'}


def add_status(schemas):
    schemas['run_result']['properties']['status']['enum'].append('lost')


def make_optional(schemas):
    schemas['run_result']['required'].remove('status')


def add_schema(schemas):
    schemas['extra'] = {'title': 'Extra', 'description': '', 'type': 'object', 'properties': {'a': {'type': 'string'}}}


@pytest.mark.parametrize('change', [change_type, add_member, add_status, make_optional, add_schema], ids=lambda one: one.__name__)
def test_a_change_of_the_description_is_found(description, tmp_path, change):
    change(description['components']['schemas'])
    file = tmp_path / 'openapi.json'
    file.write_text(json.dumps(description))
    status, text = run('--check', '--from', file)
    assert status == 1 and 'sdk/python/caisson/_types_' in text and 'sdk/typescript/src/types-' in text


def test_every_object_has_a_type_with_its_members(description):
    for name, schema in description['components']['schemas'].items():
        kind = getattr(types, ''.join(part.capitalize() for part in name.split('_')))
        assert set(kind.__annotations__) == set(schema['properties']), name
        if sys.version_info >= (3, 9):
            assert kind.__required_keys__ == set(schema.get('required', [])), name


def test_a_status_is_one_of_the_description(description):
    assert list(typing.get_args(types.RunResultStatus)) == description['components']['schemas']['run_result']['properties']['status']['enum']


def test_members_that_are_words_of_python_have_a_type(tmp_path):
    """No object of today has such members of both kinds; the class form of TypedDict does not allow them."""
    loader = importlib.machinery.SourceFileLoader('sdk_types', str(SCRIPT))
    script = importlib.util.module_from_spec(importlib.util.spec_from_loader('sdk_types', loader))
    sys.dont_write_bytecode, before = True, sys.dont_write_bytecode
    loader.exec_module(script)
    sys.dont_write_bytecode = before
    text = {'type': 'string'}
    schemas = {f'one_{number}': {'title': 'One', 'description': '', 'properties': {'from': text, 'raise': text, 'a': text}, 'required': required}
               for number, required in enumerate(([], ['from', 'raise', 'a'], ['from'], ['a', 'raise']))}
    (tmp_path / 'written.py').write_text('\n'.join(script.python_part(schemas, {})))
    sys.path.insert(0, str(tmp_path))
    written = importlib.import_module('written')
    sys.path.remove(str(tmp_path))
    for number, schema in enumerate(schemas.values()):
        kind = getattr(written, f'One{number}')
        assert set(typing.get_type_hints(kind)) == {'from', 'raise', 'a'} and kind.__required_keys__ == set(schema['required'])
