"""Commands that Proxima does not know: of modules, or newer. A server plays a module by renaming commands."""

import pytest

from harness.redis import Connection, array, config

pytestmark = pytest.mark.either_io

RENAMED = {"SET": "JSON.SET", "MSET": "JSON.MSET", "GET": "JSON.GET", "LASTSAVE": "FT._LIST"}
DECLARED = {
    "JSON.SET": {"arity": -3},
    "JSON.GET": {"arity": -2, "class": "read"},
    "JSON.MSET": {"arity": -3, "keys": [1, -1, 2]},
    "FT._LIST": {"arity": 1, "keys": [0, 0, 0], "class": "read"},
}


def module(redis_server):
    renamed = [word for pair in RENAMED.items() for word in ("--rename-command", *pair)]
    return redis_server(options=renamed)


@pytest.fixture
def four(redis_server):
    return [module(redis_server) for _ in range(4)]


def test_declared_commands_go_to_the_server_of_their_key(four, proxima):
    proxy = proxima(config(four, commands=DECLARED))
    with Connection(proxy.address) as client:
        for n in range(100):
            assert client.ask("JSON.SET", f"key:{n}", n) == b"+OK\r\n"
        client.send(b"json.get key:7\r\n" + array("Json.Get", "key:8"))
        assert [client.reply(), client.reply()] == [b"$1\r\n7\r\n", b"$1\r\n8\r\n"]
        assert all(5 < int(server.ask("DBSIZE")[1:]) < 95 for server in four)
        assert client.ask("DBSIZE") == b":100\r\n"
        assert client.ask("JSON.MSET", *"a1b2c3d4e5").startswith(b"-CROSSSLOT ")
        assert client.ask("JSON.SET", "a") == b"-ERR wrong number of arguments for 'json.set' command\r\n"
        assert client.ask("FT._LIST").startswith(b"-ERR a command without keys")
        large = "v" * 300_000
        assert client.ask("JSON.SET", "large", large) == b"+OK\r\n"
        assert client.ask("JSON.GET", "large") == b"$300000\r\n%s\r\n" % large.encode()
        assert client.ask("MULTI") == b"+OK\r\n"
        assert client.ask("JSON.SET", "t", "1") == b"+QUEUED\r\n"
        assert client.ask("JSON.GET", "t") == b"+QUEUED\r\n"
        assert client.ask("EXEC") == b"*2\r\n+OK\r\n$1\r\n1\r\n"


def test_the_only_server_gets_declared_commands_whatever_their_keys(redis_server, proxima):
    server = module(redis_server)
    with Connection(proxima(config([server], commands=DECLARED)).address) as client:
        assert client.ask("JSON.MSET", *"a1b2c3d4e5") == b"+OK\r\n"
        assert client.ask("FT._LIST").startswith(b":")


def test_what_is_not_declared_is_answered_as_servers_answer_it(four, redis_server, proxima):
    proxy = proxima(config(four, commands=DECLARED))
    with Connection(proxy.address) as client:
        for words in (("JSON.DEL", "a", "$"), ("NOSUCH",), ("BF.ADD", "a", "b" * 500)):
            assert client.ask(*words) == redis_server().ask(*words), words
        assert client.ask("JSON.SET", "a", "1") == b"+OK\r\n"
