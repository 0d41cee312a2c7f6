"""Context runners of JavaScript and TypeScript.

    /usr/bin/python3 -m pytest -q tests/integration/contexts/test_contexts_node.py
"""

import base64
import itertools
import re
import subprocess
import time
from urllib.parse import unquote

import pytest
from contexts import COMMANDS, Ended, Started
from runners import ENVIRONMENT, NODE, NODE_MAJOR


@pytest.fixture
def start(tmp_path):
    """start('javascript', 'options') -> Started, ended with the test"""
    contexts = []

    def begin(language, options='', **settings):
        contexts.append(Started(language, tmp_path, options, **settings))
        return contexts[-1]

    yield begin
    for context in contexts:
        if context.channel.fileno() >= 0:
            assert context.end() == 0


@pytest.fixture
def node(start):
    return start('javascript')


@pytest.fixture
def typescript(start):
    return start('javascript', 'language=typescript')


def test_hello(node):
    assert node.hello['runner'] == 'node' and node.hello['context'] is True
    assert node.execute('process.pid').value['value'] == node.hello['pid']


def test_declarations_last_and_may_come_again(node):
    node.execute('const a = 1; let b = 2; var c = 3; class D { d() { return 4; } }\nfunction e() { return a + 4; }')
    assert node.execute('[a, b, c, new D().d(), e()]').value['value'] == [1, 2, 3, 4, 5]
    node.execute('const a = 10; let b; class D {}\nfunction e() { return a + 5; }')
    assert node.execute('[a, b ?? null, typeof new D().d, e()]').value['value'] == [10, None, 'undefined', 15]
    node.execute('const { x, y: [z = 7, ...rest], ...others } = { x: 1, y: [undefined, 2, 3], p: 4 };')
    assert node.execute('[x, z, rest, others]').value['value'] == [1, 7, [2, 3], {'p': 4}]


def test_declarations_beside_an_await_last_too(node):
    node.execute('const a = await Promise.resolve(1); let b = a + 1, n; class D { static s = 4; }\n'
                 'function e() { return b; }\nfor (var i = 0; i < 3; i++) await i;\nfor (var k of [5, 6]) await k;\n'
                 'if (a) { var inner = 8; let hidden = 9; }\nconst { x, ...rest } = { x: await 2, y: 3 };')
    outcome = node.execute('[a, b, n ?? null, D.s, e(), i, k, inner, typeof hidden, x, rest]')
    assert outcome.value['value'] == [1, 2, None, 4, 2, 3, 6, 8, 'undefined', 2, {'y': 3}], outcome.stderr
    assert node.execute('const a = await 5; b = 7;\na').value['value'] == 5
    assert node.execute('b').value['value'] == 7


def test_what_is_in_functions_and_blocks_stays_there(node):
    node.execute('function f() { const q = 1; let r = 2; return q + r; }\n{ let s = 3; }\nfor (let t = 0; t < 1; t++);\nf()')
    assert node.execute('[typeof q, typeof r, typeof s, typeof t]').value['value'] == ['undefined'] * 4


def test_names_of_globals_can_be_taken(node):
    assert node.execute('const crypto = require("crypto"), performance = 1, fetch = 2;\n[crypto.randomBytes(2).length, performance, fetch]'
                        ).value['value'] == [2, 1, 2]


@pytest.mark.parametrize('code, value', [
    ('1 + 1', 2), ('{ a: 1 }', {'a': 1}), ('{ let n = 1; }', None), ('1, 2', 2), ('x = 5;', 5), ('const v = 5', None), ('undefined', None),
    ('Promise.resolve(3)', 3), ('await 3', 3), ('(await 3)', 3), ('[\n  1,\n]', [1]), ('if (1) { 5 }', None), ('"a"; // b', 'a'), ('', None),
    ('await 1; ({ a: 2 }); // c', {'a': 2}), ('`a\n${await 1}`', 'a\n1'), ('for await (const v of [1]) {}\n6', 6),
    ('#!/usr/bin/node\n7', 7), ('"use strict"; let strict = 3; strict', 3), ('`a${1}b`', 'a1b'), ('(class Q {}).name', 'Q'), ('class W {}\nW.name', 'W'),
    ('<!-- a comment\n8', 8), ('label: { await 1; break label }\n8', 8), ('function* g() { yield 1 }; [...g()]', [1]), ('for (const i of [1]) i', None),
    ('try { await Promise.reject(1) } catch (e) { e }', None), ('await 1, { a: 1 }', {'a': 1}), ('x: for (;;) { break x }', None), ('await 1\n"x".length', 1), ('async () => { await 1 }; 8', 8), ('(await 1, 9)', 9),
])
def test_value_of_the_last_expression(node, code, value):
    outcome = node.execute(code)
    assert (outcome.value or {}).get('value') == value, outcome.stderr
    assert outcome.kinds == ('STARTED DONE' if value is None else 'STARTED VALUE DONE')


