"""Tools that the client of a run serves, and calls that wait for a yes: events, and answers on another connection."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from cli import ROOT
from daemon import supervisors, until
from web import Web

ADD = {'name': 'add', 'description': 'Adds.', 'input_schema': {'type': 'object', 'properties': {'a': {'type': 'integer'}, 'b': {'type': 'integer'}},
                                                              'required': ['a', 'b'], 'additionalProperties': False}}


class Client:
    """A run with its events as they come; answer() is called with each call, in a thread of this test's."""

    def __init__(self, web, code, answer, language='python', limits=None, **tools):
        self.web, self.answer, self.events = web, answer, []
        body = {'language': language, 'code': code, 'tools': {'client': [ADD], **tools}, **({'limits': limits} if limits else {})}
        self.stream = web.stream('POST', '/v1/runs', body, Accept='application/x-ndjson')
        assert self.stream.status == 200, self.stream.read()
        self.thread = threading.Thread(target=self.read)
        self.thread.start()

    def read(self):
        for line in filter(bytes.strip, self.stream):
            event = json.loads(line)
            self.events.append(event)
            if event['type'] in ('tool_call', 'approval'):
                reply = self.answer(event)
                if reply is not None:
                    self.reply({'call': event['call'], **reply})

    def reply(self, *answers, **headers):
        return self.web.ask('POST', f'/v1/runs/{self.id()}/tool-results', {'results': list(answers)}, **headers)

    def id(self):
        return until(lambda: self.events)[0]['id']

    def record(self):
        self.thread.join(60)
        assert self.events[-1]['type'] == 'end', self.events[-3:]
        return self.events[-1]['record']

    def of(self, kind):
        return [event for event in self.events if event['type'] == kind]


def added(event):
    assert event['tool'] == 'add'
    return {'result': event['arguments']['a'] + event['arguments']['b']}


@pytest.mark.parametrize('language, code', [
    ('python', 'total = 0\nfor i in range(50): total = tools.add(a=total, b=i)\nprint(total)'),
    ('javascript', '(async () => { let total = 0; for (let i = 0; i < 50; i++) total = await tools.add({ a: total, b: i }); console.log(total); })()'),
    ('bash', 'total=0; for ((i = 0; i < 50; i++)); do total=$(tool add --a $total --b $i); done; echo $total')])
def test_a_program_calls_its_client_in_a_loop(web, language, code):
    client = Client(web, code, added, language, decode=True)
    record = client.record()
    assert record['stdout'] == '1225\n' and record['tools']['calls'] == 50 and len(client.of('tool_call')) == 50


def test_many_calls_at_once_are_answered_in_any_order(web):
    waiting, begun = [], threading.Event()

    def later(event):
        assert begun.wait(60)           # calls may come before there is a client to answer by
        waiting.append({'call': event['call'], **added(event)})
        if len(waiting) == 8:
            status, _, answer = client.reply(*reversed(waiting))
            assert status == 200 and answer == {'taken': 8, 'errors': []}
            waiting.clear()

    client = Client(web, '''
from concurrent.futures import ThreadPoolExecutor
with ThreadPoolExecutor(16) as pool: print(sum(pool.map(lambda i: tools.add(a=i, b=1), range(16))))
''', later, decode=True, concurrent=8)
    begun.set()
    assert client.record()['stdout'] == '136\n'


def test_arguments_are_checked_before_the_client_sees_them(web):
    client = Client(web, 'print(tools.add(a=1)); print(tools.add(a=1, b="2")); print(tools.add(a=1, b=2, c=3)); print(tools.add(a=1, b=2))', added)
    errors = [json.loads(line) for line in client.record()['stdout'].splitlines()]
    assert [one['error'] for one in errors[:3]] == ["Invalid arguments for tool 'add': needs \"b\"", "Invalid arguments for tool 'add': /b: has to be of type integer",
                                                    "Invalid arguments for tool 'add': has no property \"c\""]
    assert errors[3] == 3 and len(client.of('tool_call')) == 1


def test_an_error_of_the_client_is_one_of_the_tool(web):
    client = Client(web, 'print(tools.add(a=1, b=2))', lambda event: {'error': 'out of fingers'})
    assert json.loads(client.record()['stdout']) == {'status': 'error', 'error': 'out of fingers', 'tool': 'add'}


