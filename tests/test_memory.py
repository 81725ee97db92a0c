"""The memory that the buffers of all clients together may take, and which clients lose theirs when it is
short."""

import threading
import time

import pytest

from harness import until
from harness.load import Load
from harness.proxy import config

MIB = 1 << 20
VALUE = b"v" * 1_000_000
REPLY = b"VALUE b 0 %d\r\n%b\r\n" % (len(VALUE), VALUE)
LIMITS = {"total_bytes": "64MiB"}
BOUND = (64 + 64 + 64) * MIB
"""Bytes: `total_bytes`, the store, and what a process takes besides."""


def embedded(**limits):
    return config("embedded", limits=LIMITS | limits, embedded={"memory": "64MiB"})


def pool(servers, **limits):
    servers = {"servers": [server.address for server in servers], "timeout": "5s"}
    return config("cache", {"cache": servers}, limits=LIMITS | limits)


def unread(proxy, *requests):
    """Starts clients that send these requests and do not read."""
    clients = []
    for request in requests:
        client = proxy.raw()
        client.sock.setblocking(False)
        try:
            client.sock.send(request)
        except BlockingIOError:
            pass
        clients.append(client)
    return clients


MANY = {
    "get of 10,000 keys": b"get" + b" b" * 10_000 + b"\r\n",
    "gets of 10,000 keys": b"gets" + b" b" * 10_000 + b"\r\n",
    "gat of 10,000 keys": b"gat 0" + b" b" * 10_000 + b"\r\n",
    "10,000 gets": b"get b\r\n" * 10_000,
    "10,000 meta gets": b"mg b v\r\n" * 10_000,
}


@pytest.fixture(params=["embedded", "pool"])
def proxy(request, memcached, proxima):
    started = proxima(embedded() if request.param == "embedded" else pool(memcached.several(2)))
    with started.raw() as client:
        client.set("b", VALUE)
        client.set("small", "v")
    return started


@pytest.mark.parametrize("asked", MANY.values(), ids=MANY.keys())
@pytest.mark.parametrize("greedy", [1, 100])
def test_unread_replies_take_no_more_memory_than_the_limit(proxy, asked, greedy):
    clients = unread(proxy, *[asked] * greedy)
    if "embedded" in proxy.config["listeners"][0]["route"]:
        with Load(proxy.address) as load:
            load.after(100)
    else:
        # Clients that share a server's connection with them wait for it. Other tests bound that wait.
        waited = time.monotonic() + 3
        until(lambda: time.monotonic() > waited, "they have had time to take it")
    assert proxy.memory("VmHWM") < BOUND
    for client in clients:
        client.abort()


@pytest.mark.parametrize("batch", [2, 0])
def test_values_in_pieces_take_no_more_memory_than_the_limit(memcached, proxima, batch):
    """What a route has read for requests that it serves in steps is bounded for all of them together."""
    written = pool(memcached.several(2))
    [listener] = written["listeners"]
    listener["route"] = {"big_value": {"child": "cache", "threshold": "100KiB", "batch": batch}}
    proxy = proxima(written)
    with proxy.raw() as client:
        client.set("b", VALUE)
        assert client.get("b") == VALUE
    clients = unread(proxy, *[b"get b\r\n" * 1_000] * 50)
    waited = time.monotonic() + 3
    until(lambda: time.monotonic() > waited, "they have had time to take it")
    for client in clients:
        client.abort()
    with proxy.raw() as client:
        until(lambda: client.ask(b"get b\r\n").startswith(b"VALUE b "), "it is served again")
    assert proxy.memory("VmHWM") < BOUND


def test_a_get_of_10000_large_values_is_answered_as_it_is_read(proxy):
    count = 1_000
    with proxy.raw() as client:
        client.send(b"get" + b" b" * count + b"\r\n")
        for _ in range(count):
            assert client.exactly(len(REPLY)) == REPLY
        assert client.line() == b"END\r\n"
        assert client.ask(b"") == b""
    assert proxy.memory("VmHWM") < BOUND


def test_clients_with_half_requests_are_closed_before_memory_runs_out(memcached, proxima):
    """The proxy holds a value for the store until it is whole."""
    proxy = proxima(embedded(request_timeout="60s"))
    with Load(proxy.address) as load:
        half = unread(proxy, *[b"set k 0 0 1000000\r\n"] * 100)
        for _ in range(8):
            for client in half:
                try:
                    client.sock.send(b"v" * 120_000)
                except (BlockingIOError, ConnectionError):
                    pass
        load.after(300)
        until(
            lambda: proxy.metric("clients_closed_total", reason="memory") > 0, "who holds the most is closed"
        )
        load.after(300)
        assert not load.errors and not load.wrong, (load.errors[:3], load.wrong[:3])
    assert proxy.memory("VmHWM") < BOUND


HALVES = {
    "a line": b"get k",
    "a long line": b"get" + b" k" * 10_000,
    "a value": b"set k 0 0 1000\r\nhalf",
    "a large value for the store": b"set k 0 0 500000\r\n" + b"v" * 100_000,
}


