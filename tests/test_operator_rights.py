"""The operator with the rights that the chart gives it, against a real API server: what it may, what it may
not, and that they suffice."""

import itertools
import json
import os
import shutil
import subprocess

import pytest
import yaml

from harness import PATIENCE, ports, until
from harness.helm import PROGRAM as HELM
from harness.helm import objects
from harness.proxy import ROOT

pytestmark = [
    pytest.mark.either_io,
    pytest.mark.skipif(not HELM.exists(), reason="there is no .cache/helm: scripts/helm.sh builds it"),
    pytest.mark.skipif(not shutil.which("go"), reason="there is no go, which builds the operator"),
]

VALUES = ROOT / "tests/charts/good/operator.yaml"
NAME = "cache-proxima-operator"
GROUP = "/apis/proxima.io/v1alpha1"
DEFINITION = ROOT / "operator/config/crd/proxima.io_smartupdates.yaml"
RIGHTS = "/apis/rbac.authorization.k8s.io/v1"
number = itertools.count()

DENIED = [
    ("get", "", "secrets"),
    ("list", "", "secrets"),
    ("watch", "", "secrets"),
    ("create", "", "secrets"),
    ("get", "", "configmaps"),
    ("create", "", "pods"),
    ("create", "", "pods/exec"),
    ("get", "", "pods/log"),
    ("patch", "", "pods"),
    ("delete", "", "pods"),
    ("deletecollection", "", "pods"),
    ("delete", "", "persistentvolumeclaims"),
    ("get", "", "nodes"),
    ("create", "", "serviceaccounts/token"),
    ("update", "apps", "statefulsets"),
    ("delete", "apps", "statefulsets"),
    ("update", "apps", "statefulsets/scale"),
    ("create", "batch", "jobs"),
    ("delete", "batch", "jobs"),
    ("update", "proxima.io", "smartupdates"),
    ("delete", "proxima.io", "smartupdates"),
    ("update", "pxc.percona.com", "perconaxtradbclusters"),
    ("delete", "pxc.percona.com", "perconaxtradbclusterbackups"),
    ("create", "rbac.authorization.k8s.io", "rolebindings"),
    ("delete", "coordination.k8s.io", "leases"),
]


