"""Statements are split by what they do: reads outside of transactions go to one server, anything else to the
other one."""

import contextlib
import time

import pymysql
import pytest

from harness import mysql_raw as raw
from harness import until
from harness.mysql_between import Between
from harness.split import PASSWORDS, connect, error, made, rows, telling, value

pytestmark = pytest.mark.either_io

READ_ONLY = 1290
"""The number of the error that a server has which takes no writes."""
READ_ONLY_TRANSACTION = 1792
"""The number of the error that a session which only reads has for every write."""

OBJECTS = (
    "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, a INT)",
    "INSERT INTO t (a) VALUES (1), (2)",
    "CREATE SEQUENCE s",
    "CREATE VIEW v AS SELECT name FROM who",
    "CREATE FUNCTION asks() RETURNS VARCHAR(20) READS SQL DATA RETURN (SELECT name FROM who)",
    "CREATE FUNCTION writes() RETURNS INT BEGIN INSERT INTO t (a) VALUES (9); RETURN 1; END",
    "CREATE PROCEDURE asks() SELECT name FROM who",
    "CREATE PROCEDURE writes() INSERT INTO t (a) VALUES (9)",
    "CREATE PROCEDURE begins() BEGIN START TRANSACTION READ WRITE; INSERT INTO t (a) VALUES (9); COMMIT; END",
    "CREATE FUNCTION opens() RETURNS INT BEGIN SET SESSION tx_read_only = 0; RETURN 1; END",
    "CREATE FUNCTION opens_once() RETURNS INT BEGIN SET TRANSACTION READ WRITE; RETURN 1; END",
)


@contextlib.contextmanager
def objects(pair):
    """A schema with the objects of this file, and a table that tells which server answers."""
    with telling(pair, ("writer", "reader"), *OBJECTS) as name:
        yield name


@pytest.fixture
def name(mysql_pair):
    with objects(mysql_pair) as name:
        yield name


@pytest.fixture(scope="module")
def asked(mysql_pair):
    """The same, which tests share that do not look at its rows."""
    with objects(mysql_pair) as name:
        yield name


@pytest.fixture(scope="module")
def guarded(mysql_pair):
    """The same, which tests share that change nothing."""
    with objects(mysql_pair) as name:
        yield name


@pytest.fixture
def client(splitting, name):
    with splitting.connect(database=name) as client:
        yield client


@pytest.fixture
def asking(splitting, asked):
    with splitting.connect(database=asked) as client:
        yield client


READS = (
    "SELECT name FROM who",
    "select name from who;",
    "/* a comment */ SELECT name FROM who -- to the end",
    "(SELECT name FROM who)",
    "SELECT name FROM who UNION SELECT name FROM who",
    "WITH w AS (SELECT name FROM who) SELECT name FROM w",
    "SELECT name FROM v",
    "SELECT asks()",
    "SELECT name FROM who WHERE 'FOR UPDATE' <> \"INSERT INTO who\" AND `name` <> ''",
    "SELECT IF(COUNT(*) = 1, MAX(name), '') FROM who, (SELECT 1) AS `into`",
    "SELECT /*!50000 name */ FROM who",
    "SELECT name AS `update` FROM who",
    "SELECT CONCAT(name) FROM who WHERE NOW() > 0 AND SLEEP(0) = 0",
)

NOT_READS = (
    "SELECT name FROM who FOR UPDATE",
    "SELECT name FROM who LOCK IN SHARE MODE",
    "SELECT name FROM who /*! FOR UPDATE */",
    "SELECT name FROM who WHERE @x IS NULL",
    "SELECT name FROM who WHERE LAST_INSERT_ID() >= 0",
    "SELECT name FROM who WHERE FOUND_ROWS() >= 0",
    "SELECT name FROM who WHERE ROW_COUNT() IS NOT NULL",
    "SELECT name FROM who WHERE GET_LOCK('of this test', 0)",
    "SELECT name FROM who WHERE CONNECTION_ID() > 0",
    "SELECT name FROM who WHERE NEXTVAL(s) > 0",
    "CALL asks()",
    "SELECT name FROM who; SELECT name FROM who WHERE @x IS NULL",
    "SET @x = 1; SELECT name FROM who",
    "INSERT INTO t (a) VALUES (3) RETURNING (SELECT name FROM who)",
)


