"""Code that calls tools: what it sees in three languages, what it may not, and what hostile bytes do to the broker.

Calls of an earlier run are replayed here, so that nothing outside is needed.  test_tools_http.py has tools that the client serves.
"""

import json
import random
import subprocess
from pathlib import Path

import jsonschema
import pytest

from cli import BUILD, caisson, run

OSLO = {'server': 'home', 'tool': 'weather', 'arguments': {'city': 'Oslo'}, 'result': {'t': -3}}
AWAY = {'server': 'away', 'tool': 'weather', 'arguments': {}, 'error': 'no such city'}
TIME = {'server': 'home', 'tool': 'get-time', 'arguments': {}, 'result': '12:00'}

# What a stub is made of, for programs that do not want one.
RAW = '''
import json, os, select, socket, struct, threading, time
PATH = os.environ['CAISSON_TOOLS']
def connect():
    one = socket.socket(socket.AF_UNIX); one.connect(PATH); return one
def read(one):
    data = b''
    try:
        while piece := one.recv(65536): data += piece
    except OSError as error: return type(error).__name__
    return json.loads(data[4:]) if data else None
def raw(data, size=None):
    one = connect()
    try: one.sendall(struct.pack('<I', len(data) if size is None else size) + data)
    except OSError: pass
    return read(one)
'''


def replayed(code, recording, language='python', **tools):
    request = {'language': language, 'code': code, 'limits': {'wall_ms': 100000}, 'tools': {'replay': recording, 'record': True, **tools}}
    record = run('--request', '-', stdin=json.dumps(request).encode())
    assert record['status'] != 'bad_request', record['error']
    return record


def lines(record):
    assert record['status'] == 'completed', record['stderr']
    return record['stdout'].splitlines()


# ---- what code sees ----

DASHED = [{'server': server, 'tool': tool, 'arguments': {}, 'result': f'{server} {tool}'} for server, tool in
          (('home', 'get-time'), ('my-home', 'get.day'), ('my-home', 'a_b'), ('my-home', 'x-y'), ('other', 'x.y'), ('other', 'x_y'))]


@pytest.mark.parametrize('name, python, said', [
    ('get_time', 'get_time', 'home get-time'), ('get_day', 'get_day', 'my-home get.day'), ('a_b', 'a_b', 'my-home a_b'), ('my_home.get_day', 'my_home.get_day', 'my-home get.day'),
    ('my_home.x_y', 'my_home.x_y', 'my-home x-y'), ('other.x_y', 'other.x_y', 'other x_y'), ('x_y', 'x_y', 'other x_y'), ('home.get_time', 'home.get_time', 'home get-time'),
    ('no_such', 'no_such', 'not found'), ('"get-time"', None, 'home get-time'), ('"my-home"."x-y"', None, 'my-home x-y'), ('home."get-time"', None, 'home get-time')])
def test_a_name_that_is_no_identifier_is_found_by_one(name, python, said):
    """JavaScript finds what Python finds, later and at once."""
    path = ''.join(f'[{part}]' if part.startswith('"') else f'.{part}' for part in name.split('.'))
    record = replayed(f'console.log(await tools{path}()); console.log(tools.sync{path}())', DASHED * 2, 'javascript')
    assert len(lines(record)) == 2 and all(said in line for line in lines(record)), record['stdout']
    if python:
        assert said in replayed(f'print(tools.{python}())', DASHED)['stdout']


def test_python_calls_a_tool_by_every_name_that_it_has():
    record = replayed('''
print(tools.weather(city='Oslo'), tools.home.weather(city='Oslo'), tools.call('weather', city='Oslo'), tools.call('home.weather', {'city': 'Oslo'}))
print(tools.call(server='home', tool='weather', city='Oslo'), tools.call('home', 'weather', city='Oslo'), tools.get_time())
print(tools.list_tools(), tools, tools.get_tool_info('weather')['server'])
''', [OSLO] * 6 + [TIME])
    assert lines(record) == [' '.join(['{"t": -3}'] * 4), '{"t": -3} {"t": -3} "12:00"', "['get-time', 'weather'] <tools: 2: get-time, weather> home"]
    assert record['tools']['calls'] == 7 and len(record['tools']['list']) == 7 and record['tools']['list'][0]['result'] == {'t': -3}


