#!/usr/bin/python3
"""Mixed load over HTTP for some minutes, and whether the daemon takes up more afterwards than before.

    tests/soak/soak.py                            ten minutes
    tests/soak/soak.py --seconds 60 --workers 4
    tests/soak/soak.py --only a_run,a_watch       some steps of load.py

Three things are looked at, each after a time of warming up in which pools, caches and heaps get their size.

While the load goes on, memory is compared between two parts of the time: the median of the last fifth of all samples
against that of the second one.  A median does not see single large answers, and a leak grows from the one part to the
other through 60 % of all steps: of 2 MiB and 3 % that are allowed, a leak of 300 bytes in a step would use up all in ten
minutes at 20 steps a second.  What follows the load (processes, descriptors, cgroups) may differ by more, for a leak
of these is seen exactly when the load has ended:

Then, and when all that waits is there again, everything that can be counted has to be what it was before the load: every
descriptor, process, thread, mount and file.  Memory may be more by the same 2 MiB and 3 %.

And each step has to get the answers that it expects.
"""

import argparse
import statistics
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from signal import SIGTERM

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / 'lib'), str(Path(__file__).resolve().parent)]

from cli import caisson     # noqa: E402
from footprint import look  # noqa: E402
from load import STEPS, Worker, tidy    # noqa: E402
from web import Web         # noqa: E402

SAMPLES = 120
POOL = 2
SETTLE_SECONDS = 100        # longer than HTTP keeps a connection whose client has gone unnoticed (HTTP_IDLE_S)
SLACK_KIB, SLACK_SHARE = 2048, 0.03
# In less time chance is larger than leaks: the trend is not looked at then, and a heap may have grown by some answers.
LONG_SECONDS, SHORT_SLACK_KIB = 120, 16384
# What is kept to be used again has a bound, and how much of it is there depends on how many ran at once: cgroups with a
# folder in every hierarchy of version 1 and 16 descriptors (src/sandbox/cgroup.c), as those have that wait in one that was
# used before; network namespaces, and of some the files in which the kernel shows them (net.c).
# Helper threads are started when jobs wait, and stay (WORKER_THREADS_MAX of src/base/worker.h); the first one is there
# before the load.
SPARE = {'cgroup folders': 16 * 4, 'cgroup descriptors': 32 * 16, 'network namespaces': 32 + 16 * 6, 'threads': 4 - 1}
# What the load makes of these is not the same all the time.
LOAD_SHARE, LOAD_ROOM = 0.5, 40
# A row of the audit, with its indexes, is what a step may leave on disk, besides the room of what was deleted.
DATABASE_KIB_A_STEP, DATABASE_KIB = 4, 16384
# The store moves its log into the file when it has 64 MiB, and uses it again from its beginning.
DATABASE_LOG_KIB = (64 + 16) * 1024
# SQLite makes these when it likes to.
STATE_FILES = 2


class Soak:
    """A daemon, keys of two tenants, and workers."""

    def __init__(self, folder, workers):
        self.folder = folder
        self.keys = [self.key(tenant) for tenant in ('alice', 'bob')]
        self.web = Web(folder, '--set', f'engine.pool_min={POOL}', '--set', f'engine.pool_max={POOL}', '--set', f'engine.pool_shells={POOL}',
                       '--set', 'engine.sandboxes_owner_max=100', '--set', 'engine.log_bytes=1MiB', keyless=False)
        self.workers = [Worker(self.web.port, self.keys, number) for number in range(workers)]

    def key(self, tenant):
        done = caisson('keys', 'create', '--name', tenant, '--tenant', tenant, '--scopes', 'run,check,read,metrics,sandboxes',
                       '--set', f'engine.state_dir={self.folder}')
        assert done.status == 0, done.err
        return done.out.strip()

    def look(self):
        return look(self.web.daemon.process.pid, self.folder)

    def load(self, seconds, all_steps=False):
        """Samples taken while the workers work: for so long, or until each step has been taken."""
        stop, samples = threading.Event(), []
        threads = [threading.Thread(target=worker.work, args=[stop]) for worker in self.workers]
        for thread in threads:
            thread.start()
        begin = time.monotonic()
        while self.web.daemon.process.poll() is None:
            left = begin + seconds - time.monotonic()
            if left <= 0 and (not all_steps or len(self.steps()) == len(STEPS)):
                break
            time.sleep(min(max(left, 0.1), max(0.25, seconds / SAMPLES)))
            samples.append(self.look())
        stop.set()
        for thread in threads:
            thread.join()
        return samples

    def settled(self, base=None):
        """What it takes up when nothing goes on, and what waits is there again; connections of clients that vanished have their time."""
        tidy(self.web.port, self.keys)
        deadline, before = time.monotonic() + SETTLE_SECONDS, None
        while time.monotonic() < deadline:
            with self.web.daemon.client() as client:
                status = client.status()
            ready = all(pool['ready'] == pool['target'] and not pool['making'] for pool in status['pools']) and not status['runs']
            now = self.look()
            ready = ready and not (base and now.get('caissond descriptors', 0) > base.get('caissond descriptors', 0))
            if ready and before and all(now.get(what) == before.get(what) for what in ('processes', 'caissond descriptors', 'supervisor descriptors')):
                return now
            before = now if ready else None
            time.sleep(1)
        return now

    def steps(self):
        """Workers go on counting: what one has taken is copied at once, and then added up."""
        return sum((Counter(dict(worker.taken)) for worker in self.workers), Counter())

    def wrong(self):
        return [what for worker in self.workers for what in worker.wrong]


