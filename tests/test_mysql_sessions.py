"""A session has its own state, whichever connection to whichever server its statements use, and nothing of
another one's."""

import contextlib
import random
import time

import pytest

from harness import TRIES, until
from harness import mysql_raw as raw
from harness.mysql_raw import DEPRECATE_EOF, PLAIN, SESSION_TRACK
from harness.split import connect, error, rows, runs, schema, telling, users_of, value

pytestmark = pytest.mark.either_io

STATE = (
    "SELECT @@character_set_client, @@character_set_results, @@character_set_connection,"
    " @@collation_connection, @@time_zone, @@sql_mode, @@tx_isolation, @@autocommit,"
    " @@group_concat_max_len, DATABASE()"
)

WHO = "SELECT name FROM who"


@pytest.fixture
def name(splitting):
    """A schema with a table that tells which server answers."""
    table = "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, a INT)"
    with telling((splitting.writer, splitting.reader), ("writer", "reader"), table) as name:
        yield name


@pytest.fixture
def client(splitting, name):
    with splitting.connect(database=name) as client:
        yield client


SETTINGS = {
    "SET NAMES latin1": "SELECT @@character_set_client, @@character_set_results, @@collation_connection",
    "SET NAMES utf8mb4 COLLATE utf8mb4_bin": "SELECT @@collation_connection, COLLATION('a')",
    "SET collation_connection = utf8mb4_swedish_ci": "SELECT @@collation_connection, COLLATION('a')",
    "SET character_set_connection = latin2": "SELECT @@collation_connection, @@character_set_connection",
    "SET character_set_results = NULL": "SELECT @@character_set_results",
    "SET time_zone = '+05:30'": "SELECT @@time_zone, FROM_UNIXTIME(0)",
    "SET sql_mode = 'ANSI_QUOTES'": "SELECT \"name\" <> '' FROM who",
    "SET sql_mode = 'NO_BACKSLASH_ESCAPES'": "SELECT 'a\\', @@sql_mode",
    "SET sql_mode = 'PIPES_AS_CONCAT,NO_ZERO_DATE'": "SELECT 'a' || 'b', @@sql_mode",
    "SET sql_mode = ''": "SELECT @@sql_mode, CAST('0000-00-00' AS DATE)",
    "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED": "SELECT @@tx_isolation",
    "SET SESSION tx_isolation = 'READ-UNCOMMITTED'": "SELECT @@tx_isolation",
    "SET group_concat_max_len = 4": "SELECT @@group_concat_max_len",
    "SET sql_select_limit = 1": "SELECT 1 UNION SELECT 2",
    "SET lc_time_names = 'de_DE'": "SELECT DATE_FORMAT('2024-03-01', '%M')",
    "SET div_precision_increment = 2": "SELECT 1 / 3",
    "SET max_statement_time = 7.5": "SELECT @@max_statement_time",
    "SET optimizer_switch = 'mrr=on'": "SELECT @@optimizer_switch LIKE '%mrr=on%'",
    "SET default_week_format = 3": "SELECT WEEK('2024-01-01')",
    "SET wait_timeout = 1000, net_write_timeout = 99": "SELECT @@wait_timeout, @@net_write_timeout",
    "SET foreign_key_checks = 0, unique_checks = 0": "SELECT @@foreign_key_checks, @@unique_checks",
    "SET SESSION lock_wait_timeout = DEFAULT, sql_safe_updates = ON": "SELECT @@sql_safe_updates",
}


@pytest.mark.parametrize("setting", SETTINGS)
def test_a_setting_follows_the_session_to_the_other_server(splitting, name, client, setting):
    asks = SETTINGS[setting]
    with connect(splitting.reader.address, database=name) as direct:
        direct.query(setting)
        expected = rows(direct, asks)
    assert rows(client, WHO) == [("reader",)]
    rows(client, setting)
    for _ in range(3):
        assert rows(client, asks) == expected
        assert rows(client, WHO) == [("reader",)]
        rows(client, "INSERT INTO t (a) VALUES (1)")
    rows(client, "BEGIN")
    assert rows(client, asks) == expected
    assert rows(client, WHO) == [("writer",)]
    rows(client, "COMMIT")
    # Another session of this user has connections that were used with the setting, and nothing of it.
    with splitting.connect(database=name) as another:
        plain = rows(another, STATE)
        assert plain == rows(another, STATE)
    with connect(splitting.writer.address, database=name) as direct:
        assert rows(direct, STATE) == plain


