"""twemproxy's front door beside the real `nutcracker`: the same replies, errors and closed connections."""

import pathlib
import select
import time

import pytest

from harness import ports, until
from harness.nutcracker import NUTCRACKER, entry, written
from harness.raw import Raw
from harness.redis import Connection, array

pytestmark = [
    pytest.mark.either_io,
    pytest.mark.skipif(
        not pathlib.Path(NUTCRACKER).exists(), reason="nutcracker is missing: scripts/prepare.sh"
    ),
]


def answers(proxy, requests, listener=0):
    """What comes back for each request on a connection of its own, and whether that was closed."""
    clients = [proxy.raw(listener) for _ in requests]
    for client, request in zip(clients, requests):
        client.send(request)
    got, closed = {request: b"" for request in requests}, set()
    waiting = {client.sock: request for client, request in zip(clients, requests)}
    # All has come when nothing comes any more.
    while ready := select.select(waiting, [], [], 0.5)[0]:
        for sock in ready:
            try:
                more = sock.recv(1 << 16)
            except ConnectionResetError:
                more = b""
            got[waiting[sock]] += more
            if not more:
                closed.add(waiting.pop(sock))
    for client in clients:
        client.close()
    return {request: (got[request], request in closed) for request in requests}


MEMCACHED_LINES = [
    b"set k 0 0 1\r\nv\r\n",
    b"get k\r\n",
    b"get none\r\n",
    b"gets none other\r\n",
    b"set k 0 0 1 noreply\r\nv\r\nget other\r\n",
    b"add new 0 0 1\r\nv\r\ndelete new\r\n",
    b"append k 0 0 0\r\n\r\n",
    b"cas none 0 0 1 1\r\nv\r\n",
    b"incr k 1\r\n",
    b"decr none 1\r\n",
    b"touch none 0\r\n",
    b"delete none\r\n",
    b"quit\r\n",
    b"get k\r\nquit\r\n",
    b"GET k\r\n",
    b"gat 0 k\r\n",
    b"gats 0 k\r\n",
    b"flush_all\r\n",
    b"stats\r\n",
    b"verbosity 1\r\n",
    b"mg k v\r\n",
    b"mn\r\n",
    b"ms k 1\r\nv\r\n",
    b"shutdown\r\n",
    b"nonsense\r\n",
    b"\r\n",
    b"get\r\n",
    b"get " + b"k" * 251 + b"\r\n",
    b"get k " + b"k" * 251 + b"\r\n",
    b"set k 0 0 1\r\nvv\r\n",
    b"set k 0 0 x\r\nv\r\n",
    b"incr k x\r\n",
    b"get k",
]

REDIS_REQUESTS = [
    array("SET", "k", "v"),
    array("get", "none"),
    array("GET", ""),
    array("PING"),
    array("ping", "x"),
    array("QUIT"),
    array("AUTH", "x"),
    array("MGET", "k", "none"),
    array("MSET", "a", "1", "b", "2"),
    # All of these are sent at the same time: none may find what another one has set.
    array("DEL", "c", "d", "none"),
    array("EXISTS", "none"),
    array("LPUSH", "k", "x"),
    array("ZREM", "none"),
    array("EVAL", "return KEYS[1]", "1", "k"),
    b"\r\n",
    b"PING\r\n",
    b"*0\r\n",
    b"*3\r\n*abcde\r\n",
    array("MSET", "a", "1", "b"),
    array("MSET", "a"),
    array("GET"),
    array("GET", "a", "b"),
    array("MSETNX", "a", "1"),
    array("KEYS", "*"),
    array("INFO"),
    array("FLUSHALL"),
    array("SELECT", "0"),
    array("MULTI"),
    array("SUBSCRIBE", "c"),
    array("BLPOP", "k", "0"),
    array("NOSUCH", "k"),
    array("OBJECT", "ENCODING", "k"),
]


def test_memcached_lines_are_answered_or_closed_as_by_twemproxy(both, memcached):
    servers = memcached.several(2)
    theirs, ours = both({"p": {"servers": [entry(server) for server in servers]}})
    expected, found = answers(theirs, MEMCACHED_LINES), answers(ours, MEMCACHED_LINES)
    assert {line: answer for line, answer in found.items() if answer != expected[line]} == {}


def test_a_key_too_long_in_a_line_that_comes_in_pieces_closes_without_a_reply(both, memcached):
    for proxy in both({"p": {"servers": [entry(memcached())]}}):
        with proxy.raw() as client:
            client.send(b"get " + b"k " * 2_000)
            time.sleep(0.1)
            client.send(b"k" * 251 + b"\r\n")
            assert client.rest() == b""


def test_a_client_of_another_protocol_is_closed_and_the_reason_is_told(door, memcached, redis_server):
    pools = {
        "m": {"listen": ports.address(), "servers": [entry(memcached())]},
        "r": {"listen": ports.address(), "redis": True, "servers": [entry(redis_server())]},
    }
    for listener, method in enumerate([b"PUT", b"POST"]):
        proxy = door(pools)
        with proxy.raw(listener) as client:
            client.send(method + b" / HTTP/1.1\r\n\r\n")
            assert client.rest() == b""
        until(lambda: "HTTP" in proxy.log(), "the reason is told")
        proxy.stop()


