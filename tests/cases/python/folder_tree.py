#: what: a tree of folders made, searched, copied, linked and removed with pathlib and shutil
#: stdout: 6 files, 3 of them .txt, link leads to a.txt, renamed, gone
import os
import shutil
import stat
from pathlib import Path

top = Path("tree")
for name in ("a.txt", "sub/b.txt", "sub/deep/c.txt", "sub/d.csv", "e.json", ".hidden"):
    path = top / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(name)

files = [path for path in top.rglob("*") if path.is_file()]
texts = sorted(path.name for path in top.glob("**/*.txt"))
assert texts == ["a.txt", "b.txt", "c.txt"]

(top / "link").symlink_to("a.txt")
assert (top / "link").resolve() == (Path.home() / "tree/a.txt")
os.link(top / "a.txt", top / "hard")
assert (top / "a.txt").stat().st_nlink == 2 and (top / "hard").samefile(top / "a.txt")

(top / "e.json").chmod(0o400)
assert stat.filemode((top / "e.json").stat().st_mode) == "-r--------"
os.utime(top / "e.json", (1_000_000_000, 1_000_000_000))
assert int((top / "e.json").stat().st_mtime) == 1_000_000_000

shutil.copytree(top, "copy", symlinks=True)
assert Path("copy/link").is_symlink() and Path("copy/sub/deep/c.txt").read_text() == "sub/deep/c.txt"
Path("copy").rename("moved")
walked = sum(len(names) for _, _, names in os.walk("moved"))
assert walked == 8 and not Path("copy").exists()
shutil.rmtree("moved")
shutil.rmtree(top)
assert not top.exists() and shutil.disk_usage(".").total > 0
print(f"{len(files)} files, {len(texts)} of them .txt, link leads to a.txt, renamed, gone")
