"""The chart in a cluster: the disk below the folder of a peer is full."""

import os
import signal

import pytest

from harness import SOAK, until
from harness.lab.release import SPACE
from harness.lab.witness import Witness

# One process has the lab.
pytestmark = [pytest.mark.alone, pytest.mark.timeout(600)]

FOLDER = "/var/lib/proxima"
SMALL = "/run/small"
PROGRAM = "/usr/local/bin/proxima"


@pytest.fixture
def full(lab, release):
    """A node whose disk below the folder is a small one. Nothing is lost when its folder moves."""
    lab.at_least(4)
    release.wait_until_coherent()
    node = "n1"

    def without_pod(*steps):
        lab.kubectl("label", "node", node, "cache=no")
        release.gone(node)
        lab.nodes[node].run("sh", "-c", " && ".join(steps))
        lab.kubectl("label", "node", node, "cache-")
        release.wait_until_coherent()

    without_pod(
        f"mkdir {SMALL}",
        f"mount -t tmpfs -o size=512k small {SMALL}",
        f"cp -a {FOLDER}/. {SMALL}",
        f"mount --bind {SMALL} {FOLDER}",
    )
    yield node
    without_pod(f"umount {FOLDER}", f"cp -a {SMALL}/. {FOLDER}", f"umount {SMALL}")


def restarts(pod):
    """How often the container of a pod was started again."""
    return max(each["restartCount"] for each in pod["status"]["containerStatuses"])


def kill(lab, node):
    [process] = lab.nodes[node].processes(PROGRAM)
    os.kill(process, signal.SIGKILL)
    until(lambda: set(lab.nodes[node].processes(PROGRAM)) - {process}, "it is started again", every=0.1)


@pytest.mark.skipif(not SOAK, reason="votes move after half a minute, so that it is part of `make soak`")
def test_a_peer_whose_disk_is_full_serves_and_votes_no_more_until_there_is_room(lab, release, full):
    other = max(lab.nodes)
    with Witness(release, sorted(lab.nodes)) as witness:
        lab.nodes[full].run("sh", "-c", f"head -c 1m /dev/zero >{FOLDER}/filler || true")
        witness.more()

        def says_so():
            # Each removal and each return is a record, for which the disk has no room for long.
            kill(lab, other)
            release.wait_until_coherent()
            pod = release.pod(full)["metadata"]["name"]
            log = lab.kubectl("logs", f"--namespace={SPACE}", pod, "--container=proxima")
            return "votes no more; mend its directory" in log

        until(says_so, "it says so", longest=150)
        print("votes no more", witness)
        # It does not start before there is room, and its clients are served by other nodes.
        [process] = lab.nodes[full].processes(PROGRAM)
        os.kill(process, signal.SIGKILL)
        until(lambda: restarts(release.pod(full)) > 2, "it is started in vain", every=0.2)
        witness.more()
        lab.nodes[full].run("rm", f"{FOLDER}/filler")
        release.wait_until_coherent()
        witness.more()
    print(witness)
    assert witness.wrong == []
    assert witness.answered() == []
