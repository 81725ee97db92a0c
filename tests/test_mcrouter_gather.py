"""mcrouter's handles that send to several servers: how their answers become one."""

import pytest

from harness import until
from harness.servers import answering

pytestmark = pytest.mark.either_io

STORED, NOT_STORED = b"STORED\r\n", b"NOT_STORED\r\n"
DELETED, TOUCHED, NOT_FOUND = b"DELETED\r\n", b"TOUCHED\r\n", b"NOT_FOUND\r\n"


def holding(servers, count, key="k", value="1"):
    """The key is on the first `count` servers alone."""
    for number, server in enumerate(servers):
        with server.raw() as direct:
            direct.ask(f"delete {key}\r\n".encode())
        if number < count:
            server.set(key, value)


ALL_SYNC = {
    # Request: the answers when it is on none, one, two and three of three servers.
    b"set k 0 0 1\r\n2\r\n": [STORED] * 4,
    b"add k 0 0 1\r\n2\r\n": [STORED, NOT_STORED, NOT_STORED, NOT_STORED],
    b"replace k 0 0 1\r\n2\r\n": [NOT_STORED] * 3 + [STORED],
    b"append k 0 0 1\r\n2\r\n": [NOT_STORED] * 3 + [STORED],
    b"prepend k 0 0 1\r\n2\r\n": [NOT_STORED] * 3 + [STORED],
    b"delete k\r\n": [NOT_FOUND] * 3 + [DELETED],
    b"incr k 4\r\n": [NOT_FOUND] * 3 + [b"5\r\n"],
    b"decr k 1\r\n": [NOT_FOUND] * 3 + [b"0\r\n"],
    b"get k\r\n": [b"END\r\n"] * 3 + [b"VALUE k 0 1\r\n1\r\nEND\r\n"],
    b"gat 100 k\r\n": [b"END\r\n"] * 3 + [b"VALUE k 0 1\r\n1\r\nEND\r\n"],
    # `touched` is the worst of all answers.
    b"touch k 0\r\n": [NOT_FOUND] + [TOUCHED] * 3,
}


@pytest.fixture
def servers(memcached):
    return memcached.several(3)


def test_all_sync_answers_with_the_worst_of_all(servers, routed):
    with routed("AllSyncRoute|Pool|A", {"A": servers}).raw() as client:
        answers = {}
        for request in ALL_SYNC:
            answers[request] = []
            for count in range(4):
                holding(servers, count)
                answers[request].append(client.ask(request))
        assert answers == ALL_SYNC


def test_all_sync_changes_every_server(servers, routed):
    with routed("AllSyncRoute|Pool|A", {"A": servers}).raw() as client:
        client.set("k", "1")
        assert [server.get("k") for server in servers] == [b"1"] * 3
        assert client.ask(b"append k 0 0 1\r\n2\r\n") == STORED
        assert client.ask(b"prepend k 0 0 1\r\n0\r\n") == STORED
        assert [server.get("k") for server in servers] == [b"012"] * 3
        assert client.ask(b"touch k -1\r\n") == TOUCHED
        assert [server.get("k") for server in servers] == [None] * 3
        # A change is made where it can be, whatever the answer says.
        holding(servers, 1)
        assert client.ask(b"append k 0 0 1\r\n2\r\n") == NOT_STORED
        assert client.ask(b"gat -1 k\r\n") == b"END\r\n"
        assert [server.get("k") for server in servers] == [None] * 3


def test_all_sync_fails_when_one_server_is_dead(servers, routed):
    servers[1].kill()
    with routed("AllSyncRoute|Pool|A", {"A": servers}).raw() as client:
        assert client.ask(b"set k 0 0 1\r\n1\r\n").startswith(b"SERVER_ERROR AsyncSocketException")
        assert client.ask(b"get k\r\n").startswith(b"SERVER_ERROR Server unavailable. Reason: ")
        assert client.ask(b"delete k\r\n").startswith(b"SERVER_ERROR Server unavailable. Reason: ")
    assert (servers[0].get("k"), servers[2].get("k")) == (None, None)


def test_all_sync_over_pool_routes_answers_like_their_failed_delete(servers, routed):
    servers[1].kill()
    pools = {name: [server] for name, server in zip("ABC", servers)}
    route = {"type": "AllSyncRoute", "children": [f"PoolRoute|{name}" for name in pools]}
    with routed(route, pools).raw() as client:
        holding([servers[0], servers[2]], 2)
        assert client.ask(b"delete k\r\n") == NOT_FOUND
        assert client.ask(b"set k 0 0 1\r\n1\r\n").startswith(b"SERVER_ERROR ")
    assert (servers[0].get("k"), servers[2].get("k")) == (b"1", b"1")


