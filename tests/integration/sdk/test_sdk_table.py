"""One table of programs through the command line, HTTP, Python and TypeScript: the records are the same, but for times and ids."""

import asyncio
import base64
import json
import re

import pytest

import caisson
from web import Web

# Members that differ from run to run.  `format` and the like stay.
TIMES = ('id', 'started_at', 'finished_at', 'timings', 'usage')

PNG = 'import matplotlib.pyplot as plt\nplt.plot([1, 2, 3])\nplt.show()\nprint("shown")'

TABLE = {
    'output': ({'code': 'print(6 * 7)'}, {'status': 'completed', 'stdout': '42\n'}),
    'value': ({'code': '{"a": [1, 2.5, None, True, "é"]}'}, {'result': {'type': 'dict', 'value': {'a': [1, 2.5, None, True, 'é']}}}),
    'value that is no JSON': ({'code': '{1, 2}'}, {'result': {'type': 'set', 'repr': '{1, 2}'}}),
    'large integer': ({'code': '2 ** 53 - 1'}, {'result': {'type': 'int', 'value': 2 ** 53 - 1}}),
    'no value': ({'code': 'x = 1'}, {'result': None}),
    'JavaScript': ({'code': 'console.log("a"); [1, 2].map((x) => x + 1)', 'language': 'javascript'}, {'stdout': 'a\n'}),
    'TypeScript': ({'code': 'const a: number = 4\na + 1', 'language': 'typescript'}, {'status': 'completed'}),
    'Bash': ({'code': 'echo $0 $1; exit 3', 'language': 'bash', 'args': ['x']}, {'status': 'failed', 'exit_code': 3}),
    'exception': ({'code': 'def f():\n    raise KeyError("é")\nf()'}, {'status': 'failed', 'exit_code': 1}),
    'syntax error': ({'code': 'def'}, {'status': 'syntax_error'}),
    'exit status': ({'code': 'import sys\nprint(1, file=sys.stderr)\nsys.exit(7)'}, {'exit_code': 7, 'stderr': '1\n'}),
    'signal': ({'code': 'import os\nos.abort()'}, {'status': 'crashed', 'signal': 6}),
    'time-out': ({'code': 'import time\ntime.sleep(60)', 'limits': {'wall_ms': 300}}, {'status': 'timeout'}),
    'memory': ({'code': 'x = bytearray(400 << 20)\nprint(len(x))', 'limits': {'memory_bytes': 64 << 20}}, {'status': 'memory_exceeded'}),
    'standard input': ({'code': 'print(input()[::-1])', 'stdin': 'aé😀\n'}, {'stdout': '😀éa\n'}),
    'bytes of standard input': ({'code': 'import sys\nprint(sys.stdin.buffer.read())', 'stdin_base64': base64.b64encode(b'\xff\x00').decode()}, {'stdout': "b'\\xff\\x00'\n"}),
    'bytes of output': ({'code': 'import sys\nsys.stdout.buffer.write(b"a\\xff")'}, {'stdout': 'a\ufffd', 'stdout_base64': 'Yf8='}),
    'files in and out': ({'code': 'open("b.txt", "w").write(open("d/a.txt").read() * 2)', 'files': [{'name': 'd/a.txt', 'content': 'é'}]}, {'status': 'completed'}),
    'environment': ({'code': 'import os\nprint(os.environ["X"])', 'env': {'X': 'y z'}}, {'stdout': 'y z\n'}),
    'figure': ({'code': PNG, 'image': 'data', 'limits': {'wall_ms': 120000}}, {'stdout': 'shown\n', 'status': 'completed'}),
    'policy': ({'code': 'eval("1")', 'policy': 'linx'}, {'status': 'blocked'}),
    'much output': ({'code': 'print("x" * 3_000_000)', 'limits': {'output_bytes': 1000}}, {'status': 'completed'}),
    'unknown profile': ({'code': 'print(1)', 'profile': 'nonesuch'}, {'status': 'bad_request'}),
    'unknown language': ({'code': 'print(1)', 'language': 'cobol'}, {'status': 'unsupported_language'}),
    'labels': ({'code': 'print(1)', 'labels': {'a': 'b'}, 'task_id': 't', 'user': 'u'}, {'labels': {'a': 'b'}, 'task_id': 't', 'user': 'u'}),
}

TOOLS = {
    'tools': {'code': 'print(tools.add(a=1, b=2), tools.add(a="x", b="y"))'},
    'tool that fails': {'code': 'try:\n    tools.fail()\nexcept Exception as error:\n    print(error)'},
    'tool that is not there': {'code': 'try:\n    tools.nothing()\nexcept Exception as error:\n    print(error)'},
}


def request_of(name):
    return {'language': 'python', **TABLE[name][0]}


# The command line names the option and the variable of a limit, and texts have CPU times.
DIFFERING = re.compile(r' \(--[^)]*\)|, --[\w-]+ [\w.]+|\d+\.\d+ (?=s\b)')


def without_times(value):
    if isinstance(value, str):
        return DIFFERING.sub('', value)
    if isinstance(value, dict):
        return {name: without_times(one) for name, one in value.items()}
    return [without_times(one) for one in value] if isinstance(value, (list, tuple)) else value


