"""The chart in a cluster: its caches go on without the API server."""

import itertools
import os
import signal
import time

import pytest

from harness import SOAK, until
from harness.lab.witness import OF_SERVER, Witness

# One process has the lab.
pytestmark = [pytest.mark.alone, pytest.mark.timeout(300)]


def kill(lab, release, node):
    """The proxy of a node is killed, and its kubelet starts another one."""

    def proxies():
        return lab.nodes[node].processes("/usr/local/bin/proxima")

    with Witness(release, sorted(lab.nodes)) as witness:
        [before] = proxies()
        os.kill(before, signal.SIGKILL)
        until(lambda: set(proxies()) - {before}, "the container is started again", every=0.1)
        until(release.coherent, "what is written on one node is read on all", every=0.1)
        witness.more()
    assert witness.wrong == []
    assert witness.answered() == []


def test_a_proxy_that_is_killed_without_the_api_server_is_as_with_it(lab, release):
    release.wait_until_coherent()
    # A kubelet waits before it starts a container for the second time, so that another node has its turn.
    first, second, *_ = sorted(lab.nodes)
    kill(lab, release, first)
    release.wait_until_coherent()
    with lab.api_away():
        kill(lab, release, second)
    lab.wait_for_nodes()
    release.wait_until_coherent()


def restarts(lab, release, seconds):
    """Proxies and their servers are killed in turn, and their kubelets start them again."""
    programs = itertools.cycle(["/usr/local/bin/proxima", "/usr/bin/memcached"])
    nodes, end = itertools.cycle(sorted(lab.nodes)), time.monotonic() + seconds
    with Witness(release, sorted(lab.nodes)) as witness:
        while time.monotonic() < end:
            node, program = lab.nodes[next(nodes)], next(programs)
            [before] = node.processes(program)
            os.kill(before, signal.SIGKILL)
            until(lambda: set(node.processes(program)) - {before}, "it is started again", every=0.1)
            until(release.coherent, "what is written on one node is read on all", every=0.1)
            witness.more()
    assert witness.wrong == []
    return witness


@pytest.mark.skipif(not SOAK, reason="minutes without the API server are part of `make soak`")
@pytest.mark.timeout(3 * 3600)
@pytest.mark.parametrize("seconds", [60, 3600])
def test_containers_that_restart_without_the_api_server_are_no_more_errors_than_with_it(
    lab, release, seconds
):
    lab.at_least(3)
    release.wait_until_coherent()
    beside = restarts(lab, release, 60)
    release.wait_until_coherent()
    with lab.api_away():
        alone = restarts(lab, release, seconds)
    lab.wait_for_nodes()
    release.wait_until_coherent()
    print(f"with the API server for 60 s: {beside}\nwithout it for {seconds} s: {alone}")
    assert beside.answered(but=OF_SERVER) == []
    assert alone.answered(but=OF_SERVER) == []
