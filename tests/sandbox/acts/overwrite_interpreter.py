#: act: overwrite the running interpreter, the C library and the runner, by path, by /proc/self/exe and by memory
import errno
import os
import sys

answers = {}
for path in ("/proc/self/exe", os.path.realpath(sys.executable), "/usr/lib/x86_64-linux-gnu/libc.so.6", "/opt/caisson/python/run.py",
             "/usr/bin/env", "/etc/ld.so.cache", "/usr/lib/python3/dist-packages"):
    for name, flags in (("write", os.O_WRONLY), ("truncate", os.O_WRONLY | os.O_TRUNC), ("append", os.O_WRONLY | os.O_APPEND)):
        try:
            os.close(os.open(path, flags))
            answers[f"{name} {path}"] = "success"
        except OSError as error:
            answers[f"{name} {path}"] = errno.errorcode[error.errno]
    for name, change in (("chmod", lambda p: os.chmod(p, 0o777)), ("rename", lambda p: os.rename(p, p + ".old")), ("unlink", os.unlink),
                         ("utime", os.utime)):
        try:
            change(path)
            answers[f"{name} {path}"] = "success"
        except OSError as error:
            answers[f"{name} {path}"] = errno.errorcode[error.errno]
for name, answer in answers.items():
    if answer not in ("EACCES", "EPERM", "EROFS", "ETXTBSY", "ENOENT", "EISDIR"):
        print(f"ESCAPED: {name} answered {answer}")
        raise SystemExit(66)
    print("contained:", answer, name)