@pytest.mark.parametrize("statement", READS)
def test_a_read_goes_to_the_reader(asking, statement):
    assert {row for (row,) in rows(asking, statement)} == {"reader"}


@pytest.mark.parametrize("statement", NOT_READS)
def test_what_is_more_than_a_read_goes_to_the_writer(asking, statement):
    assert {row for (row,) in rows(asking, statement)} == {"writer"}


@pytest.mark.parametrize("statement", READS + NOT_READS)
def test_a_listener_whose_reads_go_to_the_writer_has_everything_there(splitting, asked, statement):
    with splitting.connect(address=splitting.at_writer, database=asked) as client:
        assert {row for (row,) in rows(client, statement)} == {"writer"}


def asks(client):
    return value(client, "SELECT name FROM who")


@pytest.mark.parametrize(
    "begin",
    [
        "BEGIN",
        "START TRANSACTION",
        "START TRANSACTION READ ONLY",
        "START TRANSACTION WITH CONSISTENT SNAPSHOT",
    ],
)
@pytest.mark.parametrize("end", ["COMMIT", "ROLLBACK"])
def test_a_transaction_is_at_the_writer_from_its_begin_to_its_end(client, begin, end):
    assert asks(client) == "reader"
    rows(client, begin)
    assert [asks(client) for _ in range(3)] == ["writer"] * 3
    rows(client, end)
    assert asks(client) == "reader"


def hinted(hint, statement="SELECT name FROM who"):
    return f"/* proxima: {hint} */ {statement}"


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        (hinted("member=writer"), "writer"),
        (hinted("member=reader"), "reader"),
        (hinted("later=1, consistency=eventual member=writer"), "writer"),
        (hinted("consistency=strict"), "reader"),
        (hinted("member=reader", "SELECT name FROM who FOR UPDATE"), "writer"),
        (
            hinted("member=reader", "INSERT INTO t (a) VALUES (3) RETURNING (SELECT name FROM who)"),
            "writer",
        ),
        ("SELECT name FROM who /* proxima: member=writer */", "reader"),
    ],
)
def test_a_hint_says_which_server_is_asked_and_no_reader_is_given_a_write(asking, statement, expected):
    assert {row for (row,) in rows(asking, statement)} == {expected}
    assert asks(asking) == "reader"


def test_a_hint_of_a_prepared_statement_counts_when_it_is_executed(splitting, asked):
    with raw.Connection(splitting.address, schema=asked) as client:
        for member in ("writer", "reader"):
            prepared = client.ask(raw.PREPARE, hinted(f"member={member}"))
            assert member.encode() in client.ask(raw.EXECUTE, prepared[5:9] + b"\0\1\0\0\0")


def test_a_hint_moves_nothing_out_of_a_transaction_or_through_a_door(asking, splitting, asked):
    rows(asking, "BEGIN")
    assert value(asking, hinted("member=reader")) == "writer"
    rows(asking, "ROLLBACK")
    for address, expected in ((splitting.only_reads, "reader"), (splitting.at_writer, "writer")):
        with splitting.connect(address=address, database=asked) as client:
            for member in ("writer", "reader"):
                assert value(client, hinted(f"member={member}")) == expected


def test_what_shows_is_asked_where_the_hint_says(client, splitting, name):
    splitting.reader.run(f"CREATE TABLE {name}.only_here (id INT)")
    show = "SHOW TABLES LIKE 'only_here'"
    assert rows(client, show) == []
    for hint in ("consistency=eventual", "member=reader"):
        assert rows(client, hinted(hint, show)) == [("only_here",)]
    assert rows(client, hinted("consistency=eventual, member=writer", show)) == []