@pytest.mark.parametrize('answer, said', [({'approve': True}, '3'), ({'approve': False}, "The call of 'add' was refused"),
                                          ({'approve': False, 'error': 'not today'}, "The call of 'add' was refused: not today")])
def test_a_tool_that_asks_waits_for_a_yes(web, answer, said):
    client = Client(web, 'print(tools.add(a=1, b=2))', lambda event: answer if event['type'] == 'approval' else added(event), ask=['add'])
    out = json.loads(client.record()['stdout'])
    assert (str(out) if isinstance(out, int) else out['error']) == said
    assert [event['type'] for event in client.events if event['type'] in ('approval', 'tool_call')] == (['approval', 'tool_call'] if said == '3' else ['approval'])
    assert client.of('approval')[0] == {'type': 'approval', 'call': 'call_1', 'server': 'client', 'tool': 'add', 'arguments': {'a': 1, 'b': 2}}


class Closing(Client):
    def reply(self, *answers):
        return super().reply(*answers, Connection='close')


def test_an_answer_whose_connection_closes_wakes_the_stream(web):
    """Nothing else happens then that could wake it later."""
    client = Closing(web, 'print(sum(int(tools.add(a=n, b=n)) for n in range(30)))', lambda event: {'approve': True} if event['type'] == 'approval' else added(event),
                     ask=['add'], call_ms=30000)
    record = client.record()
    assert record['stdout'] == '870\n', record


def test_who_does_not_answer_is_not_waited_for(web):
    client = Client(web, 'print(tools.add(a=1, b=2))', lambda event: None, call_ms=300)
    assert "did not answer in time (0.3 s)" in client.record()['stdout'] and client.of('tool_cancelled') == [{'type': 'tool_cancelled', 'call': 'call_1'}]
    client = Client(web, 'print(tools.add(a=1, b=2))', lambda event: None, ask=['*'], ask_ms=300)
    assert 'nobody said it within 300 ms' in client.record()['stdout']


def test_an_answer_that_nobody_waits_for_is_refused(web):
    client = Client(web, 'print(tools.add(a=1, b=2))', lambda event: None)
    until(lambda: client.of('tool_call'))
    for answers, field, said in (([{'call': 'call_9', 'result': 1}], '/results/0/call', 'there is no call call_9 that waits'),
                                 ([{'call': 'call_1', 'approve': True}], '/results/0', 'call_1 waits for result or error'),
                                 ([{'call': 'call_9', 'result': 1}, {'call': 'call_1'}], '/results/1', 'call_1 waits for result or error'),
                                 ([{'call': 'call_1', 'result': 1, 'error': 'x'}], '/results/0/error', 'give one of them')):
        status, _, problem = client.reply(*answers)
        assert (status, problem['field']) == (409, field) and said in problem['detail'], problem
    status, _, answer = client.reply({'call': 'call_1', 'result': 3}, {'call': 'call_1', 'result': 4})
    assert status == 200 and answer['taken'] == 1 and answer['errors'][0]['call'] == 'call_1'
    assert client.record()['stdout'] == '3\n'
    assert client.reply({'call': 'call_1', 'result': 3})[0] == 404
    assert web.ask('POST', '/v1/runs/run_none/tool-results', {'results': []})[0] == 404


@pytest.mark.parametrize('body', [{}, {'results': [{}]}, {'results': [{'call': 1}]}, {'results': [{'call': 'x' * 100}]}, {'results': 7}])
def test_answers_that_are_none_say_where(web, body):
    client = Client(web, 'tools.add(a=1, b=2)', lambda event: None)
    assert web.ask('POST', f'/v1/runs/{client.id()}/tool-results', body)[0] == 422
    web.ask('DELETE', f'/v1/runs/{client.id()}')
    client.thread.join(30)


def test_a_run_that_ends_takes_its_calls_along(web):
    client = Client(web, 'import threading, os, time\nthreading.Thread(target=lambda: tools.add(a=1, b=2), daemon=True).start()\ntime.sleep(1.5)\nos._exit(0)', lambda event: None)
    record = client.record()
    assert record['status'] == 'completed' and record['tools'] == {'calls': 1, 'failed': 1, 'refused': 0}
    assert client.of('tool_cancelled')