def test_the_schema_follows_the_session_to_the_other_server(splitting, name):
    with schema(splitting.writer, splitting.reader) as other, splitting.connect() as client:
        for server in (splitting.writer, splitting.reader):
            server.run(f"CREATE TABLE {other}.here (id INT)")
        assert value(client, "SELECT DATABASE()") is None
        assert error(client, WHO) == 1046
        for change in (lambda to: rows(client, f"USE {to}"), client.select_db):
            change(name)
            assert value(client, "SELECT DATABASE()") == name and value(client, WHO) == "reader"
            assert value(client, "SELECT name FROM who FOR UPDATE") == "writer"
            change(other)
            assert rows(client, "SELECT * FROM here") == rows(client, "SELECT * FROM here FOR UPDATE") == []
            assert error(client, WHO) == 1146
        with splitting.connect() as another:
            assert value(another, "SELECT DATABASE()") is None
            assert error(another, "SELECT * FROM here") == 1046
            assert error(another, "INSERT INTO here VALUES (1)") == 1046


def test_writes_go_to_the_writer_whatever_a_client_has_said_before(splitting, name):
    for command, payload in (
        (raw.INIT_DB, name.encode()),
        (raw.PING, b""),
        (raw.FIELD_LIST, b"t\0"),
        (raw.STATISTICS, b""),
        (raw.SET_OPTION, b"\0\0"),
        (raw.RESET_CONNECTION, b""),
        (raw.QUERY, b"nonsense"),
        (raw.QUERY, b"SHOW TABLES"),
    ):
        with raw.Connection(splitting.address, schema=name) as client:
            client.ask(command, payload)
            assert b"reader" in client.query(WHO), command
            assert b"writer" in client.query(WHO + " FOR UPDATE"), command
            assert b"reader" in client.query(WHO), command


def test_a_schema_that_was_dropped_is_none(splitting, name, client):
    with schema(splitting.writer, splitting.reader) as other:
        rows(client, f"USE {other}")
        assert value(client, "SELECT DATABASE()") == other
        rows(client, f"DROP DATABASE {other}; CREATE DATABASE {other}")
        assert value(client, "SELECT DATABASE() FROM DUAL FOR UPDATE") is None
        assert value(client, "SELECT DATABASE()") is None


def test_generated_ids_are_the_sessions_own(splitting, name, client):
    with splitting.connect(database=name) as another:
        rows(client, "INSERT INTO t (a) VALUES (1)")
        rows(another, "INSERT INTO t (a) VALUES (2), (3)")
        assert value(client, "SELECT LAST_INSERT_ID()") == 1
        assert value(client, WHO) == "reader"
        assert value(another, "SELECT LAST_INSERT_ID()") == 2
        rows(client, "UPDATE t SET a = LAST_INSERT_ID() + 100 WHERE id = 3")
        assert rows(client, "SELECT a FROM t WHERE id = 3 FOR UPDATE") == [(101,)]
        rows(client, "INSERT INTO t (a) VALUES (LAST_INSERT_ID(77))")
        assert value(client, "SELECT LAST_INSERT_ID()") in (4, 77)
        rows(another, "UPDATE t SET a = 1 WHERE id = LAST_INSERT_ID(1)")
        assert value(another, "SELECT LAST_INSERT_ID()") == 1
    with splitting.connect(database=name) as another:
        assert value(another, "SELECT LAST_INSERT_ID()") == 0


KEPT = {
    "temporary table": ("CREATE TEMPORARY TABLE own (id INT)", "SELECT COUNT(*) FROM own", 0),
    "user variable": ("SET @own = 'mine'", "SELECT @own", "mine"),
    "assignment in a read": ("SELECT @own := 5", "SELECT @own", 5),
    "lock": ("SELECT GET_LOCK('kept', 0)", "SELECT IS_USED_LOCK('kept') = CONNECTION_ID()", 1),
    "prepared statement": ("PREPARE own FROM 'SELECT 3'", "EXECUTE own", 3),
    "locked tables": ("LOCK TABLES t WRITE", "SELECT COUNT(*) FROM t", 0),
    "transaction": ("BEGIN; INSERT INTO t (a) VALUES (1)", "SELECT COUNT(*) FROM t", 1),
    "no autocommit": ("SET autocommit = 0; INSERT INTO t (a) VALUES (1)", "SELECT COUNT(*) FROM t", 1),
    "two-phase transaction": ("XA START 'x'; INSERT INTO t (a) VALUES (1)", "SELECT COUNT(*) FROM t", 1),
    "timestamp": ("SET timestamp = 1000", "SELECT UNIX_TIMESTAMP(NOW())", 1000),
    "handler": ("HANDLER t OPEN", "SELECT COUNT(*) FROM t", 0),
}


