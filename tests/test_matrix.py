"""Every fault of copies under every route for copies, with 100 clients.

A sample of the cells runs, each on one back end. With PROXIMA_SOAK, which `make soak` sets, all of them run.
The figures go to target/matrix.md.
"""

import itertools
import os
import pathlib
import time

import pytest

from harness import SOAK, figures
from harness.faults import FAULTS
from harness.judge import Judge
from harness.load import Load
from harness.nodes import HOSTS, ROUTES, Nodes
from harness.proxy import ROOT
from harness.relay import Relay

# Time-outs of a quarter of a second decide which server is lost, and one file takes the figures of all cells.
pytestmark = [pytest.mark.alone, pytest.mark.verdict, pytest.mark.either_io]

SPAN = 3.0
"""Seconds that a fault lasts."""
FROZEN = float(os.environ.get("PROXIMA_FROZEN", 60 if SOAK else SPAN))
"""Seconds that a server stands still."""
BACK = 120.0
"""Seconds within which all must be well after the end of a fault. It guards against hangs."""

SAMPLE = [
    ("frozen", "replicated", 4),
    ("frozen shortly", "replicated", 1),
    ("restarted empty", "replicated", 4),
    ("all but one gone", "replicated", 4),
    ("proxy restarted", "replicated", 1),
    ("refusing", "all_sync", 1),
    ("killed", "all_majority", 4),
    ("garbage", "all_fastest", 4),
    ("slow", "failover", 1),
]
CELLS = list(itertools.product(FAULTS, ROUTES, (1, 4))) if SOAK else SAMPLE


@pytest.fixture(scope="session")
def rows():
    """The figures of the cells that ran."""
    made = []
    yield made
    figures.write(made, pathlib.Path(os.environ.get("PROXIMA_FIGURES", ROOT / "target")))


@pytest.mark.timeout(400)
@pytest.mark.parametrize("fault, route, threads", CELLS, ids=["-".join(map(str, cell)) for cell in CELLS])
def test_fault_under_route(memcached, proxima, cleanup, tmp_path, io, rows, fault, route, threads):
    does = FAULTS[fault]
    servers = [memcached(host=host, threads=threads) for host in HOSTS]
    members = list(servers)
    if does.relayed:
        members[0] = Relay(servers[0].address)
        cleanup.callback(members[0].stop)
    nodes = Nodes(servers, members, route, proxima, tmp_path)
    judge = Judge(nodes.proxy.address, tmp_path)
    cleanup.callback(judge.stop)
    load = Load(nodes.proxy.address, clients=40, rate=800, tolerant=True, forgiving=route != "replicated")
    with load:
        load.after(400)
        assert not load.errors, load.errors[:5]
        begun = time.monotonic()
        does.begin(nodes)
        if does.seconds != 0:
            time.sleep(does.seconds or (FROZEN if fault == "frozen" else SPAN))
        if does.end:
            begun = time.monotonic()
            does.end(nodes)
        normal = _until_normal(nodes, load, begun, does.end)
        load.after(200)
    report = judge.report()

    # `Load` has failed the test by now if a reply was wrong, another client's, or stale in the replicated
    # pool.
    assert report["wrong"] == 0, report["first_wrong"]
    failed = report["refused_writes"] + report["lost_writes"]
    rows.append(
        {
            "fault": fault,
            "route": route,
            "io": io,
            "threads": threads,
            "refused_writes": failed,
            "refused_seconds": report["longest_spell_seconds"] if failed else 0,
            "normal_seconds": normal,
            "slowest_seconds": load.slowest,
            "stale_reads": report["stale_reads"] + load.stale,
            "worst_stale_seconds": (report["stale_age_seconds"] or {"max": 0})["max"],
            "first_write_failure": report["first_write_failure"],
        }
    )
    if route == "replicated":
        assert report["stale_reads"] == 0, report["worst_stale_read"]
        if does.spares == 2:
            assert load.refused == 0 or fault == "proxy restarted", load.errors[:5]
    if does.spares == 2 and route != "failover":
        # With failover a value is where it was stored first. Otherwise the servers that lived have all
        # values.
        for server in servers[1:]:
            _holds(server, load)


def _until_normal(nodes, load, begun, ends):
    """Seconds from `begun` until all are well and nothing fails any more. None: not while the fault lasts."""
    well = None
    end = begun + (BACK if ends else SPAN)
    while time.monotonic() < end:
        now = time.monotonic()
        if ends and not nodes.are_well():
            well = None
        elif well is None:
            well = now if ends else begun
        if well and now - max(well, load.failed) > 1:
            return max(well, load.failed) - begun
        time.sleep(0.02)
    assert not ends, f"not well after {BACK} s: {load.errors[-5:]}\n{nodes.proxy.log()[-5000:]}"
    return None


def _holds(server, load):
    """Fails unless this server has every write that was acknowledged."""
    with server.raw() as direct:
        for key, (acknowledged, sent) in load.known.items():
            if acknowledged:
                value = direct.get(key)
                assert value, f"{server.address} has lost {key}, which was acknowledged"
                assert acknowledged <= int(value.split(b"|")[1]) <= sent, (
                    server.address,
                    key,
                    acknowledged,
                    value,
                )
