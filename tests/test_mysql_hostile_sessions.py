"""Clients that abuse what a server keeps for them: others are served while they do, memory stays bounded, and
nothing of theirs is left at the servers."""

import contextlib
import threading

import pytest

from harness import mysql_raw as raw
from harness import until
from harness.mysql import Database, databases
from harness.mysql_raw import Connection
from harness.raw import Closed
from harness.split import connect, made, prepare, rows, schema, users_of, value

pytestmark = pytest.mark.either_io

ROOM = 64 << 20
"""Bytes by which the proxy may grow while it is attacked."""

MOST_STATEMENTS, TOO_MANY, UNKNOWN_STATEMENT, DENIED = 16_382, 1461, 1243, 1045

RENEWED = 0.2
"""Seconds, more than those for which a server tells of the same transactions while one asks on and on."""

NO_ARGUMENTS = b"\0\1\0\0\0"


class Beside:
    """A client that is served all the time, at the server that takes writes and at the one that is read."""

    def __init__(self, address):
        self._client = connect(address, "other", autocommit=True)
        self._stop, self.turns, self.error = threading.Event(), 0, None
        self._thread = threading.Thread(target=self._run)

    def _run(self):
        try:
            while not self._stop.is_set():
                assert value(self._client, "SELECT 'read'") == "read"
                assert value(self._client, "SELECT 'write' FROM DUAL FOR UPDATE") == "write"
                self.turns += 1
        except Exception as error:
            self.error = error

    def goes_on(self):
        """Waits until it was served once more from now on."""
        before = self.turns
        until(lambda: self.error or self.turns > before + 1, "another client is served")
        assert self.error is None, self.error

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        self._thread.join()
        self._client.close()
        assert self.error is None, self.error


@pytest.fixture
def attacked(mysql_pair, proxima, tmp_path):
    """A proxy with one worker, and a client beside the attack."""
    config = made(tmp_path, *mysql_pair, workers=1, limits={"total_bytes": "32MiB"})
    for pool in config["pools"].values():
        pool["dedicated"] = {"max": 20, "wait": "30s"}
    proxy = proxima(config)
    with Beside(proxy.address) as proxy.beside:
        proxy.beside.goes_on()
        before = proxy.memory()
        yield proxy
        proxy.beside.goes_on()
        assert proxy.memory("VmHWM") < before + ROOM, (before, proxy.memory("VmHWM"))


@pytest.mark.parametrize("mine", ["SELECT 'mine'", "SELECT 'mine' FROM DUAL FOR UPDATE"])
def test_the_numbers_of_another_clients_statements_are_unknown(attacked, mine):
    with Connection(attacked.address) as owner, Connection(attacked.address) as thief:
        numbers = [owner.ask(raw.PREPARE, mine)[5:9] for _ in range(5)]
        owner.ask(raw.EXECUTE, numbers[0] + NO_ARGUMENTS)
        for number in [*numbers, *(n.to_bytes(4, "little") for n in (0, 6, 128, 0xFFFFFFFF))]:
            for command, payload in ((raw.EXECUTE, NO_ARGUMENTS), (raw.FETCH, b"\1\0\0\0"), (raw.RESET, b"")):
                assert raw.numbers(thief.ask(command, number + payload)) == [UNKNOWN_STATEMENT]
            thief.write(raw.LONG_DATA, number + b"\0\0theirs")
            thief.write(raw.CLOSE, number)
        for number in numbers:
            assert b"mine" in owner.ask(raw.EXECUTE, number + NO_ARGUMENTS)


def test_a_client_that_prepares_without_end_has_an_error_and_takes_bounded_memory(attacked):
    with Connection(attacked.address) as client:
        taken = 0
        for start in range(0, 100_000, 500):
            texts = [b"\x16SELECT %d" % n for n in range(start, start + 500)]
            client.send(b"".join(raw.packets(text) for text in texts))
            for _ in texts:
                found = raw.numbers(client.reply(raw.PREPARE))
                assert found in ([], [TOO_MANY]), found
                taken += not found
            if start % 10_000 == 0:
                attacked.beside.goes_on()
        assert taken == MOST_STATEMENTS
        # The first and the last of them are there.
        for n in (1, MOST_STATEMENTS):
            reply = client.ask(raw.EXECUTE, n.to_bytes(4, "little") + NO_ARGUMENTS)
            assert raw.numbers(reply) == [], raw.shown(reply)