@pytest.mark.parametrize("what", KEPT)
def test_what_a_server_keeps_for_a_session_is_there_until_the_client_leaves(splitting, name, what):
    keeps, asks, expected = KEPT[what]
    client = splitting.connect(database=name)
    with splitting.connect(database=name) as another:
        rows(client, keeps)
        for _ in range(3):
            assert value(client, asks) == expected
            assert value(another, WHO) == "reader"
            if what != "locked tables":
                assert value(another, "SELECT COUNT(*) FROM t WHERE @none IS NULL") == 0
        client.close()
        rows(another, "SET SESSION lock_wait_timeout = 50, innodb_lock_wait_timeout = 50")
        # It does not get a lock before the server has let it go.
        rows(another, "ALTER TABLE t ADD b INT")
        assert value(another, "SELECT COUNT(*) FROM t FOR UPDATE") == 0
        until(lambda: value(another, "SELECT IS_FREE_LOCK('kept')"), "the lock is free")
        assert value(another, "SELECT @own") is None
        assert error(another, "SELECT * FROM own FOR UPDATE") == 1146
        assert error(another, "EXECUTE own") == 1243


@pytest.mark.parametrize("lock", ["FLUSH TABLES WITH READ LOCK", "BACKUP STAGE START", "BACKUP LOCK t"])
def test_a_lock_of_a_whole_server_ends_with_its_client(splitting, name, lock):
    client = splitting.connect(database=name)
    try:
        rows(client, lock)
        client.close()
        with splitting.connect(database=name) as another:
            rows(another, "SET SESSION lock_wait_timeout = 20")
            rows(another, "ALTER TABLE t ADD b INT; INSERT INTO t (a) VALUES (1)")
            rows(another, "BACKUP STAGE START; BACKUP STAGE END")
    finally:
        # No other test is to wait for it.
        splitting.writer.run("KILL USER app")


def test_the_collation_of_results_is_the_sessions_on_every_connection(twins):
    with twins.schema() as name, twins.connect(schema=name) as client, twins.connect(schema=name) as another:
        client.query("CREATE TABLE t (a VARCHAR(10))")
        client.query("SET NAMES utf8mb4 COLLATE utf8mb4_bin")
        for one in (client, another, client, another):
            one.query("SELECT * FROM t")
            one.query("SELECT * FROM t FOR UPDATE")


def test_character_sets_survive_turns_of_other_sessions(twins):
    asks = "SELECT @@character_set_client, @@character_set_connection, @@collation_connection"
    with twins.connect() as first, twins.connect() as second, twins.connect() as third:
        for setting in (
            "SET NAMES latin1",
            "SET CHARACTER SET latin2",
            "SET collation_connection = latin1_bin",
        ):
            first.query(setting)
            for one in (second, first, third, first, first):
                one.query(asks)
                one.query(asks + " FOR UPDATE")


