"""Routes serve Redis by what is known of its commands; and what operators see of it."""

import subprocess

import pytest

from harness import until
from harness.proxy import BINARY
from harness.redis import Connection, array, config, pools

pytestmark = pytest.mark.either_io


@pytest.fixture
def two(redis_server):
    return redis_server.several(2)


@pytest.fixture
def routed(two, proxima):
    """Two servers, each a pool of its own, `one` and `two`, and a function that starts a proxy with a route
    and connects to it."""

    def start(route, **pool):
        settings = config(two, route=route, workers=1)
        settings["pools"] = {
            name: {"protocol": "redis", "servers": [server.address], **pool}
            for name, server in zip(("one", "two"), two, strict=True)
        }
        return Connection(proxima(settings).address)

    return (*two, start)


def test_operations_are_commands_of_redis_and_groups_of_them(routed):
    one, two, start = routed
    client = start({"by_operation": {"read": "one", "write": "two", "incrby": "one", "default": "two"}})
    one.ask("SET", "a", "one's")
    assert client.ask("SET", "a", "two's") == b"+OK\r\n"
    assert client.ask("GET", "a") == b"$5\r\none's\r\n"
    assert client.ask("INCRBY", "n", 5) == b":5\r\n" and client.ask("INCR", "n") == b":1\r\n"
    assert (one.ask("GET", "n"), two.ask("GET", "n")) == (b"$1\r\n5\r\n", b"$1\r\n1\r\n")
    assert two.ask("GET", "a") == b"$5\r\ntwo's\r\n"


def test_prefixes_and_patterns_divide_requests_with_several_keys(routed):
    one, two, start = routed
    client = start(
        {"by_prefix": {"prefixes": {"a:": "one"}, "default": {"by_key_pattern": {"patterns": {"b*": "two"}}}}}
    )
    assert client.ask("MSET", "a:1", "1", "b:1", "2", "a:2", "3") == b"+OK\r\n"
    assert client.ask("MGET", "b:1", "a:2", "a:1") == b"*3\r\n$1\r\n2\r\n$1\r\n3\r\n$1\r\n1\r\n"
    assert (one.ask("DBSIZE"), two.ask("DBSIZE")) == (b":2\r\n", b":1\r\n")
    assert client.ask("GET", "c").startswith(b"-ERR no route")


def test_a_null_is_a_miss(routed):
    one, two, start = routed
    client = start({"miss_failover": ["one", "two"]})
    two.ask("MSET", "a", "1", "b", "2")
    two.ask("HSET", "h", "f", "v")
    one.ask("SET", "b", "first")
    assert client.ask("GET", "a") == b"$1\r\n1\r\n" and client.ask("GET", "b") == b"$5\r\nfirst\r\n"
    assert client.ask("HGET", "h", "f") == b"$1\r\nv\r\n" and client.ask("GET", "none") == b"$-1\r\n"
    client.ask("HELLO", 3)
    assert client.ask("GET", "a") == b"$1\r\n1\r\n" and client.ask("GET", "none") == b"_\r\n"
    assert client.ask("SET", "c", "1") == b"+OK\r\n" and two.ask("EXISTS", "c") == b":0\r\n"


def test_a_gather_takes_what_is_the_same_everywhere_and_refuses_the_rest(routed):
    one, two, start = routed
    client = start({"all_sync": ["one", "two"]})
    assert client.ask("SET", "a", "1") == b"+OK\r\n" and client.ask("INCR", "a") == b":2\r\n"
    assert client.ask("SADD", "s", "x") == b":1\r\n"
    assert one.ask("GET", "a") == two.ask("GET", "a") == b"$1\r\n2\r\n"
    for words in (("SPOP", "s"), ("EVAL", "return 1", 1, "a"), ("XADD", "x", "*", "f", "v")):
        assert b"does not do the same at every server" in client.ask(*words), words
    client.send(array("MULTI") + array("SET", "a", "9") + array("EXEC"))
    assert all(b"does not do the same" in client.reply() for _ in range(3))
    assert one.ask("GET", "a") == two.ask("GET", "a") == b"$1\r\n2\r\n"


