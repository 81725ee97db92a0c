"""Keys spread over several servers: requests with several keys, requests to all, failing servers."""

import pytest

from harness import until
from harness.redis import Connection, Redis, array, config

pytestmark = pytest.mark.either_io


@pytest.fixture
def four(redis_server):
    return redis_server.several(4)


def client_of(proxy):
    return Connection(proxy.address)


def test_keys_are_spread_and_read_back_together(four, proxima):
    client = client_of(proxima(config(four)))
    pairs = [word for n in range(100) for word in (f"key:{n}", f"value:{n}")]
    assert client.ask("MSET", *pairs) == b"+OK\r\n"
    sizes = [int(server.ask("DBSIZE")[1:]) for server in four]
    assert sum(sizes) == 100 and min(sizes) > 5
    keys = pairs[::2]
    expected = b"*102\r\n" + b"".join(
        b"$%d\r\n%s\r\n" % (len(value), value.encode()) for value in pairs[1::2]
    )
    assert client.ask("MGET", *keys, "none", "none") == expected + b"$-1\r\n$-1\r\n"
    assert client.ask("EXISTS", *keys, "none", keys[0]) == b":101\r\n"
    assert client.ask("TOUCH", *keys) == b":100\r\n"
    assert client.ask("DBSIZE") == b":100\r\n"
    found = client.ask("KEYS", "key:*")
    assert found.startswith(b"*100\r\n") and found.count(b"key:") == 100
    assert client.ask("DEL", *keys[:50], "none") == b":50\r\n"
    assert client.ask("UNLINK", *keys) == b":50\r\n"
    assert client.ask("RANDOMKEY") in (b"$-1\r\n",)


def test_a_server_gets_one_command_for_all_of_its_keys(four, proxima):
    client = client_of(proxima(config(four)))
    client.ask("MGET", *(f"key:{n}" for n in range(100)))
    calls = [server.ask("INFO", "commandstats") for server in four]
    assert all(b"cmdstat_mget:calls=1," in text and b"cmdstat_get:" not in text for text in calls)


def test_replies_of_split_requests_keep_their_place_in_a_pipeline(four, proxima):
    client = client_of(proxima(config(four)))
    client.ask("MSET", "a", "1", "b", "2", "c", "3", "d", "4")
    many = [
        ("GET", "a"),
        ("MGET", "a", "b", "c", "d"),
        ("DEL", "none", "a"),
        ("MGET", "a", "b"),
        ("ECHO", "x"),
    ]
    client.send(b"".join(array(*words) for words in many) * 50)
    first = [b"$1\r\n1\r\n", b"*4\r\n$1\r\n1\r\n$1\r\n2\r\n$1\r\n3\r\n$1\r\n4\r\n", b":1\r\n"]
    later = [b"$-1\r\n", b"*4\r\n$-1\r\n$1\r\n2\r\n$1\r\n3\r\n$1\r\n4\r\n", b":0\r\n"]
    rest = [b"*2\r\n$-1\r\n$1\r\n2\r\n", b"$1\r\nx\r\n"]
    assert [client.reply() for _ in range(250)] == [*first, *rest, *(later + rest) * 49]


def test_large_values_of_several_servers_are_joined(four, proxima):
    client = client_of(proxima(config(four)))
    values = {f"key:{n}": bytes([97 + n]) * (200_000 + n) for n in range(12)}
    assert client.ask("MSET", *(word for pair in values.items() for word in pair)) == b"+OK\r\n"
    joined = b"".join(b"$%d\r\n%s\r\n" % (len(value), value) for value in values.values())
    assert client.ask("MGET", *values) == b"*12\r\n" + joined


def test_what_is_all_or_nothing_is_refused_across_servers_with_the_remedy(four, proxima):
    client = client_of(proxima(config(four)))
    for words in (
        ("MSETNX", "a", "1", "b", "2", "c", "3", "d", "4"),
        ("SINTER", "a", "b", "c", "d"),
        ("EVAL", "return 1", "4", "a", "b", "c", "d"),
        ("BLPOP", "a", "b", "c", "d", "0"),
        ("WATCH", "a", "b", "c", "d"),
    ):
        reply = client.ask(*words)
        assert reply.startswith(b"-CROSSSLOT ") and b"hash.tag" in reply, words
    assert client.ask("PING") == b"+PONG\r\n"


