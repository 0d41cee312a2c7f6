#: what: signal handlers, an interval timer, a blocked signal and an alarm that interrupts
#: stdout: ['SIGUSR1', 'SIGTERM'] ticks 3 pending SIGUSR2 interrupted
import os
import signal
import time

received, ticks = [], []


def note(number, _frame):
    received.append(signal.Signals(number).name)


def tick(_number, _frame):
    ticks.append(time.monotonic())


for number in (signal.SIGUSR1, signal.SIGTERM):
    signal.signal(number, note)
os.kill(os.getpid(), signal.SIGUSR1)
signal.raise_signal(signal.SIGTERM)

signal.signal(signal.SIGALRM, tick)
signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)
# The timer goes on until it is stopped here: one that comes between the question and the pause is followed by another.
while len(ticks) < 3:
    signal.pause()
signal.setitimer(signal.ITIMER_REAL, 0)

signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR2})
os.kill(os.getpid(), signal.SIGUSR2)
pending = signal.sigwait({signal.SIGUSR2})


class Interrupted(Exception):
    pass


def interrupt(_number, _frame):
    raise Interrupted


signal.signal(signal.SIGALRM, interrupt)
try:
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    time.sleep(20)
    how = "slept"
except Interrupted:
    how = "interrupted"
print(received, "ticks", min(len(ticks), 3), "pending", signal.Signals(pending).name, how)
