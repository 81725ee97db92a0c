"""Users whom the servers alone know: a client says its password once, and a server decides."""

import ssl
import subprocess
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

import pymysql
import pytest
import yaml

from harness import mysql_raw as raw
from harness import number, until
from harness.mysql_between import Between
from harness.mysql_raw import Connection
from harness.split import MONITOR, connect, made, native_hash, rows, schema, users_of, value
from harness.tls import Authority

pytestmark = pytest.mark.either_io

DENIED, LOCKED, NO_SCHEMA, HIDDEN_SCHEMA, NEEDS_TLS = 1045, 4151, 1049, 1044, 3159
WRONG_AT_MOST = 10
NATIVE, SHA2, CLEAR = "mysql_native_password", "caching_sha2_password", "mysql_clear_password"


def within_tls():
    """TLS with whoever answers, as drivers have it that ask for no certificate of an authority."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


@pytest.fixture
def user(mysql_pair):
    """A user of both servers, which no other test has."""
    name = f"u{number()}"
    for server in mysql_pair:
        server.run(f"CREATE USER {name} IDENTIFIED BY 'pass of {name}'", f"GRANT ALL ON test.* TO {name}")
    yield name
    for server in mysql_pair:
        server.run(f"DROP USER IF EXISTS {name}")


@pytest.fixture
def start(proxima, tmp_path, mysql_pair):
    """Starts a proxy whose listener knows no users."""

    def go(**listener):
        return proxima(made(tmp_path, *mysql_pair, listeners=[{"users": "server", **listener}]))

    return go


def log_in(proxy, user, password=None, **options):
    """A client that speaks plainly, as long as `options` do not say otherwise."""
    options.setdefault("ssl_disabled", True)
    return connect(proxy.address, user, password=password or f"pass of {user}", **options)


def first(proxy, user, **options):
    """A client that speaks TLS, and says its password if it is asked."""
    return log_in(proxy, user, ssl_disabled=False, ssl=within_tls(), **options)


def denied(login, *arguments, **options):
    with pytest.raises(pymysql.err.OperationalError) as caught:
        login(*arguments, **options)
    return caught.value.args


def connections(server):
    """How many have ever been made to a server, but for those of this question."""
    with server.connect() as direct:
        [(_, count)] = rows(direct, "SHOW GLOBAL STATUS LIKE 'Connections'")
    return int(count)


def test_a_user_is_served_whom_only_the_servers_know(start, user):
    proxy = start()
    with first(proxy, user) as client:
        assert client._sock.version() == "TLSv1.3"
        for asks in ("SELECT CURRENT_USER()", "SELECT CURRENT_USER() FOR UPDATE"):
            assert value(client, asks) == f"{user}@%"
    # Its password is known by now, and need not be said.
    for _ in range(3):
        with log_in(proxy, user) as plain:
            assert value(plain, "SELECT CURRENT_USER()") == f"{user}@%"
    for method in (NATIVE, SHA2):
        with Connection(proxy.address, login=False) as client:
            assert raw.login_by(client, user, f"pass of {user}", method)[:1] == b"\0"


def test_no_server_is_asked_for_a_user_who_is_known(start, user, mysql_pair):
    proxy = start()
    with first(proxy, user, database="test") as staying:
        value(staying, "SELECT 1 FOR UPDATE")
        until(lambda: len(users_of(mysql_pair[0], user)) == 1, "the one for the question is closed")
        before = connections(mysql_pair[0])
        for _ in range(10):
            with log_in(proxy, user, database="test") as client:
                assert value(client, "SELECT DATABASE()") == "test"
        # The other worker has made one, and this question another.
        assert connections(mysql_pair[0]) - before <= 2


def test_a_client_that_speaks_plainly_does_not_say_its_password(start, user):
    proxy = start()
    code, text = denied(log_in, proxy, user)
    assert code == DENIED and "TLS" in text
    # Whoever is none is told the same.
    assert denied(log_in, proxy, "nobody") == (DENIED, text.replace(user, "nobody"))


@pytest.mark.parametrize("users", ["server", "a list"])
def test_who_speaks_plainly_is_denied_where_tls_is_required(
    start, user, mysql_pair, proxima, tmp_path, users
):
    tls = Authority(tmp_path).certificate("here").listener()
    known = {user: {"password": f"pass of {user}"}}
    proxy = (
        start(tls={"required": True})
        if users == "server"
        else proxima(made(tmp_path, *mysql_pair, users=known, listeners=[{"tls": {**tls, "required": True}}]))
    )
    for _ in range(2):
        assert denied(log_in, proxy, user)[0] == NEEDS_TLS
        assert denied(log_in, proxy, "nobody")[0] == NEEDS_TLS
        with first(proxy, user) as client:
            assert value(client, "SELECT CURRENT_USER()") == f"{user}@%"


def test_a_wrong_password_is_told_with_the_servers_words(start, user, mysql_pair):
    proxy = start()
    theirs = denied(connect, mysql_pair[0].address, user, password="wrong")
    assert denied(first, proxy, user, password="wrong") == theirs
    nobody = (theirs[0], theirs[1].replace(user, "nobody"))
    assert denied(first, proxy, "nobody", password="wrong") == nobody
    with first(proxy, user) as client:
        assert value(client, "SELECT 1") == 1
    assert denied(first, proxy, user, password="wrong") == theirs


def test_wrong_passwords_are_limited_for_each_user_of_a_host(start, user, mysql_pair):
    proxy = start()
    other = f"{user}b"
    for server in mysql_pair:
        server.run(f"CREATE USER {other} IDENTIFIED BY 'pass of {other}'")
    try:
        first(proxy, user).close()
        for victim in (user, other):
            told = [denied(first, proxy, victim, password="wrong")[1] for _ in range(WRONG_AT_MOST + 3)]
            assert ["too many" in text for text in told] == [False] * WRONG_AT_MOST + [True] * 3
        # The right password is of no use to this host for a minute, whether it is known or not.
        for victim in (user, other):
            assert "too many" in denied(first, proxy, victim)[1]
            assert "too many" in denied(log_in, proxy, victim)[1]
        assert "too many" not in denied(first, proxy, "somebody", password="wrong")[1]
        # Quotes around a name make no other user.
        assert "too many" in denied(first, proxy, f"'{other}'")[1]
    finally:
        for server in mysql_pair:
            server.run(f"DROP USER {other}")


def test_many_clients_that_come_at_once_are_all_served(start, user, mysql_pair):
    proxy = start()

    def go(_):
        with first(proxy, user) as client:
            return value(client, "SELECT CURRENT_USER()")

    with ThreadPoolExecutor(30) as pool:
        assert set(pool.map(go, range(60))) == {f"{user}@%"}


def test_a_schema_that_is_none_is_an_error_of_the_login(start, user, splitting, mysql_pair):
    proxy = start()
    for _ in range(2):
        assert denied(first, proxy, user, database="missing")[0] in (NO_SCHEMA, HIDDEN_SCHEMA)
        with first(proxy, user, database="test") as client:
            assert value(client, "SELECT DATABASE()") == "test"
    # So it is with a list of users.
    assert denied(splitting.connect, database="missing")[0] == NO_SCHEMA
    with schema(*mysql_pair) as name, splitting.connect(database=name) as client:
        assert value(client, "SELECT DATABASE()") == name


def test_a_client_becomes_a_user_whom_the_servers_know(start, user):
    proxy = start()
    first(proxy, user).close()
    with Connection(proxy.address, login=False) as client:
        assert raw.login_by(client, user, f"pass of {user}", NATIVE)[:1] == b"\0"
        client.query("SET @x = 1")
        assert raw.change_user(client, user, f"pass of {user}", "test")[:1] == b"\0"
        reply = client.query("SELECT CURRENT_USER(), DATABASE(), @x")
        assert f"{user}@%".encode() in reply and b"test" in reply and raw.numbers(reply) == []
        reply = raw.change_user(client, user, "wrong")
        assert int.from_bytes(reply[1:3], "little") == DENIED


@pytest.mark.parametrize("is_listed", [True, False], ids=["a list", "server"])
def test_a_password_may_be_said_within_tls_alone(user, mysql_pair, proxima, tmp_path, is_listed):
    listener = {"tls": Authority(tmp_path).certificate("here").listener()}
    listener |= {} if is_listed else {"users": "server"}
    known = {user: {"native_hash": native_hash(mysql_pair[0], user)}}
    proxy = proxima(made(tmp_path, *mysql_pair, users=known, listeners=[listener]))
    for password in (f"pass of {user}", "wrong", "", "x" * 200):
        with Connection(proxy.address, login=False) as client:
            client.secure(within_tls())
            reply = raw.say(client, user, password)
            assert (reply[:1] == b"\0") == (password == f"pass of {user}"), reply
            if reply[:1] == b"\0":
                assert f"{user}@%".encode() in client.query("SELECT CURRENT_USER() FOR UPDATE")
        with Connection(proxy.address, login=False) as client:
            reply = raw.say(client, user, password)
            assert reply[:1] == b"\xfe" and CLEAR.encode() not in reply, "another method is asked for"


def encrypted(public, hidden):
    """What a client sends that has this key."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(public)
        file.flush()
        command = ["openssl", "pkeyutl", "-encrypt", "-pubin", "-inkey", file.name]
        command += ["-pkeyopt", "rsa_padding_mode:oaep"]
        return subprocess.run(command, input=hidden, capture_output=True, check=True).stdout