def test_value_as_text_and_data(node):
    assert node.execute('({ a: [1] })').data == {'text/plain': '{ a: [ 1 ] }', 'application/json': {'a': [1]}}
    assert node.execute('new Map([[1, 2]])').data == {'text/plain': 'Map(1) { 1 => 2 }'}
    assert node.execute('({ get a() { throw 1 } })').data['text/plain'] == '{ a: [Getter] }'


def test_modules(node, tmp_path):
    (tmp_path / 'own.js').write_text('exports.n = 1;')
    (tmp_path / 'own.mjs').write_text('export const m = 2; export default 3;')
    outcome = node.execute('import fs, { existsSync as there } from "fs";\nimport * as path from "node:path";\n'
                           'import d, { m } from "./own.mjs";\nimport "./own.js";\n[typeof fs.readFileSync, there("own.js"), path.sep, d, m]')
    assert outcome.value['value'] == ['function', True, '/', 3, 2], outcome.stderr
    assert outcome.stderr == ''
    assert node.execute('[require("./own.js").n, (await import("./own.mjs")).m, path.sep]').value['value'] == [1, 2, '/']
    for name in 'odd', '@own/odd':
        (tmp_path / 'node_modules' / name).mkdir(parents=True)
        (tmp_path / 'node_modules' / name / 'index.js').write_text('module.exports = (n) => n % 2 === 1;')
    for name in 'npm:odd', 'npm:odd@^3.0.1', 'npm:/@own/odd@1', '@own/odd':
        assert node.execute('import odd from "%s"\nodd(3)' % name).value['value'] is True
    assert node.execute('export const out = 4;\nexport function f() {}\nout').value['value'] == 4
    assert node.execute('require("./nothing")').error['name'] == './nothing'


def test_quiet_errors_are_told_and_not_printed(node):
    for code, kind in ('nothing.at.all', 'ERROR'), ('foo bar', 'SYNTAX'):
        outcome = node.execute(code, quiet=True)
        assert (outcome.stderr, kind in outcome.kinds) == ('', True)
        assert node.execute(code).stderr != ''


def test_syntax_error_runs_nothing(node):
    for code, line, column, text in (('let q = 1;\nfoo bar', 2, 5, 'foo bar'), ('globalThis.q = 1\nawait 1 +;', 2, 10, 'await 1 +;')):
        outcome = node.execute(code)
        assert outcome.kinds == 'SYNTAX DONE'
        mistake = outcome.one('SYNTAX')
        assert (mistake['type'], mistake['line'], mistake['column'], mistake['text']) == ('SyntaxError', line, column, text)
        assert 'SyntaxError' in outcome.stderr
    assert node.execute('typeof q').value['value'] == 'undefined'


@pytest.mark.parametrize('code', ['\0', '[' * 100000, '(' * 1000 + ')' * 1000, '\ud800', '"' * 9999, '{', '}', '})()', 'return 1', 'import.meta', 'new.target'])
def test_odd_texts_end_in_an_orderly_way(node, code):
    assert node.execute(code).kinds.split()[0] in ('SYNTAX', 'STARTED')
    assert node.execute('1 + 1').value['value'] == 2


def test_errors_have_places_in_the_cell_and_no_frames_of_ours(node):
    node.execute('function f(n) {\n  return null.x;\n}')
    outcome = node.execute('1;\n  f(0)', name='/home/user/analysis.js')
    assert outcome.kinds == 'STARTED ERROR DONE'
    error = outcome.error
    assert (error['type'], error['line'], error['column']) == ('TypeError', 2, 3)
    assert error['traceback'][1:] == ['    at f (<cell 1>:2:15)', '    at /home/user/analysis.js:2:3']
    assert outcome.stderr == 'Uncaught ' + '\n'.join(error['traceback']) + '\n'
    error = node.execute('await 1; await (async () => { throw new RangeError("é") })()').error
    assert (error['type'], error['message'], error['line']) == ('RangeError', 'é', 1)
    assert node.execute('throw 5').error['message'] == '5'
    assert node.execute('nothing').error['name'] == 'nothing'


