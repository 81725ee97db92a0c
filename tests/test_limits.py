"""The limits on what one client may take, and the errors that it gets."""

import threading

import pytest

from harness import until
from harness.load import Load
from harness.proxy import config

MIB = 1 << 20


def limited(servers, workers=1, **limits):
    pool = {"servers": [server.address for server in servers], "timeout": "50s"}
    return config("cache", {"cache": pool}, workers=workers, limits=limits)


@pytest.mark.parametrize("workers", [1, 4])
def test_a_client_over_the_limit_gets_an_error_and_is_closed(memcached, proxima, workers):
    proxy = proxima(limited([memcached()], workers=workers, clients=8))
    clients = [proxy.raw() for _ in range(8)]
    for client in clients:
        # All of them are served, whichever workers they came to.
        client.set("k", "v")
    with proxy.raw() as ninth:
        assert ninth.rest() == b"SERVER_ERROR too many open connections\r\n"
    assert proxy.metric("clients_closed_total", reason="limit") == 1
    clients.pop().close()
    until(lambda: proxy.metric("clients") == 7, "one has left")
    with proxy.raw() as next_one:
        assert next_one.get("k") == b"v"
    for client in clients:
        assert client.get("k") == b"v"
        client.close()


def test_an_idle_client_is_closed_and_a_busy_one_stays(memcached, proxima):
    proxy = proxima(limited([memcached()], idle="400ms"))
    with proxy.raw() as silent, proxy.raw() as talking:
        talking.set("k", "v")

        def closed():
            assert talking.get("k") == b"v"
            return proxy.metric("clients_closed_total", reason="idle") == 1

        until(closed, "the silent one is closed")
        assert silent.rest() == b""
        assert talking.get("k") == b"v"


def test_requests_in_flight_are_bounded_and_all_are_answered(memcached, proxima):
    server = memcached()
    proxy = proxima(limited([server], requests_in_flight=5))
    with proxy.raw() as greedy, proxy.raw() as modest:
        greedy.set("k", "v")
        server.freeze()
        greedy.send(b"get k\r\n" * 100)
        until(lambda: proxy.metric("requests_in_flight") == 5, "five are on their way")
        modest.send(b"get k\r\n")
        until(lambda: proxy.metric("requests_in_flight") == 6, "the other client has five of its own")
        server.thaw()
        value = b"VALUE k 0 1\r\nv\r\nEND\r\n"
        assert greedy.exactly(100 * len(value)) == value * 100
        assert modest.exactly(len(value)) == value


ENDLESS = {
    "nothing that means anything": b"z" * 1000,
    "keys of a get": b"get " + b"k " * 500,
    "one key": b"get kkkk" * 100,
    "a set": b"set k 0 0 0" + b"0" * 1000,
    "a meta get": b"mg k " + b"v " * 500,
}


@pytest.mark.parametrize("begin", ENDLESS.values(), ids=ENDLESS.keys())
def test_a_line_that_never_ends_cannot_grow_memory(memcached, proxima, begin):
    proxy = proxima(limited([memcached()]))
    with Load(proxy.address) as load, proxy.raw() as endless:
        load.after(100)
        before = proxy.memory()
        chunk = begin[-2:] * (MIB // 2)
        endless.sock.settimeout(0.5)
        endless.send(begin)
        try:
            for _ in range(64):
                endless.send(chunk)
        except TimeoutError:
            # The proxy does not read from it any more.
            pass
        except OSError:
            # The proxy has closed it.
            pass
        load.after(100)
        # Keys of a get are served as they come, as memcached does. The bound covers a reactor's own buffers.
        assert proxy.memory("VmHWM") - before < 16 * MIB


def test_a_pipeline_of_10000_is_answered_in_order_and_delays_no_other_client(memcached, proxima):
    proxy = proxima(limited(memcached.several(4)))
    pipeline = b"".join(b"set key%d 0 0 5\r\n%05d\r\nget key%d\r\n" % (n, n, n) for n in range(5000))
    expected = b"".join(b"STORED\r\nVALUE key%d 0 5\r\n%05d\r\nEND\r\n" % (n, n) for n in range(5000))
    with Load(proxy.address) as load, proxy.raw() as client:
        for _ in range(3):
            sender = threading.Thread(target=client.send, args=(pipeline,))
            sender.start()
            load.after(10)
            assert client.exactly(len(expected)) == expected
            sender.join()
        assert client.ask(b"") == b""


def test_clients_that_never_read_cannot_grow_memory(memcached, proxima):
    server = memcached()
    proxy = proxima(limited([server], connection_bytes="1MiB"))
    server.set("k", "v" * 50_000)
    before = proxy.memory()
    with Load(proxy.address) as load:
        greedy = [proxy.raw() for _ in range(5)]
        for client in greedy:
            client.sock.setblocking(False)
            client.sock.send(b"get k\r\n" * 2000)
        load.after(300)
        assert proxy.memory("VmHWM") - before < 64 * MIB
        for client in greedy:
            client.close()
        load.after(100)


def test_a_long_pipeline_is_answered_once_its_client_reads(memcached, proxima):
    server = memcached()
    proxy = proxima(limited([server], connection_bytes="256KiB"))
    value = b"v" * 50_000
    server.set("k", value.decode())
    reply = b"VALUE k 0 %d\r\n%b\r\nEND\r\n" % (len(value), value)
    with proxy.raw() as client:
        client.send(b"get k\r\n" * 1000)
        for _ in range(1000):
            assert client.exactly(len(reply)) == reply


def test_at_the_memory_limit_the_largest_holders_are_closed_and_others_served(memcached, proxima):
    server = memcached()
    proxy = proxima(limited([server], total_bytes="512KiB", connection_bytes="2MiB"))
    server.set("k", "v" * 60_000)
    before = proxy.memory()
    with proxy.raw() as client:
        assert client.get("absent") is None
        greedy = [proxy.raw() for _ in range(20)]
        for other in greedy:
            other.send(b"get k\r\n" * 500)
        until(lambda: proxy.metric("clients_closed_total", reason="memory") > 0, "who holds the most goes")
        for _ in range(20):
            assert client.get("absent") is None
        for other in greedy:
            other.abort()
        assert client.get("absent") is None
    assert proxy.memory("VmHWM") - before < 64 * MIB


def test_a_half_closed_client_gets_its_replies(memcached, proxima):
    """In `printf 'get k\\r\\n' | nc` the client's side ends before its reply comes."""
    server = memcached()
    proxy = proxima(limited([server]))
    server.set("k", "v")
    with proxy.raw() as client:
        server.freeze()
        client.send(b"get k\r\nget k\r\n")
        client.finish()
        server.thaw()
        assert client.rest() == b"VALUE k 0 1\r\nv\r\nEND\r\n" * 2


def test_connections_that_come_and_go_leave_nothing_behind(memcached, proxima):
    proxy = proxima(limited([memcached()], workers=2))
    for _ in range(1000):
        with proxy.raw() as client:
            client.send(b"set k 0 0 1\r\nv\r\n")
            assert client.line() == b"STORED\r\n"
    until(lambda: proxy.metric("clients") == 0, "all have left")
    assert proxy.metric("clients_accepted_total") == 1000
