"""Replicated pools: what the proxy knows of its copies outlives the proxy."""

import json

import pytest

from harness import TRIES, until
from harness.copies import copies_of, replicated, standing, until_current, until_out

pytestmark = pytest.mark.either_io


def test_debts_outlive_a_killed_proxy(servers, proxima, tmp_path):
    made = replicated(servers, state=str(tmp_path / "state.json"))
    proxy = proxima(made)
    until_current(proxy, *servers)
    with proxy.raw() as client:
        client.set("k", "old")
        servers[0].freeze()
        client.set("k", "new")
        client.set("k", "newer")
    proxy.kill()
    servers[0].thaw()
    proxy = proxima(made)
    with proxy.raw() as client:
        until(lambda: client.get("k") != b"newer", "the nearest is read again")
        assert client.get("k") is None
        until_current(proxy, servers[0])
        assert client.get("k") is None
    assert copies_of(servers, "k") == [None, b"newer", b"newer"]


def test_what_a_killed_proxy_had_under_way_is_not_read_later(memcached, proxima, tmp_path):
    """The next process does not know which connections the last one had."""
    others = memcached.several(2, threads=4)
    for round_ in range(TRIES // 10):
        first = memcached(threads=4)
        made = replicated([first, *others], timeout="1s", workers=4, state=str(tmp_path / f"state{round_}.json"))
        keys = [f"k{round_}-{number}" for number in range(16)]
        proxy = proxima(made)
        until_current(proxy, first, *others)
        clients = [proxy.raw() for _ in keys]
        for client, key in zip(clients, keys):
            client.set(key, "0")
        first.freeze()
        for client, key in zip(clients, keys):
            client.send(f"set {key} 0 0 1\r\n1\r\n".encode())
        until(lambda: all(others[1].get(key) == b"1" for key in keys), "all have been sent")
        proxy.kill()
        proxy = proxima(made)
        until_out(proxy, first)
        with proxy.raw() as client:
            for key in keys:
                client.set(key, "2")
            first.thaw()
            until_current(proxy, first)
            for _ in range(10):
                assert {client.get(key) for key in keys} == {None}
        proxy.kill()


def test_without_the_state_file_where_one_is_expected_nobody_is_trusted(servers, proxima, tmp_path):
    state = tmp_path / "state.json"
    made = replicated(servers, state=str(state))
    for server in servers:
        server.set("k", "old")
    first = proxima(made)
    until_current(first, *servers)
    assert copies_of(servers, "k") == [None] * 3
    with first.raw() as client:
        client.set("k", "v")
    first.kill()
    # It is there now, and nobody owes: all are trusted.
    second = proxima(made)
    with second.raw() as client:
        assert client.get("k") == b"v"
    second.kill()
    state.unlink()
    third = proxima(made)
    until_current(third, *servers)
    assert copies_of(servers, "k") == [None] * 3


def test_a_debt_that_cannot_be_noted_is_not_forgotten(memcached, proxima, tmp_path):
    """As on a full disk: nothing new can be written beside the state file."""
    servers = memcached.several(3)
    state = tmp_path / "state.json"
    made = replicated(servers, state=str(state))
    proxy = proxima(made)
    until_current(proxy, *servers)
    with proxy.raw() as client:
        client.set("k", "old")
        obstacle = tmp_path / "state.json.new"
        obstacle.mkdir()
        servers[0].freeze()
        client.set("k", "new")
        assert not state.exists()
        assert proxy.metric("copy_note_failures_total") > 0
    proxy.kill()
    obstacle.rmdir()
    servers[0].thaw()
    proxy = proxima(made)
    with proxy.raw() as client:
        assert client.ask(b"get k\r\n").startswith(b"SERVER_ERROR no copy may be read")
        until_current(proxy, *servers)
        assert client.get("k") is None


def test_no_write_goes_on_without_a_copy_while_the_old_state_file_stays(memcached, proxima, tmp_path):
    """A folder in its place can be neither replaced nor removed, as a file on a disk that has become read-only."""
    servers = memcached.several(3)
    state, aside = tmp_path / "state.json", tmp_path / "aside"
    made = replicated(servers, state=str(state))
    proxy = proxima(made)
    until_current(proxy, *servers)
    with proxy.raw() as client:
        client.set("k", "old")
        state.rename(aside)
        state.mkdir()
        servers[0].freeze()
        assert b"could not be settled" in client.ask(b"set k 0 0 3\r\nnew\r\n")
        assert standing(proxy, servers[0]) == "leaving"
        failures = proxy.metric("copy_note_failures_total")
        until(lambda: proxy.metric("copy_note_failures_total") > failures, "it is tried again")
        state.rmdir()
        aside.rename(state)
        until(lambda: standing(proxy, servers[0]) == "out", "it works at last")
        client.set("k", "newer")
        assert client.get("k") == b"newer"
    owes = {copy["address"]: copy["owes"] is not None for copy in json.loads(state.read_text())["copies"]}
    assert owes == {servers[0].address: True, servers[1].address: False, servers[2].address: False}
    proxy.kill()
    servers[0].thaw()
    proxy = proxima(made)
    with proxy.raw() as client:
        until(lambda: client.get("k") != b"newer", "the nearest is read again")
        assert client.get("k") is None


def test_a_copy_that_is_silent_at_the_start_is_repaired_first(servers, proxima):
    for server, value in zip(servers, ("old", "new", "new")):
        server.set("k", value)
    servers[0].freeze()
    proxy = proxima(replicated(servers))
    until_out(proxy, servers[0])
    with proxy.raw() as client:
        assert client.get("k") == b"new"
        servers[0].thaw()
        while standing(proxy, servers[0]) != "current":
            assert client.get("k") in (b"new", None)
        assert client.get("k") is None