def test_columns_of_the_first_line_are_the_users(node):
    assert node.execute('await null.x').error['column'] == 12
    # For Node 18 src/lang/node/persist.js puts a return before a last expression.
    assert node.execute('const value = await 1;\nnull.x').error['column'] == (6 if NODE_MAJOR > 18 else 17)
    assert node.execute('null.x').error['column'] == 6


def test_a_rejection_is_told_once(node):
    for code in 'await Promise.reject(new Error("r"))', 'Promise.reject(new Error("r"))', 'await 1; Promise.reject(new Error("r"))':
        outcome = node.execute(code)
        assert outcome.error['message'] == 'r' and outcome.stderr.count('Error: r') == 1 and 'Warning' not in outcome.stderr


def test_what_nothing_can_settle_is_an_error(node):
    assert 'nothing is left' in node.execute('await new Promise(() => {})').error['message']
    assert node.execute('1').value['value'] == 1


def test_a_late_error_is_told_and_changes_nothing(node, tmp_path):
    outcome = node.execute('setTimeout(() => { throw new Error("late") }, 1);\nawait new Promise((r) => setTimeout(r, 50));\n5')
    assert outcome.value['value'] == 5 and 'Uncaught Error: late' in outcome.stderr
    node.execute('setInterval(() => { if (require("fs").existsSync("go")) throw new Error("idle") }, 1)')
    (tmp_path / 'go').write_text('')
    node.wait_for_output('idle', 1)
    assert node.execute('6').value['value'] == 6


@pytest.mark.parametrize('code, message', [('process.exit(3)', '3'), ('process.exit()', '0'), ('await 1; process.exit(4)', '4'),
                                           ('process.exitCode = 5; process.exit()', '5')])
def test_exit_is_an_error_and_the_context_lives_on(node, code, message):
    node.execute('var x = 5')
    outcome = node.execute(code)
    assert outcome.kinds == 'STARTED ERROR DONE' and outcome.stderr == ''
    assert (outcome.error['type'], outcome.error['message']) == ('SystemExit', message)
    assert node.execute('process.exitCode = undefined; x').value['value'] == 5


def test_output_streams(node, tmp_path):
    node.ask('console.log("one"); process.stderr.write("part");\nwhile (!require("fs").existsSync("go"));\nconsole.log("two")')
    node.wait_for_output('one\n')
    node.wait_for_output('part', 1)
    (tmp_path / 'go').write_text('')
    outcome = node.answer()
    assert outcome.stdout == 'one\ntwo\n'


def test_much_output_is_all_there_before_the_end(node):
    assert len(node.execute('console.log("x".repeat(3000000))').stdout) == 3000001


def test_timers_go_on_between_executions(node):
    node.execute('var n = 0;\nsetInterval(() => { console.log("tick", n++) }, 5)')
    node.wait_for_output('tick 3')
    assert node.execute('n > 2').value['value'] is True


def test_folder_and_environment(node, tmp_path):
    folder = tmp_path / 'sub'
    folder.mkdir()
    (folder / 'mine.js').write_text('module.exports = 7')
    code = '[process.cwd(), require("./mine.js"), process.env.A ?? null]'
    assert node.execute(code, cwd=str(folder), env={'A': 'é'}).value['value'] == [str(folder), 7, 'é']
    assert node.execute(code).value['value'] == [str(folder), 7, None]
    outcome = node.execute('var never = 1', cwd='/nowhere/at/all')
    assert outcome.kinds == 'STARTED ERROR DONE' and '/nowhere/at/all' in outcome.error['message']
    assert node.execute('process.env.UV_THREADPOOL_SIZE ?? null;').value['value'] is None


def test_displays(node):
    outcome = node.execute('display({ "text/html": "<b>é</b>", "image/png": Buffer.from("\\x89PNG", "latin1"), "a/b+json": [1] });\n'
                           'display([1]); display("s");\n'
                           'class C { [Symbol.for("Jupyter.display")]() { return { "text/markdown": "# c" }; } }\ndisplay(new C());\nnew C()')
    data = [one['data'] for one in outcome.displays]
    assert data[0] == {'text/html': '<b>é</b>', 'image/png': base64.b64encode(b'\x89PNG').decode(), 'a/b+json': [1], 'text/plain': ''}
    assert data[1] == {'text/plain': '[ 1 ]', 'application/json': [1]} and data[2] == {'text/plain': "'s'"}
    assert data[3]['text/markdown'] == '# c' and outcome.data['text/markdown'] == '# c'


