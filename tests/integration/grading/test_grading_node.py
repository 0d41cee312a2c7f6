"""The role "cases" of the Node runner: JavaScript and TypeScript (docs/protocols/grading-roles.md).

    /usr/bin/python3 -m pytest -q tests/integration/grading/test_grading_node.py
"""

import json
import os
import time

import pytest

from contexts import BUILD
from runners import ENVIRONMENT, NODE, NODE_MAJOR, MESSAGE, Process, encode, packets_of

RUNNER = str(BUILD / 'lang' / 'node' / 'run.js')


class Graded:
    """What came of one process."""

    def __init__(self, outcome):
        self.outcome = outcome
        self.status, self.stdout, self.stderr = outcome.status, outcome.stdout, outcome.stderr
        self.kinds = outcome.kinds
        talks = [payload for name, payload in outcome.frames() if name == 'MESSAGE']
        assert all(talk[:1] == b'E' and talk.isascii() for talk in talks)
        self.talks = [json.loads(talk[1:]) for talk in talks]
        self.set_up = self.talks[:1] == [{'op': 'set_up'}]
        del self.talks[:self.set_up]
        if self.talks[:1] == [{'op': 'ready'}]:
            del self.talks[0]
        self.results = [talk for talk in self.talks if talk['op'] == 'result']

    @property
    def result(self):
        """The only one, after which the end was told in good order."""
        assert [talk['op'] for talk in self.talks] == ['result', 'end'], (self.talks, self.stderr)
        assert self.kinds == f'HELLO STARTED {"MESSAGE " * self.set_up}MESSAGE MESSAGE MESSAGE DONE' and self.status == 0
        return self.results[0]

    @property
    def value(self):
        assert self.result['how'] == 'returned', self.result
        return json.loads(self.result['value'])


def send(process, document):
    for packet in packets_of(MESSAGE, b'E' + json.dumps(document).encode()):
        process.ours.send(packet)


def case(i=0, args=(), **members):
    return {'i': i, 'args': json.dumps(list(args)), 'cpu_ms': 5000, 'wall_ms': 15000, **members}


@pytest.fixture(params=['cold'])
def grade(request, tmp_path):
    """grade(source, *arguments) -> Graded, of the function f; roads 'cold' and 'waiting'"""

    def start(source, *args, name='main.js', function='f', setup='', cases=None, files=(), options='', **members):
        options = 'graded=1' + options
        main = tmp_path / name
        waiting = Process([NODE, RUNNER, '--wait'], tmp_path, wait=True) if request.param == 'waiting' else None
        for other, text in {name: source, **dict(files)}.items():
            (tmp_path / other).write_text(text)
        if waiting:
            waiting.tell(encode([options, str(main)], {**ENVIRONMENT, 'HOME': str(tmp_path)}))
        process = waiting or Process([NODE, RUNNER, options, str(main)], tmp_path)
        send(process, {'op': 'begin', 'role': 'cases', 'setup': setup, 'function': function, 'output_max': 2000,
                       'cases': cases or [case(0, args, **members)]})
        return Graded(process.end())

    return start


both_roads = pytest.mark.parametrize('grade', ['cold', 'waiting'], indirect=True)

# ------------------------------------------------------------------------------------------------ finding the function

FORMS = [
    ('main.js', 'function f(a, b) { return a + b; }'),
    ('main.js', 'const f = (a, b) => a + b;'),
    ('main.js', 'let f; f = function (a, b) { return a + b; }\nf(1, 2);'),
    ('main.js', '#!/usr/bin/env node\n"use strict";\nvar f = function (a, b) { return a + b; } // the end'),
    ('main.js', 'if (true) { var f = (a, b) => a + b; }'),
    ('main.js', 'module.exports = { f: (a, b) => a + b };'),
    ('main.js', 'exports.f = (a, b) => a + b;'),
    ('main.js', 'module.exports = function f(a, b) { return a + b; };'),
    ('main.js', 'Object.defineProperty(exports, "f", { get: () => (a, b) => a + b });'),
    ('main.js', 'globalThis.f = (a, b) => a + b;'),
    ('main.js', 'f = (a, b) => a + b;'),
    ('main.js', 'const { f } = { f(a, b) { return a + b; } };'),
    ('main.js', 'function f(a, b) { return a + b; }\nsetInterval(() => {}, 1000);'),
    ('main.js', 'function f(a, b) { return a + b; }\nrequire("net").createServer().listen(0);'),
    ('main.cjs', 'async function f(a, b) { await null; return a + b; }'),
    ('main.js', 'const f = (a, b) => new Promise((resolve) => setTimeout(resolve, 20, a + b));'),
    ('main.mjs', 'export function f(a, b) { return a + b; }'),
    ('main.mjs', 'function f(a, b) { return a + b; }'),
    ('main.mjs', 'const g = (a, b) => a + b;\nexport { g as f };'),
    ('main.mjs', 'export default { f: (a, b) => a + b };'),
    ('main.mjs', 'const n = await Promise.resolve(0);\nexport const f = async (a, b) => a + b + n;'),
    ('main.js', 'import fs from "fs";\nexport const f = (a, b) => a + b;'),
    ('main.ts', 'function f(a: number, b: number): number { return a + b; }'),
    ('main.ts', 'export const f = (a: number, b: number): number => a + b;'),
    ('main.ts', 'enum E { A = 1 }\nfunction f(a: number, b: number): number { return a + b + E.A - 1; }'),
    ('main.mts', 'export default function f(a: number, b: number): number { return a + b; }'),
    ('main.cts', 'const f = (a: number, b: number): number => a + b;'),
]


