"""Who may log in, how a client proves who it is, and what is told to the one who cannot."""

import contextlib
import pathlib
import re

import pymysql
import pytest
import yaml

from harness import mysql_raw as raw
from harness import until
from harness.mysql_raw import Connection
from harness.split import PASSWORDS, connect, error, made, native_hash, rows, schema, value
from harness.tls import Authority

pytestmark = pytest.mark.either_io

DENIED = 1045
TOO_MANY = 1203


def users(proxy):
    return pathlib.Path(proxy.config["listeners"][0]["users"])


@pytest.mark.parametrize("user", PASSWORDS)
def test_a_user_logs_in_and_is_the_one_at_the_servers(splitting, user):
    with splitting.connect(user) as client:
        for asks in ("SELECT CURRENT_USER(), USER()", "SELECT CURRENT_USER(), USER() FOR UPDATE"):
            [(current, said)] = rows(client, asks)
            assert current == f"{user}@%" and said.startswith(f"{user}@")


@pytest.mark.parametrize(
    "method", ["mysql_native_password", "caching_sha2_password", "client_ed25519", "dialog", ""]
)
@pytest.mark.parametrize("user", ["app", "hashed"])
def test_a_client_proves_its_password_by_the_method_that_both_know(splitting, user, method):
    with Connection(splitting.address, login=False) as client:
        reply = raw.login_by(client, user, PASSWORDS[user], method)
        assert reply[:1] == b"\0", reply
        assert b"reader" not in client.query("SELECT 1") and not raw.numbers(client.query("SELECT USER()"))


@pytest.mark.parametrize("method", ["mysql_native_password", "caching_sha2_password", "client_ed25519"])
@pytest.mark.parametrize("password", ["wrong", "", "secre", "secret ", "x" * 300])
def test_a_wrong_password_is_denied_by_every_method(splitting, method, password):
    for user in ("app", "hashed", "nobody"):
        with Connection(splitting.address, login=False) as client:
            reply = raw.login_by(client, user, password, method)
            assert int.from_bytes(reply[1:3], "little") == DENIED, reply
            assert client.rest() == b""


def denied(address, user, password):
    with pytest.raises(pymysql.err.OperationalError) as caught:
        connect(address, user, password=password)
    return caught.value.args


@pytest.mark.parametrize("password", ["wrong", "", "another secret"])
def test_an_unknown_user_is_told_the_same_as_one_with_a_wrong_password(splitting, password):
    number, text = denied(splitting.address, "app", password)
    assert number == DENIED and text.startswith("Access denied for user 'app'")
    for user in ("nobody", "root", "monitor", "App", "ap", "app ", "x" * 200, "a'b"):
        assert denied(splitting.address, user, password) == (number, text.replace("'app'", f"'{user}'"))
    for user in ("app", "nobody"):
        seen = []
        for _ in range(2):
            with Connection(splitting.address, login=False) as client:
                seen.append(raw.login_by(client, user, password, "caching_sha2_password", whole=True))
        told = [[(at, part[:1], len(part)) for at, part in raw.split(one)] for one in seen]
        assert told[0] == told[1]
    # As the server says it, but for the host.
    theirs = denied(splitting.writer.address, "other", "wrong")[1]
    ours = denied(splitting.address, "other", "wrong")[1]
    assert re.sub(r"@'[^']*'", "", theirs) == re.sub(r"@'[^']*'", "", ours)


def test_a_schema_that_is_none_is_an_error_at_once_or_at_the_first_statement(splitting):
    try:
        client = splitting.connect(database="missing")
    except pymysql.err.MySQLError as caught:
        assert caught.args[0] == 1049
        return
    for statement in ("SELECT 1", "SELECT 1 FOR UPDATE", "INSERT INTO t VALUES (1)"):
        assert error(client, statement) == 1049
    with splitting.connect() as another:
        assert value(another, "SELECT 1") == 1


def test_a_login_that_a_server_refuses_is_refused_with_the_servers_words(mysql_pair, proxima, tmp_path):
    writer, reader = mysql_pair
    known = {"stranger": {"password": "x"}, "app": {"password": "another password than the server's"}}
    proxy = proxima(made(tmp_path, writer, reader, users=known))
    for user, password in (("stranger", "x"), ("app", "another password than the server's")):
        with contextlib.suppress(pymysql.err.OperationalError):
            client = connect(proxy.address, user, password=password)
            assert error(client, "SELECT 1") == DENIED
            continue
    assert proxy.is_live()


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.mark.parametrize("version", ["1.2", "1.3"])
def test_a_client_logs_in_within_tls(mysql_pair, proxima, tmp_path, authority, version):
    tls = authority.certificate("here").listener()
    proxy = proxima(made(tmp_path, *mysql_pair, listeners=[{"tls": tls}]))
    for user in PASSWORDS:
        with connect(proxy.address, user, ssl=authority.context(version)) as client:
            assert client._sock.version() == f"TLSv{version}"
            assert value(client, "SELECT CURRENT_USER()") == f"{user}@%"
            text = "x" * 3_000_000
            assert value(client, "SELECT %s", text) == text
    with pytest.raises(pymysql.err.OperationalError, match=str(DENIED)):
        connect(proxy.address, password="wrong", ssl=authority.context(version))