def test_errors_are_values_that_name_the_tool():
    record = replayed('import json\nprint(tools.nope())\nprint(tools.weather())\nprint(json.loads(tools.away.weather())["error"])', [OSLO, AWAY])
    first, second, third = lines(record)
    assert json.loads(first) == {'status': 'error', 'error': "Tool 'nope' not found. Available: away.weather, home.weather", 'tool': 'nope'}
    assert json.loads(second)['error'] == "Tool 'weather' is on several servers. Name one: away.weather, home.weather"
    assert third == 'no such city'
    assert record['tools'] | {'list': []} == {'calls': 1, 'failed': 1, 'refused': 2, 'list': []}


def test_values_and_exceptions_on_request():
    code = '''
print(tools.home.weather(city='Oslo')['t'])
try: tools.away.weather()
except tools.ToolError as error: print(error, error.tool)
'''
    assert lines(replayed(code, [OSLO, AWAY], decode=True, **{'raise': True})) == ['-3', 'no such city weather']


def test_exceptions_of_what_there_is_to_know():
    code = '''
try: tools.get_tool_info('nix')
except tools.ToolError as error: print(error, error.tool)
print(tools.get_tool_info('weather')['tool'])
'''
    assert lines(replayed(code, [OSLO], **{'raise': True})) == ["Tool 'nix' not found. Available: weather nix", 'weather']
    code = 'try { tools.sync.getToolInfo("nix"); } catch (e) { console.log(e.message, e.tool); }'
    assert lines(replayed(code, [OSLO], 'javascript', **{'raise': True})) == ["Tool 'nix' not found. Available: weather nix"]


def test_javascript_writes_tools_into_a_text():
    assert lines(replayed('console.log(`${tools} ${tools.weather} ${tools.home.weather}`)', [OSLO], 'javascript')) == [
        '<tools: 1: weather> <tool weather> <tool home.weather>']


@pytest.mark.parametrize('argument', [2 ** 70, 12345678901234567890, -2 ** 70])
def test_a_number_that_cannot_be_passed_on_is_named(argument):
    failure = json.loads(lines(replayed(f'print(tools.weather(city={argument}))', [OSLO]))[0])
    assert failure['tool'] == 'weather' and f': {argument} is a number of more than 64 bits; give it as a text' in failure['error'], failure


def test_javascript_calls_later_and_at_once():
    code = '''(async () => {
  console.log(await tools.weather({ city: 'Oslo' }), tools.sync.home.weather({ city: 'Oslo' }), await tools.call('weather', { city: 'Oslo' }));
  console.log(tools.sync.call({ server: 'home', tool: 'weather', arguments: { city: 'Oslo' } }), await tools['get-time']());
  console.log(await tools.listTools(), tools.sync.list_tools(), (await tools.get_tool_info('weather')).server, tools);
  console.log((await Promise.all(Array(500).fill(0).map(() => tools.nope()))).length, typeof tools._x, JSON.parse(tools.sync.nope()).status);
})();'''
    one = '{"t":-3}'
    assert lines(replayed(code, [OSLO] * 4 + [TIME], 'javascript')) == [
        f'{one} {one} {one}', f'{one} "12:00"', "[ 'get-time', 'weather' ] [ 'get-time', 'weather' ] home <tools: 2: get-time, weather>", '500 undefined error']


def test_exceptions_of_javascript():
    code = 'try { tools.sync.away.weather(); } catch (e) { console.log(e.name, e.message, e.tool); } console.log(tools.sync.weather === undefined);'
    assert lines(replayed(code, [AWAY], 'javascript', decode=True, **{'raise': True})) == ['ToolError no such city weather', 'false']