@pytest.mark.parametrize('name, source', FORMS)
def test_a_function_is_found(grade, name, source):
    assert grade(source, 2, 3, name=name).value == 5


@both_roads
@pytest.mark.parametrize('name, source', [FORMS[0], FORMS[16], FORMS[22], FORMS[23]])
def test_on_both_roads(grade, name, source):
    graded = grade(source, 2, 3, name=name)
    assert graded.value == 5
    assert graded.result['type'] == 'number' and graded.stderr == graded.stdout == ''


@pytest.mark.parametrize('grade', ['waiting'], indirect=True)
def test_a_worker_says_with_what_it_leaves(grade):
    assert grade('const f = () => 1').outcome.left == 0
    assert grade('const g = () => 1').outcome.left == 1
    assert grade('const f = () => process.exit(3)').outcome.left == 0


@pytest.mark.parametrize('function, value', [('S.twice', 8), ('S.half', 2), ('tools.math.add', 4), ('tools.count', 1)])
def test_a_dotted_name(grade, function, value):
    source = """
class S { constructor() { this.factor = 2; }  twice(n) { return this.factor * n; }  static half(n) { return n / this.two; } }
S.two = 2;
const tools = { math: { add: (n) => n }, counted: 0, count() { return ++this.counted; } };
"""
    assert grade(source, 4, function=function).value == value


def test_a_case_may_name_its_own(grade):
    assert grade('const f = () => 1, g = () => 2', cases=[case(7, function='g')]).value == 2


@pytest.mark.parametrize('function', ['h', 'C.h', 'value', 'value.x', 'nothing.x.y', 'Array', 'parseInt', 'constructor', '__proto__', ''])
def test_a_function_that_is_not_there(grade, function):
    graded = grade('function f() {}\nclass C {}\nconst value = 1, nothing = null;\nexports.g = () => 1', function=function)
    assert graded.talks == [{'op': 'missing', 'function': function, 'functions': ['f', 'C', 'g']}]
    assert (graded.status, graded.kinds) == (1, 'HELLO STARTED MESSAGE MESSAGE DONE')


def test_a_name_that_was_never_reached(grade):
    graded = grade('if (1) throw_away();\nfunction throw_away() {}\nconst g = 1;\nreturn;\nconst f = () => 1')
    assert graded.talks == [{'op': 'missing', 'function': 'f', 'functions': []}]


# -------------------------------------------------------------------------------------------------------------- values

def typed(kind, value):
    return {'t': kind, 'v': value}


@pytest.mark.parametrize('text, value', [
    ('null', None), ('true', True), ('false', False), ('""', ''), ('"\\u00e9\\u{1f600}\\n\\\\\\""', 'é😀\n\\"'),
    ('"\\ud800x"', '\ud800x'), ('0', 0), ('-0', 0), ('42', 42), ('-7', -7), ('9007199254740991', 2 ** 53 - 1),
    ('undefined', {'t': 'undefined'}), ('12n', typed('bigint', '12')), ('-(2n ** 80n)', typed('bigint', str(-2 ** 80))),
    ('NaN', typed('float', 'nan')), ('Infinity', typed('float', 'inf')), ('-1 / 0', typed('float', '-inf')),
    ('[]', []), ('[1, [2, "x"], null]', [1, [2, 'x'], None]), ('[1, , 3]', [1, {'t': 'undefined'}, 3]), ('Array(2)', [{'t': 'undefined'}] * 2),
    ('({})', typed('dict', [])), ('({b: 1, a: [undefined]})', typed('dict', [['b', 1], ['a', [{'t': 'undefined'}]]])),
    ('Object.create(null)', typed('dict', [])), ('({["__proto__"]: 1, constructor: 2})', typed('dict', [['__proto__', 1], ['constructor', 2]])),
    ('new Map([[1, "a"], [{}, new Map()]])', typed('map', [[1, 'a'], [typed('dict', []), typed('map', [])]])),
    ('new Set([1, "1", 1])', typed('set', [1, '1'])), ('new Date(1500)', typed('js.Date', 1500)),
    ('new Date(NaN)', typed('js.Date', typed('float', 'nan'))), ('new Uint8Array([0, 255])', typed('bytes', 'AP8=')),
    ('Buffer.from("abcd").subarray(1)', typed('bytes', 'YmNk')), ('"abc".match(/b/)', ['b']),
    ('(() => { const a = [1]; return [a, a, {a}]; })()', [[1], typed('ref', 1), typed('dict', [['a', typed('ref', 1)]])]),
    ('(() => { const a = [1]; a.push(a); return a; })()', [1, typed('ref', 0)]),
    ('(() => { const m = new Map(); m.set("m", m); return m; })()', typed('map', [['m', typed('ref', 0)]])),
])
def test_a_value(grade, text, value):
    assert grade('const f = async () => (%s)' % text).value == value


