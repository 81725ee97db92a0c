"""Packets are lost around a server of a Galera cluster, judged as every fault of `test_mysql_failures.py` is.

Each server is in a network namespace of its own. The tests are skipped where none may be made. A sample of
the cells runs, and all of them with PROXIMA_SOAK, which `make soak` sets.
"""

import functools
import itertools
from typing import NamedTuple

import pytest

from harness import SOAK
from harness.galera import why_not
from harness.galera_apart import apart
from harness.galera_door import begin
from harness.galera_faults import WHERE, Fault
from harness.galera_verdict import meets
from harness.netns import Network, forbidden

pytestmark = [pytest.mark.verdict, pytest.mark.either_io, pytest.mark.timeout(300)]

SERVERS, PROXY = 0, 1
"""The bridges by which a server reaches the others, and by which the proxy reaches it."""


class Loss(NamedTuple):
    """The parts that are lost of what comes to a server and of what it sends, by a bridge."""

    bridge: int
    comes: float
    goes: float


LOSSES = {
    "a quarter lost between it and the others": Loss(SERVERS, 0.25, 0.25),
    "a quarter lost between it and the proxy": Loss(PROXY, 0.25, 0.25),
    "all lost that it sends to the others": Loss(SERVERS, 0, 1),
    "all lost that it sends to the proxy": Loss(PROXY, 0, 1),
}
SAMPLE = [
    ("a quarter lost between it and the others", "writer"),
    # It still has statements that it executes, while another server is to take its place.
    ("all lost that it sends to the proxy", "writer"),
]
CELLS = list(itertools.product(LOSSES, ["writer", "reader"])) if SOAK else SAMPLE


@pytest.fixture(scope="module")
def servers():
    """A cluster whose servers have a network of their own each."""
    if reason := why_not():
        pytest.skip(reason)
    if reason := forbidden():
        pytest.skip(f"network namespaces cannot be made here: {reason}")
    network = Network(3)
    try:
        with apart(network) as made:
            yield made
    finally:
        network.remove()


@pytest.fixture
def cluster(servers):
    """The cluster, with an account of this test. What the test breaks is repaired behind it."""
    with servers.cluster.used(alone=True) as cluster:
        yield cluster


@pytest.fixture
def before(servers, io, tmp_path, cleanup):
    """Starts a proxy before this cluster. It gives a server up as soon as it does by default."""

    def start(config):
        proxy = servers.proxy(config, io, tmp_path)
        cleanup.callback(proxy.stop)
        return proxy

    return functools.partial(begin, start, tmp_path, timeout="1s")


class Losing:
    """Packets of a server are lost as a cell says."""

    def __init__(self, servers, loss):
        self._servers, self._loss = servers, loss
        self._losses, self.dropped = [], []

    def begin(self, node):
        try:
            self._losses = self._servers.lose(node, *self._loss)
        except OSError as error:
            pytest.skip(f"packets cannot be dropped by chance here: {error}")

    def end(self, node):
        for loss in self._losses:
            self.dropped.append(loss.dropped())
            loss.close()


@pytest.mark.parametrize(("fault", "where"), CELLS, ids=["-".join(cell) for cell in CELLS])
def test_lost_packets(servers, cluster, before, figures, fault, where):
    losing = Losing(servers, LOSSES[fault])
    does = Fault(losing.begin, losing.end, seconds=8.0)
    meets(cluster, before(cluster), figures, fault, where, does, WHERE[where])
    print(f"{losing.dropped} packets were lost")
    assert losing.dropped and all(losing.dropped), "packets were lost each way that the cell says"
