"""Sessions share connections to servers, and nothing of one session reaches another one, or a server that is
only read."""

import contextlib
import functools
import struct
import time

import pymysql
import pytest

from harness import mysql_raw as raw
from harness.mysql_between import Between
from harness.mysql_between import error as error_packet
from harness.mysql_raw import DEPRECATE_EOF, PLAIN, SESSION_TRACK, Connection
from harness.split import (
    PASSWORDS,
    Split,
    connect,
    error,
    made,
    rows,
    telling,
    users_of,
    value,
    wait_for_members,
)

pytestmark = pytest.mark.either_io

READ_ONLY, READ_ONLY_TRANSACTION = 1290, 1792

KEEPS = 2.5
"""Seconds, more than those for which a connection stays with a session for what its last statement has
left. Nothing tells that they are over."""

NO_ARGUMENTS, AS_TEXT = b"\0\1\0\0\0", b"\0\1\0\0\0" + b"\0\1\xfc\0"
WITH_CURSOR = b"\1\1\0\0\0"

WHO = "SELECT name FROM who"

OBJECTS = (
    "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, a INT, b TEXT)",
    "CREATE FUNCTION writes() RETURNS INT BEGIN INSERT INTO t (a) VALUES (9); RETURN 1; END",
    "CREATE FUNCTION sets() RETURNS INT BEGIN SET @x = 'secret'; RETURN 1; END",
    "CREATE FUNCTION gets() RETURNS VARCHAR(20) RETURN @x",
    "CREATE FUNCTION last_id() RETURNS INT RETURN LAST_INSERT_ID()",
    "CREATE FUNCTION is_within() RETURNS INT RETURN @@in_transaction",
    "CREATE PROCEDURE adds_last_id() INSERT INTO t (a) VALUES (LAST_INSERT_ID())",
    "CREATE PROCEDURE begins_and_fails() BEGIN START TRANSACTION; INSERT INTO t (a) VALUES (1);"
    " SIGNAL SQLSTATE '45000'; END",
)


@pytest.fixture
def name(mysql_pair):
    """A schema with a table that tells which server answers."""
    with telling(mysql_pair, ("writer", "reader"), *OBJECTS) as name:
        yield name


@pytest.fixture
def shared(mysql_pair, proxima, tmp_path):
    """One worker has all sessions, which share as few connections as can be."""
    proxy = proxima(made(tmp_path, *mysql_pair, Split.LISTENERS, workers=1))
    wait_for_members(proxy, *mysql_pair)
    return Split(proxy, *mysql_pair)


@pytest.fixture
def client(shared, name):
    with Connection(shared.address, schema=name) as client:
        yield client


def told(command, payload=b""):
    """A command as it is sent."""
    return raw.packets(bytes([command]) + payload)


def prepare(client, text):
    """The number of a statement that is prepared."""
    reply = client.ask(raw.PREPARE, text)
    assert reply[4] == 0, raw.shown(reply)
    return reply[5:9]


def of(server, name, ask):
    """What a server itself answers."""
    with connect(server.address, database=name) as direct:
        return rows(direct, ask)


class Turns:
    """Two sessions that take turns at one connection of the writer. Each begins with its first turn."""

    def __init__(self, address, writer, name):
        self._address, self._writer, self._name = address, writer, name
        self._clients = contextlib.ExitStack()

    def _connect(self):
        return self._clients.enter_context(connect(self._address, database=self._name))

    @functools.cached_property
    def first(self):
        return self._connect()

    @functools.cached_property
    def second(self):
        return self._connect()

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        # The sessions have done so, or the test has shown nothing.
        count = len(users_of(self._writer))
        self._clients.close()
        assert kind or count == 1

    def next(self):
        """The connection is left to the other session."""
        time.sleep(KEEPS)


@pytest.fixture
def turns(shared, name):
    with Turns(shared.address, shared.writer, name) as turns:
        yield turns


def test_a_prepared_write_with_a_cursor_is_at_the_writer_behind_a_read(shared, name, client):
    statement = prepare(client, "INSERT INTO t (a) VALUES (77)")
    assert b"reader" in client.query(WHO)
    client.ask(raw.EXECUTE, statement + WITH_CURSOR)
    assert of(shared.reader, name, "SELECT a FROM t") == []
    assert of(shared.writer, name, "SELECT a FROM t") == [(77,)]