def test_limits(start):
    node = start('javascript', 'value_max=1000,display_max=5000,displays_max=3')
    outcome = node.execute('for (let i = 0; i < 5; i++) display("x".repeat(3000));\n({ [Symbol.for("Jupyter.display")]: '
                           '() => ({ "text/html": "y".repeat(9000) }) })')
    assert len(outcome.displays) == 3 and outcome.stderr.count('displays_max=3') == 1
    assert outcome.displays[0]['data']['text/plain'].endswith('(truncated)') and len(outcome.displays[0]['data']['text/plain']) < 1100
    assert list(outcome.data) == ['text/plain'] and 'display_max=5000' in outcome.data['text/plain']
    assert node.execute('"x".repeat(2000)').value['truncated'] is True
    assert node.execute('"x".repeat(2000)', value_max=5000).value['value'] == 'x' * 2000


def test_large_documents_come_in_pieces_and_in_order(node):
    outcome = node.execute('// %s\nfor (const n of [1, 200000, 2]) display({ "text/html": "é".repeat(n) })' % ('c' * 200000))
    assert [len(one['data']['text/html']) for one in outcome.displays] == [1, 200000, 2]


# ---- interrupts

@pytest.mark.parametrize('code', [
    'console.log("on"); while (true);',
    'console.log("on"); await new Promise((resolve) => setTimeout(resolve, 1e6));',
    'await 1; console.log("on"); while (true);',
    'console.log("on"); new Promise((resolve) => setTimeout(resolve, 1e6))',
    'console.log("on"); Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);',
    'function f() { try { f() } catch { f() } }\nconsole.log("on"); try { while (true); } finally { console.log("no") }',
    'process.nextTick(() => { console.log("on"); while (true); });',
    'queueMicrotask(() => { console.log("on"); while (true); }); await 1; await 2;',
])
def test_interrupt(node, code):
    node.execute('var x = 1')
    node.ask(code)
    node.wait_for_output('on')
    node.interrupt()
    outcome = node.answer()
    assert outcome.kinds == 'STARTED ERROR DONE' and outcome.error['type'] == 'KeyboardInterrupt'
    assert 'context.js' not in outcome.stderr
    assert node.execute('x').value['value'] == 1


def test_interrupt_while_idle_is_ignored(node):
    for _ in range(3):
        node.wait_until_idle()
        node.interrupt()
        node.wait_until_idle()
        assert node.execute('await 1; 2').value['value'] == 2


def test_no_interrupt_is_lost_after_started(node):
    for _ in range(50):
        node.ask('while (true);')
        node.until('STARTED')
        node.interrupt()
        frames = node.until('DONE')
        assert [name for name, _ in frames] == ['ERROR', 'DONE'] and b'KeyboardInterrupt' in frames[0][1]


def test_interrupt_never_breaks_what_is_sent(node):
    for n in range(30):
        node.ask('while (true) display("x".repeat(n % 2 ? 30000 : 300000));'.replace('n %', '%d %%' % n))
        node.until('STARTED')
        time.sleep(0.001 * n)
        node.interrupt()
        assert node.until('DONE')[-2][0] == 'ERROR'
    assert node.execute('1').value['value'] == 1


def test_output_goes_on_after_an_interrupt_that_cut_it(node):
    for n in range(20):
        node.ask('while (true) { console.log("x".repeat(100)); console.error("y") }')
        node.wait_for_output('x\n')
        time.sleep(0.001 * n)
        node.interrupt()
        assert node.answer().error['type'] == 'KeyboardInterrupt'
        outcome = node.execute('console.log("out"); console.error("err")')
        assert outcome.stdout.endswith('out\n') and outcome.stderr.endswith('err\n')


# ---- TypeScript

def test_typescript(typescript):
    outcome = typescript.execute('interface P { n: number }\nconst p: P = { n: 1 };\nlet later: string;\n'
                                 'async function f<T>(x: T): Promise<T> { return x; }\n(await f(p)).n as number')
    assert outcome.value['value'] == 1, outcome.stderr
    assert typescript.execute('const p: number = 5; enum E { A = 3 }\n[p, E.A]').value['value'] == [5, 3]
    assert typescript.execute('E.A').value['value'] == 3
    mistake = typescript.execute('let a = 1;\nlet y: = 2;\n').one('SYNTAX')
    assert mistake['line'] == 2 and mistake['text'] == 'let y: = 2;'
    assert typescript.execute('const n: number = 1;\nfunction g(): never { throw new Error("here") }\ng()').error['line'] == 2


