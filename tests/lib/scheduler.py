"""One queue of test programs for a fixed number of workers, with slots for programs that need something alone."""

import threading

from tap_reader import Tally
from programs import MACHINE


class Queue:
    """Chooses the next program: early ones first, then the longest; programs that need the machine alone come last.

    A program waits while another one holds one of its slots.  A program with the slot `machine` starts only when
    nothing runs, and nothing starts beside it.
    """

    def __init__(self, programs):
        self.waiting = sorted(programs, key=lambda program: (MACHINE in program.alone, not program.early, -program.estimate))
        self.held = []      # the slots of each running program
        self.changed = threading.Condition()

    def next(self):
        """The next program, whose slots are then held; None when no program is left.  Blocks while none may start."""
        with self.changed:
            while self.waiting:
                program = next((program for program in self.waiting if self.may_start(program)), None)
                if program:
                    self.waiting.remove(program)
                    self.held.append(program.alone)
                    return program
                self.changed.wait()
            return None

    def may_start(self, program):
        if any(MACHINE in slots for slots in self.held):
            return False
        if MACHINE in program.alone:
            return not self.held
        return not any(program.alone & slots for slots in self.held)

    def done(self, program):
        with self.changed:
            self.held.remove(program.alone)
            self.changed.notify_all()


def run_all(programs, workers, run_one):
    """Run every program through run_one(program), which returns a Tally.  Returns {part: Tally}; raises what run_one raised.

    A background program starts at once, beside the workers.
    """
    queue = Queue([program for program in programs if not program.background])
    background = [program for program in programs if program.background]
    tallies, errors, lock = {}, [], threading.Lock()

    def carry_out(program):
        try:
            tally = run_one(program)
            with lock:
                tallies.setdefault(program.part, Tally()).__iadd__(tally)
        except BaseException as error:      # a fault of the test runner itself must end the whole run
            errors.append(error)
        finally:
            queue.done(program)

    def work():
        while not errors and (program := queue.next()):
            carry_out(program)

    queue.held += [program.alone for program in background]
    threads = [threading.Thread(target=carry_out, args=[program]) for program in background]
    threads += [threading.Thread(target=work) for _ in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return tallies
