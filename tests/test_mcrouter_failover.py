"""mcrouter's failover: after which answers the next server is asked, and what it is asked."""

import time

import pytest

from harness import until
from harness.mcrouter import migrate
from harness.servers import answering

pytestmark = pytest.mark.either_io

CHILDREN = ["PoolRoute|A", "PoolRoute|B"]

COMMANDS = {
    "get": b"get k\r\n",
    "gat": b"gat 0 k\r\n",
    "set": b"set k 0 0 1\r\nx\r\n",
    "append": b"append k 0 0 1\r\nx\r\n",
    "incr": b"incr n 1\r\n",
    "touch": b"touch k 0\r\n",
    "delete": b"delete k\r\n",
}

GOOD = {
    "get": b"VALUE k 0 1\r\n2\r\nEND\r\n",
    "gat": b"VALUE k 0 1\r\n2\r\nEND\r\n",
    "set": b"STORED\r\n",
    "append": b"STORED\r\n",
    "incr": b"8\r\n",
    "touch": b"TOUCHED\r\n",
    "delete": b"DELETED\r\n",
}
"""The answers of a server which has the key `k`, and 7 as `n`."""


def failover(children=CHILDREN, **keys):
    return {"type": "FailoverRoute", "children": children, **keys}


@pytest.fixture
def good(memcached):
    """A server which has the keys."""
    server = memcached()
    server.set("k", "2")
    server.set("n", "7")
    return server


def answers(client):
    return {name: client.ask(request) for name, request in COMMANDS.items()}


FORMS = {
    "two pools": (failover(), "two"),
    "one pool": (failover("Pool|A"), "one"),
    "a string": ("FailoverRoute|Pool|A", "one"),
    "HashRoutes": (failover(["HashRoute|Pool|A", "HashRoute|Pool|B"]), "two"),
}


@pytest.mark.parametrize("route, pools", FORMS.values(), ids=FORMS.keys())
def test_a_dead_first_server_is_not_noticed(memcached, routed, good, route, pools):
    dead = memcached()
    dead.kill()
    given = {"A": [dead], "B": [good]} if pools == "two" else {"A": [dead, good]}
    with routed(route, given, "--asynclog-disable").raw() as client:
        assert answers(client) == GOOD
        assert client.ask(b"get k\r\n") == b"END\r\n"
        client.set("k", "3")
    assert good.get("k") == b"3"


def test_a_frozen_first_server_costs_one_timeout(memcached, routed, good):
    frozen = memcached()
    frozen.freeze()
    options = ("--server-timeout=3000", "--timeouts-until-tko=1", "--asynclog-disable")
    with routed(failover(), {"A": [frozen], "B": [good]}, *options).raw() as client:
        assert answers(client) == GOOD


def test_the_last_answer_is_the_clients(memcached, scripted, routed):
    dead = memcached()
    dead.kill()
    last = scripted(answering(b"SERVER_ERROR the last\r\n"))
    children = ["PoolRoute|A", "PoolRoute|A", "PoolRoute|B"]
    with routed(failover(children), {"A": [dead], "B": [last]}, "--asynclog-disable").raw() as client:
        assert answers(client) == dict.fromkeys(COMMANDS, b"SERVER_ERROR the last\r\n")


def test_misses_and_conditions_are_answers(memcached, routed, good):
    first = memcached()
    with routed(failover(), {"A": [first], "B": [good]}).raw() as client:
        for name in ("get", "gat"):
            assert client.ask(COMMANDS[name]) == b"END\r\n"
        assert client.ask(COMMANDS["append"]) == b"NOT_STORED\r\n"
        for name in ("incr", "touch", "delete"):
            assert client.ask(COMMANDS[name]) == b"NOT_FOUND\r\n"
        client.set("k", "1")
    assert (first.get("k"), good.get("k")) == (b"1", b"2")


def test_a_failover_within_one_pool_goes_to_the_same_server(memcached, routed):
    """Both children place the key alike: the second one asks the dead server again."""
    servers = memcached.several(2)
    with routed(failover(["PoolRoute|A", "PoolRoute|A"]), {"A": servers}).raw() as client:
        client.set("k", "1")
        [owner] = [server for server in servers if server.get("k")]
        owner.kill()
        for _ in range(3):
            assert client.ask(b"get k\r\n").startswith(b"SERVER_ERROR ")
    salted = {"type": "PoolRoute", "pool": "A", "hash": {"hash_func": "Ch3", "salt": "other"}}
    owner.start()
    with routed(failover(["PoolRoute|A", salted]), {"A": servers}).raw() as client:
        keys = [f"k{number}" for number in range(50)]
        owner.kill()
        answered = [client.ask(f"get {key}\r\n".encode()) == b"END\r\n" for key in keys]
        assert 25 < sum(answered) < 50