@pytest.mark.parametrize(
    "text",
    [
        "BEGIN; INSERT INTO t (a) VALUES (6); COMMIT",
        "INSERT INTO t (a) VALUES (6); SELECT 1",
        "SELECT 1; INSERT INTO t (a) VALUES (6)",
        "SELECT 1; INSERT INTO t (a) VALUES (6); SELECT * FROM missing",
        "CALL adds()",
        "EXECUTE IMMEDIATE 'INSERT INTO t (a) VALUES (6)'",
        "INSERT INTO t (a) VALUES (7), (8) RETURNING a",
        "INSERT INTO t (a) SELECT seq FROM seq_1_to_9",
        "INSERT IGNORE INTO t (id) VALUES (1)",
        "REPLACE INTO t (a) VALUES (6)",
        "INSERT INTO t (id, a) VALUES (1, 1) ON DUPLICATE KEY UPDATE id = LAST_INSERT_ID(id)",
        "UPDATE t SET a = LAST_INSERT_ID(a + 5)",
        "SET last_insert_id = 77",
        "INSERT INTO t (a) VALUES (1); INSERT INTO t (id) VALUES (1)",
        "BEGIN; INSERT INTO t (a) VALUES (1); ROLLBACK",
        "DO LAST_INSERT_ID(66)",
        "SELECT LAST_INSERT_ID(67)",
    ],
)
def test_the_id_that_a_statement_leaves_is_told_wherever_one_asks(twins, text):
    with (
        twins.schema() as name,
        twins.connect(schema=name) as client,
        twins.connect(schema=name) as another,
    ):
        client.query("CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, a INT)")
        client.query("CREATE PROCEDURE adds() INSERT INTO t (a) VALUES (8)")
        another.query("INSERT INTO t (a) VALUES (100), (200)")
        client.query("INSERT INTO t (a) VALUES (100)")
        client.query(text)
        for asks in ("SELECT LAST_INSERT_ID()", "SELECT @@last_insert_id", "SELECT LAST_INSERT_ID() FROM t"):
            another.query("COMMIT")
            another.query(asks)
            client.query(asks)
        client.query("INSERT INTO t (a) VALUES (LAST_INSERT_ID())")
        client.query("SELECT * FROM t")


@pytest.mark.parametrize(
    "before",
    [
        "BEGIN",
        "INSERT INTO t (id, a) VALUES (1000, 1)",
        "SELECT SQL_CALC_FOUND_ROWS * FROM t LIMIT 1",
        "SET @x = 1",
        "CREATE TEMPORARY TABLE own (id INT)",
        "SELECT 1",
        "SELECT 1 FOR UPDATE",
        "SET NAMES latin1",
    ],
)
def test_the_last_id_of_another_session_is_never_seen(twins, before):
    with twins.schema() as name:
        with twins.connect(schema=name) as first:
            first.query("CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, a INT)")
            first.query("INSERT INTO t (a) VALUES (1), (2)")
            with twins.connect(schema=name) as second:
                first.query("INSERT INTO t (a) VALUES (3)")
                first.query("COMMIT")
                second.query(before)
                second.query("SELECT LAST_INSERT_ID()")
                second.query("INSERT INTO t (a) VALUES (LAST_INSERT_ID())")
                second.query("COMMIT")
                first.query("INSERT INTO t (a) VALUES (LAST_INSERT_ID())")
                first.query("SELECT * FROM t")


def test_what_is_counted_of_a_plain_select_is_its_own(twins):
    with twins.connect(schema="test") as client, twins.connect(schema="test") as another:
        for rows_of in (5, 7):
            another.query("SELECT seq FROM seq_1_to_30")
            client.query(f"SELECT seq FROM seq_1_to_{rows_of}")
            another.query("SELECT seq FROM seq_1_to_20")
            client.query("SELECT FOUND_ROWS()")
            client.query(f"SELECT seq FROM seq_1_to_{rows_of}")
            another.query("UPDATE t SET a = 1")
            client.query("SELECT ROW_COUNT()")


def test_a_session_that_was_reset_has_left_all_behind(splitting, name):
    for statement in ("SET @own = 1", "CREATE TEMPORARY TABLE own (id INT)", "SELECT GET_LOCK('reset', 0)"):
        with raw.Connection(splitting.address, schema=name) as client, splitting.connect() as another:
            client.query(statement)
            client.query("SET NAMES latin1")
            client.query("BEGIN")
            client.query("INSERT INTO t (a) VALUES (1)")
            assert client.ask(raw.RESET_CONNECTION)[4] == 0
            assert b"latin1" not in client.query("SELECT @@character_set_client")
            assert raw.numbers(client.query("SELECT * FROM own FOR UPDATE")) == [1146]
            assert raw.split(client.query("SELECT @own"))[3][1] == b"\xfb"
            until(lambda: value(another, "SELECT IS_FREE_LOCK('reset')"), "the lock is free")
            until(lambda: value(another, f"SELECT COUNT(*) FROM {name}.t FOR UPDATE") == 0, "nothing is left")


