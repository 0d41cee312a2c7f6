#: act: hold up others on files of the host by leases, and watch folders by signals
import errno
import fcntl
import os

def attempt(function, *arguments):
    try:
        function(*arguments)
        return "success"
    except OSError as error:
        return errno.errorcode[error.errno]


answers = {}
for path in ("/usr/bin/env", "/usr/bin/python3", "/etc/ld.so.cache", "/opt/caisson/python/run.py"):
    descriptor = os.open(path, os.O_RDONLY)
    for name, lease in (("reading", fcntl.F_RDLCK), ("writing", fcntl.F_WRLCK)):
        answers[f"a lease for {name} on {path}"] = attempt(fcntl.fcntl, descriptor, fcntl.F_SETLEASE, lease)
for name, answer in answers.items():
    if answer not in ("EACCES", "EAGAIN", "EPERM"):
        print(f"ESCAPED: {name} answered {answer}")
        raise SystemExit(66)
    print("contained:", answer, name)
