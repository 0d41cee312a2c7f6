#: act: one forbidden system call after the other, each with arguments that could succeed
#: needs: x86_64
#: vm: yes
import ctypes
import errno
import os

libc = ctypes.CDLL(None, use_errno=True)
buffer = ctypes.create_string_buffer
CALLS = {
    "feed a terminal, with a high bit in the request": (16, 0, 0x5412 | 1 << 32, b"x"),
    "feed a terminal": (16, 0, 0x5412, b"x"),
    "the kernel's crypto by socket": (41, 38, 5, 0),
    "an ICMP datagram socket": (41, 2, 2, 1),
    "another netlink family than route": (41, 16, 3, 9),
    "a packet socket": (41, 17, 3, 0),
    "a raw socket": (41, 2, 3, 1),
    "SCTP": (41, 2, 1, 132),
    "a socket to the hypervisor, with a high bit in the family": (41, 40 | 1 << 32, 1, 0),
    "a socket to the hypervisor": (41, 40, 1, 0),
    "switch on accounting": (163, b"/tmp/acct"),
    "add a key": (248, b"user", b"name", b"secret", 6, -3),
    "load a bpf program": (321, 5, buffer(120), 120),
    "chroot": (161, b"/tmp"),
    "clone with CLONE_NEWUSER and a high bit set": (56, 0x10000000 | 17 | 1 << 40, 0, 0, 0, 0),
    "clone with CLONE_NEWUSER": (56, 0x10000000 | 17, 0, 0, 0, 0),
    "clone3, whose flags no filter can see": (435, buffer(88), 88),
    "watch the file system": (300, 0, 0),
    "open a file system context": (430, b"tmpfs", 0),
    "set up io_uring": (425, 8, buffer(120)),
    "raise the I/O privilege": (172, 3),
    "compare kernel objects": (312, 1, 1, 0, 0, 0),
    "load a kernel": (246, 0, 0, 0, 0),
    "look at the session keyring": (250, 0, -3, 0),
    "secret memory": (447, 0),
    "make a device node": (133, b"/tmp/kmsg", 0o20666, 0x10b),
    "change the LDT": (154, 1, buffer(16), 16),
    "load a module": (175, b"x", 1, b""),
    "make a mount writable": (442, -100, b"/usr", 0, buffer(32), 32),
    "mount a tmpfs over the home": (165, b"none", b"/home/user", b"tmpfs", 0, 0),
    "make a file handle": (303, -100, b"/usr", buffer(64), buffer(8), 0),
    "open a file by handle": (304, 3, buffer(64), 0),
    "clone a mount tree": (428, -100, b"/", 1),
    "perf_event_open": (298, buffer(128), 0, -1, -1, 0),
    "switch off address randomisation": (135, 0x0040000),
    "steal a descriptor of process 1": (438, os.pidfd_open(1), 0, 0),
    "pivot_root": (155, b"/tmp", b"/tmp"),
    "change the memory map's notes": (157, 35, 1, 0, 0, 0),
    "read the memory of process 1": (310, 1, buffer(16), 1, buffer(16), 1, 0),
    "ptrace the parent": (101, 16, os.getppid() or 1, 0, 0),
    "change quotas": (179, 0, 0, 0, 0),
    "reboot": (169, 0xfee1dead, 672274793, 0x89abcdef, 0),
    "answer the system calls of others": (317, 1, 8, buffer(16)),
    "change the host name": (170, b"evil", 4),
    "enter a namespace of process 1": (308, os.open("/proc/self/ns/user", os.O_RDONLY), 0),
    "set the clock": (227, 0, buffer(16)),
    "swap on": (167, b"/tmp/x", 0),
    "read the kernel log": (103, 3, buffer(64), 64),
    "unmount a mask of /proc": (166, b"/proc/sys", 2),
    "make a network namespace": (272, 0x40000000),
    "make a user namespace": (272, 0x10000000),
    "userfaultfd": (323, 1),
    "the x32 number of getpid": (1073741863,),
}
for act, (number, *arguments) in CALLS.items():
    ctypes.set_errno(0)
    done = libc.syscall(ctypes.c_long(number), *[ctypes.c_long(value) if isinstance(value, int) else value for value in arguments])
    if done >= 0:
        print("ESCAPED:", act)
        raise SystemExit(66)
    print("contained:", errno.errorcode.get(ctypes.get_errno(), ctypes.get_errno()), act)
