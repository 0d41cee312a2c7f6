#: what: what a program finds about its user, machine, limits, language and folders
#: stdout: user 1000 1000 sandbox /home/user utf-8 127.0.0.1
#: vm: yes
import getpass
import grp
import locale
import os
import platform
import pwd
import resource
import socket
import sys
import tempfile

me = pwd.getpwuid(os.getuid())
assert me.pw_name == getpass.getuser() == "user" and me.pw_dir == os.path.expanduser("~") == os.getcwd()
assert grp.getgrgid(os.getgid()).gr_name == "user" and os.access(me.pw_dir, os.W_OK)
assert (os.cpu_count() or 0) >= 1 and len(os.sched_getaffinity(0)) >= 1
assert platform.system() == "Linux" and sys.platform == "linux"

soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
assert 0 < soft <= hard
usage = resource.getrusage(resource.RUSAGE_SELF)
assert usage.ru_maxrss > 1000 and sum(os.times()[:2]) >= 0
assert os.getpriority(os.PRIO_PROCESS, 0) >= 0 and os.getloadavg()[0] >= 0
assert os.sysconf("SC_PAGE_SIZE") in (4096, 16384, 65536)

locale.setlocale(locale.LC_ALL, "")
encoding = locale.getpreferredencoding().lower()
assert locale.localeconv()["decimal_point"] == "." and sys.getfilesystemencoding() == "utf-8"
assert tempfile.gettempdir() == "/tmp" and os.path.isdir("/dev/shm")
print(me.pw_name, os.getuid(), os.getgid(), socket.gethostname(), me.pw_dir, encoding,
      socket.gethostbyname("localhost"))