def by_rsa(client, user, password):
    """Logs in as a client does that encrypts its password. Returns the last answer."""
    client.send(raw.packets(client.hello(user, "no such password", method=SHA2), 1))
    sequence, payload = client.packet()
    salt = client.greeting.salt
    if payload[:1] == b"\xfe":
        salt = payload[1:].split(b"\0", 1)[1][:20]
        client.send(raw.packets(raw.proof(SHA2, "no such password", salt), sequence + 1))
        sequence, payload = client.packet()
    if payload != b"\1\4":
        return payload
    client.send(raw.packets(b"\2", sequence + 1))
    sequence, payload = client.packet()
    assert payload[:1] == b"\1"
    said = password.encode() + b"\0"
    hidden = bytes(byte ^ salt[at % 20] for at, byte in enumerate(said))
    client.send(raw.packets(encrypted(payload[1:], hidden), sequence + 1))
    return client.packet()[1]


def test_right_passwords_between_wrong_ones_are_served(start, user):
    proxy = start()
    for _ in range(3):
        for _ in range(WRONG_AT_MOST - 1):
            assert "too many" not in denied(first, proxy, user, password="wrong")[1]
        first(proxy, user).close()
    # What is proved plainly counts as well.
    for _ in range(WRONG_AT_MOST):
        assert "too many" not in denied(log_in, proxy, user, password="wrong")[1]
    assert "too many" in denied(log_in, proxy, user)[1]


