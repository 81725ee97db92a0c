"""Voters of a fleet are restarted, lost and replaced: the fleet stays the same, or says what is missing."""

import shutil
import time

import pytest

from harness import ports, until
from harness.fleet import SHORT, Fleet, is_settled, write_and_read
from harness.relay import Relay

pytestmark = pytest.mark.either_io


@pytest.mark.parametrize("count", [1, 3])
def test_fleet_whose_voters_are_killed_together_stays_the_same_fleet_with_empty_copies(fleet, count):
    """Of one voter alone each start is an election that it wins before it has read its log."""
    nodes = fleet(count, fleet={"expect": count})
    before = nodes[0].status()
    for round in range(3):
        write_and_read(nodes.nodes, f"old{round}")
        for node in nodes:
            node.proxy.kill()
        for node in nodes:
            node.start()
        nodes.until_settled()
        after = nodes[0].status()
        assert after["fleet"] == before["fleet"]
        assert after["view"] > before["view"]
        assert [node.server.get("k") for node in nodes] == [None] * count
        before = after
    write_and_read(nodes.nodes, "new")


def test_of_two_nodes_with_a_witness_either_goes_on_without_the_other_and_neither_without_both(node):
    listens = [ports.address() for _ in range(3)]
    keys = {"fleet": {**SHORT, "expect": 3}}
    nodes = [node(f"n{number}", listens, listens[number], **keys) for number in range(2)]
    witness = node("w", listens, listens[2], witness=True, **keys)
    for lost, kept in (nodes, nodes[::-1]):
        until(lambda: is_settled(nodes), "both are peers")
        write_and_read(nodes, "both")
        lost.proxy.kill()
        until(lambda kept=kept: kept.view() == [kept.name], "the lost one is left out")
        until(kept.is_ready, "the other one has a lease")
        write_and_read([kept], "one")
        lost.start()
    until(lambda: is_settled(nodes), "both are peers")
    assert sorted(witness.status()["voters"]) == ["n0", "n1", "w"]
    kept, lost = nodes
    witness.proxy.kill()
    write_and_read(nodes, "without the witness")
    lost.proxy.kill()
    until(lambda: not kept.is_ready(), "it has no majority")
    with kept.raw() as client:
        assert client.get("k") is None
        assert client.ask(b"set k 0 0 1\r\nv\r\n").startswith(b"SERVER_ERROR this proxy has no lease")
    witness.start()
    until(lambda: kept.view() == [kept.name] and kept.is_ready(), "it goes on with the witness")
    write_and_read([kept], "one")


@pytest.mark.timeout(180)
def test_dead_voter_is_replaced_by_another_peer_that_then_bears_the_loss_of_a_second_one(fleet):
    nodes = fleet(4, fleet={**SHORT, "expect": 4})
    votes = set(nodes[0].status()["voters"])
    assert len(votes) == 3
    dead = next(node for node in nodes if node.name in votes and not node.status()["is_leader"])
    rest = [node for node in nodes if node is not dead]
    dead.proxy.kill()
    nodes.until_view([node.name for node in rest])
    until(lambda: set(rest[0].status()["voters"]) == {node.name for node in rest}, "another one votes")
    second = next(node for node in rest if node.status()["is_leader"])
    left = [node for node in rest if node is not second]
    second.proxy.kill()
    nodes.until_view([node.name for node in left])
    until(lambda: all(node.is_ready() for node in left), "the two have leases")
    write_and_read(left, "v")
    dead.start()
    second.start()
    nodes.until_settled()
    write_and_read(nodes.nodes, "all")


def test_voter_whose_directory_is_lost_is_replaced_by_its_successor_at_once(fleet):
    """Nobody has to lead for half a minute, as nobody does while all are restarted in turn."""
    nodes = fleet(fleet=SHORT)
    nodes.until_settled()
    until(lambda: len(nodes[0].status()["voters"]) == 3, "three vote")
    node = nodes[2]
    before = set(nodes[0].status()["voters"])
    node.proxy.kill()
    shutil.rmtree(node.dir)
    node.start()
    nodes.until_settled()
    begun = time.monotonic()
    until(lambda: set(nodes[0].status()["voters"]) == before, "it votes in the place of the former one")
    # A voter that may come back keeps its place for 30 s.
    assert time.monotonic() - begun < 20
    nodes[1].proxy.kill()
    write_and_read([nodes[0], node], "without the second")
    nodes[1].start()
    nodes.until_settled()


def test_leader_that_reaches_no_voter_gives_way_to_one_that_reaches_it(io, folder, cleanup):
    """With one of three voters lost, the leader cannot connect to the other one, which can connect to it."""
    listens = [ports.address() for _ in range(3)]
    ways = [Relay(listen) for listen in listens]
    for way in ways:
        cleanup.callback(way.stop)
    announce = [way.address for way in ways]
    nodes = Fleet(3, io, folder, cleanup, listens=listens, announce=announce, fleet=SHORT)
    leader = next(node for node in nodes if node.status()["is_leader"])
    lost, other = (node for node in nodes if node is not leader)
    lost.proxy.kill()
    nodes.until_view([leader.name, other.name])
    ways[nodes.nodes.index(other)].refuse()
    until(lambda: other.view() == [other.name] and other.is_ready(), "the other one leads")
    write_and_read([other], "alone")
    ways[nodes.nodes.index(other)].heal()
    lost.start()
    nodes.until_settled()
    write_and_read(nodes.nodes, "together")
