#: act: make itself harder to kill, change its audit identity, and hide from accounting
import errno
from pathlib import Path

answers = {}
for name, text in {"oom_score_adj": "-1000", "oom_adj": "-17", "loginuid": "0", "attr/exec": "unconfined", "attr/current": "unconfined",
                   "sessionid": "1", "gid_map": "0 0 1", "projid_map": "0 0 1", "make-it-fail": "1", "fail-nth": "1",
                   "timens_offsets": "boottime 1 0", "uid_map": "0 0 1"}.items():
    try:
        Path("/proc/self", name).write_text(text)
        answers[name] = "success"
    except OSError as error:
        answers[name] = errno.errorcode[error.errno]
for name, answer in answers.items():
    if answer not in ("EACCES", "EPERM", "ENOENT", "EINVAL", "EROFS"):
        print(f"ESCAPED: {name} answered {answer}")
        raise SystemExit(66)
    print("contained:", answer, name)