def test_a_client_that_leaves_ends_its_statement(splitting, name):
    with splitting.connect(database=name) as client:
        for statement in ("SELECT SLEEP(60)", "SELECT SLEEP(61) FROM who FOR UPDATE", "SELECT @x, SLEEP(62)"):
            part = statement.split(")")[0]
            with raw.Connection(splitting.address, schema=name) as leaves:
                leaves.write(raw.QUERY, statement)
                servers = splitting.writer, splitting.reader
                until(lambda: any(runs(server, part) for server in servers), "it runs")
            until(lambda: not any(runs(server, part) for server in servers), "it runs no more")
            assert value(client, WHO) == "reader"


def sleeping(splitting, client, seconds):
    """Sends a statement that sleeps for so many seconds, and waits until the server runs it."""
    client.write(raw.QUERY, f"SELECT SLEEP({seconds})")
    servers = splitting.writer, splitting.reader
    until(lambda: any(runs(server, f"SLEEP({seconds})") for server in servers), "it runs")


@pytest.mark.parametrize("kill", ["KILL QUERY {}", "KILL {}", "KILL CONNECTION {}", "KILL HARD QUERY {}"])
def test_a_client_ends_what_another_connection_of_its_user_runs(splitting, name, kill):
    with raw.Connection(splitting.address) as sleeps, splitting.connect() as client:
        sleeping(splitting, sleeps, 50)
        rows(client, kill.format(sleeps.greeting.number))
        if "QUERY" in kill:
            reply = sleeps.reply()
            # An interrupted sleep is a result to MariaDB, or an error.
            assert raw.numbers(reply) in ([1317], []), reply
            assert raw.numbers(sleeps.query("SELECT 1")) == []
        else:
            sleeps.rest()
        until(lambda: not runs(splitting.reader, "SLEEP(50)"), "it runs no more")


def test_a_client_ends_nothing_of_another_user(splitting):
    with raw.Connection(splitting.address) as sleeps, splitting.connect("other") as other:
        sleeping(splitting, sleeps, 51)
        for kill in ("KILL QUERY {}", "KILL {}", "KILL HARD CONNECTION {}"):
            assert error(other, kill.format(sleeps.greeting.number)) in (1094, 1095)
        assert runs(splitting.reader, "SLEEP(51)")
        assert value(other, "SELECT 1") == 1


def test_kill_of_a_number_that_nobody_has_is_an_error(splitting):
    with splitting.connect() as client:
        assert error(client, "KILL QUERY 4294967295") == 1094
        assert error(client, "KILL 99999999999999999999999") in (1064, 1094, 1210)
        assert value(client, "SELECT 1") == 1


def test_the_number_of_a_session_is_the_one_of_its_greeting(splitting):
    with splitting.connect() as client, splitting.connect() as another:
        assert client.thread_id() != another.thread_id()
        before = client.thread_id()
        rows(client, "CREATE TEMPORARY TABLE test.own (id INT)")
        assert client.thread_id() == before


def test_warnings_are_those_of_the_sessions_own_last_statement(splitting, name):
    with splitting.connect(database=name) as first, splitting.connect(database=name) as second:
        for _ in range(3):
            rows(first, "SELECT 1/0")
            assert error(second, "SELECT * FROM missing") == 1146
            assert [number for _, number, _ in rows(first, "SHOW WARNINGS")] == [1365]
            assert [number for _, number, _ in rows(second, "SHOW WARNINGS")] == [1146]
            rows(first, WHO)
            assert rows(first, "SHOW WARNINGS") == []
            rows(first, "DROP TABLE IF EXISTS missing")
            rows(second, "INSERT INTO t (a) VALUES (1), (2)")
            assert value(second, "SELECT ROW_COUNT()") == 2
            assert [number for _, number, _ in rows(first, "SHOW WARNINGS")] == [1051]
            assert rows(first, "SELECT SQL_CALC_FOUND_ROWS seq FROM seq_1_to_50 LIMIT 3") == [
                (1,),
                (2,),
                (3,),
            ]
            rows(second, "SELECT SQL_CALC_FOUND_ROWS seq FROM seq_1_to_20 LIMIT 1")
            assert value(first, "SELECT FOUND_ROWS()") == 50
            assert value(second, "SELECT FOUND_ROWS()") == 20


