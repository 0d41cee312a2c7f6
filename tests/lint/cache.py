"""A cache of lint results: a source whose preprocessed text, flags and tool are those of a clean run is not checked again.

Only clean results are kept, one empty file each, named by a hash.  So a finding is shown at every run until it is
cured, and a lost or emptied cache costs time only.  CAISSON_LINT_CACHE names the folder (default: lint-cache in the
build folder), for machines that keep it between clones.
"""

import functools
import hashlib
import os
import subprocess
from pathlib import Path

from tap import BUILD, ROOT, run

FOLDER = Path(os.environ.get("CAISSON_LINT_CACHE") or BUILD / "lint-cache")


@functools.cache
def identity(tool):
    """The version of a tool, as the tool tells it, and the files that configure it."""
    parts = [run([tool, "--version"]).stdout]
    for path in (".clang-tidy", "tests/lint/cppcheck.suppressions", f"tests/lint/{tool}", "tests/lint/errors-model.h"):
        parts.append(Path(path).read_text(encoding="utf-8"))
    return "\0".join(parts)


def preprocessed(path, flags):
    """The source with all that it includes, comments too, because they may hold suppressions; None if it cannot be preprocessed."""
    done = subprocess.run(["clang", *flags, "-E", "-CC", path], capture_output=True, check=False)
    return done.stdout if done.returncode == 0 else None


def checked(tool, path, flags, find, depth=""):
    """The findings of find(), which is not called when the cache knows the same input as clean for the same depth."""
    text = preprocessed(path, flags)
    if text is None:
        return find()
    key = "\0".join([identity(tool), depth, path, *flags]).encode() + b"\0" + text
    # The folder of the clone is not part of the key, so that clones can share a cache.
    digest = hashlib.sha256(key.replace(str(ROOT).encode(), b".")).hexdigest()
    mark = FOLDER / digest[:2] / digest
    if mark.exists():
        return []
    findings = find()
    if not findings:
        mark.parent.mkdir(parents=True, exist_ok=True)
        mark.touch()
    return findings
