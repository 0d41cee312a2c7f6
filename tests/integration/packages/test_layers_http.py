"""/v1/layers: layers made on request, listed and removed; two tenants, and an administrator's layer."""

import pytest

from cli import caisson
from keys import Keys, bearer
from layer_archives import archive, described, entries_of
from private_index import PrivateIndex
from test_packages import SIX, serving, settings_of


@pytest.fixture(name='index', scope='module')
def indexed():
    with PrivateIndex() as index:
        index.add_wheel('six', '1.0', {'six.py': 'VERSION = "1.0"\n'})
        index.add_wheel('six', '2.0', {'six.py': 'VERSION = "2.0"\n'})
        index.add_wheel('pathed', '1.0', {'pathed.py': '', 'evil.pth': 'import os\n'})
        index.add_file('source', '1.0', 'source-1.0.tar.gz', b'no archive')
        yield index


@pytest.fixture(name='web', scope='module')
def running(tmp_path_factory, index):
    with serving(tmp_path_factory.mktemp('layers'), *settings_of(index)) as web:
        yield web


def made(web, *packages, status=201, **headers):
    got, answered, layer = web.ask('POST', '/v1/layers', {'packages': list(packages)}, **headers)
    assert got == status or (status is None and got in (200, 201)), layer
    assert answered.get('Location') == (f'/v1/layers/{layer["id"]}' if got == 201 else None)
    return layer


def ids(web, **headers):
    status, _, answer = web.ask('GET', '/v1/layers', **headers)
    assert status == 200 and answer['truncated'] is False
    return [layer['id'] for layer in answer['layers']]


def test_a_layer_is_made_shown_used_and_removed(web, index):
    layer = made(web, 'six<2')
    assert (layer['language'], layer['packages'], layer['own'], layer['pinned'], layer['notes']) == ('python', ['six==1.0'], True, False, [])
    assert layer['size_bytes'] > 0 and layer['files'] > 0 and layer['created_at'] <= layer['used_at']
    asked = len(index.requests)
    again = made(web, 'six<2', status=200)
    assert again['id'] == layer['id'] and len(index.requests) == asked
    status, _, shown = web.ask('GET', f'/v1/layers/{layer["id"]}')
    assert status == 200 and {**shown, 'used_at': ''} == {**layer, 'used_at': ''} and layer['id'] in ids(web)
    status, _, record = web.ask('POST', '/v1/runs', {'language': 'python', 'code': SIX, 'layers': [layer['id']]})
    assert record['stdout'] == '1.0 /opt/packages/six.py\n', record
    assert web.ask('DELETE', f'/v1/layers/{layer["id"]}')[0] == 204
    assert [web.ask(method, f'/v1/layers/{layer["id"]}')[0] for method in ('GET', 'DELETE')] == [404, 404] and layer['id'] not in ids(web)
    assert made(web, 'six<2')['id'] == layer['id']


def test_notes_name_what_has_no_effect(web):
    assert 'evil.pth' in made(web, 'pathed')['notes'][0]


@pytest.mark.parametrize('request_, field, words', [
    ({}, '/packages', 'give packages, requirements or lock'), ({'packages': ['source']}, '/packages', 'no_wheel: '),
    ({'packages': ['nothing-of-the-kind']}, '/packages', 'package_not_found: '), ({'packages': ['six @ http://x/']}, '/packages', ''),
    ({'requirements': '--index-url http://x/\n'}, '/requirements', ''), ({'package': 'six'}, '/package', '')])
def test_what_cannot_be_made_is_refused(web, request_, field, words):
    status, _, problem = web.ask('POST', '/v1/layers', request_)
    assert status == 422 and problem['field'] == field and words in problem['message'], problem


@pytest.mark.parametrize('name', ['x', 'lyr_' + '0' * 32, '..', '%2e%2e%2f.staging', '.staging'])
def test_a_name_that_is_no_layer_is_not_found(web, name):
    assert [web.ask(method, f'/v1/layers/{name}')[0] for method in ('GET', 'DELETE')] == [404, 404]