def test_a_cancelled_run_and_one_out_of_time_end_while_they_wait(web):
    client = Client(web, 'tools.add(a=1, b=2)', lambda event: None)
    until(lambda: client.of('tool_call'))
    web.ask('DELETE', f'/v1/runs/{client.id()}')
    assert client.record()['status'] == 'cancelled'
    client = Client(web, 'tools.add(a=1, b=2)', lambda event: None, limits={'wall_ms': 800})
    assert client.record()['status'] == 'timeout'


def test_a_result_has_a_size(web):
    replies = iter([{'result': 'x' * 3000}, {'result': 'a\0b\U0001f600'}])
    client = Client(web, 'for _ in range(2): print(tools.add(a=1, b=2)[:110])', lambda event: next(replies), payload_bytes=2000)
    first, second = client.record()['stdout'].splitlines()
    assert 'answered with 3002 bytes; at most 2000' in first and json.loads(second) == 'a\0b\U0001f600'


WAITING = '''
import json, os, socket, struct
def ask(arguments):
    one = socket.socket(socket.AF_UNIX); one.connect(os.environ['CAISSON_TOOLS'])
    data = json.dumps({'op': 'call', 'tool': 'any', 'arguments': arguments}, separators=(',', ':')).encode()
    one.sendall(struct.pack('<I', len(data)) + data)
    return one
'''


def memory_of(web):
    return int(Path(f'/proc/{web.daemon.process.pid}/statm').read_text(encoding='ascii').split()[1]) * 4096


def test_calls_that_wait_take_a_bounded_memory(web):
    before = memory_of(web)
    client = Client(web, WAITING + '''
held = [ask({'a': [{}] * 66000}) for _ in range(30)]
print([one.recv(4000)[4:].decode() for one in held][-1])
''', lambda event: None, client=[{'name': 'any'}], call_ms=10000, concurrent=64)
    record = client.record()
    assert 'The arguments of calls that wait take too much memory' in record['stdout']
    assert 1 <= record['tools']['calls'] <= 8 and record['tools']['refused'] == 30 - record['tools']['calls']
    assert memory_of(web) - before < 300 << 20


def test_patterns_without_end_hold_nobody_up(web):
    client = Client(web, 'print([tools.call("nope")[:60] for _ in range(300)][-1])', lambda event: None,
                    client=[{'name': 'a' * 100 + str(i)} for i in range(1000)], deny=['*' + 'a' * 60 + 'b' + str(i) for i in range(1000)])
    begun = time.monotonic()
    assert web.ask('GET', '/healthz')[0] == 200
    assert "Tool 'nope' not found" in client.record()['stdout'] and time.monotonic() - begun < 20


def test_arguments_that_no_event_can_have_are_refused(web):
    client = Client(web, 'print(tools.add(a=1, text="x" * 1100000)); print(tools.add(a=1, b=2))', added, client=[{'name': 'add'}], payload_bytes=2000000)
    record = client.record()
    assert 'at most 1048576 are allowed for a tool of the client' in record['stdout'] and record['stdout'].endswith('\n3\n') and not client.of('lost')
    client = Client(web, 'print(tools.add(a=1, text="x" * 1100000))', added, client=[{'name': 'add', 'ask': True}], payload_bytes=2000000)
    assert 'at most 1048576 are allowed for a tool that needs a yes' in client.record()['stdout']


def test_tools_of_a_client_need_somebody_who_reads(web):
    status, _, record = web.ask('POST', '/v1/runs', {'language': 'python', 'code': '', 'tools': {'client': [ADD]}})
    assert status == 200 and record['status'] == 'bad_request' and record['error']['field'] == '/tools/client' or status == 422


@pytest.mark.parametrize('tool', [{'name': '__class__'}, {'name': 'a b'}, {'name': 'x', 'input_schema': [1]}])
def test_a_tool_that_cannot_be_says_so(web, tool):
    stream = web.stream('POST', '/v1/runs', {'language': 'python', 'code': '', 'tools': {'client': [tool]}}, Accept='application/x-ndjson')
    record = json.loads(stream.read().splitlines()[-1])['record']
    assert record['status'] == 'bad_request' and record['error']['field'] == '/tools/client'


