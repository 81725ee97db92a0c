"""The operator's account may do what it needs, and nothing else, whatever the program would ask for."""

import json
import pathlib

import pytest

from harness.lab.galera import NAME, SPACE
from harness.lab.smart_update import PROGRAM

# One process has the lab.
pytestmark = [pytest.mark.alone, pytest.mark.timeout(300)]

CORE, APPS = f"/api/v1/namespaces/{SPACE}", f"/apis/apps/v1/namespaces/{SPACE}"
UPDATES = f"/apis/proxima.io/v1alpha1/namespaces/{SPACE}/smartupdates"
LEASES = f"/apis/coordination.k8s.io/v1/namespaces/{SPACE}/leases"
JOBS = f"/apis/batch/v1/namespaces/{SPACE}/jobs"
SLICES = f"/apis/discovery.k8s.io/v1/namespaces/{SPACE}/endpointslices"
EVENTS = f"/apis/events.k8s.io/v1/namespaces/{SPACE}/events"
BINDINGS = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{SPACE}/rolebindings"
BUDGET = f"/apis/policy/v1/namespaces/{SPACE}/poddisruptionbudgets/{NAME}"

DENIED = [
    ("GET", f"{CORE}/secrets"),
    ("GET", f"{CORE}/secrets/token"),
    ("GET", f"{CORE}/secrets?watch=true"),
    ("GET", f"{CORE}/configmaps"),
    ("POST", f"{CORE}/pods/db-0/exec?command=true&stdout=true"),
    ("GET", f"{CORE}/pods/db-0/log"),
    ("POST", f"{CORE}/pods/db-0/portforward?ports=3306"),
    ("POST", f"{CORE}/pods"),
    ("PATCH", f"{CORE}/pods/db-0"),
    ("DELETE", f"{CORE}/pods/db-0"),
    ("DELETE", f"{CORE}/pods"),
    ("PATCH", f"{APPS}/statefulsets/db"),
    ("PUT", f"{APPS}/statefulsets/db"),
    ("DELETE", f"{APPS}/statefulsets/db"),
    ("PATCH", f"{APPS}/statefulsets/db/scale"),
    ("PATCH", f"{UPDATES}/db"),
    ("DELETE", f"{UPDATES}/db"),
    ("POST", JOBS),
    ("DELETE", f"{JOBS}/backup"),
    ("PATCH", BUDGET),
    ("GET", f"{LEASES}/another"),
    ("DELETE", f"{LEASES}/proxima-operator"),
    ("GET", "/api/v1/nodes"),
    ("PATCH", "/api/v1/nodes/n1"),
    ("POST", BINDINGS),
    ("DELETE", f"{CORE}/persistentvolumeclaims/data"),
    ("POST", f"{CORE}/serviceaccounts/proxima-operator/token"),
    ("GET", "/api/v1/pods"),
    ("GET", "/api/v1/namespaces/default/pods"),
    ("POST", "/api/v1/namespaces/kube-system/pods/any/eviction"),
]

KINDS = {"PATCH": "application/merge-patch+json"}


def token(lab):
    """The token with which the operator asks the API server, from the place where it reads it."""
    [process] = [each for node in lab.nodes.values() for each in node.processes(PROGRAM)]
    place = "var/run/secrets/kubernetes.io/serviceaccount/token"
    return pathlib.Path(f"/proc/{process}/root/{place}").read_text()


def test_what_the_operator_does_not_need_is_denied_to_its_account(lab, galera_pods, smart_update):
    account, before = token(lab), galera_pods.pods()

    def ask(method, path, body=None):
        """Its status; nothing is changed by it, even where it is allowed."""
        dry = f"{path}{'&' if '?' in path else '?'}dryRun=All" if method != "GET" else path
        body = {} if body is None and method != "GET" else body
        status, answer = lab.plane.ask(method, dry, body, account, KINDS.get(method, "application/json"))
        return status, answer

    allowed = [(way, ask(*way)) for way in DENIED]
    assert [(way, status) for way, (status, _) in allowed if status != 403] == []
    assert all(b"proxima-operator" in answer and b"cannot" in answer for _, (_, answer) in allowed)

    lease = json.loads(ask("GET", f"{LEASES}/proxima-operator")[1])
    update = json.loads(ask("GET", f"{UPDATES}/{NAME}")[1])
    eviction = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": "db-0", "namespace": SPACE},
    }
    # The operator may have renewed its Lease meanwhile: a conflict is no denial.
    needed = [
        ("GET", f"{UPDATES}"),
        ("PATCH", f"{UPDATES}/{NAME}/status", {"status": update["status"]}),
        ("GET", f"{APPS}/statefulsets"),
        ("GET", f"{CORE}/pods"),
        ("POST", f"{CORE}/pods/db-0/eviction", {**eviction, "deleteOptions": {"dryRun": ["All"]}}),
        ("GET", SLICES),
        ("GET", JOBS),
        ("GET", f"{LEASES}/proxima-operator"),
        ("PUT", f"{LEASES}/proxima-operator", lease),
    ]
    found = [(method, path, ask(method, path, *body)) for method, path, *body in needed]
    assert [(way, answer) for *way, (status, answer) in found if status not in (200, 201, 409)] == []
    uids = {name: pod["metadata"]["uid"] for name, pod in galera_pods.pods().items()}
    assert uids == {name: pod["metadata"]["uid"] for name, pod in before.items()}
