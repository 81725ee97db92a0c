"""Logins: the proxy's own at servers, a listener's password, and clients' own logins that are passed on."""

import pytest

from harness import until
from harness.redis import Connection, array, config

pytestmark = pytest.mark.either_io

NO_LOGIN = b"-NOAUTH Authentication required.\r\n"
WRONG = b"-WRONGPASS invalid username-password pair or user is disabled.\r\n"
SECRET = "s3cret"


def client_of(proxy):
    return Connection(proxy.address)


def guarded(folder, servers, listener=None, **pool):
    """A configuration whose password is in a file, and that file."""
    password = folder / "password"
    password.write_text(SECRET + "\n")
    settings = config(servers)
    settings["pools"]["redis"] |= pool
    settings["listeners"][0] |= listener or {}
    return settings, password


def users(*rules):
    """Options of a server with these users."""
    return [word for rule in rules for word in ("--user", *rule.split())]


def shown(proxy):
    """Everything that an operator can see of a proxy."""
    pages = ["/config", "/members", "/metrics", "/explain?key=a"]
    return "".join(proxy.http(page)[1] for page in pages) + proxy.log()


def test_the_proxy_logs_in_at_servers_with_user_password_and_database(redis_server, proxima, folder):
    server = redis_server(options=users("default off", f"me on >{SECRET} ~* &* +@all"))
    settings, _ = guarded(folder, [server], user="me", password_file=str(folder / "password"), database=3)
    with server.connect() as direct:
        assert direct.ask("AUTH", "me", SECRET) == b"+OK\r\n"
        proxy = proxima(settings)
        for version in (2, 3):
            with client_of(proxy) as client:
                assert client.ask("HELLO", version)[:1] in b"*%"
                assert client.ask("SET", f"k{version}", "v") == b"+OK\r\n"
                client.send(array("MULTI") + array("INCR", "n") + array("EXEC"))
                assert [client.reply() for _ in range(3)][2].startswith(b"*1\r\n:")
                assert client.ask("BLPOP", "none", "0.01") in (b"*-1\r\n", b"_\r\n")
        assert direct.ask("SELECT", 3) == b"+OK\r\n"
        assert direct.ask("EXISTS", "k2", "k3", "n") == b":3\r\n"
        connections = direct.ask("CLIENT", "LIST")
        assert connections.count(b"name=proxima") == connections.count(b"user=me") - 1 > 1
    assert SECRET not in shown(proxy)


def test_a_refused_login_takes_the_server_out_until_its_password_is_right(redis_server, proxima, folder):
    server = redis_server(options=["--requirepass", SECRET])
    settings, password = guarded(folder, [server], password_file=str(folder / "password"))
    settings["pools"]["redis"]["eject"] = {"probe_initial": "100ms", "probe_max": "200ms"}
    password.write_text("wrong\n")
    proxy = proxima(settings)
    client = client_of(proxy)
    assert client.ask("GET", "a").startswith(b"-ERR ")
    # The reason is told by the worker, a moment behind the state that all of them share.
    member = until(
        lambda: [m for m in [proxy.member(server.address)] if m["state"] == "ejected" and "why" in m],
        "it is out, and why",
    )[0]
    assert "login refused: WRONGPASS" in member["why"] and "wrong\n" not in member["why"]
    password.write_text(SECRET)
    until(lambda: client.ask("GET", "a") == b"$-1\r\n", "the new password is used")
    assert SECRET not in shown(proxy)


def test_a_password_may_be_in_the_environment(redis_server, proxima, monkeypatch):
    server = redis_server(options=["--requirepass", SECRET])
    monkeypatch.setenv("CACHE_PASSWORD", SECRET)
    settings = config([server])
    settings["pools"]["redis"]["password_env"] = "CACHE_PASSWORD"
    proxy = proxima(settings)
    assert client_of(proxy).ask("SET", "a", "1") == b"+OK\r\n"
    assert SECRET not in shown(proxy)


def test_a_listener_with_a_password_serves_nobody_without_it(redis_server, proxima, folder):
    server = redis_server()
    settings, _ = guarded(folder, [server], listener={"password_file": str(folder / "password")})
    proxy = proxima(settings)
    with client_of(proxy) as client:
        for words in (
            ("GET", "a"),
            ("SET", "a", "1"),
            ("MGET", "a", "b"),
            ("PING",),
            ("SUBSCRIBE", "a"),
            ("MULTI",),
        ):
            assert client.ask(*words) == NO_LOGIN, words
        client.send(array("MULTI") + array("SET", "a", "1") + array("EXEC"))
        assert [client.reply() for _ in range(3)] == [NO_LOGIN] * 3
        client.send(b"GET a\r\n" + array("SET", "a", "v" * 200_000))
        assert [client.reply(), client.reply()] == [NO_LOGIN] * 2
        assert client.ask("HELLO", 3).startswith(b"-NOAUTH HELLO must be called")
        for words in (
            ("AUTH", "no"),
            ("AUTH", "default", "no"),
            ("AUTH", "me", SECRET),
            ("AUTH", SECRET + "x"),
        ):
            assert client.ask(*words) == WRONG, words
        assert client.ask("HELLO", 3, "AUTH", "default", "no") == WRONG
        assert client.ask("GET", "a") == NO_LOGIN
        assert client.ask("AUTH", SECRET) == b"+OK\r\n"
        assert client.ask("SET", "a", "1") == b"+OK\r\n"
        assert client.ask("RESET") == b"+RESET\r\n"
        assert client.ask("GET", "a") == NO_LOGIN
        assert client.ask("AUTH", "default", SECRET) == b"+OK\r\n"
        assert client.ask("GET", "a") == b"$1\r\n1\r\n"
    with client_of(proxy) as client:
        client.send(array("HELLO", 3, "AUTH", "default", SECRET) + array("GET", "none"))
        assert client.reply().startswith(b"%7\r\n") and client.reply() == b"_\r\n"
    assert server.ask("EXISTS", "a") == b":1\r\n"
    assert SECRET not in shown(proxy)