def test_a_transaction_that_only_reads_and_waits_for_nothing_is_at_the_reader(client):
    for begin in ("START TRANSACTION READ ONLY", "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY"):
        rows(client, hinted("consistency=eventual", begin))
        assert [asks(client) for _ in range(3)] == ["reader"] * 3
        assert error(client, "INSERT INTO t (a) VALUES (1)") == READ_ONLY_TRANSACTION
        assert value(client, "SELECT @@tx_read_only") == 0
        rows(client, "COMMIT")
        assert error(client, "INSERT INTO t (a) VALUES (1)") is None
        rows(client, hinted("consistency=eventual", "START TRANSACTION READ WRITE"))
        assert asks(client) == "writer"
        rows(client, "COMMIT")
        assert asks(client) == "reader"


def test_a_transaction_goes_on_after_a_chained_end_and_ends_with_a_ddl(client):
    rows(client, "BEGIN")
    rows(client, "COMMIT AND CHAIN")
    assert asks(client) == "writer"
    rows(client, "CREATE TABLE u (id INT)")
    assert asks(client) == "reader"


def test_without_autocommit_everything_is_at_the_writer(client):
    rows(client, "SET autocommit = 0")
    assert asks(client) == "writer"
    rows(client, "COMMIT")
    assert asks(client) == "writer"
    rows(client, "SET autocommit = 1")
    assert asks(client) == "reader"