def test_a_prepared_locking_read_with_a_cursor_is_at_the_writer_behind_a_read(client):
    statement = prepare(client, WHO + " FOR UPDATE")
    assert b"reader" in client.query(WHO)
    client.ask(raw.EXECUTE, statement + WITH_CURSOR)
    assert b"writer" in client.ask(raw.FETCH, statement + struct.pack("<I", 1))


def test_an_insert_opens_no_cursor_so_reads_go_to_the_reader_behind_it(client):
    statement = prepare(client, "INSERT INTO t (a) VALUES (4)")
    client.ask(raw.EXECUTE, statement + WITH_CURSOR)
    assert b"reader" in client.query(WHO)


def test_an_option_that_is_set_behind_a_read_keeps_no_write_at_the_reader(shared, name, client):
    assert b"reader" in client.query(WHO)
    client.ask(raw.SET_OPTION, b"\0\0")
    client.query("INSERT INTO t (a) VALUES (78)")
    assert of(shared.reader, name, "SELECT a FROM t") == []
    assert of(shared.writer, name, "SELECT a FROM t") == [(78,)]


def test_long_data_that_comes_during_a_read_goes_with_its_write(shared, name, client):
    statement = prepare(client, "INSERT INTO t (b) VALUES (?)")
    client.send(
        told(raw.QUERY, b"SELECT SLEEP(0.3), name FROM who")
        + told(raw.LONG_DATA, statement + b"\0\0hello")
        + told(raw.EXECUTE, statement + AS_TEXT)
    )
    assert b"reader" in client.reply()
    assert raw.numbers(client.reply()) == []
    assert of(shared.reader, name, "SELECT b FROM t") == []
    assert of(shared.writer, name, "SELECT b FROM t") == [("hello",)]


def test_long_data_outlives_that_many_other_statements_are_prepared(client):
    statement = prepare(client, "INSERT INTO t (b) VALUES (?)")
    client.write(raw.LONG_DATA, statement + b"\0\0hello")
    for place in range(140):
        prepare(client, f"INSERT INTO t (a) VALUES ({place})")
    assert raw.numbers(client.ask(raw.EXECUTE, statement + AS_TEXT)) == []
    assert b"hello" in client.query("SELECT b FROM t FOR UPDATE")


def test_a_statement_runs_that_is_closed_before_it_was_prepared_at_its_server(client):
    statement = prepare(client, WHO)
    client.query("BEGIN")
    client.send(told(raw.EXECUTE, statement + NO_ARGUMENTS) + told(raw.CLOSE, statement))
    assert b"writer" in client.reply()


def test_a_statement_runs_that_is_closed_before_a_connection_was_free_for_it(shared, name, client):
    statement = prepare(client, "INSERT INTO t (a) VALUES (5)")
    time.sleep(KEEPS)
    with shared.connect(database=name) as other:
        rows(other, "BEGIN; SELECT 1 FROM who FOR UPDATE")
        client.send(told(raw.EXECUTE, statement + NO_ARGUMENTS) + told(raw.CLOSE, statement))
        assert raw.numbers(client.reply()) == []


@pytest.mark.parametrize("capabilities", [PLAIN, PLAIN | DEPRECATE_EOF | SESSION_TRACK])
def test_a_variable_that_a_read_sets_in_the_first_of_two_results_is_not_seen_by_others(
    shared, name, capabilities
):
    options = {"schema": name, "capabilities": capabilities}
    with Connection(shared.address, **options) as first, Connection(shared.address, **options) as second:
        first.query("SELECT sets(); SELECT 1")
        time.sleep(KEEPS)
        assert b"secret" not in second.query("SELECT gets()")


def is_within(client):
    return bool(value(client, "SELECT is_within()"))


def test_where_writes_are_rejected_a_transaction_stays_its_own_sessions_behind_an_error(shared, name):
    with contextlib.ExitStack() as stack:

        def another():
            return stack.enter_context(shared.connect(address=shared.only_reads, database=name))

        client = another()
        rows(client, "BEGIN")
        assert is_within(client)
        assert error(client, "SELECT writes()") == READ_ONLY
        others = [another() for _ in range(6)]
        assert not any(is_within(other) for other in others)
        for other in others:
            rows(other, "BEGIN")
        theirs = {value(other, "SELECT CONNECTION_ID() + 0") for other in others}
        assert len(theirs) == len(others)
        assert value(client, "SELECT CONNECTION_ID() + 0") not in theirs
        assert is_within(client)


