#: act: make a file of an exbibyte that takes no room, for whoever copies it
#: host-check: exported note.txt
#: options: --export *:{out}
import errno
import os

with open("note.txt", "w", encoding="ascii") as file:
    file.write("kept")
for size in (1 << 60, 1 << 50, 1 << 40, 1 << 34):
    with open("/home/user/huge", "wb") as file:
        try:
            os.truncate(file.fileno(), size)
            print("ESCAPED: size", os.path.getsize("huge"))
            raise SystemExit(66)
        except OSError as error:
            print("contained:", errno.errorcode[error.errno], size)
os.remove("huge")