def test_a_serializable_session_reads_at_the_writer(client):
    rows(client, "SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE")
    assert asks(client) == "writer"
    rows(client, "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
    assert asks(client) == "reader"


def test_what_only_the_writer_knows_of_a_session_is_read_there(client):
    rows(client, "CREATE TEMPORARY TABLE own (id INT)")
    assert asks(client) == "writer"
    assert rows(client, "SELECT * FROM own") == []


def test_writes_are_at_the_writer_alone(client, splitting, name):
    for statement in (
        "INSERT INTO t (a) VALUES (5)",
        "UPDATE t SET a = 7 WHERE id = 1",
        "DELETE FROM t WHERE id = 2",
        "CREATE TABLE made (id INT)",
        "CALL writes()",
    ):
        assert error(client, statement) is None, statement
    written = "SELECT GROUP_CONCAT(a ORDER BY id) FROM t"
    with splitting.connect(database=name) as reading:
        assert value(reading, written) == "1,2"
        assert error(reading, "SELECT * FROM made") == pymysql.constants.ER.NO_SUCH_TABLE
    with splitting.connect(address=splitting.at_writer, database=name) as at_writer:
        assert value(at_writer, written) == "7,5,9"


@pytest.mark.parametrize(
    "between", ["SHOW WARNINGS", "SELECT FOUND_ROWS()", "SELECT LAST_INSERT_ID()", "SELECT @@warning_count"]
)
@pytest.mark.parametrize(
    "write", ["INSERT INTO t (a) VALUES (5)", "INSERT INTO t (a) SELECT LAST_INSERT_ID() + 5"]
)
def test_a_write_is_at_the_writer_behind_what_asks_for_the_remains_of_a_read(
    client, splitting, name, between, write
):
    """A session stays for that with the reader that it has read at."""
    with splitting.connect(address=splitting.at_writer, database=name) as at_writer:
        written = "SELECT COUNT(*) FROM t"
        before = value(at_writer, written)
        for statement in ("INSERT INTO t (a) VALUES (3)", "SELECT * FROM t", between, write):
            assert error(client, statement) is None, statement
        assert value(at_writer, written) == before + 2


def test_what_reads_a_table_beside_the_remains_of_a_read_is_at_the_writer(client):
    assert asks(client) == "reader"
    assert value(client, "SELECT CONCAT(name, FOUND_ROWS() * 0) FROM who") == "writer0"


def test_a_function_that_writes_is_rejected_at_the_reader(client):
    """Its text does not show that it writes: the server rejects it, whose session only reads."""
    assert error(client, "SELECT writes()") == READ_ONLY_TRANSACTION
    assert asks(client) == "reader"
    rows(client, "BEGIN")
    assert value(client, "SELECT writes()") == 1
    rows(client, "ROLLBACK")


def test_a_prepared_statement_is_at_the_writer(client):
    rows(client, "PREPARE p FROM 'SELECT name FROM who'")
    assert value(client, "EXECUTE p") == "writer"
    rows(client, "DEALLOCATE PREPARE p")


REJECTED = (
    "INSERT INTO t (a) VALUES (1)",
    "REPLACE INTO t VALUES (1, 1)",
    "INSERT INTO t (a) SELECT a FROM t",
    "UPDATE t SET a = 1",
    "DELETE FROM t",
    "TRUNCATE TABLE t",
    "CREATE TABLE u (id INT)",
    "CREATE TABLE u SELECT * FROM t",
    "ALTER TABLE t ADD b INT",
    "DROP TABLE t",
    "DROP TABLE IF EXISTS t",
    "RENAME TABLE t TO u",
    "CREATE INDEX i ON t (a)",
    "CREATE DATABASE another",
    "CREATE OR REPLACE VIEW v AS SELECT 1",
    "CREATE USER another",
    "GRANT SELECT ON *.* TO app",
    "DROP FUNCTION writes",
    "SELECT * FROM t FOR UPDATE",
    "SELECT NEXTVAL(s)",
    "SELECT writes()",
    "SELECT a FROM t WHERE writes() = 1",
    "CALL writes()",
    "CALL begins()",
    "START TRANSACTION READ WRITE",
    "SET tx_read_only = 0",
    "SET SESSION tx_read_only = OFF",
    "SET @@session.tx_read_only = 0",
    "SET SESSION TRANSACTION READ WRITE",
    "SET TRANSACTION READ WRITE",
    "SET /* a comment */ tx_read_only = 0",
    "SET `tx_read_only` = 0",
    "SET STATEMENT tx_read_only = 0 FOR INSERT INTO t (a) VALUES (1)",
    "BEGIN NOT ATOMIC INSERT INTO t (a) VALUES (1); END",
    "EXECUTE IMMEDIATE 'INSERT INTO t (a) VALUES (1)'",
    "EXECUTE IMMEDIATE CONCAT('INS', 'ERT INTO t (a) VALUES (1)')",
    "/*! INSERT INTO t (a) VALUES (1) */",
    "SELECT 1; INSERT INTO t (a) VALUES (1)",
    "EXPLAIN SELECT 1; DELETE FROM t",
    "ANALYZE UPDATE t SET a = 3",
    "LOCK TABLES t WRITE",
    "OPTIMIZE TABLE t",
    "FLUSH TABLES",
    "SET GLOBAL max_connections = 77",
    "SET PASSWORD = PASSWORD('x')",
    "LOAD DATA INFILE '/dev/null' INTO TABLE t",
    "WITH w AS (SELECT 1 AS x) SELECT * FROM t, w FOR UPDATE",
)


@pytest.fixture
def unchanged(splitting, guarded):
    """Fails the test unless the data is as before at both servers."""

    def state():
        found = []
        for server in (splitting.writer, splitting.reader):
            with server.connect(database=guarded) as direct:
                found += rows(direct, "SELECT * FROM t ORDER BY id")
                found += rows(direct, "SELECT VERSION(), @@max_connections, @@global.tx_read_only")
                found += rows(direct, "SHOW FULL TABLES")
                found += rows(direct, "SHOW CREATE TABLE t")
                found += rows(direct, "SHOW DATABASES LIKE 'another'")
                found += rows(direct, "SELECT user, authentication_string FROM mysql.user ORDER BY user")
        return found

    before = state()
    yield
    assert state() == before


@pytest.mark.parametrize("statement", REJECTED)
def test_where_writes_are_rejected_a_write_has_the_error_of_a_server_that_takes_none(
    splitting, guarded, unchanged, statement
):
    with splitting.connect(address=splitting.only_reads, database=guarded) as client:
        number = client.thread_id()
        assert error(client, statement) == READ_ONLY
        # The connection lives on, and still writes nothing.
        assert asks(client) == "reader"
        assert error(client, "INSERT INTO t (a) VALUES (1)") == READ_ONLY
        assert value(client, "SELECT COUNT(*) FROM t") == 2
        client.ping(reconnect=False)
        assert client.thread_id() == number


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT name FROM who",
        "SELECT asks()",
        "SELECT name FROM who WHERE @x IS NULL",
    ],
)
def test_where_writes_are_rejected_all_else_goes_to_the_reader(splitting, guarded, statement):
    with splitting.connect(address=splitting.only_reads, database=guarded) as client:
        assert {row for (row,) in rows(client, statement)} == {"reader"}