@pytest.mark.parametrize('text, written', [
    ('1.5', '1.5'), ('0.1 + 0.2', '0.30000000000000004'), ('2 ** 53', '9007199254740992.0'), ('1e21', '1e+21'), ('-1e-7', '-1e-7'),
    ('2 ** 64', '18446744073709552000.0'), ('5e-324', '5e-324'),
])
def test_a_float_is_written_as_one(grade, text, written):
    graded = grade('const f = () => %s' % text)
    assert graded.result['value'] == written
    assert isinstance(graded.value, float) and graded.result['mro'] == ['number', 'float']


@pytest.mark.parametrize('text, mro', [
    ('1', ['number', 'int', 'float']), ('"x"', ['string', 'str']), ('true', ['boolean', 'bool']), ('null', ['null', 'NoneType']),
    ('undefined', ['undefined']), ('1n', ['bigint', 'int']), ('[]', ['Array', 'Object', 'list']), ('({})', ['Object', 'dict']),
    ('Object.create(null)', ['dict']), ('new Map()', ['Map', 'Object']), ('new Set()', ['Set', 'Object', 'set']),
    ('Buffer.from("x")', ['Buffer', 'Uint8Array', 'TypedArray', 'Object', 'bytes']),
])
def test_types_of_values(grade, text, mro):
    result = grade('const f = () => %s' % text).result
    assert result['mro'] == mro and result['type'] == ('Object' if mro == ['dict'] else mro[0])


@pytest.mark.parametrize('text, kind, mro, words', [
    ('new (class P { x = 1 })()', 'P', ['P', 'Object'], 'P { x: 1 }'),
    ('new (class L extends Array {})()', 'L', ['L', 'Array', 'Object'], 'L(0) []'),
    ('new (class M extends Map {})()', 'M', ['M', 'Map', 'Object'], 'M(0) [Map] {}'),
    ('() => 1', 'function', ['Function', 'Object'], '[Function (anonymous)]'),
    ('Symbol("s")', 'symbol', ['symbol'], 'Symbol(s)'),
    ('[1, () => 1]', 'Array', ['Array', 'Object', 'list'], '[ 1, [Function (anonymous)] ]'),
    ('new Map([[Symbol.iterator, 1]])', 'Map', ['Map', 'Object'], 'Map(1) { Symbol(Symbol.iterator) => 1 }'),
    ('({[Symbol("s")]: 1})', 'Object', ['Object', 'dict'], '{ [Symbol(s)]: 1 }'),
    ('({get x() { throw 1 }})', 'Object', ['Object', 'dict'], '{ x: [Getter] }'),
    ('Object.defineProperty([1], 0, {get() { throw 1 }})', 'Array', ['Array', 'Object', 'list'], '[ [Getter] ]'),
    ('new Proxy([], {getPrototypeOf() { throw 1 }, get() { throw 1 }})', 'Proxy', ['Proxy'], 'Proxy [\n  [],\n  { getPrototypeOf: [Function'),
    ('/x/g', 'RegExp', ['RegExp', 'Object'], '/x/g'),
    ('new Number(1)', 'Number', ['Number', 'Object'], '[Number: 1]'),
    ('new Float64Array(1)', 'Float64Array', ['Float64Array', 'TypedArray', 'Object'], 'Float64Array(1) [ 0 ]'),
    ('(function* () {})()', 'Generator', ['Generator', 'Object'], 'Object [Generator] {}'),
    ('(function () { return arguments })(1)', 'Object', ['Object'], "[Arguments] { '0': 1 }"),
    ('Object.setPrototypeOf(new Error("e"), Object.prototype)', 'Object', ['Object'], '{}'),
    ('({then: 1, deep: [[[new WeakMap()]]]})', 'Object', ['Object', 'dict'], '{ then: 1'),
    ('(() => { let a = []; for (let i = 0; i < 1001; i++) a = [a]; return a; })()', 'Array', ['Array', 'Object', 'list'], '[ [ [ [Array] ] ] ]'),
    ('"x".repeat(9 << 20)', 'string', ['string', 'str'], "'xxx"),
    ('Array(5e6).fill(12)', 'Array', ['Array', 'Object', 'list'], '[\n  12, 12'),
    ('Object.assign([], {length: 4294967295})', 'Array', ['Array', 'Object', 'list'], '[ <4294967295 empty items> ]'),
    ('new Uint8Array(9 << 20)', 'Uint8Array', ['Uint8Array', 'TypedArray', 'Object', 'bytes'], 'Uint8Array(9437184) ['),
    ('"\\u0001".repeat(8e5 * 3)', 'string', ['string', 'str'], "'"),
])
def test_what_has_no_canonical_form(grade, text, kind, mro, words):
    result = grade('const f = () => (%s)' % text).result
    assert (result['how'], result['type'], result['mro']) == ('unencodable', kind, mro)
    assert result['repr'].startswith(words)
    assert len(result['repr']) <= 2000 and 'value' not in result


