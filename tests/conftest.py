"""What pytest has to know for all tests; its place makes caisson_testing importable."""

import os

import pytest

from caisson_testing import daemon


def pytest_configure(config):
    config.addinivalue_line("markers", "vm: light enough for the emulated machine of tests/vm")


def pytest_collection_modifyitems(config, items):
    """In the emulated machine, a file that marks some of its tests `vm` runs only those."""
    if not os.environ.get("CAISSON_VM"):
        return
    choosers = {item.path for item in items if item.get_closest_marker("vm")}
    left_out = [item for item in items if item.path in choosers and not item.get_closest_marker("vm")]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in set(left_out)]


@pytest.fixture(scope="session", autouse=True)
def road(tmp_path_factory):
    """CAISSON_ROAD=warm: every `caisson run` of these tests is served by a daemon, from interpreters that wait."""
    if os.environ.get("CAISSON_ROAD") != "warm":
        yield
        return
    with daemon(tmp_path_factory.mktemp("road"), "engine.pool_min=2") as running:
        os.environ.update(running.environment)
        yield
        pools = running.status()["pools"]
        for name in running.environment:
            del os.environ[name]
    assert sum(pool["hits"] for pool in pools) > 0, f"no interpreter that waited was used: {pools}"
