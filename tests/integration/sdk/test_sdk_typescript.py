"""The package of sdk/typescript: built, packed, installed without a network, typed, at a daemon and at servers that misbehave."""

import json
import re
import shutil
import socket
import subprocess
import tarfile

import pytest

from cli import ROOT
from raw_server import CLOSE, END, RECORD, START, STREAM, RawServer, answer, chunk, drip, events, hang, problem, record
from typescript import MODULES, NODE, SDK, command, compile_into, needs_node

BEGIN = """
import { Caisson, CaissonError, EngineError, InvalidRequest, NotFound, RateLimited, TimedOut, Unreachable, outputBytes, pictureUrl, why } from './index.js'
const client = new Caisson({ baseUrl: process.argv[2], retries: Number(process.argv[3] ?? 0), timeout: Number(process.argv[4] ?? 5) })
const caught = async (promise) => { try { return { value: await promise } } catch (error) {
  return { name: error.name, code: error.code, status: error.status, message: error.message, retryable: error.retryable, retryAfter: error.retryAfter, field: error.field } } }
const print = (value) => console.log(JSON.stringify(value))
"""


def run(typescript, text, url, *args):
    return typescript.json(BEGIN + text, url, *args)


# ---- the package ----

@pytest.fixture(name='packed', scope='module')
def archive_of_the_package(tmp_path_factory):
    needs_node()
    source, folder = tmp_path_factory.mktemp('source'), tmp_path_factory.mktemp('packed')
    for name in ('package.json', 'README.md', 'tsconfig.json'):
        shutil.copy(SDK / name, source)
    done = compile_into(source / 'dist')
    assert done.returncode == 0, done.stdout
    command('npm', 'pack', '--offline', '--ignore-scripts', '--pack-destination', folder, cwd=source)
    archive, = folder.glob('*.tgz')
    return archive


def test_the_archive_has_modules_types_and_no_dependency(packed):
    with tarfile.open(packed) as tar:
        names = {name.removeprefix('package/') for name in tar.getnames()}
        package = json.loads(tar.extractfile('package/package.json').read())
    modules = {path.stem for path in SDK.glob('src/*.ts')}
    assert names == {'package.json', 'README.md', *(f'dist/{name}.js' for name in modules), *(f'dist/{name}.d.ts' for name in modules)}
    assert 'dependencies' not in package and all(entry['optional'] for entry in package['peerDependenciesMeta'].values())
    for target in package['exports'].values():
        assert list(target)[0] == 'types' and all(path[2:] in names for path in target.values())


@pytest.fixture(name='installed', scope='module')
def clean_folder_with_the_package(packed, tmp_path_factory):
    folder = tmp_path_factory.mktemp('installed')
    (folder / 'package.json').write_text('{"type": "module", "private": true}')
    command('npm', 'install', '--offline', '--ignore-scripts', '--no-audit', '--no-fund', '--omit=peer', packed, cwd=folder)
    return folder


def test_the_installed_package_works(installed, client):
    (installed / 'use.mjs').write_text("""
        import { Caisson } from 'caisson-sandbox'
        const client = new Caisson()
        console.log((await client.run('print(6 * 7)')).stdout)
    """)
    assert command('node', 'use.mjs', cwd=installed, env={'CAISSON_URL': str(client.address), 'PATH': '/usr/bin:/bin'}) == '42\n\n'
    assert sorted(path.name for path in (installed / 'node_modules').iterdir() if not path.name.startswith('.')) == ['caisson-sandbox']


def test_the_program_of_the_readme_runs(installed, client):
    text = re.search(r'^```ts\n(.*?)^```$', (ROOT / 'README.md').read_text(), flags=re.MULTILINE | re.DOTALL)[1]
    assert "'http://127.0.0.1:8080'" in text
    (installed / 'readme.mjs').write_text(text.replace("'http://127.0.0.1:8080'", 'process.argv[2]'))
    assert command('node', 'readme.mjs', client.address, cwd=installed) == 'completed 42\n\n'


def test_no_module_imports_anything_but_node_and_peers():
    wanted = re.compile(r"^(import type |import |export )[^;']*?from '([^'.][^']*)'|import\('([^'.][^']*)'\)", re.MULTILINE)
    found = {(kind.strip(), name or loaded) for path in SDK.glob('src/*.ts') for kind, name, loaded in wanted.findall(path.read_text())}
    assert found == {('', 'node:http'), ('', 'node:stream'), ('import type', 'ai'), ('import type', '@langchain/core/tools'), ('', '@langchain/core/tools'),
                     ('import type', '@openai/agents-core'), ('', '@openai/agents-core')}, found


