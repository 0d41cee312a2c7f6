"""Waiting workers: that nothing of the waiting is seen, and what they do when no program comes.

That a worker runs programs as a runner does is tested in test_runners.py.
"""

import json
import re
import signal
import time

import pytest

from runners import ENVIRONMENT, GO_FD, NODE, encode, plain, runner_of, worker


@pytest.fixture
def both(tmp_path):
    """both('main.js', source) -> the outcomes of the two roads"""

    def start(name, source, **settings):
        return [runner_of(road, tmp_path)(name, source, **settings) for road in ('cold', 'waiting')]

    return start


def without_addresses(text):
    return re.sub(r'0x[0-9a-f]+', '0x', text)


def environment(home, **changes):
    return {**ENVIRONMENT, 'HOME': str(home), **changes}


def run_worker(home, name, source, environment_of_run):
    process = worker(home, name)
    (home / name).write_text(source)
    process.tell(encode(['', str(home / name)], environment_of_run))
    return process.end()


# ------------------------------------------------------------------------------------------------ what is not to be seen

NODE_TRACES = r"""
const asked = {
  argv: process.argv.slice(1), argv0: process.argv0, execArgv: process.execArgv, title: process.title,
  environment: Object.entries(process.env).filter(([name]) => name !== '_'),
  resources: process.getActiveResourcesInfo(), handles: process._getActiveHandles().length,
  requests: process._getActiveRequests().length,
  descriptors: require('fs').readdirSync('/proc/self/fd').filter((fd) => {
    try { return require('fs').readlinkSync(`/proc/self/fd/${fd}`).startsWith('socket:'); } catch { return false; }
  }),
  cache: Object.keys(require.cache).filter((file) => !file.includes('/node_modules/') && !file.includes('/lang/node/')),
  children: module.children.length, main: require.main === module, parent: module.parent ?? null,
  globals: Object.getOwnPropertyNames(globalThis).sort(), exitCode: process.exitCode,
  listeners: process.eventNames().map((name) => [String(name), process.listenerCount(name)]),
  warnings: process.listenerCount('warning'), stackTraceLimit: Error.stackTraceLimit,
  prepare: typeof Error.prepareStackTrace, domain: process.domain ?? null, umask: process.umask(), cwd: process.cwd(),
  exit: String(process.reallyExit),
  stack: new Error('here').stack, rejections: process._events.unhandledRejection === undefined,
  sourceMaps: process.sourceMapsEnabled ?? null, ticks: require('perf_hooks').performance.nodeTiming.loopStart,
};
process.stdout.write(JSON.stringify(asked));
"""


def test_node_does_not_see_the_waiting(both):
    cold, waiting = (json.loads(outcome.stdout) for outcome in both('main.js', NODE_TRACES))
    assert waiting == cold


@pytest.mark.parametrize('source', [
    'function f() { throw new Error("deep") }\nf();',
    'setTimeout(() => { null.x }, 1);',
    'process.on("exit", () => { throw new Error("at the end") });',
    'process.on("exit", (code) => { console.log("first", code); process.exitCode = 9; });\n'
    'process.once("exit", (code) => console.log("second", code, process.exitCode));',
    'process.on("beforeExit", () => process.on("exit", () => console.log("late")));',
    'let n = 0;\nprocess.on("beforeExit", () => { if (n++ < 2) setImmediate(() => console.log("again")); });\n'
    'process.on("exit", (code) => console.log(code, n));',
    'process.on("exit", () => { process.on("exit", () => console.log("never")); process.exitCode = 5; });',
    'process.on("newListener", (name) => console.log("new", name));\nprocess.on("exit", () => {});',
    'process.on("removeListener", (name) => console.log("removed", name));',
    'process.exitCode = "7";',
    'process.on("exit", () => process.exit(3));',
    'Promise.reject(new Error("r"));',
    'new Promise(() => {});\nprocess.stdout.write("x".repeat(3000000));',
    'const { Worker } = require("worker_threads");\nnew Worker("console.log(1); process.exit(2)", {eval: true})'
    '.on("exit", (code) => console.log("exit", code));',
    'new FinalizationRegistry(() => console.log("final")).register({}, 1);',
    'process.reallyExit = () => console.log("mine");\nconsole.log(1);',
])
def test_node_ends_the_same(both, tmp_path, source):
    cold, waiting = both('main.js', source)
    expected = plain(NODE, tmp_path, 'main.js')
    assert (cold.stdout, cold.status) == (expected.stdout, expected.returncode)
    assert (waiting.stdout, waiting.stderr, waiting.status, waiting.kinds, waiting.error) == (
        cold.stdout, cold.stderr, cold.status, cold.kinds, cold.error)


