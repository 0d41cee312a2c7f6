"""Where tools come from: MCP servers that are good and evil, endpoints, commands, and what the configuration says of them."""

import contextlib
import http.server
import json
import os
import subprocess
import threading
import time
from pathlib import Path

import pytest

from caisson_testing import LIB
from cli import caisson

STUB = LIB / 'mcp_stub.py'


@pytest.fixture(name='config')
def _config(tmp_path):
    """config(text) or config(mcpServers=…, tools=…): a configuration file, as the environment that names it."""
    def write(text=None, **sections):
        path = tmp_path / 'caisson.yaml'
        path.write_text(text if text is not None else '\n'.join(f'{name}: {json.dumps(value)}' for name, value in sections.items()))
        return {'CAISSON_CONFIG': str(path)}
    return write


def stub(*behaviours, **more):
    return {'command': '/usr/bin/python3', 'args': [str(STUB), *behaviours], 'user': str(os.getuid()), **more}


def call(env, tool, arguments=None, *options):
    return caisson('tools', 'call', *options, tool, json.dumps(arguments or {}), env=env)


def listed(env, *args):
    answer = json.loads(caisson('tools', 'list', '--json', *args, env=env).out)
    return {f"{tool['server']}.{tool['name']}": tool for tool in answer['tools']}


@contextlib.contextmanager
def http_stub(*behaviours, log=None):
    env = {**os.environ, **({'STUB_LOG': str(log)} if log else {})}
    with subprocess.Popen(['/usr/bin/python3', str(STUB), '--http', *behaviours], stdout=subprocess.PIPE, text=True, env=env) as server:
        try:
            yield f'http://127.0.0.1:{server.stdout.readline().strip()}/mcp'
        finally:
            server.kill()


# ---- MCP over stdio ----

@pytest.mark.parametrize('era', ['legacy', 'modern'])
def test_tools_of_both_eras_are_listed_and_called(config, era):
    env = config(mcpServers={'s': stub(era)})
    assert sorted(listed(env)) == ['s.add', 's.asked', 's.echo', 's.environment', 's.exit', 's.fail', 's.grow', 's.heard', 's.image', 's.never', 's.sleep']
    assert listed(env)['s.add']['input_schema']['required'] == ['a', 'b']
    done = call(env, 's.add', {'a': 1, 'b': 2})
    assert (done.status, json.loads(done.out)) == (0, {'sum': 3})
    assert call(env, 's.echo', {'text': 'ä "\n'}).out == 'ä "\n\n'
    assert json.loads(call(env, 's.image').out) == [{'type': 'image', 'data': 'aGk=', 'mimeType': 'image/png'}]


def test_an_error_of_a_tool_and_one_of_the_protocol_are_told(config):
    env = config(mcpServers={'s': stub()})
    done = call(env, 's.fail')
    assert (done.status, done.out, done.err) == (1, '', 'caisson: it went wrong\n')
    assert 'no tool nothing (-32602)' in call(env, 's.nothing').err
    assert 'is no result of a tool' in call(env, 's.no-content').err
    assert 'asks for something besides' in call(env, 's.input').err


def test_what_a_server_asks_us_is_answered(config):
    answers = json.loads(call(config(mcpServers={'s': stub()}), 's.asked').out)
    assert answers[0] == {} and [a['code'] for a in answers[1:]] == [-32601] * 3


def test_a_server_that_dies_says_how(config):
    env = config(mcpServers={'s': stub('dies')})
    done = caisson('tools', 'check', env=env)
    assert done.status == 1 and 's: down: it ended with exit status 4; it printed last: no licence.[31m' in done.out
    done = call(config(mcpServers={'s': stub()}), 's.exit')
    told = [line for line in done.err.split('\n') if line.startswith('caisson: ')]
    assert done.status == 1 and told and 'exit status 7' in told[-1] and 'going down' not in told[-1] and 'going down' in done.err


