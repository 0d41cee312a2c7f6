"""pytest settings for all tests: the path to tests/lib, the markers, and the transport of `caisson run`."""

import os
import re
import signal
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent / "lib"))

from caisson_testing import daemon     # noqa: E402  (tests/lib is on the path from here on)


# A shell without job control starts background jobs with these ignored, and programs under test would inherit that.
for number, usual in ((signal.SIGINT, signal.default_int_handler), (signal.SIGQUIT, signal.SIG_DFL)):
    if signal.getsignal(number) == signal.SIG_IGN:
        signal.signal(number, usual)


def pytest_configure(config):
    config.addinivalue_line("markers", "vm: light enough for the emulated machine of tests/vm")
    config.addinivalue_line("markers", "alone(slot): no other test with this slot may run beside it; 'machine': no other test at all")


def pytest_collection_modifyitems(config, items):
    keep(config, items, in_the_emulated_machine(items))
    keep(config, items, with_the_wanted_slot(items))
    keep(config, items, of_the_wanted_shard(items))


def keep(config, items, kept):
    """Deselect all items that are not in kept."""
    chosen = set(kept)
    config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
    items[:] = kept


def in_the_emulated_machine(items):
    """In the emulated machine, a file that marks some of its tests `vm` runs only those."""
    if not os.environ.get("CAISSON_VM"):
        return list(items)
    choosers = {item.path for item in items if item.get_closest_marker("vm")}
    return [item for item in items if item.path not in choosers or item.get_closest_marker("vm")]


def with_the_wanted_slot(items):
    """CAISSON_ALONE=SLOT: only the tests that declare this slot; CAISSON_ALONE= (empty): only those without a slot."""
    wanted = os.environ.get("CAISSON_ALONE")
    if wanted is None:
        return list(items)
    return [item for item in items if (item.get_closest_marker("alone").args[0] if item.get_closest_marker("alone") else "") == wanted]


def of_the_wanted_shard(items):
    """CAISSON_SHARD=K/N: the K-th of N parts of a file.  Neighbouring tests stay together, because they share fixtures."""
    match = re.fullmatch(r"(\d+)/(\d+)", os.environ.get("CAISSON_SHARD", "1/1"))
    shard, shards = int(match[1]) - 1, int(match[2])
    return items[len(items) * shard // shards:len(items) * (shard + 1) // shards]


@pytest.fixture(scope="session", autouse=True)
def road(tmp_path_factory):
    """CAISSON_ROAD=warm: a daemon's pooled interpreters serve every `caisson run` of these tests.  Default: a supervisor for each run."""
    if os.environ.get("CAISSON_ROAD") != "warm":
        yield
        return
    with daemon(tmp_path_factory.mktemp("road"), "engine.pool_min=2") as running:
        os.environ.update(running.environment)
        yield
        pools = running.status()["pools"]
        for name in running.environment:
            del os.environ[name]
    assert sum(pool["hits"] for pool in pools) > 0, f"no pooled interpreter was used: {pools}"