# What a worker says of its end: its status when nothing more can come of it, and else nothing.

@pytest.mark.parametrize('source, left', [
    ('', 0),
    ('console.log(1)', 0),
    ('({ a: 1 })', 0),
    ('process.exit(3)', 3),
    ('process.exit("4")', 4),
    ('process.exit(256 + 5)', 5),
    ('process.exit(-1)', 255),
    ('setTimeout(() => process.exit(6), 5);', 6),
    ('process.exitCode = 7;', 7),
    ('process.on("exit", () => { process.exitCode = 8; });', 8),
    ('process.on("exit", () => { process.exitCode = 8; });\nprocess.exit(1);', 8),
    ('process.on("exit", () => process.exit(9));', 9),
    ('process.on("exit", () => process.exit(9));\nprocess.exit(1);', 9),
    ('process.on("exit", () => process.exit(10));\nnull.x;', 10),
    ('process.on("uncaughtException", () => process.exit(11));\nnull.x;', 11),
    ('process.on("exit", () => process.on("exit", () => console.log("never")));\nprocess.exit(12);', 12),
    ('process.stdout.write("x".repeat(3000000));', 0),
    ('require("fs").writeFileSync("f", "x");', 0),
    ('require("fs").promises.writeFile("f", "x");', 0),
    ('process.on("exit", (code) => { if (code !== 1) console.log("wrong") });\nnull.x;', None),
    ('process.on("exit", () => { null.x });', None),
    ('process.on("exit", () => { null.x });\nprocess.exit(0);', None),
    ('Promise.reject(new Error("r"));', None),
    ('process.on("uncaughtException", () => { null.x });\nnull.x;', None),
    ('process.reallyExit(3);', None),
    ('process.on("exit", () => process.reallyExit(14));', 14),
    ('process.on("exit", () => process.reallyExit({ valueOf() { console.log("once"); return 15; } }));', None),
    ('const { reallyExit } = process;\nprocess.reallyExit = () => reallyExit.call(process, 16);\nprocess.exit(1);', None),
    ('process.kill(process.pid, "SIGKILL");\nsetInterval(() => {}, 1000);', None),
    ('process.on("exit", () => process.kill(process.pid, "SIGKILL"));', None),
    ('process.abort();', None),
    ('process.on("exit", () => process.abort());', None),
    ('syntax error', None),
])
def test_node_tells_its_status(both, source, left):
    cold, waiting = both('main.js', source)
    assert (cold.left, waiting.left) == (None, left)
    # Node prints addresses of its own code when it aborts.
    assert (waiting.stdout, without_addresses(waiting.stderr), waiting.status, waiting.kinds) == (
        cold.stdout, without_addresses(cold.stderr), cold.status, cold.kinds)


def test_a_module_tells_its_status(both):
    cold, waiting = both('main.mjs', 'process.exitCode = await 13;\nconsole.log(import.meta.url);')
    assert (cold.left, waiting.left) == (None, 13)


