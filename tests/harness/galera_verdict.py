"""What the witnesses of a fault of a Galera cluster have seen: that nothing was wrong, and in figures."""

import os

from . import until
from .galera_faults import meet
from .galera_witnesses import Witnesses
from .proxy import ROOT

IN_A_COMMIT = 1180
"""A server that is stopped has left its cluster while it commits."""


class Figures:
    """What clients saw, in one line for each cell."""

    HEAD = "| fault | at | errors of writes | of transactions | of reads | no write for | no read for |"

    def __init__(self):
        self._lines = []

    def add(self, *cells):
        self._lines.append(f"| {' | '.join(cells)} |")

    def write(self, module):
        """Writes a file for this module and this process of pytest, as others write theirs meanwhile."""
        process = os.environ.get("PYTEST_XDIST_WORKER", "all")
        table = [self.HEAD, "|---|---|---|---|---|---|---|", *self._lines, ""]
        file = ROOT / "target" / f"mysql-matrix-{module}-{process}.md"
        file.parent.mkdir(exist_ok=True)
        file.write_text("\n".join(table))


def _told(errors):
    """Errors by number, for the table."""
    return ", ".join(f"{count} × {number or 2013}" for number, count in sorted(errors.items())) or "none"


def judge(cluster, door, witnesses, figures, cell, spares):
    """Nothing was stale, lost, doubled or another's; and a fault that is to spare clients has."""
    witnesses.compare(cluster.nodes)
    assert not witnesses.wrong, "\n".join(witnesses.wrong[:20]) + door.proxy.log()[-3_000:]
    pauses = [f"{witnesses.pauses[kind].longest:.1f} s" for kind in ("write", "read")]
    errors = [_told(witnesses.failed(kind)) for kind in ("writes", "transacts", "reads")]
    figures.add(*cell, *errors, *pauses)
    seen = set(witnesses.failed("writes", "reads"))
    assert not spares or seen <= {IN_A_COMMIT}, witnesses.errors


def more(witnesses):
    """All kinds of clients have done more."""
    already = dict(witnesses.done)
    until(
        lambda: all(witnesses.done[kind] > already.get(kind, 0) + 10 for kind in witnesses.pauses),
        "all of them go on",
    )


def meets(cluster, door, figures, fault, where, does, of):
    """The servers that `of` chooses of the writer and the readers have this fault, and clients are right."""
    writer = door.writer()
    nodes = sorted(cluster.nodes, key=lambda node: node.name != writer)
    with Witnesses(door) as witnesses:
        more(witnesses)
        meet(does, of(nodes[0], nodes[1:]), cluster.repair)
        more(witnesses)
    judge(cluster, door, witnesses, figures, (fault, where), does.spares)
