"""A cluster of the lab."""

import concurrent.futures
import contextlib
import urllib.request

from .. import PATIENCE, until
from ..netns import ip
from .control_plane import PROGRAM, ControlPlane
from .images import Image, Shipped
from .machine import Machine
from .mark import Mark
from .node import MOST, Node, address, pods
from .objects import Objects, is_ready
from .sweep import sweep

COREDNS = """
.:53 {{
    bind {address}
    errors
    cache 30
    kubernetes cluster.local {{
        kubeconfig {kubeconfig}
        ttl 5
    }}
}}
"""


class Cluster(Objects):
    """A control plane and so many nodes, which are ready; until `stop`."""

    def __init__(self, nodes=2, mark=None):
        self._mark = mark or Mark()
        self._claim = self._mark.claim()
        sweep(self._mark)
        self.nodes, self._images = {}, {}
        try:
            self.switch = Machine(self._mark, "switch", "10.77.0.1")
            self._make_switch()
            super().__init__(ControlPlane(self.switch.folder, self.switch))
            self.image("pause")
            self._begin_controllers()
            self._begin_dns()
            with concurrent.futures.ThreadPoolExecutor() as pool:
                list(pool.map(self.boot, [self._new_node().host for _ in range(nodes)]))
            self.wait_for_nodes()
        except BaseException as error:
            error.add_note(self._logs())
            self.stop()
            raise

    def _make_switch(self):
        """The machine of the control plane, whose bridge joins all nodes."""
        self.switch.make()
        name = self.switch.name
        ip("-n", name, "link", "add", "bridge0", "type", "bridge")
        ip("-n", name, "address", "add", f"{self.switch.address}/16", "dev", "bridge0")
        ip("-n", name, "link", "set", "bridge0", "up")
        for number in range(1, MOST + 1):
            ip("-n", name, "route", "add", pods(number), "via", address(number))

    def _begin_controllers(self):
        quick = ["--kube-api-qps=500", "--kube-api-burst=500"]
        client = [f"--kubeconfig={self.plane.kubeconfig}", "--leader-elect=false", *quick]
        manager = [
            f"--root-ca-file={self.plane.authority.file}",
            f"--service-account-private-key-file={self.plane.key}",
            "--controllers=*,-bootstrapsigner,-tokencleaner,-nodeipam",
            "--node-monitor-period=1s",
            "--node-monitor-grace-period=15s",
        ]
        scheduler = ["--authentication-tolerate-lookup-failure=true"]
        self._controllers = [
            self.switch.start(name, PROGRAM, name, *client, *arguments)
            for name, arguments in (("kube-controller-manager", manager), ("kube-scheduler", scheduler))
        ]

    def _begin_dns(self):
        text = COREDNS.format(address=self.switch.address, kubeconfig=self.plane.kubeconfig)
        corefile = self.switch.folder / "Corefile"
        corefile.write_text(text)
        self.switch.start("coredns", PROGRAM, "coredns", "-conf", corefile)

    def _new_node(self):
        node = Node(self._mark, len(self.nodes) + 1, self.plane, self.switch)
        self.nodes[node.host] = node
        return node

    def boot(self, node):
        """Starts a node, which joins the cluster."""
        self.nodes[node].boot(self._images.values())

    def node_added(self):
        """A new node, which is ready."""
        node = self._new_node()
        self.boot(node.host)
        self.wait_for_nodes()
        return node

    def at_least(self, count):
        """Adds nodes until there are so many."""
        while len(self.nodes) < count:
            self.node_added()

    def kill_node(self, node):
        """What a power failure does to a node. `boot` starts it again."""
        self.nodes[node].kill()

    def is_ready(self, node):
        """Whether the API server says that the node is ready."""
        return any(is_ready(each) for each in self._nodes() if each["metadata"]["name"] == node)

    def _nodes(self):
        return self.get("/api/v1/nodes")["items"]

    def wait_for_nodes(self):
        """Waits until all nodes are ready."""

        def all_ready():
            return self.nodes.keys() == {each["metadata"]["name"] for each in self._nodes() if is_ready(each)}

        until(all_ready, f"all nodes are ready: {self._mark.folder}/n*/kubelet.log", every=0.1)

    @contextlib.contextmanager
    def cut(self, node):
        """A node whose cable to the others is out."""
        self.nodes[node].plug("down")
        try:
            yield
        finally:
            self.nodes[node].plug("up")

    @contextlib.contextmanager
    def api_away(self):
        """The API server is not there, and neither are the controllers, as when their machine restarts. They
        would take nodes for lost that have not found the API server again."""
        for controller in self._controllers:
            controller.kill()
        self.plane.kill()
        try:
            yield
        finally:
            self.plane.begin()
            self._begin_controllers()

    def image(self, name):
        """The name that manifests use for an image of `images.KINDS`, which all nodes have from now on."""
        return self._image(name, lambda folder: Image(name, folder))

    def shipped_image(self):
        """The same for the image that `make image-debian` makes."""
        return self._image("shipped", Shipped)

    def _image(self, name, make):
        if name not in self._images:
            image = self._images[name] = make(self._mark.folder / "images")
            for node in self.nodes.values():
                node.load(image)
        return self._images[name].reference

    def kubectl(self, *words):
        """Runs `kubectl`, and returns what it has written."""
        return self.switch.run(PROGRAM, "kubectl", f"--kubeconfig={self.plane.kubeconfig}", *words)

    def execute(self, pod, *command):
        """Runs a command in a pod, and returns what it has written."""
        place = pod["metadata"]
        return self.kubectl("exec", f"--namespace={place['namespace']}", place["name"], "--", *command)

    def http(self, pod, port, path):
        """Status and text of a page of a pod."""
        with self.switch.entered():
            url = f"http://{pod['status']['podIP']}:{port}{path}"
            with urllib.request.urlopen(url, timeout=PATIENCE) as answer:
                return answer.status, answer.read().decode()

    def _logs(self):
        """The end of each log."""
        files = self._mark.folder.glob("*/*.log")
        return "\n".join(f"{file}: {file.read_text(errors='replace')[-1000:]}" for file in files)

    def stop(self):
        """Ends all, at once."""
        sweep(self._mark)
        for machine in [*self.nodes.values(), self.switch]:
            machine.bury()
        self._claim.close()
