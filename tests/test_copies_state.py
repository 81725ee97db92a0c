"""Replicated pools: the proxy's knowledge of its copies outlives the proxy."""

import json
import os
import signal

import pytest
import yaml

from harness import TRIES, until
from harness.copies import copies_of, copy_state, replicated, until_current, until_out
from harness.proxy import config


def until_saved(state):
    """Until the file says that no copy missed anything, which nobody waits for."""
    new = state.with_name(state.name + ".new")
    until(lambda: "everything" not in state.read_text() and not new.exists(), "it is written")


pytestmark = pytest.mark.either_io


def test_missed_writes_outlive_a_killed_proxy(servers, proxima, tmp_path):
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


def test_writes_pending_at_a_kill_are_never_read(memcached, proxima, tmp_path):
    """The next process does not know which connections the previous one had."""
    others = memcached.several(2, threads=4)
    for round_ in range(TRIES // 10):
        first = memcached(threads=4)
        made = replicated(
            [first, *others], timeout="1s", workers=4, state=str(tmp_path / f"state{round_}.json")
        )
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


def test_without_its_state_file_every_copy_is_flushed(servers, proxima, tmp_path):
    state = tmp_path / "state.json"
    made = replicated(servers, state=str(state))
    for server in servers:
        server.set("k", "old")
    first = proxima(made)
    until_current(first, *servers)
    assert copies_of(servers, "k") == [None] * 3
    until_saved(state)
    with first.raw() as client:
        client.set("k", "v")
    first.kill()
    # It is there now, and no copy missed a write: all are trusted.
    second = proxima(made)
    with second.raw() as client:
        assert client.get("k") == b"v"
    second.kill()
    state.unlink()
    third = proxima(made)
    until_current(third, *servers)
    assert copies_of(servers, "k") == [None] * 3


def test_a_missed_write_is_not_forgotten_when_the_disk_is_full(memcached, proxima, tmp_path):
    """An obstacle beside the state file has the effect of a full disk."""
    servers = memcached.several(3)
    state = tmp_path / "state.json"
    made = replicated(servers, state=str(state))
    proxy = proxima(made)
    until_current(proxy, *servers)
    with proxy.raw() as client:
        client.set("k", "old")
        until_saved(state)
        obstacle = tmp_path / "state.json.new"
        obstacle.mkdir()
        servers[0].freeze()
        client.set("k", "new")
        assert not state.exists()
        assert proxy.metric("state_file_failures_total") > 0
    proxy.kill()
    obstacle.rmdir()
    servers[0].thaw()
    proxy = proxima(made)
    with proxy.raw() as client:
        answer = client.ask(b"get k\r\n")
        assert answer.startswith(b"SERVER_ERROR no copy may be read") or answer == b"END\r\n"
        until_current(proxy, *servers)
        assert client.get("k") is None


def test_writes_are_refused_while_an_old_state_file_cannot_be_replaced(memcached, proxima, tmp_path):
    """A folder in the file's place can be neither replaced nor removed, like a file on a disk that became
    read-only."""
    servers = memcached.several(3)
    state, aside = tmp_path / "state.json", tmp_path / "aside"
    made = replicated(servers, state=str(state))
    proxy = proxima(made)
    until_current(proxy, *servers)
    with proxy.raw() as client:
        client.set("k", "old")
        until_saved(state)
        state.rename(aside)
        state.mkdir()
        servers[0].freeze()
        assert b"could not be settled" in client.ask(b"set k 0 0 3\r\nnew\r\n")
        assert copy_state(proxy, servers[0]) == "leaving"
        failures = proxy.metric("state_file_failures_total")
        until(lambda: proxy.metric("state_file_failures_total") > failures, "it is tried again")
        state.rmdir()
        aside.rename(state)
        until(lambda: copy_state(proxy, servers[0]) == "out", "it works at last")
        client.set("k", "newer")
        assert client.get("k") == b"newer"
        # `/members` and the state file use the same words.
        missed = [proxy.member(server.address)["copy"]["missed"] for server in servers[1:]]
    assert missed == ["nothing"] * 2
    missed = {copy["address"]: copy["missed"] for copy in json.loads(state.read_text())["copies"]}
    assert missed == {
        servers[0].address: "everything",
        servers[1].address: "nothing",
        servers[2].address: "nothing",
    }
    proxy.kill()
    servers[0].thaw()
    proxy = proxima(made)
    with proxy.raw() as client:
        until(lambda: client.get("k") != b"newer", "the nearest is read again")
        assert client.get("k") is None


def test_a_copy_silent_at_the_start_is_not_read_before_repair(servers, proxima):
    for server, value in zip(servers, ("old", "new", "new")):
        server.set("k", value)
    servers[0].freeze()
    proxy = proxima(replicated(servers))
    until_out(proxy, servers[0])
    with proxy.raw() as client:
        assert client.get("k") == b"new"
        servers[0].thaw()
        while copy_state(proxy, servers[0]) != "current":
            assert client.get("k") in (b"new", None)
        assert client.get("k") is None


def test_members_page_says_everything_or_nothing_for_missed_writes(memcached, proxima, tmp_path):
    servers = memcached.several(3)
    proxy = proxima(replicated(servers, state=str(tmp_path / "state.json")))
    until_current(proxy, *servers)
    with proxy.raw() as client:
        servers[0].freeze()
        assert client.ask(b"flush_all\r\n") == b"OK\r\n"
        until_out(proxy, servers[0])
    assert [proxy.member(server.address)["copy"]["missed"] for server in servers] == [
        "everything",
        "nothing",
        "nothing",
    ]


def test_a_state_file_is_used_by_one_process_at_a_time(memcached, proxima, command, tmp_path):
    """Two processes would overwrite each other's records of missed writes."""
    servers = memcached.several(3)
    state = tmp_path / "state.json"
    made = replicated(servers, state=str(state))
    proxy = proxima(made)
    until_current(proxy, *servers)
    until_saved(state)
    before = state.read_text()
    file = tmp_path / "second.yaml"
    file.write_text(yaml.safe_dump(replicated(servers, state=str(state))))
    refused = command("run", "--config", str(file))
    assert refused.returncode == 2
    told = (
        f"{state} is used by another process (pid {proxy.process.pid}); "
        "stop that one, or give this one a `state` of its own"
    )
    assert told in refused.stderr
    assert state.read_text() == before
    proxy.kill()
    until_current(proxima(made), *servers)


def test_a_state_file_that_cannot_be_locked_refuses_the_start(memcached, command, tmp_path):
    state = tmp_path / "state.json"
    (tmp_path / "state.json.lock").mkdir()
    file = tmp_path / "proxima.yaml"
    file.write_text(yaml.safe_dump(replicated(memcached.several(2), state=str(state))))
    refused = command("run", "--config", str(file))
    assert refused.returncode == 2
    assert f"{state}.lock cannot be written" in refused.stderr


def hang(state):
    """Replaces the new file by a pipe. Opening it for writing waits for a reader, as on a disk that hangs."""
    pipe = state.with_name(state.name + ".new")
    os.mkfifo(pipe)
    return pipe


def end_hang(pipe):
    aside = pipe.with_suffix(".aside")
    pipe.rename(aside)
    os.close(os.open(aside, os.O_RDONLY | os.O_NONBLOCK))


def test_a_hanging_disk_holds_up_only_writes_that_a_copy_missed(memcached, proxima, tmp_path):
    *servers, other = memcached.several(4)
    state = tmp_path / "state.json"
    pools = replicated(servers)["pools"] | {"other": {"servers": [other.address], "timeout": "200ms"}}
    made = config("cache", pools, "other", state=str(state))
    proxy = proxima(made)
    until_current(proxy, *servers)
    with proxy.raw() as client, proxy.raw(1) as stranger:
        client.set("k", "old")
        until_saved(state)
        pipe = hang(state)
        servers[0].freeze()
        assert b"could not be settled" in client.ask(b"set k 0 0 3\r\nnew\r\n")
        assert copy_state(proxy, servers[0]) == "leaving"
        other.freeze()
        assert stranger.ask(b"get k\r\n") == f"SERVER_ERROR {other.address}: timeout\r\n".encode()
        assert proxy.is_live()
        until(lambda: "disk of the state file does not answer" in proxy.log(), "it is told")
        assert proxy.metric("state_file_failures_total") > 0
        end_hang(pipe)
        until(lambda: copy_state(proxy, servers[0]) == "out", "it goes on")
        client.set("k", "newer")
        assert client.get("k") == b"newer"
        other.thaw()


def test_a_hanging_disk_does_not_hold_up_the_end(memcached, proxima, tmp_path):
    servers = memcached.several(3)
    state = tmp_path / "state.json"
    proxy = proxima(replicated(servers, state=str(state)))
    until_current(proxy, *servers)
    until_saved(state)
    pipe = hang(state)
    with proxy.raw() as client:
        servers[0].freeze()
        client.send(b"set k 0 0 3\r\nnew\r\n")
        until(lambda: copy_state(proxy, servers[0]) == "leaving", "it is to be written")
    proxy.signal(signal.SIGTERM)
    assert proxy.wait() == 0
    assert "takes this end for a crash" in proxy.log()
    assert json.loads(state.read_text())["clean"] is False
    pipe.unlink()


def test_a_hanging_disk_refuses_the_start(memcached, command, tmp_path):
    state = tmp_path / "state.json"
    hang(state)
    file = tmp_path / "proxima.yaml"
    file.write_text(yaml.safe_dump(replicated(memcached.several(2), state=str(state))))
    refused = command("run", "--config", str(file))
    assert refused.returncode == 2
    assert f"{state} is on a disk that does not answer" in refused.stderr
