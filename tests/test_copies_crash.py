"""Replicated pools: the kernel of a proxy that ended with writes under way goes on sending them."""

import json
import signal
import time

import pytest

from harness import SOAK, until
from harness.copies import copies_of, copy_state, replicated, until_current, until_out
from harness.proxy import config
from harness.wire import Wire, may_lay


@pytest.fixture(scope="module")
def wires():
    if not may_lay():
        pytest.skip("networks of one's own need root and /dev/net/tun")


@pytest.fixture
def wire(wires, cleanup):
    wire = Wire()
    cleanup.callback(wire.stop)
    return wire


def why(proxy, server):
    return proxy.member(server.address)["copy"].get("why", "")


def ends(server):
    """The peers of a server's connections, without the connection that asks and the server's own socket."""
    with server.raw() as direct:
        own = {"tcp:{}:{}".format(*direct.sock.getsockname()), f"tcp:{server.address}"}
        return {value for name, value in direct.stats("conns").items() if name.endswith(":addr")} - own


def end(proxy, how):
    """Ends the proxy as a crash does, or at once with writes unanswered."""
    if how == signal.SIGKILL:
        return proxy.kill()
    proxy.signal(how)
    assert proxy.wait() == 0


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_writes_a_dead_proxys_kernel_still_sends_overwrite_nothing(
    wire, memcached, cleanup, proxima, tmp_path, how
):
    far = wire.memcached()
    cleanup.callback(far.stop)
    servers = [far, *memcached.several(2)]
    made = replicated(servers, timeout="30s", state=str(tmp_path / "state.json"))
    # The proxy reads the far server.
    near = ("--node-address", wire.there)
    proxy = proxima(made, *near)
    until_current(proxy, *servers)
    client = proxy.raw()
    client.set("k", "0")
    before = ends(far)
    wire.cut()
    client.send(b"set k 0 0 1\r\n1\r\n")
    until(lambda: copies_of(servers[1:], "k") == [b"1"] * 2, "the others have it")
    # The kernel's next attempt comes after twice that time, and the next process starts before it.
    until(lambda: wire.pause() > 3, "the kernel tries again after a while only")
    end(proxy, how)
    wire.mend()
    proxy = proxima(made, *near)
    until_current(proxy, *servers[1:])
    until(
        lambda: copy_state(proxy, far) == "out" and "may still come by" in why(proxy, far), "it is waited for"
    )
    with proxy.raw() as client:
        client.set("k", "2")
        until(lambda: not before & ends(far), "the old connections are gone")
        assert client.get("k") in (b"2", None)
        until_current(proxy, *servers)
        assert client.get("k") is None
        assert copies_of(servers, "k") == [None, b"2", b"2"]
    assert proxy.metric("copy_flushes_total") == 0


def until_all_have_answered(state):
    """Until the file says so: a copy that it does not know to be good is flushed at the next start."""
    until(
        lambda: '"from": "127' in state.read_text() and "everything" not in state.read_text(), "it is written"
    )


def test_copies_keep_their_values_over_a_crash_without_pending_writes(servers, proxima, tmp_path):
    state = tmp_path / "state.json"
    made = replicated(servers, state=str(state))
    proxy = proxima(made)
    until_current(proxy, *servers)
    with proxy.raw() as client:
        client.set("k", "v")
    until_all_have_answered(state)
    proxy.kill()
    proxy = proxima(made)
    until_current(proxy, *servers)
    assert copies_of(servers, "k") == [b"v"] * 3
    assert proxy.metric("copy_flushes_total") == 0


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_after_a_clean_end_every_copy_is_read_at_once(servers, proxima, tmp_path, how):
    state = tmp_path / "state.json"
    made = replicated(servers, state=str(state))
    proxy = proxima(made)
    until_current(proxy, *servers)
    assert json.loads(state.read_text())["clean"] is False
    with proxy.raw() as client:
        client.set("k", "v")
    proxy.signal(how)
    assert proxy.wait() == 0
    text = json.loads(state.read_text())
    assert text["clean"] is True and {copy["missed"] for copy in text["copies"]} == {"nothing"}
    # After a clean end the proxy does not wait for another client's connection.
    with servers[0].raw():
        proxy = proxima(made)
        with proxy.raw() as client:
            assert client.get("k") == b"v"
        assert [copy_state(proxy, server) for server in servers] == ["current"] * 3
    assert "copy" not in proxy.log()


