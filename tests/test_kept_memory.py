"""What clients and servers make the proxy keep: each row of the table in `docs/failure-modes.md`.

A row has its attack here, or is named in `ELSEWHERE` with the test that has it. While the attack lasts
another client is served, and the process stays below `total_bytes` and 64 MiB."""

import contextlib
import socket
import threading
import time
import urllib.request
from pathlib import Path

import pytest

from harness import PATIENCE, until
from harness.redis import Closed, Connection, array, config

MIB = 1 << 20
TOTAL = 64
"""MiB: `limits.total_bytes`."""
BOUND = (TOTAL + 64) * MIB
"""Bytes that the process may take."""

ATTACKS = {}
"""The attacks, by the name of their row in the table."""

ELSEWHERE = {
    "a client's requests and replies": "test_memory.py",
    "a line of keys, an upload, a dump": "test_memory.py",
    "requests in steps": "test_mcrouter_splits.py",
    "links to peers of a fleet": "test_fleet_faults.py",
    "what a worker needs for one request": "test_memory.py",
    "one entry for each client, server and listener": "test_connections.py",
}
"""Rows whose attacks are other files' tests."""


def attack(row):
    """Makes a function the attack of this row. It is given the test's means, and yields while it lasts."""

    def note(function):
        ATTACKS[row] = function
        return function

    return note


