"""The mcrouter chart as its users have it (`bash -c`, init container, sidecar) runs with our image in the
place of mcrouter's, and with nothing else changed."""

import contextlib

import pytest
import yaml

from harness import image, until
from harness.proxy import ROOT
from harness.raw import Raw

pytestmark = [
    # One process has the lab.
    pytest.mark.alone,
    pytest.mark.skipif(bool(image.why_not()), reason=str(image.why_not())),
]

MEMCACHED, MCROUTER = 30213, 31213


class Chart:
    """The two DaemonSets, on the nodes that have the role."""

    def __init__(self, lab):
        self._lab = lab
        try:
            images = {"mcrouter": lab.shipped_image(), "memcached": lab.image("memcached")}
        except image.Unavailable as error:
            pytest.skip(str(error))
        self._objects = list(yaml.safe_load_all((ROOT / "tests/lab/mcrouter-chart.yaml").read_text()))
        for each in self._objects:
            if each["kind"] == "DaemonSet":
                pod = each["spec"]["template"]["spec"]
                for container in pod["containers"] + pod.get("initContainers", []):
                    container["image"] = images[container["image"]]
        lab.apply(self._objects)

    def begin(self, *nodes):
        """Gives these nodes the role, and waits for their pods."""
        self._label({"node-role.kubernetes.io/node": ""}, nodes)
        for name in ("mc", "mcrouter"):
            self._lab.ready(f"app={name}", len(nodes))

    def _label(self, labels, nodes):
        for node in nodes:
            metadata = {"name": node, "labels": labels}
            self._lab.apply({"apiVersion": "v1", "kind": "Node", "metadata": metadata})

    def remove(self):
        self._lab.delete(self._objects)
        self._label({}, self._lab.nodes)


@contextlib.contextmanager
def client(lab, node, port):
    """A client on a node of what listens at the node's address."""
    machine = lab.nodes[node]
    with machine.entered():
        made = Raw(f"{machine.address}:{port}")
    with made:
        yield made


@pytest.fixture
def chart(lab):
    made = Chart(lab)
    yield made
    made.remove()


def test_what_is_written_on_a_node_is_read_on_one_that_has_come_later(lab, chart):
    first, second = sorted(lab.nodes)[:2]
    chart.begin(first)
    with client(lab, first, MCROUTER) as here:
        here.set("k", "alone")
    chart.begin(first, second)

    def written_to_both():
        with client(lab, first, MCROUTER) as here, client(lab, second, MEMCACHED) as there:
            here.set("k", "by one")
            return there.get("k") == b"by one"

    until(written_to_both, "the sidecar has put the new node into the list of the old one", every=0.1)
    with client(lab, second, MCROUTER) as there:
        assert there.get("k") == b"by one"
        there.set("k", "by the other")
    for port in (MCROUTER, MEMCACHED):
        with client(lab, first, port) as here:
            assert here.get("k") == b"by the other"