def test_a_client_that_begins_without_an_answer_is_asked_for_one(start, user, splitting):
    """As MySQL's own library does, because the greeting names another method."""
    first(start(), user).close()
    proxy = start()
    first(proxy, user).close()
    for address, name, password in (
        (proxy.address, user, f"pass of {user}"),
        (splitting.address, "app", "secret"),
    ):
        with Connection(address, login=False) as client:
            client.send(raw.packets(client.hello(name, "", method=SHA2), 1))
            sequence, payload = client.packet()
            assert payload.startswith(b"\xfe" + SHA2.encode() + b"\0"), payload
            salt = payload.split(b"\0", 1)[1][:20]
            client.send(raw.packets(raw.proof(SHA2, password, salt), sequence + 1))
            assert client.packet()[1] == b"\1\3"
            assert client.packet()[1][:1] == b"\0"


def test_a_user_of_another_pool_is_another_user(proxima, tmp_path, mysql_pair):
    """Each server has a user of this name, with a password of its own."""
    config = made(
        tmp_path, *mysql_pair, listeners=[{"users": "server"}, {"users": "server"}, {"users": "server"}]
    )
    config["routes"]["both"] = {"by_user": {"users": {"other": "readers"}, "default": "writer"}}
    for listener, route in zip(config["listeners"], ("writer", "readers", "both")):
        listener["route"] = route
    name = f"u{number()}"
    for server, password in zip(mysql_pair, ("weak", "strong")):
        server.run(f"CREATE USER {name} IDENTIFIED BY '{password}'", f"GRANT ALL ON test.* TO {name}")
    proxy = proxima(config)
    writer, reader, both = proxy.addresses
    try:
        tls = {"ssl": within_tls()}
        for address, right, wrong in (
            (writer, "weak", "strong"),
            (reader, "strong", "weak"),
            (both, "weak", "strong"),
        ):
            connect(address, name, password=right, database="test", **tls).close()
            assert denied(connect, address, name, password=wrong, **tls)[0] == DENIED
            assert denied(connect, address, name, password=wrong, ssl_disabled=True)[0] == DENIED
        # A login is asked for at the servers of its user.
        with connect(both, "other", database="test", **tls) as client, mysql_pair[1].connect() as direct:
            assert value(client, "SELECT @@port") == value(direct, "SELECT @@port")
    finally:
        for server in mysql_pair:
            server.run(f"DROP USER {name}")


