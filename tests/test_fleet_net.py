"""The network between the peers of a fleet fails: no read is stale, and at rest all copies are equal.

Each node is in a network namespace of its own. The tests are skipped where none may be made.
"""

import time
from contextlib import ExitStack
from functools import partial

import pytest

from harness import until
from harness.fleet import Fleet
from harness.netns import Network, forbidden
from harness.racers import check_promise

pytestmark = [pytest.mark.either_io, pytest.mark.alone, pytest.mark.timeout(300)]

SHORT = {"fleet": {"lease": "1s", "suspect": "300ms", "tls": "none"}}
"""The default times. The peers' addresses are not those of the loopback interface."""

AFTER = 2
"""Seconds that a fault goes on after its effect was seen: data gather in the sockets."""


@pytest.fixture(scope="module")
def allowed():
    reason = forbidden()
    if reason:
        pytest.skip(f"network namespaces cannot be made here: {reason}")


@pytest.fixture
def network(allowed, folder, cleanup):
    # The folder is there before `cleanup` is, so that it is still there when the proxies end.
    network = Network(3)
    cleanup.callback(network.remove)
    return network


@pytest.fixture
def nodes(network, io, folder, cleanup):
    return Fleet(3, io, folder, cleanup, places=network.places, **SHORT)


@pytest.fixture
def keeps_promise(nodes, network, tmp_path, cleanup):
    """Checks what clients see while these faults happen, and what is left."""
    return partial(check_promise, nodes, tmp_path, cleanup, before=network.switch.command())


def leader_of(nodes):
    return next(node for node in nodes if node.status()["is_leader"])


def others_than(node, nodes):
    return [other for other in nodes if other is not node]


def has_no_lease(node):
    return node.status()["lease_seconds"] == 0


def check_isolated(node):
    """It answers misses and refuses writes."""
    with node.raw() as client:
        assert client.get("kept") is None
        refusal = client.ask(b"set kept 0 0 5\r\nwrong\r\n")
        assert refusal.startswith(b"SERVER_ERROR this proxy has no lease"), refusal


def check_serving(nodes, value):
    """What is written at one is read at the others. A cache may miss, but no other value is ever read."""

    def is_read_everywhere():
        with ExitStack() as open_clients:
            clients = [open_clients.enter_context(node.raw()) for node in nodes]
            request = f"set kept 0 0 {len(value)}\r\n{value}\r\n".encode()
            if clients[0].ask(request) != b"STORED\r\n":
                return False
            found = [client.get("kept") for client in clients]
        assert set(found) <= {None, value.encode()}, f"{found} after {value} was written"
        return None not in found

    until(is_read_everywhere, f"{value} is written at one peer and read at all")


def isolate(node, nodes):
    """Cuts a node off, checks what both sides answer, and heals."""
    rest = others_than(node, nodes)
    check_serving([*rest, node], "before")
    node.place.plug("down")
    until(lambda: has_no_lease(node), f"{node.name} has lost its lease")
    check_isolated(node)
    nodes.until_view([other.name for other in rest])
    check_serving(rest, "meanwhile")
    time.sleep(AFTER)
    check_isolated(node)
    node.place.plug("up")
    nodes.until_settled()
    check_serving([node, *rest], "after")


@pytest.mark.parametrize("which", ["follower", "leader"])
def test_peer_cut_off_misses_and_refuses_while_the_others_go_on(nodes, keeps_promise, which):
    leader = leader_of(nodes)
    node = leader if which == "leader" else others_than(leader, nodes)[0]
    keeps_promise([partial(isolate, node, nodes)])