def test_a_server_that_dies_of_an_unknown_method_is_a_legacy_one(config):
    assert call(config(mcpServers={'s': stub('dies-of-unknown')}), 's.echo', {'text': 'x'}).out == 'x\n'


def test_a_program_that_is_not_there_is_named(config):
    done = caisson('tools', 'check', env=config(mcpServers={'s': {'command': 'no-such-program'}}))
    assert done.status == 1 and 'start no-such-program: No such file or directory' in done.out


def test_a_call_ends_in_time_and_a_server_with_it(config, tmp_path):
    env = config(mcpServers={'s': stub('hangs-at-calls', env={'MARK': str(tmp_path)})})
    began = time.monotonic()
    done = call(env, 's.echo', {'text': 'x'}, '--timeout', '300ms')
    assert done.status == 125 and 'not answered within 300 ms' in done.err and time.monotonic() - began < 20
    deadline = time.monotonic() + 60
    while subprocess.run(['pgrep', '-f', f'{STUB} hangs-at-calls'], stdout=subprocess.DEVNULL, check=False).returncode == 0:
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_answers_that_nobody_asked_for_change_nothing(config):
    env = config(mcpServers={'s': stub('twice', 'junk', 'noise')})
    assert call(env, 's.echo', {'text': 'once'}).out == 'once\n'


@pytest.mark.parametrize('behaviour, words', [
    ('endless-line', 'a line of more than'), ('no-list', 'no list of tools'), ('old', 'speaks no version of the protocol')])
def test_a_server_that_cannot_be_used_is_down_with_a_reason(config, behaviour, words):
    done = caisson('tools', 'check', env=config(mcpServers={'s': stub(behaviour)}))
    assert done.status == 1 and words in done.out + done.err


@pytest.mark.parametrize('behaviour, n', [('circle', 3), ('endless-pages', 1001), ('many', 10000)])
def test_a_list_without_end_has_one(config, behaviour, n):
    assert len(listed(config(mcpServers={'s': stub(behaviour)}))) == n


def test_long_descriptions_are_cut_and_wide_schemas_left_out(config):
    tools = listed(config(mcpServers={'s': stub('long')}))
    assert list(tools) == ['s.long'] and len(tools['s.long']['description']) == 4096


def test_answers_have_bounds(config):
    assert 'a line of more than' in call(config(mcpServers={'s': stub()}), 's.huge').err


def test_an_answer_that_cannot_be_read_ends_its_call(config):
    assert 'nested deeper than' in call(config(mcpServers={'s': stub('deep')}), 's.echo', {'text': 'x'}).err
    done = call(config(mcpServers={'s': stub()}), 's.surrogate')
    assert 'the server s: not JSON' in done.err and done.status == 1
    with http_stub('sse') as url:
        assert 'not JSON' in call(config(mcpServers={'h': {'url': url}}), 'h.surrogate').err


def test_a_call_has_the_time_that_its_entry_says(config):
    env = config(mcpServers={'s': stub(timeout='300ms')}, tools={'host': {'wait': {'command': ['sleep', '100'], 'timeout': '300ms'}}})
    assert 'it has not answered within 300 ms' in call(env, 's.never').err
    assert 'it has not answered within 300 ms' in call(env, 'host.wait').err
    assert 'it has not answered within 400 ms' in call(env, 's.never', None, '--timeout', '400ms').err


def test_names_are_allowed_and_denied_by_patterns(config):
    assert sorted(listed(config(mcpServers={'s': stub(tools=['e*'])}))) == ['s.echo', 's.environment', 's.exit']
    env = config(mcpServers={'s': stub(tools={'deny': ['e*', 'image', 'grow', 'heard', 'never']}, ask=['add'])})
    assert {name: tool['ask'] for name, tool in listed(env).items()} == {'s.add': True, 's.asked': False, 's.fail': False, 's.sleep': False}
    assert 'is not allowed' in call(env, 's.echo', {'text': 'x'}).err


