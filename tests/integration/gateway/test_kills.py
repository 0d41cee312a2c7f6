"""Runs through gateways while workers and gateways are killed (tests/soak/kills.py is the long form).

    /usr/bin/python3 -m pytest -q tests/integration/gateway/test_kills.py
"""

import sys

from cli import ROOT

sys.path.append(str(ROOT / 'tests/soak'))
import kills     # noqa: E402


def play(fleet, runs, clients, **wanted):
    storm = kills.Storm(fleet, runs, clients, seed=runs)
    counts = storm.play(wanted, pause=0.5, seconds=600)
    assert not storm.wrong, '\n'.join(storm.wrong)
    assert all(counts[what] >= n for what, n in wanted.items()), counts
    assert all(run.is_done() for run in storm.runs)
    assert storm.done['key: completed'] and storm.done['stream: completed'], storm.done


def test_no_run_is_lost_or_begins_twice(tmp_path):
    play(kills.fleet_of(tmp_path), 400, 8, worker=14, gateway=3, stop=3, cut=5, end=4)


def test_pods_never_exceed_their_maximum_and_no_run_begins_twice(tmp_path):
    fleet = kills.pods_of(tmp_path)
    fleet.deletion_gap = 10         # the worker of a key and its witnesses are not all deleted while a client asks: tests/soak/kills.py does that
    play(fleet, 200, 8, worker=7, gateway=3, watch=9)
    assert 2 <= fleet.census.most <= kills.POOL_MAX
