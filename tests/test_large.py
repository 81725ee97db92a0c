"""Values far larger than what is held whole, and clients that make trouble with them: no other client
notices."""

import os
import threading
import time

import pytest

from harness import until
from harness.load import Load
from harness.proxy import config
from harness.raw import Closed, Raw
from harness.relay import Relay

MIB = 1 << 20
LARGE = 64 * MIB


@pytest.fixture(scope="module")
def value():
    """The largest value. It repeats nowhere, so a piece that is lost, repeated or moved shows."""
    return os.urandom(LARGE)


@pytest.fixture(params=[1, 4], ids=["one thread", "four threads"])
def server(request, memcached):
    return memcached(threads=request.param, item="128m", memory=1024)


@pytest.fixture
def proxy(server, proxima):
    """A proxy with one worker, which all clients share with those that make trouble."""
    # A client that keeps others from a seat for large replies is closed behind half of this time, and one
    # behind whose reply others wait behind a quarter. A busy machine takes some of that for a test's steps.
    pool = {"servers": [server.address], "timeout": "1m"}
    limits = {"total_bytes": "256MiB", "write_timeout": "5m"}
    return proxima(config("cache", {"cache": pool}, workers=1, limits=limits))


def put(client, key, value):
    client.send(b"set %b 0 0 %d\r\n" % (key, len(value)))
    client.send(value)
    client.send(b"\r\n")
    assert client.line() == b"STORED\r\n"


def grows_at_most(proxy, since, limit):
    grown = proxy.memory("VmHWM") - since
    assert grown <= limit, f"{grown / MIB:.0f} MiB more resident memory"


def test_the_largest_value_is_streamed_both_ways_in_bounded_memory(server, proxy, value):
    with proxy.raw() as client:
        client.set("small", "v")
        before = proxy.memory()
        put(client, b"large", value)
        assert server.get("large") == value
        assert client.get("large") == value
        # The connection still works.
        assert client.get("small") == b"v"
        grows_at_most(proxy, before, 48 * MIB)


def test_a_client_that_took_large_values_is_still_served(server, proxima):
    """The size of the pieces and of the client's share of memory does not matter."""
    limits = {"connection_bytes": "64KiB"}
    proxy = proxima(config("cache", {"cache": [server.address]}, workers=1, limits=limits))
    values = {b"%d" % size: os.urandom(size) for size in (200_000, 700_000, 1_200_000, 2_500_000, 3_700_000)}
    with proxy.raw() as client:
        client.set("small", "v")
        for key, large in values.items():
            put(client, key, large)
        for _ in range(10):
            for key, large in values.items():
                assert client.get(key) == large
                assert client.get("small") == b"v"


def test_a_large_value_inside_a_pipeline_is_answered_in_order(proxy, value):
    piece = value[: 3 * MIB]
    with proxy.raw() as client:
        client.send(
            b"set a 0 0 1\r\n1\r\nset large 0 0 %d\r\n%b\r\nset b 0 0 1\r\n2\r\n" % (len(piece), piece)
        )
        client.send(b"get a large b\r\nget a\r\nget large\r\nget b\r\n")
        assert [client.line() for _ in range(3)] == [b"STORED\r\n"] * 3
        reply = b"VALUE large 0 %d\r\n%b\r\n" % (len(piece), piece)
        a, b = b"VALUE a 0 1\r\n1\r\n", b"VALUE b 0 1\r\n2\r\n"
        for expected in (a + reply + b, a, reply, b):
            assert client.exactly(len(expected) + 5) == expected + b"END\r\n"


def test_a_value_over_the_limit_is_refused_and_its_connection_stays(proxy, value):
    with proxy.raw() as client:
        client.send(b"set over 0 0 %d\r\n" % (LARGE + 1))
        client.send(value)
        client.send(b"!\r\n")
        assert client.line() == b"SERVER_ERROR object too large for cache\r\n"
        client.set("k", "v")
        assert client.get("k") == b"v"


def test_a_value_too_large_for_the_server_gets_the_servers_error(memcached, proxima):
    proxy = proxima(config("cache", {"cache": [memcached().address]}, workers=1))
    with proxy.raw() as client:
        assert client.ask(b"set k 0 0 %d\r\n%b\r\n" % (8 * MIB, b"x" * 8 * MIB)) == (
            b"SERVER_ERROR object too large for cache\r\n"
        )
        client.set("k", "v")
        assert client.get("k") == b"v"


