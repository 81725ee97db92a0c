"""Each fault of a Galera cluster, judged by what its clients saw: clients write, read and remember meanwhile.

A sample of the cells runs, each on one back end. With PROXIMA_SOAK, which `make soak` sets, all of them run.
The figures go to target/mysql-matrix-*.md, one file for each process of pytest.
"""

import itertools
import os
import pathlib

import pytest

from harness import SOAK, until
from harness.galera_faults import OTHERS, SERVERS, WHERE, meet
from harness.galera_witnesses import Witnesses
from harness.proxy import ROOT

pytestmark = [pytest.mark.verdict, pytest.mark.either_io, pytest.mark.timeout(300)]

SAMPLE = [
    ("stopped", "writer"),
    ("killed", "writer"),
    ("frozen", "reader"),
    ("cut off from the others", "writer"),
    ("read-only", "writer"),
    ("rejecting queries", "readers"),
    ("full", "writer"),
]
IN_A_COMMIT = 1180
"""A server that is stopped has left its cluster while it commits."""

CELLS = list(itertools.product(SERVERS, WHERE)) if SOAK else SAMPLE


@pytest.fixture(scope="module")
def figures():
    """What clients saw, in one line for each cell."""
    lines = []
    yield lines
    head = "| fault | at | errors of writes | of transactions | of reads | no write for | no read for |"
    table = [head, "|---|---|---|---|---|---|---|", *lines, ""]
    process = os.environ.get("PYTEST_XDIST_WORKER", "all")
    pathlib.Path(ROOT / "target" / f"mysql-matrix-{process}.md").write_text("\n".join(table))


def told(errors):
    """Errors by number, for the table."""
    return ", ".join(f"{count} × {number or 2013}" for number, count in sorted(errors.items())) or "none"


def judge(cluster, door, witnesses, figures, cell, spares):
    """Nothing was stale, lost, doubled or another's; and a fault that is to spare clients has."""
    witnesses.compare(cluster.nodes)
    assert not witnesses.wrong, "\n".join(witnesses.wrong[:20]) + door.proxy.log()[-3_000:]
    pauses = [f"{witnesses.pauses[kind].longest:.1f} s" for kind in ("write", "read")]
    errors = [told(witnesses.failed(kind)) for kind in ("writes", "transacts", "reads")]
    figures.append(f"| {' | '.join([*cell, *errors, *pauses])} |")
    seen = set(witnesses.failed("writes", "reads"))
    assert not spares or seen <= {IN_A_COMMIT}, witnesses.errors


def more(witnesses):
    """All kinds of clients have done more."""
    already = dict(witnesses.done)
    until(
        lambda: all(witnesses.done[kind] > already.get(kind, 0) + 10 for kind in witnesses.pauses),
        "all of them go on",
    )


@pytest.mark.parametrize(("fault", "where"), CELLS, ids=["-".join(cell) for cell in CELLS])
def test_a_fault_of_servers(galera_alone, before, figures, fault, where):
    door = before(galera_alone)
    writer = door.writer()
    nodes = sorted(galera_alone.nodes, key=lambda node: node.name != writer)
    does = SERVERS[fault]
    with Witnesses(door) as witnesses:
        more(witnesses)
        meet(does, WHERE[where](nodes[0], nodes[1:]), galera_alone.repair)
        more(witnesses)
    judge(galera_alone, door, witnesses, figures, (fault, where), does.spares)


@pytest.mark.parametrize("fault", OTHERS if SOAK else ["the proxy was killed"])
def test_a_fault_of_the_proxy_or_of_the_data(galera_alone, before, proxima, figures, fault):
    door = before(galera_alone)
    does = OTHERS[fault]
    with Witnesses(door) as witnesses:
        more(witnesses)
        does.begin(door, galera_alone, proxima)
        more(witnesses)
    judge(galera_alone, door, witnesses, figures, (fault, "—"), does.spares)
