"""Connections that one client has for itself: their limits, and what only the only server can keep."""

import pytest

from harness import until
from harness.redis import Connection, array, config

pytestmark = pytest.mark.either_io


@pytest.fixture
def one(redis_server, proxima):
    """A server, and a function that starts a proxy before it with this limit of dedicated connections."""
    server = redis_server()

    def start(**dedicated):
        settings = config([server], workers=1)
        settings["pools"]["redis"]["dedicated"] = dedicated
        return proxima(settings)

    return server, start


def test_clients_beyond_the_limit_wait_in_turn_and_then_get_an_error(one):
    server, start = one
    proxy = start(max=2, wait="300ms", idle=1)
    holders = [Connection(proxy.address) for _ in range(2)]
    for holder in holders:
        assert holder.ask("WATCH", "a") == b"+OK\r\n"
    assert proxy.metric("dedicated_lanes", pool="redis") == 2
    waits, late = Connection(proxy.address), Connection(proxy.address)
    waits.send(array("WATCH", "a"))
    until(lambda: proxy.metric("dedicated_waits_total", pool="redis") == 1, "it waits")
    assert holders[0].ask("UNWATCH") == b"+OK\r\n"
    assert waits.reply() == b"+OK\r\n"
    refused = late.ask("WATCH", "a")
    assert refused.startswith(b"-ERR ") and b"all 2 connections" in refused and b"dedicated.max" in refused
    assert proxy.metric("dedicated_refusals_total", pool="redis") == 1
    assert proxy.metric("dedicated_waits_total", pool="redis") == 2
    for client in (*holders, waits):
        client.close()
    until(lambda: proxy.metric("dedicated_lanes", pool="redis") == 0, "none is in use")


def test_no_more_idle_connections_are_kept_than_allowed(one):
    server, start = one
    proxy = start(max=10, idle=2)
    clients = [Connection(proxy.address) for _ in range(10)]
    for client in clients:
        assert client.ask("WATCH", "a") == b"+OK\r\n"
    assert server.ask("CLIENT", "LIST").count(b"name=proxima") == 10
    for client in clients:
        assert client.ask("UNWATCH") == b"+OK\r\n"
    until(lambda: server.ask("CLIENT", "LIST").count(b"name=proxima") == 2, "two are kept")


def test_tracking_at_the_only_server_tells_of_changes(one):
    server, start = one
    with Connection(start().address) as client, server.connect() as direct:
        for connection in (client, direct):
            assert connection.ask("HELLO", 3).startswith(b"%7")
            assert connection.ask("CLIENT", "TRACKING", "ON") == b"+OK\r\n"
        for connection in (client, direct):
            connection.send(array("MULTI") + array("GET", "a") + array("PING") + array("EXEC"))
        heard = [[connection.reply() for _ in range(4)] for connection in (client, direct)]
        assert heard[0] == heard[1]
        server.ask("SET", "a", "1")
        assert client.reply() == direct.reply() == b">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\na\r\n"
        for words in (
            ("MGET", "a", "b"),
            ("CLIENT", "TRACKINGINFO"),
            ("CLIENT", "CACHING", "YES"),
            ("SELECT", 3),
            ("GET", "a"),
            ("SET", "big", "v" * 100_000),
            ("GET", "big"),
            ("SELECT", 0),
            ("BLPOP", "none", "0.01"),
            ("NOSUCH",),
            ("GET", "a"),
        ):
            assert client.ask(*words) == direct.ask(*words), words
        assert client.ask("SUBSCRIBE", "c") == direct.ask("SUBSCRIBE", "c")
        server.ask("PUBLISH", "c", "hello")
        assert client.reply() == direct.reply()
        server.ask("SET", "a", "2")
        assert client.reply() == direct.reply() == b">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\na\r\n"
    until(lambda: server.ask("CLIENT", "LIST").count(b"name=proxima") == 0, "its connection is closed")


