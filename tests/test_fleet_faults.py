"""Peers of a fleet and their servers freeze, die and come back: no read is stale, and at rest all copies are
equal."""

import random
import threading
import time

import pytest

from harness import SOAK, until
from harness.fleet import Fleet
from harness.judge import Judge
from harness.raw import Closed

pytestmark = [pytest.mark.either_io, pytest.mark.alone]

SHORT = {"fleet": {"lease": "1s", "suspect": "300ms"}, "unix": False}
"""The default times. Over TCP a server says which connections are gone; otherwise repairs wait for 10 s."""

RACED = [f"raced{number}" for number in range(200)]


class Racers:
    """Clients at all peers that write the same keys until `stop`, whatever happens to the peers."""

    def __init__(self, nodes):
        self._over = False
        self._threads = [
            threading.Thread(target=self._write, args=(node, number), daemon=True)
            for number, node in enumerate(nodes)
        ]
        for thread in self._threads:
            thread.start()

    def _write(self, node, number):
        rounds = 0
        while not self._over:
            try:
                with node.raw() as client:
                    client.sock.settimeout(6)
                    while not self._over:
                        rounds += 1
                        key = RACED[(rounds * 7 + number) % len(RACED)]
                        value = f"{number}.{rounds}"
                        request = f"set {key} 0 0 {len(value)}\r\n{value}\r\n"
                        if rounds % 5 == 0:
                            request = f"delete {key}\r\n"
                        client.send(request.encode())
                        client.line()
            except (OSError, Closed):
                time.sleep(0.05)

    def stop(self):
        self._over = True
        for thread in self._threads:
            thread.join(20)


def check_equal(nodes):
    """No two copies hold different values of a key. A copy that was repaired may lack it."""
    different = []
    for key in RACED:
        held = [node.server.get(key) for node in nodes]
        if len(set(held) - {None}) > 1:
            different.append((key, held))
    assert not different, f"{len(different)} of {len(RACED)} keys differ, as {different[:3]}"


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


def run(nodes, tmp_path, cleanup, faults):
    """Writes and reads everywhere while these faults happen, and checks what clients saw and what is left."""
    judge = Judge(",".join(node.address for node in nodes), tmp_path, writers=10, readers=20)
    cleanup.callback(judge.stop)
    racers = Racers([*nodes, *nodes])
    time.sleep(1)
    for fault, node, seconds in faults:
        fault(node, seconds)
        time.sleep(0.5)
    nodes.until_settled()
    time.sleep(0.5)
    racers.stop()
    report = judge.report()
    assert report["stale_reads"] == 0 and report["wrong"] == 0, report
    assert report["acknowledged_writes"] > 0, report
    check_equal(nodes)
    return report


@pytest.mark.timeout(300)
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_fault_of_one_node_leaves_no_stale_read_and_equal_copies(io, folder, tmp_path, cleanup, fault):
    nodes = Fleet(3, io, folder, cleanup, **SHORT)
    leader = next(node for node in nodes if node.status()["is_leader"])
    other = next(node for node in nodes if node is not leader)
    run(nodes, tmp_path, cleanup, [(fault, other, 2), (fault, leader, 2)])


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", range(20 if SOAK else 1))
def test_random_faults_leave_no_stale_read_and_equal_copies(io, folder, tmp_path, cleanup, seed):
    chance = random.Random(seed)
    nodes = Fleet(3, io, folder, cleanup, **SHORT)
    faults = [
        (chance.choice(FAULTS), chance.choice(nodes.nodes), chance.choice([0.2, 0.5, 1, 2, 3]))
        for _ in range(60 if SOAK else 5)
    ]
    run(nodes, tmp_path, cleanup, faults)


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
