"""Clients are led away by a file, by a call and by SIGTERM."""

import contextlib
import signal
import socket

import pytest

from harness import ports, until
from harness.proxy import config
from harness.redis import Connection


@pytest.fixture
def out(tmp_path):
    """The file whose presence takes a proxy out."""
    return tmp_path / "out"


WAYS = ["file", "call"]


class Way:
    """One of the ways to begin a drain and to take it back."""

    def __init__(self, kind, proxy, out):
        self.begin = {"file": out.touch, "call": lambda: proxy.http("/drain", "POST")}[kind]
        self.end = {"file": out.unlink, "call": lambda: proxy.http("/drain", "DELETE")}[kind]
        self.reason = {"file": f"the file {out} is there", "call": "an operator has asked for it"}[kind]


def ready(proxy):
    return proxy.http("/ready")[0]


@pytest.mark.parametrize("kind", WAYS)
def test_a_drain_is_unwell_first_and_serves_everybody_for_the_delay(proxima, out, kind):
    proxy = proxima(config("embedded", drain={"file": str(out), "delay": "1h"}))
    way = Way(kind, proxy, out)
    with proxy.raw() as before:
        way.begin()
        until(lambda: ready(proxy) == 503, "it is unwell")
        assert proxy.http("/ready")[1] == f"not ready\ndraining: {way.reason}\n"
        assert proxy.http("/drain") == (200, f"draining: {way.reason}\n")
        with proxy.raw() as after:
            before.set("k", "v")
            assert after.get("k") == b"v"
        way.end()
        until(lambda: ready(proxy) == 200, "it is well again")
        assert before.get("k") == b"v"


@pytest.mark.parametrize("kind", WAYS)
def test_a_drain_closes_each_client_when_nothing_is_due_and_can_be_taken_back(memcached, proxima, out, kind):
    server = memcached()
    pools = {"cache": {"servers": [server.address], "timeout": "50s"}}
    proxy = proxima(config("cache", pools, drain={"file": str(out), "limit": "1h"}))
    way = Way(kind, proxy, out)
    server.set("k", "v")
    for _ in range(2):
        with proxy.raw() as waiting, proxy.raw() as idle:
            idle.set("a", "1")
            server.freeze()
            waiting.send(b"get k\r\n")
            until(lambda: proxy.metric("requests_in_flight") == 1, "a request is on its way")
            way.begin()
            assert idle.rest() == b""
            until(lambda: not proxy.connects(), "it takes no new clients")
            assert ready(proxy) == 503
            server.thaw()
            assert waiting.rest() == b"VALUE k 0 1\r\nv\r\nEND\r\n"
        until(lambda: "no client is left" in proxy.log(), "it has drained")
        way.end()
        until(lambda: ready(proxy) == 200, "it is well again")
        with proxy.raw() as client:
            assert client.get("k") == b"v"
    assert proxy.process.poll() is None


def test_a_drain_that_both_a_file_and_a_call_want_ends_with_the_last_of_them(proxima, out):
    proxy = proxima(config("embedded", drain={"file": str(out)}))
    out.touch()
    until(lambda: ready(proxy) == 503, "the file is seen")
    proxy.http("/drain", "POST")
    out.unlink()
    until(lambda: "operator" in proxy.http("/drain")[1], "the call is what is left")
    assert ready(proxy) == 503 and not proxy.connects()
    proxy.http("/drain", "DELETE")
    until(lambda: ready(proxy) == 200, "nothing wants it any more")
    assert proxy.connects()


def test_a_drain_cuts_off_at_its_limit_clients_to_which_something_is_due(memcached, proxima, out):
    server = memcached()
    pools = {"cache": {"servers": [server.address], "timeout": "50s"}}
    proxy = proxima(config("cache", pools, drain={"file": str(out), "limit": "300ms"}))
    with proxy.raw() as waiting:
        server.freeze()
        waiting.send(b"get k\r\n")
        until(lambda: proxy.metric("requests_in_flight") == 1, "a request is on its way")
        out.touch()
        assert waiting.rest() == b""
    assert "cut off" in proxy.log()
    server.thaw()
    out.unlink()
    until(lambda: ready(proxy) == 200, "it is well again")
    with proxy.raw() as client:
        client.set("k", "v")
        assert client.get("k") == b"v"


def test_a_drain_leaves_a_client_its_dedicated_connection_until_it_ends(redis_server, proxima, out):
    listener = {"address": ports.address(), "protocol": "redis", "route": "keys"}
    pools = {"keys": {"protocol": "redis", "servers": [redis_server().address]}}
    drain = {"file": str(out), "limit": "1h"}
    proxy = proxima({"workers": 2, "listeners": [listener], "pools": pools, "drain": drain})
    with Connection(proxy.address) as watching, Connection(proxy.address) as idle:
        assert watching.ask("WATCH", "k") == b"+OK\r\n"
        assert watching.ask("MULTI") == b"+OK\r\n"
        assert watching.ask("SET", "k", "v") == b"+QUEUED\r\n"
        assert idle.ask("PING") == b"+PONG\r\n"
        out.touch()
        until(lambda: proxy.metric("clients") == 1, "the idle client is closed")
        assert watching.ask("GET", "k") == b"+QUEUED\r\n"
        assert watching.ask("EXEC") == b"*2\r\n+OK\r\n$1\r\nv\r\n"
        until(lambda: "no client is left" in proxy.log(), "it is closed when its transaction has ended")