GOOD = """
import { Caisson, type Run } from 'caisson-sandbox'
async function use(client: Caisson): Promise<string> {
  const run: Run = await client.run('x', { language: 'python', limits: { wall_ms: 5 }, files: { a: new Uint8Array() }, signal: AbortSignal.timeout(5) })
  if (run.status === 'completed') { const ok: true = run.ok; return String(ok) + run.stdout }
  if (run.status === 'timeout') return run.error?.limit ?? ''
  await using sandbox = await client.sandbox({ ttl: 60 })
  const done = await sandbox.exec(['ls'], { cwd: '/' })
  for await (const event of await client.stream('x')) if (event.type === 'stdout') return event.text
  for await (const one of client.runMany(['x'])) return one.stdout
  return done.stdout
}
export { use }
"""
BAD = {
    'a status that is none': "if (run.status === 'finished') return ''",
    'an error of a completed run': "if (run.status === 'completed') return run.error.message",
    'an unknown limit': "await client.run('x', { limits: { wall: 5 } })",
    'a number as code': 'await client.run(5)',
    'an unknown option': "await client.run('x', { colour: 1 })",
}


def test_types_are_checked_in_a_strict_program(installed):
    options = {'strict': True, 'exactOptionalPropertyTypes': True, 'target': 'es2022', 'module': 'nodenext', 'noEmit': True, 'lib': ['es2022', 'dom', 'esnext.disposable'], 'types': []}

    def check(text):
        (installed / 'use.ts').write_text(text)
        (installed / 'tsconfig.json').write_text(json.dumps({'compilerOptions': options, 'files': ['use.ts']}))
        return subprocess.run([MODULES / '.bin/tsc', '-p', 'tsconfig.json'], cwd=installed, capture_output=True, text=True, timeout=280, check=False)
    done = check(GOOD)
    assert done.returncode == 0, done.stdout
    for name, statement in BAD.items():
        done = check(GOOD.replace('  if (run.status', f'  {statement}\n  if (run.status', 1))
        assert done.returncode and 'use.ts(5,' in done.stdout, (name, done.stdout)


# ---- at a daemon ----

