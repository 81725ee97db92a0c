"""Leases through mcrouter's door: tokens go back to the server that gave them, and a server that does not
know leases is never given a value that it would take for commands."""

import json
import threading
import time

import pytest

from harness import until
from harness.leasing import Leasing
from harness.mcrouter import Router, migrate

pytestmark = pytest.mark.either_io

UNKNOWN = b"SERVER_ERROR %b: the server does not know this command\r\n"


@pytest.fixture
def leasing(cleanup):
    """Starts a cache with leases."""

    def start(**options):
        server = Leasing(**options)
        cleanup.callback(server.stop)
        return server

    return start


@pytest.fixture
def router(cleanup, io, tmp_path):
    """Starts mcrouter's door with these pools, each a list of servers."""

    def start(pools, route="PoolRoute|A", arguments=()):
        pools = {name: {"servers": [server.address for server in servers]} for name, servers in pools.items()}
        started = Router(json.dumps({"pools": pools, "route": route}), tmp_path, io, *arguments)
        cleanup.callback(started.stop)
        return started

    return start


def token(client, key):
    """The token of a miss."""
    client.send(b"lease-get %b\r\n" % key.encode())
    word, name, got, flags, size = client.line().split()
    assert (word, name, flags, size) == (b"LVALUE", key.encode(), b"0", b"0")
    assert client.exactly(7) == b"\r\nEND\r\n"
    return int(got)


def fill(client, key, got, value=b"v", tail=b""):
    """The answer to a `lease-set` with this token."""
    head = b"lease-set %b %d 3 0 %d%b\r\n" % (key.encode(), got, len(value), tail)
    return client.ask(head + value + b"\r\n")


def test_misses_are_filled_with_their_tokens_and_not_with_others(leasing, router):
    server = leasing()
    with router({"A": [server]}).raw() as client:
        got = token(client, "k")
        assert client.ask(b"lease-get k\r\n") == b"NOT_FOUND_HOT k\r\nEND\r\n"
        assert fill(client, "k", got + 1) == b"NOT_STORED\r\n"
        assert fill(client, "k", got) == b"STORED\r\n"
        assert client.ask(b"lease-get k\r\n") == b"VALUE k 3 1\r\nv\r\nEND\r\n"
        got = token(client, "gone")
        assert client.ask(b"delete gone\r\n") == b"NOT_FOUND\r\n"
        assert fill(client, "gone", got) == b"STALE_STORED\r\n"


