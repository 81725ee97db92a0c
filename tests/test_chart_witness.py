"""The chart in a cluster: of two nodes with a witness either may be lost."""

import json

import pytest

from harness import SOAK, until
from harness.lab.objects import node_of
from harness.lab.release import SPACE, Release
from harness.lab.witness import Witness

# One process has the lab.
pytestmark = [
    pytest.mark.alone,
    pytest.mark.timeout(300),
    pytest.mark.skipif(not SOAK, reason="a second fleet is part of `make soak`"),
]


def on(*nodes):
    """The affinity to these nodes."""
    here = {"key": "kubernetes.io/hostname", "operator": "In", "values": nodes}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [here]}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}


def settled(lab, release, node):
    """Whether a node says that both peers are there and vote, and so does the witness."""
    [pod] = [pod for pod in release.pods() if node_of(pod) == node]
    status = json.loads(lab.http(pod, 9150, "/fleet")[1])
    return len(status["peers"]) == 2 and len(status["voters"]) == 3


@pytest.fixture(scope="module")
def two(lab):
    """A release whose cache is on the first two nodes, and whose witness is on the third one."""
    while len(lab.nodes) < 3:
        lab.node_added()
    *nodes, third = sorted(lab.nodes)[:3]
    made = Release(lab, "two", port=11313)
    made.values["cache"]["proxy"] = {"pod": {"affinity": on(*nodes)}}
    place = {"node-role.kubernetes.io/control-plane": None, "kubernetes.io/hostname": third}
    made.values["cache"]["fleet"] = {"witness": {"enabled": True, "pod": {"nodeSelector": place}}}
    made.install()
    made.ready(2)
    lab.ready("app.kubernetes.io/instance=two,app.kubernetes.io/component=witness", 1, SPACE)
    yield made, nodes
    made.uninstall()


def test_the_loss_of_either_of_two_nodes_with_a_witness_stops_no_write(lab, two):
    release, nodes = two
    for lost, kept in (nodes, nodes[::-1]):
        until(lambda kept=kept: settled(lab, release, kept), "all three vote", every=0.1)
        with Witness(release, [kept]) as witness:
            lab.kill_node(lost)
            witness.more()
            lab.boot(lost)
            lab.wait_for_nodes()
            until(lambda kept=kept: settled(lab, release, kept), "the lost one is back", every=0.1)
            until(release.coherent, "what is written on one node is read on both", every=0.1)
        assert witness.wrong == []
        assert witness.errors == []


def test_a_roll_of_two_nodes_and_their_witness_is_no_error_and_no_stale_read(two):
    release, nodes = two
    before = {pod["metadata"]["uid"] for pod in release.ready(2)}
    with Witness(release, nodes) as witness:
        release.install(proxy={"pod": {"annotations": {"turn": "2"}}})

        def replaced():
            pods = release.pods()
            return len(pods) == 2 and not before & {pod["metadata"]["uid"] for pod in pods}

        until(replaced, "all pods are others", every=0.1)
        release.ready(2)
        witness.more()
    assert witness.wrong == []
    assert witness.errors == []
