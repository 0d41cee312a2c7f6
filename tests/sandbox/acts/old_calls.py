#: act: calls that only very old programs used, and segments of one's own
#: needs: x86_64
import ctypes
import errno

libc = ctypes.CDLL(None, use_errno=True)


def syscall(number, *arguments):
    values = [ctypes.c_long(value) if isinstance(value, int) else value for value in arguments]
    done = libc.syscall(ctypes.c_long(number), *values) != -1
    return "success" if done else errno.errorcode.get(ctypes.get_errno(), str(ctypes.get_errno()))


numbers = {"modify_ldt": 154, "uselib": 134, "ustat": 136, "sysfs": 139, "_sysctl": 156, "get_kernel_syms": 177,
           "query_module": 178, "getpmsg": 181, "putpmsg": 182, "afs_syscall": 183, "tuxcall": 184, "security": 185,
           "set_thread_area": 205, "get_thread_area": 211, "epoll_ctl_old": 214, "epoll_wait_old": 215, "vserver": 236,
           "remap_file_pages": 216}
buffer = ctypes.create_string_buffer(4096)
answers = {name: syscall(number, 1, buffer, 16, 0, 0) for name, number in numbers.items()}
for name, answer in answers.items():
    if answer not in ("ENOSYS", "EPERM"):
        print(f"ESCAPED: {name} answered {answer}")
        raise SystemExit(66)
    print("contained:", answer, name)