def test_what_one_of_several_servers_has_removed_was_removed(routed):
    one, two, start = routed
    client = start({"all_sync": ["one", "two"]})
    for server, other in ((one, two), (two, one)):
        server.ask("MSET", "a", "1", "b", "2", "c", "3"), other.ask("SET", "c", "3")
        assert client.ask("GETDEL", "a") == b"$1\r\n1\r\n"
        assert client.ask("DEL", "a") == b":0\r\n" and client.ask("DEL", "b", "c", "x") == b":2\r\n"
        assert one.ask("DBSIZE") == two.ask("DBSIZE") == b":0\r\n"


def test_a_delete_and_a_list_that_is_empty_are_misses(routed):
    one, two, start = routed
    client = start({"miss_failover": ["one", "two"]})
    two.ask("MSET", "a", "1", "b", "2"), two.ask("RPUSH", "l", "x"), two.ask("HSET", "h", "f", "v")
    one.ask("SET", "b", "one's"), one.ask("SET", "string", "s")
    assert client.ask("MGET", "a", "b", "none") == b"*3\r\n$1\r\n1\r\n$5\r\none's\r\n$-1\r\n"
    assert client.ask("LRANGE", "l", 0, -1) == b"*1\r\n$1\r\nx\r\n" and client.ask("STRLEN", "a") == b":1\r\n"
    assert client.ask("HGETALL", "h") == b"*2\r\n$1\r\nf\r\n$1\r\nv\r\n"
    assert client.ask("LLEN", "string").startswith(b"-WRONGTYPE ") and client.ask("EXISTS", "a") == b":1\r\n"
    assert client.ask("DEL", "a") == b":1\r\n" and two.ask("EXISTS", "a") == b":0\r\n"
    client.ask("HELLO", 3)
    assert client.ask("HGETALL", "h") == b"%1\r\n$1\r\nf\r\n$1\r\nv\r\n"


def test_keys_are_changed_on_their_way(routed):
    one, _, start = routed
    client = start({"modify_key": {"child": "one", "ensure_prefix": "app:"}})
    large = "v" * 300_000
    assert client.ask("MSET", "a", "1", "b", "2") == b"+OK\r\n"
    assert client.ask("SET", "large", large) == b"+OK\r\n"
    assert client.ask("MGET", "a", "b", "none") == b"*3\r\n$1\r\n1\r\n$1\r\n2\r\n$-1\r\n"
    assert client.ask("EVAL", "return KEYS[1]", 1, "a") == b"$5\r\napp:a\r\n"
    assert client.ask("STRLEN", "large") == b":300000\r\n"
    assert one.ask("EXISTS", "app:a", "app:b", "app:large") == b":3\r\n"
    key = "k" * 1000
    assert client.ask("SET", key, "long keys are keys") == b"+OK\r\n"
    assert one.ask("EXISTS", f"app:{key}") == b":1\r\n"
    assert client.ask("LMPOP", 1, "l", "LEFT").startswith(b"-ERR ")
    assert client.ask("PING") == b"+PONG\r\n" and client.ask("DBSIZE") == b":4\r\n"


def test_expiry_times_are_changed_on_their_way(routed):
    one, _, start = routed
    client = start({"modify_ttl": {"child": "one", "ttl": 100, "action": "min"}})
    ttl = lambda key: int(one.ask("TTL", key)[1:])  # noqa: E731
    for words in (
        ("SET", "a", "v"),
        ("SET", "a", "v", "EX", "500"),
        ("SET", "a", "v" * 300_000),
        ("SETEX", "a", "500", "v"),
        ("PSETEX", "a", "500000", "v"),
        ("EXPIRE", "a", "500"),
        ("GETEX", "a", "PERSIST"),
    ):
        one.ask("SET", "a", "v")
        assert not client.ask(*words).startswith(b"-"), words
        assert 90 < ttl("a") <= 100, words
    assert client.ask("SET", "a", "v", "PX", "50000", "NX") == b"$-1\r\n"
    assert client.ask("SET", "b", "v", "PX", "50000", "NX") == b"+OK\r\n" and 40 < ttl("b") <= 50
    assert client.ask("APPEND", "a", "w") == b":2\r\n"


