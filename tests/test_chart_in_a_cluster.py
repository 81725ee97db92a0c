"""The chart in a cluster: one command, and every node has a coherent cache, whatever nodes and pods do."""

import contextlib
import json
import statistics
import threading
import time

import pytest
import yaml

from harness import until
from harness.helm import CHART
from harness.helm import PROGRAM as HELM
from harness.raw import Closed, Raw

pytestmark = [
    # One process has the lab.
    pytest.mark.alone,
    pytest.mark.verdict,
    pytest.mark.timeout(300),
    pytest.mark.skipif(not HELM.exists(), reason="there is no .cache/helm: scripts/helm.sh builds it"),
]

SPACE = "cache"
PROXIES = "app.kubernetes.io/component=cache"


def image(lab, name):
    registry, rest = lab.image(name).split("/", 1)
    repository, tag = rest.split(":")
    return {"registry": registry, "repository": repository, "tag": tag, "pullPolicy": "Never"}


class Release:
    """The release `cache` in a namespace of its own."""

    def __init__(self, lab):
        self._lab = lab
        self._values = lab.switch.folder / "values.yaml"
        labels = {"pod-security.kubernetes.io/enforce": "privileged"}
        lab.apply(
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SPACE, "labels": labels}},
        )
        self.values = {
            "image": image(lab, "proxima"),
            "cache": {"size": "16Mi", "memcached": {"image": image(lab, "memcached")}},
        }

    def helm(self, *words):
        client = [f"--kubeconfig={self._lab.plane.kubeconfig}", f"--namespace={SPACE}"]
        return self._lab.switch.run(HELM, *client, *words)

    def install(self, **values):
        """Installs or upgrades, and waits for nothing but the hooks."""
        self._values.write_text(yaml.safe_dump({**self.values, **values}))
        self.helm("upgrade", "--install", "cache", CHART, f"--values={self._values}")

    def pods(self):
        return [pod for pod in self._lab.pods(PROXIES, SPACE) if "deletionTimestamp" not in pod["metadata"]]

    def ready(self, count):
        return self._lab.ready(PROXIES, count, SPACE)

    def status(self, pod):
        """What the proxy of a pod says of its fleet."""
        return json.loads(self._lab.http(pod, 9150, "/fleet")[1])

    def service(self):
        """Where applications connect."""
        found = self._lab.get(f"/api/v1/namespaces/{SPACE}/services/cache-proxima")
        return f"{found['spec']['clusterIP']}:11311"

    @contextlib.contextmanager
    def client(self, node):
        """A client on a node."""
        with self._lab.nodes[node].entered():
            client = Raw(self.service())
        try:
            yield client
        finally:
            client.close()


@pytest.fixture(scope="module")
def release(lab):
    made = Release(lab)
    begun = time.monotonic()
    made.install()
    until(lambda: coherent(lab, made), "what is written on one node is read on all", every=0.1)
    print(f"helm install → every node reads what another one wrote: {time.monotonic() - begun:.1f} s")
    yield made
    made.helm("uninstall", "cache", "--wait")


def stored(client, key, value):
    client.send(b"set %b 0 0 %d\r\n%b\r\n" % (key, len(value), value))
    return client.until(b"\r\n") == b"STORED\r\n"


def read(client, key):
    client.send(b"get %b\r\n" % key)
    head = client.until(b"\r\n")
    if head == b"END\r\n":
        return None
    assert head.startswith(b"VALUE "), head
    return client.until(b"END\r\n").split(b"\r\n")[0]


def coherent(lab, release):
    """Whether each node reads what each other one has written."""
    nodes = sorted(node for node in lab.nodes if lab.is_ready(node))
    with contextlib.ExitStack() as stack:
        try:
            clients = [stack.enter_context(release.client(node)) for node in nodes]
            for number, client in enumerate(clients):
                value = b"%d-%f" % (number, time.monotonic())
                if not stored(client, b"shared", value):
                    return False
                if any(read(each, b"shared") != value for each in clients):
                    return False
        except (OSError, Closed):
            return False
    return True


