"""The chart in a cluster: somebody deletes what the peers and their clients are found by."""

import pytest

from harness import SOAK, until
from harness.lab.release import SPACE, read, stored
from harness.lab.witness import Witness

# One process has the lab.
pytestmark = [pytest.mark.alone, pytest.mark.timeout(300)]

PLACE = f"--namespace={SPACE}"


def endpoints(lab, service):
    """The uids of the slices of a Service, and how many endpoints are in them."""
    path = f"/apis/discovery.k8s.io/v1/namespaces/{SPACE}/endpointslices"
    found = lab.get(f"{path}?labelSelector=kubernetes.io/service-name={service}")["items"]
    return {each["metadata"]["uid"] for each in found}, sum(len(each["endpoints"] or []) for each in found)


def has_restarted(pod):
    return any(each["restartCount"] for each in pod["status"]["containerStatuses"])


@pytest.mark.parametrize("service", ["cache-proxima", "cache-proxima-fleet"])
def test_slices_that_are_deleted_are_no_error_and_no_stale_read(lab, release, service):
    release.wait_until_coherent()
    before, _ = endpoints(lab, service)
    with Witness(release, sorted(lab.nodes)) as witness:
        selector = f"--selector=kubernetes.io/service-name={service}"
        lab.kubectl("delete", PLACE, "endpointslices", selector)
        # A controller that was started since they were made does not miss them before the Service changes.
        lab.kubectl("label", PLACE, "--overwrite", "service", service, "slices=deleted")

        def others():
            uids, count = endpoints(lab, service)
            return not uids & before and count == len(lab.nodes)

        until(others, "there are other slices", every=0.1)
        witness.more()
    print(service, witness)
    assert witness.wrong == []
    assert witness.answered() == []
    release.wait_until_coherent()


@pytest.mark.skipif(not SOAK, reason="another pod is part of `make soak`")
def test_peers_go_on_without_their_service_and_one_that_comes_meanwhile_waits_for_it(lab, release):
    lab.at_least(3)
    release.wait_until_coherent()
    with Witness(release, sorted(lab.nodes)) as witness:
        lab.kubectl("delete", PLACE, "service", "cache-proxima-fleet")
        try:
            until(lambda: endpoints(lab, "cache-proxima-fleet")[1] == 0, "there are no slices", every=0.1)
            witness.more()
            assert witness.errors == []
            pod = release.pod(max(lab.nodes))
            lab.delete_pod(pod)
            until(lambda: release.has_other(pod), "there is another pod", every=0.1)
            # A peer that is not listed gives up after half a minute, and its container is started again.
            until(lambda: has_restarted(release.pod(max(lab.nodes))), "it gives up", every=0.5, longest=100)
            witness.more()
        finally:
            release.install()
        release.wait_until_coherent()
        witness.more()
    print(witness)
    assert witness.wrong == []
    assert witness.errors == []


@pytest.mark.skipif(not SOAK, reason="an upgrade is part of `make soak`")
def test_clients_that_are_connected_go_on_without_the_service_and_an_upgrade_makes_it_anew(lab, release):
    release.wait_until_coherent()
    [node, *_] = sorted(lab.nodes)
    with release.client(node) as client:
        assert stored(client, b"before", b"1")
        lab.kubectl("delete", PLACE, "service", "cache-proxima")
        until(lambda: endpoints(lab, "cache-proxima")[1] == 0, "there are no slices", every=0.1)
        assert read(client, b"before") == b"1"
        release.install()
        release.wait_until_coherent()
        assert read(client, b"before") == b"1"