def test_a_large_value_reaches_every_server_of_all_sync(memcached, proxima, value):
    servers = memcached.several(3, item="128m", memory=256)
    proxy = proxima(
        config({"all_sync": "cache"}, {"cache": [server.address for server in servers]}, workers=1)
    )
    piece = value[: 8 * MIB]
    with proxy.raw() as client:
        put(client, b"large", piece)
        assert all(server.get("large") == piece for server in servers)
        assert client.get("large") == piece


def test_clients_that_read_no_reply_delay_no_other_client(proxy, value):
    with proxy.raw() as client:
        put(client, b"large", value)
    before = proxy.memory()
    idlers = [proxy.raw() for _ in range(4)]
    # Each of two has a seat, as nobody else asks for anything when it does.
    for idler in idlers[:2]:
        idler.send(b"get large\r\n")
        assert idler.line() == b"VALUE large 0 %d\r\n" % LARGE
    with Load(proxy.address) as load:
        for idler in idlers[2:]:
            idler.send(b"get large\r\n")
            load.after(200)
        load.after(500)
        # Those two wake up and get the whole value. The other two have gone.
        for idler in idlers[:2]:
            assert idler.exactly(LARGE + 7) == value + b"\r\nEND\r\n"
        for idler in idlers:
            idler.close()
        load.after(200)
    # Three values of 64 MiB would take 192.
    grows_at_most(proxy, before, 160 * MIB)


def test_a_client_that_takes_nothing_for_write_timeout_is_closed(server, proxima, value):
    limits = {"write_timeout": "500ms"}
    pool = {"servers": [server.address], "timeout": "20s"}
    proxy = proxima(config("cache", {"cache": pool}, workers=1, limits=limits))
    with proxy.raw() as client:
        put(client, b"large", value)
    with Load(proxy.address) as load, proxy.raw() as idler:
        idler.send(b"get large\r\n")
        until(lambda: proxy.metric("clients_closed_total", reason="slow") == 1, "the slow client is closed")
        load.after(200)
        with pytest.raises(Closed):
            idler.exactly(LARGE)


def test_a_client_that_reads_slowly_but_steadily_is_not_closed(server, proxima, value):
    """The client's kernel takes bytes at once, but the proxy's reports it only when there is room for
    megabytes."""
    pool = {"servers": [server.address], "timeout": "20s"}
    proxy = proxima(config("cache", {"cache": pool}, workers=1, limits={"write_timeout": "2s"}))
    server.set("large", value)
    reply = b"VALUE large 0 %d\r\n%b\r\nEND\r\n" % (len(value), value)
    with proxy.raw() as client:
        client.send(b"get large\r\n")
        taken = b""
        for _ in range(80):
            taken += client.sock.recv(40_000)
            time.sleep(0.1)
        assert taken + client.exactly(len(reply) - len(taken)) == reply
    assert proxy.metric("clients_closed_total", reason="slow") == 0


def test_clients_silent_behind_half_a_command_delay_no_other_client(proxy):
    halves = [
        b"get ha",
        b"set half 0 0 10\r\nhal",
        b"set half 0 0 1000000\r\n" + b"x" * 500_000,
        b"set half 0 0 10 noreply\r\n",
        b"mg half",
        b"ms half 10",
        b"set half 0 0 10\r\n0123456789\r",
    ]
    before = proxy.memory()
    with Load(proxy.address) as load:
        silent = []
        for half in halves:
            client = proxy.raw()
            client.send(half)
            silent.append(client)
            load.after(50)
        for client in silent:
            client.close()
        load.after(100)
    grows_at_most(proxy, before, 32 * MIB)


def test_a_client_that_dies_in_mid_upload_delays_no_other_client(server, proxy, value):
    before = proxy.memory()
    with Load(proxy.address) as load:
        for sent in (0, 1, 100_000, 10 * MIB, LARGE - 1, LARGE):
            for last in (b"", b"\r"):
                client = proxy.raw()
                client.send(b"set dying 0 0 %d\r\n" % LARGE)
                client.send(value[:sent])
                if sent == LARGE:
                    client.send(last)
                client.close()
                load.after(50)
        assert server.get("dying") is None
    grows_at_most(proxy, before, 48 * MIB)


def test_a_client_that_dies_in_mid_reply_delays_no_other_client(proxy, value):
    with proxy.raw() as client:
        put(client, b"large", value)
    before = proxy.memory()
    with Load(proxy.address) as load:
        for read in (1, 100_000, 10 * MIB):
            with proxy.raw() as client:
                client.send(b"get large\r\n")
                client.exactly(read)
            load.after(100)
    grows_at_most(proxy, before, 160 * MIB)