def test_typescript_modules(typescript, tmp_path):
    (tmp_path / 'lib.ts').write_text('export const k: number = 6;')
    (tmp_path / 'old.ts').write_text('exports.o = 7 as number;')
    assert typescript.execute('import type { P } from "./none";\nrequire("./old").o').value['value'] == 7


# ---- the end

def test_ends_with_the_channel(node):
    node.execute('setInterval(() => {}, 1000); process.on("exit", () => console.log("bye"))')
    assert node.end() == 0


def test_children_do_not_inherit_the_channel(node):
    code = ('String(require("child_process").execFileSync("ls", ["-l", "/proc/self/fd"], { stdio: ["ignore", "pipe", "ignore"] }))'
            '.split("\\n").filter((l) => /\\b3 -> socket/.test(l)).length')
    assert node.execute(code).value['value'] == 0


@pytest.mark.parametrize('packet', [b'x', b'CSN1\x09\0\0\0\x05\0\0\0{}', b'CSN1\x03\0\0\0\0\0\0\0', b'CSN1\x09\0\0\0\x02\0\0\0{}',
                                    b'CSN1\x09\0\0\0\x01\0\0\0['])
def test_a_broken_frame_ends_it(node, packet):
    node.channel.send(packet)
    with pytest.raises(Ended):
        node.receive()
    assert node.status() == 70
    assert b'context.js: ' in node.written[node.outputs[1]]
    node.channel.close()


def test_without_a_channel_it_says_so():
    done = subprocess.run([*COMMANDS['javascript'], ''], capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False,
                          env=ENVIRONMENT)
    assert done.returncode == 70 and 'channel' in done.stderr


def test_the_last_of_a_sequence_is_the_value(node):
    assert node.execute('await 1, 2').value['value'] == 2
    assert node.execute('1, await 2, 3;').value['value'] == 3
    assert node.execute('(await 1, 4)').value['value'] == 4
    assert node.execute('1, 5').value['value'] == 5


@pytest.mark.parametrize('code', [
    'export default function () { return 1 }', 'export default class { m() {} }', 'export default { a: 1 }', 'export default () => 1',
    'export default async function () { await 1 }', 'export default 5', 'export default (1, 2);', 'var a; export default a = 1',
    'export default function named() {}', 'export const b = 1', 'await 1; export default class { m() {} }', 'export default await 1',
])
def test_exports_are_accepted(node, code):
    outcome = node.execute(code)
    assert outcome.stderr == '' and outcome.error is None, outcome.stderr


def test_a_default_export_with_a_name_lasts(node):
    node.execute('export default function named() { return 1 }')
    node.execute('export default class Named { m() { return 2 } }')
    assert node.execute('[named(), new Named().m()]').value['value'] == [1, 2]


def test_imports_have_attributes(node):
    node.execute("require('fs').writeFileSync('d.json', '{\"k\": 1}')")
    assert node.execute("import d from './d.json' with { type: 'json' }; d.k").value['value'] == 1
    assert node.execute("import old from './d.json' assert { type: 'json' }; old.k").value['value'] == 1
    assert node.execute("(await import('./d.json', { with: { type: 'json' } })).default.k").value['value'] == 1
    assert node.execute("const load = async () => (await import('./d.json', { with: { type: 'json' } })).default.k; load()").value['value'] == 1
    assert node.execute("import * as whole from './d.json' with { 'type': \"json\" };\nwhole.default.k").value['value'] == 1


def test_a_text_sees_its_place_as_a_module_does(node, tmp_path):
    (tmp_path / 'sub').mkdir()
    code = '[__dirname, import.meta.url, import.meta.dirname, import.meta.resolve("fs")]'
    for folder in tmp_path, tmp_path / 'sub':
        name, url, *others = node.execute(code, cwd=str(folder)).value['value']
        assert (name, unquote(url), others) == (str(folder), 'file://%s/[context]' % folder, [str(folder), 'node:fs'])
    outcome = node.execute('import { fileURLToPath } from "url";\nimport path from "path";\nconst __filename = fileURLToPath(import.meta.url);\n'
                           'const __dirname = path.dirname(__filename) + "/own";\n__dirname')
    assert outcome.value['value'] == str(tmp_path / 'sub') + '/own', outcome.stderr
    assert node.execute('__dirname', cwd=str(tmp_path)).value['value'] == str(tmp_path / 'sub') + '/own'
    assert node.execute('null.x; import.meta.url').error['column'] == 6