def test_the_environment_is_closed_and_secrets_come_from_outside(config, tmp_path):
    secret = tmp_path / 'secret'
    secret.write_text('from a file\n')
    env = config(mcpServers={'s': stub(env={'A': 'x ${env:OUTSIDE} y', 'B': f'${{file:{secret}}}', 'C': '${HOME}'})})
    seen = json.loads(call({**env, 'OUTSIDE': 'from outside', 'OTHER': 'hidden'}, 's.environment').out)
    assert seen['A'] == 'x from outside y' and seen['B'] == 'from a file' and seen['C'] == '${HOME}'
    assert set(seen) - {'LC_CTYPE'} == {'A', 'B', 'C', 'HOME', 'LANG', 'PATH'}
    done = call(env, 's.environment')
    assert done.status == 78 and 'mcpServers.s.env: the environment has no OUTSIDE' in done.err


# ---- MCP over HTTP ----

@pytest.mark.parametrize('behaviours', [(), ('sse',), ('modern',), ('modern', 'sse')])
def test_a_server_over_http(config, tmp_path, behaviours):
    with http_stub(*behaviours, log=tmp_path / 'log') as url:
        env = config(mcpServers={'s': {'type': 'http', 'url': url, 'headers': {'Authorization': 'Bearer ${env:TOKEN}'}}})
        assert json.loads(call({**env, 'TOKEN': 'abc'}, 's.add', {'a': 1, 'b': 2}).out) == {'sum': 3}
    log = [json.loads(line) for line in (tmp_path / 'log').read_text().splitlines()]
    last = [entry for entry in log if entry.get('message', {}).get('method') == 'tools/call'][0]['headers']
    assert last['Authorization'] == 'Bearer abc' and 'text/event-stream' in last['Accept']
    if 'modern' in behaviours:
        assert (last['MCP-Protocol-Version'], last['Mcp-Method'], last['Mcp-Name']) == ('2026-07-28', 'tools/call', 'add')
        assert 'Mcp-Session-Id' not in last
    else:
        assert last['MCP-Protocol-Version'] == '2025-11-25' and last['Mcp-Session-Id'].startswith('session-')


def test_a_session_that_a_server_forgot_is_begun_anew(config):
    with http_stub('forgets') as url:
        assert call(config(mcpServers={'s': {'url': url}}), 's.echo', {'text': 'again'}).out == 'again\n'


def test_a_stream_that_breaks_off_is_taken_up_again(config, tmp_path):
    with http_stub('resumes', log=tmp_path / 'log') as url:
        assert call(config(mcpServers={'s': {'url': url}}), 's.echo', {'text': 'x'}).out == 'resumed\n'


@pytest.mark.parametrize('behaviour, words', [('broken', 'HTTP status 500'), ('redirects', 'HTTP status 302')])
def test_a_server_over_http_that_cannot_be_used(config, behaviour, words):
    with http_stub(behaviour) as url:
        done = caisson('tools', 'check', env=config(mcpServers={'s': {'url': url}}))
        assert done.status == 1 and words in done.out


def test_an_answer_that_is_cut_off_is_an_error(config):
    with http_stub('cut') as url:
        assert 'no message of the protocol' in call(config(mcpServers={'s': {'url': url}}), 's.echo', {'text': 'x'}).err


def test_a_server_over_http_that_is_not_there(config):
    done = caisson('tools', 'check', env=config(mcpServers={'s': {'url': 'http://127.0.0.1:1/mcp'}}))
    assert done.status == 1 and 'cannot be reached' in done.out


# ---- endpoints ----

