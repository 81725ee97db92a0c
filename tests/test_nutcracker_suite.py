"""What twemproxy's own tests ask of a proxy, asked of its front door here, with one worker and with four.

They are tests of our own for the same behaviour. `test_nutcracker.py` has the process (daemon, log, signals)
and compares statistics with the real `nutcracker`; `test_nutcracker_replies.py` compares replies.
"""

import random
import time

import pytest

from harness import ports, until
from harness.nutcracker import counts, entry
from harness.raw import Raw
from harness.redis import Closed, Connection, array

pytestmark = pytest.mark.either_io

KEYS = 1_000
LONGEST = 512 - 48 - 1
"""The longest key that twemproxy takes with `-m 512`."""


@pytest.fixture(params=[1, 4], ids=["one-worker", "four-workers"])
def pool(request, door):
    """Starts the door with one pool as those tests have it: two named servers, and small buffers."""

    def start(servers, **keys):
        shape = {
            "listen": f"0.0.0.0:{ports.free()}",
            "hash": "fnv1a_64",
            "distribution": "modula",
            "preconnect": True,
            "auto_eject_hosts": False,
            # On a busy machine a server may be late. What is asked of time-outs is asked apart.
            "timeout": 30_000,
            "backlog": 512,
            "client_connections": 0,
            "server_connections": 1,
            "server_retry_timeout": 2_000,
            "server_failure_limit": 2,
            "servers": [entry(server, 1, f"server{number}") for number, server in enumerate(servers)],
            **keys,
        }
        proxy = door({"p": shape}, "-m", "512", "-v", "7", workers=request.param)
        proxy.addresses = [shape["listen"].replace("0.0.0.0", "127.0.0.1")]
        return proxy

    return start


@pytest.fixture
def redis(pool, redis_server):
    """The door before two Redis servers, and these."""
    servers = redis_server.several(2)
    return pool(servers, redis=True), servers


@pytest.fixture
def client(redis):
    with Connection(redis[0].address) as client:
        yield client


def bulk(text):
    return b"$%d\r\n%b\r\n" % (len(text), text)


def bulks(texts):
    return b"*%d\r\n" % len(texts) + b"".join(b"$-1\r\n" if text is None else bulk(text) for text in texts)


def keys_of_both(servers, proxy):
    """A key of each server."""
    found = {}
    with Connection(proxy.address) as client:
        for number in range(100):
            client.ask("SET", f"probe{number}", "v")
    for which, server in enumerate(servers):
        found[which] = server.ask("KEYS", "probe*").split(b"\r\n")[2]
        server.ask("FLUSHALL")
    return [found[0], found[1]]


def test_simple_commands_answer_as_the_server_does(client):
    assert client.ask("SET", "k", "v") == b"+OK\r\n"
    assert client.ask("GET", "k") == bulk(b"v")
    assert client.ask("EXISTS", "k") == b":1\r\n"
    assert client.ask("EXISTS", "none") == b":0\r\n"
    assert client.ask("RPUSH", "list", "a", "b", "c", "d") == b":4\r\n"
    assert client.ask("LINSERT", "list", "BEFORE", "c", "x") == b":5\r\n"
    assert client.ask("LPUSH", "list", "first") == b":6\r\n"
    assert client.ask("LRANGE", "list", "0", "-1") == bulks([b"first", b"a", b"b", b"x", b"c", b"d"])
    assert client.ask("EVAL", "return {KEYS[1], ARGV[1]}", "1", "k", "x") == bulks([b"k", b"x"])
    assert client.ask("GET", "") == b"$-1\r\n"
    assert client.ask("SET", "", "of nothing") == b"+OK\r\n"
    assert client.ask("MSET", "", "", "e", "") == b"+OK\r\n"
    assert client.ask("MGET", "", "e", "none") == bulks([b"", b"", None])


def test_replies_nested_twenty_deep_are_passed_on(client):
    deep = "1"
    for _ in range(20):
        deep = f"{{{deep}, 'x'}}"
    assert client.ask("EVAL", f"return {deep}", "1", "k") == b"*2\r\n" * 20 + b":1\r\n" + bulk(b"x") * 20


def scanned(client, command, key, *rest):
    """All that a scan of a key finds, and how many replies that took."""
    cursor, found, replies = b"0", [], 0
    while True:
        reply = client.ask(command, key, cursor, *rest).split(b"\r\n")
        cursor, replies = reply[2], replies + 1
        found += reply[5::2]
        if cursor == b"0":
            return [each for each in found if each], replies