# Programs that plain Node and a context must agree on: what is printed, the error and where it was.
BEGINNINGS = ['let a = [1, 2];', 'function f() { throw new TypeError("f") }', '"use strict";', 'const g = () => { console.log("g"); return null };',
              'class C { m() { return this.x.y } }', 'console.log([1, { a: "b" }], new Map([[1, 2]]));', '']
GAPS = ['\n', ' ', '\n// comment\n', '\n/* two\nlines */\n', '\r\n', ' /* c */ ']
LASTS = ['nope()', 'nope.x;', 'a.map((x) => x.y.z)', 'f(); // end', 'g().x', 'null.x', '(1, nope)', '1, nope.x;', '`\nconsole.log(1)`', 'new C().m()',
         "require('assert').ok(false)", 'throw new RangeError("r")', 'if (true) {\n  undefined()\n}', 'JSON.parse("{")']
FRAME = re.compile(r'main\.js:(\d+):(\d+)\)?$', re.M)


def of_plain(source, folder):
    (folder / 'main.js').write_bytes(source.encode())
    done = subprocess.run([NODE, 'main.js'], cwd=folder, env={**ENVIRONMENT, 'HOME': str(folder)}, capture_output=True, timeout=60, stdin=subprocess.DEVNULL)
    stderr = done.stderr.decode()
    message = re.search(r'^(?:\w*Error)(?: \[\w+\])?: .*$', stderr, re.M)
    return done.stdout.decode(), message and message.group(), FRAME.findall(stderr[message.end():] if message else '')


def of_context(node, source, folder):
    outcome = node.execute(source, name=str(folder / 'main.js'))
    message = re.search(r'^(?:Uncaught )((?:\w*Error)(?: \[\w+\])?: .*)$', outcome.stderr, re.M)
    if outcome.error:
        assert (str(outcome.error['line']), str(outcome.error['column'])) == FRAME.findall(outcome.stderr)[0], outcome.stderr
        assert 'lang/node' not in outcome.stderr and 'node:vm' not in outcome.stderr
    return outcome.stdout, message and message.group(1), FRAME.findall(outcome.stderr)


@pytest.mark.parametrize('beginning', BEGINNINGS)
def test_programs_print_what_they_print_under_plain_node(start, tmp_path, beginning):
    node, wrong = start('javascript'), []       # what one beginning declares, the others have not
    for gap, last in itertools.product(GAPS, LASTS):
        source = beginning + gap + last
        expected, seen = of_plain(source, tmp_path), of_context(node, source, tmp_path)
        if seen != expected:
            wrong.append((source, expected, seen))
    assert wrong == [], len(wrong)


SHOWING = [
    'try { undefinedFunction() } catch (error) { console.error(error) }',
    'console.trace("here")',
    'console.error(new Error("x").stack)',
    'await 1; console.error(new Error("x"))',
    'async function f() { await 1; throw new Error("x") }\ntry { await f() } catch (error) { console.error(error) }',
    'queueMicrotask(() => console.trace("x")); await new Promise((resolve) => setTimeout(resolve, 5))',
    'process.nextTick(() => console.trace("x"))',
    'display({ toJSON() { console.trace("x"); return 1 }, [Symbol.for("nodejs.util.inspect.custom")]() { console.trace("x"); return "" } })',
    'const o = {}; Error.captureStackTrace(o); console.error(o.stack)',
    'Error.prepareStackTrace = (e, t) => t.map((s) => s.getFileName()).join("\\n"); console.error(new Error("x").stack); '
    'Error.prepareStackTrace = undefined; console.error(new Error("x").stack)',
]


@pytest.mark.parametrize('code', SHOWING)
def test_frames_of_ours_are_nowhere(node, code):
    outcome = node.execute(code)
    assert outcome.stderr and 'lang/node' not in outcome.stderr and 'node:vm' not in outcome.stderr, outcome.stderr


def test_an_error_as_the_value_has_the_frames_of_its_execution(node):
    value = node.execute('new Error("x")', name='cell.js').value
    assert value['repr'] == 'Error: x\n    at cell.js:1:1', value
    assert node.execute('const old = Error.prepareStackTrace; Error.prepareStackTrace = () => 7; const e = new Error("x").stack;'
                        'Error.prepareStackTrace = old; [e, new Error("y").stack.includes("at ")]').value['value'] == [7, True]


def test_an_unknown_name_has_its_place_beside_an_await(node):
    outcome = node.execute('await 1;\n\nnope()')
    assert outcome.error['line'] == 3 and outcome.error['column'] == 1, outcome.error