def test_a_transaction_across_servers_is_refused_as_a_whole(four, proxima):
    client = client_of(proxima(config(four)))
    # All of these are at one server once in a thousand million runs, as their ports differ each time.
    keys = [f"k{number}" for number in range(16)]
    sets = [array("SET", key, "1") for key in keys]
    client.send(array("MULTI") + b"".join(sets) + array("EXEC"))
    first, *queued, last = [client.reply() for _ in range(len(keys) + 2)]
    assert first == b"+OK\r\n"
    assert all(reply.startswith(b"-CROSSSLOT ") for reply in queued)
    assert last.startswith(b"-EXECABORT ")
    # What was watched is not any more, as behind any EXEC.
    assert client.ask("WATCH", keys[0]) == b"+OK\r\n"
    client.send(array("MULTI") + b"".join(sets) + array("EXEC"))
    assert [client.reply() for _ in range(len(keys) + 2)][-1].startswith(b"-EXECABORT ")
    assert client.ask("HELLO", "3").startswith(b"%") and client.ask("HELLO", "2").startswith(b"*")
    client.ask("DEL", keys[0])
    assert client.ask("WATCH", keys[1]) == b"+OK\r\n"
    client.send(array("MULTI") + array("GET", keys[1]) + array("EXEC"))
    assert [client.reply() for _ in range(3)][2] == b"*1\r\n$-1\r\n"
    # Step by step the first key decides.
    assert client.ask("MULTI") == b"+OK\r\n"
    first, *queued = [client.ask("SET", key, "1") for key in keys]
    assert first == b"+QUEUED\r\n"
    assert any(reply.startswith(b"-CROSSSLOT ") for reply in queued)
    assert client.ask("EXEC").startswith(b"-EXECABORT ")
    assert client.ask("EXISTS", *keys) == b":0\r\n"
    assert client.ask("SET", keys[0], "1") == b"+OK\r\n"


def test_what_has_no_key_waits_for_the_first_key_of_its_transaction(four, proxima):
    client = client_of(proxima(config(four)))
    for n in range(16):
        for words in (("PING",), ("ECHO", "x"), ("EVAL", "return 7", 0)):
            client.send(array("MULTI") + array(*words))
            assert [client.reply(), client.reply()] == [b"+OK\r\n", b"+QUEUED\r\n"]
            assert client.ask("SET", f"k{n}", n) == b"+QUEUED\r\n"
            told = {"PING": b"+PONG\r\n", "ECHO": b"$1\r\nx\r\n", "EVAL": b":7\r\n"}[words[0]]
            assert client.ask("EXEC") == b"*2\r\n" + told + b"+OK\r\n"
    assert client.ask("DBSIZE") == b":16\r\n"
    for last, told in (("EXEC", b"*1\r\n+PONG\r\n"), ("DISCARD", b"+OK\r\n"), ("RESET", b"+RESET\r\n")):
        client.ask("MULTI")
        assert client.ask("PING") == b"+QUEUED\r\n"
        assert client.ask(last) == told
    client.send(array("MULTI") + array("SET", "a", "1") + array("EXEC"))
    assert [client.reply() for _ in range(3)][2] == b"*1\r\n+OK\r\n"


@pytest.mark.parametrize("route", ["redis", {"error": "closed"}, "null"])
def test_a_transaction_that_nobody_executes_has_a_reply_for_each_of_its_commands(
    redis_server, proxima, route
):
    server = redis_server()
    client = client_of(proxima(config([server], route=route)))
    if route == "redis":
        server.kill()
    for _ in range(5):
        client.send(array("MULTI") + array("INCR", "a") * 3 + array("EXEC") + array("ECHO", "x"))
        *heard, last = [client.reply() for _ in range(6)]
        assert last == b"$1\r\nx\r\n", heard
        if route == "null":
            assert heard == [b"+OK\r\n", *[b"+QUEUED\r\n"] * 3, b"*3\r\n" + b":1\r\n" * 3]
        else:
            assert all(reply.startswith(b"-ERR ") for reply in heard), heard