def test_a_client_changes_its_user(splitting):
    with schema(splitting.writer, splitting.reader) as name, Connection(splitting.address) as client:
        client.query("SET @x = 1")
        client.query("SET NAMES latin1")
        client.query("CREATE TEMPORARY TABLE test.own (id INT)")
        assert raw.change_user(client, "other", PASSWORDS["other"], name)[:1] == b"\0"
        for asks in (
            "SELECT CURRENT_USER(), DATABASE(), @x, @@character_set_client",
            "SELECT CURRENT_USER(), @x",
        ):
            reply = client.query(asks)
            assert b"other@%" in reply and b"app@" not in reply and b"latin1" not in reply
        assert raw.numbers(client.query("SELECT * FROM test.own FOR UPDATE")) == [1146]
        assert raw.change_user(client, "hashed", PASSWORDS["hashed"])[:1] == b"\0"
        assert b"hashed@%" in client.query("SELECT CURRENT_USER()")
        reply = raw.change_user(client, "app", "wrong")
        assert int.from_bytes(reply[1:3], "little") == DENIED
        assert client.rest() == b""


@pytest.mark.parametrize("method", ["mysql_native_password", "caching_sha2_password"])
def test_a_client_becomes_a_user_by_the_method_that_both_know(splitting, method):
    with Connection(splitting.address) as client:
        for user in ("hashed", "other"):
            client.write(raw.CHANGE_USER, user.encode() + b"\0\0\0" + b"\x2d\0" + method.encode() + b"\0")
            reply = client.proved(PASSWORDS[user])
            assert reply[:1] == b"\0", reply
            assert f"{user}@%".encode() in client.query("SELECT CURRENT_USER()")


def test_users_are_read_anew_without_a_restart(mysql_pair, proxima, tmp_path):
    proxy = proxima(made(tmp_path, *mysql_pair, users={"app": {"password": "secret"}}))
    with connect(proxy.address) as client:
        assert denied(proxy.address, "other", "another secret")[0] == DENIED
        (tmp_path / "of-other").write_text("another secret\n")
        hashed = native_hash(mysql_pair[0], "hashed")
        known = {
            "app": {"password": "secret"},
            "other": {"password_file": "of-other"},
            "hashed": {"native_hash": hashed},
        }
        users(proxy).write_text(yaml.safe_dump(known))
        assert proxy.reload()[0] == 200
        for user in PASSWORDS:
            with connect(proxy.address, user) as another:
                assert value(another, "SELECT CURRENT_USER()") == f"{user}@%"
        assert value(client, "SELECT CURRENT_USER()") == "app@%"
        del known["app"]
        users(proxy).write_text(yaml.safe_dump(known))
        assert proxy.reload()[0] == 200
        assert denied(proxy.address, "app", "secret")[0] == DENIED
        with connect(proxy.address, "other") as another:
            assert value(another, "SELECT 1") == 1


def test_check_says_what_a_hash_alone_needs(mysql_pair, tmp_path, command):
    file = tmp_path / "config.yaml"
    file.write_text(yaml.safe_dump(made(tmp_path, *mysql_pair)))
    checked = command("check", str(file))
    told = checked.stdout + checked.stderr
    assert checked.returncode == 0
    assert "of hashed a hash is known" in told and "mysql_native_password" in told, told


BAD = {
    "nothing-known": ("app: {}\n", 1),
    "two-at-once": ("app: {password: a, native_hash: '*14E65567ABDB5135D0CFD9A70B3032C179A49EE7'}\n", 1),
    "no-hash": ("app: {password: a}\nother: {native_hash: 'abc'}\n", 2),
    "short-hash": ("app: {password: a}\n\nother: {native_hash: '*14E655'}\n", 3),
    "unknown-key": ("app: {passwort: a}\n", 1),
    "twice": ("app: {password: a}\napp: {password: b}\n", 2),
    "a-list": ("- app\n", 1),
    "no-yaml": ("app: {password: a}\nother: {password: b\n", 3),
}


@pytest.mark.parametrize("bad", BAD)
def test_an_error_in_the_file_of_users_is_told_with_its_place(mysql_pair, proxima, tmp_path, command, bad):
    text, line = BAD[bad]
    proxy = proxima(made(tmp_path, *mysql_pair, users={"app": {"password": "secret"}}))
    users(proxy).write_text(text)
    checked = command("check", str(proxy.file))
    assert checked.returncode != 0
    status, answer = proxy.reload()
    assert status != 200
    for said in (checked.stdout + checked.stderr, answer):
        assert users(proxy).name in said and re.search(rf"\b{line}:\d+", said), said
    # The users are the ones of before.
    with connect(proxy.address) as client:
        assert value(client, "SELECT 1") == 1


