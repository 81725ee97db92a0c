"""Where a route ends without a server, Redis is answered as by an empty server."""

import itertools
import pathlib

import pytest

from harness import ports
from harness.redis import Connection, array, config

pytestmark = pytest.mark.either_io

TABLE = pathlib.Path(__file__).parents[1] / "wire" / "commands" / "empty.tsv"
ROWS = [line.split("\t") for line in TABLE.read_text().split("\n") if line and not line.startswith("#")]
REQUESTS = [request.split(" ") for _, requests, _ in ROWS for request in requests.split("; ") if request]

# What a server says that is older than the command, or than a form of it.
UNKNOWN = (b"-ERR unknown ", b"-ERR wrong number ", b"-ERR syntax error")


@pytest.fixture
def listening(redis_server, proxima):
    """A server, and a function that starts a proxy with a listener for each of these routes, and connects to
    each."""
    server = redis_server()

    def start(*routes):
        listeners = [{"address": ports.address(), "protocol": "redis", "route": route} for route in routes]
        proxy = proxima(config([server], workers=1, listeners=listeners))
        return [Connection(address) for address in proxy.addresses]

    return server, start


def test_every_command_is_answered_without_a_server_as_by_an_empty_one(listening):
    server, start = listening
    null, embedded = start("null", "embedded")
    differ, known, stored = [], 0, set()
    with server.connect() as direct:
        for version, words in itertools.product((2, 3), REQUESTS):
            for client in (direct, null, embedded):
                client.ask("HELLO", version)
            direct.ask("FLUSHALL"), embedded.ask("FLUSHALL")
            direct.ask("SCRIPT", "FLUSH")
            expected, found = direct.ask(*words), embedded.ask(*words)
            if expected.startswith(UNKNOWN):
                continue
            known += 1
            if (answer := null.ask(*words)) != expected:
                differ.append((version, words, answer, expected))
            if b"not served by the embedded store" in found:
                continue
            stored.add(words[0])
            if found != expected:
                differ.append(("embedded", version, words, found, expected))
    assert not differ
    assert known > 400 and len(stored) > 30, (known, stored)


@pytest.mark.parametrize(
    "route",
    [
        "null",
        {"all_async": ["redis"]},
        {"rate_limit": {"child": "redis", "gets": 0.0001, "sets": 0.0001, "deletes": 0.0001}},
        {"by_operation": {"arithmetic": "redis"}},
    ],
    ids=["null", "all_async", "rate_limit", "by_operation"],
)
def test_a_route_that_answers_by_itself_says_what_an_empty_server_does(listening, redis_server, route):
    _, start = listening
    empty = redis_server()
    [client] = start(route)
    # Those that are within the limit.
    for words in (("GET", "x"), ("SET", "x", "v"), ("DEL", "x")):
        client.ask(*words)
    differ = []
    with empty.connect() as direct:
        for version, request in itertools.product(
            (2, 3),
            (
                *("GET k", "EXISTS k", "HGETALL h", "SMEMBERS s", "LRANGE l 0 -1", "TYPE k", "TTL k"),
                *("MGET a b c", "HMGET h f g", "ZRANGE z 0 -1", "HSCAN h 0", "SORT l", "GETRANGE k 0 -1"),
                *(
                    "DEL a b",
                    "GETDEL k",
                    "UNLINK a",
                    "SET k v",
                    "SET k v XX",
                    "HSET h a 1 b 2",
                    "MSET a 1 b 2",
                ),
                *("LPUSH l a b", "SADD s a b", "ZADD z 1 a", "LPOP l", "SPOP s 2" * (route == "null")),
            ),
        ):
            if request:
                client.ask("HELLO", version), direct.ask("HELLO", version), direct.ask("FLUSHALL")
                found, expected = client.ask(*request.split(" ")), direct.ask(*request.split(" "))
                if found != expected:
                    differ.append((version, request, found, expected))
    assert not differ


def test_a_transaction_in_one_piece_is_answered_without_a_server(listening):
    server, start = listening
    [client] = start("null")
    piece = array("MULTI") + array("SET", "k", "v") + array("HGETALL", "h") + array("UNWATCH") + array("EXEC")
    for version in (2, 3):
        with server.connect() as direct:
            expected = []
            for connection in (direct, client):
                connection.ask("HELLO", version)
                connection.send(piece)
                expected.append([connection.reply() for _ in range(5)])
        assert expected[0] == expected[1]


def test_what_a_server_would_keep_is_refused_without_a_server(listening):
    _, start = listening
    client, other, third = start("null", "null", "null")
    assert client.ask("MULTI") == b"+OK\r\n"
    assert client.ask("SET", "k", "v").startswith(b"-ERR SET is led to null, ")
    assert other.ask("WATCH", "k").startswith(b"-ERR WATCH is led to null, ")
    assert third.ask("SCRIPT", "LOAD", "return 1").startswith(
        b"-ERR SCRIPT LOAD is answered by servers alone"
    )
    for command in ("SUBSCRIBE", "PSUBSCRIBE", "SSUBSCRIBE"):
        refused = third.ask(command, "c")
        assert refused.startswith(f"-ERR {command}: its route leads ".encode()), refused
    assert third.ask("BLPOP", "l", 0) == b"*-1\r\n" and third.ask("PING") == b"+PONG\r\n"


def test_a_command_over_a_limit_is_not_left_out_of_a_transaction(listening):
    server, start = listening
    [client] = start({"rate_limit": {"child": "redis", "sets": {"rate": 0.0001, "burst": 5}}})
    assert client.ask("MULTI") == b"+OK\r\n"
    replies = [client.ask("SET", "a", "1")]
    while replies[-1] == b"+QUEUED\r\n":
        replies.append(client.ask("SET", "a", "1"))
    assert 1 < len(replies) < 10 and replies[-1].startswith(b"-ERR SET is over the limit of rate_limit, ")
    assert server.ask("EXISTS", "a") == b":0\r\n"