class Echo(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_args):
        pass

    def reply(self):
        body = self.rfile.read(int(self.headers.get('Content-Length') or 0)).decode()
        status = int(self.path.split('status=')[1]) if 'status=' in self.path else 200
        if '/binary' in self.path:
            kind, answer = 'application/octet-stream', b'\xff\xfe'
        elif '/image' in self.path:
            kind, answer = 'image/png; x=1', b'\xff\xfe'
        elif '/big' in self.path:
            kind, answer = 'text/plain', b'x' * 100_000
        else:
            kind = 'application/json'
            answer = json.dumps({'method': self.command, 'path': self.path, 'body': body, 'key': self.headers.get('X-Key')}).encode()
        self.send_response(status)
        self.send_header('Content-Type', kind)
        self.send_header('Content-Length', str(len(answer)))
        if status == 302:
            self.send_header('Location', 'http://127.0.0.1:1/')
        self.end_headers()
        self.wfile.write(answer)

    do_GET = do_POST = do_DELETE = reply


@pytest.fixture(name='echo', scope='module')
def _echo():
    with http.server.ThreadingHTTPServer(('127.0.0.1', 0), Echo) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f'http://127.0.0.1:{server.server_address[1]}'
        server.shutdown()


def endpoint(config, line, args=None, **more):
    return config(tools={'web': {'get': {'http': line, 'args': args or {}, **more}}})


def test_arguments_of_an_endpoint_stay_in_their_place(config, echo):
    env = endpoint(config, f'GET {echo}/w/{{city}}?days={{days}}&x=1', {'city': 'string', 'days': {'type': 'integer', 'optional': True}, 'q': {'optional': True}},
                   headers={'X-Key': '${env:KEY}'})
    env['KEY'] = 'k'
    answer = json.loads(call(env, 'web.get', {'city': 'a..b?c&d#e ä', 'days': 3, 'q': 'x&y=z'}).out)
    assert answer == {'method': 'GET', 'path': '/w/a..b%3Fc%26d%23e%20%C3%A4?days=3&x=1&q=x%26y%3Dz', 'body': '', 'key': 'k'}
    assert json.loads(call(env, 'web.get', {'city': 'Oslo'}).out)['path'].startswith('/w/Oslo')
    for bad in ('..', '.', ''):
        assert 'is a part of a path' in call(env, 'web.get', {'city': bad}).err
    for bad in ('../../admin', 'a/b', 'a\\..\\b', '/'):
        assert 'cannot have "/" or "\\"' in call(env, 'web.get', {'city': bad}).err
    assert 'has a NUL character' in call(env, 'web.get', {'city': 'Oslo\0/x'}).err
    assert 'has a NUL character' in call(env, 'web.get', {'city': 'Oslo', 'q': 'a\0b'}).err


def test_slashes_in_a_path_are_for_the_configuration_to_allow(config, echo):
    env = endpoint(config, f'GET {echo}/r/{{file}}', {'file': 'string'}, slashes=True)
    assert json.loads(call(env, 'web.get', {'file': 'group/project'}).out)['path'] == '/r/group%2Fproject'
    for bad in ('a/../b', '..', '../a', 'a/..', 'a\\..', '/a', 'a//b', './a'):
        assert 'is a part of a path; it cannot' in call(env, 'web.get', {'file': bad}).err, bad


def test_parameters_of_the_configuration_are_no_arguments(config, echo):
    open_schema = json.dumps({'type': 'object', 'properties': {'q': {'type': 'string'}}})
    env = config(tools={'web': {'get': {'http': f'GET {echo}/s?scope=read', 'input_schema': open_schema}}})
    assert 'has no argument scope' in call(env, 'web.get', {'q': 'x', 'scope': 'admin'}).err
    assert json.loads(call(env, 'web.get', {'q': 'x'}).out)['path'] == '/s?scope=read&q=x'
    for query in ('scope=read', 'a=1&%73cope=read', 'scope', 'a;scope=read'):
        assert 'the query has scope already' in caisson('tools', 'check', env=endpoint(config, f'GET {echo}/s?{query}', {'scope': 'string'})).err, query


def test_the_rest_of_the_arguments_is_the_body(config, echo):
    answer = json.loads(call(endpoint(config, f'POST {echo}/p/{{id}}', {'id': 'integer', 'data': 'object'}), 'web.get', {'id': 7, 'data': {'a': [1]}}).out)
    assert (answer['method'], answer['path'], json.loads(answer['body'])) == ('POST', '/p/7', {'data': {'a': [1]}})


