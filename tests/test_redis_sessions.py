"""Transactions step by step, blocking commands and subscribers: what a server keeps for one client."""

import itertools
import threading
import time

import pytest

from harness import until
from harness.redis import Connection, array, config


def connections(server):
    """How many connections the proxy has to this server."""
    return server.ask("CLIENT", "LIST").count(b"name=proxima")


@pytest.fixture
def one(redis_server, proxima):
    """A server, and a function that connects to the proxy before it."""
    server = redis_server()
    settings = config([server], workers=1)
    settings["pools"]["redis"] |= {"timeout": "500ms", "dedicated": {"wait": "30s"}}
    proxy = proxima(settings)
    return server, lambda: Connection(proxy.address)


def test_a_whole_transaction_needs_no_connection_of_its_own(one):
    server, connect = one
    client = connect()
    client.ask("GET", "a")
    before = connections(server)
    for _ in range(20):
        client.send(array("MULTI") + array("INCR", "a") + array("INCR", "b") + array("EXEC"))
        assert [client.reply() for _ in range(3)] == [b"+OK\r\n", b"+QUEUED\r\n", b"+QUEUED\r\n"]
        assert client.reply().startswith(b"*2\r\n")
    assert connections(server) == before
    assert client.ask("GET", "a") == b"$2\r\n20\r\n"