LONG = "x" * (1 << 20)


@pytest.mark.parametrize(
    "text",
    [
        f"SET @x = '{LONG}'",
        f"SET time_zone = '{LONG}'",
        f"SET sql_mode = '{LONG}'",
        f"SET NAMES '{LONG}'",
        f"SET {LONG} = 1",
        f"SET /* {LONG} */ time_zone = '+01:00'",
        "SET " + ", ".join(f"@x{n} = {n}" for n in range(60_000)),
        "SET " + ", ".join(["sql_mode = ''"] * 60_000),
    ],
    ids=["variable", "time zone", "mode", "names", "name", "comment", "variables", "assignments"],
)
def test_a_long_set_is_answered_as_by_the_server(attacked, mysql_pair, text):
    with (
        Connection(attacked.address, schema="test") as client,
        Connection(mysql_pair[0].address, schema="test") as direct,
    ):
        for asked in (text, "SELECT @@time_zone, @@sql_mode, LENGTH(@x), @x59999", "SELECT 1"):
            ours, theirs = (raw.numbers(one.query(asked)) for one in (client, direct))
            assert ours == theirs, asked[:60]
    attacked.beside.goes_on()


BYTES = [bytes([byte]) for byte in range(1, 256)]
LATIN1 = 8


def quoted(name):
    return b"`" + name.replace(b"`", b"``") + b"`"


def test_schemas_with_any_byte_in_their_names_are_used_as_at_the_server(attacked, mysql_pair):
    """By USE, by its message, and at the login; some of them are there, and the others are not."""
    names = [b"schema " + byte + b" name" for byte in BYTES]
    servers = [Connection(server.address, collation=LATIN1) for server in mysql_pair]
    made_ones, wrong = [], []
    try:
        for name in names:
            found = {
                bool(raw.numbers(server.query(b"CREATE DATABASE " + quoted(name)))) for server in servers
            }
            if found == {False}:
                made_ones.append(name)
        assert len(made_ones) > 200
        with (
            Connection(attacked.address, collation=LATIN1, schema="test") as ours,
            Connection(mysql_pair[0].address, collation=LATIN1, schema="test") as theirs,
        ):
            for name in [*names, b"no such " + b"\xff", b"", b"`", b"a`b"]:
                for command, payload in (
                    (raw.INIT_DB, name),
                    (raw.QUERY, b"SELECT DATABASE(), HEX(DATABASE())"),
                    (raw.INIT_DB, b"test"),
                    (raw.QUERY, b"USE " + quoted(name)),
                    (raw.QUERY, b"SELECT DATABASE() FROM DUAL FOR UPDATE"),
                    (raw.QUERY, b"USE test"),
                ):
                    answers = [
                        raw.in_order(one.ask(command, payload), one.capabilities) for one in (ours, theirs)
                    ]
                    if answers[0] != answers[1]:
                        wrong.append((name, command, payload, raw.shown(answers[0])[-80:]))
        for name in names:
            answers = [logged_in(address, name) for address in (attacked.address, mysql_pair[0].address)]
            if answers[0] != answers[1]:
                wrong.append((name, "login", answers[0]))
    finally:
        for server in servers:
            for name in made_ones:
                server.query(b"DROP DATABASE " + quoted(name))
            server.close()
    assert not wrong, "\n".join([f"{len(wrong)} answers", *map(str, wrong[:20])])


def greeted(address):
    """A connection that has not logged in. A server that has closed many a moment ago may have no room."""
    with contextlib.suppress(raw.Error):
        return Connection(address, collation=LATIN1, login=False)


def logged_in(address, name):
    """The server's answer to a login with this schema, and to a question for it."""
    with until(lambda: greeted(address), "it has room") as client:
        client.capabilities |= raw.WITH_SCHEMA
        hello = client.hello("app", "secret", "schema")
        client.send(raw.packets(hello.replace(b"schema\0", name + b"\0"), 1))
        answer = client.proved("secret")
        if answer[:1] == b"\xff":
            return answer
        found = raw.split(client.query("SELECT HEX(DATABASE())"))[3:]
        client.write(raw.QUIT)
        client.rest()
        return found


