#: act: restrict itself by Landlock rules that allow everything, to get rid of stricter ones
import ctypes
import errno
import os

libc = ctypes.CDLL(None, use_errno=True)


def syscall(number, *arguments):
    values = [ctypes.c_long(value) if isinstance(value, int) else value for value in arguments]
    done = libc.syscall(ctypes.c_long(number), *values) != -1
    return "success" if done else errno.errorcode.get(ctypes.get_errno(), str(ctypes.get_errno()))


def attempt(function, *arguments):
    try:
        function(*arguments)
        return "success"
    except OSError as error:
        return errno.errorcode[error.errno]


CREATE, ADD, RESTRICT = 444, 445, 446
everything = ctypes.c_uint64((1 << 13) - 1)
ruleset = libc.syscall(ctypes.c_long(CREATE), ctypes.byref(everything), ctypes.c_long(8), ctypes.c_long(0))
if ruleset >= 0:
    class Rule(ctypes.Structure):
        _pack_ = 1
        _fields_ = [("access", ctypes.c_uint64), ("parent", ctypes.c_int32)]

    rule = Rule((1 << 13) - 1, os.open("/", os.O_PATH))
    assert syscall(ADD, ruleset, 1, ctypes.byref(rule), 0) == "success"
    assert syscall(RESTRICT, ruleset, 0) == "success"
answers = {f"a file in {folder}": attempt(open, f"{folder}/escape", "w") for folder in ("/", "/etc", "/usr", "/opt", "/proc", "/dev")}
answers["a device"] = attempt(os.mknod, "/tmp/escape", 0o20666, os.makedev(1, 1))
for name, answer in answers.items():
    if answer not in ("EACCES", "EPERM", "EROFS", "ENOENT"):
        print(f"ESCAPED: {name} answered {answer}")
        raise SystemExit(66)
    print("contained:", answer, name)