def test_redis_requests_are_answered_or_closed_as_by_twemproxy(both, redis_server):
    servers = redis_server.several(2)
    theirs, ours = both({"p": {"redis": True, "servers": [entry(server) for server in servers]}})
    for server in servers:
        server.ask("FLUSHALL")
    expected, found = answers(theirs, REDIS_REQUESTS), answers(ours, REDIS_REQUESTS)
    assert {line: answer for line, answer in found.items() if answer != expected[line]} == {}


def test_redis_password_of_the_pool_is_asked_for_as_by_twemproxy(both, redis_server):
    server = redis_server(options=["--requirepass", "secret"])
    pool = {"redis": True, "redis_auth": "secret", "servers": [entry(server)]}
    requests = [
        array("PING"),
        array("GET", "k"),
        array("AUTH", "wrong"),
        array("AUTH", "secret"),
        array("AUTH", "wrong") + array("GET", "k"),
        array("AUTH", "secret") + array("SET", "k", "v") + array("GET", "k") + array("PING"),
        array("QUIT"),
    ]
    theirs, ours = both({"p": pool})
    expected = answers(theirs, requests)
    assert answers(ours, requests) == expected


def test_redis_servers_with_another_password_answer_as_behind_twemproxy(both, redis_server):
    with_one, without = redis_server(options=["--requirepass", "secret"]), redis_server()
    pools = {
        "none": {"redis": True, "servers": [entry(with_one)]},
        "one": {"redis": True, "redis_auth": "secret", "servers": [entry(without)]},
    }
    theirs, ours = both(pools)
    asked = [array("PING"), array("GET", "k"), array("AUTH", "secret")]
    assert answers(ours, asked, 0) == answers(theirs, asked, 0)
    # twemproxy sends its AUTH and does not look at the answer.
    with Connection(ours.addresses[1]) as client:
        assert client.ask("AUTH", "secret") == b"+OK\r\n"
        assert client.ask("PING") == b"+PONG\r\n"


def test_redis_password_is_on_no_page_and_in_no_log(door, redis_server):
    server = redis_server(options=["--requirepass", "hush hush"])
    pool = {"listen": ports.address(), "redis": True, "redis_auth": "hush hush", "servers": [entry(server)]}
    text = f"# once hush hush it was\n{written({'p': pool})}"
    proxy = door({"p": pool}, "-v", "11")
    proxy.write(text)
    until(lambda: proxy.metric("config_reloads_total") == 1, "the comment has come")
    with Connection(proxy.address) as client:
        assert client.ask("AUTH", "hush hush") == b"+OK\r\n"
        assert client.ask("SET", "k", "v") == b"+OK\r\n"
    pages = ["/config", "/members", "/metrics", "/explain?key=k"]
    assert "hush" not in "".join([*(proxy.http(page)[1] for page in pages), proxy.log()])
    assert server.address in proxy.http("/config")[1]
    version = proxy.version()
    proxy.write(text.replace('redis_auth: "hush hush', 'redis_auth: "other'))
    until(lambda: proxy.version() != version, "another password is another version")


def test_redis_database_is_selected_after_the_login(door, redis_server):
    server = redis_server(options=["--requirepass", "secret"])
    pool = {"redis": True, "redis_auth": "secret", "redis_db": 3, "servers": [entry(server)]}
    with Connection(door({"p": {"listen": ports.address(), **pool}}).address) as client:
        assert client.ask("AUTH", "secret") == b"+OK\r\n"
        assert client.ask("SET", "k", "v") == b"+OK\r\n"
    with server.connect() as direct:
        assert direct.ask("SELECT", "3") == b"+OK\r\n"
        assert direct.ask("GET", "k") == b"$1\r\nv\r\n"


@pytest.mark.parametrize("redis", [False, True], ids=["memcached", "redis"])
def test_errors_of_servers_have_twemproxys_texts(both, redis, scripted, memcached, redis_server):
    def frozen(sock):
        while sock.recv(4096):
            pass

    def closing(sock):
        sock.recv(4096)

    def nonsense(sock):
        while sock.recv(4096):
            sock.sendall(b"nonsense\r\n")

    servers = {
        "refused": ports.address(),
        **{talk.__name__: scripted(talk, version=None) for talk in (frozen, closing, nonsense)},
    }
    pools = {
        name: {"redis": redis, "timeout": 200, "servers": [entry(server)]} for name, server in servers.items()
    }
    theirs, ours = both(pools)
    requests = (
        [array("GET", "k"), array("MGET", "k", "l")] if redis else [b"get k\r\n", b"set k 0 0 1\r\nv\r\n"]
    )
    for listener, name in enumerate(servers):
        expected, found = answers(theirs, requests, listener), answers(ours, requests, listener)
        texts = [{request: answer for request, (answer, _) in each.items()} for each in (expected, found)]
        assert texts[1] == texts[0], name


