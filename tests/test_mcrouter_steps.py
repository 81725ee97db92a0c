"""Routes of mcrouter that serve a request in several steps, with real servers."""

import pytest

from harness import until
from harness.mcrouter import stored

pytestmark = pytest.mark.either_io


def test_large_values_of_every_route_are_split_by_an_option(memcached, mcrouter):
    servers = memcached.several(2)
    options = ("--big-value-split-threshold=1000", "--big-value-batch-size=3", "--big-value-hide-reply-flag")
    router = mcrouter("PoolRoute|A", servers, *options, "--server-timeout=500")
    value = "x" * 100_000
    with router.raw() as client:
        client.set("k", value)
        client.send(b"get /././k\r\n")
        assert client.line() == b"VALUE /././k 0 100000\r\n"
        assert client.exactly(100_002) == value.encode() + b"\r\n"
        assert client.line() == b"END\r\n"
    assert sorted(server.get("k") is None for server in servers) == [False, True]
    assert sum(server.stat("curr_items") for server in servers) == 101


def test_cold_server_is_warmed_up(memcached, mcrouter):
    cold, warm = memcached.several(2)
    route = {"type": "WarmUpRoute", "cold": "PoolRoute|A", "warm": "PoolRoute|B", "exptime": 2}
    router = mcrouter(route, [cold], B={"servers": [warm.address]})
    with router.raw() as client:
        warm.set("k", "1")
        assert client.get("k") == b"1"
        until(lambda: cold.get("k") == b"1", "the value is added")
        assert client.ask(b"append x 0 0 1\r\n1\r\n") == b"NOT_STORED\r\n"
        client.set("y", "1")
        assert stored(warm, ["x", "y"]) == [] and stored(cold, ["y"]) == ["y"]
        warm.set("z", "5")
        client.send(b"gets z\r\n")
        assert client.line().startswith(b"VALUE z 0 1 ")
        assert [client.line(), client.line()] == [b"5\r\n", b"END\r\n"]
        assert cold.get("z") == b"5"
        assert client.ask(b"incr z 1\r\n") == b"6\r\n"
        until(lambda: cold.get("k") is None, "it expires as configured")


def test_warmed_up_value_expires_as_in_the_warm_server(memcached, mcrouter):
    cold, warm = memcached.several(2)
    route = {"type": "WarmUpRoute", "cold": "PoolRoute|A", "warm": "PoolRoute|B", "enable_metaget": True}
    router = mcrouter(route, [cold], B={"servers": [warm.address]})
    with router.raw() as client, warm.raw() as direct:
        assert direct.ask(b"set k 0 2 1\r\n1\r\n") == b"STORED\r\n"
        assert client.get("k") == b"1"
        until(lambda: cold.get("k") == b"1", "the value is added")
        until(lambda: cold.get("k") is None, "it expires")


def test_staging_is_prepared_in_the_background(memcached, mcrouter):
    warm, staging = memcached.several(2)
    route = {"type": "StagingRoute", "warm": "PoolRoute|A", "staging": "PoolRoute|B"}
    router = mcrouter(route, [warm], B={"servers": [staging.address]})
    with router.raw() as client:
        warm.set("k", "1")
        assert client.get("k") == b"1"
        until(lambda: staging.get("k") == b"1", "a read value is added")
        client.set("l", "2")
        until(lambda: staging.get("l") == b"2", "a stored value is set")
        staging.kill()
        client.set("m", "3")
        assert client.get("m") == b"3"