def median(samples, what, part):
    """Of one of five parts of the samples."""
    values = [sample[what] for sample in samples[len(samples) * part // 5:len(samples) * (part + 1) // 5] if what in sample]
    return round(statistics.median(values)) if values else None


def room(what, before, idle, steps, seconds):
    """How much more may be there."""
    if what == 'database KiB':
        return DATABASE_KIB + steps * DATABASE_KIB_A_STEP
    if what == 'log of the database KiB':
        return max(0, DATABASE_LOG_KIB - before)
    if what.endswith('KiB'):
        return (SLACK_KIB if seconds >= LONG_SECONDS else SHORT_SLACK_KIB) + round(before * SLACK_SHARE)
    if not idle:
        return LOAD_ROOM + round(before * LOAD_SHARE)
    return {**SPARE, 'files of the state': STATE_FILES}.get(what, 0)


def judge(base, samples, after, steps, seconds):
    """[(what, base, second fifth, last fifth, after, what is wrong)] in the order of names."""
    rows = []
    for what in sorted({*base, *after}):
        second, last = median(samples, what, 1), median(samples, what, 4)
        numbers, wrong = (base.get(what), second, last, after.get(what)), []
        if None in (numbers[0], numbers[3]):
            wrong.append('not there')
        elif numbers[3] > numbers[0] + room(what, numbers[0], True, steps, seconds) or what == 'processes' and numbers[3] < numbers[0]:
            wrong.append('not back')
        if seconds >= LONG_SECONDS and None not in (second, last) and last > second + room(what, second, False, steps, seconds):
            wrong.append('grows')
        rows.append((what, *numbers, ', '.join(wrong)))
    return rows


def table(rows):
    head = ('', 'before', 'second fifth', 'last fifth', 'after', '')
    lines = [head] + [tuple('-' if cell is None else str(cell) for cell in row) for row in rows]
    widths = [max(map(len, column)) for column in zip(*lines)]
    return '\n'.join('  '.join([line[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(line[1:5], widths[1:5])), line[5]]).rstrip()
                     for line in lines)


def soak(folder, seconds, workers=8, say=lambda _: None):
    """(rows of judge(), steps by name, what went wrong)"""
    one = Soak(folder, workers)
    try:
        one.load(seconds / 10, all_steps=True)
        base = one.settled()
        warm = one.steps()
        say(f'warm after {sum(warm.values())} steps; {seconds} seconds of load follow')
        samples = one.load(seconds)
        after = one.settled(base)
        steps = one.steps() - warm
        wrong = one.wrong()
        if one.web.daemon.process.poll() is not None:
            wrong.append('the daemon has ended')
        rows = judge(base, samples, after, sum(steps.values()), seconds)
    finally:
        status = one.web.daemon.stop(SIGTERM)
    if status != 0:
        wrong.append(f'the daemon ended with status {status}: {one.web.log.read_text(errors="replace")[-2000:]}')
    return rows, steps, wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition('\n')[0])
    parser.add_argument('--seconds', type=int, default=600, help='how long the load lasts (%(default)s)')
    parser.add_argument('--workers', type=int, default=8, help='how many clients there are (%(default)s)')
    parser.add_argument('--only', default='', help='names of steps, with commas between')
    options = parser.parse_args()
    if options.only:
        STEPS[:] = [(weight, function) for weight, function in STEPS if function.__name__ in options.only.split(',')]
    with tempfile.TemporaryDirectory(prefix='caisson-soak-') as folder:
        rows, steps, wrong = soak(Path(folder), options.seconds, options.workers, lambda text: print(text, flush=True))
    print(table(rows))
    print(f'\n{sum(steps.values())} steps:', ', '.join(f'{name} {n}' for name, n in steps.most_common()))
    for text, n in Counter(wrong).most_common(20):
        print(f'WRONG ({n} times): {text[:1000]}')
    bad = [row[0] for row in rows if row[5]]
    print('FAILED: ' + (', '.join(bad) or 'answers') if bad or wrong else 'flat')
    return 1 if bad or wrong else 0


if __name__ == '__main__':
    sys.exit(main())
