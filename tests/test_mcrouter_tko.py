"""Servers that mcrouter's door leaves out (TKO), what a new configuration makes of that, and connections on
which nothing is asked."""

import json
import threading
import time

import pytest

from harness import ports, until
from harness.mcrouter import of_pool, stats

pytestmark = pytest.mark.either_io


def suspects(client):
    return stats(client, "suspect_servers")


def states(client):
    """How many connections to servers are in which state."""
    figures = stats(client)
    return {state: int(figures[f"num_servers_{state}"]) for state in ("new", "up", "down", "closed")}


def fails(client, request=b"get k\r\n"):
    client.send(request)
    line = client.line()
    assert line.startswith(b"SERVER_ERROR "), line
    return line


def test_a_server_that_refuses_is_told_until_the_configuration_drops_it(memcached, router):
    address, server = ports.address(), memcached()
    proxy = router(of_pool(address), "-v", "3")
    with proxy.raw() as client:
        assert suspects(client) == {}
        fails(client)
        assert suspects(client) == {address: "status:tko num_failures:2"}
        row = stats(client, "servers")[f"{address}:ascii:plain:notcompressed-20000"]
        assert " hard_tko; down:1;" in row and row.endswith(" connect_error:1")
        assert fails(client).startswith(b"SERVER_ERROR Server unavailable. Reason: ")
        figures = stats(client, "all")
        assert (figures["num_suspect_servers"], figures["num_hard_tko_count"]) == ("1", "1")
        assert (figures["result_tko_all_count"], figures["result_connect_error_all_count"]) == ("1", "1")
        proxy.write(json.dumps(of_pool(server.address)))
        until(lambda: suspects(client) == {}, "the server is gone")
        assert client.ask(b"get k\r\n") == b"END\r\n"
        counts = stats(client, "count")
        assert (counts["result_connect_error_all_count"], counts["result_error_all_count"]) == ("1", "2")
    said = f"{address} marked hard TKO. Total hard TKOs: 1; soft TKOs: 0"
    until(lambda: said in proxy.log(), "the ejection is logged")
    assert f"{address} was TKO, removed from config. Total hard TKOs: 0; soft TKOs: 0" in proxy.log()


def read_on(sock):
    """A server that reads and never answers."""
    while sock.recv(1 << 16):
        pass


@pytest.mark.parametrize("policy", ["DeterministicOrderPolicy", "RendezvousPolicy"])
def test_a_failover_over_a_silent_inline_pool_asks_other_servers_each_time(scripted, router, policy):
    servers = [scripted(read_on, version=None).address for _ in range(8)]
    tags = [f"t{number}" for number in range(8)]
    pool = {"type": "Pool", "name": "A", "servers": servers}
    hash = {"DeterministicOrderPolicy": "Ch3", "RendezvousPolicy": {"hash_func": "Rendezvous", "tags": tags}}
    first = {"type": "PoolRoute", "pool": {"name": "A", "servers": servers}, "hash": hash[policy]}
    rules = {
        "DeterministicOrderPolicy": {"max_tries": 8, "max_error_tries": 3},
        "RendezvousPolicy": {"tags": tags},
    }
    route = {
        "type": "FailoverRoute",
        "children": [first, pool],
        "failover_policy": {"type": policy, **rules[policy]},
    }
    options = ("--server-timeout=100", "--timeouts-until-tko=1", "--probe-timeout-initial=60000")
    proxy = router({"route": route}, *options)
    with proxy.raw() as client:
        assert fails(client) == b"SERVER_ERROR Reply timeout\r\n"
        asked, counts = len(suspects(client)), stats(client, "all")
        # The last try that the policy allows is the answer, and counts as none.
        assert int(counts["failover_policy_tko_error"]) == 0
        if policy == "RendezvousPolicy":
            assert asked == 8
            assert int(counts["failover_policy_result_error"]) == 7
        else:
            assert asked == 3 and int(counts["failover_policy_result_error"]) == 3
        fails(client)
        counts = stats(client, "all")
        assert int(counts["failover_policy_tko_error"]) >= 3
        assert len(suspects(client)) >= 5, "the next request tries others"


def test_an_ejection_is_forgotten_with_the_time_out_by_which_it_was_found(memcached, router):
    address = ports.address()
    pools = {"A": {"servers": [address]}, "B": {"servers": [address], "server_timeout": 500}}
    both = {"pools": pools, "route": {"type": "AllSyncRoute", "children": ["PoolRoute|A", "PoolRoute|B"]}}
    proxy = router(both | {"route": "PoolRoute|A"}, "-v", "3")
    with proxy.raw() as client:
        fails(client)
        # As long as the destination that found it is there, whatever else is.
        proxy.write(json.dumps(both))
        names = {f"{address}:ascii:plain:notcompressed-{millis}" for millis in (500, 20000)}
        until(lambda: set(stats(client, "servers")) == names, "the new configuration is in effect")
        assert set(suspects(client)) == {address}
        proxy.write(json.dumps(both | {"route": "PoolRoute|B"}))
        until(lambda: suspects(client) == {}, "the ejection is forgotten")
        assert f"{address} was TKO, removed from config" in proxy.log()
        # It is asked again.
        assert fails(client).startswith(b"SERVER_ERROR AsyncSocketException: ")
        assert set(suspects(client)) == {address}