def test_second_cache_fills_the_first_and_misses_are_remembered(memcached, mcrouter):
    first, second = memcached.several(2)
    route = {
        "type": "L1L2CacheRoute",
        "l1": "PoolRoute|A",
        "l2": "PoolRoute|B",
        "upgradingL1Exptime": 60,
        "ncacheExptime": 60,
        "ncacheUpdatePeriod": 3,
    }
    router = mcrouter(route, [first], B={"servers": [second.address]})
    with router.raw() as client:
        second.set("k", "1")
        assert client.get("k") == b"1"
        until(lambda: first.get("k") == b"1", "the first cache has it")
        assert client.get("none") is None
        until(lambda: first.get("none") == b"ncache", "the miss is remembered")
        second.set("none", "2")
        assert [client.get("none") for _ in range(3)] == [None] * 3
        until(lambda: client.get("none") == b"2", "the third read has looked it up again")
        assert client.ask(b"gat 100 nobody\r\n") == b"END\r\n"
        until(lambda: first.get("nobody") == b"ncache", "the miss of a gat is remembered, too")
        assert client.ask(b"gat 100 nobody\r\n") == b"END\r\n"
        first.kill()
        assert client.get("k") == b"1"
        assert client.ask(b"gat 100 k\r\n") == b"VALUE k 0 1\r\n1\r\nEND\r\n"
        assert client.ask(b"gats 100 k\r\n").startswith(b"VALUE k 0 1 ")
        second.kill()
        assert client.ask(b"get k\r\n").startswith(b"SERVER_ERROR ")


def test_large_values_are_in_the_second_cache(memcached, mcrouter):
    first, second = memcached.several(2)
    route = {"type": "L1L2SizeSplitRoute", "l1": "PoolRoute|A", "l2": "PoolRoute|B", "threshold": 100}
    router = mcrouter(route, [first], B={"servers": [second.address]})
    large = "x" * 100_000
    with router.raw() as client:
        client.set("small", "1")
        client.set("large", large)
        assert first.get("small") == b"1" and second.get("small") is None
        assert first.get("large") == b"" and second.get("large") == large.encode()
        assert client.get("small") == b"1" and client.get("large") == large.encode()
        with second.raw() as direct:
            assert direct.ask(b"delete large\r\n") == b"DELETED\r\n"
        assert client.ask(b"gets large\r\n") == b"END\r\n"
        assert first.get("large") is None, "the marker is removed"
        client.set("large", large)
        second.kill()
        gone = b"SERVER_ERROR Server unavailable\r\n"
        assert client.ask(b"get large\r\n") == gone
        until(lambda: first.get("large") is None, "the marker is removed")
        assert client.ask(b"set large 0 0 %d\r\n%b\r\n" % (len(large), large.encode())) == gone
        assert client.ask(b"set small 0 0 1\r\n2\r\n") == b"STORED\r\n"


def test_values_of_21_mb_are_stored_and_read_in_pieces(memcached, mcrouter):
    servers = memcached.several(2, memory=256)
    route = {"type": "BigValueRoute", "target": "PoolRoute|A", "split_threshold": 5000, "batch_size": 2}
    router = mcrouter(route, servers)
    value = bytes(97 + number % 23 for number in range(1000)) * 21_000
    with router.raw() as client:
        client.send(b"set k 7 0 %d\r\n%b\r\n" % (len(value), value))
        assert client.line() == b"STORED\r\n"
        client.send(b"get k\r\n")
        assert client.line() == b"VALUE k %d %d\r\n" % (7 | 0x8000, len(value))
        assert client.exactly(len(value) + 2) == value + b"\r\n"
        assert client.line() == b"END\r\n"
        for server in servers:
            with server.raw() as direct:
                assert direct.ask(b"flush_all\r\n") == b"OK\r\n"
        client.send(b"set hand 32768 0 8\r\n1-2-1234\r\n")
        assert client.line() == b"STORED\r\n"
        assert client.get("hand") is None
        client.set("hand:0:1234", "ab")
        client.set("hand:1:1234", "cd")
        client.send(b"get hand\r\n")
        assert [client.line() for _ in range(3)] == [b"VALUE hand 32768 4\r\n", b"abcd\r\n", b"END\r\n"]


def test_fresh_server_gets_a_part_of_the_reads(memcached, mcrouter):
    fresh, other = memcached.several(2)
    slow = {"failoverTarget": "PoolRoute|B", "settings": {"min_requests": 50}}
    router = mcrouter(
        {"type": "PoolRoute", "pool": "A", "slow_warmup": slow}, [fresh], B={"servers": [other.address]}
    )
    with router.raw() as client:
        for number in range(1050):
            assert client.get(f"k{number}") is None
    assert 50 + 50 < fresh.stat("cmd_get") < 50 + 200
    assert fresh.stat("cmd_get") + other.stat("cmd_get") == 1050
