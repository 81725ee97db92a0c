"""The chart in a cluster: a cache without a fleet at ports of nodes, and proxies before Redis with the node
agent at their side."""

import contextlib
import shutil

import pytest

from harness import SOAK, until
from harness.lab.objects import path_of
from harness.lab.release import SPACE, Release, image, read, stored
from harness.lab.requirements import PORTMAP
from harness.raw import Raw

# One process has the lab.
pytestmark = [pytest.mark.alone, pytest.mark.timeout(300)]

PORT = 31311
"""A port of nodes."""

REDIS = """
apiVersion: apps/v1
kind: Deployment
metadata: {{name: redis, namespace: {space}}}
spec:
  selector: {{matchLabels: {{app: redis}}}}
  template:
    metadata: {{labels: {{app: redis}}}}
    spec:
      containers:
      - {{name: redis, image: {image}, imagePullPolicy: Never, args: [--save, "", --protected-mode, "no"]}}
      terminationGracePeriodSeconds: 1
---
apiVersion: v1
kind: Service
metadata: {{name: redis, namespace: {space}}}
spec: {{clusterIP: None, selector: {{app: redis}}, ports: [{{port: 6379}}]}}
"""


@pytest.fixture(scope="module")
def copies(lab):
    """Servers and proxies in pods of their own, at a port of each node."""
    if not PORTMAP.exists():
        pytest.skip(f"{PORTMAP} is missing: agent/testdata/prepare.sh fetches it")
    made = Release(lab, "copies", port=PORT)
    made.values["cache"] |= {"mode": "copies"}
    # Nobody waits for them to drain.
    made.values["cache"]["proxy"] |= {"hostPort": True, "config": {"drain": {"delay": "0s"}}}
    made.install()
    made.wait_until_coherent()
    yield made
    made.uninstall()


def at(lab, node, other):
    """A client on a node, at the address of another one."""
    with lab.nodes[node].entered():
        return Raw(f"{lab.nodes[other].address}:{PORT}")


def test_what_is_written_at_the_address_of_a_node_is_read_at_that_of_any_other(lab, copies):
    nodes = sorted(lab.nodes)
    for number, node in enumerate(nodes):
        value = b"%d" % number
        with at(lab, node, node) as client:
            assert stored(client, b"key", value)
        for other in nodes:
            with at(lab, other, other) as own, at(lab, node, other) as far:
                assert read(own, b"key") == read(far, b"key") == value


def test_a_second_release_with_the_same_port_of_nodes_waits_and_the_first_one_serves(lab, copies):
    second = Release(lab, "second", port=PORT)
    second.values = {**copies.values, "cache": {**copies.values["cache"], "mode": "copies"}}
    second.install()

    def whys():
        """Why its pods are on no node."""
        conditions = [each for pod in second.pods() for each in pod["status"].get("conditions", [])]
        return [each.get("message", "") for each in conditions if each["type"] == "PodScheduled"]

    def waits():
        return len(whys()) == len(lab.nodes) and all("didn't have free ports" in why for why in whys())

    until(waits, "its pods wait for the port", every=0.1)
    assert copies.coherent()
    second.uninstall()


@pytest.fixture(scope="module")
def before_redis(lab):
    """Two proxies before a Redis, which ask the node agent who is near, and no cache."""
    if not SOAK:
        pytest.skip("proxies before Redis are part of `make soak`")
    if not shutil.which("redis-server"):
        pytest.skip("redis-server is missing: scripts/prepare.sh installs it")
    manifest = REDIS.format(space=SPACE, image=lab.image("redis"))
    made = Release(lab, "store", port=6379, part="redis")
    lab.apply(manifest)
    proxy = {
        "listeners": [{"address": "0.0.0.0:6379", "protocol": "redis", "route": "store"}],
        "pools": {"store": {"protocol": "redis", "kubernetes": "redis:6379"}},
    }
    made.values |= {"cache": {"mode": "none"}, "proxies": {"redis": {"config": proxy}}}
    made.values["agent"] = {"enabled": True, "image": image(lab, "agent")}
    made.install()
    made.ready(2)
    yield made
    made.uninstall()
    lab.delete(manifest)


def ask(client, *words):
    """The first line of the answer to a command."""
    parts = [b"$%d\r\n%b\r\n" % (len(word), word) for word in words]
    client.send(b"*%d\r\n%b" % (len(words), b"".join(parts)))
    return client.until(b"\r\n")


def test_clients_reach_redis_through_proxies_on_any_node(lab, before_redis):
    for node in sorted(lab.nodes):
        until(lambda node=node: answers(before_redis, node), f"the Service answers on {node}", every=0.1)
        with before_redis.client(node) as client:
            assert ask(client, b"SET", b"key", node.encode()) == b"+OK\r\n"
            assert ask(client, b"STRLEN", b"key") == b":%d\r\n" % len(node)


def answers(release, node):
    with contextlib.suppress(OSError), release.client(node) as client:
        return ask(client, b"PING") == b"+PONG\r\n"


def evicted(lab, pod):
    """The status of the request that a pod is evicted."""
    place = {each: pod["metadata"][each] for each in ("name", "namespace")}
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": place}
    return lab.plane.ask("POST", f"{path_of(pod)}/eviction", body)[0]


def test_of_two_proxies_one_may_be_evicted_at_a_time_and_no_client_sees_it(lab, before_redis):
    first, second = before_redis.ready(2)
    until(lambda: answers(before_redis, "n1"), "the Service answers", every=0.1)
    assert evicted(lab, first) == 201
    assert evicted(lab, second) == 429

    def replaced():
        with before_redis.client("n1") as client:
            assert ask(client, b"GET", b"none") == b"$-1\r\n"
        names = {pod["metadata"]["name"] for pod in before_redis.pods()}
        return len(names) == 2 and first["metadata"]["name"] not in names

    until(replaced, "another pod is in its place", every=0.05)
    before_redis.ready(2)


def test_the_agent_is_ready_on_every_node_and_proxies_follow_it(lab, before_redis):
    lab.ready("app.kubernetes.io/component=agent,app.kubernetes.io/instance=store", len(lab.nodes), SPACE)
    for pod in before_redis.ready(2):
        until(lambda pod=pod: "proxima_agent_up 1" in lab.http(pod, 9150, "/metrics")[1], "it is followed")
