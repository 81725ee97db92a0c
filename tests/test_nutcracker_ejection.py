"""twemproxy's front door beside the real `nutcracker`: the same requests are lost to a server that fails."""

import pathlib
import time

import pytest

from harness import ports, until
from harness.nutcracker import NUTCRACKER, counts, entry, key_of, lost

pytestmark = [
    pytest.mark.either_io,
    pytest.mark.skipif(
        not pathlib.Path(NUTCRACKER).exists(), reason="nutcracker is missing: scripts/prepare.sh"
    ),
]


RETRY = 1_500


@pytest.fixture
def pair(both, memcached):
    """Both proxies, with limit and other keys, over two servers; and a key of the second server."""

    def start(limit, workers, **keys):
        servers = memcached.several(2)
        eject = {
            "auto_eject_hosts": True,
            "server_failure_limit": limit,
            "server_retry_timeout": RETRY,
            **keys,
        }
        pools = {"p": {"distribution": "modula", **eject, "servers": [entry(server) for server in servers]}}
        return servers, key_of(both, servers, 1), lambda: both(pools, workers=workers)

    return start


EACH = [(limit, workers) for limit in (1, 2) for workers in (1, 4)]


@pytest.mark.parametrize("limit, workers", EACH)
@pytest.mark.parametrize("preconnect", [False, True], ids=["", "preconnect"])
def test_a_dead_server_costs_as_many_requests_as_in_twemproxy(pair, limit, workers, preconnect):
    servers, key, start = pair(limit, workers, preconnect=preconnect)
    servers[1].kill()
    theirs, ours = start()
    time.sleep(0.2)
    first = lost(theirs, key, count=5)
    assert lost(ours, key, count=5) == first
    assert first == [True] * (limit - preconnect) + [False] * (5 - limit + preconnect)
    # Both are asked again when the time is over, and lose as many requests once more.
    time.sleep(RETRY / 1_000 + 0.2)
    again = lost(theirs, key, count=5)
    assert lost(ours, key, count=5) == again == [True] * limit + [False] * (5 - limit)
    until(lambda: theirs.stats()["p"]["server_ejects"] == 2, "twemproxy's count is fresh")
    assert ours.metric("member_ejections_total") == 2


@pytest.mark.parametrize("limit, workers", EACH)
def test_a_killed_server_costs_as_many_requests_as_in_twemproxy(pair, limit, workers):
    servers, key, start = pair(limit, workers)
    theirs, ours = start()
    assert lost(theirs, key, count=1) == [False]
    # Every worker gets to know the server.
    assert lost(ours, key, count=12) == [False] * 12
    servers[1].kill()
    time.sleep(0.5)
    first = lost(theirs, key, count=5)
    assert lost(ours, key, count=5) == first == [True] * (limit - 1) + [False] * (6 - limit)


@pytest.mark.alone
@pytest.mark.parametrize("limit, workers", EACH)
def test_a_frozen_server_costs_as_many_requests_as_in_twemproxy(pair, limit, workers):
    servers, key, start = pair(limit, workers, timeout=400)
    theirs, ours = start()
    # Every worker gets to know the server.
    enough = workers**2
    assert lost(theirs, key) + lost(ours, key, count=enough) == [False] * (enough + 1)
    for _ in range(2 if workers > 1 else 1):
        servers[1].freeze()
        first = lost(theirs, key, count=4)
        assert lost(ours, key, count=4) == first == [True] * limit + [False] * (4 - limit)
        servers[1].thaw()
        time.sleep(RETRY / 1_000 + 0.2)
        assert lost(theirs, key, count=4) + lost(ours, key, count=enough) == [False] * (enough + 4)