@pytest.mark.parametrize('path, words', [
    ('/x?status=404', 'HTTP status 404: {"method"'), ('/x?status=302', 'which is not followed'), ('/binary', 'neither text nor an image'), ('/big', 'more than 65536 bytes')])
def test_answers_of_an_endpoint_that_are_errors(config, echo, path, words):
    done = call(endpoint(config, f'GET {echo}{path}', output_bytes='64KiB'), 'web.get')
    assert done.status == 1 and words in done.err


def test_an_image_of_an_endpoint_is_an_image(config, echo):
    assert json.loads(call(endpoint(config, f'GET {echo}/image'), 'web.get').out) == [{'type': 'image', 'data': '//4=', 'mimeType': 'image/png'}]


# ---- commands ----

def command(config, words, args=None, **more):
    return config(tools={'host': {'run': {'command': words, 'args': args or {}, **more}}})


def test_arguments_of_a_command_are_whole_and_no_options(config):
    env = command(config, ['printf', '%s|', 'a', '{b}', ['--c', '{c}'], '{list}'], {'b': 'string', 'c': {'optional': True}, 'list': {'type': 'array', 'optional': True}})
    assert call(env, 'host.run', {'b': '$(id) `id` ; x'}).out == 'a|$(id) `id` ; x|\n'
    assert call(env, 'host.run', {'b': 'b', 'c': '-c', 'list': ['1', 2, True]}).out == 'a|b|--c|-c|1|2|true|\n'
    assert 'would be an option' in call(env, 'host.run', {'b': '--help'}).err
    assert 'would be an option' in call(env, 'host.run', {'b': 'x', 'list': ['y', '-z']}).err
    assert call(command(config, ['printf', '%s', '--', '{b}'], {'b': 'string'}), 'host.run', {'b': '-x'}).out == '---x\n'


def test_options_do_not_come_by_way_of_lists(config):
    assert 'would be an option' in call(command(config, ['printf', '%s|', ['--c', 'x', '{b}']], {'b': 'string'}), 'host.run', {'b': '-e'}).err
    assert 'would be an option' in call(command(config, ['printf', '%s|', ['--c=x', '{b}']], {'b': 'string'}), 'host.run', {'b': '-e'}).err
    for args in ({'b': 'array'}, None):
        schema = {'args': args} if args else {'input_schema': '{"type": "object", "properties": {"b": {}}}'}
        listed_values = config(tools={'host': {'run': {'command': ['printf', '%s|', ['--include', '{b}']], **schema}}})
        assert 'would be an option' in call(listed_values, 'host.run', {'b': ['a', '--exec=evil']}).err
        assert call(listed_values, 'host.run', {'b': ['-a', 'b']}).out == '--include|-a|b|\n'
        assert 'has a NUL character' in call(listed_values, 'host.run', {'b': ['a', 'b\0c']}).err
    after_dashes = command(config, ['printf', '%s|', ['--', '{b}']], {'b': 'array'})
    assert call(after_dashes, 'host.run', {'b': ['-a', '-b']}).out == '--|-a|-b|\n'
    assert 'has a NUL character' in call(command(config, ['cat'], {'b': 'string'}, stdin='b'), 'host.run', {'b': 'b\0c'}).err


def test_standard_input_of_a_command(config):
    env = command(config, ['wc', '-c'], {'text': 'string'}, stdin='text')
    assert call(env, 'host.run', {'text': 'x' * 100_000}).out.strip() == '100000'
    assert call(command(config, ['cat']), 'host.run').out == '\n'