def test_large_arguments_come_in_pieces(grade):
    text = 'é' * 100000
    assert grade('const f = (all) => [all.length, all]', text).value == [100000, text]


def test_large_values_come_in_pieces(grade):
    assert grade('const f = () => ["\\u00e9\\\\".repeat(4e5)]').value == ['é\\' * 400000]
    assert grade('const f = () => { let a = 1; for (let i = 0; i < 1000; i++) a = [a]; return a; }').result['how'] == 'returned'


# -------------------------------------------------------------------------------------------------------------- errors

@pytest.mark.parametrize('name, source, kind, mro, message, line', [
    ('main.js', 'function f() {\n  throw new TypeError("no\\u00e9");\n}', 'TypeError', ['TypeError', 'Error', 'Object'], 'noé', 2),
    ('main.js', '\nconst f = () => null.x;', 'TypeError', ['TypeError', 'Error', 'Object'], "Cannot read properties of null (reading 'x')", 2),
    ('main.js', 'class Own extends RangeError {}\nconst f = async () => { await null;\nthrow new Own("mine"); }', 'Own',
     ['Own', 'RangeError', 'Error', 'Object'], 'mine', 3),
    ('main.mjs', 'export const f = () => {\n\n  throw new Error("m"); }', 'Error', ['Error', 'Object'], 'm', 3),
    ('main.ts', 'type T = number;\nconst f = (): T => {\n  throw new SyntaxError("t"); }', 'SyntaxError', ['SyntaxError', 'Error', 'Object'], 't', 3),
    ('main.js', 'const f = () => { throw "text"; }', 'string', ['string', 'str'], 'text', None),
    ('main.js', 'const f = () => { throw null; }', 'null', ['null', 'NoneType'], 'null', None),
    ('main.js', 'const f = () => { throw {a: 1}; }', 'Object', ['Object', 'dict'], '{ a: 1 }', None),
    ('main.js', 'const f = () => Promise.reject(undefined);', 'undefined', ['undefined'], 'undefined', None),
    ('main.js', 'class B extends Error { get message() { throw 1; } }\nconst f = () => { throw new B(); }', 'B', ['B', 'Error', 'Object'], '', None),
    ('main.js', 'const f = () => f();', 'RangeError', ['RangeError', 'Error', 'Object'], 'Maximum call stack size exceeded', 1),
    ('main.js', 'const f = () => new Promise(() => {\nsetTimeout(() => { throw new Error("late"); }, 5) });', 'Error', ['Error', 'Object'], 'late', 2),
    ('main.js', 'const f = () => new Promise(() => process.nextTick(() => { throw new Error("tick"); }));', 'Error', ['Error', 'Object'], 'tick', 1),
    ('main.js', 'const f = () => new Promise(() => { Promise.reject(new Error("lost")); });', 'Error', ['Error', 'Object'], 'lost', 1),
    ('main.js', 'class S { constructor() { throw new Error("made"); }\n g() {} }\nconst f = () => new S();', 'Error', ['Error', 'Object'], 'made', 1),
    ('main.js', 'class f {}', 'TypeError', ['TypeError', 'Error', 'Object'], "Class constructor f cannot be invoked without 'new'", None),
])
def test_an_error(grade, name, source, kind, mro, message, line):
    result = grade(source, name=name).result
    assert result.pop('cpu_ms') > 0 and result.pop('wall_ms') > 0
    assert result == {'op': 'result', 'i': 0, 'how': 'raised', 'type': kind, 'mro': mro, 'message': message, 'line': line, 'stdout': '',
                      'stderr': '', 'signs': []}