ERRORS = {
    "SERVER_ERROR": (b"SERVER_ERROR out of memory\r\n", "remote_error"),
    "SERVER_ERROR 307": (b"SERVER_ERROR 307 busy\r\n", "busy"),
    "CLIENT_ERROR": (b"CLIENT_ERROR bad data chunk\r\n", "client_error"),
}

RULES = {
    # Rule: whether each kind of error fails over.
    "default": ({}, {"remote_error", "busy"}),
    "nothing": ({"failover_errors": []}, set()),
    "a list of others": ({"failover_errors": ["tko", "timeout", "connect_error"]}, set()),
    "a server error": ({"failover_errors": ["remote_error"]}, {"remote_error"}),
    "by its long name": ({"failover_errors": ["mc_res_remote_error"]}, {"remote_error"}),
    "a client error": ({"failover_errors": ["client_error", "busy"]}, {"client_error", "busy"}),
}


@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("rule", RULES)
def test_listed_errors_fail_over(scripted, routed, good, rule, error):
    text, name = ERRORS[error]
    keys, fails_over = RULES[rule]
    bad = scripted(answering(text))
    router = routed(failover(**keys), {"A": [bad], "B": [good]}, "--asynclog-disable")
    with router.raw() as client:
        expected = GOOD if name in fails_over else dict.fromkeys(COMMANDS, text)
        if name != "client_error":
            expected = {**expected, **{each: GOOD[each] for each in UNGROUPED}}
        elif fails_over:
            expected = {**expected, **dict.fromkeys(UNGROUPED, text)}
        found = answers(client)
        assert found == expected


GROUPS = {
    "gets": {"get", "gat"},
    "updates": {"set", "append"},
    "deletes": {"delete"},
}
"""`incr` and `touch` are in no group, and always have the default errors."""

UNGROUPED = COMMANDS.keys() - {name for group in GROUPS.values() for name in group}


@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize("is_served", [True, False], ids=["on", "off"])
def test_errors_are_listed_by_group_and_a_group_left_out_has_the_defaults(
    scripted, routed, good, group, is_served
):
    text = b"SERVER_ERROR out of memory\r\n"
    if is_served:
        errors = {other: [] for other in GROUPS if other != group}
        served = GROUPS[group] | UNGROUPED
    else:
        errors = {group: ["tko", "connect_error"]}
        served = COMMANDS.keys() - GROUPS[group]
    pools = {"A": [scripted(answering(text))], "B": [good]}
    with routed(failover(failover_errors=errors), pools, "--asynclog-disable").raw() as client:
        found = answers(client)
    assert {name for name, answer in found.items() if answer == text} == COMMANDS.keys() - served
    assert {name: found[name] for name in UNGROUPED} == {name: GOOD[name] for name in UNGROUPED}


def test_a_delete_that_a_pool_keeps_for_its_server_does_not_fail_over(memcached, routed, good):
    dead = memcached()
    dead.kill()
    options = ("--probe-timeout-initial=100", "--probe-timeout-max=200")
    with routed(failover(), {"A": [dead], "B": [good]}, *options).raw() as client:
        # The first one finds the connection refused, and later ones the server left out.
        assert [client.ask(b"delete k\r\n") for _ in range(3)] == [b"NOT_FOUND\r\n"] * 3
        assert good.get("k") == b"2"
        assert client.get("k") == b"2"
        dead.start()
        until(lambda: dead.stat("delete_misses") == 3, "the server gets them when it is back")
    # Servers that are children themselves keep nothing.
    dead.kill()
    with routed(failover("Pool|A"), {"A": [dead, good]}).raw() as client:
        assert client.ask(b"delete k\r\n") == b"DELETED\r\n"


def test_failover_over_a_migration_asks_both_of_its_pools_in_turn(memcached, routed):
    old, new, last = memcached.several(3)
    start = int(time.time()) + 4
    route = failover([migrate(start, 2), "PoolRoute|last"])
    options = ("--probe-timeout-initial=100", "--asynclog-disable")
    router = routed(route, {"old": [old], "new": [new], "last": [last]}, *options)
    with router.raw() as client:
        client.set("k", "1")
        assert old.get("k") == b"1"
        old.kill()
        client.set("k", "2")
        assert last.get("k") == b"2"
        time.sleep(max(0.0, start + 4.2 - time.time()))
        client.set("k", "3")
        assert new.get("k") == b"3" and client.get("k") == b"3"
        new.kill()
        assert client.get("k") == b"2"
        last.kill()
        assert client.ask(b"get k\r\n").startswith(b"SERVER_ERROR ")


def with_exptime(**keys):
    return {
        "type": "FailoverWithExptimeRoute",
        "normal": "PoolRoute|A",
        "failover": "PoolRoute|B",
        "failover_exptime": 3,
        **keys,
    }