def test_what_one_client_has_asked_of_the_server_is_nobody_elses(one):
    server, start = one
    proxy = start()
    with Connection(proxy.address) as client, Connection(proxy.address) as other:
        client.ask("HELLO", 3)
        other.ask("HELLO", 3)
        assert client.ask("CLIENT", "TRACKING", "ON", "BCAST") == b"+OK\r\n"
        # Older servers do not know it.
        assert client.ask("CLIENT", "NO-TOUCH", "ON") in (b"+OK\r\n", server.ask("CLIENT", "NO-TOUCH", "ON"))
        assert other.ask("SET", "a", "1") == b"+OK\r\n"
        assert client.reply().startswith(b">2\r\n$10\r\ninvalidate")
        assert client.ask("RESET") == b"+RESET\r\n"
        other.ask("SET", "a", "2")
        assert client.ask("GET", "a") == b"$1\r\n2\r\n"
        assert client.is_silent() and other.is_silent()


def test_a_connections_own_state_is_refused_where_there_are_several_servers(redis_server, proxima):
    with Connection(proxima(config(redis_server.several(2))).address) as client:
        for words in (
            ("CLIENT", "TRACKING", "ON"),
            ("CLIENT", "NO-TOUCH", "ON"),
            ("CLIENT", "CACHING", "YES"),
        ):
            assert client.ask(*words).startswith(b"-ERR CLIENT "), words
        assert client.ask("GET", "a") == b"$-1\r\n"


def test_a_group_of_any_name_blocks_nobody_else(one):
    server, start = one
    proxy = start()
    with Connection(proxy.address) as client, Connection(proxy.address) as other:
        for name in ("streams", "block", "count"):
            client.ask("XGROUP", "CREATE", "s", name, "$", "MKSTREAM")
            client.send(array("XREADGROUP", "GROUP", name, "streams", "BLOCK", 0, "STREAMS", "s", ">"))
            until(lambda: proxy.metric("dedicated_lanes", pool="redis") == 1, "it has its own lane")
            assert other.ask("GET", "a") == b"$-1\r\n"
            assert client.is_silent(0.01)
            server.ask("XADD", "s", "*", "field", "value")
            assert client.reply().startswith(b"*1\r\n")


def test_a_resp3_subscriber_that_publishes_in_one_piece_keeps_the_order(one):
    _, start = one
    proxy = start()
    for n in range(20):
        with Connection(proxy.address) as client:
            client.ask("HELLO", 3)
            first, second = f"a{n}", f"b{n}"
            client.send(
                array("SUBSCRIBE", first)
                + array("PUBLISH", first, "x")
                + array("PUBLISH", second, "lost")
                + array("SUBSCRIBE", second)
                + array("PUBLISH", second, "y")
            )
            heard = [client.reply() for _ in range(7)]
            counts = [reply for reply in heard if reply.startswith(b":")]
            assert counts == [b":1\r\n", b":0\r\n", b":1\r\n"], heard
            assert not any(b"lost" in reply for reply in heard)
            assert client.is_silent(0.01)


def test_a_client_that_idles_in_a_transaction_is_closed_and_others_stay(redis_server, proxima):
    proxy = proxima(config([redis_server()], limits={"idle_in_transaction": "400ms"}))
    begins, watches, done, silent = (Connection(proxy.address) for _ in range(4))
    for client, request in ((begins, "MULTI"), (watches, "WATCH k"), (done, "MULTI")):
        assert client.ask(*request.split()) == b"+OK\r\n"
    # From the first command on a server keeps it.
    assert begins.ask("SET", "k", "v") == b"+QUEUED\r\n"
    assert done.ask("EXEC") == b"*0\r\n"
    until(lambda: proxy.metric("clients_closed_total", reason="idle_in_transaction") == 2, "they are closed")
    assert (begins.rest(), watches.rest()) == (b"", b"")
    for client in (silent, done):
        assert client.ask("PING") == b"+PONG\r\n"
        client.close()
