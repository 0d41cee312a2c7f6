#: act: leave a file of 90 MiB that is one hole, to make whoever collects it read nothing for long
#: options: --export *:{out}
#: host-check: exported note.txt
import os

for name in ("holes", "more-holes"):
    with open(name, "wb") as file:
        os.truncate(file.fileno(), 90 << 20)
with open("note.txt", "w", encoding="ascii") as file:
    file.write("kept")
print("contained: two files of", os.path.getsize("holes"))
