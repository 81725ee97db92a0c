"""The chart in a cluster: nodes come and go, and the cache stays coherent."""

import contextlib
import shutil
import statistics
import time

import pytest

from harness import SOAK, until
from harness.lab.node import age
from harness.lab.release import SPACE, stored
from harness.lab.witness import Witness
from harness.raw import Closed, Raw

# One process has the lab.
pytestmark = [pytest.mark.alone, pytest.mark.timeout(300)]


def reads(address):
    """Whether a proxy answers with what another one has stored."""
    with contextlib.suppress(OSError, Closed), Raw(address) as client:
        client.send(b"get first\r\n")
        return client.until(b"\r\n").startswith(b"VALUE")
    return False


def test_a_new_node_is_one_of_the_fleet_and_coherent(lab, release):
    lab.node_added()
    release.wait_until_coherent()
    assert {len(status["peers"]) for status in release.statuses()} == {len(lab.nodes)}


def test_a_lost_node_stops_no_write_and_comes_back(lab, release):
    release.wait_until_coherent()
    lost = max(lab.nodes)
    rest = sorted(set(lab.nodes) - {lost})
    with Witness(release, rest) as witness:
        lab.kill_node(lost)
        # Writes wait for the lost node for less than two leases, and go on without it.
        witness.more()
        assert witness.wrong == []
        lab.boot(lost)
        lab.wait_for_nodes()
        release.wait_until_coherent()
        witness.more()
    assert witness.wrong == []


def test_a_node_that_is_taken_out_says_goodbye_and_comes_back(lab, release):
    """As when it loses a label that the chart asks for; `kubectl drain` leaves a DaemonSet's pods."""
    release.wait_until_coherent()
    left = max(lab.nodes)
    with Witness(release, sorted(lab.nodes)) as witness:
        lab.kubectl("label", "node", left, "cache=no")
        release.gone(left)
        witness.more()
        assert all([left, "goodbye"] in status["removed"] for status in release.statuses())
        lab.kubectl("label", "node", left, "cache-")
        release.wait_until_coherent()
        witness.more()
    assert witness.wrong == []
    assert witness.errors == []


@pytest.mark.skipif(not SOAK, reason="a controller waits for a minute, so that it is part of `make soak`")
def test_a_node_that_was_deleted_joins_again(lab, release):
    lab.at_least(3)
    release.wait_until_coherent()
    left = max(lab.nodes)
    rest = sorted(set(lab.nodes) - {left})
    with Witness(release, rest) as witness:
        lab.kubectl("delete", "node", left)
        begun = time.monotonic()
        release.gone(left)
        print(f"node deleted → its pod is gone: {time.monotonic() - begun:.1f} s")
        witness.more()
        lab.nodes[left].join_again()
        lab.wait_for_nodes()
        release.wait_until_coherent()
        witness.more()
    print(witness)
    assert witness.wrong == []
    assert witness.errors == []


@pytest.mark.skipif(not SOAK, reason="figures are part of `make soak`")
def test_first_read_of_a_new_node(lab, release):
    """Its pod has no folder: it is a peer of which nobody knows."""
    lab.at_least(3)
    release.wait_until_coherent()
    new = max(lab.nodes)
    node, taken = lab.nodes[new], []
    for _ in range(10):
        lab.kubectl("label", "node", new, "cache=no")
        release.gone(new)
        shutil.rmtree(node.folder / "lib/proxima" / SPACE)
        with release.client(min(lab.nodes)) as client:
            assert stored(client, b"first", b"1")
        before = set(node.processes("/pause"))
        lab.kubectl("label", "node", new, "cache-")
        [pause] = until(lambda: set(node.processes("/pause")) - before, "the pod has started")
        address = until(lambda: release.pod(new)["status"].get("podIP"), "the pod has an address")
        with lab.switch.entered():
            until(lambda: reads(f"{address}:11311"), "it reads what another node wrote")
        [proxy] = node.processes("/usr/local/bin/proxima")
        taken.append((age(pause), age(proxy)))
        release.wait_until_coherent()
    until(release.votes, "the vote of a folder that is gone is another peer's", every=0.5)
    for what, seconds in zip(("pod", "proxy"), zip(*taken, strict=True), strict=True):
        middle, most = statistics.median(seconds), max(seconds)
        print(f"{what} of a new node started → first read: median {middle:.2f} s, most {most:.2f} s")
