"""The chart in a cluster: an upgrade to another image, and back, which clients do not notice."""

import pytest

from harness import SOAK
from harness.lab.release import SPACE, Release, image
from harness.lab.witness import Witness

# One process has the lab.
pytestmark = [pytest.mark.alone, pytest.mark.timeout(600)]

TURNS = ["proxima-before", "proxima"] if SOAK else ["proxima-before"]
"""The images of upgrades, one after the other."""


def test_an_upgrade_of_a_fleet_is_no_error_and_no_stale_read(lab, release):
    # One of two nodes alone votes, and the other one is not ready without it.
    lab.at_least(3)
    release.wait_until_coherent()
    with Witness(release, sorted(lab.nodes)) as witness:
        for turn in TURNS:
            with release.replaced():
                release.install(image=image(lab, turn))
            witness.more()
    print(witness)
    assert witness.wrong == []
    assert witness.errors == []
    # The peer that leads the voters goes as well: leases last until another one leads.
    assert witness.refused == []


@pytest.mark.skipif(not SOAK, reason="a second release is part of `make soak`")
def test_an_upgrade_of_copies_is_no_error(lab):
    """Without a fleet each proxy acts alone: one may still read a server that another one has left, so that
    reads may be stale for a moment."""
    lab.at_least(3)
    copies = Release(lab, "copies", port=11313)
    copies.values["cache"]["mode"] = "copies"
    copies.install()
    copies.wait_until_coherent()
    with Witness(copies, sorted(lab.nodes)) as witness:
        for turn in TURNS:
            # The servers roll at the same time as the proxies, and apart from them.
            copies.values["cache"]["memcached"]["pod"] = {"annotations": {"turn": turn}}
            with copies.replaced():
                copies.install(image=image(lab, turn))
            place = [f"--namespace={SPACE}", "daemonset/copies-proxima-memcached", "--timeout=120s"]
            lab.kubectl("rollout", "status", *place)
            witness.more()
    print(witness, witness.wrong)
    copies.uninstall()
    assert witness.errors == []