def test_a_new_password_holds_for_those_who_come_later(redis_server, proxima, folder):
    settings, password = guarded(
        folder, [redis_server()], listener={"password_file": str(folder / "password")}
    )
    proxy = proxima(settings)
    before = client_of(proxy)
    assert before.ask("AUTH", SECRET) == b"+OK\r\n"
    password.write_text("another")

    def takes_the_new_one():
        with client_of(proxy) as client:
            return client.ask("AUTH", "another") == b"+OK\r\n"

    until(takes_the_new_one, "the new password is asked for")
    assert client_of(proxy).ask("AUTH", SECRET) == WRONG
    assert before.ask("GET", "a") == b"$-1\r\n"


@pytest.fixture
def passing(redis_server, proxima):
    """A server with users, and a proxy that passes their logins on."""
    rules = (
        "default off",
        "reader on >one ~r:* &* +get +auth +hello +ping +select",
        "writer on >two ~* &* +@all",
    )
    server = redis_server(options=users(*rules), login=("writer", "two"))
    settings = config([server])
    settings["listeners"][0]["auth"] = "pass"
    return server, proxima(settings)


def test_a_login_that_is_passed_on_is_answered_as_by_the_server(passing):
    server, proxy = passing
    steps = [
        ("GET", "r:a"),
        ("AUTH", "reader", "no"),
        ("AUTH", "no"),
        ("HELLO", 3),
        ("GET", "r:a"),
        ("AUTH", "reader", "one"),
        ("GET", "r:a"),
        ("SET", "r:a", "1"),
        ("GET", "w:a"),
        ("AUTH", "writer", "wrong"),
        ("SET", "r:a", "1"),
        ("SELECT", 99),
        ("AUTH", "writer", "two"),
        ("SET", "r:a", "1"),
        ("SELECT", 2),
        ("GET", "r:a"),
        ("AUTH", "reader", "one"),
        ("GET", "r:a"),
        ("SELECT", 0),
        ("GET", "r:a"),
    ]
    with server.plain() as direct, client_of(proxy) as through:
        for words in steps:
            assert through.ask(*words) == direct.ask(*words), words


def test_a_hello_of_the_version_that_holds_is_answered_while_the_server_watches(passing):
    _, proxy = passing
    with client_of(proxy) as client:
        client.ask("HELLO", 3, "AUTH", "writer", "two")
        assert client.ask("WATCH", "a") == b"+OK\r\n"
        assert client.ask("HELLO", 3).startswith(b"%7\r\n")
        assert client.ask("HELLO", 2).startswith(b"-ERR the login and the database cannot change")
        client.send(array("MULTI") + array("SET", "a", "1") + array("EXEC"))
        assert [client.reply() for _ in range(3)][2] == b"*1\r\n+OK\r\n"


def test_clients_of_several_users_never_get_each_others_rights(passing):
    server, proxy = passing
    with client_of(proxy) as reader, client_of(proxy) as writer, client_of(proxy) as nobody:
        assert reader.ask("HELLO", 3, "AUTH", "reader", "one").startswith(b"%")
        assert writer.ask("AUTH", "writer", "two") == b"+OK\r\n"
        for n in range(50):
            assert writer.ask("SET", "w:a", n) == b"+OK\r\n"
            assert reader.ask("SET", "w:a", "x").startswith(b"-NOPERM ")
            assert nobody.ask("GET", "r:a") == NO_LOGIN
        writer.send(array("MULTI") + array("INCR", "w:n") + array("EXEC"))
        assert [writer.reply() for _ in range(3)][2] == b"*1\r\n:1\r\n"
        reader.send(array("AUTH", "writer", "two") + array("SET", "w:a", "mine") + array("GET", "w:a"))
        assert [reader.reply() for _ in range(3)] == [b"+OK\r\n", b"+OK\r\n", b"$4\r\nmine\r\n"]
        assert reader.ask("RESET") == b"+RESET\r\n"
        assert reader.ask("GET", "w:a") == NO_LOGIN
    assert proxy.member(server.address)["state"] == "up"
    assert all(secret not in shown(proxy) for secret in ("one\n", "two\n", '"one"', '"two"'))