def test_many_keys_are_answered_in_order(leasing, router):
    servers = [leasing(first_token=100), leasing(first_token=200), leasing(first_token=300)]
    with router({"A": servers}).raw() as client:
        keys = [f"k{number}" for number in range(20)]
        tokens = {key: token(client, key) for key in keys}
        assert {got // 100 for got in tokens.values()} == {1, 2, 3}, "keys are at all servers"
        for key in keys[::2]:
            assert fill(client, key, tokens[key], key.encode()) == b"STORED\r\n"
        client.send(b"lease-get " + " ".join(keys).encode() + b"\r\n")
        for number, key in enumerate(keys):
            line = client.line().split()
            assert line[:2] == [b"NOT_FOUND_HOT" if number % 2 else b"VALUE", key.encode()]
            assert number % 2 or client.line() == key.encode() + b"\r\n"
        assert client.line() == b"END\r\n"


def test_metadata_is_relayed(leasing, router):
    server = leasing()
    server.put("a", b"v", expiry=60)
    server.put("b", b"v", expiry=-1)
    with router({"A": [server]}).raw() as client:
        meta = b"META %b age: %b; exptime: %d; from: 127.0.0.1; is_transient: 0\r\n"
        a, b = meta % (b"a", b"0", 60), meta % (b"b", b"unknown", -1)
        assert client.ask(b"metaget b\r\n") == b + b"END\r\n"
        assert client.ask(b"metaget none\r\n") == b"END\r\n"
        assert client.ask(b"metaget none b\r\n") == b + b"END\r\n"
        assert client.ask(b"metaget a\r\n").replace(b"age: 1;", b"age: 0;") == a + b"END\r\n"


@pytest.mark.parametrize("size", [10, 100_000, 3 << 20])
def test_a_value_of_any_size_is_filled_on_any_thread(leasing, router, size):
    server = leasing()
    started = router({"A": [server]}, arguments=["--proxy-threads=2"])
    value = bytes(range(256)) * (size // 256 + 1)
    for number in range(6):
        # Two connections, often of two threads: the second one's server connection has proved nothing yet.
        with started.raw() as asks, started.raw() as fills:
            key = f"k{number}"
            assert fill(fills, key, token(asks, key), value) == b"STORED\r\n"
            assert server.value(key) == value
            assert asks.ask(b"lease-get %b\r\n" % key.encode()).endswith(value + b"\r\nEND\r\n")


@pytest.mark.parametrize("size", [2, 100_000, 3 << 20])
@pytest.mark.parametrize("tail", [b"", b" noreply"])
def test_a_server_without_leases_is_not_given_a_value(memcached, router, size, tail):
    server = memcached()
    started = router({"A": [server]})
    # The value is commands for a server that does not know its head.
    value = (b"set evil 0 0 1\r\nx\r\n" * (size // 19 + 1))[:-2]
    with started.raw() as client, started.raw() as other:
        client.set("mine", "1")
        for _ in range(3):
            expected = b"" if tail else UNKNOWN % server.address.encode()
            assert fill(client, "k", 1, value, tail) == expected
            assert other.get("mine") == b"1" and client.get("mine") == b"1"
        assert client.ask(b"lease-get k\r\n") == b"ERROR\r\n"
        assert client.ask(b"metaget k\r\n") == b"ERROR\r\n"
        assert client.get("evil") is None


def test_another_server_at_the_same_address_has_to_prove_it_again(leasing, router):
    server = leasing()
    with router({"A": [server]}, arguments=["--disable-tko-tracking"]).raw() as client:
        assert fill(client, "k", token(client, "k")) == b"STORED\r\n"
        server.stop()
        plain = leasing(port=server.port, knows_leases=False)
        until(lambda: client.ask(b"get k\r\n") == b"END\r\n", "the new server to be asked")
        assert fill(client, "k", 1, b"set evil 0 0 1\r\nx") == UNKNOWN % server.address.encode()
        assert plain.value("evil") is None
        assert not plain.named("lease-set")


def test_a_server_that_is_unwell_is_asked_again(leasing, router):
    server = leasing()
    started = router({"A": [server]}, arguments=["--disable-tko-tracking"])
    with started.raw() as client:
        server.broken = b"SERVER_ERROR busy\r\n"
        assert fill(client, "k", 1) == b"SERVER_ERROR %b: busy\r\n" % server.address.encode()
        server.broken = None
        assert fill(client, "k", token(client, "k")) == b"STORED\r\n"


def test_pipelined_requests_keep_their_order_around_the_proof(leasing, router):
    server = leasing()
    with router({"A": [server]}).raw() as client:
        for number in range(5):
            key = b"k%d" % number
            begin = b"set a 0 0 1\r\nx\r\nget a\r\nlease-set %b 1 0 0 1\r\ny\r\n" % key
            client.send(begin + b"get a\r\ndelete a\r\nget a\r\n")
            hit = b"VALUE a 0 1\r\nx\r\nEND\r\n"
            expected = b"STORED\r\n" + hit + b"NOT_STORED\r\n" + hit + b"DELETED\r\nEND\r\n"
            assert client.exactly(len(expected)) == expected


def test_one_clients_leases_do_not_hold_up_or_mix_with_others(leasing, router):
    server = leasing()
    started = router({"A": [server]}, arguments=["--proxy-threads=2"])
    wrong = []

    def fills(name):
        with started.raw() as client:
            for number in range(50):
                key = f"{name}-{number}"
                got = token(client, key)
                answer = fill(client, key, got, key.encode())
                read = client.ask(b"lease-get %b\r\n" % key.encode())
                if answer != b"STORED\r\n" or key.encode() + b"\r\nEND" not in read:
                    wrong.append((key, answer, read))

    threads = [threading.Thread(target=fills, args=(f"t{number}",)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_doors_can_stand_behind_each_other(leasing, router):
    server = leasing()
    back = router({"A": [server]})
    with router({"A": [back]}).raw() as client:
        got = token(client, "k")
        assert fill(client, "k", got + 7) == b"NOT_STORED\r\n"
        assert fill(client, "k", got) == b"STORED\r\n"
        assert client.ask(b"lease-get k\r\n") == b"VALUE k 3 1\r\nv\r\nEND\r\n"


def test_requests_are_chosen_by_the_words_of_leases(leasing, router):
    reads, fills, rest = leasing(), leasing(), leasing()
    route = {
        "type": "OperationSelectorRoute",
        "default_policy": "PoolRoute|C",
        "operation_policies": {
            "lease-get": "PoolRoute|A",
            "lease-set": "PoolRoute|B",
            "metaget": "PoolRoute|B",
        },
    }
    with router({"A": [reads], "B": [fills], "C": [rest]}, route).raw() as client:
        token(client, "k")
        assert fill(client, "k", 1) == b"NOT_STORED\r\n"
        assert client.ask(b"metaget k\r\n") == b"END\r\n"
        assert client.ask(b"get k\r\n") == b"END\r\n"
    words = "lease-get", "lease-set", "metaget", "get"
    assert [line.split()[0] for line in reads.named(*words)] == [b"lease-get"]
    assert [line.split()[0] for line in fills.named(*words)] == [b"lease-set", b"metaget"]
    assert [line.split()[0] for line in rest.named(*words)] == [b"get"]


def test_a_route_to_nowhere_gives_a_token_that_fills_nothing(router, leasing):
    with router({"A": [leasing()]}, "NullRoute").raw() as client:
        assert client.ask(b"lease-get k\r\n") == b"LVALUE k 0 0 0\r\n\r\nEND\r\n"
        assert client.ask(b"lease-get k j\r\n") == b"LVALUE k 0 0 0\r\n\r\nLVALUE j 0 0 0\r\n\r\nEND\r\n"
        assert fill(client, "k", 0) == b"NOT_STORED\r\n"
        assert client.ask(b"metaget k\r\n") == b"END\r\n"


def failover(children, name="paired", **keys):
    return {
        "type": "FailoverRoute",
        "name": name,
        "children": children,
        "enable_lease_pairing": True,
        **keys,
    }


def down():
    """The address of a server that is not there."""
    server = Leasing()
    server.stop()
    return server


@pytest.mark.parametrize("size", [1, 100_000])
def test_a_miss_that_another_child_has_answered_is_filled_there(leasing, router, size):
    first, second = leasing(first_token=100), leasing(first_token=500)
    arguments = ["--proxy-threads=2", "--timeouts-until-tko=1", "--probe-timeout-initial=50"]
    first.stop()
    route = failover(["PoolRoute|A", "PoolRoute|B"])
    started = router({"A": [first], "B": [second]}, route, arguments)
    with started.raw() as asks, started.raw() as fills:
        got = token(asks, "k")
        assert got != 500, "the client gets a token that tells whose it is"
        # The first one is back before the miss is filled.
        back = leasing(port=first.port, first_token=100)
        until(lambda: asks.ask(b"get other\r\n") == b"END\r\n" and back.named("get"), "the first is back")
        value = b"v" * size
        assert fill(fills, "k", got, value) == b"STORED\r\n"
        assert (second.value("k"), back.value("k")) == (value, None)
        assert second.named("lease-set") == [b"lease-set k 500 3 0 %d" % size]
        # It fills a miss once.
        assert fill(fills, "k", got, value) == b"NOT_STORED\r\n"
        assert [line.split()[2] for line in back.named("lease-set")] == [b"%d" % got]
        # The tokens of the first child stay as they are.
        own = token(asks, "own")
        assert 100 <= own < 200
        assert fill(fills, "own", own, value) == b"STORED\r\n"
        assert asks.ask(b"lease-get own\r\n") == b"VALUE own 3 %d\r\n%b\r\nEND\r\n" % (size, value)


def test_pairs_hold_across_a_reload_and_for_their_own_route_alone(leasing, router):
    second = leasing(first_token=500)
    pools = {"A": [down()], "B": [second], "C": [down()]}
    arguments = ["--timeouts-until-tko=1", "--reconfiguration-delay-ms=10"]
    route = {
        "type": "PrefixSelectorRoute",
        "policies": {"a": failover(["PoolRoute|A", "PoolRoute|B"], "one")},
        "wildcard": failover(["PoolRoute|C", "PoolRoute|B"], "other"),
    }
    started = router(pools, route, arguments)
    with started.raw() as client:
        ours, others = token(client, "a"), token(client, "b")
        started.write(started.file.read_text().replace('"wildcard"', '\n "wildcard"'))
        until(lambda: "configuration in effect" in started.log(), "the file is read again")
        # The token of another route means nothing here, and goes to the second child as it is.
        assert fill(client, "a", others) == b"NOT_STORED\r\n"
        assert fill(client, "a", ours) == b"STORED\r\n"
        assert fill(client, "b", others) == b"STORED\r\n"


def test_pairs_hold_where_keys_are_tagged_on_their_way(leasing, router):
    second = leasing(first_token=500)
    route = failover(["PoolRoute|A", "PoolRoute|B"], failover_tag=True)
    with router({"A": [down()], "B": [second]}, route, ["--timeouts-until-tko=1"]).raw() as client:
        key = "k|#|x"
        assert fill(client, key, token(client, key)) == b"STORED\r\n"
        assert second.value(f"{key}:failover=1") == b"v"
        assert client.ask(f"lease-get {key}\r\n".encode()) == b"VALUE k|#|x 3 1\r\nv\r\nEND\r\n"


@pytest.mark.parametrize("since, told", [(5, True), (60, False)], ids=["just now", "long ago"])
def test_token_of_the_old_pool_makes_its_value_invalid_just_after_the_key_has_moved(
    leasing, router, since, told
):
    old, new = leasing(first_token=100), leasing(first_token=500)
    route = migrate(int(time.time()) - since, 1)
    with router({"old": [old], "new": [new]}, route).raw() as client:
        assert fill(client, "k", 100) == b"NOT_STORED\r\n", "the new pool did not give it"
        if told:
            expected = [b"lease-set k 100 3 -1 1"]
            until(lambda: old.named("lease-set") == expected, "the old pool's lease is used up")
        # What the new pool takes goes nowhere else.
        assert fill(client, "j", token(client, "j")) == b"STORED\r\n"
        assert len(old.named("lease-set")) == told and new.value("j") == b"v"


def test_failovers_within_each_other_pair_leases_both(leasing, router):
    last = leasing(first_token=500)
    pools = {"A": [down()], "B": [down()], "C": [last]}
    inner = failover(["PoolRoute|B", "PoolRoute|C"], "inner")
    with router(pools, failover(["PoolRoute|A", inner], "outer"), ["--timeouts-until-tko=1"]).raw() as client:
        for number in range(20):
            key = f"k{number}"
            assert fill(client, key, token(client, key)) == b"STORED\r\n"
            assert last.value(key) == b"v"


def test_without_pairing_a_token_is_the_servers(leasing, router):
    second = leasing(first_token=500)
    route = {"type": "FailoverRoute", "children": ["PoolRoute|A", "PoolRoute|B"]}
    with router({"A": [down()], "B": [second]}, route, ["--timeouts-until-tko=1"]).raw() as client:
        assert token(client, "k") == 500
        assert fill(client, "k", 500) == b"STORED\r\n"


SHADOWED = {
    "of a pool": {
        "type": "PoolRoute",
        "pool": "A",
        "shadows": [{"target": "PoolRoute|B", "key_fraction_range": [0, 1]}],
    },
    "of a route": {
        "type": "ShadowRoute",
        "children": ["PoolRoute|A"],
        "shadows": [{"target": "PoolRoute|B", "keys_to_shadow": ["k", "gone"]}],
    },
}


@pytest.mark.parametrize("route", SHADOWED.values(), ids=SHADOWED.keys())
@pytest.mark.parametrize("size", [1, 100_000])
def test_a_shadow_gets_its_own_token_back(leasing, router, route, size):
    server, shadow = leasing(first_token=100), leasing(first_token=500)
    started = router({"A": [server], "B": [shadow]}, route, ["--proxy-threads=2"])
    value = b"v" * size
    with started.raw() as asks, started.raw() as fills:
        assert token(asks, "k") == 100
        until(lambda: len(shadow.named("lease-get")) == 1, "the shadow is asked, too")
        until(lambda: started.metric("requests_in_flight") == 0, "it has answered")
        assert fill(fills, "k", 100, value) == b"STORED\r\n"
        until(lambda: shadow.value("k") == value, "the shadow stores it with its own token")
        assert shadow.named("lease-set") == [b"lease-set k 500 3 0 %d" % size]
        # A hit gives no token, and a token without a pair goes to no shadow.
        assert asks.ask(b"lease-get k\r\n") == b"VALUE k 3 %d\r\n%b\r\nEND\r\n" % (size, value)
        assert fill(fills, "k", 100, value) == b"NOT_STORED\r\n"
        got = token(asks, "gone")
        until(lambda: len(shadow.named("lease-get")) == 3, "the shadow is asked for all")
        until(lambda: started.metric("requests_in_flight") == 0, "it has answered")
        assert asks.ask(b"delete gone\r\n") == b"NOT_FOUND\r\n"
        assert fill(fills, "gone", got, value) == b"STALE_STORED\r\n"
        until(lambda: len(shadow.named("lease-set")) == 2, "the shadow decides by itself")
        assert asks.ask(b"metaget k\r\n").startswith(b"META k age: ")
    assert len(shadow.named("lease-set")) == 2


def test_a_dead_shadow_delays_no_lease(leasing, router):
    server = leasing()
    route = SHADOWED["of a pool"]
    with router({"A": [server], "B": [down()]}, route).raw() as client:
        for number in range(20):
            assert fill(client, f"k{number}", token(client, f"k{number}")) == b"STORED\r\n"


@pytest.mark.parametrize("size", [1, 100_000])
def test_copies_are_given_no_lease(memcached, router, size):
    servers = memcached.several(2)
    route = {
        "type": "OperationSelectorRoute",
        "default_policy": "AllSyncRoute|Pool|A",
        "operation_policies": {"get": "FailoverRoute|Pool|A"},
    }
    started = router({"A": servers}, route, ["--keep-writing=1"])
    with started.raw() as client:
        until(lambda: client.ask(b"set a 0 0 1\r\nv\r\n") == b"STORED\r\n", "the copies are ready")
        for _ in range(3):
            answer = fill(client, "k", 1, b"set evil 0 0 1\r\nx" * size)
            assert answer.startswith(b"SERVER_ERROR "), answer
            assert client.ask(b"lease-get k\r\n") == b"ERROR\r\n"
            assert client.get("a") == b"v"
        assert client.ask(b"set a 0 0 1\r\nw\r\n") == b"STORED\r\n"
    assert [server.get("a") for server in servers] == [b"w", b"w"], (
        "no copy is thought to have missed a write"
    )
    assert [server.get("evil") for server in servers] == [None, None]


def test_pairing_needs_a_name(router, leasing, tmp_path):
    route = failover(["PoolRoute|A", "NullRoute"])
    del route["name"]
    with pytest.raises(Exception, match="needs a `name`"):
        router({"A": [leasing()]}, route)


def test_miss_of_a_cold_server_is_filled_from_the_warm_one_with_its_token(leasing, router):
    cold, warm = leasing(), leasing()
    warm.put("k", b"v", flags=3, expiry=60)
    route = {"type": "WarmUpRoute", "cold": "PoolRoute|A", "warm": "PoolRoute|B", "enable_metaget": True}
    with router({"A": [cold], "B": [warm]}, route).raw() as client:
        assert client.ask(b"lease-get k\r\n") == b"VALUE k 3 1\r\nv\r\nEND\r\n"
        until(lambda: cold.value("k") == b"v", "the miss is filled")
        assert [line.split()[1:] for line in cold.named("lease-set")] == [[b"k", b"100", b"3", b"60", b"1"]]
        got = token(client, "none")
        assert client.ask(b"lease-get none\r\n") == b"NOT_FOUND_HOT none\r\nEND\r\n"
        assert fill(client, "none", got) == b"STORED\r\n"
        assert (cold.value("none"), warm.value("none")) == (b"v", None)
        warm.put("m", b"v", expiry=60)
        assert client.ask(b"metaget m\r\n").startswith(b"META m age: ")
        assert client.get("m") == b"v"
        until(lambda: cold.value("m") == b"v", "the value is added with the time that is left of it")
        assert cold.named("add")[-1].split()[3] == b"60"


def test_staging_is_filled_by_what_servers_with_leases_hold(leasing, router):
    warm, staging = leasing(), leasing()
    warm.put("k", b"v", expiry=60)
    route = {"type": "StagingRoute", "warm": "PoolRoute|A", "staging": "PoolRoute|B"}
    with router({"A": [warm], "B": [staging]}, route).raw() as client:
        assert client.ask(b"lease-get k\r\n") == b"VALUE k 0 1\r\nv\r\nEND\r\n"
        until(lambda: staging.value("k") == b"v", "a read value is added")
        assert fill(client, "l", token(client, "l")) == b"STORED\r\n"
        until(lambda: staging.value("l") == b"v", "a value that fills a miss is set")
        assert not staging.named("lease-set")


def test_large_value_that_fills_a_miss_is_in_the_second_cache(leasing, router, memcached):
    first, second = leasing(), memcached()
    route = {"type": "L1L2SizeSplitRoute", "l1": "PoolRoute|A", "l2": "PoolRoute|B", "threshold": 100}
    large = b"x" * 50_000
    with router({"A": [first], "B": [second]}, route).raw() as client:
        assert fill(client, "k", token(client, "k"), large) == b"STORED\r\n"
        name = first.value("k").decode()
        assert name.isdigit() and second.get(f"k|==|{name}") == large
        assert client.ask(b"lease-get k\r\n") == b"VALUE k 3 50000\r\n" + large + b"\r\nEND\r\n"
        got = token(client, "l")
        second.kill()
        assert fill(client, "l", got, large) == b"STORED\r\n"
        assert first.value("l") == large


def test_a_deleted_large_value_is_a_miss_without_what_stood_in_its_place(leasing, router):
    server = leasing(shows_stale=True)
    route = {"type": "BigValueRoute", "target": "PoolRoute|A", "split_threshold": 10}
    with router({"A": [server]}, route).raw() as client:
        assert fill(client, "k", token(client, "k"), b"x" * 25) == b"STORED\r\n"
        assert fill(client, "small", token(client, "small"), b"y") == b"STORED\r\n"
        for key in ("k", "small"):
            assert client.ask(b"delete %b\r\n" % key.encode()) == b"DELETED\r\n"
        words = client.ask(b"lease-get k\r\n")
        assert words.startswith(b"LVALUE k ") and words.endswith(b" 0 0\r\n\r\nEND\r\n"), words
        got = int(words.split()[2])
        # The stale value of a whole one is shown.
        assert client.ask(b"lease-get small\r\n").endswith(b" 3 1\r\ny\r\nEND\r\n")
        assert fill(client, "k", got, b"new") == b"STORED\r\n"
        assert client.get("k") == b"new"


def test_missing_piece_of_a_large_value_is_a_miss_with_a_token(leasing, router):
    server = leasing()
    route = {"type": "BigValueRoute", "target": "PoolRoute|A", "split_threshold": 10}
    with router({"A": [server]}, route).raw() as client:
        assert fill(client, "k", token(client, "k"), b"x" * 25) == b"STORED\r\n"
        flags = 3 | 0x8000
        whole = b"VALUE k %d 25\r\n" % flags + b"x" * 25 + b"\r\nEND\r\n"
        assert client.ask(b"lease-get k\r\n") == whole
        suffix = server.value("k").decode().split("-")[2]
        assert client.ask(f"delete k:1:{suffix}\r\n".encode()) == b"DELETED\r\n"
        assert fill(client, "k", token(client, "k"), b"new") == b"STORED\r\n"
        assert client.get("k") == b"new"