def test_all_commands_are_taken_on_request(door, memcached, redis_server):
    pools = {
        "m": {"listen": ports.address(), "servers": [entry(memcached())]},
        "r": {"listen": ports.address(), "redis": True, "servers": [entry(redis_server())]},
    }
    proxy = door(pools, "--all-commands")
    with proxy.raw() as client:
        assert client.ask(b"mg none v\r\n") == b"EN\r\n"
    with Connection(proxy.addresses[1]) as client:
        assert client.ask("INCR", "n") == b":1\r\n"
        assert client.ask("MULTI") == b"+OK\r\n"
        assert client.ask("DISCARD") == b"+OK\r\n"
        assert client.ask("KEYS", "*") == b"*1\r\n$1\r\nn\r\n"


@pytest.mark.parametrize("protocol", ["memcached", "redis"])
def test_further_listener_of_a_pool_takes_all_commands_and_finds_the_same_servers(
    door, memcached, redis_server, folder, protocol
):
    is_redis = protocol == "redis"
    servers = {"memcached": memcached, "redis": redis_server}[protocol].several(3)
    dead = ports.address()
    pool = {"redis": is_redis, "hash": "md5", "servers": [entry(server) for server in [*servers, dead]]}
    also, path = ports.address(), folder / "also.sock"
    proxy = door(
        {"p": {"listen": ports.address(), **pool}}, f"--also-listen=p={also}", f"--also-listen=p={path} 0600"
    )
    assert path.stat().st_mode & 0o777 == 0o600
    keys = [b"%d-is-a-key" % number for number in range(100)]
    write, read = {
        "memcached": (lambda key: b"set %b 0 0 1\r\nv\r\n" % key, lambda key: b"mg %b v\r\n" % key),
        "redis": (lambda key: array("SET", key, "v"), lambda key: array("GETRANGE", key, "0", "-1")),
    }[protocol]
    stored = {"memcached": b"STORED\r\n", "redis": b"+OK\r\n"}[protocol]
    refused = {"memcached": b"SERVER_ERROR Connection refused\r\n", "redis": b"-ERR Connection refused\r\n"}
    with proxy.raw() as under, Raw(also) as beside, Raw(f"unix:{path}") as by_file:
        kept = []
        for key in keys:
            under.send(write(key))
            answer = under.line()
            kept += [key] * (answer == stored)
            for client in (beside, by_file):
                client.send(read(key))
                found = client.line()
                if answer == stored:
                    assert found == (b"VA 1\r\n" if not is_redis else b"$1\r\n")
                    assert client.line() == b"v\r\n"
                else:
                    # The same server is asked, and the error is Proxima's own.
                    assert answer == refused[protocol]
                    assert found.endswith(b" %b: Connection refused\r\n" % dead.encode())
        assert 0 < len(kept) < len(keys)
    # Each command is served beside the pool's listener, and closes the connection there.
    only = {
        "memcached": {b"mn\r\n": b"MN\r\n", b"gat 0 %b\r\n" % kept[0]: b"VALUE %b 0 1\r\n" % kept[0]},
        "redis": {array("MULTI"): b"+OK\r\n", array("ECHO", "x"): b"$1\r\n"},
    }[protocol]
    for request, answer in only.items():
        with proxy.raw() as under, Raw(also) as beside:
            under.send(request)
            assert under.rest() == b""
            beside.send(request)
            assert beside.line() == answer
    if is_redis:
        with Connection(also) as client:
            assert client.ask("HELLO", "3").startswith(b"%")
    # Nobody is cut off when the file changes.
    with Raw(also) as beside:
        proxy.write({"p": {"listen": proxy.address, **pool, "servers": pool["servers"][:3]}})
        until(lambda: len(proxy.http("/members")[1].split('"pool":')) == 4, "the dead server is gone")
        for key in keys:
            beside.send(write(key))
            assert beside.line() == stored


def test_further_listener_asks_for_the_password_of_its_pool(door, redis_server):
    server = redis_server(options=["--requirepass", "secret"])
    pool = {"listen": ports.address(), "redis": True, "redis_auth": "secret", "servers": [entry(server)]}
    also = ports.address()
    door({"p": pool}, "--also-listen", f"p={also}")
    with Connection(also) as client:
        assert client.ask("PING") == b"-NOAUTH Authentication required.\r\n"
        assert client.ask("AUTH", "wrong").startswith(b"-WRONGPASS ")
        assert client.ask("AUTH", "secret") == b"+OK\r\n"
        assert client.ask("SET", "k", "v") == b"+OK\r\n"


def test_redis_clients_of_today_connect(door, redis_server):
    import redis

    host, port = door(
        {"r": {"listen": ports.address(), "redis": True, "servers": [entry(redis_server())]}}
    ).address.split(":")
    client = redis.Redis(host=host, port=int(port), protocol=3)
    assert client.set("k", "v") and client.get("k") == b"v"