@pytest.fixture(scope="module")
def program():
    made = subprocess.run(["make", "-C", ROOT / "operator", "build"], capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    return ROOT / "operator/bin/proxima-operator"


class Home:
    """A namespace in which the operator's account has what the chart renders with these values."""

    def __init__(self, plane, folder, *sets):
        self.plane, self.folder = plane, folder
        self.namespace = f"operator-{next(number)}-{os.getpid()}"
        plane.make("/api/v1/namespaces", {"metadata": {"name": self.namespace}})
        status, answer = plane.ask(
            "POST",
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
            yaml.safe_load(DEFINITION.read_text()),
        )
        assert status in (201, 409), answer
        until(lambda: plane.ask("GET", self.updates)[0] == 200, "the API server serves SmartUpdates")
        rendered = objects(VALUES, namespace=self.namespace, sets=sets)
        plane.make(f"/api/v1/namespaces/{self.namespace}/serviceaccounts", rendered["ServiceAccount", NAME])
        for kind in ("Role", "RoleBinding"):
            place = f"{RIGHTS}/namespaces/{self.namespace}/{kind.lower()}s"
            plane.make(place, rendered[kind, NAME])
        self.args = rendered["Deployment", NAME]["spec"]["template"]["spec"]["containers"][0]["args"]

    @property
    def updates(self):
        return f"{GROUP}/namespaces/{self.namespace}/smartupdates"

    def kubeconfig(self):
        """A file with a token of the account and nothing else."""
        place = f"/api/v1/namespaces/{self.namespace}/serviceaccounts/{NAME}/token"
        token = self.plane.make(place, {"spec": {"expirationSeconds": 3600}})["status"]["token"]
        made = yaml.safe_load(self.plane.kubeconfig.read_text())
        made["users"][0]["user"] = {"token": token}
        file = self.folder / "kubeconfig"
        file.write_text(yaml.safe_dump(made))
        return file

    def may(self, verb, group, resource):
        resource, _, subresource = resource.partition("/")
        asked = {"namespace": self.namespace, "verb": verb, "group": group, "resource": resource}
        user = f"system:serviceaccount:{self.namespace}:{NAME}"
        review = {"user": user, "resourceAttributes": {**asked, "subresource": subresource}}
        made = self.plane.make("/apis/authorization.k8s.io/v1/subjectaccessreviews", {"spec": review})
        return made["status"]["allowed"]

    def start(self, program, cleanup):
        """The operator as its Deployment has it, at ports of its own."""
        token = self.folder / "token"
        token.write_text("a token\n")
        args = [each.replace("/etc/proxima/admin/token", str(token)) for each in self.args]
        args += [f"--metrics={ports.address()}", f"--health={ports.address()}"]
        self.log = self.folder / "operator.log"
        with self.log.open("w") as log:
            variables = {**os.environ, "KUBECONFIG": str(self.kubeconfig())}
            running = subprocess.Popen([program, *args], env=variables, stdout=log, stderr=log)
        cleanup.callback(lambda: (running.kill(), running.wait()))

    def make_update(self, name, **spec):
        body = {"statefulSet": name, "proxies": {"service": "proxima", "pool": "db"}, **spec}
        self.plane.make(
            self.updates,
            {
                "apiVersion": "proxima.io/v1alpha1",
                "kind": "SmartUpdate",
                "metadata": {"name": name},
                "spec": body,
            },
        )

    def events(self):
        """The reasons of all events."""
        place = f"/apis/events.k8s.io/v1/namespaces/{self.namespace}/events"
        return {each["reason"] for each in json.loads(self.plane.ask("GET", place)[1])["items"]}

    def condition(self, name, kind):
        """The condition of this type of a SmartUpdate: its status and reason."""
        _, answer = self.plane.ask("GET", f"{self.updates}/{name}")
        found = json.loads(answer).get("status", {}).get("conditions", [])
        return next(((each["status"], each["reason"]) for each in found if each["type"] == kind), None)


@pytest.mark.parametrize("verb, group, resource", DENIED)
def test_what_the_operator_must_not_do_is_denied(home, verb, group, resource):
    assert not home.may(verb, group, resource)


@pytest.fixture(scope="module")
def home(plane, tmp_path_factory):
    return Home(plane, tmp_path_factory.mktemp("operator"))


def test_denials_are_told_from_rights(home):
    assert home.may("create", "", "pods/eviction") and home.may("patch", "apps", "statefulsets")


def test_the_charts_rights_suffice_to_lead_watch_tell_and_write_the_status(plane, program, tmp_path, cleanup):
    sets = ["operator.images.statefulSets=false", "operator.images.kinds=null"]
    home = Home(plane, tmp_path, *sets, "operator.backups.percona=false", "operator.backups.mariadb=false")
    home.start(program, cleanup)
    home.make_update("missing")
    until(
        lambda: home.condition("missing", "Stalled") == ("True", "NoStatefulSet"),
        "the operator says that there is no such set",
        longest=PATIENCE * 2,
    )

    until(lambda: "Stalled" in home.events(), "an event tells of it")
    leases = f"/apis/coordination.k8s.io/v1/namespaces/{home.namespace}/leases/proxima-operator"
    _, lease = plane.ask("GET", leases)
    assert json.loads(lease)["spec"]["holderIdentity"]
    assert "forbidden" not in home.log.read_text()


def stateful_set(name, image):
    labels = {"app": name}
    container = {"name": "mariadb", "image": image, "resources": {"limits": {"memory": "1Gi"}}}
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": name},
        "spec": {
            "serviceName": name,
            "replicas": 3,
            "updateStrategy": {"type": "OnDelete"},
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [container, {"name": "beside", "image": "beside:1"}]},
            },
        },
    }


def test_the_recommended_version_is_set_in_the_one_field_of_a_new_set(plane, program, tmp_path, cleanup):
    home = Home(plane, tmp_path)
    address = ports.address()
    file = ROOT / "operator/examples/mariadb.yaml"
    served = subprocess.Popen([program, "versions", "--file", file, "--listen", str(address)])
    cleanup.callback(lambda: (served.kill(), served.wait()))
    home.start(program, cleanup)
    sets = f"/apis/apps/v1/namespaces/{home.namespace}/statefulsets"
    asked = {
        "apply": "recommended",
        "schedule": "0 4 * * *",
        "versionServiceEndpoint": f"http://{address}",
        "product": "mariadb",
        "operatorVersion": "1.0.0",
        "component": "mariadb",
    }
    for name, report in (("set", False), ("told", True)):
        plane.make(sets, stateful_set(name, "docker.io/library/mariadb:11.8.3"))
        options = {**asked, "report": report}
        home.make_update(name, image={"container": "mariadb"}, upgradeOptions=options)
    expected = {"set": ("True", "ImageSet"), "told": ("True", "Reported")}
    for name, condition in expected.items():
        until(
            lambda name=name, condition=condition: home.condition(name, "UpdateAvailable") == condition,
            f"{name}: {condition}",
            longest=PATIENCE * 2,
        )

    until(lambda: {"ImageSet", "Reported"} <= home.events(), "events tell of both")

    def template(name):
        return json.loads(plane.ask("GET", f"{sets}/{name}")[1])["spec"]["template"]["spec"]["containers"]

    first, beside = template("set")
    assert first["image"] == "docker.io/library/mariadb:11.8.9"
    assert first["resources"] == {"limits": {"memory": "1Gi"}} and beside["image"] == "beside:1"
    assert template("told")[0]["image"] == "docker.io/library/mariadb:11.8.3"
    versions = json.loads(plane.ask("GET", f"{home.updates}/set")[1])["status"]["versions"]
    assert versions["wanted"] == versions["available"] == "11.8.9" and versions["lastCheck"]
    assert "forbidden" not in home.log.read_text()