def test_two_tenants_do_not_see_each_others_layers(tmp_path, index):
    keys = Keys(tmp_path)
    alice, mallory = (bearer(keys.make(name, '--tenant', name, '--scopes', 'run,read')) for name in ('alice', 'mallory'))
    reader = bearer(keys.make('reader', '--tenant', 'alice', '--scopes', 'read'))
    with serving(tmp_path, *settings_of(index), keyless=False) as web:
        layer = made(web, 'six', **alice)
        assert ids(web, **alice) == [layer['id']] and ids(web, **mallory) == []
        assert [web.ask(method, f'/v1/layers/{layer["id"]}', **mallory)[0] for method in ('GET', 'DELETE')] == [404, 404]
        assert web.ask('GET', f'/v1/layers/{layer["id"]}', **reader)[0] == 200
        assert web.ask('DELETE', f'/v1/layers/{layer["id"]}', **reader)[0] == web.ask('POST', '/v1/layers', {'packages': ['six']}, **reader)[0] == 403
        assert made(web, 'six', **mallory)['id'] != layer['id'] and ids(web, **alice) == [layer['id']]


def test_an_administrators_layer_is_for_all_and_nobody_removes_it(web, tmp_path):
    tree = {'given.py': b'VERSION = 1\n'}
    packed = archive(tmp_path / 'layer.tar', described(tree), entries_of(tree))
    done = caisson('layers', 'import', packed, env={'CAISSON_PACKAGES_CACHE_DIR': str(web.layers)})
    assert done.status == 0, done.err
    layer = done.out.split()[-1]
    status, _, shown = web.ask('GET', f'/v1/layers/{layer}')
    assert status == 200 and shown['own'] is False and layer in ids(web)
    status, _, problem = web.ask('DELETE', f'/v1/layers/{layer}')
    assert status == 403 and problem['code'] == 'permission_denied' and layer in ids(web), problem


def test_without_an_index_nothing_is_made(tmp_path):
    with serving(tmp_path / 'state') as web:
        status, _, problem = web.ask('POST', '/v1/layers', {'packages': ['six']})
        assert status == 422 and 'packages.python.index_url' in problem['message'] and ids(web) == []


def test_the_command_builds_a_layer_by_the_daemon(web, tmp_path):
    done = web.daemon.caisson('layers', 'build', 'six==2.0', *web.state)
    layer = done.out.strip()
    assert done.status == 0 and (web.layers / layer[4:] / 'tree/six.py').exists(), done
    assert layer not in ids(web)        # the command is the tenant uid:N, and ids() asks as the tenant of HTTP without a key
    (tmp_path / 'requirements.txt').write_text('# one\nsix==2.0\n')
    again = web.daemon.caisson('layers', 'build', '--json', '-r', tmp_path / 'requirements.txt', *web.state)
    assert again.status == 0 and f'"{layer}"' in again.out and '"six==2.0"' in again.out, again
    for words, text in ((['nothing-of-the-kind'], 'package_not_found'), ([], 'give packages, requirements or lock'), (['-r', tmp_path / 'none'], 'No such file'),
                        (['six; os.system("x") @ http://x'], '')):
        failed = web.daemon.caisson('layers', 'build', *words, *web.state)
        assert failed.status == 64 and text in failed.err and not failed.out, failed


def test_layers_are_listed_by_pages(web):
    wanted = {made(web, 'six<2', status=None)['id'], made(web, 'six', status=None)['id'], made(web, 'pathed', status=None)['id']}
    whole = web.ask('GET', '/v1/layers')[2]['layers']
    assert wanted <= {one['id'] for one in whole} and [one['used_at'] for one in whole] == sorted(one['used_at'] for one in whole)
    pages, cursor = [], ''
    while cursor is not None:
        page = web.ask('GET', f'/v1/layers?limit=1{cursor}')[2]
        assert len(page['layers']) <= 1 and page['truncated'] == ('next' in page)
        pages += page['layers']
        cursor = f'&cursor={page["next"]}' if 'next' in page else None
    assert [one['id'] for one in pages] == [one['id'] for one in whole]
    for query, field in (('limit=0', 'limit'), ('cursor=x', 'cursor')):
        status, _, problem = web.ask('GET', f'/v1/layers?{query}')
        assert (status, problem['field']) == (422, field)