def test_the_methods_at_a_daemon(typescript, client):
    got = run(typescript, """
        const out = {}
        const run = await client.run('open("b", "wb").write(open("a", "rb").read())\\n1 + 1', { files: { a: new Uint8Array([255, 1]) }, download: ['b'] })
        out.run = [run.status, run.value, run.text, [...run.files[0].content], run.files[0].id]
        const bytes = await client.run('import sys\\nsys.stdout.buffer.write(sys.stdin.buffer.read())', { stdin: new Uint8Array([65, 255]) })
        out.bytes = [...outputBytes(bytes, 'stdout')]
        out.why = await client.why(await client.run('1 / 0'))
        out.thrown = await caught((async () => (await client.run('1 / 0')).orThrow())())
        let text = ''
        const tool = await client.run('print(tools.add(a=1, b=2))', { tools: { add: ({ a, b }) => a + b }, onStdout: (one) => { text += one } })
        out.tool = [tool.stdout, text]
        const asked = []
        const yes = { tools: [{ name: 'rm', ask: true, execute: () => 'done' }], approve: (name, args) => { asked.push([name, args]); return asked.length > 1 } }
        out.approve = [await client.run('try: print(tools.rm(path="/"))\\nexcept Exception as error: print("no")', yes), await client.run('print(tools.rm(path="/"))', yes)].map((one) => one.stdout)
        out.asked = asked
        out.many = []
        for await (const one of client.runMany([0, 1, 2, 3].map((n) => `print(${n})`))) out.many.push(one.stdout)
        for await (const one of client.runMany([0, 1, 2, 3].map((n) => `print(${n})`), { concurrency: 2 })) out.many.push(one.stdout)
        out.unordered = []
        for await (const one of client.runMany([0, 1, 2, 3].map((n) => `print(${n})`), { concurrency: 2, ordered: false })) out.unordered.push(one.index)
        const sandbox = await client.sandbox({ ttl: 60 })
        await sandbox.run('x = 41')
        out.sandbox = [(await sandbox.run('x + 1')).value, (await sandbox.run('let y = 1; y', { language: 'javascript' })).value]
        const big = 'é'.repeat(1 << 20)
        const done = await sandbox.exec('cat; echo e >&2; exit 3', { stdin: big })
        out.exec = [done.stdout === big, done.stderr, done.exitCode]
        out.slow = (await sandbox.exec('sleep 60', { timeout: 0.3 })).timedOut
        const endless = await sandbox.exec('yes', { timeout: 1, outputMax: 1000 })
        out.endless = [endless.timedOut, endless.stdout.length, endless.lostBytes > 1 << 20]
        out.absent = await caught(sandbox.exec(['/nonexistent']))
        await sandbox.files.write('d/é', 'text', { mode: '0600' })
        out.files = [await sandbox.files.readText('d/é'), (await sandbox.files.list('.', { depth: 2 })).map((one) => one.path), await sandbox.files.exists('none'), (await sandbox.files.stat('d/é')).mode]
        out.missing = await caught(sandbox.files.read('none'))
        for await (const event of sandbox.files.watch()) { out.watch = event.type; if (event.type !== 'start') break; await sandbox.files.write('n', '') }
        await sandbox.pause(); out.state = sandbox.info.state; await sandbox.resume()
        const context = await sandbox.context(); await context.run('z = 1'); await context.restart(); out.restarted = (await context.run('z')).status
        await context.close()
        await sandbox[Symbol.asyncDispose]()
        out.left = []
        for await (const one of client.sandboxes.list()) out.left.push(one.id)
        const file = await client.files.upload('é.csv', 'a')
        out.kept = [(await client.files.info(file.id)).name, new TextDecoder().decode(await client.files.read(file.id))]
        await client.files.remove(file.id)
        const good = { code: 'def f(x): return x', function: 'f', cases: [{ args: [1], expected: 1 }], id: 'mine' }
        out.grades = [...await client.gradeMany([good, { ...good, code: 'def f(x): return 0' }]), await client.grade(good)].map((one) => [one.score, one.id])
        out.check = (await client.check('eval("1")', { policy: 'linx' })).verdict
        out.invalid = await caught(client.run('x', { limits: { pids: 'many' } }))
        out.health = (await client.health()).status
        out.me = (await client.me()).may.run
        print(out)
    """, client.address)
    assert got['run'] == ['completed', 2, '2', [255, 1], ''] and got['bytes'] == [65, 255]
    assert 'ZeroDivisionError: division by zero' in got['why'] and (got['thrown']['name'], got['thrown']['code']) == ('CaissonError', 'failed')
    assert got['tool'] == ['3\n', '3\n'] and got['approve'] == ['no\n', 'done\n'] and got['asked'] == [['rm', {'path': '/'}]] * 2
    assert got['many'] == ['0\n', '1\n', '2\n', '3\n'] * 2 and sorted(got['unordered']) == [0, 1, 2, 3]
    assert got['sandbox'] == [42, 1] and got['exec'] == [True, 'e\n', 3] and got['slow'] is True
    assert got['files'] == ['text', ['d', 'd/é'], False, '0600'] and got['missing']['name'] == 'NotFound' and got['watch'] == 'created'
    assert got['endless'] == [True, 1000, True] and (got['absent']['name'], got['absent']['field']) == ('InvalidRequest', 'command')
    assert (got['state'], got['restarted'], got['left']) == ('paused', 'failed', []) and got['kept'] == ['é.csv', 'a']
    assert got['grades'] == [[1, 'mine'], [0, 'mine'], [1, 'mine']] and (got['check'], got['health']) == ('deny', 'ready')
    assert got['me'] is True and (got['invalid']['name'], got['invalid']['field']) == ('InvalidRequest', '/limits/pids')