def test_a_long_message_is_cut(grade):
    assert grade('const f = () => { throw new Error("x".repeat(1e7)); }').result['message'] == 'x' * 2000


def test_a_program_that_catches_its_errors_goes_on(grade):
    source = """process.on('uncaughtException', () => {});
const f = () => new Promise((resolve) => { setTimeout(() => { throw new Error('x'); }, 1); setTimeout(resolve, 20, 'here'); });"""
    assert grade(source).value == 'here'


# ------------------------------------------------------------------------------------------------------- exits and limits

@both_roads
@pytest.mark.parametrize('source, code', [
    ('const f = () => process.exit(3)', 3),
    ('const f = () => process.exit()', 0),
    ('const f = () => { process.exitCode = 4; process.exit(); }', 4),
    ('const f = () => process.reallyExit(5)', 5),
    ('const f = () => { process.removeAllListeners(); process.exit(6); }', 6),
    ('const f = async () => { setTimeout(() => process.exit(7), 5); await new Promise(() => {}); }', 7),
    ('const f = () => new Promise(() => {})', 13),
    ('const f = () => { process.exitCode = 4; return new Promise((r) => setTimeout(() => {}, 10)); }', 13),
])
def test_an_exit(grade, source, code):
    graded = grade(source)
    assert (graded.result['how'], graded.result['exit_code']) == ('exited', code)


def test_the_cases_after_an_exit(grade):
    graded = grade('const f = (n) => n ? n : process.exit(3)', cases=[case(0, [1]), case(1, [0]), case(2, [2])])
    assert [(one['i'], one['how']) for one in graded.results] == [(0, 'returned'), (1, 'exited'), (2, 'exited')]
    assert graded.talks[-1]['op'] == 'end' and graded.status == 0


def test_an_exit_whose_listeners_the_program_has_replaced(grade):
    source = '''
process.removeListener = process.emit = process.on = process.listenerCount = () => 0;
require('events').prototype.on = require('events').prototype.removeListener = () => 0;
const f = () => process.exit(3);'''
    assert grade(source).result['exit_code'] == 3


def test_an_uncaught_error_whose_listener_the_program_has_removed(grade):
    graded = grade('const f = () => { process.removeAllListeners(); return new Promise(() => setTimeout(() => null.x, 1)); }')
    assert graded.kinds.startswith('HELLO STARTED') and 'null' in graded.stderr
    assert graded.results == [] and graded.status == 1


@pytest.mark.parametrize('source, status', [('process.kill(process.pid, "SIGKILL")', -9), ('process.abort()', -6)])
def test_a_signal_is_for_the_engine_to_see(grade, source, status):
    graded = grade('const f = () => %s' % source)
    assert (graded.kinds, graded.status) == ('HELLO STARTED MESSAGE', status)


@pytest.mark.parametrize('source, by', [
    ('const f = () => { for (;;); }', 'wall'),
    ('const f = () => { for (;;) { try { for (;;); } finally { continue; } } }', 'wall'),
    ('const f = async () => { await null; for (;;); }', 'wall'),
    ('const f = () => { Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0); }', 'wall'),
    ('const f = () => new Promise(() => setInterval(() => {}, 10))', 'wall'),
    ('const f = () => new Promise((r) => setTimeout(r, 700))', 'wall'),
    ('const f = () => new Promise(() => process.nextTick(() => { for (;;); }))', 'wall'),
    ('globalThis.setTimeout = globalThis.setInterval = () => {};\nconst t = setImmediate, f = () => new Promise(() => { const g = () => t(g); g(); })', 'wall'),
    ('const f = () => ({ get [Symbol.toStringTag]() { for (;;); }, g() {} })', None),
])
def test_wall_time(grade, source, by):
    started = time.monotonic()
    result = grade(source, wall_ms=500 if by else 10000).result
    assert time.monotonic() - started < 30
    assert (result['how'], result.get('by')) == (('timeout', by) if by else ('unencodable', None))


@pytest.mark.parametrize('source', [
    'const begun = process.cpuUsage(), f = () => { while (process.cpuUsage(begun).user < 8e5); return 1; }',
    'const f = () => new Promise(() => { const t = setImmediate, g = () => t(g); g(); })',
])
def test_cpu_time(grade, source):
    result = grade(source, cpu_ms=300, wall_ms=100000).result
    assert (result['how'], result['by']) == ('timeout', 'cpu') and result['cpu_ms'] >= 300


def test_time_that_passes_is_no_cpu_time(grade):
    result = grade('const f = () => new Promise((r) => setTimeout(r, 500, 1))', cpu_ms=300).result
    assert result['how'] == 'returned' and result['cpu_ms'] < 300 and 450 < result['wall_ms'] < 10000