def test_faults_are_answered_as_errors(routed):
    _, _, start = routed
    client = start({"fault": {"child": "one", "error_rate": 1}})
    assert client.ask("GET", "a").startswith(b"-ERR ") and client.ask("PING") == b"+PONG\r\n"


def test_a_write_whose_answer_is_lost_is_not_sent_again(routed):
    one, two, start = routed
    client = start({"failover": ["one", "two"]}, timeout="300ms", eject={"failures": 50})
    assert client.ask("INCR", "n") == b":1\r\n"
    one.freeze()
    two.ask("SET", "a", "two's")
    # The connection is open, so that the server may execute whatever is sent on it.
    lost = [
        ("INCR", "n"),
        ("SET", "b", "1"),
        ("LPUSH", "l", "x"),
        ("GETDEL", "c"),
        ("EVAL", "return 1", 1, "n"),
    ]
    client.send(b"".join(array(*words) for words in [*lost, ("GET", "a")]))
    replies = [client.reply() for _ in lost]
    assert all(reply.startswith(b"-ERR ") and one.address.encode() in reply for reply in replies), replies
    assert client.reply() == b"$5\r\ntwo's\r\n"
    assert two.ask("EXISTS", "n", "b", "l", "c") == b":0\r\n"
    one.thaw()
    # The server executes what it was sent while it was frozen, or finds the connection closed.
    assert one.ask("GET", "n") in (b"$1\r\n1\r\n", b"$1\r\n2\r\n")


def test_a_server_that_cannot_now_is_passed_over_and_not_ejected(two, proxima):
    one, two = two
    settings = config([one, two], route={"failover": ["one", "two"]}, workers=1)
    settings["pools"] = {"one": pools([one])["redis"], "two": pools([two])["redis"]}
    proxy = proxima(settings)
    client = Connection(proxy.address)

    def setting(name, value):
        assert one.ask("CONFIG", "SET", name, value) == b"+OK\r\n"

    def written(key):
        assert all(client.ask("SET", key, "v") == b"+OK\r\n" for _ in range(8))
        assert two.ask("EXISTS", key) == b":1\r\n"

    setting("maxmemory", 1)
    written("out of memory")
    setting("maxmemory", 0)
    setting("min-replicas-to-write", 1)
    written("no replicas")
    setting("min-replicas-to-write", 0)
    one.ask("REPLICAOF", "127.0.0.1", 1)
    written("read only")
    setting("replica-serve-stale-data", "no")
    written("master down")
    assert client.ask("GET", "master down") == b"$1\r\nv\r\n"
    one.ask("REPLICAOF", "NO", "ONE")
    setting("busy-reply-threshold", 10)
    with one.connect() as busy:
        busy.send(array("EVAL", "while true do end", 0))
        until(lambda: one.ask("GET", "a").startswith(b"-BUSY "), "a script runs")
        written("busy")
        assert client.ask("GET", "busy") == b"$1\r\nv\r\n"
        assert one.ask("SCRIPT", "KILL") == b"+OK\r\n"
    until(lambda: client.ask("SET", "back", "v") == one.ask("SET", "back", "v", "XX"), "it is used again")
    assert proxy.member(one.address)["ejections"] == 0