def test_a_command_that_fails_says_how(config):
    done = call(command(config, ['sh', '-c', 'echo out; echo why >&2; exit 3']), 'host.run')
    assert done.status == 1 and 'it ended with exit status 3: why' in done.err
    assert 'ended by signal 11' in call(command(config, ['sh', '-c', 'kill -SEGV $$']), 'host.run').err
    assert 'printed more than 65536 bytes' in call(command(config, ['cat', '/dev/zero'], output_bytes='64KiB', read=['/dev/zero']), 'host.run').err
    assert 'is no text' in call(command(config, ['printf', '\\377']), 'host.run').err


def test_a_command_has_no_rights(config, tmp_path):
    secret = tmp_path / 'secret'
    secret.write_text('x')
    program = 'grep -E "^(CapEff|CapBnd|NoNewPrivs)" /proc/self/status; cat /proc/net/dev | tail -n +3 | wc -l; cat "$0"; ls /root; touch /tmp/x; echo end'
    done = call(command(config, ['sh', '-c', program + ' 2>&1', str(secret)], user=str(os.getuid())), 'host.run')
    lines = done.out.split('\n')
    assert lines[0].split() == ['CapEff:', '0' * 16] and lines[2].split() == ['NoNewPrivs:', '1']
    if os.getuid() == 0:
        assert lines[1].split() == ['CapBnd:', '0' * 16]
    assert lines[3] == '1', 'loopback is all that there is of a network'
    if Path('/sys/kernel/security/landlock').exists() or 'Permission denied' in done.out:
        assert done.out.count('Permission denied') >= 2


def test_no_program_sees_another_or_the_host(config):
    look = ['sh', '-c', 'ls -d /proc/[0-9]* | wc -l; cat /proc/[0-9]*/environ | tr "\\0" " "']
    env = config(mcpServers={'s': stub(env={'SECRET': 'open sesame'})},
                 tools={'host': {'run': {'command': look, 'user': str(os.getuid()), 'read': ['/']}}})
    done = call(env, 'host.run')
    assert 'LANG=' in done.out and 'open sesame' not in done.out and int(done.out.split('\n')[0]) < 8


def test_a_command_reads_of_etc_what_libraries_need(config):
    if not Path('/sys/kernel/security/landlock').exists() and 'Landlock' not in caisson('doctor').out:
        pytest.skip('needs Landlock')
    done = call(command(config, ['sh', '-c', 'cat /etc/debian_version /etc/issue /etc/ssl/private 2>&1; head -c 4 /etc/passwd']), 'host.run')
    assert done.out.count('Permission denied') == 3 and 'root' in done.out


def test_what_the_host_lacks_is_not_told_to_who_calls(config):
    done = call(command(config, ['/no/such/program']), 'host.run')
    told = [line for line in done.err.split('\n') if line.startswith('caisson: ')]
    assert told == ['caisson: the program cannot be started; the log says why'] and 'start /no/such/program' in done.err


def test_a_command_ends_with_all_that_it_started(config):
    program = 'setsid sleep 4711 & sleep 4711 & sleep 4711'
    done = call(command(config, ['sh', '-c', program]), 'host.run', {}, '--timeout', '500ms')
    assert 'not answered within' in done.err
    deadline = time.monotonic() + 60
    while subprocess.run(['pgrep', '-f', '^sleep 4711$'], stdout=subprocess.DEVNULL, check=False).returncode == 0:
        assert time.monotonic() < deadline
        time.sleep(0.1)


@pytest.mark.skipif(os.getuid() != 0, reason='needs root: another user')
def test_programs_run_as_a_user_of_their_own(config):
    numbers = {'CAISSON_ENGINE_UID_FIRST': '1879048192', 'CAISSON_ENGINE_UID_COUNT': '65536'}
    env = {**config(tools={'host': {'one': {'command': ['id', '-u']}, 'two': {'command': ['id', '-u']}}}), **numbers}
    assert [call(env, f'host.{name}').out.strip() for name in ('one', 'two')] == [str(1879048192 + 65536 + n) for n in (1, 2)]
    done = caisson('tools', 'check', env={**command(config, ['id']), **numbers, 'CAISSON_ENGINE_UID_FIRST': '4294901759'})
    assert 'no number is left for it' in done.err
    assert call(command(config, ['id', '-un'], user='nobody'), 'host.run').out.strip() == 'nobody'