def test_what_is_set_for_the_next_transaction_is_for_its_own_sessions(shared, name):
    with shared.connect(database=name) as first:
        rows(first, "SET TRANSACTION READ ONLY")
        time.sleep(KEEPS)
        with shared.connect(database=name) as second:
            assert error(second, "INSERT INTO t (a) VALUES (1)") is None
            time.sleep(KEEPS)
            rows(first, "BEGIN")
            assert error(first, "INSERT INTO t (a) VALUES (1)") == READ_ONLY_TRANSACTION


def test_a_transaction_that_a_failed_procedure_has_begun_stays_its_sessions(shared, name):
    """An error tells nothing of it."""
    with shared.connect(database=name) as first:
        assert error(first, "CALL begins_and_fails()") == 1644
        time.sleep(KEEPS)
        with shared.connect(database=name) as second:
            rows(second, "INSERT INTO t (a) VALUES (2)")
        written = "/* proxima: member=writer */ SELECT GROUP_CONCAT(a ORDER BY a) FROM t"
        with shared.connect(database=name) as third:
            assert value(third, written) == "2"
        rows(first, "COMMIT")
        assert value(first, written) == "1,2"


@pytest.mark.parametrize(
    "between, code",
    [("INSERT INTO t (a) VALUES (1)", READ_ONLY_TRANSACTION), ("DO 1", None), ("SELECT", 1064)],
)
def test_what_uses_no_table_leaves_the_next_transaction_to_its_session(shared, name, between, code):
    """Servers keep the setting behind a statement that fails, or begins no transaction."""
    with shared.connect(database=name) as first:
        rows(first, "SET TRANSACTION READ ONLY")
        assert error(first, between) == code
    with shared.connect(database=name) as second:
        rows(second, "SET autocommit = 0")
        assert error(second, "INSERT INTO t (a) VALUES (1)") is None
        rows(second, "ROLLBACK")


def test_a_function_that_asks_for_the_last_id_has_the_sessions_own(turns):
    rows(turns.first, "INSERT INTO t (a) VALUES (7), (7)")
    rows(turns.first, "INSERT INTO t (a) VALUES (7)")
    turns.next()
    assert value(turns.second, "SELECT last_id() FROM who FOR UPDATE") == 0


def test_a_procedure_that_adds_the_last_id_adds_the_sessions_own(turns):
    rows(turns.second, "INSERT INTO t (a) VALUES (8)")
    turns.next()
    rows(turns.first, "INSERT INTO t (a) VALUES (7)")
    turns.next()
    rows(turns.second, "CALL adds_last_id()")
    assert rows(turns.second, "SELECT a FROM t ORDER BY id FOR UPDATE") == [(8,), (7,), (1,)]


def test_a_procedure_adds_no_id_of_another_session(turns):
    for _ in range(3):
        rows(turns.first, "INSERT INTO t (a) VALUES (7)")
    turns.next()
    rows(turns.second, "CALL adds_last_id()")
    assert rows(turns.second, "SELECT a FROM t WHERE a <> 7 FOR UPDATE") == [(0,)]


@pytest.fixture
def lying(mysql_pair, proxima, tmp_path, cleanup):
    """Starts a proxy whose writer answers as it is told, and returns its address."""

    def start(answer):
        between = Between(mysql_pair[0].address, answer)
        cleanup.callback(between.stop)
        users = {"app": {"password": PASSWORDS["app"]}}
        return proxima(made(tmp_path, between, mysql_pair[1], users=users, workers=1)).address

    return start


def test_an_error_while_the_last_id_is_told_answers_no_other_session(mysql_pair, lying, name):
    failed = []

    def answer(packet):
        if b"SET last_insert_id=" in packet:
            failed.append(packet)
            return error_packet(1205, "Lock wait timeout exceeded")

    with Turns(lying(answer), mysql_pair[0], name) as turns:
        rows(turns.second, "INSERT INTO t (a) VALUES (1)")
        turns.next()
        rows(turns.first, "INSERT INTO t (a) VALUES (2)")
        turns.next()
        error(turns.second, "INSERT INTO t (a) VALUES (LAST_INSERT_ID())")
        turns.next()
        assert error(turns.first, "INSERT INTO t (a) VALUES (3)") is None
    assert failed


