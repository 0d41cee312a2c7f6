#: act: trace process 1, a child, the parent, and offer oneself for tracing
#: needs: x86_64
import ctypes
import errno
import os
import signal

libc = ctypes.CDLL(None, use_errno=True)


def syscall(number, *arguments):
    values = [ctypes.c_long(value) if isinstance(value, int) else value for value in arguments]
    done = libc.syscall(ctypes.c_long(number), *values) != -1
    return "success" if done else errno.errorcode.get(ctypes.get_errno(), str(ctypes.get_errno()))


PTRACE, TRACEME, ATTACH, SEIZE = 101, 0, 16, 0x4206
child = os.fork()
if child == 0:
    signal.pause()
answers = {
    "traceme": syscall(PTRACE, TRACEME, 0, 0, 0),
    "attach to process 1": syscall(PTRACE, ATTACH, 1, 0, 0),
    "seize process 1": syscall(PTRACE, SEIZE, 1, 0, 0),
    "attach to a child": syscall(PTRACE, ATTACH, child, 0, 0),
    "seize a child": syscall(PTRACE, SEIZE, child, 0, 0),
}
os.kill(child, signal.SIGKILL)
os.waitpid(child, 0)
for name, answer in answers.items():
    if answer not in ("EPERM",):
        print(f"ESCAPED: {name} answered {answer}")
        raise SystemExit(66)
    print("contained:", answer, name)
