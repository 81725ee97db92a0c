"""Orders of a client that orders the same at several proxies, for any protocol: they end by themselves."""

import json

import pytest

from harness import ports, until
from harness.netns import Network, forbidden
from harness.proxy import config
from harness.redis import Connection
from harness.redis import config as redis_config

pytestmark = pytest.mark.either_io


@pytest.fixture
def proxy(memcached, proxima):
    servers = [memcached() for _ in range(3)]
    named = [{"address": server.address, "name": f"m{at}"} for at, server in enumerate(servers)]
    return proxima(config("cache", {"cache": {"servers": named}}))


def put(proxy, name="me", pool="cache", **wish):
    """Status, and what has become of it."""
    status, text = proxy.http(f"/pools/{pool}/orders/{name}", "PUT", body=json.dumps(wish).encode())
    return status, json.loads(text) if status == 200 else text


def drains(proxy):
    return {member["name"] for member in json.loads(proxy.http("/members")[1]) if member.get("drains")}


def test_an_order_is_the_whole_wish_and_ends_by_its_time_or_a_word(proxy):
    status, told = put(proxy, drain=["m0", "m1"], **{"for": "30s"})
    assert status == 200 and drains(proxy) == {"m0", "m1"}
    assert told["order"]["drain"] == ["m0", "m1"] and 29_000 < told["order"]["ends_in_ms"] <= 30_000
    assert told["orders"] == ["me"] and told["pool"] == "cache" and told["writer"] is None
    assert {row["name"]: row["drains"] for row in told["members"]} == {"m0": True, "m1": True, "m2": False}
    assert all(row["online"] and row["why"] is None for row in told["members"]), "those that drain are well"
    assert put(proxy, drain=["m2"], **{"for": "30s"})[0] == 200
    assert drains(proxy) == {"m2"}, "the new wish stands in the place of the old one"
    assert proxy.http("/pools/cache/orders/me", "DELETE")[0] == 200
    assert proxy.http("/pools/cache/orders/me", "DELETE")[0] == 200
    assert drains(proxy) == set()
    assert proxy.http("/pools/cache/orders/me")[0] == 404
    assert put(proxy, drain=["m0"], **{"for": "300ms"})[0] == 200
    until(lambda: drains(proxy) == set(), "nothing stays behind a client that has gone")
    assert json.loads(proxy.http("/pools/cache/orders")[1])["orders"] == []


def test_orders_of_several_add_up_with_what_a_person_has_ordered(proxy):
    assert put(proxy, "one", drain=["m0", "m1"], **{"for": "1m"})[0] == 200
    assert put(proxy, "two", drain=["m1"], **{"for": "1m"})[0] == 200
    assert proxy.http("/orders/drain?pool=cache&member=m1", "POST")[0] == 200
    assert drains(proxy) == {"m0", "m1"}
    by_hand = json.loads(proxy.http("/pools/cache/orders")[1])["by_hand"]
    assert by_hand == [{"order": "drain", "member": "m1"}]
    assert proxy.http("/pools/cache/orders/one", "DELETE")[0] == 200
    assert drains(proxy) == {"m1"}
    assert proxy.http("/orders/drain?pool=cache&member=m1", "DELETE")[0] == 200
    assert drains(proxy) == {"m1"}, "the second client still wishes it"
    assert proxy.http("/pools/cache/orders/two", "DELETE")[0] == 200
    assert drains(proxy) == set()


def test_sessions_that_are_left_are_counted_for_any_protocol(redis_server, proxima):
    server = redis_server()
    proxy = proxima(redis_config([server]))

    def left():
        status, told = put(proxy, pool="redis", drain=[server.address], **{"for": "1m"})
        assert status == 200, told
        return told["members"][0]["sessions"]

    with Connection(proxy.address) as client:
        assert client.ask("SET", "k", "v") == b"+OK\r\n"
        assert client.ask("WATCH", "k") == b"+OK\r\n"
        assert left() == 1
        assert client.ask("UNWATCH") == b"+OK\r\n"
        until(lambda: left() == 0, "it has ended")