def test_where_writes_are_rejected_a_whole_transaction_reads_at_the_reader(splitting, guarded, unchanged):
    with splitting.connect(address=splitting.only_reads, database=guarded) as client:
        for begin in ("BEGIN", "START TRANSACTION", "SET autocommit = 0"):
            rows(client, begin)
            assert asks(client) == "reader"
            assert error(client, "UPDATE t SET a = 100") == READ_ONLY
            assert error(client, "CALL writes()") == READ_ONLY
            assert error(client, "SELECT writes()") == READ_ONLY
            rows(client, "COMMIT")
        rows(client, "SET autocommit = 1")
        assert asks(client) == "reader"


def test_where_writes_are_rejected_prepared_statements_write_neither(splitting, guarded, unchanged):
    with raw.Connection(splitting.only_reads, schema=guarded) as client:

        def run(text):
            """The reply to a text that is prepared and then run, or the one that refuses to prepare it."""
            prepared = client.ask(raw.PREPARE, text)
            return prepared if prepared[4] else client.ask(raw.EXECUTE, prepared[5:9] + b"\0\1\0\0\0")

        assert b"reader" in run("SELECT name FROM who")
        for text in ("INSERT INTO t (a) VALUES (1)", "CALL writes()", "SELECT writes()", "DROP TABLE t"):
            assert raw.numbers(run(text)) == [READ_ONLY], text
        assert b"reader" in run("SELECT name FROM who")


@pytest.mark.parametrize("text", ["'SELECT name FROM who'", "'DELETE FROM t'", "CONCAT('DELETE ', 'FROM t')"])
def test_where_writes_are_rejected_a_text_within_a_text_is_run_only_if_it_reads(
    splitting, guarded, unchanged, text
):
    """Not every text can be seen: they may all be refused."""
    with splitting.connect(address=splitting.only_reads, database=guarded) as client:
        for statement in (f"EXECUTE IMMEDIATE {text}", f"PREPARE p FROM {text}; EXECUTE p"):
            if "SELECT" in text:
                assert error(client, statement) in (None, READ_ONLY)
            else:
                assert error(client, statement) == READ_ONLY


@pytest.mark.parametrize(
    "opening",
    [
        "SELECT opens()",
        "EXECUTE IMMEDIATE CONCAT('SET tx_read_', 'only = 0')",
        "EXECUTE IMMEDIATE CONCAT('START TRANSACTION READ WR', 'ITE')",
        "EXECUTE IMMEDIATE CONCAT('SET TRANSACTION READ WR', 'ITE')",
        "BEGIN NOT ATOMIC SET @a = 'SET tx_read_', @b = CONCAT(@a, 'only = 0'); EXECUTE IMMEDIATE @b; END",
        "SET @text = CONCAT('SET tx_read_', 'only = 0'); PREPARE p FROM @text; EXECUTE p",
    ],
)
def test_where_writes_are_rejected_no_hidden_statement_opens_the_session_for_writes(
    splitting, guarded, unchanged, opening
):
    with splitting.connect(address=splitting.only_reads, database=guarded) as client:
        error(client, opening)
        for writing in ("SELECT writes()", "CALL writes()", "INSERT INTO t (a) VALUES (1)"):
            assert error(client, writing) == READ_ONLY
        assert error(client, "EXECUTE IMMEDIATE CONCAT('INSERT INTO t ', '(a) VALUES (1)')") == READ_ONLY
        error(client, "COMMIT")