class Means:
    """What an attack may use."""

    def __init__(self, cleanup, redis_server, proxima):
        self.cleanup, self.redis_server, self.proxima = cleanup, redis_server, proxima

    def proxy(self, servers, **options):
        """A proxy with one pool of these servers."""
        made = config(servers, workers=1, limits={"total_bytes": f"{TOTAL}MiB"})
        made["listeners"][0].update({key: options.pop(key) for key in ("auth",) if key in options})
        made["pools"]["redis"].update({"timeout": "5s", **options})
        return self.proxima(made)

    def beside_bad_servers(self, count, answer, timeout):
        """A proxy before a real server and, for keys that begin with `bad`, so many others. Those let it log
        in, and `answer` is called with each connection and what was heard on it since."""

        def talk(peer):
            with peer, contextlib.suppress(OSError):
                while heard := peer.recv(MIB):
                    if b"HELLO" in heard:
                        peer.sendall(b"%1\r\n$7\r\nversion\r\n$6\r\n7.0.15\r\n")
                    else:
                        answer(peer, heard)

        def accept(server):
            with contextlib.suppress(OSError):
                while True:
                    threading.Thread(target=talk, args=(server.accept()[0],), daemon=True).start()

        bad = [self.cleanup.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        for server in bad:
            threading.Thread(target=accept, args=(server,), daemon=True).start()
        made = config([self.redis_server()], workers=1, limits={"total_bytes": f"{TOTAL}MiB"})
        made["listeners"][0]["route"] = {"by_prefix": {"prefixes": {"bad": "bad"}, "default": "redis"}}
        addresses = [f"127.0.0.1:{server.getsockname()[1]}" for server in bad]
        made["pools"]["bad"] = {"protocol": "redis", "servers": addresses, "timeout": timeout}
        return self.proxima(made)

    def clients(self, proxy, count, *requests):
        """So many clients that send these requests and read nothing."""
        host, port = proxy.address.rsplit(":", 1)
        for _ in range(count):
            client = self.cleanup.enter_context(socket.socket())
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.connect((host, int(port)))
            client.settimeout(2)
            for request in requests:
                # One that was closed sends no more.
                with contextlib.suppress(OSError):
                    client.sendall(request)


@attack("messages to subscribers")
def silent_subscribers(means):
    servers = [means.redis_server() for _ in range(4)]
    proxy = means.proxy(servers, dedicated={"max": 1000})
    yield proxy
    means.clients(proxy, 40, array("PSUBSCRIBE", "*"))
    means.clients(proxy, 100, array("SUBSCRIBE", "c"))
    until(lambda: proxy.metric("dedicated_lanes") >= 4 * 40 + 100, "all have subscribed")
    for _ in range(6):
        for server in servers:
            server.ask("PUBLISH", "c", "m" * 200_000)


@attack("a message without an end")
def endless_push(means):
    answered = threading.Event()

    def answer(peer, heard):
        if b"GET" in heard:
            peer.sendall(b"$1\r\n1\r\n")
            # The client has the reply before it is sent what nobody has asked for.
            answered.wait(PATIENCE)
            peer.sendall(b">268435455\r\n")
            while True:
                peer.sendall(b":1\r\n" * 20_000)

    proxy = means.beside_bad_servers(1, answer, timeout="500ms")
    yield proxy
    with Connection(proxy.address) as client:
        client.ask("HELLO", "3")
        assert client.ask("GET", "bad") == b"$1\r\n1\r\n"
        answered.set()
        until(lambda: proxy.metric("member_failures_total") >= 1, "its connection has ended")
        # The client lives on: nothing of it was asked there.
        assert client.ask("GET", "other") == b"_\r\n"


@attack("connections to servers")
def servers_that_take_everything_and_answer_nothing(means):
    taken = []

    def answer(peer, heard):
        taken.append(len(heard))

    def all_is_taken():
        before = sum(taken)
        time.sleep(0.05)
        return sum(taken) == before

    proxy = means.beside_bad_servers(40, answer, timeout="5s")
    yield proxy
    for number in range(60):
        # The read lets what comes behind it be kept.
        names = [f"bad{number}-{count}" for count in range(100)]
        requests = [array("GET", name) + array("SET", name, "v" * 50_000) for name in names]
        means.clients(proxy, 1, *requests)
        # What waits for slow servers is another matter.
        until(all_is_taken, "the servers have taken what they are sent")


@attack("a client's session")
def names_and_held_commands(means):
    proxy = means.proxy([means.redis_server() for _ in range(2)])
    yield proxy
    name = "n" * 400_000
    means.clients(proxy, 80, array("CLIENT", "SETNAME", name))
    means.clients(proxy, 40, array("CLIENT", "SETINFO", "LIB-NAME", name))
    means.clients(proxy, 40, array("HELLO", "3", "SETNAME", name))
    means.clients(proxy, 700, array("MULTI"), array("PUBLISH", "c", "m" * 60_000))


@attack("logins")
def passwords(means):
    proxy = means.proxy([means.redis_server(options=("--requirepass", "x"))], auth="pass")
    yield proxy
    wrong = [array("AUTH", f"user{number}", "p" * 400_000) for number in range(2)]
    means.clients(proxy, 150, *wrong)


@attack("requests that wait for a connection")
def waiting_requests(means):
    proxy = means.proxy([means.redis_server()], dedicated={"max": 2, "wait": "3s"})
    yield proxy
    means.clients(proxy, 900, array("BLPOP", "l" * 60_000, "0"))


@attack("joined replies")
def joined_replies(means):
    servers, keys = [means.redis_server() for _ in range(2)], 100
    for number, server in enumerate(servers):
        script = f"for i=1,{keys} do redis.call('set', KEYS[1]..i..string.rep('x', 100000), 'v') end"
        server.ask("EVAL", script, "1", f"{number}-")
    proxy = means.proxy(servers)
    yield proxy
    with Connection(proxy.address) as client:
        client.send(array("KEYS", "*"))
        assert client.take(6) == b"*201\r\n"
        names = [f"{server}-{number}" for server in range(2) for number in range(1, keys + 1)]
        due = sum(len(array(name + "x" * 100_000)) - 4 for name in names) + len("$8\r\ninnocent\r\n")
        while due > 0:
            due -= len(client.more_bytes())
        assert due == 0
    means.clients(proxy, 4, array("KEYS", "*"))
    time.sleep(0.5)


@attack("the admin and the health port")
def admin_heads(means):
    proxy = means.proxy([means.redis_server()])
    yield proxy
    host, port = proxy.admin.rsplit(":", 1)
    for _ in range(150):
        client = means.cleanup.enter_context(socket.create_connection((host, int(port)), 5))
        client.settimeout(0.1)
        with contextlib.suppress(OSError):
            client.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nA: " + b"x" * 400_000)
    assert urllib.request.urlopen(f"http://{proxy.admin}/metrics", timeout=5).status == 200


@pytest.mark.parametrize("row", ATTACKS)
def test_what_is_kept_stays_below_the_limit_and_others_are_served(cleanup, redis_server, proxima, row):
    going = ATTACKS[row](Means(cleanup, redis_server, proxima))
    proxy = next(going)
    with Connection(proxy.address) as innocent:
        asks = ("AUTH", "x") if row == "logins" else ("SET", "innocent", "1")
        assert innocent.ask(*asks) == b"+OK\r\n"
        for _ in going:
            pass
        assert innocent.ask("SET", "innocent", "2") == b"+OK\r\n"
        assert innocent.ask("GET", "innocent") == b"$1\r\n2\r\n"
    assert proxy.memory("VmHWM") < BOUND, f"{proxy.memory('VmHWM') / MIB:.0f} MiB"


def test_each_row_of_the_table_has_its_attack():
    text = (Path(__file__).parent.parent / "docs" / "failure-modes.md").read_text()
    table = text.split("| what is kept |")[1].split("\n\n")[0].splitlines()[2:]
    rows = {line.split("|")[1].strip() for line in table}
    assert rows == {*ATTACKS, *ELSEWHERE}
    for file in ELSEWHERE.values():
        assert (Path(__file__).parent / file).exists(), file


@pytest.mark.either_io
def test_subscriber_that_reads_gets_a_message_of_any_size(redis_server, proxima):
    """Servers let 32 MiB wait for a subscriber at once, and so much may come at once."""
    server = redis_server()
    limits = {"total_bytes": f"{TOTAL}MiB", "connection_bytes": "1MiB"}
    proxy = proxima(config([server], workers=1, limits=limits))
    size, others = 20 * MIB, 20 * [100_000]
    with contextlib.ExitStack() as stack:
        readers = [stack.enter_context(Connection(proxy.address)) for _ in range(3)]
        for reader in readers:
            assert b"subscribe" in reader.ask("SUBSCRIBE", "c")
        publisher = threading.Thread(
            target=lambda: [server.ask("PUBLISH", "c", "m" * each) for each in (size, *others)]
        )
        publisher.start()
        counts = [0] * len(readers)
        total = size + sum(others)

        def read(number):
            while counts[number] <= total + len(others):
                counts[number] += readers[number].more_bytes().count(b"m")

        threads = [threading.Thread(target=read, args=(number,)) for number in range(len(readers))]
        for thread in threads:
            thread.start()
        for thread in [publisher, *threads]:
            thread.join()
    # `message` has an m of its own.
    assert counts == [total + 1 + len(others)] * len(readers)
    assert proxy.memory("VmHWM") < BOUND


@pytest.mark.either_io
def test_push_that_breaks_off_closes_its_subscriber_and_no_other(redis_server, proxima):
    """A client with a part of a message cannot be told anything else."""
    server = redis_server()
    proxy = proxima(config([server], workers=1))
    with Connection(proxy.address) as subscriber, Connection(proxy.address) as other:
        assert b"subscribe" in subscriber.ask("SUBSCRIBE", "c")
        server.ask("PUBLISH", "c", "m" * 20 * MIB)
        subscriber.take(1000)
        server.ask("CLIENT", "KILL", "TYPE", "pubsub")
        with pytest.raises((Closed, ConnectionResetError)):
            while True:
                subscriber.more_bytes()
        assert other.ask("SET", "a", "1") == b"+OK\r\n"