@pytest.mark.parametrize(
    ("body", "status", "why"),
    [
        (b"", 400, "write such as"),
        (b"[]", 400, "write such as"),
        (b"nonsense", 400, "write such as"),
        (b"{}", 400, "for"),
        (b'{"for": "30s", "hold": 1}', 400, "bool"),
        (b'{"for": "30s", "drian": []}', 400, "drian"),
        (b'{"for": 30}', 400, "string"),
        (b'{"for": "0s"}', 400, "above 0 and up to 60s"),
        (b'{"for": "-1s"}', 400, "above 0 and up to 60s"),
        (b'{"for": "61s"}', 400, "above 0 and up to 60s"),
        (b'{"for": "1d"}', 400, "above 0 and up to 60s"),
        (b'{"for": "soon"}', 400, "above 0 and up to 60s"),
        (b'{"for": "30s", "drain": ["m0", "m1", "m0"]}', 400, "`m0` twice"),
        (b'{"for": "30s", "drain": ["m0"], "writer": "m0"}', 400, "cannot drain and take writes"),
        (b'{"for": "30s", "drain": ["m0", "m9"]}', 422, "no member `m9`; known are m0, m1, m2"),
        (b'{"for": "30s", "drain": ["m0"], "hold": true}', 422, "not one writer"),
        (b'{"for": "30s", "drain": ["m0"], "writer": "m1"}', 422, "not one writer"),
        (json.dumps({"for": "30s", "drain": [f"m{at}" for at in range(1001)]}).encode(), 400, "1000"),
        (b" " * (1 << 20) + b'{"for": "30s"}', 413, ""),
    ],
)
def test_a_bad_order_is_refused_whole_and_in_words(proxy, body, status, why):
    answer = proxy.http("/pools/cache/orders/me", "PUT", body=body)
    assert answer[0] == status and why in answer[1], answer
    assert drains(proxy) == set() and json.loads(proxy.http("/pools/cache/orders")[1])["orders"] == []


def test_a_member_by_its_pod_needs_a_source_that_knows_pods(memcached, proxima):
    port = memcached().address.rsplit(":", 1)[1]
    proxy = proxima(config("cache", {"cache": {"dns": f"localhost:{port}"}}))
    status, text = put(proxy, drain=["db-2"], **{"for": "30s"})
    assert status == 422 and "write `kubernetes: SERVICE` in place of `dns: SERVICE`" in text


def test_names_and_pools_that_are_not_known_are_told(proxy):
    wish = b'{"for": "30s"}'
    status, text = proxy.http("/pools/other/orders/me", "PUT", body=wish)
    assert status == 404 and "known are cache" in text
    for name in ["a%20b", "a%2Fb", "x" * 254]:
        status, text = proxy.http(f"/pools/cache/orders/{name}", "PUT", body=wish)
        assert status == 400 and "letters, digits" in text
    assert proxy.http("/pools/cache/orders/me", "PUT", {}, wish)[0] == 403, "without X-Proxima"


def test_a_pool_has_64_orders(proxy):
    for number in range(64):
        assert put(proxy, f"n{number}", **{"for": "1m"})[0] == 200
    status, text = put(proxy, "one-more", **{"for": "1m"})
    assert status == 422 and "64 orders already" in text
    assert put(proxy, "n3", **{"for": "1m"})[0] == 200, "one that is there is replaced"


@pytest.mark.skipif(bool(forbidden()), reason="network namespaces cannot be made here")
def test_orders_from_elsewhere_need_a_token(folder, cleanup, io, tmp_path):
    network = Network(1)
    cleanup.callback(network.remove)
    [place] = network.places
    token = tmp_path / "token"
    token.write_text("a-token-of-the-operators")
    headers = {"X-Proxima": "yes", "Authorization": "Bearer a-token-of-the-operators"}
    wish = b'{"for": "30s"}'
    for more, expected in [({}, 403), ({"token_file": str(token)}, 200)]:
        admin = {"address": f"{place.serving}:{ports.free()}", **more}
        made = config("cache", {"cache": {"servers": ["127.0.0.1:1"]}}, admin=admin)
        proxy = place.proxy(made, io, folder)
        cleanup.callback(proxy.stop)
        status, text = proxy.http("/pools/cache/orders/me", "PUT", headers, wish)
        assert status == expected and (status == 200 or "token_file" in text), text
        status, text = proxy.http("/pools/cache/orders/me", "DELETE", headers)
        assert status == expected
        assert proxy.http("/pools/cache/orders")[0] == 200