def plain(record):
    """A record without what differs from run to run."""
    kept = {name: value for name, value in record.items() if name not in TIMES}
    kept['stages'] = [(stage['name'], stage['verdict']) for stage in record.get('stages', [])]
    kept['inputs'] = [{'name': one['name'], 'sha256': one.get('sha256')} for one in record.get('inputs', [])]
    kept['boundary'] = {name: value for name, value in (record.get('boundary') or {}).items() if not name.startswith('host_uid')}
    return without_times(kept)


@pytest.fixture(name='web', scope='module')
def daemon_of_the_table(tmp_path_factory):
    web = Web(tmp_path_factory.mktemp('table'))
    yield web
    web.daemon.stop()


def by_command_line(web, name, folder):
    file = folder / 'request.json'
    file.write_text(json.dumps(request_of(name)))
    return json.loads(web.daemon.caisson('run', '--json', '--request', file).out)


def by_http(web, name, _):
    return web.ask('POST', '/v1/runs', request_of(name))[2]


def raw(run):
    """The record that a run was made of."""
    names = [name for name in vars(run) if name not in ('extra', 'index', 'displays', 'files')]
    return {**{name: getattr(run, name) for name in names}, **run.extra,
            'displays': [{'data': one.data} for one in run.displays], 'files': [file_of(one) for one in run.files]}


def file_of(one):
    return {'name': one.name, 'size_bytes': one.size_bytes, 'mime': one.mime, 'changed': one.changed, **({'sha256': one.sha256} if one.sha256 else {}), **one.extra}


def by_python(web, name, _):
    return raw(caisson.Client(f'http://127.0.0.1:{web.port}').run(**request_of(name)))


def by_events(web, name, _):
    with caisson.Client(f'http://127.0.0.1:{web.port}').stream(**request_of(name)) as stream:
        return raw(stream.result())


def by_asyncio(web, name, _):
    return raw(asyncio.run(caisson.AsyncClient(f'http://127.0.0.1:{web.port}').run(**request_of(name))))


def by_batch(web, name, _):
    return raw(next(caisson.Client(f'http://127.0.0.1:{web.port}').run_many([request_of(name)])))


NODE = """
import { Caisson } from './index.js'
import { readFileSync } from 'node:fs'

const client = new Caisson({ baseUrl: process.argv[2] })
const records = {}
for (const [name, { code, language, ...options }] of Object.entries(JSON.parse(readFileSync(0, 'utf8')))) {
  const plain = await client.run(code, { language, ...options })
  const stream = await client.stream(code, { language, ...options })
  records[name] = [plain.record, (await stream.result()).record]
}
console.log(JSON.stringify(records))
"""


@pytest.fixture(name='node', scope='module')
def records_of_node(web, typescript):
    """All records of TypeScript, by one process: plain and by events."""
    return typescript.json(NODE, f'http://127.0.0.1:{web.port}', stdin=json.dumps({name: request_of(name) for name in TABLE}))


@pytest.fixture(name='reference', scope='module')
def records_of_http(web):
    return {name: by_http(web, name, None) for name in TABLE}


@pytest.mark.parametrize('name', TABLE)
def test_the_record_is_the_wanted_one(reference, name):
    for member, value in TABLE[name][1].items():
        assert reference[name][member] == value, reference[name]


@pytest.mark.parametrize('way', [by_command_line, by_python, by_events, by_asyncio, by_batch], ids=lambda way: way.__name__[3:])
@pytest.mark.parametrize('name', TABLE)
def test_each_way_gives_the_record_of_http(web, reference, name, way, tmp_path):
    got, wanted = plain(way(web, name, tmp_path)), plain(reference[name])
    if way is not by_command_line:
        got = {member: value for member, value in got.items() if member in wanted or value not in (None, [], {}, '')}
    assert got == wanted


@pytest.mark.parametrize('name', TABLE)
def test_typescript_gives_the_record_of_http(reference, node, name):
    for record in node[name]:
        assert plain(record) == plain(reference[name])


# ---- tools of the client ----

def add(a, b):
    return a + b


def fail():
    raise ValueError('no')


NODE_TOOLS = """
import { Caisson } from './index.js'
import { readFileSync } from 'node:fs'

const client = new Caisson({ baseUrl: process.argv[2] })
const tools = { add: ({ a, b }) => a + b, fail: () => { throw Object.assign(new Error('no'), { name: 'ValueError' }) } }
const out = {}
for (const [name, { code }] of Object.entries(JSON.parse(readFileSync(0, 'utf8')))) out[name] = (await client.run(code, { tools })).record
console.log(JSON.stringify(out))
"""


def test_tools_of_the_client_give_the_same_records(web, typescript):
    by_node = typescript.json(NODE_TOOLS, f'http://127.0.0.1:{web.port}', stdin=json.dumps(TOOLS))
    for name, request in TOOLS.items():
        run = caisson.Client(f'http://127.0.0.1:{web.port}').run(request['code'], tools={'client': [caisson.Tool(add, input_schema={}), caisson.Tool(fail, input_schema={})],
                                                                                        'decode': True, 'raise': True})
        assert (run.status, run.stdout, run.exit_code) == (by_node[name]['status'], by_node[name]['stdout'], by_node[name]['exit_code']), name
        assert run.tools == by_node[name]['tools'], name
    assert by_node['tools']['stdout'] == '3 xy\n' and 'ValueError: no' in by_node['tool that fails']['stdout']
