"""The chart in a cluster: its caches go on without the API server."""

import os
import signal

import pytest

from harness import until
from harness.lab.witness import Witness

# One process has the lab.
pytestmark = [pytest.mark.alone, pytest.mark.timeout(300)]


ENDED = ("ConnectionRefusedError", "ConnectionResetError", "BrokenPipeError")
"""What a client sees of a proxy that is not there. Nobody answers with an error or does not answer."""


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
    assert [each for each in witness.errors if not each[1].startswith(ENDED)] == []


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