class Witness:
    """A client on each node that writes and reads, through the address of the Service: what it reads is never
    older than what any of them was told is stored. A connection may end between two requests."""

    def __init__(self, lab, release, nodes):
        self._release, self._ended = release, threading.Event()
        self.wrong, self.errors, self.done = [], [], 0
        self._stored = {}
        self._lock = threading.Lock()
        self._threads = [threading.Thread(target=self._run, args=(node,), daemon=True) for node in nodes]

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        self.more()
        return self

    def __exit__(self, *_):
        self._ended.set()
        for thread in self._threads:
            thread.join()

    def more(self, count=200):
        goal = self.done + count
        until(lambda: self.done >= goal or self.wrong, "they go on")

    def _run(self, node):
        turn = 0
        while not self._ended.is_set():
            try:
                with self._release.client(node) as client:
                    while not self._ended.is_set():
                        turn += 1
                        self._step(client, node, turn)
            except Closed as closed:
                # Between two requests it is no error.
                if closed.args[0]:
                    self.errors.append((node, str(closed)))
            except (OSError, AssertionError) as error:
                self.errors.append((node, repr(error)))
                time.sleep(0.05)

    def _step(self, client, node, turn):
        key = b"of-" + node.encode()
        if stored(client, key, b"%d" % turn):
            with self._lock:
                self._stored[key] = turn
        for other in list(self._stored):
            with self._lock:
                least = self._stored[other]
            found = read(client, other)
            if found is not None and int(found) < least:
                self.wrong.append((node, other, int(found), least))
        self.done += 1
        time.sleep(0.002)


def test_every_node_reads_what_another_one_wrote(lab, release):
    pods = release.ready(len(lab.nodes))
    statuses = [release.status(pod) for pod in pods]
    lease = lab.get(f"/apis/coordination.k8s.io/v1/namespaces/{SPACE}/leases")["items"]
    assert {status["fleet"] for status in statuses} == {each["spec"]["holderIdentity"] for each in lease}
    assert all([peer["name"] for peer in status["peers"]] == sorted(lab.nodes) for status in statuses)


def test_the_key_of_the_authority_is_in_no_pod(lab, release):
    [pod, *_] = release.ready(len(lab.nodes))
    mounted = [volume for volume in pod["spec"]["volumes"] if "secret" in volume]
    assert [item["key"] for volume in mounted for item in volume["secret"]["items"]] == [
        "ca.crt",
        "tls.crt",
        "tls.key",
    ]


def test_a_roll_of_all_pods_is_no_error_and_no_stale_read(lab, release):
    before = {pod["metadata"]["uid"] for pod in release.ready(len(lab.nodes))}
    with Witness(lab, release, sorted(lab.nodes)) as witness:
        release.install(proxy={"pod": {"annotations": {"turn": "2"}}})

        def replaced():
            pods = release.pods()
            return len(pods) == len(lab.nodes) and not before & {pod["metadata"]["uid"] for pod in pods}

        until(replaced, "all pods are others", every=0.1)
        release.ready(len(lab.nodes))
        witness.more()
    assert witness.wrong == []
    assert witness.errors == []


def test_a_new_node_reads_and_is_coherent(lab, release):
    seconds = []
    node = lab.node_added()
    [pod] = [pod for pod in release.ready(len(lab.nodes)) if pod["spec"]["nodeName"] == node.host]
    until(lambda: coherent(lab, release), "all nodes are coherent", every=0.05)
    seconds.append(len(release.status(pod)["peers"]))
    assert statistics.median(seconds) == len(lab.nodes)


def test_a_lost_node_stops_no_write_and_comes_back(lab, release):
    release.ready(len(lab.nodes))
    until(lambda: coherent(lab, release), "all nodes are coherent", every=0.05)
    lost = max(lab.nodes)
    rest = sorted(set(lab.nodes) - {lost})
    with Witness(lab, release, rest) as witness:
        lab.kill_node(lost)
        # Writes wait for the lost node for less than two leases, and go on without it.
        witness.more()
        assert witness.wrong == []
        lab.boot(lost)
        lab.wait_for_nodes()
        until(lambda: coherent(lab, release), "the lost node is back", every=0.1)
        witness.more()
    assert witness.wrong == []