def test_an_abort_ends_the_program(typescript, client):
    got = run(typescript, """
        const out = []
        const busy = async () => Number(/^caisson_runs_running (\\d+)/m.exec(new TextDecoder().decode(await client.transport.bytes({ method: 'GET', path: '/metrics' })))[1])
        const before = await busy()
        for (const more of [{}, { onStdout() {} }, { tools: { f: () => 1 } }]) {
          const aborter = new AbortController()
          const going = caught(client.run('import time\\ntime.sleep(600)', { signal: aborter.signal, ...more }))
          while (await busy() <= before) await new Promise((resolve) => setTimeout(resolve, 20))
          aborter.abort()
          out.push((await going).name)
          while (await busy() > before) await new Promise((resolve) => setTimeout(resolve, 20))
        }
        const stream = await client.stream('import time\\nprint(1, flush=True)\\ntime.sleep(600)')
        for await (const event of stream) if (event.type === 'stdout') break
        await stream[Symbol.asyncDispose]()
        while (await busy() > before) await new Promise((resolve) => setTimeout(resolve, 20))
        const sandbox = await client.sandbox()
        const aborter = new AbortController()
        const going = caught(sandbox.exec('sleep 600', { signal: aborter.signal }))
        setTimeout(() => aborter.abort(), 500)
        out.push((await going).name, (await sandbox.exec('pgrep -x sleep; true')).stdout)
        await sandbox.kill()
        out.push((await caught(client.run('x', { signal: AbortSignal.abort() }))).name, (await caught(client.run('x', { signal: AbortSignal.abort(), onStdout() {} }))).name)
        print(out)
    """, client.address)
    assert got == ['AbortError'] * 4 + ['', 'AbortError', 'AbortError']


# ---- garbage, time, ends ----

GARBAGE = {
    'no HTTP': b'SSH-2.0-OpenSSH_9.2\r\n\r\n', 'no JSON': answer(b'<html>'), 'a list': answer(b'[]'), 'a number': answer(b'7'), 'deep': answer(b'[' * 100_000),
    'half of JSON': answer(json.dumps(RECORD).encode()[:-5]), 'no status': answer(b'{"id": "run_1"}'), 'a status of a wrong type': answer(b'{"status": 3}'),
    'a chunk without a size': STREAM + b'zz\r\n', 'a head without an end': b'HTTP/1.1 200 OK\r\nX: ' + b'y' * 200_000, 'an odd status': b'HTTP/1.1 999 X\r\nContent-Length: 0\r\n\r\n',
}


@pytest.mark.parametrize('name', GARBAGE)
def test_garbage_is_an_error_of_the_engine(typescript, name):
    with RawServer([GARBAGE[name]]) as server:
        got = run(typescript, "const error = await client.run('x').catch((one) => one); print([error instanceof EngineError, error.message])", server.url)
        assert got[0] is True and got[1], got


def test_garbage_in_a_stream_is_an_error(typescript):
    lines = [b'[]', b'{"type": 3}', b'no JSON', b'{"type": "stdout", "text": 5}', b'{"type": "stdout", "text": "", "base64": "%"}']
    with RawServer([*(STREAM + chunk(line + b'\n') + b'0\r\n\r\n' for line in lines)]) as server:
        got = run(typescript, "const out = []; for (let n = 0; n < 5; n++) out.push((await caught(client.stream('x').then((one) => one.result()))).code); print(out)", server.url)
        assert got == ['bad_answer'] * 5


@pytest.mark.parametrize('entry', [hang, lambda one: (one.send(b'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n'), hang(one))], ids=['no head', 'no body'])
def test_a_server_that_hangs_is_a_timeout(typescript, entry):
    with RawServer([entry]) as server:
        assert run(typescript, "print(await caught(client.run('x')))", server.url, 0, 0.4)['name'] == 'TimedOut'


def test_a_slow_answer_is_no_timeout_and_unicode_stays_whole(typescript):
    whole = record(stdout='é😀', feedback=['x' * 100])
    with RawServer([drip(whole, 0.005, whole.index(b'{')), drip(events(START, {'type': 'stdout', 'text': 'aé😀𝄞'}, END), 0.001)]) as server:
        got = run(typescript, """
            const one = (await client.run('x')).stdout
            let text = ''
            for await (const event of await client.stream('x')) text += event.text
            print([one, text])
        """, server.url, 0, 0.7)
        assert got == ['é😀', 'aé😀𝄞'] and len(whole) * 0.005 > 0.7


def test_ten_megabytes_of_output_come_whole(typescript):
    text = 'é' * (5 << 20)
    with RawServer([events(START, *[{'type': 'stdout', 'text': text[:1 << 20]}] * 5, {'type': 'end', 'record': {**RECORD, 'stdout': text}})]) as server:
        got = run(typescript, """
            const stream = await client.stream('x')
            let size = 0
            for await (const event of stream) size += event.content.length
            print([size, (await stream.result()).stdout.length])
        """, server.url)
        assert got == [10 << 20, 5 << 20]


