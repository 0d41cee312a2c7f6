#: act: read and write the memory of process 1 and of a child with process_vm_readv and its kin
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


child = os.fork()
if child == 0:
    signal.pause()
memory = ctypes.create_string_buffer(64)
vector = (ctypes.c_uint64 * 2)(ctypes.addressof(memory), 64)
answers = {}
for name, pid in (("process 1", 1), ("a child", child)):
    answers[f"reading {name}"] = syscall(310, pid, vector, 1, vector, 1, 0)
    answers[f"writing {name}"] = syscall(311, pid, vector, 1, vector, 1, 0)
    answers[f"comparing with {name}"] = syscall(312, os.getpid(), pid, 1, 0, 0)
    pidfd = os.pidfd_open(pid)
    answers[f"advising {name}"] = syscall(440, pidfd, vector, 1, 20, 0)
    answers[f"releasing {name}"] = syscall(448, pidfd, 0)
    answers[f"a descriptor of {name}"] = syscall(438, pidfd, 0, 0)
os.kill(child, signal.SIGKILL)
for name, answer in answers.items():
    if answer not in ("EPERM", "ENOSYS"):
        print(f"ESCAPED: {name} answered {answer}")
        raise SystemExit(66)
    print("contained:", answer, name)
