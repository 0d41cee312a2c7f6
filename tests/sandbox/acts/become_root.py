#: act: become root by setuid and its kin, and write id maps
import errno
import os
from pathlib import Path

def attempt(function, *arguments):
    try:
        function(*arguments)
        return "success"
    except OSError as error:
        return errno.errorcode[error.errno]


answers = {
    "setuid": attempt(os.setuid, 0),
    "setgid": attempt(os.setgid, 0),
    "setresuid": attempt(os.setresuid, 0, 0, 0),
    "setresgid": attempt(os.setresgid, 0, 0, 0),
    "setreuid": attempt(os.setreuid, -1, 0),
    "setgroups": attempt(os.setgroups, [0]),
    "chown to root": attempt(os.chown, os.getcwd(), 0, 0),
    "uid_map": attempt(Path("/proc/self/uid_map").write_text, "0 0 1\n"),
    "gid_map": attempt(Path("/proc/self/gid_map").write_text, "0 0 1\n"),
    "setgroups allow": attempt(Path("/proc/self/setgroups").write_text, "allow"),
}
assert os.getresuid() == (1000, 1000, 1000)
for name, answer in answers.items():
    if answer not in ("EPERM", "EINVAL", "EACCES"):
        print(f"ESCAPED: {name} answered {answer}")
        raise SystemExit(66)
    print("contained:", answer, name)