def test_a_run_that_is_asked_for_later_has_its_client_too(web):
    _, _, state = web.ask('POST', '/v1/runs', {'language': 'python', 'code': 'print(tools.add(a=1, b=2))', 'tools': {'client': [ADD]}}, Prefer='respond-async')

    def calls():
        text = web.ask('GET', f'/v1/runs/{state["id"]}/events?follow=false', Accept='application/x-ndjson')[2]
        return [event for event in map(json.loads, text.splitlines()) if event['type'] == 'tool_call']
    call = until(calls)[0]
    assert web.ask('POST', f'/v1/runs/{state["id"]}/tool-results', {'results': [{'call': call['call'], 'result': 3}]})[0] == 200
    assert until(lambda: web.ask('GET', f'/v1/runs/{state["id"]}')[2].get('stdout')) == '3\n'


def test_a_persistent_sandbox_has_tools_everywhere(web):
    weather = {'server': 'home', 'tool': 'weather', 'arguments': {'city': 'Oslo'}, 'result': {'t': -3}}
    status, _, sandbox = web.ask('POST', '/v1/sandboxes', {'tools': {'replay': [weather] * 20, 'decode': True}})
    assert status == 201, sandbox
    place = f'/v1/sandboxes/{sandbox["id"]}'
    for language, code in (('python', 'print(tools.weather(city="Oslo"))'), ('python', 'import tools as t\nprint(t.weather(city="Oslo"))'),
                           ('javascript', 'console.log(JSON.stringify(tools.sync.weather({ city: "Oslo" })))'), ('bash', 'tool weather --city Oslo')):
        context = web.ask('POST', f'{place}/contexts', {'language': language})[2]
        for _ in range(2):
            record = web.ask('POST', f'/v1/contexts/{context["id"]}/runs', {'code': code})[2]
            assert record['stdout'].replace("'", '"').replace(' ', '') == '{"t":-3}\n', record['stderr']
    done = web.ask('POST', f'{place}/processes', {'command': 'tool weather --city Oslo'})[2]
    assert done['stdout'] == '{"t": -3}\n', done
    record = web.ask('POST', f'/v1/contexts/{context["id"]}/runs', {'code': '', 'tools': {'enabled': True}})[2]
    assert record['error']['field'] == '/tools'
    web.ask('DELETE', place)


def test_root_inside_has_the_same_tools(web):
    weather = {'server': 'home', 'tool': 'weather', 'arguments': {}, 'result': 'warm'}
    status, _, sandbox = web.ask('POST', '/v1/sandboxes', {'root': True, 'tools': {'replay': [weather] * 4}})
    if status != 201:
        pytest.skip(f'needs root inside: {sandbox["detail"]}')
    place = f'/v1/sandboxes/{sandbox["id"]}'
    for user in 'root', 'user':
        done = web.ask('POST', f'{place}/processes', {'command': 'tool weather', 'user': user})[2]
        assert done['stdout'] == 'warm\n', done
    web.ask('DELETE', place)


def test_tools_of_a_client_are_not_for_persistent_sandboxes(web):
    status, _, problem = web.ask('POST', '/v1/sandboxes', {'tools': {'client': [ADD]}})
    assert status == 422 and '/tools/client' in json.dumps(problem)


def test_a_persistent_sandbox_has_no_record_of_calls(web):
    status, _, problem = web.ask('POST', '/v1/sandboxes', {'tools': {'enabled': True, 'record': True}})
    assert status == 422 and problem['field'] == '/tools/record' and 'leave it out' in problem['detail'], problem


def test_the_example_shows_its_point(tmp_path):
    web = Web(tmp_path)
    done = subprocess.run([sys.executable, ROOT / 'examples/tools.py', f'http://127.0.0.1:{web.port}'], capture_output=True, text=True, check=True, timeout=120)
    one, turns = done.stdout.splitlines()
    assert one.startswith('one program: item-0 100 5') and '50 calls' in one and turns.startswith('50 turns: 50 calls')
    assert web.daemon.stop(signal.SIGTERM) == 0


@pytest.mark.parametrize('attempt', range(3))
def test_a_call_is_not_made_again_when_the_supervisor_is_killed_in_it(web, attempt):
    """The program may have begun, and a call of it came out: the run is not begun anew."""
    web.run('print(1)', language='python')
    calls = []

    def kill(event):
        calls.append(event)
        os.kill(supervisors(web.daemon.process.pid)[0], signal.SIGKILL)
    record = Client(web, 'print(tools.add(a=1, b=2))', kill).record()
    assert len(calls) == 1 and record['status'] == 'engine_error', record
