"""The daemon with a probe for the steps of its event loop (docs/design/loop-steps.md)."""

import contextlib
import re
import signal
import subprocess
import threading
import time

from cli import BUILD
from web import Web

PROBED = BUILD / 'caissond-probed'
STEP_MAX_US = 5000  # of a release build (meson.build)
TRIES = 5           # other load on the machine makes a step longer: caches, and the other thread of a core


class Probed(Web):
    """A Web whose daemon logs each step that takes longer than it may."""

    def __init__(self, folder, *options, **more):
        super().__init__(folder, *options, program=PROBED, **more)
        self.stopped = None

    def __enter__(self):
        return self

    def __exit__(self, *error):
        status = self.stop()
        assert error[0] or status == 0, self.log.read_text()

    def stop(self):
        if self.stopped is None:
            self.stopped = self.daemon.stop(signal.SIGTERM)
        return self.stopped

    def steps(self, begin=0):
        """(microseconds, place) of each long step that was logged after `begin` bytes."""
        text = self.log.read_bytes()[begin:].decode()
        return [(int(us), address) for address, us in re.findall(r'loop: a step of (0x[0-9a-f]+) took (\d+) us', text)]


def place(address, program=PROBED):
    words = subprocess.run(['addr2line', '-f', '-s', '-e', program, address], capture_output=True, text=True, check=False).stdout
    return ' '.join(words.split())


class Creations:
    """The longest creation of a file in a folder while other work goes on there.  ext4 passes over each inode that was deleted lately
    (RECENTCY_MIN), which takes up to 10 ms, and not for each creation."""

    def __init__(self, folder):
        self.folder, self.longest_us, self.over = folder, 0, threading.Event()
        self.thread = threading.Thread(target=self.measure)

    def measure(self):
        number = 0
        while not self.over.wait(0.002):
            path = self.folder / f'creation-{number}'
            begin = time.thread_time()
            path.touch()
            self.longest_us = max(self.longest_us, int((time.thread_time() - begin) * 1e6))
            path.unlink()
            number += 1

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()


def steps_of(web, work, at='', prepare=lambda: None, creates=None):
    """`work` makes no long step, of callbacks of the file `at`; measured again if it did, for the machine may have done other things.
    A step may create one file in the folder `creates`; twice the time that the kernel needs for that meanwhile is added to the bound."""
    for _ in range(TRIES):
        prepare()
        begin = web.log.stat().st_size
        creations = Creations(creates) if creates else contextlib.nullcontext()
        with creations:
            work()
            web.ask('GET', '/healthz')      # a step that did the work is over
        long = [(us, address) for us, address in web.steps(begin) if not at or at in place(address)]
        if long and creates:
            bound = STEP_MAX_US + 2 * creations.longest_us
            long = [(us, address) for us, address in long if us > bound]
        if not long:
            return
    raise AssertionError(', '.join(f'{place(address)}: {us} us' for us, address in long))
