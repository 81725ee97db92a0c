"""Peers of a fleet and their servers freeze, die and come back: no read is stale, and at rest all copies are
equal."""

import random
import time
from functools import partial

import pytest

from harness import SOAK, until
from harness.fleet import Fleet
from harness.racers import check_promise

pytestmark = [pytest.mark.either_io, pytest.mark.heavy, pytest.mark.verdict]

SHORT = {"fleet": {"lease": "1s", "suspect": "300ms"}, "unix": False}
"""The default times. Over TCP a server says which connections are gone; otherwise repairs wait for 10 s."""


def freeze_server(node, seconds):
    node.server.freeze()
    time.sleep(seconds)
    node.server.thaw()


def freeze_proxy(node, seconds):
    node.freeze()
    time.sleep(seconds)
    node.thaw()


def freeze_both(node, seconds):
    node.freeze()
    node.server.freeze()
    time.sleep(seconds)
    node.server.thaw()
    node.thaw()


def kill_proxy(node, seconds):
    node.proxy.kill()
    time.sleep(seconds)
    node.start()


def kill_server(node, seconds):
    node.server.kill()
    time.sleep(seconds)
    node.server.start()


def restart_proxy(node, seconds):
    node.stop_softly()
    time.sleep(seconds / 4)
    node.start()


FAULTS = [freeze_server, freeze_proxy, freeze_both, kill_proxy, kill_server, restart_proxy]


@pytest.mark.timeout(300)
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_fault_of_one_node_leaves_no_stale_read_and_equal_copies(io, folder, tmp_path, cleanup, fault):
    nodes = Fleet(3, io, folder, cleanup, **SHORT)
    leader = next(node for node in nodes if node.status()["is_leader"])
    other = next(node for node in nodes if node is not leader)
    check_promise(nodes, tmp_path, cleanup, [partial(fault, other, 2), partial(fault, leader, 2)])


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", range(20 if SOAK else 1))
def test_random_faults_leave_no_stale_read_and_equal_copies(io, folder, tmp_path, cleanup, seed):
    chance = random.Random(seed)
    nodes = Fleet(3, io, folder, cleanup, **SHORT)
    faults = [
        partial(chance.choice(FAULTS), chance.choice(nodes.nodes), chance.choice([0.2, 0.5, 1, 2, 3]))
        for _ in range(60 if SOAK else 5)
    ]
    check_promise(nodes, tmp_path, cleanup, faults)


def test_frozen_peer_stops_writes_for_no_longer_than_its_lease_and_the_others_read_on(io, folder, cleanup):
    nodes = Fleet(3, io, folder, cleanup, **SHORT)
    frozen = next(node for node in nodes if not node.status()["is_leader"])
    rest = [node for node in nodes if node is not frozen]
    with rest[0].raw() as client, rest[1].raw() as other:
        client.set("k", "before")
        frozen.freeze()
        assert other.get("k") == b"before"
        client.set("k", "after")
        assert other.get("k") == b"after"
        nodes.until_view([node.name for node in rest])
        frozen.thaw()
        until(frozen.reads_own_copy, "it has joined again")
        with frozen.raw() as back:
            assert back.get("k") in (b"after", None)
