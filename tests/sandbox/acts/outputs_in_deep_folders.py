#: act: leave a tree of 1500 levels, deeper than any path is long
#: options: --export *:{out}
#: host-check: exported_at_least top.txt
#: within: 10
import os

with open("top.txt", "w", encoding="ascii") as file:
    file.write("top")
for _ in range(1500):
    os.mkdir("d")
    os.chdir("d")
with open("bottom.txt", "w", encoding="ascii") as file:
    file.write("bottom")
print("contained: 1500 levels")