def test_a_random_key_is_one_of_any_server(four, proxima):
    client = client_of(proxima(config(four)))
    client.ask("MSET", *(word for n in range(40) for word in (f"key:{n}", "v")))
    drawn = {client.ask("RANDOMKEY") for _ in range(200)}
    for server in four:
        keys = server.ask("KEYS", "*").split(b"\r\n")[2::2]
        assert any(b"$%d\r\n%s\r\n" % (len(key), key) in drawn for key in keys)
    client.ask("FLUSHALL")
    client.ask("SET", "only", "v")
    assert {client.ask("RANDOMKEY") for _ in range(10)} == {b"$4\r\nonly\r\n"}


def test_hash_tags_keep_keys_together(four, proxima):
    settings = config(four)
    settings["pools"]["redis"]["hash"] = {"algorithm": "ketama", "tag": "{}"}
    client = client_of(proxima(settings))
    assert client.ask("MSETNX", "a{t}", "1", "b{t}", "2", "c{t}", "3") == b":1\r\n"
    client.send(array("MULTI") + array("INCR", "a{t}") + array("INCR", "b{t}") + array("EXEC"))
    assert [client.reply() for _ in range(4)][3] == b"*2\r\n:2\r\n:3\r\n"


def test_requests_to_all_are_executed_everywhere(four, proxima):
    client = client_of(proxima(config(four)))
    sha = client.ask("SCRIPT", "LOAD", "return KEYS[1]").split(b"\r\n")[1].decode()
    assert client.ask("SCRIPT", "EXISTS", sha, "0" * 40) == b"*2\r\n:1\r\n:0\r\n"
    assert all(client.ask("EVALSHA", sha, "1", key) == b"$1\r\n%s\r\n" % key.encode() for key in "abcdef")
    client.ask("MSET", *(f"{key}" for key in "abcdefgh"))
    assert client.ask("FLUSHALL") == b"+OK\r\n"
    assert client.ask("DBSIZE") == b":0\r\n"
    assert client.ask("INFO").count(b"loading:0") == 1
    assert b"several servers" in client.ask("CONFIG", "SET", "maxmemory", "1")


def test_scripts_and_functions_are_forgotten_and_killed_at_every_server(four, proxima):
    client = client_of(proxima(config(four)))
    library = "#!lua name=mine\nredis.register_function('f', function() return 1 end)"
    assert client.ask("FUNCTION", "LOAD", library) == b"$4\r\nmine\r\n"
    sha = client.ask("SCRIPT", "LOAD", "return 1").split(b"\r\n")[1].decode()

    def known():
        return [
            (b"mine" in server.ask("FUNCTION", "LIST"), server.ask("SCRIPT", "EXISTS", sha))
            for server in four
        ]

    assert known() == [(True, b"*1\r\n:1\r\n")] * 4
    assert client.ask("FUNCTION", "FLUSH") == b"+OK\r\n"
    assert client.ask("SCRIPT", "FLUSH") == b"+OK\r\n"
    assert known() == [(False, b"*1\r\n:0\r\n")] * 4
    endless = "#!lua name=mine\nredis.register_function('f', function() while true do end end)"
    client.ask("FUNCTION", "LOAD", endless)
    for server in four:
        server.ask("CONFIG", "SET", "busy-reply-threshold", 10)
    for name, words in (("SCRIPT", ("EVAL", "while true do end", 0)), ("FUNCTION", ("FCALL", "f", 0))):
        with four[2].connect() as busy:
            busy.send(array(*words))
            until(lambda: four[2].ask("GET", "a").startswith(b"-BUSY "), "it runs")
            assert client.ask(name, "KILL") == b"+OK\r\n"
            assert busy.reply().startswith(b"-ERR ")
        assert client.ask(name, "KILL").startswith(b"-NOTBUSY ")


