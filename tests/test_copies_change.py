"""Replicated pools whose configuration changes, or whose proxy restarts: writes that a copy missed are not
forgotten."""

import copy
import json
import time

import pytest

from harness import until
from harness.copies import copies_of, copy_state, replicated, until_current, until_out
from harness.load import Load
from harness.relay import Relay

pytestmark = pytest.mark.either_io


@pytest.fixture
def servers(memcached):
    return memcached.several(3, threads=4)


def change(proxy, **keys):
    """Reloads the proxy with other settings for the pool."""
    made = copy.deepcopy(proxy.config)
    made["pools"]["cache"].update(keys)
    proxy.write(made)
    assert proxy.reload()[0] == 200


@pytest.mark.parametrize("keys", [{"timeout": "300ms"}, {"eject": {"failures": 9}}, "weight"])
def test_other_settings_forget_no_missed_write(servers, proxima, keys):
    proxy = proxima(replicated(servers))
    if keys == "weight":
        keys = {"servers": [{"address": server.address, "weight": 2} for server in servers]}
    with proxy.raw() as client:
        client.set("k", "old")
        client.set("other", "v")
        servers[0].freeze()
        client.set("k", "new")
        change(proxy, **keys)
        assert copy_state(proxy, servers[0]) != "current"
        servers[0].thaw()
        while copy_state(proxy, servers[0]) != "current":
            assert client.get("k") in (b"new", None)
        assert client.get("k") is None
    # The copy is still the same one, and has kept the values that it did not miss.
    assert servers[0].get("other") == b"v"


def test_pool_settings_change_under_load_without_an_error(servers, proxima):
    proxy = proxima(replicated(servers, timeout="1s", workers=2))
    with Load(proxy.address, clients=20, rate=1000) as load:
        for round_ in range(6):
            change(proxy, timeout=f"{900 + round_}ms")
            load.after(200)
    assert proxy.metric("copy_stale_total") == 0


def test_a_copy_frozen_while_settings_change_is_repaired_each_time(servers, proxima):
    proxy = proxima(replicated(servers, workers=2))
    with Load(proxy.address, clients=20, rate=500, tolerant=True) as load:
        for round_ in range(3):
            servers[0].freeze()
            change(proxy, timeout=f"{200 + round_}ms")
            until_out(proxy, servers[0])
            servers[0].thaw()
            until_current(proxy, servers[0])
            load.after(100)
        refused = load.refused
        load.after(300)
        assert load.refused == refused, load.errors[-5:]


class Named:
    """The pool's file of servers."""

    def __init__(self, path):
        self.path = path

    def name(self, servers):
        new = self.path.with_suffix(".new")
        new.write_text("".join(f"{server.address}\n" for server in servers))
        new.rename(self.path)

    def config(self, servers, *args, **keys):
        """A replicated pool that reads its servers from the file."""
        self.name(servers)
        made = replicated(servers, *args, **keys)
        del made["pools"]["cache"]["servers"]
        made["pools"]["cache"]["file"] = str(self.path)
        return made


@pytest.fixture
def named(tmp_path):
    return Named(tmp_path / "servers")


def is_absent(proxy, server):
    return proxy.member(server.address)["copy"].get("departed", False)


def has_left(proxy, server):
    return all(row["address"] != server.address for row in json.loads(proxy.http("/members")[1]))


def test_a_write_is_answered_when_the_copy_it_waits_for_is_removed(servers, proxima, named):
    proxy = proxima(named.config(servers, timeout="2s"))
    with proxy.raw() as client:
        client.set("k", "old")
        servers[2].freeze()
        client.send(b"set k 0 0 3\r\nnew\r\n")
        until(lambda: copies_of(servers[:2], "k") == [b"new"] * 2, "the others have it")
        named.name(servers[:2])
        assert client.line() == b"STORED\r\n"


@pytest.mark.parametrize("grace", ["1m", "0s"])
def test_a_copy_that_left_the_list_frozen_is_repaired_before_it_is_read(servers, proxima, named, grace):
    """Writes that were on their way to the copy when it left are still in its sockets when it comes back."""
    proxy = proxima(named.config(servers, {"grace": grace}))
    with proxy.raw() as client:
        client.set("k", "v0")
        servers[0].freeze()
        client.set("k", "v1")
        named.name(servers[1:])
        away = has_left if grace == "0s" else is_absent
        until(lambda: away(proxy, servers[0]), "it has left")
        client.set("k", "v2")
        named.name(servers)
        until(lambda: not away(proxy, servers[0]), "it is back")
        assert copy_state(proxy, servers[0]) != "current"
        servers[0].thaw()
        while copy_state(proxy, servers[0]) != "current":
            assert client.get("k") in (b"v2", None)
        assert client.get("k") is None


