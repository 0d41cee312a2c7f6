#: what: zip, tar, gzip, bzip2 and xz written and read back in a temporary folder
#: stdout: tar.gz zip gz bz2 xz: all the same
import bz2
import gzip
import lzma
import tarfile
import tempfile
import zipfile
from pathlib import Path

TEXT = "line of text\n" * 500

with tempfile.TemporaryDirectory() as name:
    folder = Path(name)
    (folder / "data" / "deep").mkdir(parents=True)
    for file in ("data/a.txt", "data/deep/b.txt"):
        (folder / file).write_text(TEXT)

    with tarfile.open(folder / "all.tar.gz", "w:gz") as archive:
        archive.add(folder / "data", arcname="data")
    with tarfile.open(folder / "all.tar.gz") as archive:
        archive.extractall(folder / "untarred")
    assert (folder / "untarred/data/deep/b.txt").read_text() == TEXT

    with zipfile.ZipFile(folder / "all.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted((folder / "data").rglob("*.txt")):
            archive.write(path, path.relative_to(folder))
    with zipfile.ZipFile(folder / "all.zip") as archive:
        assert archive.testzip() is None
        assert archive.namelist() == ["data/a.txt", "data/deep/b.txt"]
        assert archive.read("data/a.txt").decode() == TEXT

    done = ["tar.gz", "zip"]
    for suffix, module in (("gz", gzip), ("bz2", bz2), ("xz", lzma)):
        path = folder / f"text.{suffix}"
        with module.open(path, "wt") as file:
            file.write(TEXT)
        assert path.stat().st_size < len(TEXT) / 10
        with module.open(path, "rt") as file:
            assert file.read() == TEXT
        done.append(suffix)
    print(*done, end=": all the same\n")
assert not folder.exists()