def test_a_setting_that_a_server_no_longer_takes_is_told_to_who_prepares(splitting):
    """The reader has taken the setting before, and does not when its engine is gone."""
    servers = splitting.writer, splitting.reader
    for server in servers:
        server.run("INSTALL SONAME 'ha_blackhole'")
    try:
        with raw.Connection(splitting.address) as client:
            for engine in ("BLACKHOLE", "InnoDB", "BLACKHOLE", "InnoDB"):
                assert raw.numbers(client.query(f"SET default_storage_engine = {engine}")) == []
                assert raw.numbers(client.query("SELECT 1")) == []
            assert raw.numbers(client.query("SET default_storage_engine = BLACKHOLE")) == []
            splitting.reader.run("UNINSTALL SONAME 'ha_blackhole'")
            assert raw.numbers(client.ask(raw.PREPARE, "SELECT 1")) == [1286]
            assert raw.numbers(client.query("SET default_storage_engine = InnoDB")) == []
            assert raw.numbers(client.query("SELECT 1")) == []
    finally:
        for server in servers:
            with contextlib.suppress(Exception):
                server.run("UNINSTALL SONAME 'ha_blackhole'")


def test_sessions_of_which_a_server_keeps_nothing_share_connections(splitting, name):
    """What a statement has left is there for a second: after that its connection serves others as well."""
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(splitting.connect(database=name)) for _ in range(120)]

        def most():
            for client in clients:
                assert value(client, WHO) == "reader"
                time.sleep(0.02)
            return len(users_of(splitting.reader))

        assert most() < 100


