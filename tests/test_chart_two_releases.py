"""The chart in a cluster: releases in one namespace are no business of each other."""

import pytest

from harness import SOAK
from harness.lab.release import Release, read, stored
from harness.lab.witness import Witness

# One process has the lab.
pytestmark = [pytest.mark.alone, pytest.mark.timeout(300)]


@pytest.mark.skipif(not SOAK, reason="a second release is part of `make soak`")
def test_two_releases_are_two_fleets_and_the_end_of_one_is_nothing_to_the_other(lab, release):
    nodes = sorted(lab.nodes)
    release.ready(len(nodes))
    with Witness(release, nodes) as witness:
        other = Release(lab, "other", port=11312)
        other.install()
        other.wait_until_coherent()
        ours, theirs = release.statuses(), other.statuses()
        assert {each["fleet"] for each in ours} == {release.fleet()}
        assert {each["fleet"] for each in theirs} == {other.fleet()} != {release.fleet()}
        assert all([peer["name"] for peer in each["peers"]] == nodes for each in ours + theirs)
        with release.client(nodes[0]) as client, other.client(nodes[0]) as beside:
            assert stored(client, b"one", b"1")
            assert read(beside, b"one") is None
        other.uninstall()
        witness.more()
    assert witness.wrong == []
    assert witness.errors == []
    assert release.coherent()
