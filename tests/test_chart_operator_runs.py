"""The chart's operator in a cluster: it runs as the chart has it, asks proxies with their token, gets
versions by a Service, and moves no pod when it is upgraded."""

import json
import shutil
import tarfile

import pytest
import yaml

from harness import PATIENCE, image, until
from harness.helm import CHART
from harness.helm import PROGRAM as HELM
from harness.lab.release import image as named
from harness.proxy import ROOT

# One process has the lab.
pytestmark = [
    pytest.mark.alone,
    pytest.mark.timeout(300),
    pytest.mark.skipif(not HELM.exists(), reason="there is no .cache/helm: scripts/helm.sh builds it"),
    pytest.mark.skipif(not shutil.which("go"), reason="there is no go, which builds the operator"),
]

SPACE = "rolls"
UPDATES = f"/apis/proxima.io/v1alpha1/namespaces/{SPACE}/smartupdates"


class Operator:
    """The image of `scripts/image.sh --operator`."""

    def __init__(self, folder):
        folder.mkdir(parents=True, exist_ok=True)
        self.file = image.build(folder / "operator.tar", "--operator", program=None)
        with tarfile.open(self.file) as tar:
            [described] = json.load(tar.extractfile("index.json"))["manifests"]
        self.reference = described["annotations"]["io.containerd.image.name"]


def memcacheds(lab, name, replicas):
    """A StatefulSet that nobody but the operator updates, and its Service."""
    labels = {"app": name}
    place = {"name": name, "namespace": SPACE}
    container = {
        "name": "memcached",
        "image": lab.image("memcached"),
        "imagePullPolicy": "Never",
        "ports": [{"name": "memcached", "containerPort": 11211}],
    }
    spec = {
        "serviceName": name,
        "replicas": replicas,
        "podManagementPolicy": "Parallel",
        "updateStrategy": {"type": "OnDelete"},
        "selector": {"matchLabels": labels},
        "template": {
            "metadata": {"labels": labels},
            "spec": {"containers": [container], "terminationGracePeriodSeconds": 1},
        },
    }
    ports = [{"name": "memcached", "port": 11211}]
    service = {"clusterIP": "None", "selector": labels, "ports": ports}
    return [
        {"apiVersion": "v1", "kind": "Service", "metadata": place, "spec": service},
        {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": place, "spec": spec},
    ]


def update(name, **spec):
    proxies = {"service": "db-proxima-db-admin", "pool": "db"}
    return {
        "apiVersion": "proxima.io/v1alpha1",
        "kind": "SmartUpdate",
        "metadata": {"name": name, "namespace": SPACE},
        "spec": {"statefulSet": name, "proxies": proxies, **spec},
    }


def reason(lab, name, kind):
    """The reason of the condition of this type of a SmartUpdate."""
    found = lab.get(f"{UPDATES}/{name}").get("status", {}).get("conditions", [])
    return next((each["reason"] for each in found if each["type"] == kind), None)


@pytest.fixture
def installed(lab, cleanup):
    """Installs the chart with operator, versions and a proxy before three servers, or upgrades it."""
    registry, _, rest = lab._image("operator", Operator).partition("/")
    repository, _, tag = rest.rpartition(":")
    of_operator = {"registry": registry, "repository": repository, "tag": tag, "pullPolicy": "Never"}
    lab.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SPACE}})
    file = lab.switch.folder / "operator.yaml"
    products = yaml.safe_load((ROOT / "operator/examples/mariadb.yaml").read_text())["versions"]
    listener = {"address": "0.0.0.0:11211", "route": "db"}
    values = {
        "image": named(lab, "proxima"),
        "cache": {"mode": "none"},
        "operator": {"enabled": True, "image": of_operator},
        "versions": {"enabled": True, "products": products},
        "proxies": {
            "db": {
                "replicas": 1,
                "config": {"listeners": [listener], "pools": {"db": {"kubernetes": "db:11211"}}},
            }
        },
    }

    def install(**of_pods):
        values["operator"]["pod"] = {"annotations": of_pods}
        file.write_text(yaml.safe_dump(values))
        client = [f"--kubeconfig={lab.plane.kubeconfig}", f"--namespace={SPACE}"]
        lab.switch.run(HELM, *client, "upgrade", "--install", "db", CHART, f"--values={file}")

    def gone():
        client = [f"--kubeconfig={lab.plane.kubeconfig}", f"--namespace={SPACE}"]
        lab.switch.run(HELM, *client, "uninstall", "db", "--ignore-not-found")
        lab.delete({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SPACE}})

    cleanup.callback(gone)
    return install


def test_the_operator_runs_asks_and_moves_no_pod_when_it_is_upgraded(lab, installed):
    lab.apply(memcacheds(lab, "db", 3) + memcacheds(lab, "empty", 0))
    installed(version="1")
    parts = ("operator", "versions", "db")
    [operator, *_] = [
        pod for part in parts for pod in lab.ready(f"app.kubernetes.io/component={part}", 1, SPACE)
    ]
    until(lambda: lab.plane.ask("GET", UPDATES)[0] == 200, "the API server serves SmartUpdates")
    options = {
        "apply": "11.8-recommended",
        "schedule": "0 4 * * *",
        "versionServiceEndpoint": f"http://db-proxima-versions.{SPACE}:11000",
        "product": "mariadb",
        "operatorVersion": "1.0.0",
        "component": "mariadb",
        "report": True,
    }
    lab.apply([update("db"), update("empty", image={"container": "memcached"}, upgradeOptions=options)])
    # Servers of memcached have no writer. A proxy that refuses the token would say nothing of its pool.
    until(lambda: reason(lab, "db", "Ready") == "NoWriter", "a proxy has told of its pool", longest=PATIENCE)
    until(lambda: reason(lab, "empty", "UpdateAvailable") == "Reported", "a version was reported")
    assert lab.get(f"{UPDATES}/empty")["status"]["versions"]["available"] == "11.8.9"

    def servers():
        return {pod["metadata"]["uid"] for pod in lab.ready("app=db", 3, SPACE)}

    before = servers()
    installed(version="2")

    def replaced():
        pods = lab.pods("app.kubernetes.io/component=operator", SPACE)
        return [pod for pod in pods if pod["metadata"]["uid"] != operator["metadata"]["uid"]] == pods

    until(replaced, "the operator's pod was replaced")
    lab.ready("app.kubernetes.io/component=operator", 1, SPACE)
    lab.apply(update("db", paused=True))
    seen = lab.get(f"{UPDATES}/db")["metadata"]["generation"]
    until(
        lambda: lab.get(f"{UPDATES}/db")["status"]["observedGeneration"] == seen,
        "the new operator has taken a turn",
        longest=PATIENCE * 2,
    )
    assert servers() == before
