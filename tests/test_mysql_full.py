"""A server that has no room for one more connection, at all or for one user, is well: statements wait."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from harness import until
from harness.mysql_between import Between, galera
from harness.mysql_between import error as error_packet
from harness.split import PASSWORDS, clustered, connect, error, made, rows, telling, value

pytestmark = pytest.mark.either_io

FULL = {
    1040: "Too many connections",
    1203: "User app already has more than 'max_user_connections' active connections",
    1226: "User 'app' has exceeded the 'max_user_connections' resource (current value: 1)",
}


MONITORS = 3
"""The questions of a Galera pool's monitor, each of which has a connection."""


class Crowded:
    """A relay before a server that has no room for a user's connections as long as `is_full`. With a name it
    is a node of a Galera cluster."""

    def __init__(self, real, number, user, node=None):
        self.is_full, self.attempts = True, []
        self._packet = error_packet(number, FULL[number], 2)
        self._user = user
        self.relay = Between(real, galera(node, self._answer) if node else self._answer)
        self.address = self.relay.address

    def _answer(self, packet):
        if self._user.encode() + b"\0" in packet and b"mysql_native_password" in packet:
            self.attempts.append(time.monotonic())
            return self._packet if self.is_full else None
        return None


@pytest.fixture
def crowded(mysql_pair, request):
    found = []

    def start(number, user="app"):
        found.append(Crowded(mysql_pair[0].address, number, user))
        return found[-1]

    yield start
    for one in found:
        one.relay.stop()


def before(proxima, folder, server, reader, wait):
    known = {user: {"password": PASSWORDS[user]} for user in ("app", "other")}
    config = made(folder, server, reader, users=known, workers=1)
    for pool in config["pools"].values():
        pool["dedicated"] = {"wait": wait}
    return proxima(config)


@pytest.mark.parametrize("number", FULL)
def test_a_statement_waits_for_room_and_the_server_stays_in(mysql_pair, proxima, tmp_path, crowded, number):
    server = crowded(number)
    proxy = before(proxima, tmp_path, server, mysql_pair[1], "60s")
    with ThreadPoolExecutor(8) as pool:

        def write():
            with connect(proxy.address) as client:
                return value(client, "SELECT 7 FOR UPDATE")

        waiting = [pool.submit(write) for _ in range(8)]
        until(lambda: len(server.attempts) >= 12, "connections are tried again")
        assert not any(one.done() for one in waiting)
        assert proxy.member(server.address)["state"] == "up"
        # Each client may have tried one at first. Then one is tried now and then, for all of them.
        told, begun = len(server.attempts), server.attempts[0]
        assert told <= (time.monotonic() - begun) / 0.09 + 9
        server.is_full = False
        assert [one.result() for one in waiting] == [7] * 8
    assert proxy.metric("member_ejections_total", pool="writer") == 0


@pytest.mark.parametrize("number", FULL)
def test_who_waits_too_long_is_told_with_the_servers_words(mysql_pair, proxima, tmp_path, crowded, number):
    server = crowded(number)
    proxy = before(proxima, tmp_path, server, mysql_pair[1], "500ms")
    options = {"init_command": None, "autocommit": None, "ssl_disabled": True}
    for _ in range(2):
        begun = time.monotonic()
        try:
            with connect(proxy.address, **options) as client:
                assert error(client, "SELECT 1 FOR UPDATE") == number
        except Exception as caught:
            assert caught.args[0] == number, caught
        assert time.monotonic() - begun > 0.4
    assert proxy.member(server.address)["state"] == "up"


def test_a_user_without_room_delays_no_other_one(mysql_pair, proxima, tmp_path, crowded):
    server = crowded(1203)
    proxy = before(proxima, tmp_path, server, mysql_pair[1], "60s")
    ends = []

    def wait():
        try:
            with connect(proxy.address) as client:
                rows(client, "SELECT 1 FOR UPDATE")
        finally:
            ends.append(1)

    threads = [threading.Thread(target=wait, daemon=True) for _ in range(4)]
    for thread in threads:
        thread.start()
    until(lambda: server.attempts, "it waits for room")
    for _ in range(10):
        with connect(proxy.address, "other") as client:
            assert value(client, "SELECT CURRENT_USER() FOR UPDATE") == "other@%"
    assert not ends
    server.is_full = False
    for thread in threads:
        thread.join()
    assert len(ends) == 4


def test_a_reader_without_room_for_a_barrier_stays_in(mysql_pair, proxima, tmp_path, cleanup):
    """Its monitor has connections. Those by which reads ask what it has are others."""
    nodes = [
        Crowded(server.address, 1040, "monitor", name)
        for server, name in zip(mysql_pair, ("first", "second"), strict=True)
    ]
    for node in nodes:
        node.is_full = False
        cleanup.callback(node.relay.stop)
    reader = nodes[1]
    name = cleanup.enter_context(telling(mysql_pair, ("first", "second"), "CREATE TABLE t (a INT)"))
    proxy = proxima(clustered(tmp_path, mysql_pair, nodes, {"consistency": "causal"}))
    until(lambda: len(reader.attempts) == MONITORS, "its monitor has its connections")
    reader.is_full = True
    with connect(proxy.address, database=name) as client:

        def served_by():
            rows(client, "INSERT INTO t VALUES (1)")
            return value(client, "SELECT name FROM who")

        until(lambda: served_by() and len(reader.attempts) > MONITORS, "a barrier finds no room")
        # The monitor's own barriers may have proved it in time.
        assert served_by() in ("first", "second")
        assert proxy.member(reader.address)["state"] == "up"
        assert proxy.metric("member_ejections_total", pool="db") == 0
        reader.is_full = False
        until(lambda: served_by() == "second", "a barrier has proved what it has")
