"""Operators take members out of use and back, by the admin port."""

import json

import pytest

from harness import until
from harness.proxy import config
from harness.redis import Connection
from harness.redis import config as redis_config

KEYS = [f"k{number}" for number in range(50)]


@pytest.fixture
def drained(memcached, proxima):
    """A proxy before two servers, of which each has its keys; and the servers."""
    servers = [memcached(), memcached()]
    pools = {
        "cache": {
            "servers": [
                {"address": server.address, "name": name}
                for server, name in zip(servers, ["one", "two"], strict=True)
            ]
        }
    }
    proxy = proxima(config({"failover": ["cache", "embedded"]}, pools))
    with proxy.raw() as client:
        for key in KEYS:
            client.set(key, "v")
    return proxy, servers


def orders(proxy):
    status, text = proxy.http("/orders")
    assert status == 200
    return json.loads(text)


def drains(proxy):
    return [member["name"] for member in json.loads(proxy.http("/members")[1]) if member.get("drains")]


def test_a_member_that_drains_gets_nothing_new_until_that_is_taken_back(drained):
    proxy, servers = drained
    status, text = proxy.http("/orders/drain?pool=cache&member=one", "POST")
    assert status == 200, text
    [order] = json.loads(text)
    assert (order["pool"], order["member"], order["order"]) == ("cache", "one", "drain")
    assert "ends_in" not in order
    assert drains(proxy) == ["one"]
    until(lambda: not orders(proxy)[0]["has_connections"], "its connections are closed")
    asked = servers[0].stat("cmd_get")
    with proxy.raw() as client:
        found = sum(client.get(key) is not None for key in KEYS)
    assert 0 < found < len(KEYS), "the keys of the other one are found"
    assert servers[0].stat("cmd_get") == asked
    # Repeated, by its address, it is the same order.
    assert proxy.http(f"/orders/drain?pool=cache&member={servers[0].address}", "POST")[0] == 200
    assert len(orders(proxy)) == 1
    assert proxy.http("/orders/drain?pool=cache&member=one", "DELETE") == (200, "[]")
    assert proxy.http("/orders/drain?pool=cache&member=one", "DELETE") == (200, "[]")
    with proxy.raw() as client:
        assert all(client.get(key) == b"v" for key in KEYS)


def test_an_order_with_a_time_ends_by_itself_and_the_newest_counts(drained):
    proxy, _ = drained
    assert proxy.http("/orders/drain?pool=cache&member=one&for=400ms", "POST")[0] == 200
    assert proxy.http("/orders/drain?pool=cache&member=two&for=1h", "POST")[0] == 200
    assert 0 < orders(proxy)[0]["ends_in"] <= 0.4
    # The end of the first order is none of the second.
    assert proxy.http("/orders/drain?pool=cache&member=one&for=900ms", "POST")[0] == 200
    until(lambda: drains(proxy) == ["two"], "the first one serves again")
    [order] = orders(proxy)
    assert order["member"] == "two" and 3500 < order["ends_in"] < 3600
    assert order["since"] > 0.8


def test_an_order_that_cannot_be_carried_out_says_why(drained):
    proxy, _ = drained
    for query, status, text in [
        ("pool=store&member=one", 422, "there is no pool `store`; known are cache\n"),
        ("pool=cache&member=three", 422, "pool cache has no member `three`; known are one, two\n"),
        ("pool=cache", 400, "which member? ?pool=NAME&member=NAME\n"),
        ("pool=cache&member=one&for=soon", 400, "`for=soon`: expected a time above 0, such as 10m\n"),
        ("pool=cache&member=one&for=0s", 400, "`for=0s`: expected a time above 0, such as 10m\n"),
        ("pool=cache&member=one&time=1s", 400, "there is no `time` here; known are pool, member, for\n"),
    ]:
        assert proxy.http(f"/orders/drain?{query}", "POST") == (status, text)
    assert orders(proxy) == []


def test_only_a_pool_with_one_writer_is_held_or_has_its_writer_moved(drained):
    proxy, _ = drained
    why = "pool cache has not one writer: all its members take writes\n"
    assert proxy.http("/orders/hold?pool=cache&for=1s", "POST") == (422, why)
    assert proxy.http("/orders/writer?pool=cache&member=one", "POST") == (422, why)
    assert proxy.http("/orders/hold", "POST") == (400, "which pool? ?pool=NAME\n")
    unknown = "there is no `for` here; known are pool\n"
    assert proxy.http("/orders/hold?pool=cache&for=1s", "DELETE") == (400, unknown)
    for order in ["hold", "writer"]:
        assert proxy.http(f"/orders/{order}?pool=cache", "DELETE") == (200, "[]")
    assert orders(proxy) == []


def test_a_member_in_two_pools_drains_in_one(memcached, proxima):
    server = memcached()
    pools = {name: {"servers": [server.address]} for name in ["a", "b"]}
    proxy = proxima(config({"failover": ["a", "b"]}, pools))
    assert proxy.http(f"/orders/drain?pool=a&member={server.address}", "POST")[0] == 200
    with proxy.raw() as client:
        client.set("k", "v")
        assert client.get("k") == b"v"
        assert proxy.http(f"/orders/drain?pool=b&member={server.address}", "POST")[0] == 200
        with proxy.raw() as raw:
            raw.send(b"get k\r\n")
            assert (
                raw.line()
                == b"SERVER_ERROR " + server.address.encode() + b": it drains, as an operator has ordered\r\n"
            )


def test_an_order_outlives_a_reload_and_ends_with_its_member(drained, memcached):
    proxy, servers = drained
    assert proxy.http("/orders/drain?pool=cache&member=one", "POST")[0] == 200
    named = [
        {"address": server.address, "name": name}
        for server, name in zip(servers, ["one", "two"], strict=True)
    ]

    def reload(servers, **options):
        pools = {"cache": {"servers": servers, **options}}
        proxy.write({**proxy.config, "pools": pools})
        assert proxy.reload()[0] == 200

    reload(named, timeout="700ms")
    assert drains(proxy) == ["one"]
    reload(named[1:])
    assert orders(proxy) == []
    reload(named)
    assert drains(proxy) == []


def test_a_copy_does_not_drain(memcached, proxima):
    servers = [memcached().address for _ in range(2)]
    proxy = proxima(config("copies", {"copies": {"servers": servers, "replicated": True}}))
    status, text = proxy.http(f"/orders/drain?pool=copies&member={servers[0]}", "POST")
    assert status == 422
    assert "takes part in every write" in text


def test_a_transaction_under_way_is_ended_by_its_client_and_not_by_the_drain(redis_server, proxima):
    server = redis_server()
    proxy = proxima(redis_config([server]))
    with Connection(proxy.address) as client:
        assert client.ask("MULTI") == b"+OK\r\n"
        assert client.ask("SET", "k", "v") == b"+QUEUED\r\n"
        assert proxy.http(f"/orders/drain?pool=redis&member={server.address}", "POST")[0] == 200
        assert orders(proxy)[0]["has_connections"]
        assert client.ask("INCR", "n") == b"+QUEUED\r\n"
        assert client.ask("EXEC") == b"*2\r\n+OK\r\n:1\r\n"
        until(lambda: not orders(proxy)[0]["has_connections"], "nothing is left")
        assert client.ask("GET", "k").startswith(b"-")
        assert proxy.http(f"/orders/drain?pool=redis&member={server.address}", "DELETE")[0] == 200
        assert client.ask("GET", "k") == b"$1\r\nv\r\n"