def test_a_server_that_loads_or_cannot_save_is_passed_over_and_not_ejected(redis_server, proxima):
    slow = ["--enable-debug-command", "yes", "--enable-protected-configs", "yes"]
    slow += ["--loading-process-events-interval-bytes", "1024"]
    one, two = redis_server(options=[*slow, "--key-load-delay", "3000"]), redis_server()
    settings = config([one, two], route={"failover": ["one", "two"]}, workers=1)
    # A server that loads looks at its clients only now and then.
    settings["pools"] = {"one": pools([one], timeout="10s")["redis"], "two": pools([two])["redis"]}
    proxy = proxima(settings)
    client = Connection(proxy.address)
    client.ask("SET", "a", "v")
    # Writes are refused after a snapshot has failed: nobody can write to this folder.
    home = one.ask("CONFIG", "GET", "dir").split(b"\r\n")[4]
    one.ask("CONFIG", "SET", "save", "3600 1", "dir", "/proc")
    one.ask("BGSAVE")
    until(lambda: one.ask("SET", "a", "v").startswith(b"-MISCONF "), "the snapshot has failed")
    assert all(client.ask("SET", "cannot save", "v") == b"+OK\r\n" for _ in range(8))
    assert two.ask("EXISTS", "cannot save") == b":1\r\n"
    assert client.ask("GET", "a") == b"$1\r\nv\r\n"
    one.ask("CONFIG", "SET", "save", "", "dir", home)
    with one.connect() as busy:
        busy.send(array("EVAL", "for n = 1, 1000 do redis.call('SET', n, string.rep('x', 500)) end", 0))
        busy.reply()
        busy.send(array("DEBUG", "RELOAD"))
        until(lambda: one.ask("GET", "a").startswith(b"-LOADING "), "it loads")
        assert [client.ask("SET", "loading", "v") for _ in range(8)] == [b"+OK\r\n"] * 8
        assert client.ask("GET", "loading") == b"$1\r\nv\r\n"
        assert two.ask("EXISTS", "loading") == b":1\r\n"
        assert one.ask("GET", "a").startswith(b"-LOADING ")
        assert busy.reply() == b"+OK\r\n"
    until(lambda: client.ask("SET", "back", "v") == one.ask("SET", "back", "v", "XX"), "it is used again")
    assert proxy.member(one.address)["ejections"] == 0


def test_a_write_that_reached_nobody_fails_over(routed):
    one, two, start = routed
    client = start({"failover": ["one", "two"]})
    one.kill()
    assert client.ask("INCR", "n") == b":1\r\n"
    assert two.ask("GET", "n") == b"$1\r\n1\r\n"


def test_operators_see_where_a_key_goes_and_what_clients_do(two, proxima):
    proxy = proxima(config(two))
    with Connection(proxy.address) as client:
        client.ask("CLIENT", "SETINFO", "LIB-NAME", 'my"lib')
        client.ask("MSET", *"a1b2c3d4e5f6")
        client.ask("LPUSH", "l", "x")
        assert client.ask("GET", "l").startswith(b"-WRONGTYPE ")
        client.ask("NOSUCH")
        client.ask("GET", "none")
    assert proxy.metric("errors_total", word="WRONGTYPE") == 1
    assert proxy.metric("client_libraries_total", library='my"lib') == 1
    assert proxy.metric("joins_total") == 1
    assert proxy.metric("request_classes_total", **{"class": "read", "protocol": "redis"}) == 2
    assert proxy.metric("request_classes_total", **{"class": "write"}) == 2
    assert proxy.metric("requests_total", command="lpush", protocol="redis") == 1
    assert {proxy.member(server.address)["state"] for server in two} == {"up"}
    with Connection(proxy.address) as client:
        for key in "abcdef":
            [place] = [server.address for server in two if server.ask("EXISTS", key) == b":1\r\n"]
            assert place in proxy.explain(key) and place in proxy.explain(key, "hgetall")
            offline = subprocess.run(
                [BINARY, "explain", key, "--config", str(proxy.file)],
                capture_output=True,
                text=True,
                check=True,
            )
            assert place in offline.stdout