@pytest.mark.parametrize("half", HALVES.values(), ids=HALVES.keys())
def test_a_request_that_does_not_end_in_time_is_closed(memcached, proxima, half):
    proxy = proxima(embedded(request_timeout="1s"))
    with proxy.raw() as begun, proxy.raw() as idle:
        begun.set("k", "v")
        idle.set("i", "v")
        begun.send(half)
        begun.rest()
        assert proxy.metric("clients_closed_total", reason="request_timeout") == 1
        assert idle.get("i") == b"v", "nobody waits for a request that has not begun"


def test_a_request_that_comes_slowly_and_ends_in_time_is_answered(memcached, proxima):
    proxy = proxima(pool([memcached()], request_timeout="20s"))
    with proxy.raw() as client:
        for piece in [b"se", b"t k 0 0 ", b"5\r\nva", b"lue", b"\r\nge", b"t k", b" k\r", b"\n"]:
            client.send(piece)
            proxy.http("/live")
        value = b"VALUE k 0 5\r\nvalue\r\n"
        assert client.exactly(8 + 2 * len(value) + 5) == b"STORED\r\n" + value * 2 + b"END\r\n"
    assert proxy.metric("clients_closed_total", reason="request_timeout") == 0


@pytest.mark.parametrize("copies", [False, True], ids=["plain", "copies"])
@pytest.mark.parametrize("keys", [1_600, 10_000, 524_000])
def test_a_get_of_many_keys_is_answered_and_delays_no_other_client(memcached, proxima, keys, copies):
    servers = memcached.several(3)
    made = {"servers": [server.address for server in servers], "timeout": "2s", "replicated": copies}
    proxy = proxima(config("cache", {"cache": made}))
    size = 1 if keys > 100_000 else 40
    names = [b"%0*d" % (size, number % (10 if size == 1 else keys)) for number in range(keys)]
    with proxy.raw() as client, Load(proxy.address) as load:
        stored = names[: 10 if size == 1 else 1_600]
        for name in stored:
            client.set(name, name)
        line = b"get " + b" ".join(names) + b"\r\n"
        found = [name for name in names if size == 1 or int(name) < 1_600]
        expected = b"".join(b"VALUE %b 0 %d\r\n%b\r\n" % (name, size, name) for name in found)
        sender = threading.Thread(target=client.send, args=(line,))
        sender.start()
        assert client.exactly(len(expected) + 5) == expected + b"END\r\n"
        sender.join()
        load.after(50)
        assert client.ask(b"") == b""
        assert not load.errors, load.errors[:3]
        if copies:
            assert {proxy.member(server.address)["copy"]["state"] for server in servers} == {"current"}


def test_a_get_that_comes_key_by_key_is_answered_as_it_comes(memcached, proxima):
    proxy = proxima(pool([memcached()]))
    with proxy.raw() as client:
        client.set("k", "v")
        client.send(b"get" + b" absent" * 2_000)
        for piece in [b" ", b"k", b" k", b" ab", b"sent", b" ", b"k\r", b"\nget k\r\n"]:
            client.send(piece)
            proxy.http("/live")
        value = b"VALUE k 0 1\r\nv\r\n"
        assert client.exactly(4 * len(value) + 10) == value * 3 + b"END\r\n" + value + b"END\r\n"


def test_a_line_is_skipped_behind_a_key_that_is_too_long(memcached, proxima):
    proxy = proxima(pool([memcached()]))
    with proxy.raw() as client:
        client.set("k", "v")
        client.send(b"get" + b" k" * 3_000 + b" ")
        client.until(b"VALUE k 0 1\r\nv\r\n" * 3_000)
        client.send(b"x" * 251 + b" k" * 3_000)
        client.send(b" flush_all\r\nget k\r\n")
        assert client.line() == b"CLIENT_ERROR bad command line format\r\n"
        assert client.exactly(20) == b"VALUE k 0 1\r\nv\r\nEND\r\n"[:20]


@pytest.mark.parametrize("leaves", [False, True], ids=["its client stays", "its client leaves"])
def test_an_idle_worker_gives_the_buffers_of_its_last_burst_back(memcached, proxima, leaves):
    """Values of many sizes fill blocks of many sizes, of which the worker needs none any more."""
    server = memcached(item="4m")
    sizes = [1000 * 2**power for power in range(10)] * 8
    server.set("warm", "up")
    for number, size in enumerate(sizes):
        server.set(f"k{number}", "v" * size)
    proxy = proxima(pool([server]) | {"workers": 1})

    def memory():
        return proxy.memory("RssAnon")

    with proxy.raw() as client:
        assert client.get("warm") == b"up"
        before = memory()
        client.send(b"".join(b"get k%d\r\n" % number for number in range(len(sizes))))
        for number, size in enumerate(sizes):
            assert client.exactly(len(f"VALUE k{number} 0 {size}\r\n") + size + 7).endswith(b"END\r\n")
        if leaves:
            client.close()
        # Without that, three to six huge pages stay.
        until(lambda: memory() - before < 4 * MIB, "the memory of its buffers goes back", every=0.25)