@pytest.mark.parametrize("with_state", [False, True], ids=["free", "with state"])
def test_a_client_that_becomes_others_in_a_loop_leaves_nothing_at_the_servers(
    attacked, mysql_pair, with_state
):
    writer, _ = mysql_pair
    with Connection(attacked.address, schema="test") as client:
        for n in range(300):
            user, password = (("app", "secret"), ("other", "another secret"))[n % 2]
            assert raw.change_user(client, user, password, "test")[:1] == b"\0", n
            if with_state:
                client.query("BEGIN")
                assert raw.numbers(client.query(f"SET @x = {n}")) == []
                client.query(f"SELECT GET_LOCK('loop {n}', 0)")
            assert user.encode() in client.query("SELECT USER() FROM DUAL FOR UPDATE")
        attacked.beside.goes_on()
    for n in range(100):
        with Connection(attacked.address, schema="test") as client:
            answer = raw.change_user(client, "other", f"wrong {n}", "test")
            assert answer[:1] == b"\xff" and int.from_bytes(answer[1:3], "little") == DENIED
            with contextlib.suppress(Closed, OSError):
                # What it was before, it is no more.
                assert b"app@" not in client.query("SELECT USER()")
    attacked.beside.goes_on()
    free = "SELECT IS_FREE_LOCK('loop 298') + IS_FREE_LOCK('loop 299')"
    with writer.connect() as direct:
        until(lambda: value(direct, free) == 2, "no lock is left")
        until(lambda: not transactions(direct), "no transaction is left", every=RENEWED)
        assert len(users_of(writer, "app")) + len(users_of(writer, "other")) <= 22


def transactions(direct):
    return value(direct, "SELECT COUNT(*) FROM information_schema.innodb_trx")


@pytest.mark.timeout(120)
def test_a_thousand_clients_that_leave_in_a_transaction_at_once_leave_nothing(
    mysql_pair, proxima, tmp_path, cleanup
):
    count = 1000
    try:
        server = Database(databases.installed(), ["--max-connections=3000", "--back-log=1000"])
    except databases.Unavailable as error:
        pytest.skip(str(error))
    cleanup.callback(server.stop)
    prepare(server)
    config = made(tmp_path, server, mysql_pair[1], workers=1)
    config["pools"]["writer"] |= {"dedicated": {"max": 1500, "wait": "60s"}, "timeout": "30s"}
    proxy = proxima(config)
    with schema(server, mysql_pair[1]) as name, server.connect() as direct:
        server.run(f"CREATE TABLE {name}.t (id INT PRIMARY KEY AUTO_INCREMENT, a INT)")
        with Beside(proxy.address) as beside:
            clients = [Connection(proxy.address, schema=name) for _ in range(count)]
            # A server takes few connections at a time.
            for some in (clients[start : start + 50] for start in range(0, count, 50)):
                for client in some:
                    client.send(b"".join(map(raw.packets, (b"\3BEGIN", b"\3INSERT INTO t (a) VALUES (1)"))))
                for client in some:
                    assert raw.numbers(client.reply()) == raw.numbers(client.reply()) == []
            until(lambda: transactions(direct) == count, "all are in a transaction", every=RENEWED)
            beside.goes_on()
            for client in clients:
                client.abort()
            beside.goes_on()
            until(lambda: not transactions(direct), "no transaction is left", every=RENEWED)
            beside.goes_on()
        assert rows(direct, f"SELECT * FROM {name}.t") == []
        busy = "SELECT COUNT(*) FROM information_schema.processlist WHERE user = 'app' AND command <> 'Sleep'"
        until(lambda: not value(direct, busy), "no statement runs")
        with connect(proxy.address, database=name) as client:
            rows(client, "INSERT INTO t (a) VALUES (7); COMMIT")
            assert value(client, "SELECT a FROM t FOR UPDATE") == 7