def test_bash_has_a_command():
    record = replayed('tool --list; tool weather --city Oslo; tool weather \'{"city": "Oslo"}\'; echo \'{"city":"Oslo"}\' | tool weather -; tool get-time; tool nope; echo $?',
                      [OSLO] * 3 + [TIME], 'bash')
    assert lines(record) == ['get-time', 'weather'] + ['{"t": -3}'] * 3 + ['12:00', '1']
    assert record['stderr'] == "tool: Tool 'nope' not found. Available: get-time, weather\n"


def test_a_recording_of_bash_is_found_by_what_its_texts_say():
    add = {'server': 'sums', 'tool': 'add', 'arguments': {'a': 1, 'b': -2.5, 'of': ['x'], 'name': '2x'}, 'result': -1.5}
    text = {**add, 'arguments': {'a': '1'}, 'result': 'a text'}
    record = replayed("tool add --a 1 --b -2.5 --of '[\"x\"]' --name 2x; tool add --a 1; tool add --a 2; echo $?", [text, add], 'bash')
    assert lines(record) == ['-1.5', 'a text', '1'] and "no call of 'add'" in record['stderr']


def test_threads_forks_and_children_call():
    record = replayed('''
import os, subprocess, sys, threading
results = []
threads = [threading.Thread(target=lambda: results.append(tools.weather(city='Oslo'))) for _ in range(20)]
for one in threads: one.start()
for one in threads: one.join()
print(results == ['{"t": -3}'] * 20, flush=True)
if os.fork() == 0:
    print(tools.weather(city='Oslo'), flush=True); os._exit(0)
os.wait()
subprocess.run([sys.executable, '-c', "import tools; print(tools.weather(city='Oslo'))"], check=True)
subprocess.run(['tool', 'weather', '--city', 'Oslo'], check=True)
''', [OSLO] * 23)
    assert lines(record) == ['True'] + ['{"t": -3}'] * 3


def test_the_profile_has_json_and_tools_at_hand():
    request = {'language': 'python', 'code': 'print(json.dumps([1]), __name__, __file__, tools.list_tools())\n1/0', 'profile': 'tools'}
    record = run('--request', '-', stdin=json.dumps(request).encode())
    assert record['stdout'] == '[1] __main__ /home/user/main.py []\n' and record['error']['line'] == 2
    assert '/home/user/main.py", line 2' in record['stderr']
    assert record['limits']['pids'] == 256 and record['limits']['output_bytes'] == 200000 and record['limits']['memory_bytes'] == 512 << 20
    assert record['boundary']['network'] == 'none' and record['tools']['calls'] == 0


def test_a_run_without_tools_has_none():
    record = run('-l', 'python', '-c', 'import os\nprint("tools" in globals(), "CAISSON_TOOLS" in os.environ, os.listdir("/dev/shm"))')
    assert record['stdout'] == 'False False []\n' and 'tools' not in record


# ---- bounds ----

def test_calls_are_counted():
    record = replayed('print([tools.weather(city="Oslo")[:4] for _ in range(7)])\nprint(tools.weather(city="Oslo"))', [OSLO] * 20, calls=5)
    assert record['stdout'].splitlines()[0].count('{"t"') == 5
    assert 'Tool call limit exceeded: 5 calls are allowed' in record['stdout'] and record['tools']['refused'] == 3


def test_the_201st_call_is_refused_where_nothing_else_is_said():
    record = replayed('print(sum("-3" in tools.weather(city="Oslo") for _ in range(201)))', [OSLO] * 201)
    assert lines(record) == ['200'] and record['tools']['calls'] == 200 and record['tools']['refused'] == 1


def test_arguments_and_results_have_a_size():
    big = {**OSLO, 'arguments': {}, 'result': 'x' * 300}
    record = replayed(RAW + '''
print(tools.weather(text='x' * 300)); print(tools.weather(text='x' * 100000)[:100])
print(raw(b'{"op":"list"}', 200 << 20)['error'][:60])
''', [big], payload_bytes=200)
    assert 'The arguments have 311 bytes; at most 200 are allowed (payload_bytes)' in record['stdout']
    assert record['stdout'].count('are allowed') >= 2 and record['tools']['calls'] == 0