@pytest.mark.parametrize("limit, workers", EACH)
def test_requests_of_one_connection_to_a_server_count_once(pair, limit, workers):
    servers, key, start = pair(limit, workers)
    servers[1].kill()
    theirs, ours = start()

    def pipelined(proxy):
        with proxy.raw() as client:
            client.send(b"set %b 0 0 1\r\nv\r\n" % key * 5)
            return [client.line().startswith(b"SERVER_ERROR") for _ in range(5)]

    first = [pipelined(theirs) for _ in range(3)]
    assert [pipelined(ours) for _ in range(3)] == first == [[True] * 5] * limit + [[False] * 5] * (3 - limit)


@pytest.mark.parametrize("flushes", [False, True])
def test_a_server_that_returns_is_flushed_where_the_file_says_so(door, memcached, flushes):
    server = memcached()
    eject = {"auto_eject_hosts": True, "server_failure_limit": 1, "server_retry_timeout": 500}
    pool = {"listen": ports.address(), "timeout": 500, "servers": [entry(server)], **eject}
    proxy = door({"p": {**pool, "flush_on_return": flushes}})
    with proxy.raw() as client:
        client.set("k", "v")
        server.freeze()
        client.send(b"get k\r\n")
        assert client.line().startswith(b"SERVER_ERROR")
        # It stays out as long as it cannot be flushed.
        time.sleep(1.2)
        assert proxy.member(server.address)["state"] == ("ejected" if flushes else "up")
        server.thaw()
        until(lambda: proxy.member(server.address)["state"] == "up", "it is back")
        assert client.get("k") == (None if flushes else b"v")
        client.set("k", "w")
        assert client.get("k") == b"w"


def test_a_reply_begins_the_count_anew(both, memcached, scripted):
    seen = []

    def every_second_connection_fails(sock):
        seen.append(1)
        while sock.recv(4096):
            if len(seen) % 2:
                return
            sock.sendall(b"STORED\r\n")
            return

    one, other = memcached(), scripted(every_second_connection_fails)
    eject = {"auto_eject_hosts": True, "server_failure_limit": 3, "server_retry_timeout": RETRY}
    entries = [entry(one, 1, "a"), entry(other, 1, "b")]
    theirs, ours = both({"p": {"distribution": "modula", **eject, "servers": entries}}, workers=1)
    for proxy in (theirs, ours):
        for i in range(20):
            lost(proxy, b"key%d" % i)
    assert theirs.stats()["p"]["server_ejects"] == ours.metric("member_ejections_total") == 0


def test_without_auto_eject_every_request_tries_again(both, memcached):
    servers = memcached.several(2)
    key = key_of(both, servers, 1)
    theirs, ours = both({"p": {"distribution": "modula", "servers": [entry(server) for server in servers]}})
    servers[1].kill()
    for proxy in (theirs, ours):
        lost(proxy, key)  # twemproxy may find the end of its connection only now
        assert lost(proxy, key, count=5) == [True] * 5
    servers[1].start()
    for proxy in (theirs, ours):
        assert lost(proxy, key, count=5) == [False] * 5


def test_all_servers_ejected_is_an_error_for_every_request(both):
    nobody = [ports.address() for _ in range(2)]
    eject = {"auto_eject_hosts": True, "server_failure_limit": 1, "server_retry_timeout": 60_000}
    for proxy in both({"p": {**eject, "servers": [entry(address) for address in nobody]}}):
        for i in range(10):
            assert lost(proxy, b"key%d" % i) == [True]


@pytest.mark.alone
def test_statistics_tell_what_has_failed_as_in_twemproxy(pair):
    servers, key, start = pair(1, 4, timeout=150)
    theirs, ours = start()
    for proxy in (theirs, ours):
        lost(proxy, key)
    servers[1].freeze()
    for proxy in (theirs, ours):
        assert lost(proxy, key) == [True]
        until(lambda: counts(proxy)[0]["server_ejects"] == 1, "the ejection is counted")
        until(lambda: counts(proxy)[1]["server_timedout"] == 1, "the time-out is counted")
        own, of_servers = counts(proxy)
        assert (of_servers["server_timedout"], of_servers["requests"], of_servers["responses"]) == (1, 2, 1)
        assert abs(of_servers["server_ejected_at"] / 1e6 - time.time()) < 30
