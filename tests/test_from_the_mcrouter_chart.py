"""Applications move from the mcrouter chart to ours node by node, as the page about it says, and read nothing
stale on their way."""

import threading

import pytest

from harness import until
from harness.helm import PROGRAM as HELM
from harness.lab.mcrouter_chart import MCROUTER, client
from harness.lab.release import Release
from harness.raw import Closed

pytestmark = [
    # One process has the lab.
    pytest.mark.alone,
    pytest.mark.skipif(not HELM.exists(), reason="there is no .cache/helm: scripts/helm.sh builds it"),
]

BESIDE = 32213
"""Where ours listens while the other one has its port."""


def coherent(lab, port):
    """Whether each node reads at this port what each other one has written."""
    for writer in lab.nodes:
        for reader in lab.nodes:
            try:
                with client(lab, writer, port) as here, client(lab, reader, port) as there:
                    here.set("shared", writer)
                    if there.get("shared") != writer.encode():
                        return False
            except (OSError, AssertionError, Closed):
                return False
    return True


def wait_until_coherent(lab, port):
    until(lambda: coherent(lab, port), f"all nodes are coherent at port {port}", every=0.1)


class Application:
    """An application of a node: it counts in a key of its own, and reads what those of other nodes count at
    the same port."""

    def __init__(self, lab, node, stored):
        self._lab, self._node, self._stored = lab, node, stored
        self._port, self._ended = MCROUTER, threading.Event()
        self.turns, self.wrong, self.errors = 0, [], []
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def move(self, port):
        """Gives it another address, and waits until it goes on there."""
        self._port = port
        self.more()

    def more(self):
        goal = self.turns + 200
        until(lambda: self.turns >= goal or self.errors or self.wrong, f"{self._node} goes on")

    def end(self):
        self._ended.set()
        self._thread.join()

    def _run(self):
        while not self._ended.is_set():
            port = self._port
            try:
                with client(self._lab, self._node, port) as connection:
                    while not self._ended.is_set() and port == self._port:
                        self._step(connection, port)
            except (OSError, AssertionError, Closed) as error:
                self.errors.append((self._node, port, repr(error)))

    def _step(self, connection, port):
        self.turns += 1
        connection.set(f"of-{self._node}", str(self.turns))
        self._stored[port, self._node] = self.turns
        for (place, node), least in list(self._stored.items()):
            if place == port:
                found = connection.get(f"of-{node}")
                if found is None or int(found) < least:
                    self.wrong.append((self._node, port, node, found, least))
        self._ended.wait(0.005)


@pytest.fixture
def ours(lab):
    """A release of our chart with the network of the nodes."""
    made = Release(lab, "moved", port=BESIDE)
    yield made
    made.uninstall()


def install(lab, release, port):
    """Installs or upgrades, and waits until all nodes are coherent at this port."""
    release.install(cache={**release.values["cache"], "port": port, "proxy": {"hostNetwork": True}})
    wait_until_coherent(lab, port)


def test_applications_that_move_node_by_node_read_nothing_stale(lab, mcrouter_chart, ours):
    mcrouter_chart.begin(*lab.nodes)
    # A list that was written before all memcacheds had an address lacks some, until the sidecar writes it.
    wait_until_coherent(lab, MCROUTER)
    stored = {}
    applications = [Application(lab, node, stored) for node in sorted(lab.nodes)]
    try:
        install(lab, ours, BESIDE)
        for application in applications:
            application.move(BESIDE)
        mcrouter_chart.remove()
        for application in applications:
            application.more()
    finally:
        for application in applications:
            application.end()
    assert [each.wrong + each.errors for each in applications] == [[] for _ in applications]
    install(lab, ours, MCROUTER)
    for node in lab.nodes:
        with pytest.raises(ConnectionRefusedError), client(lab, node, BESIDE):
            pass