def test_scans_of_a_key_find_all_that_the_server_has(redis, client):
    fields = [b"field-%04d-" % number + b"f" * 100 for number in range(1_000)]
    client.ask("HSET", "hash", *(word for field in fields for word in (field, b"v")))
    found, replies = scanned(client, "HSCAN", "hash")
    assert sorted(found[::2]) == fields and replies > 10
    client.ask("SADD", "set", *(f"{number}" for number in range(1_000)))
    found, replies = scanned(client, "SSCAN", "set", "COUNT", "50")
    assert sorted(map(int, found)) == list(range(1_000)) and replies > 5
    client.ask("ZADD", "sorted", *(word for number in range(200) for word in (number, f"m{number}")))
    found, _ = scanned(client, "ZSCAN", "sorted", "MATCH", "m*5", "COUNT", "1000")
    assert sorted(found[::2]) == sorted(b"m%d" % number for number in range(5, 200, 10))


def test_cursors_of_64_bits_pass_unchanged(pool, scripted):
    cursor, asked = b"%d" % (2**64 - 1), []

    def scans(sock):
        while request := sock.recv(4096):
            asked.append(request)
            sock.sendall(b"*2\r\n" + bulk(cursor) + b"*0\r\n")

    proxy = pool([scripted(scans, version=None)], redis=True, preconnect=False)
    with Connection(proxy.address) as client:
        assert client.ask("HSCAN", "k", cursor) == b"*2\r\n" + bulk(cursor) + b"*0\r\n"
    assert array("HSCAN", "k", cursor) in asked


def test_requests_that_come_byte_by_byte_are_answered(client):
    for byte in array("PING"):
        client.send(bytes([byte]))
        time.sleep(0.1)
    assert client.reply() == b"+PONG\r\n"


@pytest.mark.parametrize(
    "request_",
    [
        array("QUIT"),
        b"\r\n",
        b"*3\r\n*abcde\r\n",
        array("MSET", "a", "1", "b"),
        array("MSET", "a"),
        array("GET"),
        array("MSETNX", "a", "1"),
    ],
    ids=["quit", "empty-line", "no-length", "odd-mset", "mset-of-a-key", "get-of-nothing", "msetnx"],
)
def test_what_twemproxy_closes_is_closed_without_a_reply(pool, request_):
    proxy = pool([ports.address(), ports.address()], redis=True)
    with Connection(proxy.address) as client:
        client.send(request_)
        assert client.rest() == b""


@pytest.mark.parametrize("count", [1, 2, 10, KEYS])
def test_many_keys_are_written_read_and_deleted_at_once(redis, client, count):
    _, servers = redis
    keys = [b"key-%d" % number for number in range(count)]
    asked = keys + [b"none-%d" % number for number in range(count)]
    random.Random(count).shuffle(asked)
    assert client.ask("MSET", *(word for key in keys for word in (key, b"value of " + key))) == b"+OK\r\n"
    assert sum(int(server.ask("DBSIZE")[1:]) for server in servers) == count
    known = set(keys)
    assert client.ask("MGET", *asked) == bulks(
        [b"value of " + key if key in known else None for key in asked]
    )
    assert client.ask("DEL", *asked) == b":%d\r\n" % count
    assert client.ask("MGET", *asked) == bulks([None] * len(asked))


@pytest.mark.parametrize("size", [LONGEST, LONGEST - 1])
def test_keys_of_the_greatest_length_are_served(client, size):
    keys = [b"%d" % number * size for number in range(4)]
    assert client.ask("MSET", *(word for key in keys for word in (key, b"v"))) == b"+OK\r\n"
    assert client.ask("MGET", *keys) == bulks([b"v"] * 4)
    assert client.ask("GET", keys[0]) == bulk(b"v")
    assert client.ask("DEL", *keys) == b":4\r\n"


def test_values_of_16_mib_and_empty_ones_are_served_together(redis):
    proxy, _ = redis
    large = b"v" * (16 << 20)
    keys = [b"key-%d" % number for number in range(10)]
    values = [large, b""] * 5
    with Raw(proxy.address) as client:
        client.send(array("MSET", *(word for pair in zip(keys, values) for word in pair)))
        assert client.line() == b"+OK\r\n"
        client.send(array("MGET", *keys))
        expected = bulks(values)
        assert client.exactly(len(expected)) == expected
        client.send(array("DEL", *keys))
        assert client.line() == b":10\r\n"