# ---------------------------------------------------------------------------------------------------- before and after

@pytest.mark.parametrize('name', ['main.js', 'main.mjs', 'main.ts', 'main.mts'])
def test_a_set_up(grade, name):
    setup = 'const helper = (n) => n + 1;\nlet base = 10;\nclass K { static k = 5; }\nconst path = require("path");'
    if name.endswith('ts'):
        setup = setup.replace('(n)', '(n: number): number')
    assert grade('function f() { return [helper(base), K.k, path.basename("/a/b")]; }', setup=setup, name=name).value == [11, 5, 'b']


def test_a_set_up_may_wait_and_its_names_be_declared_again(grade):
    graded = grade('const x = 2;\nconst f = () => [x, y];', setup='const x = await Promise.resolve(1);\nvar y = x;')
    assert graded.value == [2, 1] and graded.set_up


@pytest.mark.parametrize('source, setup, kind, line', [
    ('const a = 1;\nnull.x;', '', 'TypeError', 2),
    ('let f = 1', 'throw new RangeError("s")', 'RangeError', None),
    ('let f = 1', 'await null; throw new RangeError("s")', 'RangeError', None),
    ('let f = 1', 'let = ;', 'SyntaxError', None),
])
@pytest.mark.parametrize('name', ['main.js', 'main.mjs'])
def test_a_program_that_fails_as_it_is_loaded(grade, name, source, setup, kind, line):
    graded = grade(source, setup=setup, name=name)
    assert (graded.kinds, graded.status) == ('HELLO STARTED ERROR DONE', 1)
    assert (graded.outcome.error['type'], graded.outcome.error['line']) == (kind, line) and kind in graded.stderr


@both_roads
@pytest.mark.parametrize('name, source', [('main.js', 'let x = 1;\nfoo bar;'), ('main.mjs', 'let x = 1;\nexport foo bar;'), ('main.ts', '\nlet x: = 1;')])
def test_a_program_that_does_not_parse(grade, name, source):
    graded = grade(source, name=name)
    assert (graded.kinds, graded.status, graded.outcome.syntax['line']) == ('HELLO SYNTAX', 1, 2)


def test_a_program_that_exits_as_it_is_loaded(grade):
    graded = grade('process.exit(4)')
    assert (graded.kinds, graded.status) == ('HELLO STARTED DONE', 4)


@pytest.mark.parametrize('members, message', [
    ({'args': '[1'}, 'the arguments are no JSON'), ({'args': '{}'}, 'the arguments are no JSON array'),
    ({'args_python': '(1,)'}, 'args_python'), ({'kwargs': '{"a": 1}'}, 'JavaScript has no keyword arguments'),
])
def test_a_case_that_is_none(grade, members, message):
    result = grade('const f = () => 1', cases=[{**case(), **members}]).result
    assert result['how'] == 'bad_case' and message in result['message']


def test_a_case_without_arguments_or_limits(grade):
    assert grade('const f = (...all) => all', cases=[{'i': 3}]).value == []
    assert grade('const f = (...all) => all', cases=[{'i': 3, 'args': None, 'kwargs': '{}'}]).value == []


def test_several_cases_in_one_process(grade):
    cases = [case(i, [i]) for i in range(20)] + [case(20, ['x'])]
    graded = grade('let n = 0;\nfunction f(i) { if (i === "x") throw new Error(); return [i, ++n]; }', cases=cases)
    assert [json.loads(one['value']) for one in graded.results[:-1]] == [[i, i + 1] for i in range(20)]
    assert graded.results[-1]['how'] == 'raised' and graded.talks[-1] == {'op': 'end', 'signs': []}


@both_roads
def test_output_is_the_process_own_and_is_all_written(grade):
    graded = grade('console.error("loaded"); const f = () => { process.stdout.write("x".repeat(3e6)); setInterval(() => {}, 1000); return 1; }')
    assert graded.value == 1 and graded.stdout == 'x' * 3000000 and graded.stderr == 'loaded\n'


def test_modules_of_the_program(grade):
    assert grade('const { two } = require("./two.js");\nconst f = () => two', files={'two.js': 'exports.two = 2'}).value == 2


@pytest.mark.skipif(NODE_MAJOR < 20, reason='needs Node 20: process.getBuiltinModule()')
@pytest.mark.parametrize('name', ['main.js', 'main.mjs'])
def test_nothing_of_the_runner_is_loaded_for_the_program(grade, name):
    source = 'const f = () => Object.keys(process.getBuiltinModule("module")._cache).filter((file) => file.includes("/lang/node/"))'
    assert grade(source, name=name).value == []