def test_a_replayed_result_has_a_size_too():
    assert "Tool 'weather' answered with 302 bytes; at most 200 are allowed (payload_bytes)" in replayed(
        'print(tools.weather())', [{**OSLO, 'arguments': {}, 'result': 'x' * 300}], payload_bytes=200)['stdout']


def test_a_denied_tool_does_not_exist():
    record = replayed('print(tools.weather(city="Oslo")); print(tools.list_tools())', [OSLO, TIME], deny=['*.weather'])
    assert "Tool 'weather' not found. Available: get-time" in record['stdout'] and "['get-time']" in record['stdout']


@pytest.mark.parametrize('tools, field', [
    ({'allow': ['a b']}, '/tools/allow'), ({'enabled': True, 'deny': ['']}, '/tools/deny'), ({'calls': -1}, '/tools/calls'), ({'payload_bytes': 1}, '/tools/payload_bytes'),
    ({'concurrent': 65}, '/tools/concurrent'), ({'replay': [{'server': 'a.b', 'tool': 'x', 'arguments': {}}]}, '/tools/replay'),
    ({'replay': [{'server': 'a', 'tool': '__class__', 'arguments': {}}]}, '/tools/replay'),
    ({'replay': [{'server': 'a', 'tool': 'x', 'arguments': []}]}, '/tools/replay'), ({'client': [{'name': 'x'}]}, '/tools/client'), ({'nope': 1}, '/tools/nope')])
def test_a_request_that_cannot_be_says_where(tools, field):
    record = run('--request', '-', stdin=json.dumps({'language': 'python', 'code': '', 'tools': tools}).encode())
    assert record['status'] == 'bad_request' and record['error']['field'] == field


def test_the_host_backend_has_no_tools():
    record = run('--request', '-', '--backend', 'host', '--set', 'engine.allow_host=true',
                 stdin=json.dumps({'language': 'python', 'code': '', 'tools': {'enabled': True}}).encode())
    assert record['status'] == 'bad_request' and record['error']['field'] == '/tools'


# ---- attacks ----

def test_names_of_the_language_are_no_tools():
    record = replayed(RAW + '''
for name in '_x', '_call':
    try: getattr(tools, name); print('there')
    except AttributeError as error: print(error)
print(raw(json.dumps({'op': 'call', 'tool': '__class__', 'arguments': {}}).encode())['error'][:40])
print([name for name in dir(type(tools)) if 'ource' in name or 'globals' in name])
''', [OSLO])
    assert lines(record)[:3] == ["'_x' is no tool: names that begin with _ are refused", "'_call' is no tool: names that begin with _ are refused",
                                 "Tool '__class__' not found. Available: w"]


def test_inside_there_is_a_socket_and_nothing_else():
    code = '''
import os
print(sorted(name for name in os.environ if 'TOOL' in name or 'KEY' in name or 'TOKEN' in name))
print(open('/proc/net/route').read().count(chr(10)), os.listdir('/dev/shm'))
listening = [line.split()[-1] for line in open('/proc/net/unix') if line.split()[3] == '00010000']
print(listening)
print([fd for fd in os.listdir('/proc/self/fd') if os.path.exists(f'/proc/self/fd/{fd}') and 'caisson' in os.readlink(f'/proc/self/fd/{fd}')])
names = {name for name in vars(type(tools)) if not name.startswith('__')}
print(sorted(names), vars(tools))
'''
    out = lines(replayed(code, [OSLO]))
    assert out == ["['CAISSON_TOOLS']", "1 ['.caisson-tools']", "['/dev/shm/.caisson-tools']", '[]', "['ToolError', 'call', 'get_tool_info', 'list_tools'] {}"]


