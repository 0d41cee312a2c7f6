#: act: change settings of the kernel under /proc/sys, core_pattern and modprobe first of all
import errno
from pathlib import Path

paths = [Path("/proc/sys", name) for name in (
    "kernel/core_pattern", "kernel/modprobe", "kernel/hotplug", "kernel/ns_last_pid", "kernel/sysrq", "kernel/shmmax", "kernel/msgmni",
    "kernel/randomize_va_space", "kernel/unprivileged_bpf_disabled", "kernel/yama/ptrace_scope", "kernel/perf_event_paranoid",
    "vm/overcommit_memory", "vm/drop_caches", "vm/oom_kill_allocating_task", "vm/mmap_min_addr", "fs/protected_symlinks", "fs/file-max",
    "fs/suid_dumpable", "fs/binfmt_misc/register", "fs/mqueue/queues_max", "net/ipv4/ip_forward", "net/ipv4/ping_group_range",
    "net/ipv4/ip_unprivileged_port_start", "net/core/somaxconn", "user/max_user_namespaces")]
answers = {}
for path in paths:
    try:
        path.write_text("1\n")
        answers[str(path)] = "success"
    except OSError as error:
        answers[str(path)] = errno.errorcode[error.errno]
for name, answer in answers.items():
    if answer not in ("EROFS", "EACCES", "EPERM", "ENOENT"):
        print(f"ESCAPED: {name} answered {answer}")
        raise SystemExit(66)
    print("contained:", answer, name)