def test_the_engine_is_gone(tmp_path):
    (tmp_path / 'main.js').write_text('const f = () => 1')
    process = Process([NODE, RUNNER, 'graded=1', str(tmp_path / 'main.js')], tmp_path)
    process.ours.shutdown(1)
    outcome = process.end()
    assert (outcome.kinds, outcome.status) == ('HELLO', 0)


@pytest.mark.parametrize('packet', [
    b'CSN1\x09\0\0\0\1\0\0\0E', b'CSN1\x0a\0\0\0\2\0\0\0E', b'x', *packets_of(MESSAGE, b'E{}'), *packets_of(MESSAGE, b'E['), *packets_of(MESSAGE, b'P{"op":"begin","role":"cases","cases":[]}'),
    *packets_of(MESSAGE, b'E{"op":"begin","role":"cases","cases":[{}]}'), *packets_of(MESSAGE, b'E{"op":"begin","role":"judge","cases":[]}'),
    *packets_of(MESSAGE, b'E{"op":"begin","cases":[]}'),
])
def test_a_beginning_that_is_none(tmp_path, packet):
    (tmp_path / 'main.js').write_text('const f = () => 1')
    process = Process([NODE, RUNNER, 'graded=1', str(tmp_path / 'main.js')], tmp_path)
    process.ours.send(packet)
    outcome = process.end()
    assert (outcome.kinds, outcome.status) == ('HELLO', 70) and 'no beginning of cases' in outcome.stderr


def test_without_a_channel(tmp_path):
    outcome = Process([NODE, RUNNER, 'graded=1', str(tmp_path / 'main.js')], tmp_path, channel=False).end()
    assert (outcome.packets, outcome.status) == ([], 70) and 'no channel' in outcome.stderr


# ------------------------------------------------------------------------------------------------------------- forging

# What stands before a function that returns [1, {"a": "b"}]; what it returns must arrive all the same.
PATCHES = [
    'JSON.stringify = () => "forged"; JSON.parse = () => [];',
    'Array.prototype[Symbol.iterator] = function* () { yield 666; };',
    'for (const name of Object.getOwnPropertyNames(Array.prototype)) if (name !== "length") Array.prototype[name] = () => 666;',
    'for (const name of Object.getOwnPropertyNames(String.prototype)) if (name !== "length") String.prototype[name] = () => "forged";',
    'for (const name of Object.getOwnPropertyNames(Buffer.prototype)) try { Buffer.prototype[name] = () => 0 } catch {}\nBuffer.from = Buffer.alloc = 1;',
    'for (const kind of [Map, Set]) for (const name of ["get", "set", "has", "add", "forEach"]) kind.prototype[name] = () => 666;',
    'for (const name of Object.getOwnPropertyNames(Object)) try { Object[name] = () => 666 } catch {}',
    'for (const name of Object.getOwnPropertyNames(Reflect)) Reflect[name] = () => 666;',
    'Object.prototype.toJSON = Array.prototype.toJSON = () => "forged"; Object.prototype.value = 666;',
    'Object.defineProperty(Object.prototype, "get", {get() { return 666 }}); Object.prototype.t = Object.prototype.how = "forged";',
    'for (const i of [0, 1, 2]) Object.defineProperty(Array.prototype, i, {set() {}, get() { return 666 }, configurable: true});',
    # Node 18 itself looks up `error` on its way to the program.
    'for (const name of ["problem", "lost", "ticking", "poll", "outcome", "Class", "breakOnSigint"' + (', "error"' if NODE_MAJOR > 18 else '') + ']) Object.prototype[name] = 666;',
    'Promise.prototype.then = () => {}; Promise.resolve = () => {};',
    'Object.defineProperty(Promise.prototype, "constructor", {value: class { static get [Symbol.species]() { return Promise } }});',
    'Function.prototype.call = Function.prototype.apply = Function.prototype.bind = () => 666;',
    'Function.prototype[Symbol.hasInstance] = () => true; RegExp.prototype.exec = () => null; Symbol.iterator = 1;',
    'process.exit = process.emit = process.on = process.cpuUsage = process.uptime = process.hrtime = () => 0;',
    'process._tickCallback = globalThis.setImmediate = globalThis.setInterval = globalThis.clearInterval = () => {};',
    'Number.isSafeInteger = Number.isFinite = () => false; Math.round = () => 1; Number.prototype.toString = () => "9";',
    'require("util").inspect = require("util").types.isProxy = () => true; require("util").types.isPromise = () => false;',
    'const vm = require("vm"); vm.Script.prototype.runInThisContext = () => {};',
    'require("fs").writeSync = require("fs").fstatSync = () => { throw 1 };',
    'Error.prepareStackTrace = () => { throw 1 }; Error.stackTraceLimit = 0; globalThis.Error = class {};',
    'delete globalThis.Buffer; delete globalThis.JSON; delete globalThis.Object; delete globalThis.Map; delete globalThis.Reflect;',
    '__caisson__.go(); try { __caisson__.go = 1; __caisson__.names = {f: () => () => 666}; delete globalThis.__caisson__ } catch {}',
    'for (const file of Object.keys(require.cache)) require.cache[file].exports = {};',
    'Object.freeze(Object.prototype); Object.freeze(Array.prototype); Object.preventExtensions(globalThis);',
]


