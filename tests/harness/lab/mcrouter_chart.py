"""The mcrouter chart in a cluster of the lab, with our image in the place of mcrouter's."""

import contextlib

import yaml

from ..proxy import ROOT
from ..raw import Raw

MEMCACHED, MCROUTER = 30213, 31213
"""Their ports on each node."""


class McrouterChart:
    """The two DaemonSets, on the nodes that have the role."""

    def __init__(self, lab):
        self._lab = lab
        images = {"mcrouter": lab.shipped_image(), "memcached": lab.image("memcached")}
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
