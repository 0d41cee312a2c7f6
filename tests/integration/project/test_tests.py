"""The test runner itself: slots, order, shards, the table of affected parts, and the cache of lint results."""

import importlib.machinery
import importlib.util
import re
import subprocess
import sys
import threading
import time

import pytest

from caisson_testing import ROOT
from programs import Program
from scheduler import Queue, run_all
from tap_reader import Tally


def load(name, path):
    """A Python program without the ending .py as a module."""
    loader = importlib.machinery.SourceFileLoader(name, str(ROOT / path))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    loader.exec_module(module)
    return module


RUN = load('tests_run', 'tests/run')


def program(name, **how):
    return Program(name, ['true'], 1, **how)


def names(queue):
    """The order in which one worker gets the programs."""
    found = []
    while one := queue.next():
        found.append(one.name)
        queue.done(one)
    return found


def test_early_ones_start_first_then_the_longest_and_those_alone_on_the_machine_last():
    queue = Queue([program('alone', alone=['machine'], estimate=9), program('short', estimate=1), program('long', estimate=5),
                   program('early', early=True, estimate=0)])
    assert names(queue) == ['early', 'long', 'short', 'alone']


def test_two_holders_of_a_slot_never_run_at_the_same_time_and_beside_the_machine_slot_runs_nothing():
    running, seen, lock = [], [], threading.Lock()
    programs = [program(f'{slot}{n}', alone=[slot] if slot else []) for slot in ('', 'a', 'b', 'machine') for n in range(4)]

    def run_one(one):
        with lock:
            running.append(one)
            seen.append([other.name for other in running])
            for slot in one.alone:
                assert sum(slot in other.alone for other in running) == 1
            assert not any('machine' in other.alone for other in running) or len(running) == 1
        time.sleep(0.01)
        with lock:
            running.remove(one)
        return Tally()

    run_all(programs, 4, run_one)
    assert len(seen) == len(programs) and max(map(len, seen)) > 1


def test_a_background_program_takes_no_worker_and_nothing_alone_on_the_machine_runs_beside_it():
    ended, order = threading.Event(), []

    def run_one(one):
        if one.name == 'machine':
            assert ended.is_set()
        order.append(one.name)
        if one.background:
            time.sleep(0.1)
            order.append('end')
            ended.set()
        return Tally()

    run_all([program('behind', background=True), program('a'), program('b'), program('machine', alone=['machine'])], 1, run_one)
    assert order.index('a') < order.index('end') and order.index('b') < order.index('end') < order.index('machine')


def test_a_fault_of_the_runner_ends_the_run():
    def broken(_program):
        raise OSError('no more processes')
    with pytest.raises(OSError, match='no more processes'):
        run_all([program('one'), program('two')], 2, broken)


def test_shards_and_slots_of_a_file_share_out_every_test(tmp_path):
    (tmp_path / 'conftest.py').write_text((ROOT / 'tests/conftest.py').read_text().replace(
        'Path(__file__).resolve().parent / "lib"', repr(str(ROOT / 'tests/lib'))))
    path = tmp_path / 'test_sample.py'
    path.write_text('"""Sample."""\n# shards: 3\nimport pytest\n' + ''.join(f'def test_{n}(): pass\n' for n in range(10)) +
                    '@pytest.mark.alone("time")\ndef test_slow(): pass\n')
    programs = list(RUN.pytest_file(path, 'build', {}))
    assert sorted(sorted(one.alone) for one in programs) == [[], [], [], ['time']]
    ran = []
    for one in programs:
        done = subprocess.run([*one.command[:3], '-v', '-p', 'no:cacheprovider', str(path)], env={'PATH': '/usr/bin', **one.env, 'PYTHONPATH': str(ROOT / 'tests/lib')},
                              capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout
        ran += re.findall(r'::(\w+) PASSED', done.stdout)
    assert sorted(ran) == sorted([f'test_{n}' for n in range(10)] + ['test_slow'])


def test_every_row_of_the_table_names_parts_and_paths_that_exist():
    parts = {part.name for part in RUN.PARTS}
    listed = subprocess.run(['git', '-c', 'safe.directory=*', 'ls-files'], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split('\n')
    for line in (ROOT / 'tests/AFFECTS').read_text().splitlines():
        prefix, colon, words = line.split('#')[0].partition(':')
        if colon:
            assert any(path.startswith(prefix.strip()) for path in listed), f'{prefix} is no path'
            assert words.split() and {word.partition('=')[0] for word in words.split()} <= parts, line


@pytest.mark.parametrize('path, has, lacks', [
    ('src/sandbox/seccomp.c', {'vm', 'sandbox', 'lint', 'unit', 'integration', 'compat'}, set()),
    ('docs/use/limits.md', {'lint', 'integration'}, {'vm', 'unit', 'sandbox'}),
    ('src/front/e2b/app/control_list.c', {'compat', 'unit'}, {'vm', 'sandbox'}),
    ('a-new-folder/file', {'vm', 'lint'}, set())])
def test_a_change_chooses_its_parts(path, has, lacks):
    chosen = set(RUN.affected([path]))
    assert has <= chosen and not lacks & chosen


def test_the_smoke_files_exist():
    for folder, stems in RUN.SMOKE.items():
        assert all((ROOT / 'tests/compat' / folder / f'{stem}.test.mjs').exists() for stem in stems)
    assert {path.parent.name for path in (ROOT / 'tests/compat').glob('*/*.test.mjs')} == set(RUN.SMOKE)


@pytest.fixture(name='cache')
def lint_cache(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / 'tests/lint'))
    monkeypatch.setenv('CAISSON_LINT_CACHE', str(tmp_path / 'cache'))
    yield load('lint_cache', 'tests/lint/cache.py')
    sys.modules.pop('tap', None)


def test_only_clean_results_are_kept_and_any_input_counts(cache, tmp_path):
    source, header = tmp_path / 'a.c', tmp_path / 'a.h'
    header.write_text('int a;\n')
    source.write_text('#include "a.h"\n')
    calls = []

    def check(*flags, findings=(), tool='clang-tidy'):
        return cache.checked(tool, str(source), list(flags), lambda: calls.append(flags) or list(findings))

    assert check(findings=['a.c:1: bad']) == check(findings=['a.c:1: bad']) == ['a.c:1: bad'] and len(calls) == 2
    assert check() == check() == [] and len(calls) == 3
    assert check('-DA') == [] and len(calls) == 4
    assert check(tool='cppcheck') == [] and len(calls) == 5
    header.write_text('int a; /* NOLINT */\n')
    assert check() == [] and len(calls) == 6
    header.write_text('int a;\n')
    assert check() == [] and len(calls) == 6
    source.write_text('#include "missing.h"\n')
    assert check() == check() == [] and len(calls) == 8