def test_a_list_with_a_route_by_user_takes_the_schema_of_the_users_servers(proxima, tmp_path, mysql_pair):
    config = made(tmp_path, *mysql_pair)
    config["routes"]["split"] = {"by_user": {"users": {"app": "readers"}, "default": "writer"}}
    proxy = proxima(config)
    with schema(mysql_pair[1]) as there:
        with connect(proxy.address, database=there) as client:
            assert value(client, "SELECT DATABASE()") == there
        assert denied(connect, proxy.address, "other", database=there)[0] == NO_SCHEMA


def test_the_key_is_told_once(start, user):
    proxy = start(plain_logins="rsa")
    with Connection(proxy.address, login=False) as client:
        client.send(raw.packets(client.hello(user, "no such password", method=SHA2), 1))
        assert client.packet()[1] == b"\1\4"
        client.send(b"".join(raw.packets(b"\2", 3 + 2 * turn) for turn in range(1000)))
        assert client.packet()[1].startswith(b"\1-----BEGIN")
        assert int.from_bytes(client.packet()[1][1:3], "little") == DENIED
        assert client.rest() == b""


class Slow:
    """A relay before a server that takes long over the logins of one user."""

    def __init__(self, real, user, seconds):
        self.asked = []

        def answer(packet):
            if user.encode() + b"\0" in packet and b"mysql_native_password" in packet:
                self.asked.append(packet)
                time.sleep(seconds)

        self.relay = Between(real, answer)
        self.address, self.stop = self.relay.address, self.relay.stop


def test_a_login_over_which_a_server_takes_long_has_it_ejected_for_nobody(mysql_pair, proxima, tmp_path):
    slow = Slow(mysql_pair[0].address, "stranger", 3)
    known = {"app": {"password": "secret"}}
    listeners = [{"users": "server", "tls": {"required": True}}, {}]
    config = made(tmp_path, slow, mysql_pair[1], users=known, listeners=listeners)
    for pool in config["pools"].values():
        pool |= {"timeout": "300ms", "connect_timeout": "300ms"}
    proxy = proxima(config)
    address, of_app = proxy.addresses

    def strange(_):
        return denied(connect, address, "stranger", password="wrong", ssl=within_tls())

    with ThreadPoolExecutor(5) as pool, connect(of_app) as client:
        trying = [pool.submit(strange, turn) for turn in range(5)]
        while not all(one.done() for one in trying):
            assert value(client, "SELECT 7 FOR UPDATE") == 7
    assert slow.asked and proxy.metric("member_ejections_total", pool="writer") == 0
    slow.stop()


