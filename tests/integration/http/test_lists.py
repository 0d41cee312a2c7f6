"""Lists of the HTTP interface, page after page."""

import signal

import pytest

from daemon import until
from web import Web


@pytest.fixture(name='web', scope='module')
def running(tmp_path_factory):
    web = Web(tmp_path_factory.mktemp('lists'))
    yield web
    assert web.daemon.stop(signal.SIGTERM) == 0


def pages_of(ask, path, name, limit):
    """The ids of a list, page after page."""
    found, cursor = [], ''
    while cursor is not None:
        status, _, page = ask('GET', f'{path}?limit={limit}' + (f'&cursor={cursor}' if cursor else ''))
        assert status == 200 and len(page[name]) <= limit
        found.append([one.get('id') for one in page[name]])
        cursor = page.get('next')
    return found


def start_kept(web):
    return web.ask('POST', '/v1/runs', {'language': 'bash', 'code': ':'}, Prefer='respond-async')[2]['id']


def test_a_list_of_runs_is_read_by_pages_while_new_ones_come(web):
    made = [start_kept(web) for _ in range(7)]
    page = web.ask('GET', '/v1/runs?limit=3')[2]
    assert [one['id'] for one in page['runs']] == made[:3:-1]
    made += [start_kept(web) for _ in range(2)]
    gone = made[4]                                       # the last one of that page, and the cursor is behind it
    until(lambda: web.ask('DELETE', f'/v1/runs/{gone}')[0] in (204, 404))
    page = web.ask('GET', f'/v1/runs?limit=3&cursor={page["next"]}')[2]
    assert [one['id'] for one in page['runs']] == made[3:0:-1]
    page = web.ask('GET', f'/v1/runs?limit=1000&cursor={page["next"]}')[2]
    assert page['runs'][0]['id'] == made[0] and 'next' not in page
    assert sum(pages_of(web.ask, '/v1/runs', 'runs', 2), []) == [one['id'] for one in web.ask('GET', '/v1/runs')[2]['runs']]


def test_every_list_has_pages_of_the_same_form(web):
    sandbox = web.ask('POST', '/v1/sandboxes', {})[2]['id']
    web.ask('POST', '/v1/sandboxes', {})
    for _ in range(3):
        web.ask('POST', f'/v1/sandboxes/{sandbox}/contexts', {'language': 'bash'})
        web.ask('POST', f'/v1/sandboxes/{sandbox}/processes', {'command': ':'})
        web.ask('POST', '/v1/sessions', {'language': 'bash'})
        web.ask('POST', '/v1/files?name=a', b'x')
        start_kept(web)
    for number in range(3):
        web.ask('PUT', f'/v1/workspaces/w{number}/file?path=a', b'x')
    paths = web.ask('GET', '/openapi.json')[2]['paths']
    elsewhere = {'/v1/keys', '/v1/layers', '/v1/images'}          # empty here; tests of their own read these by pages
    lists = [path for path, kinds in paths.items() if any(one['name'] == 'cursor' for one in kinds.get('get', {}).get('parameters', []))]
    assert elsewhere <= set(lists) and len(lists) == 7 + len(elsewhere)
    lists = [path for path in lists if path not in elsewhere]
    for path in lists:
        target = path.replace('{id}', sandbox)
        name = next(name for name, value in web.ask('GET', target)[2].items() if isinstance(value, list))
        whole = [one['id'] for one in web.ask('GET', target)[2][name]]
        assert len(whole) >= 3, path
        for limit in (1, 2, len(whole), 1000):
            pages = pages_of(web.ask, target, name, limit)
            assert sum(pages, []) == whole and len(pages) == max(1, -(-len(whole) // limit)), path
        assert web.ask('GET', f'{target}?limit=2&cursor=1')[2].get(name) is not None
        for query, field in (('limit=0', 'limit'), ('limit=1001', 'limit'), ('limit=x', 'limit'), ('limit=-1', 'limit'), ('limit=', 'limit'),
                             ('cursor=x', 'cursor'), ('cursor=', 'cursor'), ('cursor=1.', 'cursor'), ('cursor=1.2.3', 'cursor'), ('cursor=-1', 'cursor'),
                             ('cursor=99999999999999999999', 'cursor')):
            status, _, problem = web.ask('GET', f'{target}?{query}')
            assert (status, problem['field']) == (422, field), query
    for session in web.ask('GET', '/v1/sessions')[2]['sessions']:
        web.ask('DELETE', '/v1/sessions/' + session['id'])
    for one in web.ask('GET', '/v1/sandboxes')[2]['sandboxes']:
        web.ask('DELETE', '/v1/sandboxes/' + one['id'])
