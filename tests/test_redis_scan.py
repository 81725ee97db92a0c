"""SCAN and PUBSUB over several servers."""

import pytest

from harness import until
from harness.redis import Connection, config

pytestmark = pytest.mark.either_io


@pytest.fixture
def four(redis_server):
    return redis_server.several(4)


def page(client, cursor, *options):
    """The next cursor, and the keys that came with it."""
    reply = client.ask("SCAN", cursor, *options)
    lines = reply.split(b"\r\n")
    assert lines[0] == b"*2", reply
    return int(lines[2]), lines[5::2]


def walk(client, *options, at=0):
    """Every key from this cursor on, with repetitions."""
    found = []
    while True:
        at, keys = page(client, at, *options)
        assert 0 <= at < 1 << 63
        found += keys
        if at == 0:
            return found


def test_scan_finds_every_key_of_every_server(four, proxima):
    proxy = proxima(config(four))
    keys = {b"key:%d" % n for n in range(1000)}
    with Connection(proxy.address) as client:
        client.ask("MSET", *(word for key in keys for word in (key, "v")))
        client.ask("LPUSH", "a-list", "x")
        for server in four:
            assert int(server.ask("DBSIZE")[1:]) > 100
        assert set(walk(client)) == keys | {b"a-list"}
        assert set(walk(client, "COUNT", 7)) == keys | {b"a-list"}
        assert set(walk(client, "MATCH", "key:1*", "COUNT", 100)) == {
            key for key in keys if key.startswith(b"key:1")
        }
        assert walk(client, "TYPE", "list") == [b"a-list"]
        assert client.ask("SCAN", "0", "COUNT", "x") == four[0].ask("SCAN", "0", "COUNT", "x")


def test_a_cursor_is_good_at_another_proxy_and_after_a_restart(four, proxima):
    settings = config(four)
    first = proxima(settings)
    keys = {b"key:%d" % n for n in range(400)}
    with Connection(first.address) as client:
        client.ask("MSET", *(word for key in keys for word in (key, "v")))
        at, found = 0, []
        for _ in range(20):
            at, more = page(client, at, "COUNT", 5)
            found += more
    assert at > 0
    turned = config(list(reversed(four)))
    second = proxima(turned)
    with Connection(second.address) as client:
        assert set(found + walk(client, at=at)) == keys


def test_a_server_that_has_left_ends_its_part(four, proxima):
    proxy = proxima(config(four))
    # Only the last of the servers has keys: they are found however many others leave before.
    with Connection(proxy.address) as client:
        client.ask("MSET", *(word for n in range(400) for word in (f"key:{n}", "v")))
        at, seen = page(client, 0, "COUNT", 5)
        [left] = [server for server in four if server.ask("EXISTS", seen[0]) == b":1\r\n"]
        stay = [server for server in four if server is not left]
        proxy.config["pools"]["redis"]["servers"] = [server.address for server in stay]
        proxy.write(proxy.config)
        until(lambda: proxy.metric("pool_members", pool="redis") == 3, "it has left")
        keys = {key for server in stay for key in walk(server.connect())}
        assert set(walk(client, at=at)) == keys


def test_cursors_that_a_client_makes_up_are_refused_or_end(four, proxima):
    with Connection(proxima(config(four)).address) as client:
        for cursor in (
            "",
            "x",
            "-1",
            "1",
            "99999",
            2**48 - 1,
            2**63,
            2**64 - 1,
            2**64,
            10**40,
            "0x10",
            "1.5",
            "00",
        ):
            assert client.ask("SCAN", cursor) == b"-ERR invalid cursor\r\n", cursor
        for cursor in (2**63 - 1, 1 << 48, (1 << 48) + 12345, (32767 << 48), 12345 << 48 | 1 << 47):
            assert client.ask("SCAN", cursor).startswith(b"*2\r\n"), cursor
        assert client.ask("PING") == b"+PONG\r\n"


def test_the_only_servers_cursors_are_its_own(redis_server, proxima):
    server = redis_server()
    with Connection(proxima(config([server])).address) as client, server.connect() as direct:
        client.ask("MSET", *(word for n in range(400) for word in (f"key:{n}", "v")))
        at = 0
        while True:
            ours, theirs = page(client, at), page(direct, at)
            assert ours == theirs
            if (at := ours[0]) == 0:
                break
        for cursor in ("x", "-1", 2**64 - 1, 2**64):
            assert client.ask("SCAN", cursor) == direct.ask("SCAN", cursor)


def test_sort_with_patterns_is_refused_where_their_keys_may_be_elsewhere(four, proxima):
    with Connection(proxima(config(four)).address) as client:
        client.ask("RPUSH", "l", "2", "1")
        assert client.ask("SORT", "l") == b"*2\r\n$1\r\n1\r\n$1\r\n2\r\n"
        assert client.ask("SORT", "l", "BY", "nosort", "GET", "#") == b"*2\r\n$1\r\n2\r\n$1\r\n1\r\n"
        for words in (
            ("BY", "w_*"),
            ("GET", "o_*"),
            ("GET", "#", "GET", "o_*->f"),
            ("BY", "w_*", "STORE", "l"),
        ):
            assert client.ask("SORT", "l", *words).startswith(b"-CROSSSLOT "), words
        assert client.ask("SORT_RO", "l", "GET", "o_*").startswith(b"-CROSSSLOT ")
        assert client.ask("MULTI") == b"+OK\r\n"
        assert client.ask("SORT", "l", "GET", "o_*").startswith(b"-CROSSSLOT ")
        assert client.ask("EXEC").startswith(b"-EXECABORT ")


def test_pubsub_counts_the_subscribers_of_the_whole_pool(four, proxima):
    proxy = proxima(config(four))
    channels = [f"channel:{n}" for n in range(20)]
    with (
        Connection(proxy.address) as client,
        Connection(proxy.address) as one,
        Connection(proxy.address) as other,
    ):
        for subscriber, names in ((one, channels), (other, channels[:5])):
            for name in names:
                assert b"subscribe" in subscriber.ask("SUBSCRIBE", name)
        assert b"psubscribe" in one.ask("PSUBSCRIBE", "channel:*")
        assert b"psubscribe" in other.ask("PSUBSCRIBE", "other:*")
        asked = client.ask("PUBSUB", "NUMSUB", *channels, "none").split(b"\r\n")
        counts = dict(zip(asked[2::3], asked[3::3], strict=False))
        assert counts == {
            **{name.encode(): b":2" if name in channels[:5] else b":1" for name in channels},
            b"none": b":0",
        }
        listed = client.ask("PUBSUB", "CHANNELS").split(b"\r\n")
        assert set(listed[2::2]) == {name.encode() for name in channels}
        assert set(client.ask("PUBSUB", "CHANNELS", "channel:1*").split(b"\r\n")[2::2]) == {
            name.encode() for name in channels if name.startswith("channel:1")
        }
        assert client.ask("PUBSUB", "NUMPAT") == b":2\r\n"
        assert client.ask("PUBSUB", "SHARDCHANNELS") == b"*0\r\n"
        assert client.ask("PUBSUB", "SHARDNUMSUB", "a") == b"*2\r\n$1\r\na\r\n:0\r\n"