def test_a_password_is_encrypted_where_the_listener_says_so(start, user):
    proxy = start(plain_logins="rsa")
    for password, is_good in (("wrong", False), ("", False), (f"pass of {user}", True)):
        with Connection(proxy.address, login=False) as client:
            reply = by_rsa(client, user, password)
            assert (reply[:1] == b"\0") == is_good, reply
            if not is_good:
                assert int.from_bytes(reply[1:3], "little") == DENIED
    # What is no encrypted password is a wrong one.
    for nonsense in (b"", b"x", b"\2\2", b"y" * 256, b"z" * 10000):
        with Connection(proxy.address, login=False) as client:
            client.send(raw.packets(client.hello(user, "wrong", method=SHA2), 1))
            sequence, payload = client.packet()
            assert payload == b"\1\4"
            client.send(raw.packets(nonsense, sequence + 1))
            assert int.from_bytes(client.packet()[1][1:3], "little") == DENIED


def test_a_client_by_a_unix_socket_says_its_password(proxima, tmp_path, mysql_pair, user):
    config = made(tmp_path, *mysql_pair, listeners=[{"users": "server", "address": f"unix:{tmp_path}/door"}])
    proxima(config)
    for password in ("wrong", f"pass of {user}"):
        options = {"user": user, "password": password, "unix_socket": f"{tmp_path}/door"}
        if password == "wrong":
            assert denied(pymysql.connect, **options)[0] == DENIED
            continue
        with pymysql.connect(**options) as client:
            assert value(client, "SELECT CURRENT_USER()") == f"{user}@%"


def test_a_user_without_a_password_is_served(start, mysql_pair):
    name = f"u{number()}"
    for server in mysql_pair:
        server.run(f"CREATE USER {name}", f"GRANT ALL ON test.* TO {name}")
    proxy = start()
    for _ in range(2):
        with connect(proxy.address, name, password="") as client:
            assert value(client, "SELECT CURRENT_USER()") == f"{name}@%"
        assert denied(first, proxy, name, password="something")[0] == DENIED
    for server in mysql_pair:
        server.run(f"DROP USER {name}")


def has_ended(client):
    try:
        client.ping(reconnect=False)
    except pymysql.err.Error:
        return True
    return False


def test_what_a_server_rejects_is_forgotten_at_once(start, user, mysql_pair):
    proxy = start()
    clients = [first(proxy, user) for _ in range(4)]
    for client in clients:
        rows(client, "SELECT SLEEP(0) FOR UPDATE")
    mysql_pair[0].run(f"ALTER USER {user} IDENTIFIED BY 'a new one'")
    for client in clients:
        rows(client, "BEGIN")

    def is_denied():
        """Another client takes one of the connections that are left."""
        try:
            clients.append(log_in(proxy, user))
            rows(clients[-1], "BEGIN")
        except pymysql.err.OperationalError as error:
            return error.args[0] == DENIED
        return False

    # When all connections are in use, one more is opened, and is told.
    until(is_denied, "a server has told it")
    until(lambda: all(has_ended(client) for client in clients), "all of its clients have ended")
    assert proxy.metric("clients_closed_total", reason="rejected_login") >= 4
    assert denied(first, proxy, user)[0] == DENIED
    with first(proxy, user, password="a new one") as client:
        assert value(client, "SELECT CURRENT_USER() FOR UPDATE") == f"{user}@%"


