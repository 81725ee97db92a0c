"""A release of the chart in a cluster of the lab."""

import contextlib
import json
import time

import yaml

from .. import until
from ..helm import CHART, PROGRAM
from ..raw import Closed, Raw
from .objects import node_of

SPACE = "cache"
"""The namespace of releases."""


def image(lab, name):
    """An image of the lab as the chart's values name it."""
    registry, rest = lab.image(name).split("/", 1)
    repository, tag = rest.split(":")
    return {"registry": registry, "repository": repository, "tag": tag, "pullPolicy": "Never"}


def store(client, key, value):
    """The answer to a write."""
    client.send(b"set %b 0 0 %d\r\n%b\r\n" % (key, len(value), value))
    return client.until(b"\r\n")


def stored(client, key, value):
    return store(client, key, value) == b"STORED\r\n"


def read(client, key):
    client.send(b"get %b\r\n" % key)
    head = client.until(b"\r\n")
    if head == b"END\r\n":
        return None
    assert head.startswith(b"VALUE "), head
    return client.until(b"END\r\n").split(b"\r\n")[0]


class Release:
    """A release of the chart, of whose proxies this is about the cache's, or those of another part. A node
    that has the label `cache=no` has no pod of the cache."""

    def __init__(self, lab, name="cache", port=11311, part="cache"):
        self._lab, self.name, self._port, self._part = lab, name, port, part
        self._file = lab.switch.folder / f"{name}.yaml"
        labels = {"pod-security.kubernetes.io/enforce": "privileged"}
        lab.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SPACE, "labels": labels}})
        allowed = {"key": "cache", "operator": "NotIn", "values": ["no"]}
        terms = {"nodeSelectorTerms": [{"matchExpressions": [allowed]}]}
        affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
        self.values = {
            "image": image(lab, "proxima"),
            "cache": {
                "size": "16Mi",
                "port": port,
                "memcached": {"image": image(lab, "memcached")},
                "proxy": {"pod": {"affinity": affinity}},
            },
        }

    def _helm(self, *words):
        client = [f"--kubeconfig={self._lab.plane.kubeconfig}", f"--namespace={SPACE}"]
        return self._lab.switch.run(PROGRAM, *client, *words)

    def install(self, **values):
        """Installs or upgrades, and waits for nothing but the hooks."""
        self._file.write_text(yaml.safe_dump({**self.values, **values}))
        self._helm("upgrade", "--install", self.name, CHART, f"--values={self._file}")
        service = f"{self.name}-proxima" + (f"-{self._part}" if self._part != "cache" else "")
        service = self._lab.get(f"/api/v1/namespaces/{SPACE}/services/{service}")
        self._address = f"{service['spec']['clusterIP']}:{self._port}"

    def uninstall(self):
        """Waits until all pods have gone, which helm does not."""
        self._helm("uninstall", self.name)
        gone = f"{self.name} has no pods"
        until(lambda: not self._lab.pods(self._selector(), SPACE), gone, every=0.1)

    def pods(self):
        """The pods of proxies that are not told to end."""
        pods = self._lab.pods(self._selector(), SPACE)
        return [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]

    def _selector(self):
        return f"app.kubernetes.io/component={self._part},app.kubernetes.io/instance={self.name}"

    def ready(self, count):
        return self._lab.ready(self._selector(), count, SPACE)

    def pod(self, node):
        """The pod of a node."""
        [found] = [pod for pod in self.pods() if node_of(pod) == node]
        return found

    def has_other(self, pod):
        """Whether the place of a pod has another one."""
        node, uid = node_of(pod), pod["metadata"]["uid"]
        return any(node_of(each) == node and each["metadata"]["uid"] != uid for each in self.pods())

    @contextlib.contextmanager
    def replaced(self):
        """Waits, at its end, until all pods are others than at its beginning, and ready."""
        before = {pod["metadata"]["uid"] for pod in self.ready(len(self._lab.nodes))}
        yield

        def others():
            now = [pod["metadata"]["uid"] for pod in self.pods()]
            return len(now) == len(self._lab.nodes) and not before & set(now)

        until(others, "all pods are others", every=0.1, longest=200)
        self.ready(len(self._lab.nodes))

    def gone(self, node):
        """Waits until no pod is on a node."""

        def found():
            return any(node_of(pod) == node for pod in self._lab.pods(self._selector(), SPACE))

        # A controller looks for pods of nodes that are gone after a minute.
        until(lambda: not found(), f"no pod is on {node}", every=0.1, longest=150)

    def statuses(self):
        """What each proxy says of its fleet."""
        return [json.loads(self._lab.http(pod, 9150, "/fleet")[1]) for pod in self.pods()]

    def votes(self):
        """Whether all voters are pods that are there."""
        there = {f"{pod['status']['podIP']}:11400" for pod in self.pods()}
        return all(set(status["voters"].values()) <= there for status in self.statuses())

    def fleet(self):
        """The fleet that the Lease names."""
        path = f"/apis/coordination.k8s.io/v1/namespaces/{SPACE}/leases/{self.name}-proxima-fleet"
        return self._lab.get(path)["spec"]["holderIdentity"]

    @contextlib.contextmanager
    def client(self, node):
        """A client on a node, by the address of the Service."""
        with self._lab.nodes[node].entered():
            client = Raw(self._address)
        with client:
            yield client

    def coherent(self):
        """Whether each node reads what each other one has written."""
        with contextlib.ExitStack() as stack:
            try:
                clients = [stack.enter_context(self.client(node)) for node in sorted(self._lab.nodes)]
                for number, client in enumerate(clients):
                    value = b"%d-%f" % (number, time.monotonic())
                    if not stored(client, b"shared", value):
                        return False
                    if any(read(each, b"shared") != value for each in clients):
                        return False
            except (OSError, Closed):
                return False
        return True

    def wait_until_coherent(self):
        """Waits until each node has a ready pod and reads what others write. Without a pod of its own it
        would read at another node's."""
        self.ready(len(self._lab.nodes))
        until(self.coherent, "what is written on one node is read on all", every=0.1)