def test_strangers_who_guess_passwords_harm_nobody(passing):
    server, proxy = passing
    writer = client_of(proxy)
    assert writer.ask("AUTH", "writer", "two") == b"+OK\r\n"
    for n in range(300):
        with client_of(proxy) as stranger:
            assert stranger.ask("AUTH", "writer", f"guess{n}") == WRONG
    assert writer.ask("SET", "a", "1") == b"+OK\r\n"
    assert proxy.member(server.address)["state"] == "up"


@pytest.mark.parametrize("version", [2, 3], ids=["resp2", "resp3"])
def test_a_subscription_that_the_server_refuses_is_answered_and_harms_nobody(redis_server, proxima, version):
    direct, behind = [redis_server(options=users("default on nopass ~* &ok* +@all")) for _ in range(2)]
    proxy = proxima(config([behind], workers=1))
    steps = (
        ("SUBSCRIBE", "bad"),
        ("GET", "a"),
        ("SUBSCRIBE", "ok"),
        ("PSUBSCRIBE", "*"),
        ("SSUBSCRIBE", "bad"),
        ("PING",),
        ("UNSUBSCRIBE", "ok"),
        ("SET", "a", "1"),
    )
    for _ in range(5):
        heard = []
        with direct.connect() as one, client_of(proxy) as other:
            for client in (one, other):
                client.ask("HELLO", version)
                client.send(b"".join(array(*words) for words in steps))
                heard.append([client.reply() for _ in steps])
        assert heard[0] == heard[1]
    assert proxy.member(behind.address)["failures_in_a_row"] == 0
    assert proxy.metric("dedicated_lanes", pool="redis") == 0


def test_a_stranger_who_subscribes_harms_nobody(passing):
    server, proxy = passing
    with client_of(proxy) as stranger:
        for _ in range(10):
            assert stranger.ask("SUBSCRIBE", "a") == NO_LOGIN
    assert proxy.member(server.address)["failures_in_a_row"] == 0


def test_a_transaction_that_the_server_refuses_keeps_every_reply_in_its_place(redis_server, proxima):
    """Without MULTI its commands are executed one by one, and what they say may look like the last reply."""
    direct, behind = [redis_server(options=users("default on nopass ~* &* +@all -multi")) for _ in range(2)]
    proxy = proxima(config([behind], workers=1))
    script = "return redis.error_reply('EXECABORT x')"
    for steps in (
        [("MULTI",), ("SET", "a", "1"), ("GET", "a"), ("LRANGE", "l", 0, -1), ("EXEC",), ("GET", "a")],
        [("MULTI",), ("EVAL", script, 1, "a"), ("EXEC",), ("ECHO", "x")],
    ):
        heard = []
        with direct.connect() as one, client_of(proxy) as through, client_of(proxy) as innocent:
            for client in (one, through):
                client.send(b"".join(array(*words) for words in steps))
                innocent.send(array("GET", "none"))
                heard.append([client.reply() for _ in steps])
                assert innocent.reply() == b"$-1\r\n"
        assert heard[0] == heard[1]
    assert proxy.member(behind.address)["failures_in_a_row"] == 0


def test_a_database_of_the_only_server_may_be_selected(redis_server, proxima):
    server = redis_server()
    proxy = proxima(config([server]))
    with client_of(proxy) as client, client_of(proxy) as other, server.connect() as direct:
        heard = []
        for connection in (client, direct):
            server.ask("FLUSHALL")
            connection.send(
                array("SET", "a", "zero")
                + array("SELECT", 5)
                + array("GET", "a")
                + array("SET", "a", "five")
                + array("SELECT", 16)
                + array("SELECT", "x")
                + array("GET", "a")
                + array("SELECT", 0)
            )
            heard.append([connection.reply() for _ in range(8)])
        assert heard[0] == heard[1]
        assert client.ask("SELECT", 5) == b"+OK\r\n"
        client.send(array("MULTI") + array("GET", "a") + array("EXEC") + array("BLPOP", "none", "0.01"))
        assert [client.reply() for _ in range(4)][2:] == [b"*1\r\n$4\r\nfive\r\n", b"*-1\r\n"]
        assert other.ask("GET", "a") != b"$4\r\nfive\r\n"
        assert b"db=5" in client.ask("CLIENT", "INFO")
        # While the server watches keys, only the login that holds may be said again.
        for connection in (client, direct):
            connection.ask("SELECT", 5)
            connection.ask("WATCH", "a")
            assert connection.ask("SELECT", 5) == b"+OK\r\n"
        assert client.ask("SELECT", 0).startswith(b"-ERR the login and the database cannot change")
        assert client.ask("HELLO").startswith(b"*14\r\n")


def test_databases_of_several_servers_are_refused(redis_server, proxima):
    client = client_of(proxima(config(redis_server.several(2))))
    assert client.ask("SELECT", 0) == b"+OK\r\n"
    assert client.ask("SELECT", 1).startswith(b"-ERR the proxy serves one database")