def test_after_a_crash_a_copy_waits_until_old_connections_are_gone(servers, proxima, tmp_path):
    """The proxy cannot tell whose connections these are. Here they belong to another client."""
    state = tmp_path / "state.json"
    made = replicated(servers, state=str(state))
    proxy = proxima(made)
    until_current(proxy, *servers)
    with proxy.raw() as client:
        client.set("k", "v")
        client.set("n", "1")
    until_all_have_answered(state)
    proxy.kill()
    with servers[0].raw():
        proxy = proxima(made)
        until_current(proxy, *servers[1:])
        until(lambda: "may still come by 1 connection, for up to 1" in why(proxy, servers[0]), "it is told")
        with proxy.raw() as client:
            assert client.get("k") == b"v"
            client.set("k", "w")
            assert client.ask(b"incr n 1\r\n") == b"2\r\n"
        assert copy_state(proxy, servers[0]) in ("leaving", "out")
        assert copies_of(servers, "k") == [b"v", b"w", b"w"]
    until_current(proxy, *servers)
    assert copies_of(servers, "k") == [None, b"w", b"w"]
    assert proxy.metric("copy_flushes_total") == 0


def test_an_end_while_orphaned_connections_remain_is_not_clean(memcached, proxima, tmp_path):
    servers = memcached.several(3)
    state = tmp_path / "state.json"
    made = replicated(servers, state=str(state))
    proxy = proxima(made)
    until_current(proxy, *servers)
    proxy.kill()
    with servers[0].raw():
        proxy = proxima(made)
        until_current(proxy, *servers[1:])
        proxy.signal(signal.SIGTERM)
        assert proxy.wait() == 0
        assert json.loads(state.read_text())["clean"] is False
        proxy = proxima(made)
        until_current(proxy, *servers[1:])
        until(lambda: "may still come by" in why(proxy, servers[0]), "it is waited for again")


def row_of_old(address, owes="nothing", **keys):
    return {"pool": "cache", "address": address, "pid": None, "uptime_seconds": None, "owes": owes, **keys}


def rebooted(state):
    text = json.loads(state.read_text())
    state.write_text(json.dumps(text | {"boot_id": "another"}))


def test_after_a_reboot_orphaned_connections_are_not_waited_for(memcached, proxima, tmp_path):
    servers = memcached.several(3)
    state = tmp_path / "state.json"
    made = replicated(servers, state=str(state))
    proxy = proxima(made)
    until_current(proxy, *servers)
    with proxy.raw() as client:
        client.set("k", "v")
    until_all_have_answered(state)
    proxy.kill()
    rebooted(state)
    with servers[0].raw():
        proxy = proxima(made)
        until_out(proxy, servers[0])
        until_current(proxy, *servers)


LONG = [pytest.mark.skipif(not SOAK, reason="two minutes"), pytest.mark.timeout(300)]


@pytest.mark.parametrize("reboot", [True, pytest.param(False, marks=LONG)])
def test_copies_on_unix_sockets_wait_a_fixed_time_after_a_crash(memcached, proxima, folder, reboot):
    """A server does not list connections by Unix sockets with an address."""
    paths = [folder / f"{number}.sock" for number in range(3)]
    for path in paths:
        memcached(socket=str(path))
    servers = [f"unix:{path}" for path in paths]
    state = folder / "state.json"
    made = config("cache", {"cache": {"servers": servers, "replicated": True}}, state=str(state))

    def copy_states(proxy):
        return {proxy.member(server)["copy"]["state"] for server in servers}

    # With this file the first start has nothing to wait for.
    state.write_text(json.dumps({"clean": True, "copies": [row_of_old(server) for server in servers]}))
    proxy = proxima(made)
    assert copy_states(proxy) == {"current"}
    proxy.kill()
    if reboot:
        rebooted(state)
    proxy = proxima(made)
    assert copy_states(proxy) <= {"leaving", "out"}

    def told():
        return {proxy.member(server)["copy"]["why"].split(", for")[0] for server in servers}

    may_come = "what a process before this one has left may still come by connections that it cannot list"
    until(lambda: told() == {may_come}, "it is said why they are waited for")
    until(lambda: copy_states(proxy) == {"current"}, "all are read") if reboot else time.sleep(130)
    assert copy_states(proxy) == {"current"}


def test_a_state_file_in_the_old_format_is_read(memcached, proxima, tmp_path):
    servers = memcached.several(3)
    rows = [
        row_of_old(server.address, owes, uptime_seconds=0)
        for server, owes in zip(servers, ["timeout", None, None])
    ]
    state = tmp_path / "state.json"
    state.write_text(json.dumps({"copies": rows}))
    for server in servers:
        server.set("k", "v")
    proxy = proxima(replicated(servers, state=str(state)))
    until_current(proxy, *servers)
    assert copies_of(servers, "k") == [None, b"v", b"v"]

    def said():
        return {copy["missed"] for copy in json.loads(state.read_text())["copies"]}

    until(lambda: said() == {"nothing"}, "the file says so in its new words")
