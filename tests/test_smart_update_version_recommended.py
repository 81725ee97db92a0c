"""The image of the version that a service recommends comes to the set, and is rolled."""

import contextlib

import pytest

from harness import until
from harness.lab.galera import NAME, SPACE
from harness.lab.images import next_version
from harness.lab.orders import Orders

# One process has the lab.
pytestmark = [pytest.mark.alone, pytest.mark.timeout(300)]

MANAGER = "proxima-smart-update"
SET = f"/apis/apps/v1/namespaces/{SPACE}/statefulsets/{NAME}"

OPTIONS = {
    # It is checked when `apply` changes, and not before a February 29.
    "schedule": "0 4 29 2 *",
    "product": "mariadb",
    "operatorVersion": "1.0.0",
    "component": "mariadb",
}


def product(running, image, newer, newer_image):
    """What the service tells: another series is recommended as well, which no update may lead to."""
    matrix = {
        running: {"imagePath": image, "status": "available"},
        newer: {"imagePath": newer_image, "status": "recommended"},
        "99.1.1": {"imagePath": "localhost/mariadb:none", "status": "recommended"},
    }
    return {"product": "mariadb", "operator": "1.0.0", "matrix": {"mariadb": matrix}}


def image_now(lab):
    [container] = lab.get(SET)["spec"]["template"]["spec"]["containers"]
    return container["image"]


def owned(lab):
    """The fields of the set that the operator has written."""
    managed = [each for each in lab.get(SET)["metadata"]["managedFields"] if each["manager"] == MANAGER]
    assert {each["operation"] for each in managed} == {"Apply"}
    return {name for each in managed for name in _leaves(each["fieldsV1"])}


def _leaves(fields, path=""):
    for name, below in fields.items():
        yield from _leaves(below, f"{path}/{name}") if below else [f"{path}/{name}"]


@contextlib.contextmanager
def asking(lab, galera_pods, galera_proxies, smart_update, products):
    """The chart's service of versions, and an operator that may set the image. Whatever image the set has at
    the end stays."""
    operator = galera_proxies.values["operator"]
    rights = {**operator, "images": {"statefulSets": True}}
    galera_proxies.install(operator=rights, versions={"enabled": True, "products": products})
    try:
        # By the address of its pod, as the ones of proxies: a Service's is not reached on all nodes at once.
        [pod] = lab.ready("app.kubernetes.io/component=versions", 1, SPACE)
        yield f"http://{pod['status']['podIP']}:11000"
    finally:
        lab.apply(smart_update.example())
        galera_pods.template_changed(image=image_now(lab))
        galera_proxies.install(operator=operator, versions={"enabled": False})


def test_the_set_gets_the_image_of_the_recommended_version_and_its_servers_run_that(
    lab, galera_pods, galera_proxies, smart_update
):
    image, newer, newer_image = galera_pods.image(), next_version(), lab.image("mariadb-next")
    running = smart_update.status()["versions"]["running"].split("-")[0]
    assert running != newer

    def reason():
        return smart_update.condition("UpdateAvailable").get("reason")

    products = [product(running, image, newer, newer_image)]
    with asking(lab, galera_pods, galera_proxies, smart_update, products) as endpoint:
        for apply in ("never", "recommended"):
            before = reason()
            options = {**OPTIONS, "versionServiceEndpoint": endpoint, "apply": apply}
            lab.apply(smart_update.example(image={"container": "mariadb"}, upgradeOptions=options))
            until(lambda before=before: reason() not in (None, before), f"{apply} has come to something")
        assert reason() == "ImageSet", smart_update.condition("UpdateAvailable")
        assert image_now(lab) == newer_image
        container = '/f:spec/f:template/f:spec/f:containers/k:{"name":"mariadb"}'
        assert owned(lab) == {f"{container}/{field}" for field in (".", "f:image", "f:name")}
        revision = galera_pods.status()["updateRevision"]
        smart_update.wait_for_roll(revision)
        assert galera_pods.is_rolled(revision)
        told = [
            member["version"] for each in Orders(lab, galera_proxies).told() for member in each["members"]
        ]
        assert {version.split("-")[0] for version in told} == {newer}
        until(lambda: reason() == "NothingNewer", "it is known that it runs", every=0.05)
