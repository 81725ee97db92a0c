"""The chart in a cluster: an image that one node cannot get stops a roll and nothing else."""

import pytest

from harness import SOAK, until
from harness.lab.witness import Witness

# One process has the lab.
pytestmark = [pytest.mark.alone, pytest.mark.timeout(300)]


def waits_for(pod):
    """What the proxy of a pod waits for."""
    status = pod["status"]
    containers = status.get("initContainerStatuses", []) + status.get("containerStatuses", [])
    return {each["state"].get("waiting", {}).get("reason") for each in containers}


@pytest.mark.skipif(not SOAK, reason="a second roll of the chart is part of `make soak`")
def test_a_roll_stops_at_a_node_that_cannot_get_the_image_and_the_rest_serves(lab, release):
    # One of two nodes alone votes, and the other one does not go on without it.
    lab.at_least(3)
    release.wait_until_coherent()
    without, *rest = sorted(lab.nodes)
    image = release.values["image"]
    names = [f"localhost/proxima:{tag}" for tag in (image["tag"], "next")]
    for node in rest:
        lab.nodes[node].ctr("images", "tag", *names)
    # The Job of the keys runs on another node. A DaemonSet's pods do not mind.
    lab.kubectl("cordon", without)
    with Witness(release, rest) as witness:
        release.install(image={**image, "tag": "next"})

        def stopped():
            return any("ErrImageNeverPull" in waits_for(pod) for pod in release.pods())

        until(stopped, "the node has no image", every=0.1)
        witness.more()
        assert len(release.pods()) == len(lab.nodes)
        lab.nodes[without].ctr("images", "tag", *names)
        until(lambda: not stopped(), "the node has the image", every=0.1)
    lab.kubectl("uncordon", without)
    assert witness.wrong == []
    assert witness.errors == []
    release.wait_until_coherent()
