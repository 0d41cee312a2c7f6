#: act: calls of an administrator: reboot, swap, accounting, quotas, the log, ports and hanging up
#: needs: x86_64
import ctypes
import errno

libc = ctypes.CDLL(None, use_errno=True)


def syscall(number, *arguments):
    values = [ctypes.c_long(value) if isinstance(value, int) else value for value in arguments]
    done = libc.syscall(ctypes.c_long(number), *values) != -1
    return "success" if done else errno.errorcode.get(ctypes.get_errno(), str(ctypes.get_errno()))


answers = {
    # The magic numbers are right, and the command only asks for Ctrl-Alt-Del to send a signal.
    "reboot": syscall(169, 0xFEE1DEAD, 672274793, 0, None),
    "swapon": syscall(167, b"/home/user/no-such-file", 0),
    "swapoff": syscall(168, b"/home/user/no-such-file"),
    "acct": syscall(163, b"/home/user/no-such-file"),
    "quotactl": syscall(179, 0x800001 << 8, b"/dev/no-such-device", 0, None),
    "quotactl_fd": syscall(443, 0, 0, 0, None),
    "syslog": syscall(103, 10, None, 0),
    "iopl": syscall(172, 3),
    "ioperm": syscall(173, 0x80, 1, 1),
    "vhangup": syscall(153),
    "nfsservctl": syscall(180, 0, None, None),
    "lookup_dcookie": syscall(212, 0, None, 0),
    "ioprio_set": syscall(251, 1, 0, 1 << 13),
}
for name, answer in answers.items():
    if answer not in ("EPERM", "ENOSYS"):
        print(f"ESCAPED: {name} answered {answer}")
        raise SystemExit(66)
    print("contained:", answer, name)
