"""A proxy in a pod follows the servers of a Service, each in a pod on a node of its own."""

import json
import math
import statistics
import threading
import time

import pytest
import yaml

from harness import SOAK, until
from harness.lab.memcacheds import memcacheds
from harness.lab.node import age
from harness.raw import Raw

# One process has the lab.
pytestmark = pytest.mark.alone

CHANGES = 100 if SOAK else 3

SLICES = (
    "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices?labelSelector=kubernetes.io/service-name=mc"
)

PROXY = """
apiVersion: v1
kind: ServiceAccount
metadata: {{name: proxima}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {{name: proxima}}
rules:
- {{apiGroups: [discovery.k8s.io], resources: [endpointslices], verbs: [get, list, watch]}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {{name: proxima}}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: Role, name: proxima}}
subjects: [{{kind: ServiceAccount, name: proxima, namespace: default}}]
---
apiVersion: v1
kind: ConfigMap
metadata: {{name: proxima}}
data:
  proxima.yaml: |
    workers: 1
    admin: 0.0.0.0:9150
    listeners: [{{address: 0.0.0.0:11211, route: cache}}]
    pools: {{cache: {{kubernetes: mc}}}}
---
apiVersion: v1
kind: Pod
metadata: {{name: proxima, labels: {{app: proxima}}}}
spec:
  serviceAccountName: proxima
  nodeName: n1
  containers:
  - name: proxima
    image: {proxima}
    imagePullPolicy: Never
    args: [run, --config, /etc/proxima/proxima.yaml]
    env: [{{name: NODE_NAME, valueFrom: {{fieldRef: {{fieldPath: spec.nodeName}}}}}}]
    readinessProbe: {{httpGet: {{path: /ready, port: 9150}}, periodSeconds: 1}}
    volumeMounts: [{{name: configuration, mountPath: /etc/proxima}}]
  volumes: [{{name: configuration, configMap: {{name: proxima}}}}]
  terminationGracePeriodSeconds: 1
"""


@pytest.fixture(scope="module")
def proxy(lab):
    """A proxy in a pod on n1, before a memcached on each node."""
    # A server that is about to end goes on for some seconds, so that a request would be seen there.
    objects = [
        *memcacheds(lab, headless=True, linger=3),
        *yaml.safe_load_all(PROXY.format(proxima=lab.image("proxima"))),
    ]
    lab.apply(objects)
    lab.ready("app=mc", len(lab.nodes))
    [pod] = lab.ready("app=proxima", 1)
    yield pod
    lab.delete(objects)


def members(lab, proxy):
    return {each["address"]: each for each in json.loads(lab.http(proxy, 9150, "/members")[1])}


def address(pod):
    return f"{pod['status']['podIP']}:11211"


class Knowledge:
    """What the API server has told of the Service's endpoints, and when."""

    def __init__(self, lab):
        self._told = []
        threading.Thread(target=self._follow, args=(lab,), daemon=True).start()

    def _follow(self, lab):
        for event in lab.plane.watch(SLICES):
            serving = {
                f"{each['addresses'][0]}:11211"
                for each in event["object"]["endpoints"] or []
                if each["conditions"]["serving"] and not each["conditions"]["terminating"]
            }
            self._told.append((time.monotonic(), serving))

    def since(self, condition):
        """When it told first what the last word has fulfilled ever since."""
        times = None
        for moment, serving in reversed(self._told):
            if not condition(serving):
                break
            times = moment
        return times


class Load(threading.Thread):
    """A client that reads many keys through the proxy, until `stop`."""

    def __init__(self, lab, proxy):
        super().__init__(daemon=True)
        with lab.switch.entered():
            self._client = Raw(address(proxy))
        self._on = True
        self.requests = 0
        self.wrong = []
        self.start()

    def run(self):
        while self._on:
            self._client.send(b"get key-%d\r\n" % (self.requests % 500))
            line = self._client.until(b"\r\n")
            if line != b"END\r\n":
                self.wrong.append(line)
            self.requests += 1
            time.sleep(0.0005)

    def more(self, count=500):
        """Waits for so many requests."""
        goal = self.requests + count
        until(lambda: self.requests >= goal, "the client goes on")

    def stop(self):
        self._on = False
        self.join()


def gets(client):
    """How many reads a memcached has had."""
    client.send(b"stats\r\n")
    lines = client.until(b"END\r\n").splitlines()
    return next(int(line.split()[2]) for line in lines if line.startswith(b"STAT cmd_get "))


def test_members_are_the_pods_with_their_nodes_and_zones(lab, proxy):
    pods = lab.ready("app=mc", len(lab.nodes))
    until(lambda: members(lab, proxy).keys() == set(map(address, pods)), "all pods are members")
    shown = members(lab, proxy)
    for pod in pods:
        node = pod["spec"]["nodeName"]
        member = shown[address(pod)]
        seen = (member["name"], member["pod_uid"], member["node"], member["zone"])
        assert seen == (pod["metadata"]["name"], pod["metadata"]["uid"], node, lab.nodes[node].zone)
        assert (member["distance"] == "host") == (node == "n1")


@pytest.mark.timeout(1800)
def test_pod_that_ends_gets_no_new_request_and_the_one_in_its_place_does(lab, proxy):
    """And no client sees an error."""
    knowledge, load = Knowledge(lab), Load(lab, proxy)
    gone, gone_in_all, come, come_in_all = [], [], [], []
    for change in range(CHANGES):
        old = lab.ready("app=mc", len(lab.nodes))[change % len(lab.nodes)]
        until(lambda: address(old) in members(lab, proxy), "it is a member")
        with lab.switch.entered():
            server = Raw(address(old))
        load.more()
        assert gets(server) > 0
        asked = time.monotonic()
        lab.delete_pod(old)
        until(lambda: address(old) not in members(lab, proxy), "it is no member", every=0.002)
        left = time.monotonic()
        # What was on its way when the proxy changed has been answered by then.
        load.more(2)
        before = gets(server)
        load.more()
        assert gets(server) == before
        gone_in_all.append(left - asked)
        gone.append(left - knowledge.since(lambda serving: address(old) not in serving))

        def newest():
            return [each for each in members(lab, proxy).values() if each["node"] == old["spec"]["nodeName"]]

        [new] = until(newest, "there is another one on its node", every=0.002)
        joined = time.monotonic()
        come_in_all.append(min(map(age, lab.nodes[new["node"]].processes("/usr/bin/memcached"))))
        come.append(joined - knowledge.since(lambda serving: new["address"] in serving))
        load.more()
        with lab.switch.entered(), Raw(new["address"]) as client:
            assert gets(client) > 0
        assert new["pod_uid"] != old["metadata"]["uid"]
    load.stop()
    assert load.wrong == []
    for what, seconds in (
        ("API server knows that a pod ends", gone),
        ("somebody deletes a pod", gone_in_all),
        ("API server knows that a pod serves", come),
        ("server of a pod has started", come_in_all),
    ):
        middle, last = statistics.median(seconds), sorted(seconds)[math.ceil(len(seconds) * 0.99) - 1]
        print(f"{what} → the proxy, {len(seconds)} times: median {middle:.3f} s, p99 {last:.3f} s")
