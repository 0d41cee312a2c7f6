"""No submission gets a mask: programs that break their sandbox, their runner, their checker or the comparison have failed."""
# shards: 2

import json

import pytest
from cli import ROOT, caisson

CHECKER = ('import json, sys\n_, output, answer = (open(name).read() for name in sys.argv[1:])\njson.loads(output)\n'
           'parts = [0] * int(output)\nprint("wrong answer", file=sys.stderr)\nsys.exit(len(parts) != int(answer))\n')
WAYS = {
    'calls': {'function': 'f', 'cases': [{'args': [1], 'expected': 2}, {'args': [2], 'expected': 3}]},
    'stdin': {'cases': [{'stdin': '1\n', 'expected_stdout': '2\n'}, {'stdin': '2\n', 'expected_stdout': '3\n'}]},
    'checker': {'checker': {'kind': 'testlib', 'code': CHECKER}, 'cases': [{'stdin': '1\n', 'expected_stdout': '2\n'}]},
    'tests': {'tests': 'assert f(1) == 2\ndef test_more(): assert f(2) == 3\n'},
}
LIMITS = {'case_cpu_ms': 300, 'limits': {'wall_ms': 2500, 'memory_bytes': 256 << 20}}


def programs():
    """[(title, submission, ways)]"""
    rows = []
    for part in (ROOT / 'tests/cases/grade/mask.txt').read_text().split('\n### '):
        title, _, text = part.removeprefix('### ').partition('\n')
        code, _, ways = text.partition('\n---\n')
        rows.append((title, code, ways.split()))
    return rows


def graded(requests):
    text = ''.join(json.dumps(request) + '\n' for request in requests).encode()
    done = caisson('grade', '--json', '-j', '4', '-', stdin=text)
    results = {result['id']: result for result in map(json.loads, done.out.splitlines())}
    assert len(results) == len(requests), done.err
    return results


@pytest.mark.parametrize('instance', ['fresh', 'shared'])
@pytest.mark.parametrize('way', WAYS)
def test_no_submission_gets_a_mask(way, instance):
    rows = [(title, code) for title, code, ways in programs() if way in ways]
    assert len(rows) >= 10
    results = graded([{'id': title, 'code': code, 'instance': instance, **WAYS[way], **LIMITS} for title, code in rows])
    wrong = {title: (result['status'], result['score'], result['error']) for title, result in results.items()
             if result['mask'] or result['score'] != 0 or result['all_passed'] or result['retryable']}
    assert wrong == {}


def test_there_are_twenty_programs_at_least():
    rows = programs()
    assert len(rows) >= 20 and len({title for title, *_ in rows}) == len(rows)
    assert all(ways and set(ways) <= set(WAYS) for *_, ways in rows)


def test_a_program_that_is_right_passes_each_way():
    """The requests that the programs above fail are answered by one that breaks nothing."""
    code = 'import sys\ndef f(x): return x + 1\nif __name__ == "__main__": print(f(int(input())))\n'
    results = graded([{'id': way, 'code': code, **request, **LIMITS} for way, request in WAYS.items()])
    assert {way: result['score'] for way, result in results.items()} == dict.fromkeys(WAYS, 1)


OTHERS = {
    'javascript': ['function f(x) { process.exit(70) }', 'function f(x) { process.kill(process.ppid, "SIGKILL"); process.kill(process.pid, "SIGKILL") }',
                   'const fs = require("fs"); function f(x) { for (let fd = 0; fd < 64; fd++) { try { fs.writeSync(fd, "E{}\\n") } catch {} } process.exit(0) }',
                   'function f(x) { const held = []; for (;;) held.push(new Array(1e6).fill(x)) }', 'function f(x) { process.abort() }',
                   'function f(x) { let value = []; for (let i = 0; i < 64; i++) value = [value, value]; return value }',
                   'const fs = require("fs"); for (let fd = 3; fd < 64; fd++) { try { fs.closeSync(fd) } catch {} }\nfunction f(x) { return null }'],
    'bash': ['kill -9 -1; echo 9', 'exit 125', 'kill -STOP $$', 'kill -9 $PPID; kill -9 1; echo 9', 'while :; do echo yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy; done',
             'b() { b | b & }; b; wait', 'for fd in {3..60}; do eval "echo E{} >&$fd"; done 2>/dev/null', 'rm -rf ./* .[a-z]*; chmod 0 .; exit 3', 'printf "\\0\\xff"'],
}


def test_no_submission_of_another_language_gets_a_mask():
    rows = [(language, way, code) for language, codes in OTHERS.items() for code in codes for way in (('calls',) if language == 'javascript' else ('stdin', 'checker'))]
    results = graded([{'id': '%s %s %s' % row, 'language': row[0], 'code': row[2], **WAYS[row[1]], **LIMITS} for row in rows])
    wrong = {name: (result['status'], result['score'], result['error']) for name, result in results.items() if result['mask'] or result['score'] != 0}
    assert wrong == {}


def test_test_code_that_breaks_its_channel_gives_no_mask():
    """More tests than a grading takes; their run is ended, which is no cancellation."""
    result, = graded([{'id': 'many', 'code': 'def f(x): return x', 'tests': 'assert f(1) == 1\n' * 10_050, 'limits': {'wall_ms': 60_000}}]).values()
    assert (result['status'], result['mask'], result['all_passed']) == ('completed', False, False), result['error']
