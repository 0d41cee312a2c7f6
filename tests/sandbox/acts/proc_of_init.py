#: act: look into process 1: memory, environment, root, descriptors, maps and namespaces
#: vm: yes
import errno
import os

answers = {}
for name in ("mem", "environ", "maps", "smaps", "pagemap", "auxv", "stack", "syscall", "io", "personality", "mountinfo", "task/1/mem",
             "task/1/environ", "clear_refs", "numa_maps", "wchan"):
    try:
        with open(f"/proc/1/{name}", "rb") as file:
            text = file.read(100)
        # Some are readable by design and say nothing: an empty one is no leak.
        answers[name] = "success" if text.strip(b"0\n") and name not in ("mountinfo",) else "EACCES"
    except OSError as error:
        answers[name] = errno.errorcode[error.errno]
for name in ("root", "cwd", "exe", "fd/0", "ns/mnt", "ns/user", "map_files"):
    try:
        # Linux 5.10 answers with an empty text where later kernels answer EACCES.
        answers[f"link {name}"] = "success" if os.readlink(f"/proc/1/{name}") else "EACCES"
    except OSError as error:
        answers[f"link {name}"] = errno.errorcode[error.errno]
for name in ("root", "cwd", "fd", "fdinfo", "map_files", "task/1/fd"):
    try:
        os.listdir(f"/proc/1/{name}")
        answers[f"folder {name}"] = "success"
    except OSError as error:
        answers[f"folder {name}"] = errno.errorcode[error.errno]
for name in ("mem", "oom_score_adj", "comm", "clear_refs", "coredump_filter", "timerslack_ns", "attr/current"):
    try:
        with open(f"/proc/1/{name}", "wb", buffering=0) as file:
            file.write(b"1")
        answers[f"writing {name}"] = "success"
    except OSError as error:
        answers[f"writing {name}"] = errno.errorcode[error.errno]
for name, answer in answers.items():
    if answer not in ("EACCES", "EPERM", "EINVAL", "ENOENT", "ESRCH"):
        print(f"ESCAPED: {name} answered {answer}")
        raise SystemExit(66)
    print("contained:", answer, name)