@pytest.mark.parametrize('source', [
    'const fs = require("fs");\nconst fd = fs.openSync("f", "w");\n'
    'for (let i = 0; i < 50; i++)\n  fs.write(fd, "x".repeat(100000), () => {});\nprocess.exit(0);',
    'require("fs").promises.writeFile("f", "x");\nprocess.exit(0);',
    'require("child_process").spawn("sh", ["-c", "sleep 0.2; echo late"], { stdio: "inherit", detached: true }).unref();',
    'require("child_process").execSync("(sleep 0.2; echo late) &", { stdio: "inherit" });',
    'process.binding("spawn_sync").spawn({ file: "/bin/true", args: ["true"], stdio: [] });',
    'const { Worker } = require("worker_threads");\n'
    'new Worker("setInterval(() => {}, 1000)", { eval: true }).unref();\nprocess.exit(0);',
    'import { spawn } from "node:child_process";\nspawn("true");',
])
def test_node_says_nothing_while_others_are_at_work(both, tmp_path, source):
    cold, waiting = both('main.js', source)
    assert waiting.left is None
    assert (waiting.stdout, waiting.status, waiting.kinds) == (cold.stdout, cold.status, cold.kinds)
    if 'fs.write(' in source:
        assert (tmp_path / 'f').stat().st_size == 5000000


BASH_TRACES = r"""
{
  set | grep -v '^\(BASHPID\|SECONDS\|PIPESTATUS\|BASH_ARGC\)='; shopt; set -o; export -p; trap; jobs; alias; hash
  caller; umask; declare -F; echo "[$!][$?][$_][$0][$#][$-][$LINENO][${BASH_SOURCE[*]}][$BASH_COMMAND]"
  env; ls -l /proc/$$/fd >descriptors; grep -c socket descriptors; ls /proc/$$/fd
} 2>&1
nothing_of_this_name
"""


def test_bash_does_not_see_the_waiting(both):
    cold, waiting = both('main.sh', BASH_TRACES)
    assert (waiting.stdout, waiting.stderr, waiting.status) == (cold.stdout, cold.stderr, cold.status)
    assert 'caisson' not in waiting.stdout.lower().replace('caisson_test', '')


def test_seconds_begin_with_the_program(tmp_path):
    """They are whole ones of the clock, so what they began with is compared."""
    process = worker(tmp_path, 'main.sh')
    with pytest.raises(TimeoutError):
        process.go.settimeout(1.1)
        process.go.recv(1)
    (tmp_path / 'main.sh').write_text('echo $((-SECONDS + EPOCHSECONDS))')
    told = int(time.time())
    process.tell(encode(['', str(tmp_path / 'main.sh')], environment(tmp_path)))
    assert int(process.end().stdout) >= told


@pytest.mark.parametrize('name, source', [
    ('main.js', 'for (const [name, value] of Object.entries(process.env)) console.log(`${name}=${value}`)'),
    ('main.js', 'process.stdout.write(require("child_process").execFileSync("/usr/bin/env"))'),
    ('main.sh', 'env'),
])
def test_the_environment_is_that_of_the_document(tmp_path, name, source):
    wanted = {'PATH': '/usr/bin:/bin', 'HOME': str(tmp_path), 'TZ': 'Asia/Tokyo', 'main': 'one\ntwo  ', 'EMPTY': '',
              'fields': '$(date) "é"', 'STARTED': 'a=b', 'text': '*'}
    lines = run_worker(tmp_path, name, source, wanted).stdout.split('\n')
    own = ('PWD=', 'OLDPWD=', 'SHLVL=', '_=')
    lines = [line for line in lines if line and not line.startswith(own)]
    assert sorted(lines) == sorted('\n'.join('%s=%s' % entry for entry in wanted.items()).split('\n'))


@pytest.mark.parametrize('change', [
    lambda usual: usual,
    lambda usual: {**usual, 'ADDED': '1'},
    lambda usual: {**usual, 'TZ': 'Asia/Tokyo', 'LANG': 'C', 'ADDED': '1', 'LAST': ''},
    lambda usual: dict(reversed(usual.items())),
    lambda usual: {'FIRST': '1', **usual},
    lambda usual: dict(list(usual.items())[1:]),
    lambda usual: {},
])
def test_node_has_its_environment_in_order(tmp_path, change):
    wanted = change(environment(tmp_path, TZ='UTC'))
    source = 'console.log(JSON.stringify(Object.entries(process.env)))'
    assert json.loads(run_worker(tmp_path, 'main.js', source, wanted).stdout) == [list(entry) for entry in wanted.items()]


