#: act: the options of prctl that change privileges, memory maps, tracing, speculation and dispatch of calls
#: needs: x86_64
import ctypes
import errno

libc = ctypes.CDLL(None, use_errno=True)


def syscall(number, *arguments):
    values = [ctypes.c_long(value) if isinstance(value, int) else value for value in arguments]
    done = libc.syscall(ctypes.c_long(number), *values) != -1
    return "success" if done else errno.errorcode.get(ctypes.get_errno(), str(ctypes.get_errno()))


PRCTL = 157
options = {"PR_SET_KEEPCAPS": 8, "PR_SET_TSC": 26, "PR_CAPBSET_DROP": 24, "PR_SET_SECUREBITS": 28, "PR_MCE_KILL": 33,
           "PR_SET_MM": 35, "PR_SET_THP_DISABLE": 41, "PR_CAP_AMBIENT": 47, "PR_SET_SPECULATION_CTRL": 53,
           "PR_SET_IO_FLUSHER": 57, "PR_SET_SYSCALL_USER_DISPATCH": 59, "PR_SCHED_CORE": 62, "PR_SET_MDWE": 65,
           "PR_SET_PTRACER": 0x59616D61}
answers = {name: syscall(PRCTL, option, 2, 0, 0, 0) for name, option in options.items()}
answers["PR_SET_PTRACER + 2^32"] = syscall(PRCTL, 0x59616D61 | 1 << 32, -1, 0, 0, 0)
for name, answer in answers.items():
    if answer not in ("EINVAL",):
        print(f"ESCAPED: {name} answered {answer}")
        raise SystemExit(66)
    print("contained:", answer, name)