@pytest.mark.parametrize(
    "text",
    [
        "app: {native_hash: hunter2}\n",
        "app: {native_hash: '*hunter2'}\n",
        "app: {password: hunter2, native_hash: hunter2}\n",
        "app: [hunter2]\n",
        "app: hunter2\n- x\n",
        "app:hunter2\n",
    ],
)
def test_an_error_in_the_file_of_users_tells_no_word_of_it(mysql_pair, proxima, tmp_path, command, text):
    """A word at the wrong place may be a password."""
    proxy = proxima(made(tmp_path, *mysql_pair, users={"app": {"password": "secret"}}))
    users(proxy).write_text(text)
    checked = command("check", str(proxy.file))
    assert checked.returncode != 0
    status, answer = proxy.reload()
    assert status != 200
    told = checked.stdout + checked.stderr + answer + proxy.log()
    assert users(proxy).name in told and "hunter2" not in told


def test_no_password_is_told_anywhere(mysql_pair, proxima, tmp_path, command):
    proxy = proxima(made(tmp_path, *mysql_pair))
    with connect(proxy.address) as client, connect(proxy.address, "hashed") as hashed:
        for one in (client, hashed):
            rows(one, "SELECT 1")
            assert error(one, "nonsense") == 1064
        denied(proxy.address, "app", "a wrong secret")
        denied(proxy.address, "nobody", "a wrong secret")
        pages = ("/metrics", "/config", "/members", "/status", "/", "/explain?key=x&command=read")
        told = "".join(proxy.http(page)[1] for page in pages)
    told += proxy.log()
    checked = command("check", str(proxy.file))
    told += checked.stdout + checked.stderr
    hidden = [*PASSWORDS.values(), "watches", "a wrong secret", native_hash(mysql_pair[0], "hashed")]
    found = [secret for secret in hidden if re.search(rf"(?<![\w-]){re.escape(secret)}(?![\w-])", told)]
    assert not found


def test_the_version_that_clients_are_told_is_the_servers_or_the_configured_one(
    mysql_pair, proxima, tmp_path
):
    proxy = proxima(made(tmp_path, *mysql_pair))
    with connect(mysql_pair[0].address) as direct:
        expected = direct.get_server_info()
    with connect(proxy.address) as client:
        assert value(client, "SELECT 1") == 1

    def told():
        with Connection(proxy.address, login=False) as client:
            return client.greeting.version.decode()

    until(lambda: told().removeprefix("5.5.5-") == expected.removeprefix("5.5.5-"), "it is the servers'")
    proxy = proxima(made(tmp_path, *mysql_pair, listeners=[{"server_version": "8.0.99-ours"}]))
    assert told() == "8.0.99-ours"


def wait_for_clients(proxy, count):
    until(lambda: proxy.metric("clients") == count, f"{count} clients are there")


def test_a_user_has_as_many_clients_as_its_limit_allows(mysql_pair, proxima, tmp_path):
    limited = {user: {"password": PASSWORDS[user]} for user in ("app", "other")}
    limited["app"]["clients"] = 2
    proxy = proxima(made(tmp_path, *mysql_pair, users=limited))
    with contextlib.ExitStack() as clients:
        first, _, *_ = [clients.enter_context(connect(proxy.address)) for _ in range(2)]
        for _ in range(4):
            assert denied(proxy.address, "app", PASSWORDS["app"])[0] == TOO_MANY
        # Who does not know the password is told nothing of that.
        assert denied(proxy.address, "app", "wrong")[0] == DENIED
        other = clients.enter_context(connect(proxy.address, "other"))
        assert value(other, "SELECT 1") == 1
        wait_for_clients(proxy, 3)
        # Another limit holds for those who come later.
        limited["app"]["clients"] = 3
        users(proxy).write_text(yaml.safe_dump(limited))
        assert proxy.reload()[0] == 200
        with connect(proxy.address):
            assert denied(proxy.address, "app", PASSWORDS["app"])[0] == TOO_MANY
        wait_for_clients(proxy, 3)
        # A client may become the same user once more, and leaves its place when it becomes another one.
        assert value(first, "SELECT CURRENT_USER()") == "app@%"
        with raw.Connection(proxy.address) as changes:
            assert raw.change_user(changes, "app", PASSWORDS["app"])[:1] == b"\0"
            assert denied(proxy.address, "app", PASSWORDS["app"])[0] == TOO_MANY
            assert raw.change_user(changes, "other", PASSWORDS["other"])[:1] == b"\0"
            with connect(proxy.address):
                reply = raw.change_user(changes, "app", PASSWORDS["app"])
                assert int.from_bytes(reply[1:3], "little") == TOO_MANY
    wait_for_clients(proxy, 0)
    connect(proxy.address).close()
