"""What a client is told of itself: CLIENT INFO, CLIENT LIST and their neighbours."""

import os

import pytest

from harness import ports
from harness.redis import Connection, array, config

pytestmark = pytest.mark.either_io


def fields(reply):
    """The fields of one line about a client."""
    text = reply.split(b"\r\n", 1)[1].decode().strip().removeprefix("txt:")
    return dict(field.split("=", 1) for field in text.split(" "))


@pytest.fixture
def proxy(redis_server, proxima):
    return proxima(config(redis_server.several(2), workers=1))


def test_a_client_is_told_all_that_a_server_tells_and_of_its_own_connection(redis_server, proxima):
    server = redis_server()
    proxy = proxima(config([server], workers=1))
    with server.connect() as direct, Connection(proxy.address) as client:
        for connection in (direct, client):
            connection.ask("CLIENT", "SETNAME", "me")
            connection.ask("SELECT", 3)
        theirs, ours = (fields(connection.ask("CLIENT", "INFO")) for connection in (direct, client))
        # What newer servers tell besides is theirs to count.
        later = {"watch", "io-thread", "capa", "tot-net-in", "tot-net-out", "tot-cmds"}
        assert theirs.keys() - later <= ours.keys()
        own = {"addr": client.name(), "laddr": proxy.address, "name": "me", "db": "3"}
        assert {name: ours[name] for name in own} == own
        same = (
            "flags",
            "sub",
            "psub",
            "multi",
            "argv-mem",
            "multi-mem",
            "cmd",
            "user",
            "redir",
            "resp",
        )
        assert {name: ours[name] for name in same} == {name: theirs[name] for name in same}
        assert ours["qbuf"] == str(len(array("CLIENT", "INFO")))
        assert ours["id"] == client.ask("CLIENT", "ID")[1:-2].decode()
        assert os.readlink(f"/proc/{proxy.process.pid}/fd/{ours['fd']}").startswith("socket:")
        numbers = {"age", "idle", "qbuf-free", "rbs", "rbp", "obl", "oll", "omem", "tot-mem", "ssub"}
        assert all(ours[name].isdigit() for name in numbers) and int(ours["tot-mem"]) > 0


def test_subscriptions_and_the_version_of_the_protocol_are_told(proxy):
    with Connection(proxy.address) as client:
        client.ask("HELLO", 3)
        client.ask("CLIENT", "SETINFO", "LIB-NAME", "lib"), client.ask("CLIENT", "SETINFO", "LIB-VER", "1.2")
        client.ask("SUBSCRIBE", "a"), client.ask("SUBSCRIBE", "b"), client.ask("SSUBSCRIBE", "s")
        client.ask("PSUBSCRIBE", "p*")
        reply = client.ask("CLIENT", "LIST")
        assert reply.startswith(b"=")
        told = fields(reply)
        own = {"sub": "2", "psub": "1", "ssub": "1", "flags": "P", "resp": "3", "cmd": "client|list"}
        own |= {"lib-name": "lib", "lib-ver": "1.2"}
        assert {name: told[name] for name in own} == own


def test_a_list_of_clients_has_the_client_itself_where_a_servers_has_it(redis_server, proxy):
    with redis_server().connect() as direct, Connection(proxy.address) as client:
        for connection in (direct, client):
            own = connection.ask("CLIENT", "ID")[1:-2]
            assert fields(connection.ask("CLIENT", "LIST"))["id"] == own.decode()
            assert fields(connection.ask("CLIENT", "LIST", "ID", "999999", own))["id"] == own.decode()
            assert fields(connection.ask("CLIENT", "LIST", "TYPE", "NORMAL"))["id"] == own.decode()
        for words in (
            ("ID", "999999"),
            ("ID", "x"),
            ("ID",),
            ("TYPE", "pubsub"),
            ("TYPE", "master"),
            ("TYPE", "nosuch"),
            ("NOSUCH", "1"),
        ):
            assert client.ask("CLIENT", "LIST", *words) == direct.ask("CLIENT", "LIST", *words), words


@pytest.mark.parametrize("version", [2, 3])
def test_a_client_that_tracks_nothing_is_told_so_before_several_servers(redis_server, proxy, version):
    with redis_server().connect() as direct, Connection(proxy.address) as client:
        for connection in (direct, client):
            connection.ask("HELLO", version)
        for words in ("TRACKINGINFO", "GETREDIR", "REPLY ON", "TRACKING OFF", "NO-EVICT ON", "GETNAME"):
            words = words.split(" ")
            assert client.ask("CLIENT", *words) == direct.ask("CLIENT", *words), words
        assert client.ask("CLIENT", "REPLY", "OFF").startswith(b"-ERR CLIENT REPLY OFF is not served: ")


def test_a_client_of_a_unix_socket_is_told_its_path(redis_server, proxima, tmp_path):
    path = tmp_path / "redis"
    listeners = [{"address": ports.address(), "protocol": "redis", "route": "redis"}]
    listeners.append({"address": f"unix:{path}", "protocol": "redis", "route": "redis"})
    proxima(config([redis_server()], listeners=listeners))
    with Connection(str(path)) as client:
        told = fields(client.ask("CLIENT", "INFO"))
        assert (told["addr"], told["laddr"], told["flags"]) == (f"{path}:0", f"{path}:0", "U")
