"""Counts that may only fall: tests/lint/RATCHETS has the limit of each."""

import re

from tap import Tap, read

PATH = "tests/lint/RATCHETS"


def limits():
    """{name: limit} of the lines `name: limit   # reason`."""
    found = {}
    for number, line in enumerate(read(PATH).splitlines(), 1):
        line = line.split("#")[0].strip()
        match = re.fullmatch(r"(.+?):\s*(\d+(?:\.\d+)?)", line)
        if line and not match:
            raise SystemExit(f"{PATH}:{number}: not 'name: limit'")
        if match:
            found[match[1]] = float(match[2])
    return found


def check(tap: Tap, name, count, findings, slack=0):
    """One test: `count` is at most the limit of `name`; a limit that is too high by more than the share `slack` is a finding, too."""
    limit = limits().get(name)
    text = f"{name}: {count:g}"
    if limit is None:
        tap.check(text, [f"{PATH} has no line {name!r}"])
    elif count > limit:
        tap.check(text, [f"the limit in {PATH} is {limit:g}", *findings])
    else:
        tap.check(text, [f"lower the limit in {PATH} from {limit:g} to {count:g}"] if count < limit * (1 - slack) else [])
