"""The network between the peers of a fleet fails: no read is stale, and at rest all copies are equal.

Each node is in a network namespace of its own. The tests are skipped where none may be made.
"""

import random
import time
from contextlib import ExitStack
from functools import partial

import pytest

from harness import SOAK, ports, until
from harness.far import Far
from harness.fleet import SHORT, Fleet
from harness.netns import Network, forbidden
from harness.racers import check_promise

pytestmark = [pytest.mark.either_io, pytest.mark.heavy, pytest.mark.timeout(300)]

HERE = {"fleet": {**SHORT, "tls": "none"}}
"""The peers' addresses are not those of the loopback interface."""

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
    return Fleet(3, io, folder, cleanup, places=network.places, **HERE)


@pytest.fixture
def keeps_promise(nodes, network, tmp_path, cleanup):
    """Checks what clients see while these faults happen, and what is left."""
    return partial(check_promise, nodes, tmp_path, cleanup, before=network.switch.command())


def leader_of(nodes):
    return next(node for node in nodes if node.status()["is_leader"])


def others_than(node, nodes):
    return [other for other in nodes if other is not node]


def cut_both_ways(node, rest):
    node.place.plug("down")


def cut_what_it_sends(node, rest):
    for other in rest:
        node.place.lose_to(other.place)


def cut_what_it_hears(node, rest):
    for other in rest:
        other.place.lose_to(node.place)


def heal(node, rest):
    node.place.plug("up")
    for other in rest:
        node.place.reach(other.place)
        other.place.reach(node.place)


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


def isolate(cut, node, nodes):
    """Cuts a node off, checks what both sides answer, and heals."""
    rest = others_than(node, nodes)
    check_serving([*rest, node], "before")
    cut(node, rest)
    until(lambda: has_no_lease(node), f"{node.name} has lost its lease")
    check_isolated(node)
    nodes.until_view([other.name for other in rest])
    check_serving(rest, "meanwhile")
    time.sleep(AFTER)
    check_isolated(node)
    heal(node, rest)
    nodes.until_settled()
    check_serving([node, *rest], "after")


@pytest.mark.parametrize("which", ["follower", "leader"])
@pytest.mark.parametrize(
    "cut", [cut_both_ways, cut_what_it_sends, cut_what_it_hears], ids=lambda cut: cut.__name__
)
def test_peer_cut_off_misses_and_refuses_while_the_others_go_on(nodes, keeps_promise, cut, which):
    leader = leader_of(nodes)
    node = leader if which == "leader" else others_than(leader, nodes)[0]
    keeps_promise([partial(isolate, cut, node, nodes)])


def lose_each_other(one, other):
    one.place.lose_to(other.place)
    other.place.lose_to(one.place)


def part(one, other, nodes):
    """Two peers do not reach each other until the leader has left one of them out; then they do again."""
    lose_each_other(one, other)
    third = next(node for node in nodes if node not in (one, other))
    until(lambda: len(third.view()) == 2, "one of the two is left out")
    stay = third.view()
    assert third.name in stay, stay
    nodes.until_view(stay)
    check_serving([node for node in nodes if node.name in stay], "meanwhile")
    time.sleep(AFTER)
    heal(one, [other])
    nodes.until_settled()
    check_serving(nodes, "after")


def test_two_followers_that_lose_each_other_cost_one_of_them(nodes, keeps_promise):
    one, other = others_than(leader_of(nodes), nodes)
    keeps_promise([partial(part, one, other, nodes)])


def test_peer_that_loses_the_leader_alone_costs_one_of_the_two(nodes, keeps_promise):
    leader = leader_of(nodes)
    keeps_promise([partial(part, others_than(leader, nodes)[0], leader, nodes)])


def test_loss_of_30_percent_leaves_no_stale_read_and_equal_copies(nodes, keeps_promise):
    def lossy():
        with ExitStack() as losses:
            for node in nodes:
                try:
                    losses.callback(node.place.lossy(0.3).close)
                except OSError as error:
                    pytest.skip(f"packets cannot be dropped by chance here: {error}")
            time.sleep(60 if SOAK else 8)

    keeps_promise([lossy])


def test_delay_of_200_milliseconds_leaves_no_stale_read_and_equal_copies(io, folder, tmp_path, cleanup):
    """By relays, so that it needs no namespaces. An answer takes longer than an election then, and no peer
    has a lease until the way is short again."""
    listens = [ports.address() for _ in range(3)]
    ways = [Far(listen) for listen in listens]
    for way in ways:
        cleanup.callback(way.stop)
    nodes = Fleet(
        3, io, folder, cleanup, listens=listens, announce=[way.address for way in ways], fleet=SHORT
    )

    def far():
        for way in ways:
            way.seconds = 0.2
        time.sleep(60 if SOAK else 8)
        for way in ways:
            way.seconds = 0.0

    check_promise(nodes, tmp_path, cleanup, [far])


@pytest.mark.alone  # a loaded machine has elections of its own
@pytest.mark.parametrize("cut", [cut_both_ways, cut_what_it_hears])
def test_a_voter_that_was_cut_off_comes_back_without_an_election(nodes, cut):
    """It cannot win, and does not stand: the leader that the others hear has no reason to give way to it."""
    leader = leader_of(nodes)
    node = others_than(leader, nodes)[0]
    rest = others_than(node, nodes)
    before = leader.status()["term"]
    cut(node, rest)
    until(lambda: node.name not in leader.view(), "it is left out")
    time.sleep(AFTER)
    heal(node, rest)
    nodes.until_settled()
    assert {one.status()["term"] for one in nodes} == {before}
    assert leader.status()["is_leader"]


@pytest.mark.skipif(not SOAK, reason="an hour of random faults is part of `make soak`")
@pytest.mark.timeout(7200)
def test_an_hour_of_random_faults_leaves_no_stale_read_and_equal_copies(nodes, keeps_promise):
    chance = random.Random(15)

    def fault(node):
        rest = others_than(node, nodes)
        kind = chance.choice([cut_both_ways, cut_what_it_sends, cut_what_it_hears, lose_one, freeze, restart])
        kind(node, rest)
        time.sleep(chance.choice([0.2, 0.5, 1, 3, 10]))
        heal(node, rest)
        node.thaw()

    faults = [partial(fault, chance.choice(nodes.nodes)) for _ in range(600)]
    keeps_promise(faults)


def lose_one(node, rest):
    lose_each_other(node, rest[0])


def freeze(node, _rest):
    node.freeze()


def restart(node, _rest):
    node.stop_softly()
    node.start()
