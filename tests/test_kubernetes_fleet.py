"""A fleet whose peers are the pods of a Service: there is one, in whatever order they come and go."""

import shutil

import pytest

from harness import ports, until
from harness.api_server import endpoint
from harness.fleet import SHORT, Node, is_settled, write_and_read
from harness.names import may_mount

pytestmark = [
    pytest.mark.either_io,
    pytest.mark.skipif(not may_mount(), reason="only root can give a process the account of a pod"),
]


class Pods:
    """The pods of the Service."""

    def __init__(self, api, io, folder, cleanup):
        self._api, self._io, self._folder, self._cleanup = api, io, folder, cleanup
        self._listens = {}

    def add(self, name, witness=False, **fleet):
        """A pod begins, and is not listed yet. `fleet` are settings of the fleet."""
        listen = self._listens[name] = ports.address()
        peers = {"kubernetes": self._api.service}
        node = Node(
            name,
            self._io,
            self._folder,
            peers,
            listen,
            before=self._api.before,
            witness=witness,
            fleet=fleet,
        )
        self._cleanup.callback(node.stop)
        return node

    def list(self, name):
        """The API server lists the pod."""
        host, port = self._listens[name].rsplit(":", 1)
        self._api.set(name, endpoint(host, pod=name, serving=False), port=int(port))

    def add_listed(self, *names):
        nodes = [self.add(name) for name in names]
        for name in names:
            self.list(name)
        return nodes

    def gone(self, name):
        """The pod is not there any more."""
        self._api.delete(name)


@pytest.fixture
def pods(folder, io, cleanup, api):
    return Pods(api, io, folder, cleanup)


def settle(*nodes):
    until(lambda: is_settled(nodes), "all are peers of one fleet")
    write_and_read(nodes, "value")


def waits(node, text):
    until(lambda: text in node.status()["waits_for"], f"{node.name} says that it waits: {text}")
    assert text in node.proxy.log()


def fleets(*nodes):
    return {node.status()["fleet"] for node in nodes}


def test_pods_that_begin_together_are_one_fleet(pods, api):
    nodes = pods.add_listed("a", "b", "c")
    settle(*nodes)
    assert fleets(*nodes) == {api.holder()}


def test_pods_that_are_listed_one_by_one_are_one_fleet(pods):
    """The one that begins does not have the least name."""
    c, a, b = pods.add("c"), pods.add("a"), pods.add("b")
    waits(c, "does not have this one's own endpoint")
    pods.list("c")
    settle(c)
    pods.list("b")
    settle(c, b)
    pods.list("a")
    settle(c, b, a)


def test_a_witness_that_is_there_before_all_peers_begins_their_fleet(pods, api):
    """And either of the peers may be lost."""
    witness = pods.add("a", witness=True, **SHORT)
    pods.list("a")
    until(lambda: fleets(witness) != {None}, "it has begun the fleet")
    nodes = [pods.add(name, **SHORT) for name in ("b", "c")]
    for name in ("b", "c"):
        pods.list(name)
    settle(*nodes)
    assert fleets(witness, *nodes) == {api.holder()}
    until(lambda: sorted(nodes[0].status()["voters"]) == ["a", "b", "c"], "all three vote")
    lost, kept = nodes
    lost.proxy.kill()
    until(lambda: kept.view() == ["c"] and kept.is_ready(), "it goes on with the witness")
    write_and_read([kept], "one")


def test_voters_that_the_configuration_names_vote_once_they_are_there(pods):
    """The one that begins is not among them."""
    nodes = [pods.add(name, voters=["b"]) for name in ("a", "b")]
    for name in ("a", "b"):
        pods.list(name)
    settle(*nodes)
    until(lambda: list(nodes[0].status()["voters"]) == ["b"], "the one that is named votes")
    write_and_read(nodes, "voted")


def test_a_pod_that_does_not_answer_is_waited_for_until_it_is_gone(pods):
    pods._listens["away"] = ports.address()
    pods.list("away")
    [node] = pods.add_listed("b")
    waits(node, f"of which 1 do not answer: {pods._listens['away']}")
    assert fleets(node) == {None}
    pods.gone("away")
    settle(node)


def test_pods_that_never_saw_each_other_are_one_fleet_in_the_end(pods, api):
    """While the only peer of a fleet is away, its pod gone, another pod is alone and begins one."""
    [first] = pods.add_listed("a")
    settle(first)
    former = fleets(first)
    first.stop_softly()
    pods.gone("a")
    [second] = pods.add_listed("b")
    settle(second)
    assert fleets(second) == {api.holder()} != former
    first.start()
    pods.list("a")
    settle(first, second)
    assert fleets(first, second) == {api.holder()}
    assert "begun another fleet" in first.proxy.log()


def test_a_restart_keeps_the_fleet_and_its_copy(pods, api):
    nodes = pods.add_listed("a", "b", "c")
    settle(*nodes)
    known = fleets(*nodes)
    for node in nodes:
        node.stop_softly()
        node.start()
        settle(*nodes)
    assert fleets(*nodes) == known == {api.holder()}


def test_a_restart_without_the_api_server_goes_on(pods, api):
    nodes = pods.add_listed("a", "b")
    settle(*nodes)
    known = fleets(*nodes)
    api.trouble = "away"
    nodes[1].stop_softly()
    nodes[1].start()
    settle(*nodes)
    assert fleets(*nodes) == known
    assert "it goes on" in nodes[1].proxy.log()


def test_all_directories_are_lost_and_a_new_fleet_takes_the_lease(pods, api):
    nodes = pods.add_listed("a", "b")
    settle(*nodes)
    known = fleets(*nodes)
    for node in nodes:
        node.stop_softly()
        shutil.rmtree(node.dir)
    for node in nodes:
        node.start()
    settle(*nodes)
    assert fleets(*nodes) == {api.holder()} != known


def test_without_the_right_to_leases_the_role_is_named(pods, api):
    api.allows_leases = False
    [node] = pods.add_listed("a")
    waits(node, "needs a Role in the namespace cache with the verbs get, create and update for leases")
    assert fleets(node) == {None}
    api.allows_leases = True
    settle(node)


def test_an_answer_that_is_lost_begins_no_second_fleet(pods, api):
    """The Lease was written, and the peer does not know."""
    api.loses_answers = 1
    nodes = pods.add_listed("a", "b")
    settle(*nodes)
    assert fleets(*nodes) == {api.holder()}
