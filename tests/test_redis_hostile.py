"""Bad input from clients and from servers: an answer or a close, bounded memory, and no harm to others."""

import itertools
import socket
import threading
import time

import pytest

from harness import PATIENCE, until
from harness.redis import Closed, Connection, array, config

pytestmark = pytest.mark.either_io

ROOM = 32 << 20
"""Bytes by which the proxy may grow while it is attacked."""


@pytest.fixture
def attacked(redis_server, proxima):
    """A proxy, and an innocent client that is served before and after."""
    proxy = proxima(config([redis_server()], workers=1, limits={"total_bytes": "16MiB"}))
    with Connection(proxy.address) as innocent:
        assert innocent.ask("SET", "innocent", "1") == b"+OK\r\n"
        before = proxy.memory()
        yield proxy
        assert innocent.ask("GET", "innocent") == b"$1\r\n1\r\n"
        assert proxy.memory("VmHWM") < before + ROOM, (before, proxy.memory("VmHWM"))


BULK = b"-ERR Protocol error: invalid bulk length\r\n"
COUNT = b"-ERR Protocol error: invalid multibulk length\r\n"
BAD = {
    "negative-bulk": (b"*2\r\n$3\r\nGET\r\n$-1\r\n", BULK),
    "huge-bulk": (b"*2\r\n$3\r\nGET\r\n$9223372036854775807\r\n", BULK),
    "two-gibibytes": (b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$2147483648\r\n", BULK),
    "length-without-end": (b"*2\r\n$3\r\nGET\r\n$" + b"1" * 100, BULK),
    "no-length": (b"*2\r\n$3\r\nGET\r\n$x\r\n", BULK),
    "huge-count": (b"*2147483648\r\n", COUNT),
    "count-without-end": (b"*" + b"9" * 100, COUNT),
    "no-count": (b"*x\r\n", COUNT),
    "no-bulk": (b"*2\r\n$3\r\nGET\r\nGET\r\n", b"-ERR Protocol error: expected '$', got 'G'\r\n"),
    "arrays-in-arrays": (b"*1\r\n" * 10_000, b"-ERR Protocol error: expected '$', got '*'\r\n"),
    "endless-inline": (b"x" * 200_000, b"-ERR Protocol error: too big inline request\r\n"),
    "open-quotes": (b'GET "a\r\n', b"-ERR Protocol error: unbalanced quotes in request\r\n"),
    "http": (b"POST / HTTP/1.1\r\nHost: a\r\n\r\n", b""),
}


@pytest.mark.parametrize("attack", BAD)
def test_bad_bytes_are_answered_in_the_servers_words_and_closed(attacked, attack):
    sent, expected = BAD[attack]
    for _ in range(20):
        with Connection(attacked.address) as client:
            client.send(array("PING") + sent)
            heard = client.rest()
            assert heard.startswith(b"+PONG\r\n") and heard[7:] == expected, heard


def test_announced_values_that_never_come_take_no_memory(attacked):
    clients = [Connection(attacked.address) for _ in range(100)]
    for client in clients:
        client.send(b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$500000000\r\n" + b"x" * 1000)
        client.send(b"")
    with Connection(attacked.address) as client:
        assert client.ask("ECHO", "x") == b"$1\r\nx\r\n"
    for client in clients:
        client.close()


def test_ten_thousand_pipelined_requests_are_answered_in_order(attacked):
    with Connection(attacked.address) as client:
        sender = threading.Thread(
            target=client.send, args=(b"".join(array("ECHO", n) for n in range(10_000)),)
        )
        sender.start()
        for n in range(10_000):
            text = str(n).encode()
            assert client.reply() == b"$%d\r\n%s\r\n" % (len(text), text)
        sender.join()
        client.send(array("INCR", "n") * 10_000)
        assert [client.reply() for _ in range(10_000)] == [b":%d\r\n" % (n + 1) for n in range(10_000)]


def test_a_subscriber_that_does_not_read_is_closed_and_delays_nobody(redis_server, proxima):
    server = redis_server()
    proxy = proxima(config([server], workers=1, limits={"write_timeout": "1s"}))
    before = proxy.memory()
    with Connection(proxy.address) as deaf, Connection(proxy.address) as hears, server.connect() as publisher:
        for client in (deaf, hears):
            assert b"subscribe" in client.ask("SUBSCRIBE", "c")
        message = "x" * 100_000
        for _ in range(300):
            publisher.ask("PUBLISH", "c", message)
            assert hears.reply().endswith(message.encode() + b"\r\n")
        until(
            lambda: publisher.ask("PUBSUB", "NUMSUB", "c") == b"*2\r\n$1\r\nc\r\n:1\r\n",
            "the deaf one is closed",
        )
    assert proxy.memory("VmHWM") < before + ROOM


def serve(talk):
    """A server that greets as Redis does and then lets `talk` answer each connection. Returns its socket."""
    listening = socket.create_server(("127.0.0.1", 0))

    def run(peer):
        with peer:
            heard = b""
            while b"proxima\r\n" not in heard:
                heard += peer.recv(4096) or b"proxima\r\n"
            try:
                peer.sendall(b"*4\r\n$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nversion\r\n$5\r\n7.0.0\r\n")
                talk(peer)
            except OSError:
                pass

    def accept():
        while True:
            try:
                peer = listening.accept()[0]
            except OSError:
                return
            threading.Thread(target=run, args=(peer,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    return listening


def say(text, leaves=False):
    """Answers whatever comes first with this, and then waits or is gone."""

    def talk(peer):
        peer.recv(65536)
        peer.sendall(text)
        while not leaves and peer.recv(65536):
            pass

    return talk


WRONG = {
    "garbage": b"hello\r\n",
    "letters-for-a-length": b"$abc\r\n",
    "huge-length": b"$99999999999999999999\r\n",
    "half-a-reply": b"$100\r\nxx",
    "endless-line": b"+" + b"x" * 200_000,
    "two-replies": b":1\r\n:2\r\n",
    "endless-depth": b"*1\r\n" * 100_000,
    "a-push-in-the-middle": b">2\r\n$1\r\na\r\n$1\r\nb\r\n:1\r\n",
    "half-a-large-bulk": b"$10000000\r\n" + b"x" * 300_000,
    "dies-in-a-large-bulk": b"$10000000\r\n" + b"x" * 300_000,
    "a-list-without-end": b"*1000000000\r\n" + b":1\r\n" * 1000,
}


@pytest.mark.parametrize("fault", WRONG)
def test_a_server_that_talks_nonsense_harms_only_who_asked_it(redis_server, proxima, fault):
    bad, good = serve(say(WRONG[fault], leaves="dies" in fault)), redis_server()
    settings = config(
        [good], route={"by_prefix": {"prefixes": {"bad": "bad"}, "default": "redis"}}, workers=1
    )
    address = f"127.0.0.1:{bad.getsockname()[1]}"
    settings["pools"]["bad"] = {"protocol": "redis", "servers": [address], "timeout": "300ms"}
    proxy = proxima(settings)
    before = proxy.memory()
    with bad, Connection(proxy.address) as innocent:
        for n in range(3):
            with Connection(proxy.address) as client:
                client.send(array("GET", "bad") + array("QUIT"))
                heard = client.rest()
                assert heard[:1] in (b"-", b":", b"$", b"*", b""), heard[:100]
            assert innocent.ask("SET", "a", n) == b"+OK\r\n"
            assert innocent.ask("GET", "a") == b"$1\r\n%d\r\n" % n
        assert proxy.memory("VmHWM") < before + ROOM


def test_no_reply_reaches_another_client_while_servers_are_killed_and_frozen(redis_server, proxima):
    servers = redis_server.several(3)
    settings = config(servers, workers=4)
    settings["pools"]["redis"] |= {
        "timeout": "400ms",
        "eject": {"probe_initial": "50ms", "probe_max": "100ms"},
        "hash": {"algorithm": "ketama", "tag": "{}"},
    }
    proxy = proxima(settings)
    over, wrong, done = threading.Event(), [], itertools.count()

    def check(number, reply, expected):
        next(done)
        if not reply.startswith(b"-") and reply not in expected:
            wrong.append((number, reply, expected))

    def plain(number, client, n):
        key, value = f"{number}:{n % 50}", f"{number}-{n}"
        bulk = b"$%d\r\n%s\r\n" % (len(value), value.encode())
        client.send(array("SET", key, value) + array("GET", key) + array("ECHO", value))
        check(number, client.reply(), [b"+OK\r\n"])
        got = client.reply()
        if not got.startswith((b"-", b"$-1")) and b"\r\n%d-" % number not in got:
            wrong.append((number, got, value))
        check(number, client.reply(), [bulk])

    def several(number, client, n):
        keys = [f"{number}:{k}" for k in range(8)]
        client.send(array("MGET", *keys))
        reply = client.reply()
        values = [part for part in reply.split(b"\r\n") if b"-" in part and not part.startswith((b"$", b"-"))]
        if not reply.startswith(b"-") and not all(value.startswith(b"%d-" % number) for value in values):
            wrong.append((number, reply, "its own values"))

    def transacts(number, client, n):
        tag = f"{{{number}}}"
        client.send(
            array("WATCH", tag) + array("MULTI") + array("SET", tag, f"{number}-{n}") + array("GET", tag)
        )
        client.send(array("EXEC"))
        replies = [client.reply() for _ in range(5)]
        own = b"*2\r\n+OK\r\n$%d\r\n%d-%d\r\n" % (len(f"{number}-{n}"), number, n)
        check(number, replies[4], [own, b"*-1\r\n"])

    def blocks(number, client, n):
        name = f"list:{number}"
        client.send(array("RPUSH", name, f"{number}-{n}") + array("BLPOP", name, "0.2"))
        client.reply()
        reply = client.reply()
        if not reply.startswith((b"-", b"*-1")) and b"\r\n%d-" % number not in reply:
            wrong.append((number, reply, "its own element"))

    def publishes(number, client, n):
        channel = f"channel:{number}"
        client.ask("SUBSCRIBE", channel)
        with Connection(proxy.address) as other:
            other.ask("PUBLISH", channel, f"{number}-{n}")
        while not client.is_silent(0.02):
            heard = client.reply()
            if heard.startswith(b"*") and b"channel:%d\r\n" % number not in heard:
                wrong.append((number, heard, channel))
        client.close()

    def run(number, does):
        n = 0
        while not over.is_set():
            try:
                with Connection(proxy.address) as client:
                    while not over.is_set():
                        n += 1
                        does(number, client, n)
            except (Closed, OSError):
                time.sleep(0.01)

    kinds = [plain, plain, several, transacts, blocks, publishes]
    threads = [threading.Thread(target=run, args=(n, kinds[n % len(kinds)])) for n in range(18)]
    for thread in threads:
        thread.start()
    for turn in range(6):
        served = next(done)
        until(lambda served=served: next(done) > served + 200, "clients are served")
        server = servers[turn % 3]
        if turn % 2:
            server.freeze()
            time.sleep(0.6)
            server.thaw()
        else:
            server.kill()
            time.sleep(0.1)
            server.start()
    over.set()
    for thread in threads:
        thread.join(PATIENCE)
    assert not wrong, wrong[:5]


class Asking:
    """A client that asks for one key again and again, until it is closed. Its replies are counted."""

    def __init__(self, address):
        self.replies, self.wrong = 0, []
        self._client, self._over = Connection(address), threading.Event()
        self._client.ask("SET", "innocent", "1")
        self._thread = threading.Thread(target=self._ask, daemon=True)
        self._thread.start()

    def _ask(self):
        while not self._over.is_set():
            reply = self._client.ask("GET", "innocent")
            self.replies += 1
            if reply != b"$1\r\n1\r\n":
                self.wrong.append(reply)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._over.set()
        self._thread.join(PATIENCE)
        self._client.close()


MANY_KEYS = {
    "several servers": "redis",
    "log": {"log": "redis"},
    "failover": {"failover": ["redis", "redis"]},
    "miss_failover": {"miss_failover": ["redis", "redis"]},
    "modify_key": {"modify_key": {"child": "redis", "ensure_prefix": "p:"}},
}


@pytest.mark.parametrize("route", MANY_KEYS)
def test_more_keys_than_numbers_of_two_bytes_reach_their_servers_and_delay_no_other_client(
    redis_server, proxima, route
):
    servers = redis_server.several(3)
    # Where each key is asked for alone, fewer make as many parts.
    count = 66_000 if route != "miss_failover" else 20_000
    keys = [b"%x" % number for number in range(count)]
    pairs = [word for key in keys for word in (key, key)]
    proxy = proxima(config(servers, route=MANY_KEYS[route], workers=1, limits={"connection_bytes": "16MiB"}))
    with Connection(proxy.address) as client, Asking(proxy.address) as other:
        assert client.ask("MSET", *pairs) == b"+OK\r\n"
        before = other.replies
        client.send(array("MGET", *keys, "none"))
        reply = client.reply()
        during = other.replies - before
        assert reply.endswith(b"$-1\r\n") and reply.split(b"\r\n")[2:-2:2] == keys
        assert client.ask("EXISTS", *keys) == b":%d\r\n" % count
        # Each key is at one server, and there under its own name.
        assert sum(int(server.ask("DBSIZE")[1:]) for server in servers) == count + 1
        assert client.ask("DEL", *keys) == b":%d\r\n" % count
        assert client.ask("SINTER", *keys).startswith((b"-CROSSSLOT ", b"*0"))
        assert client.ask("PING") == b"+PONG\r\n"
    # The request took several turns, in which the other client was served.
    assert during >= 3 and not other.wrong, (during, other.wrong[:3])