def test_the_time_zone_is_that_of_the_document(tmp_path):
    wanted = environment(tmp_path, TZ='Asia/Tokyo')
    assert run_worker(tmp_path, 'main.js', 'console.log(new Date(0).getHours())', wanted).stdout == '9\n'
    assert run_worker(tmp_path, 'main.sh', 'printf "%(%H)T\\n" 0', wanted).stdout == '09\n'


@pytest.mark.parametrize('name, source', [
    ('main.js', 'console.log(Math.random(), require("crypto").randomUUID())'),
    ('main.sh', 'echo $RANDOM $RANDOM $RANDOM $SRANDOM'),
])
def test_two_workers_share_nothing(tmp_path, name, source):
    outcomes = {run_worker(tmp_path, name, source, environment(tmp_path)).stdout for _ in range(4)}
    assert len(outcomes) == 4


# --------------------------------------------------------------------------------------------------- syntax and its check

@pytest.mark.parametrize('source', [
    'echo ran\n\nif true; then fi\n', 'echo ran > ran\n"', 'echo ran\ncat <<X\nno end', 'exit 3', 'set +n\nif\n',
    'shopt -s extglob\ncase a in @(a|b)) echo m;; esac', '\\', 'f() {\n', 'echo ran\n)\n', 'x=$(\n', 'echo ${x', '',
    'eval "if"\necho after', 'echo a\0b', '#!/bin/sh\necho $0\r\n', 'return 4', 'alias x="if"\nx\n', 'coproc', '((\n', '$(' * 20000,
    'echo "$(if)"', '{ echo a; } 2>&1 )', 'cat <<A <<B\n1\nA\n2\nB\n)', 'function f { :; }\nf', 'a=(1 2\n', '\x01\x7f )',
])
def test_bash_checks_syntax_the_same(both, tmp_path, source):
    cold, waiting = both('main.sh', source)
    assert (waiting.stdout, waiting.stderr, waiting.status, waiting.frames()) == (
        cold.stdout, cold.stderr, cold.status, cold.frames())
    assert not (tmp_path / 'ran').exists()


# ------------------------------------------------------------------------------------------------------- no program comes

@pytest.mark.parametrize('name', ['main.js', 'main.sh'])
def test_nothing_comes(tmp_path, name):
    process = worker(tmp_path, name)
    process.tell(b'')
    outcome = process.end()
    assert (outcome.status, outcome.stdout, outcome.stderr, outcome.packets) == (0, '', '', [])


@pytest.mark.parametrize('name', ['main.js', 'main.sh'])
@pytest.mark.parametrize('document', [
    b'x', b'\0', b'2\0', b'2\0\0HOME/NAME\0', b'2\0\0HOME/NAME\x002\0A=b\0', b'2\0\0HOME/NAME\x001\0A=b\0more\0',
    b'1\0HOME/NAME\x000\0', b'-1\0\x000\0', b'2\0\0HOME/NAME\0two\0A=b\0C=d\0',
])
def test_what_comes_is_no_program(tmp_path, name, document):
    (tmp_path / name).write_text('')
    process = worker(tmp_path, name)
    process.tell(document.replace(b'HOME', str(tmp_path).encode()).replace(b'NAME', name.encode()))
    outcome = process.end()
    assert (outcome.status, outcome.stdout, outcome.packets) == (70, '', [])
    assert 'descriptor %d' % GO_FD in outcome.stderr or 'can only run' in outcome.stderr


def test_bash_runs_only_what_it_was_started_for(tmp_path):
    for arguments in (['', str(tmp_path / 'other.sh')], ['', str(tmp_path / 'main.sh'), 'argument']):
        process = worker(tmp_path, 'main.sh')
        process.tell(encode(arguments, environment(tmp_path)))
        assert process.end().status == 70


@pytest.mark.parametrize('name', ['main.js', 'main.sh'])
def test_a_worker_is_easy_to_end(tmp_path, name):
    process = worker(tmp_path, name)
    process.popen.send_signal(signal.SIGTERM)
    assert process.end().status == -signal.SIGTERM
