"""The chart in a cluster: one command, and every node has a coherent cache."""

import shutil

import pytest

from harness import SOAK
from harness.lab.release import SPACE

# One process has the lab.
pytestmark = [pytest.mark.alone, pytest.mark.timeout(300)]


def fleets(release):
    """The fleets that peers say are theirs."""
    return {status["fleet"] for status in release.statuses()}


def test_every_node_reads_what_another_one_wrote(lab, release):
    statuses = release.statuses()
    assert {status["fleet"] for status in statuses} == {release.fleet()}
    assert all([peer["name"] for peer in status["peers"]] == sorted(lab.nodes) for status in statuses)


def test_the_key_of_the_authority_is_in_no_pod(lab, release):
    [pod, *_] = release.ready(len(lab.nodes))
    mounted = [volume for volume in pod["spec"]["volumes"] if "secret" in volume]
    keys = sorted(item["key"] for volume in mounted for item in volume["secret"]["items"])
    assert keys == ["ca.crt", "tls.crt", "tls.key", "token"]


@pytest.mark.skipif(not SOAK, reason="a second installation is part of `make soak`")
def test_uninstalled_and_installed_again_it_is_the_same_fleet(release):
    before = release.fleet()
    release.uninstall()
    release.install()
    release.wait_until_coherent()
    assert fleets(release) == {before} == {release.fleet()}


@pytest.mark.skipif(not SOAK, reason="a second installation is part of `make soak`")
def test_a_fleet_whose_folders_were_deleted_is_followed_by_one_new_fleet(lab, release):
    before = release.fleet()
    release.uninstall()
    for node in lab.nodes.values():
        shutil.rmtree(node.folder / "lib/proxima" / SPACE)
    release.install()
    release.wait_until_coherent()
    assert fleets(release) == {release.fleet()} != {before}