def test_all_sync_answers_with_the_error_of_one_server(memcached, scripted, routed):
    for error in (b"SERVER_ERROR no memory\r\n", b"CLIENT_ERROR bad data chunk\r\n"):
        servers = [memcached(), scripted(answering(error)), memcached()]
        with routed("AllSyncRoute|Pool|A", {"A": servers}).raw() as client:
            assert client.ask(b"set k 0 0 1\r\n1\r\n") == error
            assert client.ask(b"get k\r\n") == error


def test_all_fastest_leaves_out_a_dead_server(servers, routed):
    router = routed("AllFastestRoute|Pool|A", {"A": servers})
    with router.raw() as client:
        client.set("k", "1")
        until(lambda: [server.get("k") for server in servers] == [b"1"] * 3, "all have it")
        servers[0].kill()
        for _ in range(20):
            assert client.get("k") == b"1"
        client.set("k", "2")
        until(lambda: [server.get("k") for server in servers[1:]] == [b"2"] * 2, "both have it")
        servers[2].kill()
        assert client.get("k") == b"2"
        servers[1].kill()
        assert client.ask(b"get k\r\n").startswith(b"SERVER_ERROR ")


def test_all_fastest_does_not_wait_for_a_frozen_server(servers, routed):
    servers[0].freeze()
    with routed("AllFastestRoute|Pool|A", {"A": servers}, "--server-timeout=30000").raw() as client:
        for _ in range(5):
            client.set("k", "1")
            assert client.get("k") == b"1"


@pytest.mark.parametrize(
    "count, answer",
    [(0, NOT_FOUND), (1, NOT_FOUND), (2, NOT_FOUND), (3, DELETED), (4, DELETED)],
)
def test_all_majority_of_four_gives_a_tie_to_the_worse(memcached, routed, count, answer):
    servers = memcached.several(4)
    with routed("AllMajorityRoute|Pool|A", {"A": servers}).raw() as client:
        holding(servers, count)
        assert client.ask(b"delete k\r\n") == answer
        until(lambda: not any(server.get("k") for server in servers), "it is deleted everywhere")


def test_all_majority_outvotes_a_dead_server(memcached, routed):
    servers = memcached.several(4)
    with routed("AllMajorityRoute|Pool|A", {"A": servers}).raw() as client:
        servers[0].kill()
        assert client.ask(b"set k 0 0 1\r\n1\r\n") == STORED
        servers[1].kill()
        # One connection is refused now and the other server left out: these are two results.
        assert client.ask(b"set k 0 0 1\r\n1\r\n") == STORED
        assert client.ask(b"set k 0 0 1\r\n1\r\n").startswith(b"SERVER_ERROR Server unavailable. Reason: ")


def test_all_initial_answers_as_the_first_and_all_async_at_once(servers, routed):
    with routed("AllInitialRoute|Pool|A", {"A": servers}).raw() as client:
        holding(servers, 1)
        assert client.ask(b"delete k\r\n") == DELETED
        client.set("k", "1")
        until(lambda: [server.get("k") for server in servers] == [b"1"] * 3, "all have it")
    with routed("AllAsyncRoute|Pool|A", {"A": servers}).raw() as client:
        assert client.ask(b"delete k\r\n") == NOT_FOUND
        until(lambda: not any(server.get("k") for server in servers), "it is deleted everywhere")
        assert client.ask(b"set k 0 0 1\r\n1\r\n") == NOT_STORED
        until(lambda: all(server.get("k") for server in servers), "all have it")


WAYS = {
    "as a string": "AllSyncRoute|Pool|A",
    "as an object": {"type": "AllSyncRoute", "children": "Pool|A"},
    "by operation": {
        "type": "OperationSelectorRoute",
        "default_policy": "AllSyncRoute|Pool|A",
        "operation_policies": {"get": {"type": "AllFastestRoute", "children": "Pool|A"}},
    },
}


@pytest.mark.parametrize("all_hosts", WAYS.values(), ids=WAYS.keys())
def test_some_keys_go_to_all_hosts_of_a_pool_and_others_to_one(servers, routed, all_hosts):
    route = {
        "type": "PrefixSelectorRoute",
        "policies": {"all:": all_hosts, "all:but:": "PoolRoute|A"},
        "wildcard": "PoolRoute|A",
    }
    with routed(route, {"A": servers}).raw() as client:

        def places(key):
            return sum(server.get(key) is not None for server in servers)

        for key, count in (("all:k", 3), ("all:but:k", 1), ("k", 1), ("al", 1)):
            client.set(key, "1")
            assert places(key) == count, key
            assert client.get(key) == b"1"
            assert client.ask(f"delete {key}\r\n".encode()) == DELETED
            assert places(key) == 0, key
