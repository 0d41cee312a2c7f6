#: act: take the rights from its outputs, from their folders and from the home directory
#: options: --export *:{out}
#: host-check: no_trouble
#: within: 5
import os

os.makedirs("locked/inner")
for name in ("plain.txt", "locked/inside.txt", "locked/inner/deep.txt"):
    with open(name, "w", encoding="ascii") as file:
        file.write(name)
    os.chmod(name, 0)
for name in ("locked/inner", "locked", "/home/user"):
    os.chmod(name, 0)
print("contained: mode 000 everywhere")