def test_a_copy_that_returns_within_its_grace_loses_only_missed_keys(servers, proxima, named):
    proxy = proxima(named.config(servers, workers=2))
    with proxy.raw() as client:
        client.set("k", "old")
        client.set("other", "v")
        named.name(servers[1:])
        until(lambda: is_absent(proxy, servers[0]), "it has left")
        client.set("k", "new")
        until(lambda: copies_of(servers, "k") == [b"old", b"new", b"new"], "it is not written")
        assert client.get("k") == b"new"
        assert "2 of 2 members up" in proxy.http("/ready")[1]
        states = {name: proxy.metric("copies", state=name) for name in ("current", "out", "departed")}
        assert states == {"current": 2, "out": 0, "departed": 1}
        named.name(servers)
        until_current(proxy, servers[0])
    assert copies_of(servers, "k") == [None, b"new", b"new"]
    assert servers[0].get("other") == b"v"


def test_departed_copies_do_not_count_for_the_majority(memcached, proxima, named):
    servers = memcached.several(4)
    proxy = proxima(named.config(servers))
    with proxy.raw() as client:
        client.set("k", "old")
        named.name(servers[2:])
        until(lambda: all(is_absent(proxy, server) for server in servers[:2]), "two of four have left")
        client.set("k", "new")
        assert client.get("k") == b"new"
    assert copies_of(servers, "k") == [b"old"] * 2 + [b"new"] * 2


def test_a_copy_that_returns_after_its_grace_is_flushed(servers, proxima, named):
    proxy = proxima(named.config(servers, {"grace": "200ms"}))
    with proxy.raw() as client:
        client.set("other", "v")
        named.name(servers[1:])
        until(lambda: has_left(proxy, servers[0]), "its grace has ended")
        named.name(servers)
        until(lambda: not has_left(proxy, servers[0]), "it is back")
        until_current(proxy, servers[0])
    assert copies_of(servers, "other") == [None, b"v", b"v"]


def test_another_server_at_a_departed_copys_address_is_flushed(servers, proxima, named, memcached, cleanup):
    stranger = memcached()
    stranger.set("k", "of its own")
    relay = Relay(servers[0].address)
    cleanup.callback(relay.stop)
    members = [relay, *servers[1:]]
    proxy = proxima(named.config(members))
    until(lambda: proxy.member(relay.address)["state"] == "up", "it was met")
    named.name(members[1:])
    until(lambda: is_absent(proxy, relay), "it has left")
    relay.refuse()
    relay.lead_to(stranger.address)
    relay.heal()
    named.name(members)
    until_current(proxy, relay)
    assert stranger.get("k") is None


def test_with_rejoin_wait_a_copy_silent_at_the_start_rejoins_after_its_restart(servers, proxima):
    servers[0].set("k", "old")
    servers[0].freeze()
    proxy = proxima(replicated(servers, {"rejoin": "wait"}))
    until_out(proxy, servers[0])
    servers[0].thaw()
    until(
        lambda: "rejoin: wait" in proxy.member(servers[0].address)["copy"]["why"], "it says what it waits for"
    )
    # A server reports its age in whole seconds.
    met = time.monotonic() + 2
    until(lambda: time.monotonic() > met, "a life that begins now is another one")
    servers[0].kill()
    servers[0].start()
    until_current(proxy, servers[0])


def test_a_server_added_while_the_proxy_was_down_is_repaired(servers, proxima, tmp_path):
    state = str(tmp_path / "state.json")
    proxy = proxima(replicated(servers[1:], state=state))
    until_current(proxy, *servers[1:])
    with proxy.raw() as client:
        client.set("k", "new")
    proxy.kill()
    servers[0].set("k", "old")
    proxy = proxima(replicated(servers, state=state))
    with proxy.raw() as client:
        assert client.get("k") in (b"new", None)
        until_current(proxy, servers[0])
        assert client.get("k") is None


def test_a_state_file_that_cannot_be_written_refuses_the_start(servers, proxima, tmp_path):
    made = replicated(servers, state=str(tmp_path / "missing" / "state.json"))
    with pytest.raises(AssertionError, match="cannot be written"):
        proxima(made)


@pytest.mark.parametrize("how", ["was out", "was lost meanwhile", "is new"])
def test_a_copy_that_joins_in_mid_upload_keeps_no_older_value(memcached, proxima, how):
    servers = memcached.several(3)
    late, size = servers[0], 100_000
    proxy = proxima(replicated(servers[1:] if how == "is new" else servers, {"min_acks": 1}))
    with proxy.raw() as client, proxy.raw() as other:
        other.set("k", "old")
        if how == "was out":
            late.freeze()
            other.set("x", "x")
            until(lambda: copy_state(proxy, late) == "out", "writes go on without it")
        client.send(b"set k 0 0 %d\r\n%b" % (size, b"v" * (size // 2)))
        until(lambda: proxy.metric("uploads_total") == 1, "it has begun")
        if how == "was out":
            late.thaw()
        elif how == "was lost meanwhile":
            late.kill()
            until_out(proxy, late)
            late.start()
        else:
            # The new copy is listed first, and so is the nearest.
            change(proxy, servers=[server.address for server in servers])
        until_current(proxy, *servers)
        other.set("k", "between")
        assert copies_of(servers, "k") == [b"between"] * 3
        client.send(b"v" * (size // 2) + b"\r\n")
        assert client.line() == b"STORED\r\n"
        assert other.get("k") in (b"v" * size, None)
        until_current(proxy, *servers)
        assert copies_of(servers, "k") == [None, b"v" * size, b"v" * size]
