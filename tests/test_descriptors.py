"""The limit on open files: the proxy raises it where it may, keeps to it where not, and blames no server for
it."""

import contextlib
import pathlib
import re
import resource

import pytest

from harness import until
from harness.copies import copies_of, replicated
from harness.proxy import config

FEW = ("prlimit", "--nofile=64:64")


def allowed(proxy):
    """The soft limit of the process."""
    text = pathlib.Path(f"/proc/{proxy.process.pid}/limits").read_text()
    return int(re.search(r"^Max open files\s+(\d+)", text, re.M)[1])


NONE = 3
"""A limit that leaves no descriptor free: only standard input, output and error fit."""


def allow(proxy, files):
    """Sets the process's soft limit. Open files stay open."""
    _, hard = resource.prlimit(proxy.process.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(proxy.process.pid, resource.RLIMIT_NOFILE, (files, hard))


def idle(stack, proxy, count):
    return [stack.enter_context(proxy.raw()) for _ in range(count)]


def test_the_limit_on_open_files_is_raised_at_the_start_and_by_a_reload(proxima):
    proxy = proxima(config("embedded", limits={"clients": 300}), before=("prlimit", "--nofile=128:4096"))
    first = allowed(proxy)
    assert 300 < first < 4096
    proxy.config["limits"]["clients"] = 1300
    proxy.write(proxy.config)
    until(lambda: allowed(proxy) == first + 1000, "a thousand more for a thousand clients more")
    proxy.config["limits"]["clients"] = 100_000
    proxy.write(proxy.config)
    until(lambda: allowed(proxy) == 4096, "as many as may be")
    until(lambda: "fewer open files are allowed" in proxy.log(), "it is logged")


def test_at_the_descriptor_limit_servers_and_operators_keep_their_connections(memcached, proxima):
    servers = memcached.several(3)
    proxy = proxima(replicated(servers, timeout="20s"), before=FEW)
    with contextlib.ExitStack() as stack:
        client = stack.enter_context(proxy.raw())
        assert client.ask(b"") == b""
        crowd = idle(stack, proxy, 80)
        until(lambda: "descriptors run out" in proxy.log(), "it is told")
        client.set("k", "v")
        assert client.get("k") == b"v"
        assert [server.get("k") for server in servers] == [b"v"] * 3
        assert all(proxy.member(server.address)["state"] == "up" for server in servers)
        assert all(proxy.member(server.address)["copy"]["state"] == "current" for server in servers)
        assert proxy.metric("descriptor_shortages_total", what="accept") > 0
        assert proxy.metric("copy_stale_total") == 0
        assert proxy.http("/ready")[0] == 503, "more clients are not to be sent here"
        late = stack.enter_context(proxy.raw())
        late.send(b"get k\r\n")
        for other in crowd:
            other.close()
        # This client has waited in the kernel's queue.
        assert late.until(b"END\r\n") == b"VALUE k 0 1\r\nv\r\nEND\r\n"
    assert proxy.log().count("descriptors run out") == 1


def test_a_half_closed_client_with_a_long_line_makes_way_for_waiting_clients(memcached, proxima):
    server = memcached()
    pool = {"servers": [server.address], "timeout": "10m"}
    proxy = proxima(config("cache", {"cache": pool}, workers=1), before=FEW)
    line = b"get" + b" k" * 10_000 + b"\r\n"
    with contextlib.ExitStack() as stack:
        reader = stack.enter_context(proxy.raw())
        reader.set("k", "v")
        # From now on a line of keys does not end.
        server.freeze()
        reader.send(line)
        for client in idle(stack, proxy, 80):
            client.send(line)
            client.finish()
        newcomer = stack.enter_context(proxy.raw())
        assert newcomer.ask(b"version\r\n").startswith(b"VERSION ")
        assert proxy.metric("clients_closed_total", reason="half_closed") > 0
        server.thaw()
        # A client that has not closed its side is served to the end.
        assert reader.until(b"END\r\n") == b"VALUE k 0 1\r\nv\r\n" * 10_000 + b"END\r\n"
        assert newcomer.get("k") == b"v"


def test_clients_wait_while_descriptors_are_short(proxima):
    proxy = proxima(config("embedded"), before=("prlimit", "--nofile=512:512"))
    with contextlib.ExitStack() as stack:
        first = stack.enter_context(proxy.raw())
        first.set("k", "v")
        allow(proxy, NONE)
        waiting = idle(stack, proxy, 20)
        for client in waiting:
            client.send(b"get k\r\n")
        until(lambda: "Too many open files" in proxy.log(), "it is told")
        assert first.get("k") == b"v"
        allow(proxy, 512)
        for client in waiting:
            assert client.until(b"END\r\n") == b"VALUE k 0 1\r\nv\r\nEND\r\n"
    assert proxy.metric("descriptor_shortages_total", what="accept") > 0


@pytest.mark.parametrize("route", ["copies", "hashed"])
def test_a_shortage_of_descriptors_ejects_no_server(memcached, proxima, route):
    servers = memcached.several(3)
    made = (
        replicated(servers, timeout="20s", workers=1)
        if route == "copies"
        else config("cache", {"cache": [server.address for server in servers]}, workers=1)
    )
    proxy = proxima(made, before=("prlimit", "--nofile=512:512"))
    with proxy.raw() as client:
        assert client.ask(b"") == b""
        allow(proxy, NONE)
        for key in (b"a", b"b", b"c", b"d"):
            answer = client.ask(b"set %b 0 0 1\r\nv\r\n" % key)
            assert re.fullmatch(
                rb"SERVER_ERROR \S+: cannot connect: Too many open files in this proxy\r\n", answer
            )
        allow(proxy, 512)
        client.set("k", "v")
        assert client.get("k") == b"v"
        rows = [proxy.member(server.address) for server in servers]
        assert [row["state"] for row in rows] == ["up"] * 3
        assert all(row["ejections"] == row["failures_in_a_row"] == 0 for row in rows)
        if route == "copies":
            assert [row["copy"]["state"] for row in rows] == ["current"] * 3
            assert [server.get("k") for server in servers] == [b"v"] * 3
            assert proxy.metric("copy_stale_total") == 0
    assert proxy.metric("descriptor_shortages_total", what="connect") >= 4


@pytest.mark.parametrize("request_", [b"set k 0 0 3\r\nnew\r\n", b"incr k 1\r\n"], ids=["set", "incr"])
def test_a_change_that_could_not_be_sent_to_one_copy_is_removed_from_all(memcached, proxima, request_):
    servers = memcached.several(3)
    proxy = proxima(replicated(servers, timeout="20s", workers=1), before=("prlimit", "--nofile=512:512"))
    with proxy.raw() as client:
        for lost in servers:
            client.set("k", "1")
            lanes = proxy.metric("lanes")
            lost.kill()
            until(lambda: proxy.metric("lanes") < lanes, "its connection is closed")
            lost.start()
            lost.set("k", "1")
            allow(proxy, NONE)
            answer = client.ask(request_)
            words = f"SERVER_ERROR {lost.address}: cannot connect: Too many open files in this proxy\r\n"
            assert answer == words.encode()
            assert set(copies_of(servers, "k")) <= {b"1", None}
            allow(proxy, 512)
            assert client.get("k") in (b"1", None)
    assert proxy.metric("copy_stale_total") == 0