HOSTILE = ['b""', 'b"x"', 'b"null"', 'b"[]"', 'b"{}"', r"""b'{"op":1}'""", r"""b'{"op":"call"}'""", r"""b'{"op":"call","tool":1,"arguments":{}}'""",
           r"""b'{"op":"call","tool":"weather","arguments":[]}'""", r"""b'{"op":"call","tool":"weather","server":7,"arguments":{}}'""",
           r"""b'{"op":"call","tool":"\\u0000","arguments":{}}'""", r"""b'{"op":"call","tool":"weather","arguments":{"a":"\\ud800"}}'""",
           r"""b'{"op":"call","tool":"weather","arguments":{"a":"\xff"}}'""", r"""b'{"op":"call","tool":"' + b'w' * 1000 + b'","arguments":{}}'""",
           r"""b'{"op":"call","tool":"weather","arguments":{"a":' + b'[' * 150 + b']' * 150 + b'}}'""", r"""b'[' * 100000""",
           r"""b'{"op":"call","tool":"weather","arguments":{"city":"Oslo","a":1}}'""", 'os.urandom(5000)', r"""b'{"op":"info","tool":"%s%n"}'"""]


def test_hostile_messages_are_refused_and_nothing_else_happens():
    code = RAW + f'for message in [{", ".join(HOSTILE)}]:\n    answer = raw(message)\n    print(answer["ok"], len(answer["error"]) < 5000)\nprint(tools.weather(city="Oslo"))\n'
    out = lines(replayed(code, [OSLO]))
    assert out == ['False True'] * len(HOSTILE) + ['{"t": -3}']


def test_half_a_message_and_none_hold_nobody_up():
    code = RAW + '''
idle = [connect() for _ in range(60)]
for one in idle[:30]: one.sendall(b'\\x10\\x00')
for one in idle[30:]: one.sendall(struct.pack('<I', 50) + b'{"op"')
print(tools.weather(city='Oslo'))
begun = time.monotonic()
idle += [connect() for _ in range(8)]       # all places are taken now
print(tools.weather(city='Oslo'), time.monotonic() - begun < 60)
print({read(one) for one in idle} <= {None, 'ConnectionResetError'})
'''
    assert lines(replayed(code, [OSLO] * 2)) == ['{"t": -3}', '{"t": -3} True', 'True']


def test_ten_thousand_connections_and_a_run_that_goes_on():
    code = RAW + '''
failed = 0
for _ in range(10000):
    try: connect().close()
    except OSError: failed += 1
print(failed, tools.weather(city='Oslo'))
'''
    assert lines(replayed(code, [OSLO])) == ['0 {"t": -3}']


def test_after_very_many_requests_nobody_listens():
    code = RAW + '''
n = 0
try:
    while n < 20000:
        connect().close(); n += 1
except OSError as error: print(n, type(error).__name__)
print(tools.weather(city='Oslo')[:60])
'''
    out = lines(replayed(code, [OSLO], calls=1))
    number, name = out[0].split()
    # Some waited to be accepted: one more than the backlog, for Linux takes it while its queue is not longer than that.
    assert 10003 <= int(number) <= 10003 + 1025 and name == 'ConnectionRefusedError'
    assert out[1].startswith('{"status": "error", "error": "Tools cannot be reached: ')


def test_a_fork_bomb_of_calls_is_held_by_its_own_sandbox():
    code = RAW + '''
children = 0
for _ in range(200):
    try: pid = os.fork()
    except OSError: break
    if pid == 0:
        for _ in range(50): raw(b'{"op":"call","tool":"weather","arguments":{"city":"Oslo"}}')
        os._exit(0)
    children += 1
for _ in range(children): os.wait()
print(children > 20, tools.list_tools())
'''
    record = replayed(code, [OSLO] * 300)
    assert lines(record) == ["True ['weather']"] and record['tools']['calls'] == 200


