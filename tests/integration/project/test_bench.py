"""bench/run measures and reports.  How fast anything is, is not tested here."""

import json
import os
import resource
import runpy
import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

ROOT = Path(__file__).resolve().parents[3]


def bench(*arguments, **more):
    return subprocess.run([ROOT / "bench/run", *arguments], capture_output=True, text=True, timeout=600, check=False,
                          env={**os.environ, "CAISSON_BUILD": os.environ.get("CAISSON_BUILD", "build")}, **more)


@pytest.fixture(scope="module")
def floor():
    pytest.importorskip("pandas", reason="needs pandas: not here")
    done = bench("--quick", "--json", "-k", "floor")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_every_floor_was_measured(floor):
    assert floor["quick"] is True and floor["rounds"] == 2
    assert {row["name"] for row in floor["rows"]} == {
        "floor bare print", "floor system print", "floor system print, back to back", "floor data print",
        "floor data numpy", "floor data pandas", "floor forks, 1 worker", "floor forks, 2 workers", "floor forks, 2 workers, small image"}
    for row in floor["rows"]:
        assert row["note"] is None and row["runs"] > 0, row
        assert 0 < row["p50_ms"] <= row["p99_ms"], row
        assert row["cpu_ms"] > 0, row
        assert (row["per_second"] or 0) > 0 if "forks" in row["name"] else 0 < row["private_bytes"] <= row["peak_bytes"], row


def test_rows_over_http_are_measured():
    if not shutil.which("wrk"):
        pytest.skip("needs wrk: not here")
    done = bench("--quick", "--json", "--rounds", "1", "-k", "http print, 1 connection")
    assert done.returncode == 0, done.stderr
    rows = {row["name"]: row for row in json.loads(done.stdout)["rows"]}
    assert set(rows) == {"http healthz, 1 connection", "http print, 1 connection"}
    for row in rows.values():
        assert row["note"] is None and row["runs"] > 0 and row["per_second"] > 0 and 0 < row["p50_ms"] <= row["p99_ms"], row


def test_without_wrk_they_are_named_and_nothing_is_wrong(tmp_path):
    (tmp_path / "python3").symlink_to("/usr/bin/python3")
    done = subprocess.run(["/usr/bin/python3", ROOT / "bench/run", "--quick", "--json", "-k", "http healthz"], capture_output=True, text=True,
                          timeout=600, check=False, env={**os.environ, "PATH": str(tmp_path), "CAISSON_BUILD": os.environ.get("CAISSON_BUILD", "build")})
    assert done.returncode == 0, done.stderr
    assert {row["note"] for row in json.loads(done.stdout)["rows"]} == {"wrk is not installed"}


def test_ratios_are_to_rows_of_the_same_document(floor):
    names = {row["name"] for row in floor["rows"]}
    for row in floor["rows"]:
        assert row["base"] in names
        if row["base"] == row["name"]:
            assert row["ratios"]["p50"] == row["ratios"]["p99"] == row["ratios"]["cpu"] == 1
    assert "floor bare print" not in {row["base"] for row in floor["rows"]}


def preloaded(program, *arguments):
    """Which modules of its list a floor has loaded, by name."""
    done = subprocess.run(["/usr/bin/python3", "-I", program, *arguments], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=60, check=True)
    return json.loads(done.stdout)


def test_a_floor_has_what_the_zygote_of_its_image_has():
    images = runpy.run_path(str(ROOT / "src/lang/python/zygote/preload.py"))["IMAGES"]
    found = preloaded(ROOT / "bench/floor.py", "system")
    assert list(found) == images["system"] and all(found.values())
    assert preloaded(ROOT / "bench/floor.py", "bare") == {}


def test_a_floor_leaves_out_what_a_zygote_leaves_out(tmp_path):
    modules = {"good": "", "broken": "1 / 0", "later": "",
               "threads": "import threading, time\nthreading.Thread(target=time.sleep, args=[60], daemon=True).start()"}
    for name, text in modules.items():
        (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
    (tmp_path / "bench").mkdir()
    (tmp_path / "src/lang/python/zygote").mkdir(parents=True)
    shutil.copy(ROOT / "bench/floor.py", tmp_path / "bench")
    (tmp_path / "src/lang/python/zygote/preload.py").write_text(
        f"import sys\nsys.path.insert(0, {str(tmp_path)!r})\nTHREAD_NAMES = []\n"
        "IMAGES = {'system': ['good', 'missing', 'broken', 'threads', 'later']}\n", encoding="utf-8")
    assert preloaded(tmp_path / "bench/floor.py", "system") == {
        "good": True, "missing": False, "broken": False, "threads": False, "later": True}


def test_goals_without_a_measurement_are_not_met(floor):
    assert floor["goals"]
    for goal in floor["goals"]:
        assert (goal["at_most"] is None) != (goal["at_least"] is None)
        assert (goal["state"], goal["value"]) == ("not measured", None), goal


def test_a_person_gets_a_table():
    done = bench("--quick", "-k", "peer bash")
    assert done.returncode == 0, done.stderr
    assert "peer bash" in done.stdout and "not measured" in done.stdout and "floor system" not in done.stdout


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to look into sandboxes")
def test_too_few_descriptors_are_told_of():
    done = bench("--quick", "--json", "-k", "waiting python, 1000",
                 preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096)))
    assert done.returncode == 0, done.stderr
    notes = {row["name"]: row["note"] for row in json.loads(done.stdout)["rows"]}
    assert notes == {"floor system print": None,
                     "waiting python, 1000": "needs 14500 descriptors, and the hard limit is 4096 (ulimit -Hn)"}


def test_no_row_of_that_name():
    done = bench("-k", "nothing is called so")
    assert done.returncode == 1 and "nothing is called so" in done.stderr and done.stdout == ""


# ---- bench/compare ----

@pytest.mark.parametrize("figure, old, new, state", [
    ("p50_ms", [1.0, 1.01, 0.99], [1.0, 1.02, 1.01], "ok"),
    ("p50_ms", [1.0, 1.01, 0.99], [1.05, 1.04, 1.06], "failed"),
    ("p50_ms", [1.0, 1.01, 0.99], [0.5, 0.5, 0.5], "ok"),
    ("p50_ms", [1.0, 1.08, 0.99], [1.05, 1.04, 1.06], "ok"),                # within the spread of the old build
    ("p50_ms", [1.0, 1.3, 0.9], [2.0, 2.0, 2.0], "noisy"),
    ("per_second", [100.0, 101.0, 99.0], [95.0, 94.0, 96.0], "failed"),
    ("per_second", [100.0, 101.0, 99.0], [120.0, 121.0, 119.0], "ok"),
])
def test_a_build_that_is_worse_fails_the_comparison(figure, old, new, state):
    compare = runpy.run_path(str(ROOT / "bench/compare"), run_name="compare")
    found = compare["judge"]("row", figure, old, new, SimpleNamespace(limit=3, noisy=15))
    assert found["state"] == state, found


@pytest.mark.parametrize("arguments, text", [
    (["no-such-build", "no-such-build"], "no-such-build: neither the folder of a build with a caissond nor a revision"),
    (["--rounds", "1", "build", "build"], "--rounds 1: a spread needs at least 2"),
])
def test_a_comparison_that_cannot_be_made_says_why(arguments, text):
    done = subprocess.run([ROOT / "bench/compare", *arguments], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2 and text in done.stderr