def test_sigterm_waits_for_the_delay_and_then_ends(proxima):
    proxy = proxima(config("embedded", drain={"delay": "2s"}))
    with proxy.raw() as client:
        proxy.signal(signal.SIGTERM)
        until(lambda: ready(proxy) == 503, "it is unwell")
        assert proxy.http("/ready")[1] == "not ready\ndraining: the process ends\n"
        client.set("k", "v")
        with proxy.raw() as other:
            assert other.get("k") == b"v"
        assert client.rest() == b""
    assert proxy.wait() == 0


def test_sigterm_ends_a_drained_proxy_at_once(proxima, out):
    proxy = proxima(config("embedded", drain={"file": str(out), "limit": "1h"}))
    out.touch()
    until(lambda: "no client is left" in proxy.log(), "it has drained")
    proxy.signal(signal.SIGTERM)
    assert proxy.wait() == 0


def test_a_drained_proxy_follows_its_configuration_and_opens_the_new_listeners_afterwards(proxima, out):
    drain = {"file": str(out)}
    proxy = proxima(config("embedded", drain=drain))
    out.touch()
    until(lambda: "no client is left" in proxy.log(), "it has drained")
    version, added = proxy.version(), ports.address()
    proxy.config["listeners"].append({"address": added, "route": "embedded"})
    proxy.addresses.append(added)
    proxy.write(proxy.config)
    until(lambda: proxy.version() != version, "the configuration is in effect")
    assert not proxy.connects(0) and not proxy.connects(1)
    out.unlink()
    until(lambda: ready(proxy) == 200, "it is well again")
    assert proxy.connects(0) and proxy.connects(1)


def test_a_listener_that_was_taken_meanwhile_is_opened_as_soon_as_it_is_free(proxima, out):
    proxy = proxima(config("embedded", drain={"file": str(out)}))
    out.touch()
    until(lambda: "no client is left" in proxy.log(), "it has drained")
    host, port = proxy.address.split(":")
    with socket.create_server((host, int(port))):
        out.unlink()
        until(lambda: "in use" in proxy.log(), "the address is taken")
        assert proxy.http("/ready") == (503, "not ready\ndraining: listeners are being opened again\n")
    until(lambda: ready(proxy) == 200, "it is well again")
    with proxy.raw() as client:
        client.set("k", "v")


def test_a_listener_without_descriptors_is_closed_and_opened_again(proxima, out):
    made = config("embedded", drain={"file": str(out)})
    proxy = proxima(made, before=("prlimit", "--nofile=128:128"))
    with contextlib.ExitStack() as stack:
        for _ in range(200):
            stack.enter_context(proxy.raw())
        until(lambda: proxy.metric("descriptor_shortages_total", what="accept") > 0, "some wait")
        out.touch()
        until(lambda: not proxy.connects(0), "nobody can connect")
        out.unlink()
    until(lambda: ready(proxy) == 200, "it is well again")
    with proxy.raw() as client:
        client.set("k", "v")


def test_a_drained_peer_stays_the_keeper_of_its_copy(fleet):
    three = fleet()
    drained, others = three.nodes[0], three.nodes[1:]
    drained.proxy.http("/drain", "POST")
    until(lambda: not drained.proxy.connects(), "it takes no new clients")
    for number, node in enumerate(others * 5):
        with node.proxy.raw() as client:
            client.set(f"k{number}", "v")
    assert len(others[0].view()) == 3
    drained.proxy.http("/drain", "DELETE")
    until(lambda: ready(drained.proxy) == 200, "it is well again")
    with drained.proxy.raw() as client:
        for number in range(10):
            assert client.get(f"k{number}") == b"v"


def test_a_client_that_is_older_than_may_be_is_closed_between_two_requests(memcached, proxima):
    server = memcached()
    pools = {"cache": {"servers": [server.address], "timeout": "50s"}}
    proxy = proxima(config("cache", pools, limits={"age": "1s"}))
    server.set("k", "v")
    with proxy.raw() as waiting, proxy.raw() as idle:
        server.freeze()
        waiting.send(b"get k\r\n")
        assert idle.rest() == b""
        until(lambda: proxy.metric("clients_closed_total", reason="age") == 2, "both are old")
        server.thaw()
        assert waiting.rest() == b"VALUE k 0 1\r\nv\r\nEND\r\n"
    with proxy.raw() as client:
        assert client.get("k") == b"v"