def test_who_does_not_read_his_answer_ends_with_his_run():
    big = {**OSLO, 'arguments': {}, 'result': 'x' * 1000000}
    record = replayed(RAW + '''
held = [connect() for _ in range(20)]
for one in held: one.sendall(struct.pack('<I', 41) + b'{"op":"call","tool":"weather","arguments":{}}'[:41])
print(tools.list_tools())
''', [big] * 20, payload_bytes=2000000)
    assert lines(record) == ["['weather']"]


def test_answers_that_nobody_reads_take_a_bounded_room():
    big = {**OSLO, 'arguments': {}, 'result': 'x' * 10000000}
    record = replayed(RAW + '''
held = [connect() for _ in range(8)]
for one in held: one.sendall(struct.pack('<I', 45) + b'{"op":"call","tool":"weather","arguments":{}}')
for one in held: select.select([one], [], [])      # what is to be refused has been by then
answers = [read(one) for one in held]
print(sum(one['ok'] for one in answers), [one['error'][-16:] for one in answers if not one['ok']])
''', [big] * 8, payload_bytes=16000000, record=False)
    assert lines(record) == ["6 ['read them first', 'read them first']".replace("'read", "' read")]


# ---- schemas, beside somebody else's reading of them ----

SUITE = Path('/usr/share/json-schema-test-suite/tests/draft7')
# What is let pass (docs/design/tools.md), and what 2020-12 has changed.
OTHERWISE = {('definitions.json', 'invalid definition'), ('ref.json', 'remote ref, containing refs itself'), ('ref.json', 'Recursive references between schemas'),
             ('ref.json', 'ref overrides any sibling keywords'), ('refRemote.json', 'remote ref'), ('refRemote.json', 'fragment within remote ref'),
             ('refRemote.json', 'ref within remote ref'), ('refRemote.json', 'base URI change'), ('refRemote.json', 'base URI change - change folder'),
             ('refRemote.json', 'base URI change - change folder in subschema'), ('refRemote.json', 'root ref in remote ref')}


def answers(pairs):
    done = subprocess.run([BUILD / 'tests/unit/schema-answers'], input=''.join(json.dumps(pair) + '\n' for pair in pairs), capture_output=True, text=True, check=True)
    ours = [line.startswith('yes') for line in done.stdout.splitlines()]
    assert len(ours) == len(pairs)
    return ours


@pytest.mark.skipif(not SUITE.exists(), reason='needs json-schema-test-suite: the official tests of JSON Schema')
def test_the_official_suite_agrees_but_for_what_is_known():
    names, pairs, valid = [], [], []
    for path in sorted(SUITE.glob('*.json')):
        for group in json.loads(path.read_text(encoding='utf-8')):
            for test in group['tests']:
                names.append((path.name, group['description']))
                pairs.append({'schema': group['schema'], 'value': test['data']})
                valid.append(test['valid'])
    assert len(pairs) > 400
    assert {name for name, ours, theirs in zip(names, answers(pairs), valid) if ours != theirs} == OTHERWISE


WORDS = {'type': ['string', 'integer', 'number', 'object', 'array', 'boolean', 'null', ['string', 'null'], ['integer', 'array']],
         'minimum': [0, 1.5], 'maximum': [2, 10], 'exclusiveMinimum': [0], 'exclusiveMaximum': [3], 'multipleOf': [2, 0.5], 'minLength': [1, 3], 'maxLength': [2, 4],
         'pattern': ['^a', 'b$', '[0-9]+'], 'minItems': [1], 'maxItems': [2], 'uniqueItems': [True], 'required': [['a'], ['a', 'b']], 'minProperties': [1],
         'maxProperties': [1], 'const': [1, 'a', {'a': 1}, None], 'enum': [[1, 'a'], [[], {}, None]], 'dependentRequired': [{'a': ['b']}]}
BELOW = {'not': 1, 'contains': 1, 'items': 1, 'additionalProperties': 1, 'propertyNames': 1, 'if': 1, 'then': 1, 'else': 1, 'anyOf': 2, 'allOf': 2, 'oneOf': 2,
         'prefixItems': 2, 'properties': 3, 'patternProperties': 4, 'dependentSchemas': 3}