@pytest.mark.timeout(150)
def test_clients_of_a_login_that_is_good_no_longer_end_within_a_minute(start, mysql_pair):
    changes = ["DROP USER {}", "ALTER USER {} IDENTIFIED BY 'another'", "ALTER USER {} ACCOUNT LOCK"]
    proxy = start()
    names = [f"u{number()}" for _ in range(len(changes) + 1)]
    for name in names:
        for server in mysql_pair:
            server.run(f"CREATE USER {name} IDENTIFIED BY 'pass of {name}'")
    clients = [first(proxy, name) for name in names]
    for name, change in zip(names, changes):
        for server in mysql_pair:
            server.run(change.format(name))
    *ending, staying = clients
    until(lambda: all(has_ended(client) for client in ending), "their clients have ended", longest=90)
    assert value(staying, "SELECT CURRENT_USER()") == f"{names[-1]}@%"
    for name in names[:-1]:
        assert denied(first, proxy, name)[0] in (DENIED, LOCKED)
    for name in names[1:]:
        for server in mysql_pair:
            server.run(f"DROP USER {name}")


def test_a_client_that_leaves_while_a_server_is_asked_lets_others_in(start, user, mysql_pair):
    proxy = start()
    for _ in range(20):
        with Connection(proxy.address, login=False) as client:
            client.secure(within_tls())
            client.send(raw.packets(client.hello(user, "wrong", method=CLEAR), 2))
            client.abort()
    with first(proxy, user) as client:
        assert value(client, "SELECT 1") == 1


def test_no_password_that_was_said_is_told_anywhere(start, user, command):
    proxy = start(plain_logins="rsa")
    with first(proxy, user) as client:
        rows(client, "SELECT 1")
        denied(first, proxy, user, password="a wrong secret")
        pages = ("/metrics", "/config", "/members", "/status", "/", "/mysql", "/mysql/sessions")
        told = "".join(proxy.http(page)[1] for page in pages) + proxy.log()
        assert f'"user":"{user}"' in told, "the session is listed"
    checked = command("check", str(proxy.file))
    told += checked.stdout + checked.stderr
    assert f"pass of {user}" not in told and "a wrong secret" not in told
    assert "learns the passwords" in checked.stdout + checked.stderr


REFUSED = {
    "rsa with a list": ({"plain_logins": "rsa", "users": "users.yaml"}, "plain_logins"),
    "rsa without mysql": ({"plain_logins": "rsa", "protocol": "memcached", "users": None}, "plain_logins"),
    "another word": ({"plain_logins": "dsa"}, "rsa"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_makes_no_sense_is_refused(mysql_pair, tmp_path, command, case):
    more, word = REFUSED[case]
    config = made(tmp_path, *mysql_pair, listeners=[{"users": "server", **more}])
    config["listeners"][0] = {key: kept for key, kept in config["listeners"][0].items() if kept is not None}
    file = tmp_path / "config.yaml"
    file.write_text(yaml.safe_dump(config))
    checked = command("check", str(file))
    assert checked.returncode != 0 and word in checked.stdout + checked.stderr


@pytest.fixture(scope="module")
def newer(mysql97):
    """A MySQL 9.7, all of whose users log in by caching_sha2_password."""
    for name in ("monitor", "app"):
        mysql97.run(
            f"CREATE USER IF NOT EXISTS {name} IDENTIFIED BY '{MONITOR}'", f"GRANT ALL ON *.* TO {name}"
        )
    return mysql97


@pytest.mark.parametrize("users", ["server", "a list"])
def test_a_server_that_asks_for_the_password_gets_it_encrypted(newer, proxima, tmp_path, users):
    config = made(tmp_path, newer, newer, users={"app": {"password": MONITOR}})
    if users == "server":
        config["listeners"][0]["users"] = "server"
    plain = proxima(config)
    newer.run("FLUSH PRIVILEGES")
    code, text = denied(connect_first, plain, users)
    assert code and "plain_logins" in text
    plain.stop()
    for pool in config["pools"].values():
        pool["plain_logins"] = "rsa"
    proxy = proxima(config)
    for _ in range(2):
        newer.run("FLUSH PRIVILEGES")
        assert connect_first(proxy, users) == "app@%"


def connect_first(proxy, users):
    options = {"ssl": within_tls()} if users == "server" else {}
    with connect(proxy.address, "app", password=MONITOR, **options) as client:
        return value(client, "SELECT CURRENT_USER() FOR UPDATE")