@pytest.mark.parametrize('patch', PATCHES)
def test_patches_do_not_change_what_is_told(grade, patch):
    source = 'const value = [1, {a: "b"}];\n%s\nasync function f() { return value; }' % patch
    graded = grade(source)
    assert graded.value == [1, typed('dict', [['a', 'b']])]


def test_patches_are_told(grade):
    graded = grade('JSON.stringify = () => ""; Array.prototype.map = () => []; globalThis.fetch2 = 1;\nArray.prototype.mine = 1; const f = () => 1')
    assert graded.value == 1
    assert graded.talks[-1]['signs'] == [{'sign': 'patched_builtins', 'detail': 'Array.prototype.map, JSON.stringify'}]


@pytest.mark.parametrize('text', [
    '({then(resolve) { resolve(666) }})',
    'new (class { then(resolve) { resolve(666) } toJSON() { return 666 } valueOf() { return 666 } [Symbol.toPrimitive]() { return 666 } })()',
    'new Proxy([666], {})',
    'new Proxy({}, {ownKeys: () => [], get: () => 666})',
    'new Proxy(Promise.resolve(666), {})',
    '({get x() { console.log("called") }, toJSON() { console.log("called") }})',
    'new (class { get [Symbol.toStringTag]() { return 1 } [require("util").inspect.custom]() { console.log("called") } })()',
    'Object.setPrototypeOf([1], new Proxy(Array.prototype, {}))',
])
def test_what_a_value_says_of_itself_is_not_asked(grade, text):
    graded = grade('const f = () => (%s)' % text)
    assert graded.result['how'] == 'unencodable' and graded.stdout == ''


def test_a_promise_of_an_own_class_is_awaited(grade):
    assert grade('class P extends Promise {}\nconst f = () => P.resolve([1])').value == [1]
    graded = grade('const f = () => Object.defineProperty(Promise.resolve(1), "constructor", {get() { throw new Error("asked") }})')
    assert graded.result['how'] == 'raised'


def test_a_value_is_written_as_it_was_when_it_was_returned(grade):
    assert grade('const f = () => { const a = [1]; process.nextTick(() => a.push(2)); Promise.resolve().then(() => a.push(3)); return a; }').value == [1]


@pytest.mark.parametrize('sockets', [True, False])
def test_what_is_written_to_every_descriptor_is_a_packet_of_its_own(tmp_path, sockets):
    """It has no header, so the engine counts nothing of this channel.  Node itself may not survive it."""
    forged = b'{"op":"result","i":0,"how":"returned","value":"666"}'
    (tmp_path / 'main.js').write_text("""const fs = require('fs');
const f = () => {
  for (let fd = 3; fd < 100; fd++) {
    try {
      if (!%s || fs.fstatSync(fd).isSocket())
        fs.writeSync(fd, '%s');
    } catch {}
  }
  return 1;
}""" % (json.dumps(sockets), forged.decode()))
    process = Process([NODE, RUNNER, 'graded=1', str(tmp_path / 'main.js')], tmp_path)
    send(process, {'op': 'begin', 'role': 'cases', 'setup': '', 'function': 'f', 'cases': [case()]})
    outcome = process.end()
    assert outcome.packets.count(forged) == 1
    outcome.packets.remove(forged)
    if sockets:
        assert Graded(outcome).value == 1
    else:
        assert outcome.kinds in ('HELLO STARTED MESSAGE', 'HELLO STARTED MESSAGE MESSAGE MESSAGE DONE')


def test_a_closed_channel_tells_nothing_and_writes_to_no_file(grade, tmp_path):
    graded = grade("""const fs = require('fs');
const f = () => { fs.closeSync(3); return fs.openSync('taken', 'w'); }""")
    assert graded.talks == [] and (tmp_path / 'taken').read_bytes() == b''


def test_programs_that_are_started_do_not_get_the_channel(grade):
    source = '''const f = () => String(require("child_process").execSync('ls -l /proc/self/fd | grep -c " 3 -> socket"; true'))'''
    assert grade(source).value == '0\n'


def test_files_have_no_names_of_ours_in_errors(grade):
    assert 'lang/node' not in grade('const f = () => new Error("x").stack.split("\\n")[1]').result['value']
    assert os.path.exists(RUNNER)