def some_schema(dice, depth=0):
    if dice.random() < 0.1:
        return dice.random() < 0.6
    schema = {}
    for word in dice.sample(sorted(WORDS), dice.randint(0, 3)):
        schema[word] = dice.choice(WORDS[word])
    for word in dice.sample(sorted(BELOW), dice.randint(0, 2) if depth < 3 else 0):
        def below():
            return some_schema(dice, depth + 1)
        schema[word] = {1: below, 2: lambda: [below() for _ in range(dice.randint(1, 3))], 3: lambda: {name: below() for name in dice.sample('abc', 2)},
                        4: lambda: {'^a': below(), 'b': below()}}[BELOW[word]]()
    return schema


def some_value(dice, depth=0):
    kind = dice.randrange(8 if depth < 3 else 6)
    if kind == 6:
        return [some_value(dice, depth + 1) for _ in range(dice.randint(0, 3))]
    if kind == 7:
        return {name: some_value(dice, depth + 1) for name in dice.sample(['a', 'b', 'c', 'ab'], dice.randint(0, 3))}
    return [None, dice.choice([True, False]), dice.choice([0, 1, 2, 3, 10, -1]), dice.choice([1.0, 0.5, 2.5, 3.0]), dice.choice(['', 'a', 'ab', 'abcde', '7', 'äö']), 1][kind]


def test_schemas_mean_what_they_mean_elsewhere():
    dice = random.Random(7)
    pairs = [{'schema': some_schema(dice), 'value': some_value(dice)} for _ in range(20000)]
    ours = answers(pairs)
    wrong = [pair for pair, answer in zip(pairs, ours)
             if jsonschema.Draft202012Validator(pair['schema']).is_valid(pair['value']) != answer]
    assert not wrong, wrong[:5]
    assert 2000 < sum(ours) < 18000


def test_tools_without_a_daemon_are_none_and_that_is_said():
    assert 'only a daemon has servers' in caisson('run', '-l', 'python', '-c', '1', '--tool', 'weather').err
    assert 'only a daemon has servers' not in caisson('run', '-l', 'python', '-c', '1').err


def test_a_recording_is_replayed_from_the_command_line(tmp_path):
    calls = tmp_path / 'calls.json'
    calls.write_text(json.dumps([OSLO]), encoding='utf-8')
    again = tmp_path / 'again.json'
    done = caisson('run', '-l', 'python', '-c', 'print(tools.weather(city="Oslo"))', '--replay-tools', calls, '--record-tools', again)
    assert done.out == '{"t": -3}\n', done.err
    [call] = json.loads(again.read_text(encoding='utf-8'))
    assert call['result'] == {'t': -3} and call['duration_ms'] >= 0
    done = caisson('run', '-l', 'python', '-c', 'print(tools.weather(city="Oslo"))', '--replay-tools', again)
    assert done.out == '{"t": -3}\n', done.err


def test_a_recording_that_cannot_be_written_is_said_before_anything_runs(tmp_path):
    for path in ('/nonexistent/calls.json', tmp_path):
        done = caisson('run', '-l', 'python', '-c', 'print("ran")', '--replay-tools', '/dev/stdin', '--record-tools', path, stdin=json.dumps([OSLO]).encode())
        assert done.status == 64 and done.out == '' and f'{path}: ' in done.err and 'name a file that can be written' in done.err, done.err
    kept = tmp_path / 'kept.json'
    kept.write_text(json.dumps([OSLO, OSLO], indent=5))
    done = caisson('run', '-l', 'python', '-c', 'tools.weather(city="Oslo")', '--replay-tools', kept, '--record-tools', kept)
    assert done.status == 0 and len(json.loads(kept.read_text())) == 1, done.err


def test_a_recording_without_calls_is_one_too():
    record = replayed('print(tools.list_tools(), tools.s.add(a=1))', [])
    assert 'Available: none' in record['stdout'] and record['stdout'].startswith('[] '), record['stdout']