def test_more_uploads_than_places_are_all_stored(server, proxy, value):
    """There are more uploads than connections for large values."""
    piece = value[: 2 * MIB]
    before = proxy.memory()
    clients = [proxy.raw() for _ in range(12)]
    with Load(proxy.address) as load:
        # All uploads begin before any may end.
        for number, client in enumerate(clients):
            client.send(b"set large%d 0 0 %d\r\n%b" % (number, len(piece), piece[:1000]))
        load.after(100)
        for client in clients[::-1]:
            client.send(piece[1000:MIB])
        load.after(100)
        for client in clients:
            client.send(piece[MIB:] + b"\r\n")
            assert client.line() == b"STORED\r\n"
        for number, client in enumerate(clients):
            assert client.get(f"large{number}") == piece
            client.close()
    grows_at_most(proxy, before, 64 * MIB)


def test_readers_of_large_values_never_stop_readers_of_small_ones(proxy, value):
    """A connection that was held back for one reader serves all others again."""
    piece = value[: 2 * MIB]
    with proxy.raw() as client:
        put(client, b"large", piece)
    read_well = []

    def read():
        for _ in range(100):
            with proxy.raw() as client:
                read_well.append(client.get("large") == piece)

    readers = [threading.Thread(target=read, daemon=True) for _ in range(3)]
    with Load(proxy.address) as load:
        for reader in readers:
            reader.start()
        for reader in readers:
            reader.join()
        load.after(100)
    assert read_well == [True] * 300


def test_replies_that_wait_for_each_other_after_a_failover_end(memcached, proxima, value):
    """After a failover the earlier of two requests waits behind the reply to the later one, which waits for
    its turn."""
    first, second = memcached(), memcached(item="8m", memory=128)
    pools = {
        name: {"servers": [server.address], "timeout": "8s"} for name, server in (("p", first), ("q", second))
    }
    route = {"by_prefix": {"prefixes": {"a": {"failover": ["p", "q"]}, "b": "q"}}}
    limits = {"total_bytes": "4MiB"}
    proxy = proxima(config(route, pools, workers=1, limits=limits))
    with proxy.raw() as both, proxy.raw() as other:
        put(both, b"b", value[: 3 * MIB])
        first.freeze()
        second.freeze()
        both.send(b"get a\r\nget b\r\n")
        until(lambda: proxy.metric("requests_in_flight") == 2, "both are under way")
        other.send(b"get b1\r\n")
        until(lambda: proxy.metric("requests_in_flight") == 3, "the third is under way")
        first.kill()
        until(lambda: proxy.member(first.address)["state"] == "ejected", "the first one has failed over")
        second.thaw()
        with pytest.raises(Closed):
            both.line()
        assert other.line() == b"END\r\n"
        other.set("b1", "v")
        assert other.get("b1") == b"v"


class Trickling:
    """A client that asks for more than is buffered for it, and takes a little again and again."""

    def __init__(self, address, request, each=2000, pause=0.3):
        self.client = Raw(address, receive=4096)
        self.client.send(request)
        self._each, self._pause, self._stop = each, pause, threading.Event()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self):
        while not self._stop.wait(self._pause):
            try:
                if not self.client.sock.recv(self._each):
                    return
            except OSError:
                return

    def was_closed(self):
        return not self._thread.is_alive()

    def stop(self):
        self._stop.set()
        self._thread.join()
        self.client.close()


@pytest.mark.parametrize("replicated", [False, True], ids=["one server", "copies"])
def test_a_trickling_reader_delays_no_other_client_beyond_the_time_out(
    memcached, proxima, cleanup, value, replicated
):
    servers = memcached.several(3 if replicated else 1, item="8m", memory=128)
    pool = {"servers": [server.address for server in servers], "timeout": "2s", "replicated": replicated}
    proxy = proxima(config("cache", {"cache": pool}, workers=1, limits={"total_bytes": "16MiB"}))
    with proxy.raw() as client:
        put(client, b"b", value[: 4 * MIB])
        for _ in range(3):
            reader = Trickling(proxy.address, b"get" + b" b" * 30 + b"\r\n")
            cleanup.callback(reader.stop)
            time.sleep(0.1)
            for number in range(10):
                client.set(f"small{number}", "v")
                assert client.get(f"small{number}") == b"v"
                client.send(b"delete small%d\r\n" % number)
                assert client.line() == b"DELETED\r\n"
            until(reader.was_closed, "the reader is given up")
    assert proxy.metric("clients_closed_total", reason="slow") == 3
    assert proxy.metric("member_failures_total") == 0, "the servers are asked over the same connections"
    if replicated:
        assert all(proxy.member(server.address)["copy"]["state"] == "current" for server in servers)