@pytest.mark.parametrize(
    "texts",
    [
        ["SELECT opens(); SELECT writes()"],
        ["SELECT opens_once(); SELECT writes()"],
        ["DO opens(); DO writes()"],
        ["SET @a = opens(); SET @b = writes()"],
        ["SELECT opens(), writes()"],
        ["SELECT opens()", "SELECT writes()"],
        ["SELECT opens_once()", "SELECT writes()"],
        ["SET @a = opens_once()", "SELECT writes()"],
        ["DO opens_once()", "DO writes()"],
        ["SET STATEMENT tx_read_only = 0 FOR SELECT writes()"],
    ],
    ids=" | ".join,
)
def test_where_writes_are_rejected_no_function_opens_the_session_for_another_one(
    splitting, guarded, unchanged, texts
):
    """Functions that are called by what reads, in one text or one behind the other."""
    with splitting.connect(address=splitting.only_reads, database=guarded) as client:
        *opening, writing = texts
        for text in opening:
            error(client, text)
        assert error(client, writing) == READ_ONLY


def test_where_writes_are_rejected_a_procedure_that_might_open_the_session_is_not_called(splitting, guarded):
    """A procedure can begin a transaction that writes, and no session keeps it from that."""
    with splitting.connect(address=splitting.only_reads, database=guarded) as client:
        assert error(client, "CALL asks()") == READ_ONLY


@pytest.mark.parametrize(
    "text", ["SHOW COLUMNS FROM fresh", "/*!40000 SHOW COLUMNS FROM fresh */", "DESCRIBE fresh"]
)
@pytest.mark.parametrize("prepared", [False, True], ids=["text", "prepared"])
def test_what_waits_for_nothing_is_asked_at_the_writer(splitting, name, text, prepared):
    """A server that is read may lag, and a statement that shows things would not notice."""
    splitting.writer.run(f"CREATE TABLE {name}.fresh (fresh_column INT)")
    with raw.Connection(splitting.address, schema=name) as client:
        if prepared:
            made = client.ask(raw.PREPARE, text)
            assert made[4] == 0, raw.shown(made)
            reply = client.ask(raw.EXECUTE, made[5:9] + b"\0\1\0\0\0")
        else:
            reply = client.query(text)
        assert b"fresh_column" in reply, raw.shown(reply)


def test_the_fields_of_a_table_are_asked_at_the_writer(splitting, name):
    splitting.writer.run(f"CREATE TABLE {name}.fresh (fresh_column INT)")
    with raw.Connection(splitting.address, schema=name) as client:
        reply = client.ask(raw.FIELD_LIST, b"fresh\0")
        assert b"fresh_column" in reply, raw.shown(reply)


def test_statements_are_counted_by_what_they_do(client, splitting):
    def counted(command):
        return splitting.proxy.metric("requests_total", command=command)

    before = {command: counted(command) for command in ("read", "write", "ddl", "locking-read")}
    rows(client, "SELECT 1")
    rows(client, "INSERT INTO t (a) VALUES (1)")
    rows(client, "CREATE TABLE counted (id INT)")
    rows(client, "SELECT * FROM t FOR UPDATE")
    until(lambda: all(counted(one) == before[one] + 1 for one in before), "all four are counted")