# ---- the configuration ----

def test_servers_come_from_a_file_as_mcp_clients_have_it(config, tmp_path):
    path = tmp_path / 'mcp.json'
    path.write_text(json.dumps({'mcpServers': {'a': {**stub(), 'autoApprove': ['x']}, 'b': {**stub(), 'disabled': True}}}))
    env = config(f'engine:\n  mcp_file: {path}\nmcpServers:\n  c: {json.dumps(stub("modern"))}\n')
    assert {name.split('.')[0] for name in listed(env)} == {'a', 'c'}


@pytest.mark.parametrize('sections, words', [
    ({'mcpServers': {'s': {}}}, 'mcpServers.s.command: it is missing'),
    ({'mcpServers': {'s s': {'command': 'x'}}}, 'no name for a server of tools'),
    ({'mcpServers': {'s': {'comand': 'x'}}}, 'did you mean command'),
    ({'mcpServers': {'s': {'command': 'x', 'zz': 1}}}, 'mcpServers.s.zz: there is no such key; known are type, transport, command, args,'),
    ({'tools': {'s': {'t': {'command': ['x'], 'zz': 1}}}}, 'network, memory'),
    ({'mcpServers': {'s': {'type': 'sse', 'url': 'http://h/'}}}, 'stdio and http are known'),
    ({'mcpServers': {'s': {'url': 'ftp://h/'}}}, 'mcpServers.s.url: it has to be http'),
    ({'mcpServers': {'s': {'url': 'http://u:hunter2@h/'}}}, 'a user name or a password'),
    ({'mcpServers': {'s': {'url': 'http://h/', 'headers': {'A B': 'x'}}}}, '"A B" is no name'),
    ({'mcpServers': {'s': {'command': 'x', 'timeout': 'soon'}}}, 'mcpServers.s.timeout: it has to be a time'),
    ({'mcpServers': {'s': {'command': 'x', 'user': 'nobody-here'}}}, 'there is no user'),
    ({'mcpServers': {'s': {'command': 'x', 'read': ['tmp']}}}, 'mcpServers.s.read: tmp has to be a file or a folder'),
    ({'mcpServers': {'s': {'command': 'x', 'protocol': '1'}}}, 'it has to be auto'),
    ({'mcpServers': {'s': {'command': 'x'}}, 'tools': {'s': {'t': {'command': ['x']}}}}, 'the name is there twice'),
    ({'tools': {'s': {'t': {}}}}, 'either http or command'),
    ({'tools': {'s': {'_t': {'command': ['x']}}}}, 'no name for a tool'),
    ({'tools': {'s': {'t': {'command': ['x', '{a}']}}}}, '{a} is none of its arguments'),
    ({'tools': {'s': {'t': {'command': ['x', '--a={a}'], 'args': {'a': 'string'}}}}}, 'an argument within a text'),
    ({'tools': {'s': {'t': {'command': ['{a}'], 'args': {'a': 'string'}}}}}, 'a program, and its arguments'),
    ({'tools': {'s': {'t': {'http': 'GET http://{a}/', 'args': {'a': 'string'}}}}}, 'not in the host'),
    ({'tools': {'s': {'t': {'http': 'LOOK http://h/'}}}}, 'METHOD URL'),
    ({'tools': {'s': {'t': {'http': 'GET http://h/{a}', 'args': {'a': {'optional': True}}}}}}, 'cannot be optional'),
    ({'tools': {'s': {'t': {'command': ['x'], 'args': {'a': 'text'}}}}}, 'string, integer, number'),
])
def test_what_is_wrong_in_the_configuration_is_named(config, sections, words):
    done = caisson('tools', 'check', env=config(**sections))
    assert done.status == 78 and words in done.err, done.err
    assert 'hunter2' not in done.err