def test_the_proxy_tells_its_own_figures_where_there_are_several_servers(four, proxima):
    proxy = proxima(config(four, limits={"clients": 20}))
    with client_of(proxy) as client, client_of(proxy) as other:
        other.ask("SET", "a", "1")
        other.ask("GET", "a")
        other.ask("GET", "none")

        def figures(*sections):
            text = client.ask("INFO", *sections).split(b"\r\n", 1)[1].decode()
            return dict(line.split(":", 1) for line in text.splitlines() if ":" in line)

        until(lambda: figures()["keyspace_misses"] == "1", "the other worker has told its counts")
        told = figures()
        assert told["connected_clients"] == told["total_connections_received"] == "2"
        assert told["maxclients"] == "20" and told["keyspace_hits"] == "1" and told["loading"] == "0"
        assert int(told["total_net_input_bytes"]) > 50 and int(told["total_net_output_bytes"]) > 200
        before = int(told["total_commands_processed"])
        assert int(figures()["total_commands_processed"]) == before + 1
        assert [*figures("clients")] == ["connected_clients", "maxclients"]
        assert {*figures("CLIENTS", "persistence")} == {"connected_clients", "maxclients", "loading"}
        assert figures("everything").keys() == told.keys() and figures("nothing") == {}


def test_a_group_may_have_the_name_of_an_option(four, proxima):
    client = client_of(proxima(config(four)))
    for key in (f"s{n}" for n in range(8)):
        client.ask("XADD", key, "1-1", "f", "v")
        client.ask("XGROUP", "CREATE", key, "streams", "0")
        words = ("COUNT", 1, "NOACK", "GROUP", "streams", "streams", "STREAMS", key, ">")
        assert client.ask("XREADGROUP", *words).startswith(b"*1\r\n*2\r\n$2\r\n" + key.encode()), key


def test_one_part_that_fails_makes_one_error(four, proxima):
    client = client_of(proxima(config(four, limits={"clients": 10})))
    keys = [f"key:{n}" for n in range(40)]
    client.ask("MSET", *(word for key in keys for word in (key, "v")))
    four[0].kill()
    until(lambda: client.ask("MGET", *keys).startswith(b"-ERR "), "one server is missed")
    reply = client.ask("DEL", *keys)
    assert reply.startswith(b"-ERR ") and four[0].address.encode() in reply
    assert client.ask("PING") == b"+PONG\r\n"


def test_a_value_of_the_wrong_type_counts_against_nobody(redis_server, proxima):
    server = redis_server()
    proxy = proxima(config([server]))
    client = client_of(proxy)
    client.ask("SET", "a", "1")
    for _ in range(20):
        assert client.ask("LPUSH", "a", "x").startswith(b"-WRONGTYPE ")
    assert client.ask("GET", "a") == b"$1\r\n1\r\n"


def test_a_failover_serves_reads_while_a_server_loads_or_is_gone(redis_server, proxima):
    first, second = redis_server.several(2)
    settings = config([first, second], route={"failover": ["one", "two"]})
    settings["pools"] = {
        "one": {"protocol": "redis", "servers": [first.address]},
        "two": {"protocol": "redis", "servers": [second.address]},
    }
    client = client_of(proxima(settings))
    second.ask("SET", "a", "from the second")
    first.ask("SET", "a", "from the first")
    assert client.ask("GET", "a") == b"$14\r\nfrom the first\r\n"
    first.kill()
    assert client.ask("GET", "a") == b"$15\r\nfrom the second\r\n"


def test_a_server_that_returns_is_used_again(redis_server, proxima):
    server = redis_server()
    settings = config([server])
    settings["pools"]["redis"]["eject"] = {"probe_initial": "100ms", "probe_max": "200ms"}
    proxy = proxima(settings)
    client = client_of(proxy)
    assert client.ask("SET", "a", "1") == b"+OK\r\n"
    server.kill()
    until(lambda: client.ask("GET", "a").startswith(b"-ERR"), "the server is missed")
    Redis.start(server)
    until(lambda: client.ask("GET", "a") == b"$-1\r\n", "the server is back")