def test_pipelines_are_answered_in_order_and_an_error_in_them_harms_no_other(redis, client):
    keys = [b"key-%d" % number for number in range(KEYS)]
    client.send(
        b"".join(array("SET", key, key) for key in keys)
        + b"".join(array("GET", key) for key in keys)
        + array("MGET", *keys)
    )
    expected = b"+OK\r\n" * KEYS + b"".join(bulk(key) for key in keys) + bulks(keys)
    assert client.take(len(expected)) == expected
    client.send(
        array("SET", "a", "1")
        + array("LPUSH", "a", "x")
        + array("GET", "a")
        + array("ZREM", "a")
        + array("GET", "a")
    )
    replies = [client.reply() for _ in range(5)]
    assert replies[0::2] == [b"+OK\r\n", bulk(b"1"), bulk(b"1")]
    assert replies[1].startswith(b"-WRONGTYPE ") and replies[3].startswith(b"-ERR wrong number of arguments")


def test_a_script_that_runs_longer_than_the_time_out_is_told_so(pool, redis_server):
    proxy = pool(redis_server.several(2), redis=True, timeout=400)
    script = "local e = redis.call('TIME')[1] + 2 repeat until redis.call('TIME')[1] + 0 > e"
    with Connection(proxy.address) as client:
        assert client.ask("EVAL", script, "1", "k") == b"-ERR Connection timed out\r\n"


LOST = (b"Connection refused", b"reset by peer", b"Broken pipe")


def test_servers_that_are_stopped_are_told_of_and_the_other_goes_on(redis):
    proxy, servers = redis
    keys = keys_of_both(servers, proxy)

    def says(client, words, texts):
        answer = client.ask(*words)
        assert answer.startswith(b"-ERR ") and any(text in answer for text in texts), (words, answer)

    servers[0].stop()
    with Connection(proxy.address) as client:
        for _ in range(2):
            for command in ("GET", "MGET", "DEL"):
                says(client, [command, keys[0]], [*LOST, b"unknown"])
        for command in ("MGET", "DEL"):
            says(client, [command, *keys], LOST)
        says(client, ["MSET", keys[0], "v", keys[1], "v"], LOST)
        assert client.ask("SET", keys[1], "v") == b"+OK\r\n"
        assert client.ask("GET", keys[1]) == bulk(b"v")
        assert client.ask("MGET", keys[1]) == bulks([b"v"])
        assert client.ask("DEL", keys[1]) == b":1\r\n"
    servers[1].stop()
    with Connection(proxy.address) as client:
        says(client, ["GET", keys[1]], [*LOST, b"unknown"])
        for words in (["GET", keys[0]], ["GET", keys[1]], ["MGET", *keys], ["DEL", *keys]):
            says(client, words, LOST)
        says(client, ["MSET", keys[0], "v", keys[1], "v"], LOST)


def test_a_replica_that_may_not_be_written_is_told_of(redis):
    proxy, servers = redis
    keys = keys_of_both(servers, proxy)
    host, port = servers[1].address.split(":")
    assert servers[0].ask("REPLICAOF", host, port) == b"+OK\r\n"
    with Connection(proxy.address) as client:
        assert client.ask("DEL", keys[0]).startswith(b"-READONLY ")
        assert b"Invalid argument" in client.ask("DEL", *keys)
        assert client.ask("DEL", keys[1]) == b":0\r\n"


def test_the_password_of_a_pool_is_asked_for(pool, redis_server):
    servers = redis_server.several(2, options=["--requirepass", "secret"])
    proxy = pool(servers, redis=True, redis_auth="secret")
    with Connection(proxy.address) as client:
        for words in (["PING"], ["SET", "k", "v"], ["GET", "k"]):
            assert client.ask(*words) == b"-NOAUTH Authentication required\r\n"
        assert client.ask("AUTH", "wrong") == b"-ERR invalid password\r\n"
        assert client.ask("GET", "k") == b"-NOAUTH Authentication required\r\n"
        assert client.ask("AUTH", "secret") == b"+OK\r\n"
        assert client.ask("PING") == b"+PONG\r\n"
        assert client.ask("SET", "k", "v") == b"+OK\r\n"
        assert client.ask("GET", "k") == bulk(b"v")