def test_a_setting_that_fails_lets_no_statement_run_without_it_and_answers_no_other_session(
    mysql_pair, lying, name
):
    failed, fails = [], []

    def answer(packet):
        if fails and packet.startswith(b"\3SET SESSION group_concat_max_len=7"):
            failed.append(packet)
            return error_packet(1317, "Query execution was interrupted")

    with Turns(lying(answer), mysql_pair[0], name) as turns:
        rows(turns.first, "SET group_concat_max_len = 7")
        for _ in range(2):
            # The texts of both are known from then on, and sent with what follows them.
            for session in ("first", "second"):
                turns.next()
                rows(getattr(turns, session), "INSERT INTO t (a) VALUES (1)")
        turns.next()
        fails.append(True)
        with contextlib.suppress(pymysql.err.MySQLError):
            asked = "SELECT GROUP_CONCAT(name, ' of all servers') FROM who FOR UPDATE"
            assert value(turns.first, asked) == "writer "
        fails.clear()
        turns.next()
        assert error(turns.second, "INSERT INTO t (a) VALUES (3)") is None
    assert failed


def test_a_setting_that_a_server_was_never_told_is_awaited_before_the_statement(mysql_pair, lying, name):
    def answer(packet):
        if packet.startswith(b"\3SET SESSION group_concat_max_len=7"):
            return error_packet(1231, "Variable 'group_concat_max_len' can't be set to the value of '7'")

    with Turns(lying(answer), mysql_pair[0], name) as turns:
        rows(turns.first, "SET group_concat_max_len = 7")
        turns.next()
        rows(turns.second, "INSERT INTO t (a) VALUES (1)")
        turns.next()
        assert error(turns.first, "INSERT INTO t (a) VALUES (2)") == 1231
    assert of(mysql_pair[0], name, "SELECT a FROM t") == [(1,)], "it has not run in another state"


def bound(shared):
    """The number of sessions that a transaction binds."""
    return shared.proxy.metric("sessions", protocol="mysql", state="transaction")


def test_without_autocommit_a_statement_binds_also_where_its_server_tells_of_no_transaction(shared, name):
    """It keeps a lock on the table, whose engine knows no transactions, until one ends."""
    shared.writer.run(f"CREATE TABLE {name}.aside (a INT) ENGINE = MEMORY")
    with connect(shared.address, database=name) as client:
        rows(client, "SET autocommit = 0")
        assert bound(shared) == 0
        rows(client, "SELECT * FROM aside")
        assert bound(shared) == 1
        rows(client, "COMMIT")
        assert bound(shared) == 0


def test_a_session_that_is_reset_is_bound_no_longer(client):
    client.query("SET @own = 'mine'")
    assert b"writer" in client.query(WHO), "a user variable keeps it at its connection"
    client.ask(raw.RESET_CONNECTION)
    assert b"reader" in client.query(WHO)
    client.query("BEGIN")
    assert b"writer" in client.query(WHO)
    client.ask(raw.RESET_CONNECTION)
    assert b"reader" in client.query(WHO)


def test_a_session_that_is_reset_is_not_shown_what_it_has_left_before(client):
    client.query("INSERT IGNORE INTO t (a) VALUES ('no number')")
    time.sleep(KEEPS)
    client.ask(raw.RESET_CONNECTION)
    assert b"Incorrect" not in client.query("SHOW WARNINGS")


NARROWS = (
    "SET session_track_system_variables = 'autocommit,character_set_client,character_set_connection,"
    "character_set_results,time_zone,tx_isolation', session_track_schema = 1, NAMES utf8mb4"
)
"""What MariaDB's Connector/J says behind its login: which variables it wants to be told of."""


def test_a_session_that_is_told_of_few_variables_hides_none_of_another_session(turns):
    rows(turns.first, NARROWS)
    turns.next()
    rows(turns.second, "SET NAMES utf8mb4, sql_mode = 'ANSI_QUOTES'")
    assert rows(turns.second, 'SELECT "name" FROM who') == [("reader",)]
    turns.next()
    assert "ANSI_QUOTES" not in value(turns.first, "SELECT @@sql_mode")