@pytest.mark.parametrize('entry', [CLOSE, b'HTTP/1.1 200 OK\r\nContent-Le', answer(b'{"status": "completed"}')[:-3]], ids=['at once', 'in the head', 'in the body'])
def test_a_connection_that_ends_is_unreachable_and_the_run_is_not_sent_twice(typescript, entry):
    with RawServer([entry]) as server:
        assert run(typescript, "print(await caught(client.run('x')))", server.url, 3)['name'] == 'Unreachable' and len(server.requests) == 1


def test_a_stream_goes_on_after_the_last_event(typescript):
    script = [events(START, {'type': 'stdout', 'text': 'a'}, end=False), events({'type': 'lost', 'events': 3}, {'type': 'stdout', 'text': 'b'}, end=False), CLOSE, events(END)]
    with RawServer(script) as server:
        assert run(typescript, "const stream = await client.stream('x'); let text = ''; for await (const one of stream) text += one.text; print([text, (await stream.result()).status])",
                   server.url, 2) == ['ab', 'completed']
        assert server.lines() == ['POST /v1/runs', 'GET /v1/runs/run_1/events?after=2', 'GET /v1/runs/run_1/events?after=6', 'GET /v1/runs/run_1/events?after=6']


def test_an_end_without_a_record_is_asked_for(typescript):
    with RawServer([events(START, {'type': 'end', 'record': None}), record(stdout='long')]) as server:
        assert run(typescript, "print((await (await client.stream('x')).result()).stdout)", server.url) == 'long'


def test_requests_are_sent_again_where_that_is_safe(typescript):
    with RawServer([problem(429, 'capacity', Retry_After='0'), CLOSE, answer(b'{"status": "ready"}'), problem(429, 'capacity', Retry_After='3600'),
                    problem(502, 'worker_lost')]) as server:
        got = run(typescript, """
            const run = await caught(client.run('x'))
            const health = await client.health()
            print([run.name, health.status, await caught(client.run('x')), (await caught(client.run('x'))).name])
        """, server.url, 2)
        assert got[:2] == ['Unreachable', 'ready'] and (got[2]['name'], got[2]['retryAfter']) == ('RateLimited', 3600) and got[3] == 'EngineError'
        assert len(server.requests) == 5


def test_runs_that_found_no_room_are_sent_again_and_others_are_not(typescript):
    def bulk(*lines):
        return answer(b''.join(json.dumps(one).encode() + b'\n' for one in lines), kind='application/x-ndjson')
    full = {'id': '1', 'error': {'code': 'capacity', 'message': 'full', 'retry_after_s': 0}}
    with RawServer([bulk({'id': '0', 'record': RECORD}, full), bulk({'id': '1', 'record': RECORD}), bulk({'id': '0', 'record': RECORD})]) as server:
        got = run(typescript, """
            const all = async () => { const out = []; for await (const one of client.runMany(['a', 'b'])) out.push(one.index); return out }
            print([await all(), (await caught(all())).name])
        """, server.url, 2)
        assert got == [[0, 1], 'Unreachable'] and len(server.requests) == 3


def test_a_redirect_is_not_followed(typescript):
    with RawServer([answer(b'', '301 Moved', Location='https://elsewhere.example/')]) as server:
        got = run(typescript, "print(await caught(client.run('x')))", server.url, 3)
        assert got['code'] == 'bad_answer' and 'https://elsewhere.example/' in got['message'] and len(server.requests) == 1


def test_a_large_batch_is_divided(typescript):
    def take(connection):
        lines = connection.body.splitlines()
        connection.send(answer(b''.join(json.dumps({'id': json.loads(line)['id'], 'record': RECORD}).encode() + b'\n' for line in lines), kind='application/x-ndjson'))
    with RawServer([take]) as server:
        got = run(typescript, "const out = []; for await (const one of client.runMany(Array(5).fill('x'.repeat(5 << 20)))) out.push(one.index); print(out)", server.url)
        assert got == [0, 1, 2, 3, 4] and [len(one.body.splitlines()) for one in server.requests] == [2, 2, 1]


