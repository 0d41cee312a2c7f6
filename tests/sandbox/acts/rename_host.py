#: act: set the host name and the domain name, by call, by file and by command
import errno
import socket
import subprocess

def attempt(function, *arguments):
    try:
        function(*arguments)
        return "success"
    except OSError as error:
        return errno.errorcode[error.errno]


def write(path):
    with open(path, "w", encoding="ascii") as file:
        file.write("escape")


def command():
    if subprocess.run(["hostname", "escape"], stderr=subprocess.DEVNULL, check=False).returncode:
        raise PermissionError(errno.EPERM, "hostname failed")


answers = {
    "sethostname": attempt(socket.sethostname, "escape"),
    "kernel/hostname": attempt(write, "/proc/sys/kernel/hostname"),
    "kernel/domainname": attempt(write, "/proc/sys/kernel/domainname"),
    "hostname": attempt(command),
}
assert socket.gethostname() == "sandbox"
for name, answer in answers.items():
    if answer not in ("EPERM", "EROFS", "EACCES"):
        print(f"ESCAPED: {name} answered {answer}")
        raise SystemExit(66)
    print("contained:", answer, name)
