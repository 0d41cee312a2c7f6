"""caisson selftest and caisson bench: the confidence and the figures that the LinX guide promises."""

import contextlib
import json
import re
import tempfile
from pathlib import Path

from cli import caisson
from daemon import Daemon
from private_index import PrivateIndex

ROWS = ['simple_python', 'new_dependencies', 'cached_dependencies', 'bash', 'node']


def lines(done):
    return re.findall(r'^(ok|not ok) (\d+) - (.+)$', done.out, flags=re.M)


def leftovers():
    return sorted(Path(tempfile.gettempdir()).glob('caisson-selftest-*'))


@contextlib.contextmanager
def serving(folder, *options):
    daemon = Daemon(folder, *options).ready()
    try:
        yield daemon
    finally:
        daemon.stop()


# ---- selftest ----

def test_the_selftest_passes_on_a_host_that_can_run_programs():
    """S2-78: TAP, each language, a refusal, a time-out, an export and a grading."""
    before = leftovers()
    done = caisson('selftest')
    found = lines(done)
    assert done.out.startswith(f'TAP version 13\n1..{len(found)}\n') and done.status == 0, done.out
    assert [number for _, number, _ in found] == [str(i + 1) for i in range(len(found))] and {word for word, _, _ in found} == {'ok'}, done.out
    for word in 'Python', 'JavaScript', 'Bash', 'refuses', 'endless loop', 'network', 'exported', 'case':
        assert [name for _, _, name in found if word in name], word
    assert leftovers() == before


def test_a_selftest_that_fails_names_the_reason_and_gives_1():
    """S2-78: a ceiling under what the tests ask for refuses most of them; the loop of one second and the grading stay."""
    done = caisson('selftest', '--set', 'ceilings.wall_ms=5s')
    bad = [name for word, _, name in lines(done) if word == 'not ok']
    assert done.status == 1 and 'a program in Bash runs' in bad and 'a file is exported' in bad, done.out
    assert 'an endless loop is ended, and its output is kept' not in bad
    assert 'bad_request' in done.out and 'caisson doctor' in done.out.splitlines()[-1]


def test_a_selftest_goes_to_the_daemon(tmp_path):
    with serving(tmp_path) as daemon:
        done = caisson('selftest', '--daemon', 'always', '--set', f'engine.socket={daemon.path}')
        assert done.status == 0, done.out
    done = caisson('selftest', '--daemon', 'always', '--set', f'engine.socket={daemon.path}')
    assert done.status == 1 and [word for word, _, _ in lines(done)] == ['not ok'] * 6 + ['ok'] * 2, done.out


def test_selftest_and_bench_refuse_other_arguments():
    for words in ('selftest', 'x'), ('bench', 'x'), ('selftest', '--x'), ('bench', '-n', '0'), ('bench', '-n', '10001'), ('bench', '-n', 'x'), \
                 ('bench', '--packages', 'six @ file:///x'), ('bench', '--packages', ''):
        done = caisson(*words)
        assert done.status == 64 and done.out == '' and done.err, (words, done.out, done.err)
    assert '1 to 10000' in caisson('bench', '-n', '10001').err


# ---- bench ----

def bench(*words):
    done = caisson('bench', '--json', *words)
    answer = json.loads(done.out)
    rows = {row['name']: row for row in answer['rows']}
    assert list(rows) == ROWS
    return done.status, answer, rows


def test_the_bench_measures_without_a_daemon_and_says_so():
    """S2-77, U-42: the rows of the guide and Node; without an index two say why they are not there."""
    status, answer, rows = bench('-n', '5')
    assert status == 0 and answer['by'] == 'engine' and answer['socket'] is None
    for name in 'simple_python', 'bash', 'node':
        row = rows[name]
        assert row['runs'] == 5 and 0 < row['p50_ms'] <= row['p99_ms'] and row['first_ms'] > 0, row
    for name in 'new_dependencies', 'cached_dependencies':
        assert 'daemon' in rows[name]['left_out'] and rows[name]['runs'] == 0 and 'p50_ms' not in rows[name]
    text = caisson('bench', '-n', '2').out
    assert 'without a daemon' in text and 'P99' in text and re.search(r'^simple Python +2( +\d+\.\d\d){3}$', text, flags=re.M), text
    assert re.search(r'^new dependencies +left out: ', text, flags=re.M), text


def test_the_bench_measures_a_daemon_with_an_index(tmp_path):
    """S2-60, S2-77: a layer is built in the row of new packages and found in the next; afterwards it is not new."""
    with PrivateIndex() as index:
        index.add_wheel('six', '1.0', {'six.py': 'VERSION = "1.0"\n'})
        with serving(tmp_path, '--set', f'packages.python.index_url={index.url}') as daemon:
            words = '-n', '3', '--daemon', 'always', '--set', f'engine.socket={daemon.path}'
            status, answer, rows = bench(*words)
            assert status == 0 and answer['by'] == 'daemon' and answer['socket'] == str(daemon.path), answer
            assert rows['new_dependencies']['first_ms'] > rows['cached_dependencies']['p99_ms'] and 'p50_ms' not in rows['new_dependencies'], rows
            assert rows['cached_dependencies']['runs'] == 3
            again = bench(*words)[2]
            assert 'before' in again['new_dependencies']['left_out'] and again['cached_dependencies']['runs'] == 3
            assert 'nowhere' in bench(*words, '--packages', 'nowhere')[2]['cached_dependencies']['left_out']


def test_a_row_that_fails_gives_1():
    """S2-77: a time of a program that did not run is no time."""
    done = caisson('bench', '-n', '2', '--set', 'limits.code_bytes=8')
    assert done.status == 1 and re.search(r'^Bash +failed: .', done.out, flags=re.M) and not re.search(r'^Bash +\d', done.out, flags=re.M), done.out