class Steps:
    """What a session does next, by chance. Tables that it writes are its own. An id that its client has
    chosen, or that rows have come with, is told right behind its statement alone, and is left out; so are
    functions that set variables."""

    def __init__(self, chance, number, schemas):
        self._chance, self._number, self._schemas = chance, number, schemas
        self._made = 0

    def step(self, client):
        """Takes a step on twin connections."""
        kind = self._chance.choices(list(self.KINDS), [weight for weight, _ in self.KINDS.values()])[0]
        self.KINDS[kind][1](self, client)

    def _one_of(self, client, *texts):
        text = self._chance.choice(texts)
        table = f"{self._schemas[0]}.t{self._number}"
        client.query(text.format(t=table, n=self._number, other=self._schemas[1], own=self._schemas[0]))

    def ask(self, client):
        self._one_of(
            client,
            STATE,
            STATE + " FOR UPDATE",
            "SELECT @x, @y",
            "SELECT @@in_transaction",
            "SELECT @@timestamp > 2000, @@insert_id, @@pseudo_thread_id > 0",
            "SHOW SESSION VARIABLES WHERE Variable_name IN ('time_zone', 'sql_mode', 'autocommit')",
            "SELECT IS_FREE_LOCK('l{n}')",
            "SHOW TABLES",
        )

    def leave_behind(self, client):
        """A statement, and a question for what it has left, which only the one right behind it may ask."""
        self._one_of(
            client,
            "SELECT * FROM missing",
            "SELECT CAST(b AS INT), 1/0 FROM {t}",
            "SELECT SQL_CALC_FOUND_ROWS seq FROM seq_1_to_9 LIMIT {n}",
            "INSERT IGNORE INTO {t} (id) VALUES (1), (NULL)",
            "INSERT INTO {t} (id) VALUES (1)",
            "UPDATE {t} SET a = a + 1",
            "DELETE FROM {t} WHERE id > 12",
            "DROP TABLE IF EXISTS missing",
        )
        self._one_of(
            client,
            "SHOW WARNINGS",
            "SHOW ERRORS",
            "SHOW COUNT(*) WARNINGS",
            "SELECT @@warning_count, @@error_count",
        )

    def count(self, client):
        """A statement, and a question for how many rows it has found or changed."""
        if self._chance.randrange(2):
            self._one_of(client, "UPDATE {t} SET a = a + 1", "REPLACE INTO {t} (id, a) VALUES (3, 3), (4, 4)")
            return self._one_of(client, "SELECT ROW_COUNT()")
        self._one_of(client, "SELECT SQL_CALC_FOUND_ROWS seq FROM seq_1_to_9 LIMIT {n}")
        self._one_of(client, "SELECT FOUND_ROWS()", "SELECT FOUND_ROWS()")

    def read(self, client):
        self._one_of(
            client,
            "SELECT 1",
            "SELECT * FROM {t}",
            "SELECT COUNT(*), MAX(id) FROM {t}",
            "SELECT * FROM t{n}",
            'SELECT "id" FROM {t} LIMIT 1',
            "SELECT 'a\\\\', 'b'",
            "SELECT 'ä', HEX('ä'), COLLATION('a'), b FROM {t} LIMIT 2",
            "SELECT 1/0",
            "SELECT CAST('x' AS INT), 1",
            "SELECT SQL_CALC_FOUND_ROWS seq FROM seq_1_to_9 LIMIT {n}",
            "SELECT FROM_UNIXTIME(0), @@time_zone",
            "SELECT GROUP_CONCAT(seq) FROM seq_1_to_9",
            "SELECT 1 WHERE 0",
            "SELECT seq FROM seq_1_to_300",
            "SELECT plain()",
            "DO 1",
        )

    def write(self, client):
        self._one_of(
            client,
            "INSERT INTO {t} (a) VALUES (1)",
            "INSERT INTO {t} (a, b) VALUES (2, 'ä'), (3, \"text\")",
            "INSERT INTO {t} (a) SELECT seq FROM seq_1_to_3",
            "INSERT IGNORE INTO {t} (id) VALUES (1)",
            "INSERT INTO {t} (id) VALUES (1)",
            "INSERT INTO {t} (a) VALUES ('x')",
            "REPLACE INTO {t} (id, a) VALUES (2, 9)",
            "UPDATE {t} SET a = a + 1",
            "UPDATE {t} SET a = LAST_INSERT_ID(a) WHERE id = 2",
            "DELETE FROM {t} ORDER BY id DESC LIMIT 1",
            "DELETE FROM {t} WHERE id > 20",
            "INSERT INTO {t} (a) VALUES (4) RETURNING id",
            "SELECT * FROM {t} LIMIT 1 FOR UPDATE",
            "INSERT INTO {t} (a) VALUES (5); SELECT LAST_INSERT_ID(); SELECT ROW_COUNT()",
            "CALL {own}.adds{n}()",
            "TRUNCATE TABLE {t}",
        )

    def change(self, client):
        self._one_of(
            client,
            "SET NAMES latin1",
            "SET NAMES utf8mb4",
            "SET CHARACTER SET latin2",
            "SET character_set_results = NULL",
            "SET character_set_results = utf8mb4",
            "SET collation_connection = latin1_german1_ci",
            "SET time_zone = '+0{n}:00'",
            "SET time_zone = SYSTEM",
            "SET time_zone = DEFAULT",
            "SET sql_mode = 'ANSI_QUOTES'",
            "SET sql_mode = 'NO_BACKSLASH_ESCAPES,STRICT_ALL_TABLES'",
            "SET sql_mode = ''",
            "SET sql_mode = DEFAULT",
            "SET sql_mode = CONCAT(@@sql_mode, ',PIPES_AS_CONCAT')",
            "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
            "SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE",
            "SET SESSION tx_isolation = DEFAULT",
            "SET TRANSACTION ISOLATION LEVEL READ UNCOMMITTED",
            "SET group_concat_max_len = 1{n}",
            "SET group_concat_max_len = DEFAULT, time_zone = '-01:30'",
            "SET STATEMENT group_concat_max_len = 5 FOR SELECT GROUP_CONCAT(seq) FROM seq_1_to_9",
            "SET last_insert_id = 5",
            "SET nothing = 1",
            "SET time_zone = 'nowhere'",
            "SET NAMES latin1, time_zone = 'nowhere'",
            "SET SESSION sql_select_limit = 2",
            "SET SESSION sql_select_limit = DEFAULT",
            "SET SESSION TRANSACTION READ ONLY",
            "SET SESSION TRANSACTION READ WRITE",
            "USE {own}",
            "USE {other}",
            "USE missing",
        )

    def transact(self, client):
        self._one_of(
            client,
            "BEGIN",
            "START TRANSACTION READ ONLY",
            "COMMIT",
            "COMMIT",
            "ROLLBACK",
            "COMMIT AND CHAIN",
            "SAVEPOINT p",
            "ROLLBACK TO p",
            "SET autocommit = 0",
            "SET autocommit = 1",
            "SET autocommit = 1",
            "BEGIN; INSERT INTO {t} (a) VALUES (6); COMMIT",
            "BEGIN; INSERT INTO {t} (a) VALUES (7)",
        )

    def keep(self, client):
        self._one_of(
            client,
            "SET @x = {n}",
            "SET @y = NULL, @x = 'text'",
            "SELECT @x := 7",
            "CREATE TEMPORARY TABLE {own}.own{n} (id INT)",
            "INSERT INTO {own}.own{n} VALUES (1)",
            "SELECT COUNT(*) FROM {own}.own{n}",
            "DROP TEMPORARY TABLE IF EXISTS {own}.own{n}",
            "SELECT GET_LOCK('l{n}', 0)",
            "SELECT RELEASE_LOCK('l{n}')",
            "PREPARE p FROM 'SELECT {n}, ?'",
            "EXECUTE p USING @x",
            "DEALLOCATE PREPARE p",
            "EXECUTE IMMEDIATE 'SET NAMES latin1'",
            "LOCK TABLES {t} WRITE",
            "UNLOCK TABLES",
            "CALL {own}.renames()",
        )

    def prepare(self, client):
        text = self._chance.choice(
            [
                "SELECT ?, @@time_zone",
                "SELECT COUNT(*) + ? FROM t{n}",
                "INSERT INTO {own}.t{n} (a) VALUES (?)",
                "SELECT ? FROM missing",
                "SET time_zone = ?",
                "SELECT seq, ? FROM seq_1_to_9",
            ]
        ).format(n=self._number, own=self._schemas[0])
        self._made += 1
        made = f"p{self._made}"
        if client.prepare(made, text):
            for _ in range(self._chance.randrange(3)):
                client.execute(
                    made, b"\0\1\xfd\0\1" + str(self._number).encode(), cursor=self._chance.randrange(2)
                )
            client.told(made, raw.CLOSE, answered=False)

    def command(self, client):
        command, payload = self._chance.choice(
            [
                (raw.PING, b""),
                (raw.INIT_DB, self._schemas[0].encode()),
                (raw.INIT_DB, self._schemas[1].encode()),
                (raw.INIT_DB, b"missing"),
                (raw.RESET_CONNECTION, b""),
                (raw.FIELD_LIST, f"t{self._number}".encode() + b"\0"),
            ]
        )
        client.ask(command, payload)

    def leave(self, client):
        client.again()

    def fail(self, client):
        self._one_of(
            client,
            "SELECT * FROM missing",
            "nonsense",
            "SELECT",
            "",
            "SELECT 1; SELECT * FROM missing",
            "SELECT nothing()",
        )

    KINDS = {
        "ask": (20, ask),
        "leave behind": (8, leave_behind),
        "count": (4, count),
        "read": (25, read),
        "write": (15, write),
        "change": (15, change),
        "transact": (8, transact),
        "fail": (4, fail),
        "keep": (4, keep),
        "prepare": (4, prepare),
        "command": (4, command),
        "leave": (5, leave),
    }