def test_lines_that_the_server_could_not_carry_out_are_masked(typescript):
    lines = [{'id': '0', 'error': {'code': 'worker_lost', 'message': 'lost'}}, {'id': '1', 'error': {'code': 'bad_request', 'message': 'no'}}]
    with RawServer([answer(b''.join(json.dumps(one).encode() + b'\n' for one in lines), kind='application/x-ndjson')]) as server:
        got = run(typescript, "print((await client.gradeMany([{}, {}])).map((one) => [one.status, one.mask, one.score]))", server.url)
        assert got == [['engine_error', True, None], ['bad_request', False, 0]]


@pytest.mark.parametrize('status, name', [(401, 'AuthError'), (404, 'NotFound'), (410, 'NotFound'), (422, 'InvalidRequest'), (500, 'EngineError')])
def test_each_status_has_its_exception(typescript, status, name):
    with RawServer([problem(status, 'some_code')]) as server:
        got = run(typescript, "print(await caught(client.run('x')))", server.url, 3)
        assert (got['name'], got['status'], got['code'], len(server.requests)) == (name, status, 'some_code', 1)


def test_no_server_and_wrong_addresses(typescript):
    with socket.create_server(('127.0.0.1', 0)) as listener:
        port = listener.getsockname()[1]
    got = run(typescript, """
        const out = [(await caught(client.health())).code, (await caught(new Caisson({ baseUrl: 'unix:/nonexistent/s', retries: 0 }).health())).code]
        for (const baseUrl of ['localhost', 'ftp://host', 'unix:relative']) try { new Caisson({ baseUrl }) } catch (error) { out.push(error.field) }
        for (const more of [{ retries: -1 }, { timeout: 0 }]) try { new Caisson(more) } catch (error) { out.push(error.field) }
        print(out)
    """, f'http://127.0.0.1:{port}')
    assert got == ['not_connected', 'not_connected', 'baseUrl', 'baseUrl', 'baseUrl', 'retries', 'timeout']


# ---- hosts ----

def test_the_sandbox_session_of_the_ai_sdk(typescript, client):
    got = run(typescript, """
        const { sandboxSession, codeTool } = await import('./ai-sdk.js')
        const { asSchema, generateText } = await import('ai')
        const { MockLanguageModelV4, MockLanguageModelV3 } = await import('ai/test')
        const sandbox = await client.sandbox()
        const session = sandboxSession(sandbox)
        const out = {}
        out.run = await session.run({ command: 'pwd; echo $X; echo e >&2; exit 3', env: { X: 'y' }, workingDirectory: '/tmp' })
        await session.writeTextFile({ path: 'd/a', content: 'one\\ntwo\\nthree' })
        out.lines = await session.readTextFile({ path: 'd/a', startLine: 2, endLine: 9 })
        out.bytes = [...await session.readBinaryFile({ path: 'd/a' })].length
        await session.writeFile({ path: 's', content: new Blob(['streamed']).stream() })
        out.stream = await new Response(await session.readFile({ path: 's' })).text()
        out.missing = [await session.readFile({ path: 'none' }), await session.readTextFile({ path: 'none' }), await session.stat({ path: 'none' }), await session.listDirectory({ path: 'none' }),
          await session.deleteFile({ path: 'none' })]
        out.stat = [await session.stat({ path: 'd/a' }), (await session.stat({ path: 'd' })).type]
        out.list = (await session.listDirectory({ path: '.' })).map((one) => `${one.name} ${one.type}`).sort()
        out.deleted = [await session.deleteFile({ path: 's' }), (await caught(session.deleteFile({ path: 'd' }))).message, (await caught(session.listDirectory({ path: 'd/a' }))).message]
        const child = await session.spawn({ command: 'cat; exit 4', stdin: true })
        const writer = child.stdin.getWriter()
        await writer.write(new TextEncoder().encode('in')); await writer.close()
        out.spawn = [await new Response(child.stdout).text(), await child.wait()]
        const long = await session.spawn({ command: 'sleep 600' })
        await long.kill(); await long.kill()
        out.killed = await long.wait()
        await sandbox.kill()
        const tool = codeTool(client)
        out.schema = await asSchema(tool.inputSchema).jsonSchema
        out.invalid = (await asSchema(tool.inputSchema).validate({ code: 5 })).success
        const Model = MockLanguageModelV4 ?? MockLanguageModelV3
        let turn = 0
        const usage = { inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 }, outputTokens: { total: 1, text: 1, reasoning: 0 } }
        const model = new Model({ doGenerate: async () => turn++ === 0
          ? { finishReason: { unified: 'tool-calls', raw: 'x' }, usage, warnings: [], content: [{ type: 'tool-call', toolCallId: '1', toolName: 'run_code', input: '{"code":"print(6*7)","language":"python"}' }] }
          : { finishReason: { unified: 'stop', raw: 'x' }, usage, warnings: [], content: [{ type: 'text', text: 'done' }] } })
        const result = await generateText({ model, tools: { run_code: tool }, prompt: 'x' })
        out.tool = result.toolResults.map((one) => one.output)
        print(out)
    """, client.address)
    assert got['run'] == {'exitCode': 3, 'stdout': '/tmp\ny\n', 'stderr': 'e\n'} and got['lines'] == 'two\nthree' and got['bytes'] == 13 and got['stream'] == 'streamed'
    assert got['missing'] == [None, None, None, None, False] and got['stat'] == [{'type': 'file', 'size': 13}, 'directory'] and got['list'] == ['d directory', 's file']
    assert got['deleted'][0] is True and 'directory' in got['deleted'][1] and 'no directory' in got['deleted'][2]
    assert got['spawn'] == ['in', {'exitCode': 4}] and got['killed'] == {'exitCode': 137}
    assert got['schema']['required'] == ['code', 'language'] and got['invalid'] is False and got['tool'] == ['42\n']