def test_values_that_failed_over_expire_after_the_failover_expiry(memcached, routed):
    normal, gutter = memcached.several(2)
    options = ("--probe-timeout-initial=100", "--probe-timeout-max=200", "--timeouts-until-tko=1")
    with routed(with_exptime(), {"A": [normal], "B": [gutter]}, *options).raw() as client:
        client.set("k", "1")
        assert (normal.get("k"), gutter.get("k")) == (b"1", None)
        normal.kill()
        for key, ttl in (("k", 0), ("l", 1000), ("m", 2_000_000_000), ("n", 1)):
            client.set(key, "2", ttl=ttl)
            assert client.get(key) == gutter.get(key) == b"2"
        with gutter.raw() as direct:
            assert all(
                direct.ask(b"mg %b t\r\n" % key) in (b"HD t3\r\n", b"HD t2\r\n") for key in (b"k", b"l", b"m")
            )
        until(lambda: client.get("k") is None, "the value expires")
        normal.start()
        until(lambda: client.ask(b"set k 0 0 1\r\n3\r\n") == b"STORED\r\n" and normal.get("k"), "it is back")
        with normal.raw() as direct:
            assert direct.ask(b"mg k t\r\n") == b"HD t-1\r\n"


def test_the_first_of_several_failover_children_that_answers_is_taken(memcached, routed):
    normal, first, second = memcached.several(3)
    normal.kill()
    first.kill()
    route = with_exptime(failover=["PoolRoute|B", "PoolRoute|C"])
    pools = {"A": [normal], "B": [first], "C": [second]}
    with routed(route, pools, "--asynclog-disable").raw() as client:
        client.set("k", "1")
        assert client.get("k") == second.get("k") == b"1"
        assert client.ask(b"delete k\r\n") == b"DELETED\r\n"


def test_miss_failover_asks_until_one_has_the_key(memcached, routed):
    servers = memcached.several(3)
    servers[2].set("k", "3")
    with routed("MissFailoverRoute|Pool|A", {"A": servers}).raw() as client:
        assert client.get("k") == b"3"
        assert client.get("none") is None
        client.set("k", "1")
        assert [server.get("k") for server in servers] == [b"1", None, b"3"]
        assert client.get("k") == b"1"
        assert client.ask(b"delete k\r\n") == client.ask(b"delete k\r\n") == b"DELETED\r\n"
        assert client.ask(b"delete k\r\n") == b"NOT_FOUND\r\n"


BUSY = b"SERVER_ERROR 307 busy\r\n"


def limited(scripted, routed, good, rate, burst=None, **keys):
    limit = {"rate": rate} if burst is None else {"rate": rate, "burst": burst}
    pools = {"A": [scripted(answering(BUSY))], "B": [good]}
    return routed(failover(failover_limit=limit, **keys), pools)


LIMITS = {
    # rate, burst, and how many failovers come after each other: s(erved) or e(rror)
    "a fifth": (0.2, 1, "seeeeseeeese"),
    "a fifth with a burst": (0.2, 3, "ssseeseeeeseeee"),
    "none": (0.0, 0, "eeeee"),
    "a burst alone": (0.0, 4, "sssseeee"),
    "a half": (0.5, 1, "seseses"),
    "all": (1.0, 1, "sssssss"),
}


@pytest.mark.parametrize("rate, burst, expected", LIMITS.values(), ids=LIMITS.keys())
def test_failovers_are_limited_by_a_rate(scripted, routed, good, rate, burst, expected):
    found = ""
    with limited(scripted, routed, good, rate, burst).raw() as client:
        for _ in expected:
            answer = client.ask(b"get k\r\n")
            assert answer in (GOOD["get"], BUSY)
            found += "s" if answer == GOOD["get"] else "e"
    assert found == expected


def test_good_requests_earn_failovers_too(memcached, scripted, routed, good):
    def talk(sock):
        while asked := sock.recv(65536):
            sock.sendall(b"END\r\n" if b"miss" in asked else BUSY)

    limit = {"rate": 0.2, "burst": 1}
    with routed(failover(failover_limit=limit), {"A": [scripted(talk)], "B": [good]}).raw() as client:
        assert client.ask(b"get k\r\n") == GOOD["get"]
        assert client.ask(b"get k\r\n") == BUSY
        for _ in range(3):
            assert client.ask(b"get miss\r\n") == b"END\r\n"
        assert client.ask(b"get k\r\n") == GOOD["get"]
        assert client.ask(b"get k\r\n") == BUSY


def test_limit_has_a_burst_of_a_thousand_by_itself(scripted, routed, good):
    with limited(scripted, routed, good, 0).raw() as client:
        found = [client.ask(b"get k\r\n") for _ in range(1010)]
    assert found == [GOOD["get"]] * 1000 + [BUSY] * 10


def test_failovers_from_a_server_that_is_left_out_are_free(memcached, routed, good):
    dead = memcached()
    dead.kill()
    route = failover(failover_limit={"rate": 0, "burst": 0})
    with routed(route, {"A": [dead], "B": [good]}).raw() as client:
        assert [client.get("k") for _ in range(10)] == [b"2"] * 10