def test_a_password_that_only_one_side_has_is_told_of(pool, redis_server):
    proxy = pool(redis_server.several(2, options=["--requirepass", "secret"]), redis=True)
    with Connection(proxy.address) as client:
        assert client.ask("PING") == b"+PONG\r\n"
        assert client.ask("GET", "k").startswith(b"-NOAUTH ")
        assert client.ask("AUTH", "secret") == b"-ERR Client sent AUTH, but no password is set\r\n"
    proxy.stop()
    servers = redis_server.several(2, options=["--requirepass", "other"])
    proxy = pool(servers, redis=True, redis_auth="secret")
    with Connection(proxy.address) as client:
        assert client.ask("AUTH", "secret") == b"+OK\r\n"
        assert client.ask("PING") == b"+PONG\r\n"
        assert client.ask("GET", "k").startswith((b"-NOAUTH ", b"-WRONGPASS "))


def test_statistics_count_one_request_for_each_server_that_is_asked(redis, client):
    proxy, _ = redis
    keys = [f"key-{number}" for number in range(10)]
    for key in keys:
        assert client.ask("SET", key, "v") == b"+OK\r\n"
        assert client.ask("GET", key) == bulk(b"v")

    def asked():
        own, servers = counts(proxy)
        return own["client_err"], servers["requests"], servers["responses"]

    until(lambda: asked() == (0, 20, 20), "ten writes and ten reads")
    assert client.ask("MGET", *keys) == bulks([b"v"] * 10)
    until(lambda: asked() == (0, 22, 22), "one more for each server")
    assert client.ask("PING") == b"+PONG\r\n"
    with Connection(proxy.address) as other:
        other.send(array("QUIT"))
    with pytest.raises(Closed):
        client.ask("QUIT")
    until(lambda: counts(proxy)[0]["client_connections"] == 0, "both have left")
    assert asked() == (0, 22, 22)


def test_memcached_stores_counts_and_deletes(pool, memcached):
    with pool(memcached.several(2)).raw() as client:
        client.set("k", "v")
        assert client.get("k") == b"v"
        client.set("n", "41")
        client.send(b"incr n 1\r\nget n\r\ndelete n\r\nget n\r\ndelete n\r\n")
        expected = b"42\r\nVALUE n 0 2\r\n42\r\nEND\r\nDELETED\r\nEND\r\nNOT_FOUND\r\n"
        assert client.exactly(len(expected)) == expected


@pytest.mark.parametrize("count", [10, KEYS])
def test_memcached_finds_many_keys_at_once_and_deletes_them_in_a_pipeline(pool, memcached, count):
    servers = memcached.several(2)
    keys = [b"key-%d" % number for number in range(count)]
    asked = keys + [b"none-%d" % number for number in range(count)]
    random.Random(count).shuffle(asked)
    known = set(keys)
    with pool(servers).raw() as client:
        client.send(b"".join(b"set %b 0 0 %d\r\n%b\r\n" % (key, len(key), key) for key in keys))
        assert client.exactly(8 * count) == b"STORED\r\n" * count
        assert sum(server.stat("curr_items") for server in servers) == count
        client.send(b"get %b\r\n" % b" ".join(asked))
        found = b"".join(b"VALUE %b 0 %d\r\n%b\r\n" % (key, len(key), key) for key in asked if key in known)
        assert client.until(b"END\r\n") == found + b"END\r\n"
        client.send(b"".join(b"delete %b\r\n" % key for key in asked))
        expected = b"".join(b"DELETED\r\n" if key in known else b"NOT_FOUND\r\n" for key in asked)
        assert client.exactly(len(expected)) == expected


def test_memcached_servers_that_are_stopped_are_told_of_and_the_other_goes_on(pool, memcached):
    servers = memcached.several(2)
    proxy = pool(servers)
    keys = [b"key-%d" % number for number in range(20)]
    with proxy.raw() as client:
        for key in keys:
            client.set(key, "v")
    lost = [key for key in keys if servers[0].get(key.decode())]
    kept = [key for key in keys if key not in lost]
    assert lost and kept
    servers[0].stop()
    with proxy.raw() as client:
        client.send(b"get %b\r\n" % lost[0])
        assert client.line() in {
            b"SERVER_ERROR %b\r\n" % text
            for text in (b"Connection refused", b"Connection reset by peer", b"unknown")
        }
    with proxy.raw() as client:
        for request in (b"get %b\r\n" % lost[0], b"get %b %b\r\n" % (lost[0], kept[0])):
            client.send(request)
            assert client.line() == b"SERVER_ERROR Connection refused\r\n"
    with proxy.raw() as client:
        assert client.get(kept[0]) == b"v"