def test_the_tool_and_the_shell_of_openai_agents(typescript, client):
    got = run(typescript, """
        const { codeTool, sandboxShell } = await import('./openai-agents.js')
        const { RunContext, shellTool } = await import('@openai/agents-core')
        const tool = await codeTool(client, { languages: ['python'] })
        const out = { name: tool.name, parameters: tool.parameters, result: await tool.invoke(new RunContext(), '{"code":"print(6*7)","language":"python"}') }
        out.wrong = await tool.invoke(new RunContext(), '{"code":5,"language":"python"}')
        const sandbox = await client.sandbox()
        const shell = sandboxShell(sandbox)
        shellTool({ shell })
        out.shell = await shell.run({ commands: ['echo hi > f; cat f', 'cat f; exit 3', 'sleep 60', 'echo never'], timeoutMs: 700 })
        out.cut = (await shell.run({ commands: ['echo 123456'], maxOutputLength: 3 })).output[0].stdout
        await sandbox.kill()
        print(out)
    """, client.address)
    assert got['name'] == 'run_code' and got['parameters']['required'] == ['code', 'language'] and got['result'] == '42\n' and 'error' in got['wrong']
    assert [(one['stdout'], one['outcome']) for one in got['shell']['output']] == [('hi\n', {'type': 'exit', 'exitCode': 0}), ('hi\n', {'type': 'exit', 'exitCode': 3}), ('', {'type': 'timeout'})]
    assert got['cut'] == '123'


def test_the_tool_of_langchain(typescript, client):
    if int(command(NODE, '--version')[1:].split('.')[0]) < 20:
        pytest.skip('needs Node 20, as LangChain does')
    got = run(typescript, """
        const { codeTool } = await import('./langchain.js')
        const tool = await codeTool(client, { name: 'python', languages: ['python'], timeout: 20 })
        const wrong = await caught(tool.invoke({ code: 5 }))
        print([tool.name, await tool.invoke({ code: 'open("a.txt", "w")\\nimport sys\\nprint(1); print(2, file=sys.stderr); 7', language: 'python' }), await tool.invoke({ code: '1/0', language: 'python' }), Boolean(wrong.name)])
    """, client.address)
    assert got[0] == 'python' and got[1] == '1\n\nstderr:\n2\n\nvalue: 7\nfiles: a.txt' and 'status: failed' in got[2] and 'ZeroDivisionError' in got[2] and got[3] is True


def test_the_lock_file_names_no_host():
    lock = json.loads((SDK / 'package-lock.json').read_text())
    assert not any('resolved' in entry for entry in lock['packages'].values())
    assert all(not re.match(r'[\^~]', version) for version in json.loads((SDK / 'package.json').read_text())['devDependencies'].values()) and (ROOT / '.gitignore').exists()
