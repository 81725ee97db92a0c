"""The chart in a cluster: pods are replaced, and clients notice nothing."""

import pytest

from harness import until
from harness.lab.witness import Witness

# One process has the lab.
pytestmark = [pytest.mark.alone, pytest.mark.timeout(300)]


def test_a_roll_of_all_pods_is_no_error_and_no_stale_read(lab, release):
    if len(lab.nodes) == 2:
        # One of two nodes alone votes, and the other one is not ready without it.
        lab.node_added()
    release.wait_until_coherent()
    before = {pod["metadata"]["uid"] for pod in release.ready(len(lab.nodes))}
    with Witness(release, sorted(lab.nodes)) as witness:
        release.install(proxy={"pod": {"annotations": {"turn": "2"}}})

        def replaced():
            pods = release.pods()
            return len(pods) == len(lab.nodes) and not before & {pod["metadata"]["uid"] for pod in pods}

        until(replaced, "all pods are others", every=0.1)
        release.ready(len(lab.nodes))
        witness.more()
    assert witness.wrong == []
    assert witness.errors == []
