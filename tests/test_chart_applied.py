"""A real API server takes what the chart renders, and lets its pods in where the notes say so."""

import json

import pytest

from harness.helm import GOOD, OTHERS, case, objects
from harness.helm import PROGRAM as HELM

pytestmark = [
    pytest.mark.skipif(not HELM.exists(), reason="there is no .cache/helm: scripts/helm.sh builds it"),
]

PLURALS = {"NetworkPolicy": "networkpolicies"}


@pytest.fixture(scope="module", autouse=True)
def namespaces(plane):
    for name in ("web", "restricted", "baseline", "privileged"):
        labels = {} if name == "web" else {"pod-security.kubernetes.io/enforce": name}
        plane.make("/api/v1/namespaces", {"metadata": {"name": name, "labels": labels}})
        # No controller is here that would.
        plane.make(f"/api/v1/namespaces/{name}/serviceaccounts", {"metadata": {"name": "default"}})


def tried(plane, each, namespace="web"):
    """What the API server says of an object that it is to make, which it does not."""
    group = each["apiVersion"]
    plural = PLURALS.get(each["kind"], each["kind"].lower() + "s")
    place = f"{'/apis' if '/' in group else '/api'}/{group}/namespaces/{namespace}/{plural}"
    return plane.ask("POST", f"{place}?dryRun=All&fieldValidation=Strict", each)


@pytest.mark.parametrize("values", GOOD, ids=lambda file: file.stem)
def test_the_api_server_takes_every_object(plane, values):
    for (kind, name), each in objects(values, version="1.37").items():
        if kind not in OTHERS:
            status, answer = tried(plane, each)
            assert status == 201, f"{kind} {name}: {answer}"


def test_the_api_server_refuses_a_field_that_it_does_not_know(plane):
    service = objects(case("local"))["Service", "cache-proxima"]
    service["spec"]["internalPolicy"] = "Local"
    status, answer = tried(plane, service)
    assert status == 400 and b"internalPolicy" in answer


def admitted(plane, values, namespace):
    """The names of objects whose pods this namespace lets in, and of those whose pods it does not."""
    found = {True: set(), False: set()}
    for (kind, name), template in objects(case(values)).pods().items():
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"generateName": "pod-"},
            "spec": template["spec"],
        }
        pod["spec"].setdefault("restartPolicy", "Always")
        # Accounts are not made here.
        pod["spec"].pop("serviceAccountName", None)
        status, answer = tried(plane, pod, namespace)
        assert status == 201 or (status == 403 and "PodSecurity" in json.loads(answer)["message"]), answer
        found[status == 201].add((kind, name))
    return found[True], found[False]


def test_a_namespace_that_is_restricted_lets_in_pods_with_nothing_of_the_node(plane):
    let_in, refused = admitted(plane, "empty-dir", "restricted")
    assert len(let_in) == 3 and not refused
    let_in, refused = admitted(plane, "redis", "restricted")
    assert let_in and not refused


@pytest.mark.parametrize("values", ["defaults", "host-port", "host-network", "agent"])
def test_a_namespace_must_be_privileged_for_pods_with_something_of_the_node(plane, values):
    _, refused = admitted(plane, values, "baseline")
    assert ("DaemonSet", "cache-proxima") in refused and not [
        kind for kind, _ in refused if kind != "DaemonSet"
    ]
    _, refused = admitted(plane, values, "privileged")
    assert not refused