def test_a_new_configuration_while_a_probe_is_under_way_ends_the_ejection(memcached, scripted, router):
    began, ends = threading.Event(), threading.Event()

    def talk(sock):
        if sock.recv(100) == b"version\r\n":
            began.set()
            ends.wait(30)
            sock.sendall(b"VERSION 1\r\n")
        # A request: the connection is closed without an answer.

    server, other = scripted(talk, version=None), memcached()
    options = ("-v", "3", "--probe-timeout-initial=100", "--server-timeout=30000")
    proxy = router(of_pool(server.address), *options)
    with proxy.raw() as client:
        fails(client)
        assert suspects(client) == {server.address: "status:tko num_failures:2"}
        assert began.wait(30), "it is probed"
        proxy.write(json.dumps(of_pool(other.address)))
        until(lambda: suspects(client) == {}, "the server is gone")
        ends.set()
        time.sleep(0.3)
        assert suspects(client) == {}
        assert client.ask(b"get k\r\n") == b"END\r\n"
    assert f"{server.address} was TKO, removed from config" in proxy.log()
    assert "unmarked TKO" not in proxy.log()


def test_a_server_that_is_late_is_left_out_until_a_probe_finds_it(memcached, router):
    server = memcached()
    options = ("-v", "2", "--server-timeout=200", "--timeouts-until-tko=2", "--probe-timeout-initial=50")
    proxy = router(of_pool(server.address), *options)
    with proxy.raw() as client:
        client.ask(b"get k\r\n")
        server.freeze()
        fails(client)
        assert suspects(client) == {server.address: "status:down num_failures:1"}
        fails(client)
        assert suspects(client)[server.address] == "status:tko num_failures:2"
        assert (stats(client)["num_soft_tko_count"], stats(client)["num_hard_tko_count"]) == ("1", "0")
        assert " soft_tko; " in "".join(stats(client, "servers").values())
        server.thaw()
        until(lambda: suspects(client) == {}, "it is found back")
        assert client.ask(b"get k\r\n") == b"END\r\n"
    log = proxy.log()
    assert f"{server.address} marked soft TKO. Total hard TKOs: 0; soft TKOs: 1" in log
    assert f"{server.address} unmarked TKO. Total hard TKOs: 0; soft TKOs: 0" in log


@pytest.mark.parametrize("level, is_told", [("1", False), ("2", True)])
def test_ejections_are_told_from_the_second_level_of_the_log(router, level, is_told):
    address = ports.address()
    proxy = router(of_pool(address), "-v", level)
    with proxy.raw() as client:
        fails(client)
        until(lambda: "ejected" in proxy.log(), "the ejection is logged")
        # The thread that logs it answers this when it has written all.
        assert suspects(client)
    assert ("marked hard TKO" in proxy.log()) == is_told


def test_connections_on_which_nothing_is_asked_are_closed(memcached, router):
    server = memcached()
    proxy = router(of_pool(server.address), "--reset-inactive-connection-interval=500")
    with proxy.raw() as client:
        assert states(client) == {"new": 1, "up": 0, "down": 0, "closed": 0}
        client.ask(b"get k\r\n")
        assert states(client) == {"new": 0, "up": 1, "down": 0, "closed": 0}
        idle = time.monotonic()
        until(lambda: states(client)["closed"] == 1, "the connection is closed")
        assert 0.4 < time.monotonic() - idle < 5
        # One for this question alone is left.
        until(lambda: server.stat("curr_connections") <= 2, "the server knows")
        assert client.ask(b"get k\r\n") == b"END\r\n"
        assert states(client)["up"] == 1
        assert suspects(client) == {}, "nobody has failed"


def test_connections_without_an_end_stay(memcached, router):
    proxy = router(of_pool(memcached().address), "--reset-inactive-connection-interval=0")
    with proxy.raw() as client:
        client.ask(b"get k\r\n")
        time.sleep(1)
        assert states(client)["up"] == 1


def test_a_connection_is_not_idle_while_something_is_asked(memcached, router):
    server = memcached()
    proxy = router(of_pool(server.address), "--reset-inactive-connection-interval=300", "-t", "20000")
    with proxy.raw() as client:
        client.ask(b"get k\r\n")
        server.freeze()
        client.send(b"get k\r\n")
        time.sleep(1)
        server.thaw()
        assert client.line() == b"END\r\n"


@pytest.mark.parametrize("options", [(), ("--group-remote-errors",)], ids=["plain", "grouped"])
def test_a_router_does_not_suspect_the_one_behind_it_for_its_servers(memcached, router, options):
    server = memcached()
    back = router(of_pool(server.address), "--asynclog-disable", *options)
    front = router(of_pool(back.address), "--asynclog-disable", "--timeouts-until-tko=1")
    requests = [b"get k\r\n", b"set k 0 0 1\r\nx\r\n", b"delete k\r\n"]
    with front.raw() as client, back.raw() as direct:
        assert client.ask(b"get k\r\n") == b"END\r\n"
        server.kill()
        for request in requests * 3:
            fails(client, request)
        assert set(suspects(direct)) == {server.address}
        assert suspects(client) == {}
        figures = stats(client, "count")
        assert figures["result_remote_error_count"] == figures["result_remote_error_all_count"] == "9"
        assert figures["result_tko_count"] == "0"
