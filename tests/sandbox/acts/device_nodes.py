#: act: make devices of its own: memory, disks, the console, with every call that makes nodes
#: options: --disk 8MiB
import errno
import os
import stat

def attempt(function, *arguments):
    try:
        function(*arguments)
        return "success"
    except OSError as error:
        return errno.errorcode[error.errno]


answers = {}
for folder in ("/home/user", "/tmp", "/dev/shm", "/dev"):
    for name, kind, device in (("memory", stat.S_IFCHR, os.makedev(1, 1)), ("null", stat.S_IFCHR, os.makedev(1, 3)),
                               ("disk", stat.S_IFBLK, os.makedev(8, 0)), ("virtual disk", stat.S_IFBLK, os.makedev(254, 0)),
                               ("console", stat.S_IFCHR, os.makedev(5, 1)), ("whiteout", stat.S_IFCHR, os.makedev(0, 0))):
        answers[f"{name} in {folder}"] = attempt(os.mknod, f"{folder}/node", kind | 0o666, device)
        descriptor = os.open(folder, os.O_RDONLY)
        answers[f"{name} beneath {folder}"] = attempt(lambda: os.mknod("node", kind | 0o666, device, dir_fd=descriptor))
for name, answer in answers.items():
    if answer not in ("EPERM", "EROFS", "EACCES"):
        print(f"ESCAPED: {name} answered {answer}")
        raise SystemExit(66)
    print("contained:", answer, name)
