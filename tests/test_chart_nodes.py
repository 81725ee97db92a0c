"""The chart in a cluster: nodes come and go, and the cache stays coherent."""

import pytest

from harness.lab.witness import Witness

# One process has the lab.
pytestmark = [pytest.mark.alone, pytest.mark.timeout(300)]


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
