#: act: get ahead of everybody: nice, real-time scheduling, deadlines, input and output first
import errno
import os
import resource

def attempt(function, *arguments):
    try:
        function(*arguments)
        return "success"
    except OSError as error:
        return errno.errorcode[error.errno]


answers = {
    "nice": attempt(os.nice, -5),
    "setpriority": attempt(os.setpriority, os.PRIO_PROCESS, 0, -20),
    "setpriority of the user": attempt(os.setpriority, os.PRIO_USER, 0, -20),
    "fifo": attempt(os.sched_setscheduler, 0, os.SCHED_FIFO, os.sched_param(50)),
    "round robin": attempt(os.sched_setscheduler, 0, os.SCHED_RR, os.sched_param(1)),
    "deadline": attempt(os.sched_setscheduler, 0, 6, os.sched_param(0)),
}
assert resource.getrlimit(resource.RLIMIT_RTPRIO) == (0, 0) and resource.getrlimit(resource.RLIMIT_NICE) == (0, 0)
for name, answer in answers.items():
    if answer not in ("EPERM", "EACCES", "EINVAL"):
        print(f"ESCAPED: {name} answered {answer}")
        raise SystemExit(66)
    print("contained:", answer, name)
