"""Tools of the configuration as code in a sandbox meets them: servers that die, hang and change, and many calls."""

import json
import os
import signal
from pathlib import Path

import pytest

from cli import checked, children
from daemon import Daemon, memory_of, until
from test_tool_sources import http_stub, stub
from web import Web

SECRET = 'hunter2-not-for-sandboxes'


@pytest.fixture(name='daemon')
def _daemon(tmp_path, request):
    """A daemon with the stub as server s, and w over HTTP."""
    log = tmp_path / 'http.log'
    with http_stub('sse', log=log) as url:
        config = tmp_path / 'caisson.yaml'
        config.write_text(json.dumps({
            'mcpServers': {'s': stub(env={'TOKEN': '${env:STUB_TOKEN}'}), 'w': {'url': url, 'headers': {'Authorization': 'Bearer ${env:STUB_TOKEN}'}}},
            'tools': {'host': {'word': {'command': ['printf', '%s', '{word}'], 'args': {'word': 'string'}}}}}))
        # What waits for later runs would be counted with what a run leaves.
        daemon = Daemon(tmp_path, '--set', 'engine.log_level=info', '--set', 'engine.pool_max=0', '--set', 'engine.pool_shells=0', env={'CAISSON_CONFIG': str(config), 'STUB_TOKEN': SECRET, **getattr(request, 'param', {})})
        daemon.log_path = tmp_path / 'log'
        daemon.http_log = log
        try:
            yield daemon.ready()
        finally:
            assert daemon.stop(signal.SIGTERM, signal.SIGTERM) == 0


def run(daemon, code, *options):
    done = daemon.caisson('run', '--json', '--timeout', '200s', '--tool', 's.*', '--tool', 'w.*', '--tool', 'host.*', '--tool-calls', 20000, *options, '-l', 'python', '-c', code)
    record = checked(done.out)
    assert record['status'] == 'completed', (record['error'], record['stdout'], record['stderr'])
    return record


def test_tools_of_all_kinds_are_called_in_one_run(daemon):
    record = run(daemon, """
import json
print(json.loads(tools.s.add(a=1, b=2)), tools.w.echo(text='x'), tools.host.word(word='-' if False else 'w'))
print(json.loads(tools.s.fail()))
print([t for t in tools.list_tools() if 'hidden' in t or ' ' in t])
""")
    lines = record['stdout'].splitlines()
    assert lines[0].startswith("{'sum': 3}") and 'x' in lines[0] and 'w' in lines[0]
    assert "'error': 'it went wrong'" in lines[1] and lines[2] == '[]'


def test_a_name_that_no_tool_has_is_a_warning(daemon):
    def named(record):
        return [warning['text'].partition(': ')[2] for warning in record['warnings'] if warning['code'] == 'tool_not_found']

    asks = 'print(tools.list_tools())'
    assert named(run(daemon, asks)) == [] and named(run(daemon, asks, '--tool', 'add', '--tool', 'a*')) == []
    assert named(run(daemon, asks, '--tool', 'githb.*', '--tool', 's.add', '--tool', 'ad', '--tool', 's.ad')) == ['"githb.*", "ad", "s.ad"']
    [many] = named(run(daemon, asks, *[word for i in range(200) for word in ('--tool', f'nothing{i}')]))
    assert many.startswith('"nothing0", ') and '"nothing15"' in many and len(many) < 400


def test_a_name_of_a_server_that_is_away_is_no_warning(tmp_path):
    config = tmp_path / 'caisson.yaml'
    config.write_text(json.dumps({'mcpServers': {'away': {'command': '/bin/false'}}}))
    daemon = Daemon(tmp_path, env={'CAISSON_CONFIG': str(config)}).ready()
    try:
        record = checked(daemon.caisson('run', '--json', '--tool', 'away.x', '--tool', 'other.x', '-l', 'python', '-c', 'print(tools.list_tools())').out)
        assert [warning['text'].partition(': ')[2] for warning in record['warnings']] == ['"other.x"']
    finally:
        daemon.stop()


def test_a_server_that_dies_is_an_error_and_comes_back(daemon):
    record = run(daemon, """
import json, time
print(json.loads(tools.s.exit())['error'])
end = time.time() + 100
while json.loads(tools.s.add(a=1, b=2)).get('sum') != 3:
    assert time.time() < end
    time.sleep(0.1)
print('back')
""")
    # What it printed last is for who runs it, and not for who calls it.
    assert 'exit status 7' in record['stdout'] and 'going down' not in record['stdout'] and record['stdout'].endswith('back\n')


