"""Large requests that go to every server, or are divided among them."""

import pytest

from harness.redis import Connection, array, config

pytestmark = pytest.mark.either_io

LARGE = 200_000
LIBRARY = "#!lua name=large\n--{}\nredis.register_function('f', function() return 7 end)"

REQUESTS = {
    "SCRIPT LOAD": ("SCRIPT", "LOAD", "return 7 --" + "x" * LARGE),
    "SCRIPT EXISTS": ("SCRIPT", "EXISTS", *(f"{number:040}" for number in range(5000))),
    "FUNCTION LOAD": ("FUNCTION", "LOAD", "REPLACE", LIBRARY.format("x" * LARGE)),
    "KEYS": ("KEYS", "x" * LARGE),
    "PUBSUB CHANNELS": ("PUBSUB", "CHANNELS", "x" * LARGE),
    "PUBSUB NUMSUB": ("PUBSUB", "NUMSUB", *(f"channel:{number}" for number in range(10_000))),
    "EVAL": ("EVAL", "return 7 --" + "x" * LARGE, 0),
    "EVAL of a key": ("EVAL", "return 7 --" + "x" * LARGE, 1, "k"),
    "EXISTS": ("EXISTS", *(f"key:{number}" for number in range(20_000))),
    "ECHO": ("ECHO", "x" * LARGE),
    "PUBLISH": ("PUBLISH", "channel", "x" * LARGE),
}


@pytest.mark.parametrize("words", REQUESTS.values(), ids=REQUESTS)
@pytest.mark.parametrize("servers", [1, 3], ids=["one server", "several servers"])
def test_a_large_request_is_answered_as_by_a_server(redis_server, proxima, servers, words):
    proxy = proxima(config(redis_server.several(servers)))
    with redis_server().connect() as direct, Connection(proxy.address) as client:
        expected = direct.ask(*words)
        client.send(array("SET", "a", "1") + array(*words) + array("GET", "a"))
        assert client.reply() == b"+OK\r\n"
        assert client.reply() == expected
        assert client.reply() == b"$1\r\n1\r\n"


def test_a_scan_with_a_large_pattern_walks_all_servers(redis_server, proxima):
    with Connection(proxima(config(redis_server.several(3))).address) as client:
        keys = {f"key:{number}".encode() for number in range(30)}
        client.ask("MSET", *(word for key in keys for word in (key, "v")))
        found, cursor = set(), b"0"
        while not found or cursor != b"0":
            _, _, cursor, *rest = client.ask("SCAN", cursor, "MATCH", "*" * LARGE, "COUNT", 100).split(
                b"\r\n"
            )
            found.update(rest[2::2])
        assert found == keys


def test_a_large_script_is_at_every_server_and_may_come_in_pieces(redis_server, proxima):
    servers = redis_server.several(3)
    message = array("SCRIPT", "LOAD", "return 7 --" + "x" * LARGE)
    with Connection(proxima(config(servers)).address) as client:
        for at in range(0, len(message), 30_000):
            client.send(message[at : at + 30_000])
            assert at + 30_000 >= len(message) or client.is_silent(0.01)
        number = client.reply().split(b"\r\n")[1]
    for server in servers:
        assert server.ask("SCRIPT", "EXISTS", number) == b"*1\r\n:1\r\n"


def test_a_large_command_without_a_key_is_queued_at_the_only_server(redis_server, proxima):
    with Connection(proxima(config([redis_server()])).address) as client:
        assert client.ask("MULTI") == b"+OK\r\n"
        assert client.ask(*REQUESTS["SCRIPT EXISTS"]) == b"+QUEUED\r\n"
        assert client.ask("EXEC") == b"*1\r\n*5000\r\n" + b":0\r\n" * 5000


def test_of_several_stores_the_last_one_decides_where_a_sort_goes(redis_server, proxima):
    servers = redis_server.several(2)
    with Connection(proxima(config(servers)).address) as client:
        keys = [f"key:{number}" for number in range(20)]
        client.ask("MSET", *(word for key in keys for word in (key, "v")))
        one, two = ([key for key in keys if server.ask("EXISTS", key) == b":1\r\n"] for server in servers)
        client.ask("FLUSHALL")
        client.ask("RPUSH", one[0], 2, 1)
        assert client.ask("SORT", one[0], "STORE", two[0], "STORE", one[1]) == b":2\r\n"
        assert client.ask("SORT", one[0], "STORE", one[2], "STORE", two[0]).startswith(b"-CROSSSLOT ")
        assert client.ask("EXISTS", one[1], one[2], two[0]) == b":1\r\n"


@pytest.mark.parametrize("servers", [1, 2], ids=["one server", "several servers"])
def test_unwatch_is_queued_in_a_transaction_as_by_a_server(redis_server, proxima, servers):
    proxy = proxima(config(redis_server.several(servers)))
    one, unwatch = array("SET", "k", "1"), array("UNWATCH")
    for parts in (
        [array("MULTI") + unwatch + one + array("EXEC")],
        [array("MULTI"), unwatch, one, array("EXEC")],
        [array("WATCH", "k"), array("MULTI"), unwatch, one, unwatch, array("EXEC")],
        [array("MULTI"), unwatch, array("EXEC")],
        [array("MULTI"), unwatch, array("DISCARD")],
    ):
        heard = []
        for address in (redis_server().address, proxy.address):
            with Connection(address) as client:
                heard.append(b"")
                for part in parts:
                    client.send(part)
                    heard[-1] += b"".join(client.reply() for _ in range(part.count(b"*")))
                assert client.ask("GET", "k") == client.ask("GET", "k")
        assert heard[0] == heard[1], parts
