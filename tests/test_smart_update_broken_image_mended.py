"""A roll to an image that does not exist stops at its first pod, and the next template mends it."""

import pytest

from harness import until
from harness.lab.galera import PODS, is_of

# One process has the lab.
pytestmark = [pytest.mark.alone, pytest.mark.timeout(300)]


def test_the_pod_without_an_image_is_the_only_one_and_the_first_to_be_mended(
    lab, galera_pods, galera_proxies, smart_update
):
    before = {name: pod["metadata"]["uid"] for name, pod in galera_pods.pods().items()}
    right = galera_pods.image()
    galera_pods.template_changed(image="localhost/mariadb:none")
    said = smart_update.wait_for("Stalled")
    assert "Image" in said["message"] or "image" in said["message"]
    now = {name: pod["metadata"]["uid"] for name, pod in galera_pods.pods().items()}
    readers = [name for name in reversed(PODS) if name != galera_proxies.writer()]
    assert [name for name in PODS if now[name] != before[name]] == readers[:1]

    revision = galera_pods.template_changed(image=right)
    until(lambda: galera_pods.is_rolled(revision), "the pod is mended", every=0.1)
    assert all(is_of(pod, revision) for pod in galera_pods.ready())
    smart_update.wait_for("Ready")
    after = {name: pod["metadata"]["uid"] for name, pod in galera_pods.pods().items()}
    assert [name for name in PODS if after[name] != before[name]] == readers[:1]