def test_increments_under_watch_add_up(redis_server, proxima):
    server = redis_server()
    proxy = proxima(config([server], workers=4))
    clients, rounds = 24, 10

    def increment():
        with Connection(proxy.address) as client:
            done = 0
            while done < rounds:
                client.ask("WATCH", "sum")
                value = client.ask("GET", "sum")
                number = 0 if value == b"$-1\r\n" else int(value.split(b"\r\n")[1])
                client.send(array("MULTI") + array("SET", "sum", number + 1) + array("EXEC"))
                done += [client.reply() for _ in range(3)][2] == b"*1\r\n+OK\r\n"

    threads = [threading.Thread(target=increment) for _ in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expected = str(clients * rounds).encode()
    assert server.ask("GET", "sum") == b"$%d\r\n%s\r\n" % (len(expected), expected)


def test_no_transaction_is_seen_half_done(redis_server, proxima):
    proxy = proxima(config([redis_server()], workers=2))
    seen, wrong, over = set(), [], threading.Event()

    def write(number):
        with Connection(proxy.address) as client:
            for n in itertools.takewhile(lambda _: not over.is_set(), itertools.count()):
                value = f"{number}-{n}"
                steps = [array("MULTI"), array("SET", "a", value), array("SET", "b", value), array("EXEC")]
                if number % 2:
                    client.send(b"".join(steps))
                    assert [client.reply() for _ in steps][-1] == b"*2\r\n+OK\r\n+OK\r\n"
                    continue
                for step in steps:
                    client.send(step)
                    client.reply()

    def read(number):
        with Connection(proxy.address) as client:
            while not over.is_set():
                if number % 2:
                    reply = client.ask("MGET", "a", "b")
                else:
                    client.send(array("MULTI") + array("GET", "a") + array("GET", "b") + array("EXEC"))
                    reply = [client.reply() for _ in range(4)][-1]
                values = [line for line in reply.split(b"\r\n")[1:] if line[:1] != b"$" or line == b"$-1"]
                seen.add(reply)
                if values[0] != values[1]:
                    wrong.append(reply)

    threads = [threading.Thread(target=does, args=(n,)) for n in range(4) for does in (write, read)]
    for thread in threads:
        thread.start()
    until(lambda: len(seen) > 300, "readers have seen many values")
    over.set()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_clean_connection_is_given_back(one):
    server, connect = one
    for _ in range(30):
        with connect() as client:
            assert client.ask("WATCH", "a") == b"+OK\r\n"
            assert client.ask("MULTI") == b"+OK\r\n"
            assert client.ask("INCR", "a") == b"+QUEUED\r\n"
            assert client.ask("EXEC").startswith(b"*1\r\n:")
    assert connections(server) <= 3


def test_a_transaction_that_is_left_in_the_middle_is_nobodys(one):
    server, connect = one
    with connect() as client:
        client.ask("MULTI")
        assert client.ask("SET", "a", "1") == b"+QUEUED\r\n"
    with connect() as client:
        assert client.ask("GET", "a") == b"$-1\r\n"
        client.ask("MULTI")
        client.ask("SET", "b", "1")
        assert client.ask("EXEC") == b"*1\r\n+OK\r\n"
    assert server.ask("EXISTS", "a") == b":0\r\n"


def test_a_blocking_command_waits_longer_than_the_timeout_and_harms_nobody(one):
    server, connect = one
    waiting, other = connect(), connect()
    waiting.send(array("BLPOP", "list", "0"))
    begun = time.monotonic()
    while time.monotonic() - begun < 1.5:
        assert other.ask("SET", "a", "1") == b"+OK\r\n"
    server.ask("RPUSH", "list", "element")
    assert waiting.reply() == b"*2\r\n$4\r\nlist\r\n$7\r\nelement\r\n"
    assert waiting.ask("BLPOP", "list", "0.05") == b"*-1\r\n"
    assert waiting.ask("GET", "a") == b"$1\r\n1\r\n"


def test_a_client_that_leaves_ends_its_blocking_command_at_once(one):
    server, connect = one
    blocked = lambda: b"blocked_clients:1" in server.ask("INFO", "clients")  # noqa: E731
    with connect() as client:
        client.send(array("BLPOP", "list", "0"))
        until(blocked, "the command blocks")
    until(lambda: not blocked(), "the command has ended")
    server.ask("RPUSH", "list", "element")
    assert server.ask("LLEN", "list") == b":1\r\n"


def test_requests_behind_a_blocking_command_wait_for_it(one):
    server, connect = one
    client = connect()
    client.send(array("SET", "a", "1") + array("BLPOP", "list", "0") + array("GET", "a"))
    assert client.reply() == b"+OK\r\n"
    assert client.is_silent()
    server.ask("SET", "a", "2")
    server.ask("RPUSH", "list", "x")
    assert client.reply() == b"*2\r\n$4\r\nlist\r\n$1\r\nx\r\n"
    assert client.reply() == b"$1\r\n2\r\n"


def test_more_blocking_clients_than_connections_wait_in_turn(one):
    server, connect = one
    clients = [connect() for _ in range(70)]
    for client in clients:
        client.send(array("BLPOP", "list", "0.3"))
    assert all(client.reply() in (b"*-1\r\n",) for client in clients[:64])
    late = [client.reply() for client in clients[64:]]
    assert all(reply == b"*-1\r\n" for reply in late), late


@pytest.mark.parametrize("version", [2, 3], ids=["resp2", "resp3"])
def test_a_subscriber_gets_messages_and_confirmations_as_from_the_server(one, version):
    server, connect = one
    with server.connect() as direct, connect() as through:
        heard = []
        for client in (direct, through):
            if version == 3:
                client.ask("HELLO", 3)
            client.send(array("SUBSCRIBE", "a", "b") + array("PSUBSCRIBE", "c*"))
            replies = [client.reply() for _ in range(3)]
            server.ask("PUBLISH", "a", "hello")
            server.ask("PUBLISH", "cc", "x" * 1000)
            replies += [client.reply(), client.reply(), client.ask("PING"), client.ask("PING", "x")]
            replies += [client.ask("GET", "a")]
            client.send(array("UNSUBSCRIBE", "a") + array("UNSUBSCRIBE", "b") + array("PUNSUBSCRIBE"))
            replies += [client.reply() for _ in range(3)]
            replies += [client.ask("SET", "k", "v"), client.ask("GET", "k")]
            heard.append(replies)
        assert heard[0] == heard[1]


@pytest.mark.parametrize("version", [2, 3], ids=["resp2", "resp3"])
def test_a_subscription_lasts_until_its_last_confirmation_and_its_last_channel_of_either_kind(one, version):
    server, connect = one
    with server.connect() as direct, connect() as through, connect() as other:
        heard = []
        for client in (direct, through):
            if version == 3:
                client.ask("HELLO", 3)
            client.send(
                array("SUBSCRIBE", "a")
                + array("UNSUBSCRIBE", "a", "none")
                + array("SUBSCRIBE", "b")
                + array("SSUBSCRIBE", "s")
                + array("UNSUBSCRIBE", "b")
            )
            replies = [client.reply() for _ in range(6)]
            server.ask("SPUBLISH", "s", "hello")
            replies += [client.reply(), client.ask("SUNSUBSCRIBE", "s"), client.ask("SET", "k", "v")]
            heard.append(replies)
        assert heard[0] == heard[1]
        # The connection is another client's now, and nothing of the first one is on it.
        assert other.ask("SUBSCRIBE", "c") == b"*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n"


@pytest.mark.parametrize("version", [2, 3], ids=["resp2", "resp3"])
def test_a_subscription_outlives_an_unsubscribe_without_names_in_one_piece_with_it(one, version):
    server, connect = one
    many = [f"m{number}" for number in range(2_000)]
    pieces = [
        [("SUBSCRIBE", "a", "b", "c"), ("PSUBSCRIBE", "p*"), ("SSUBSCRIBE", "s")],
        [
            ("UNSUBSCRIBE",),
            ("SUBSCRIBE", "d"),
            ("PUNSUBSCRIBE",),
            ("UNSUBSCRIBE", "d", "none"),
            ("SUBSCRIBE", "e"),
        ],
        [("SUBSCRIBE", *many), ("UNSUBSCRIBE",), ("SUNSUBSCRIBE",), ("SUBSCRIBE", "f")],
    ]
    with server.connect() as direct, connect() as through, connect() as other:
        heard = []
        for client in (direct, through):
            if version == 3:
                client.ask("HELLO", 3)
            for piece in pieces:
                client.send(b"".join(array(*command) for command in piece) + array("PING"))
                replies = [client.reply()]
                while b"PONG" not in replies[-1].upper():
                    replies.append(client.reply())
                # The server names what it ends in the order of its table.
                heard.append(sorted(replies))
        assert heard[: len(pieces)] == heard[len(pieces) :]
        # Nobody else has the connection on which the server sends the messages of `f`.
        assert other.ask("SUBSCRIBE", "g") == b"*3\r\n$9\r\nsubscribe\r\n$1\r\ng\r\n:1\r\n"
        server.ask("PUBLISH", "f", "hello")
        assert b"hello" in through.reply()
        assert other.is_silent(0.05)


def test_messages_reach_subscribers_and_nobody_else(one):
    _, connect = one
    subscribers, publisher, others = [connect() for _ in range(10)], connect(), [connect() for _ in range(10)]
    for number, client in enumerate(subscribers):
        assert b"subscribe" in client.ask("SUBSCRIBE", f"channel:{number}")
    for n in range(200):
        assert publisher.ask("PUBLISH", f"channel:{n % 10}", n) == b":1\r\n"
        assert others[n % 10].ask("INCR", "count") == b":%d\r\n" % (n + 1)
    for number, client in enumerate(subscribers):
        for n in range(number, 200, 10):
            text = str(n).encode()
            assert client.reply().endswith(b"$%d\r\n%s\r\n" % (len(text), text))
        assert client.is_silent(0.05)


def test_a_subscriber_in_resp3_may_ask_as_well(one):
    _, connect = one
    client, publisher = connect(), connect()
    client.ask("HELLO", 3)
    assert client.ask("SUBSCRIBE", "a") == b">3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n"
    for n in range(50):
        publisher.ask("PUBLISH", "a", n)
        client.send(array("INCR", "n"))
        got = {client.reply()[:1], client.reply()[:1]}
        assert got == {b">", b":"}


def test_reset_and_quit_end_what_the_server_keeps(one):
    server, connect = one
    client = connect()
    client.ask("SUBSCRIBE", "a")
    assert client.ask("RESET") == b"+RESET\r\n"
    until(lambda: server.ask("PUBSUB", "CHANNELS") == b"*0\r\n", "nothing is subscribed")
    assert client.ask("SET", "a", "1") == b"+OK\r\n"
    client.ask("SUBSCRIBE", "a")
    client.send(array("QUIT"))
    assert client.rest() == b"+OK\r\n"
    until(lambda: server.ask("PUBSUB", "CHANNELS") == b"*0\r\n", "nothing is subscribed")


def test_a_lost_server_closes_a_client_in_the_middle_of_a_transaction(one):
    server, connect = one
    client, other = connect(), connect()
    client.ask("MULTI")
    assert client.ask("SET", "a", "1") == b"+QUEUED\r\n"
    server.kill()
    client.send(array("EXEC"))
    heard = client.rest()
    assert not heard or heard.startswith(b"-ERR "), heard
    assert other.ask("GET", "a").startswith(b"-ERR ")