def test_a_name_of_two_servers_is_so_while_one_of_them_is_away(daemon):
    record = run(daemon, """
import json, time
end = time.time() + 60
while 's.add' not in tools.list_tools() and time.time() < end: time.sleep(0.1)
ask = lambda: print(json.loads(tools.call('add', a=1, b=2))['error'], [t for t in tools.list_tools() if 'add' in t])
ask()
tools.s.exit()
ask()
print(json.loads(tools.w.add(a=1, b=2)))
""", '--tool-timeout', '100s')
    before, away, done = record['stdout'].splitlines()
    assert before == "Tool 'add' is on several servers. Name one: s.add, w.add ['s.add', 'w.add']", record['stdout']
    assert away.startswith("Tool 'add' is on several servers. Name one: s.add, w.add [") and "'add'" not in away.split('[')[1], record['stdout']
    assert done == "{'sum': 3}"


def test_a_call_that_nobody_waits_for_is_cancelled(daemon):
    record = run(daemon, """
import json
print(json.loads(tools.s.never())['status'])
print(tools.s.heard())
""", '--tool-timeout', '2s')
    status, heard = record['stdout'].splitlines()
    heard = json.loads(heard)
    cancelled = [ident for method, ident in heard if method == 'notifications/cancelled']
    assert status == 'error' and len(cancelled) == 1 and isinstance(cancelled[0], int)


def test_a_list_that_changes_is_read_again(daemon):
    run(daemon, 'tools.s.grow()')
    until(lambda: 'grown' in run(daemon, 'print(tools.list_tools())')['stdout'])


def test_secrets_are_nowhere_that_code_or_people_see(daemon):
    record = run(daemon, """
import os, subprocess
print(dict(os.environ), subprocess.run(['ps', 'auxe'], capture_output=True).stdout, tools.list_tools(), tools.get_tool_info('s.add'))
tools.w.echo(text='x')
tools.s.exit()
""")
    assert SECRET not in json.dumps(record) and SECRET not in Path(daemon.log_path).read_text()
    assert f'Bearer {SECRET}' in Path(daemon.http_log).read_text(), 'it was there to be seen'
    status = daemon.caisson('config', 'show').out
    assert SECRET not in status


def test_ten_thousand_calls_leave_nothing(daemon):
    pid = daemon.process.pid
    call = 'for i in range({}):\n    assert "3" in tools.s.add(a=1, b=2)\n'
    run(daemon, call.format(1000) + 'tools.w.add(a=1, b=2)\ntools.host.word(word="x")')
    files, memory, below = len(os.listdir(f'/proc/{pid}/fd')), memory_of(pid), len(children(pid))
    record = run(daemon, call.format(10000) + 'for i in range(200):\n    tools.w.add(a=1, b=2)\n    tools.host.word(word="x")')
    assert record['tools']['calls'] == 10400
    until(lambda: len(os.listdir(f'/proc/{pid}/fd')) <= files + 4)
    assert memory_of(pid) < memory + (8 << 20) and len(children(pid)) <= below + 2


def test_a_reload_says_that_servers_need_a_restart(daemon):
    config = Path(daemon.env['CAISSON_CONFIG'])
    config.write_text(json.dumps({'mcpServers': {}}))
    daemon.process.send_signal(signal.SIGHUP)
    until(lambda: 'mcpServers and tools stay as they were' in Path(daemon.log_path).read_text())
    assert 'sum' in run(daemon, 'print(tools.s.add(a=1, b=2))')['stdout']


def test_programs_of_tools_end_with_a_daemon_that_is_killed(tmp_path):
    config = tmp_path / 'caisson.yaml'
    config.write_text(json.dumps({'mcpServers': {'s': stub('marked-for-death')}}))
    daemon = Daemon(tmp_path, env={'CAISSON_CONFIG': str(config)}).ready()

    def servers():
        found = []
        for entry in Path('/proc').iterdir():
            try:
                if entry.name.isdigit() and b'marked-for-death' in (entry / 'cmdline').read_bytes():
                    found.append(entry.name)
            except OSError:
                pass
        return found
    until(servers)
    daemon.stop()
    until(lambda: not servers())


def test_how_far_a_call_is_comes_with_the_events_of_a_run(tmp_path):
    config = tmp_path / 'caisson.yaml'
    config.write_text(json.dumps({'mcpServers': {'s': stub('tells')}}))
    web = Web(tmp_path, '--config', str(config))
    try:
        stream = web.stream('POST', '/v1/runs', {'language': 'python', 'code': 'print(tools.s.sleep(s=0))', 'tools': {'allow': ['s.*']}}, Accept='application/x-ndjson')
        events = [json.loads(line) for line in stream if line.strip()]
        assert events[-1]['record']['stdout'] == '"slept"\n'
        assert [event for event in events if event['type'] == 'tool_progress'] == [
            {'type': 'tool_progress', 'call': 'call_1', 'server': 's', 'tool': 'sleep', 'progress': 1.0, 'total': 2.0, 'message': 'half'}]
    finally:
        assert web.daemon.stop(signal.SIGTERM) == 0
