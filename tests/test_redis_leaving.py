"""Clients that leave while a server lets them wait."""

import socket
import struct
import time

import pytest

from harness import until
from harness.redis import Connection, array, config

pytestmark = pytest.mark.either_io

# More than the clients that may have connections of their own.
CLIENTS = 70


class Leaver(Connection):
    def leave(self, how):
        if how == "reset":
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        if how == "half close":
            self._socket.shutdown(socket.SHUT_WR)
        else:
            self.close()


@pytest.fixture
def one(redis_server, proxima):
    server = redis_server()
    return server, proxima(config([server], workers=1))


BEHIND = {"nothing": b"", "a request": array("GET", "a"), "much": array("SET", "a", "v" * 60_000) * 4}


@pytest.mark.parametrize("behind", BEHIND)
@pytest.mark.parametrize("how", ["close", "reset", "half close"])
def test_a_client_that_leaves_while_it_is_blocked_gives_its_connection_back(one, how, behind):
    server, proxy = one
    left = []
    for number in range(CLIENTS):
        client = Leaver(proxy.address)
        command = ("BLPOP", "list", 0) if number % 2 else ("BLMOVE", "list", "other", "LEFT", "LEFT", 100)
        client.send(array(*command) + BEHIND[behind])
        # Some leave with their command, and some while the server has it.
        if number % 10:
            time.sleep(0.002)
        client.leave(how)
        left.append(client)
    until(lambda: proxy.metric("dedicated_lanes", pool="redis") == 0, "every connection is given back")
    until(lambda: proxy.metric("clients") == 0, "every client is gone")
    assert b"blocked_clients:0" in server.ask("INFO", "clients")
    for client in left:
        assert b"list" not in client.rest() if how == "half close" else True
    with Connection(proxy.address) as other:
        assert other.ask("RPUSH", "list", "kept") == b":1\r\n"
        other.send(array("MULTI") + array("LRANGE", "list", 0, -1) + array("EXEC"))
        assert [other.reply() for _ in range(3)][2] == b"*1\r\n*1\r\n$4\r\nkept\r\n"
        assert other.ask("BLPOP", "list", 1) == b"*2\r\n$4\r\nlist\r\n$4\r\nkept\r\n"


def test_a_client_that_closes_its_side_gets_what_can_be_had_at_once(one):
    server, proxy = one
    for _ in range(20):
        server.ask("RPUSH", "list", "value")
        with Leaver(proxy.address) as client:
            client.send(
                array("SET", "a", "1") + array("GET", "a") + array("BLPOP", "list", 0) + array("GET", "a")
            )
            client.leave("half close")
            value = b"*2\r\n$4\r\nlist\r\n$5\r\nvalue\r\n"
            assert client.rest() == b"+OK\r\n$1\r\n1\r\n" + value + b"$1\r\n1\r\n"


def test_what_comes_for_a_client_that_has_left_stays(one):
    server, proxy = one
    for how in ("close", "reset", "half close"):
        client = Leaver(proxy.address)
        client.send(array("BLPOP", "list", 0) + array("PING"))
        until(lambda: b"blocked_clients:1" in server.ask("INFO", "clients"), "it waits")
        client.leave(how)
        until(lambda: b"blocked_clients:0" in server.ask("INFO", "clients"), "it waits no longer")
        assert server.ask("RPUSH", "list", "kept") == b":1\r\n"
        assert server.ask("LPOP", "list") == b"$4\r\nkept\r\n"
