#: act: open a device of the host
import os
import stat

ALLOWED = {"null", "zero", "full", "random", "urandom", "fd", "stdin", "stdout", "stderr", "ptmx", "pts", "shm", "tty"}
found = set(os.listdir("/dev")) - ALLOWED
for name in ("mem", "kmem", "port", "kmsg", "kvm", "fuse", "vhost-net", "vhost-vsock", "net/tun", "vsock", "uinput", "input/event0", "loop-control",
             "loop0", "sda", "vda", "nvme0n1", "mapper/control", "dri/card0", "nvidia0", "console", "tty0", "tty1", "ttyS0", "hpet", "rtc0", "userfaultfd"):
    try:
        os.close(os.open(f"/dev/{name}", os.O_RDONLY | os.O_NONBLOCK))
        found.add(name)
    except OSError:
        pass
odd = [name for name in ("null", "zero", "full", "random", "urandom")
       if not stat.S_ISCHR(os.stat(f"/dev/{name}").st_mode) or os.major(os.stat(f"/dev/{name}").st_rdev) != 1]
if found or odd:
    print("ESCAPED:", found, odd)
    raise SystemExit(66)
print("contained: five devices and a terminal")