def dawdle(proxy, value):
    """Clients that occupy all places for values that arrive slowly, and send no more."""
    dawdlers = [proxy.raw() for _ in range(3)]
    for number, client in enumerate(dawdlers):
        client.send(b"set dawdler%d 0 0 1000000\r\n%b" % (number, value[:1000]))
    return dawdlers


def test_slow_uploads_lose_their_places_to_waiting_ones(server, proxima, value):
    pool = {"servers": [server.address], "timeout": "2s"}
    proxy = proxima(config("cache", {"cache": pool}, workers=1))
    dawdlers = dawdle(proxy, value)
    time.sleep(1)
    with proxy.raw() as client:
        put(client, b"large", value[: 2 * MIB])
        assert client.get("large") == value[: 2 * MIB]
    until(
        lambda: proxy.metric("clients_closed_total", reason="slow") == len(dawdlers),
        "the dawdlers are closed",
    )
    assert proxy.metric("member_ejections_total") == 0


def test_a_waiting_upload_ends_when_its_client_has_gone(server, proxima, value):
    pool = {"servers": [server.address], "timeout": "20s"}
    proxy = proxima(config("cache", {"cache": pool}, workers=1))
    dawdlers = dawdle(proxy, value)
    until(lambda: proxy.metric("clients") == 3, "the dawdlers are there")
    beginning = b"set large 0 0 40000000\r\n" + value[:100_000]
    for _ in range(20):
        with proxy.raw() as client:
            client.send(beginning)
    until(lambda: proxy.metric("clients_accepted_total") >= 23, "they came")
    until(lambda: proxy.metric("clients") == 3, "those who have gone are gone here too")
    assert proxy.metric("member_ejections_total") == 0
    for client in dawdlers:
        client.send(value[1000:1_000_000] + b"\r\n")
        assert client.line() == b"STORED\r\n"


def test_slow_readers_take_no_more_server_connections_than_promised(server, proxima, value):
    pool = {"servers": [server.address], "timeout": "2s"}
    proxy = proxima(config("cache", {"cache": pool}, workers=1, limits={"total_bytes": "256MiB"}))
    server.set("large", value[: 40 * MIB])
    readers = []
    with Load(proxy.address) as load:
        for _ in range(20):
            client = proxy.raw()
            client.send(b"get large\r\n")
            readers.append(client)
            load.after(20)
        load.after(500)
        with proxy.raw() as client:
            put(client, b"another", value[: 2 * MIB])
    with Raw(server.address) as asked:
        # The proxy has one connection for small requests and four for large ones. A probe, this one, and that
        # of `set` add to them.
        assert int(asked.stats()["curr_connections"]) <= 5 + 3
    for client in readers:
        client.close()


def test_a_flood_over_a_slow_link_takes_no_copy_out_and_loses_no_write(memcached, proxima, cleanup, value):
    """One client sends 90 MB of sets, and one copy takes 4 MB a second."""
    servers = memcached.several(3, item="8m", memory=256)
    slow = Relay(servers[2].address)
    cleanup.callback(slow.stop)
    slow.rate(4_000_000)
    addresses = [servers[0].address, servers[1].address, slow.address]
    pool = {"servers": addresses, "timeout": "1s", "replicated": True}
    proxy = proxima(config("cache", {"cache": pool}, workers=1))
    with proxy.raw() as client:
        client.set("before", "v")
        piece = value[:60_000]
        count = 400
        sender = threading.Thread(
            target=lambda: [
                client.send(b"set k%d 0 0 %d\r\n%b\r\n" % (n % 100, len(piece), piece)) for n in range(count)
            ],
            daemon=True,
        )
        sender.start()
        assert [client.line() for _ in range(count)] == [b"STORED\r\n"] * count
        sender.join()
    assert all(proxy.member(address)["copy"]["state"] == "current" for address in addresses)
    assert servers[2].get("before") == b"v"
    assert all(servers[2].get(f"k{n}") == piece for n in range(100))