def test_a_session_that_idles_in_a_transaction_is_closed_and_its_locks_are_free(
    mysql_pair, proxima, tmp_path, name
):
    proxy = proxima(made(tmp_path, *mysql_pair, limits={"idle_in_transaction": "500ms"}))
    with connect(proxy.address, database=name) as idle, connect(proxy.address, database=name) as other:
        rows(other, "SET autocommit = 0")
        rows(idle, "BEGIN")
        rows(idle, "UPDATE t SET a = 3 WHERE id = 1")
        until(lambda: proxy.metric("clients_closed_total", reason="idle_in_transaction") == 1, "it is closed")
        # Nothing has begun there yet.
        rows(other, "UPDATE t SET a = 4 WHERE id = 1")
        rows(other, "COMMIT")
        assert error(idle, "COMMIT") is not None
        assert value(other, "SELECT a FROM t WHERE id = 1") == 4


def test_a_statement_that_takes_too_long_is_ended_by_its_server(mysql_pair, proxima, tmp_path, name):
    proxy = proxima(made(tmp_path, *mysql_pair, limits={"statement_timeout": "300ms"}))
    with connect(proxy.address, database=name) as client:
        rows(client, "BEGIN")
        rows(client, "UPDATE t SET a = 3 WHERE id = 1")
        for slow in ("SELECT a, SLEEP(60) FROM t FOR UPDATE", "UPDATE t SET a = SLEEP(60)"):
            assert error(client, slow) == 1317
        # What is answered in time is not ended, however often, and the transaction goes on.
        for _ in range(5):
            rows(client, "SELECT SLEEP(0.1) FOR UPDATE")
        assert value(client, "SELECT a FROM t WHERE id = 1") == 3
        rows(client, "COMMIT")
        # Reads are ended as well, prepared ones too, and idle time is none.
        assert error(client, "SELECT a, SLEEP(60) FROM t") == 1317
        with client.cursor() as cursor:
            time.sleep(0.5)
            cursor.execute("SELECT 1")
            assert cursor.fetchall()
    writer, reader = (
        proxy.metric("member_overdue_total", pool=pool, member=server.address)
        for pool, server in zip(("writer", "readers"), mysql_pair)
    )
    assert (writer, reader) == (2, 1)


def test_no_statement_is_ended_for_the_one_before_it(mysql_pair, proxima, tmp_path):
    """The server is late with the login by which the first one is to be ended."""

    def answer(packet):
        if packet[1:].startswith(b"KILL QUERY"):
            time.sleep(0.4)

    late = Between(mysql_pair[0].address, answer)
    known = {"app": {"password": "secret"}}
    config = made(tmp_path, late, mysql_pair[1], users=known, limits={"statement_timeout": "1s"})
    proxy = proxima(config)
    with connect(proxy.address) as client:
        rows(client, "BEGIN")
        for _ in range(3):
            ended = error(client, "SELECT name, SLEEP(1.25) FROM mysql.help_topic LIMIT 1 FOR UPDATE")
            assert ended in (None, 1317)
            assert error(client, "SELECT name, SLEEP(0.7) FROM mysql.help_topic LIMIT 1 FOR UPDATE") is None
    late.stop()


@pytest.mark.parametrize(
    ("listener", "user", "expected"),
    [
        (None, None, "strict"),
        (None, "eventual", "eventual"),
        ("eventual", None, "eventual"),
        ("eventual", "strict", "strict"),
        ("strict", "eventual", "eventual"),
    ],
)
def test_a_user_counts_for_more_than_the_listener_in_how_fresh_reads_are(
    mysql_pair, proxima, tmp_path, name, listener, user, expected
):
    mysql_pair[1].run(f"CREATE TABLE {name}.only_here (id INT)")
    users = {"app": {"password": PASSWORDS["app"], **({"consistency": user} if user else {})}}
    listeners = [{"consistency": listener} if listener else {}]
    proxy = proxima(made(tmp_path, *mysql_pair, listeners, users))
    with connect(proxy.address, database=name) as client:
        # What shows waits for nothing, and goes to a reader only where nothing has to.
        found = rows(client, "SHOW TABLES LIKE 'only_here'")
        assert found == ([("only_here",)] if expected == "eventual" else [])
        counter = {"eventual": "strict", "strict": "eventual"}[expected]
        assert rows(client, hinted(f"consistency={counter}", "SHOW TABLES LIKE 'only_here'")) != found
