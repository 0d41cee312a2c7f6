#: act: read what is only the host's: secrets, identities, logs, other people's homes, sockets, devices, boot files
#: options: --env HOST_FILE={file}
#: vm: yes
import errno
import glob
import os

answers = {}
for pattern in ("/root", "/root/*", "/root/.ssh/*", "/etc/shadow", "/etc/gshadow", "/etc/sudoers", "/etc/machine-id", "/etc/ssh", "/etc/fstab",
                "/etc/crontab", "/etc/kubernetes", "/etc/docker", "/etc/ssl/private", "/etc/caisson", "/var/log", "/var/spool", "/var/lib/dpkg",
                "/var/lib/docker", "/var/run/secrets", "/run/*", "/boot", "/mnt/[!d]*", "/media", "/srv", "/sys", "/sys/fs/cgroup", "/work", "/build",
                "/home/[!u]*", "/.dockerenv", "/lost+found", "/dev/mem", "/tmp/*", os.environ["HOST_FILE"],
                "/proc/self/root/root", "/proc/thread-self/root/etc/shadow", "/../../root"):
    found = glob.glob(pattern) if "*" in pattern else [pattern]
    for path in found or [pattern]:
        try:
            content = os.listdir(path) if os.path.isdir(path) else [open(path, "rb").read(10)]
            # Empty folders of the sandbox's own root are nobody's.
            answers[path] = "success" if content else "ENOENT"
        except OSError as error:
            answers[path] = errno.errorcode[error.errno]
for name, answer in answers.items():
    if answer not in ("ENOENT", "EACCES"):
        print(f"ESCAPED: {name} answered {answer}")
        raise SystemExit(66)
    print("contained:", answer, name)