OBJECTS = (
    "CREATE FUNCTION plain() RETURNS INT DETERMINISTIC RETURN 5",
    "CREATE FUNCTION sets() RETURNS INT BEGIN SET @x = 11; RETURN 1; END",
    "CREATE PROCEDURE renames() SET NAMES latin2",
)

OWN = (
    "CREATE TABLE t{n} (id INT PRIMARY KEY AUTO_INCREMENT, a INT, b VARCHAR(20)) DEFAULT CHARSET utf8mb4",
    "CREATE PROCEDURE adds{n}() INSERT INTO t{n} (a) VALUES (8)",
)

AGREED = (PLAIN, PLAIN | DEPRECATE_EOF, PLAIN | DEPRECATE_EOF | SESSION_TRACK, PLAIN | raw.FOUND_ROWS)


@pytest.mark.parametrize("seed", range(TRIES // 2))
def test_sessions_that_take_turns_are_answered_as_on_connections_of_their_own(twins, seed):
    """What each session says is also said on a connection that it has for itself, to a server of the same
    data, and every reply must be the same."""
    chance = random.Random(seed)
    sessions = []
    try:
        with twins.schema() as own, twins.schema() as other:
            for server in (twins.behind, twins.beside):
                server.run(f"USE {own}", *OBJECTS)
                for n in range(1, 6):
                    server.run(f"USE {own}", *(text.format(n=n) for text in OWN))
            for n in range(1, 6):
                client = twins.connect(schema=own, capabilities=chance.choice(AGREED))
                sessions.append((client, Steps(chance, n, (own, other))))
            for _ in range(400):
                client, steps = chance.choice(sessions)
                steps.step(client)
            for client, _ in sessions:
                client.close()
    finally:
        for client, _ in sessions:
            client.close()
