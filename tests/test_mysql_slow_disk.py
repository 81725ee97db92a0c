"""The disk of servers of a Galera cluster is slow, judged as every fault of `test_mysql_failures.py` is."""

import pytest

from harness import SOAK
from harness.galera import why_not
from harness.galera_faults import WHERE, Fault
from harness.galera_verdict import meets
from harness.slow_disk import slow_disks

pytestmark = [
    pytest.mark.verdict,
    pytest.mark.either_io,
    pytest.mark.timeout(300),
    pytest.mark.skipif(not SOAK, reason="slow disks are part of `make soak`"),
]

SYNC = 1.0
"""Seconds that each sync takes longer, as many as the proxy gives a server for a reply by default."""

ALL = {
    "writer": WHERE["writer"],
    "reader": WHERE["reader"],
    "all": lambda writer, readers: [writer, *readers],
}


@pytest.fixture(scope="module")
def slow():
    """A cluster that syncs each transaction, and its disks."""
    if reason := why_not():
        pytest.skip(reason)
    with slow_disks() as made:
        yield made


@pytest.fixture
def cluster(slow):
    """The cluster, with an account of this test. What the test breaks is repaired behind it."""
    with slow[0].used(alone=True) as cluster:
        yield cluster


class Slow:
    """The disks of servers are slow, and how many syncs took longer is counted."""

    def __init__(self, disks):
        self._disks, self._before, self.delayed = disks, {}, []

    def begin(self, node):
        disk = self._disks[node.name]
        self._before[node.name] = disk.delayed()
        disk.delay(SYNC)

    def end(self, node):
        disk = self._disks[node.name]
        disk.delay(0)
        self.delayed.append(disk.delayed() - self._before[node.name])


@pytest.mark.parametrize("where", ALL)
def test_a_slow_disk(slow, cluster, before, figures, where):
    met = Slow(slow[1])
    does = Fault(met.begin, met.end, spares=True, seconds=8.0)
    door = before(cluster, timeout="1s")
    meets(cluster, door, figures, f"each sync takes {SYNC:.0f} s longer", where, does, ALL[where])
    print(f"syncs that took longer: {met.delayed}")
    assert min(met.delayed) > 2, "each of these servers has waited for its disk"
