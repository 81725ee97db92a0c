"""What comes through the proxy is byte for byte what the server says."""

import contextlib
import pathlib
import re
import struct

import pytest

from harness import mysql_raw as raw
from harness.mysql_raw import DEPRECATE_EOF, PLAIN, SESSION_TRACK
from harness.raw import Closed

pytestmark = pytest.mark.either_io

CAPABILITIES = {
    "plain": PLAIN,
    "without-eof": PLAIN | DEPRECATE_EOF,
    "tracking": PLAIN | SESSION_TRACK,
    "both": PLAIN | DEPRECATE_EOF | SESSION_TRACK,
    "found-rows": PLAIN | DEPRECATE_EOF | raw.FOUND_ROWS,
}

TYPES = {
    "TINYINT": ["-128", "127", "0"],
    "TINYINT UNSIGNED ZEROFILL": ["7", "255"],
    "SMALLINT": ["-32768", "32767"],
    "MEDIUMINT": ["-8388608", "8388607"],
    "INT": ["-2147483648", "2147483647"],
    "INT UNSIGNED": ["4294967295"],
    "BIGINT": ["-9223372036854775808", "9223372036854775807"],
    "BIGINT UNSIGNED": ["18446744073709551615"],
    "DECIMAL(65,30)": ["12345678901234567890123456789012345.123456789012345678901234567890", "-0.5"],
    "DECIMAL(5,0)": ["99999"],
    "FLOAT": ["1.5", "-3.4e38", "1e-38"],
    "DOUBLE": ["1.7976931348623157e308", "-2.2250738585072014e-308", "0.1"],
    "BIT(1)": ["b'1'", "b'0'"],
    "BIT(64)": ["b'1010101'", "18446744073709551615"],
    "BOOLEAN": ["TRUE", "FALSE"],
    "DATE": ["'2024-02-29'", "'9999-12-31'"],
    "TIME": ["'-838:59:59'", "'12:34:56'"],
    "TIME(6)": ["'12:34:56.123456'", "'-00:00:00.000001'"],
    "DATETIME": ["'2024-02-29 23:59:59'"],
    "DATETIME(6)": ["'2024-02-29 23:59:59.999999'"],
    "TIMESTAMP NULL": ["'2024-02-29 12:00:00'"],
    "TIMESTAMP(3) NULL": ["'2024-02-29 12:00:00.123'"],
    "YEAR": ["1901", "2155"],
    "CHAR(10)": ["'abc'", "''", "'a\\'b'"],
    "CHAR(0)": ["''"],
    "VARCHAR(300) CHARACTER SET utf8mb4": [
        "'äöü€😀'",
        "REPEAT('x', 250)",
        "REPEAT('x', 251)",
        "REPEAT('€', 300)",
    ],
    "VARCHAR(10) CHARACTER SET latin1": ["'äöü'"],
    "VARCHAR(10) CHARACTER SET ucs2": ["'äöü'"],
    "BINARY(5)": ["'a'", "X'00FF00FF00'"],
    "VARBINARY(10)": ["X'FEFF00'", "''"],
    "TINYBLOB": ["X'FB'", "REPEAT('y', 255)"],
    "BLOB": ["REPEAT(X'FF', 65535)", "X'FE'"],
    "MEDIUMBLOB": ["REPEAT('z', 65536)"],
    "LONGBLOB": ["REPEAT('z', 1000000)"],
    "TINYTEXT": ["'text'"],
    "TEXT": ["REPEAT('t', 65535)"],
    "LONGTEXT": ["REPEAT('€', 100000)"],
    "ENUM('a', 'b', '€')": ["'a'", "'€'", "3"],
    "SET('a', 'b', 'c')": ["'a,c'", "''"],
    "JSON": ["'{\"a\": [1, 2, null]}'"],
    "INET6": ["'::1'", "'2001:db8::ff00:42:8329'"],
    "UUID": ["'123e4567-e89b-12d3-a456-426655440000'"],
    "POINT": ["POINT(1, 2)"],
    "GEOMETRY": ["ST_GeomFromText('POLYGON((0 0, 1 0, 1 1, 0 0))')"],
}


def of_type(place, kind, values):
    """Statements about a column of this type."""
    name = f"k{place}"
    rows = ", ".join(f"({n}, {value})" for n, value in enumerate([*values, "NULL"]))
    return [
        f"CREATE TABLE {name} (id INT NOT NULL PRIMARY KEY, c {kind}) DEFAULT CHARSET utf8mb4",
        f"SELECT * FROM {name}",
        f"INSERT INTO {name} VALUES {rows}",
        f"SELECT * FROM {name}",
        f"SELECT c FROM {name} WHERE id = 0",
        f"SELECT c AS `another name`, id FROM {name} x ORDER BY id DESC",
        f"SELECT c FROM {name} WHERE c IS NULL",
        f"SELECT MIN(id), COUNT(c), COUNT(DISTINCT c) FROM {name}",
        f"SHOW COLUMNS FROM {name}",
        f"UPDATE {name} SET c = NULL",
        f"UPDATE {name} SET c = NULL",
        f"DELETE FROM {name} WHERE id = 0",
    ]


OBJECTS = (
    "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, a INT, b VARCHAR(100), j JSON, UNIQUE (a))",
    "CREATE TABLE u (id INT PRIMARY KEY AUTO_INCREMENT, t_id INT, name VARCHAR(100))",
    "CREATE TABLE `order` (id INT PRIMARY KEY, `select` INT)",
    "CREATE SEQUENCE s",
    "CREATE VIEW v AS SELECT id, a FROM t",
    "CREATE FUNCTION plus_one(n INT) RETURNS INT DETERMINISTIC RETURN n + 1",
    "CREATE FUNCTION adds(n INT) RETURNS INT BEGIN INSERT INTO u (t_id) VALUES (n); RETURN n; END",
    "CREATE PROCEDURE none() BEGIN END",
    "CREATE PROCEDURE one() SELECT * FROM t",
    "CREATE PROCEDURE three() BEGIN SELECT 1; INSERT INTO u (t_id) VALUES (1); SELECT * FROM u; END",
    "CREATE PROCEDURE fails() BEGIN SELECT 1; SELECT * FROM missing; SELECT 2; END",
    "CREATE PROCEDURE signals() SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'of its own', MYSQL_ERRNO = 30001",
    "CREATE PROCEDURE warns() BEGIN SELECT 1/0; SELECT CAST('x' AS INT); END",
    "CREATE PROCEDURE outs(OUT n INT) SET n = 7",
)

PLAIN_STATEMENTS = (
    "INSERT INTO t (a, b) VALUES (1, 'x'), (2, 'y'), (3, NULL)",
    "INSERT INTO t (a, b) VALUES (10, 'z')",
    "SELECT LAST_INSERT_ID()",
    "INSERT IGNORE INTO t (a) VALUES (1)",
    "SHOW WARNINGS",
    "INSERT INTO t (a) VALUES (1)",
    "SHOW WARNINGS",
    "SHOW ERRORS",
    "INSERT INTO t (a) VALUES (1) ON DUPLICATE KEY UPDATE b = 'w'",
    "REPLACE INTO t (a, b) VALUES (2, 'replaced')",
    "INSERT INTO t (a) VALUES (77) RETURNING id, a",
    "UPDATE t SET b = 'same' WHERE a < 3",
    "UPDATE t SET b = 'same' WHERE a < 3",
    "SELECT ROW_COUNT()",
    "DELETE FROM t WHERE a = 77 RETURNING a, b",
    "DELETE FROM t WHERE a = 12345",
    "SELECT SQL_CALC_FOUND_ROWS id FROM t LIMIT 1",
    "SELECT FOUND_ROWS()",
    "SELECT SQL_NO_CACHE * FROM t ORDER BY 1",
    "SELECT 1/0",
    "SHOW WARNINGS",
    "SELECT CAST('12x' AS INT), 'abc' + 1",
    "SHOW WARNINGS LIMIT 1",
    "SHOW COUNT(*) WARNINGS",
    "SELECT @@warning_count, @@error_count",
    "SELECT",
    "SELECT FROM",
    "",
    ";",
    " ",
    "/* nothing */",
    "-- nothing",
    "#",
    "nonsense",
    "SELECT * FROM missing",
    "SHOW ERRORS",
    "SELECT missing FROM t",
    "SELECT missing()",
    "SELECT plus_one()",
    "SELECT plus_one(2)",
    "SELECT * FROM missing.t",
    "USE missing",
    "DROP TABLE missing",
    "DROP TABLE IF EXISTS missing",
    "SHOW WARNINGS",
    "CREATE TABLE t (id INT)",
    "CREATE TABLE IF NOT EXISTS t (id INT)",
    "ALTER TABLE t ADD c INT DEFAULT 7",
    "SELECT * FROM t",
    "ALTER TABLE t DROP c",
    "CALL none()",
    "CALL one()",
    "CALL three()",
    "CALL fails()",
    "CALL signals()",
    "CALL warns()",
    "SHOW WARNINGS",
    "CALL missing()",
    "CALL outs(@n)",
    "SELECT @n",
    "SELECT 1; SELECT 2",
    "SELECT 1; SELECT * FROM t; SELECT * FROM u WHERE 0",
    "INSERT INTO u (name) VALUES ('a'); SELECT LAST_INSERT_ID(); SELECT COUNT(*) FROM u",
    "SELECT 1; SELECT * FROM missing; SELECT 2",
    "SELECT 1; nonsense",
    "SELECT 1;;",
    "SELECT 1; ; SELECT 2",
    "SELECT 1; CALL three(); SELECT 4",
    "SET @x = 1; SELECT @x; SET @x = 2; SELECT @x",
    "BEGIN; INSERT INTO u (name) VALUES ('b'); ROLLBACK; SELECT COUNT(*) FROM u",
    "SET @a = 5",
    "SELECT @a, @b, @a := @a + 1, @c := 'text', @d := 1.5",
    "SELECT @a, @c, @d",
    "BEGIN",
    "SELECT * FROM u",
    "SAVEPOINT p",
    "INSERT INTO u (name) VALUES ('c')",
    "ROLLBACK TO p",
    "ROLLBACK TO missing",
    "RELEASE SAVEPOINT p",
    "COMMIT",
    "START TRANSACTION READ ONLY",
    "SELECT COUNT(*) FROM u",
    "INSERT INTO u (name) VALUES ('d')",
    "COMMIT",
    "SET autocommit = 0",
    "SELECT COUNT(*) FROM u",
    "INSERT INTO u (name) VALUES ('e')",
    "ROLLBACK",
    "SET autocommit = 1",
    "SELECT adds(3)",
    "BEGIN",
    "SELECT adds(3)",
    "SELECT LAST_INSERT_ID()",
    "COMMIT",
    "SELECT NEXTVAL(s), LASTVAL(s)",
    "CREATE TEMPORARY TABLE own (id INT)",
    "INSERT INTO own VALUES (1), (2)",
    "SELECT * FROM own",
    "DROP TEMPORARY TABLE own",
    "PREPARE p FROM 'SELECT ? + 1, * FROM t'",
    "PREPARE p FROM 'SELECT ? + 1, id FROM t'",
    "SET @one = 1",
    "EXECUTE p USING @one",
    "EXECUTE p",
    "DEALLOCATE PREPARE p",
    "EXECUTE p",
    "EXECUTE IMMEDIATE 'SELECT 1, ?' USING 'x'",
    "LOCK TABLES t READ, u WRITE",
    "SELECT COUNT(*) FROM t",
    "INSERT INTO t (a) VALUES (55)",
    "SELECT * FROM `order`",
    "UNLOCK TABLES",
    "SELECT GET_LOCK('of replies', 0), IS_FREE_LOCK('of replies'), RELEASE_LOCK('of replies')",
    "HANDLER t OPEN",
    "HANDLER t READ FIRST",
    "HANDLER t CLOSE",
    "DO 1, SLEEP(0)",
    "VALUES (1, 'a'), (2, 'b')",
    "TABLE t",
    "SHOW TABLES",
    "SHOW FULL TABLES",
    "SHOW DATABASES LIKE 'nothing'",
    "SHOW CREATE TABLE t",
    "SHOW CREATE VIEW v",
    "SHOW CREATE FUNCTION plus_one",
    "SHOW CREATE PROCEDURE three",
    "SHOW INDEX FROM t",
    "SHOW VARIABLES LIKE 'sql_mode'",
    "SHOW SESSION STATUS LIKE 'nothing'",
    "SHOW COLLATION LIKE 'utf8mb4_u%'",
    "SHOW CHARACTER SET",
    "SHOW ENGINES",
    "SHOW GRANTS",
    "SHOW PRIVILEGES",
    "DESCRIBE t",
    "DESC t a",
    "EXPLAIN SELECT * FROM t WHERE id = 1",
    "EXPLAIN EXTENDED SELECT * FROM t WHERE a = 1",
    "SHOW WARNINGS",
    "EXPLAIN FORMAT=JSON SELECT 1",
    "ANALYZE TABLE u",
    "CHECK TABLE t, missing",
    "CHECKSUM TABLE t",
    "OPTIMIZE TABLE u",
    "HELP 'nothing at all'",
    "SELECT USER(), CURRENT_USER(), DATABASE(), SCHEMA(), VERSION(), @@version_comment",
    "SELECT @@sql_mode, @@time_zone, @@character_set_client, @@collation_connection, @@autocommit",
    "SELECT @@session.tx_isolation, @@max_allowed_packet, @@session_track_schema",
    "SELECT * FROM information_schema.schemata WHERE schema_name = DATABASE()",
    "SELECT column_name FROM information_schema.columns WHERE table_schema = DATABASE() ORDER BY 1",
    "SET NAMES latin1",
    "SELECT 'a', b FROM t",
    "SET NAMES utf8mb4",
    "SET NAMES utf8mb4 COLLATE utf8mb4_bin",
    "SELECT 'a', COLLATION('a'), @@collation_connection",
    "SET NAMES nothing",
    "SET CHARACTER SET latin1",
    "SELECT 'a', @@character_set_connection, @@character_set_results",
    "SET NAMES utf8mb4",
    "SET character_set_results = NULL",
    "SELECT 'ä', b FROM t",
    "SELECT @@character_set_results",
    "SET character_set_results = utf8mb4",
    "SET time_zone = '+05:30'",
    "SELECT @@time_zone, FROM_UNIXTIME(1), UNIX_TIMESTAMP('2024-01-01')",
    "SET time_zone = 'nowhere'",
    "SET time_zone = SYSTEM",
    "SET sql_mode = 'ANSI_QUOTES,NO_BACKSLASH_ESCAPES'",
    'SELECT "id", \'a\\\' FROM "t"',
    "SELECT @@sql_mode",
    "SET sql_mode = ''",
    "SELECT \"id\", 'a\\\\' FROM t",
    "SELECT CAST('' AS DATE), STR_TO_DATE('x', '%Y')",
    "SET sql_mode = DEFAULT",
    "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
    "SELECT @@tx_isolation",
    "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE",
    "SELECT @@tx_isolation",
    "SET SESSION tx_isolation = DEFAULT",
    "SET nothing = 1",
    "SET GLOBAL nothing = 1",
    "SET group_concat_max_len = 4",
    "SELECT GROUP_CONCAT(id) FROM t",
    "SHOW WARNINGS",
    "SET group_concat_max_len = DEFAULT",
    "SET sql_select_limit = 1",
    "SELECT id FROM t",
    "SET sql_select_limit = DEFAULT",
    "SET timestamp = 1000000000",
    "SELECT NOW(), CURDATE(), NOW(6), UNIX_TIMESTAMP()",
    "SET timestamp = DEFAULT",
    "SELECT BENCHMARK(10, MD5('x')), SLEEP(0)",
    "SELECT NULL, '', 'NULL', 0x, X'', b''",
    "SELECT 1 AS a, 2 AS a, 3 AS ``",
    "SELECT * FROM (SELECT 1 AS a UNION ALL SELECT 2 UNION ALL SELECT NULL) x",
    "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r WHERE n < 500) SELECT n FROM r",
    "SELECT JSON_OBJECT('a', 1), JSON_ARRAY(1, NULL), JSON_EXTRACT('{\"a\": 1}', '$.a')",
    "SELECT CONVERT('ä' USING latin1), CAST('ä' AS BINARY), HEX('ä'), _latin1'x', N'x'",
    "SELECT DATE'2024-01-01', TIME'10:00:00', TIMESTAMP'2024-01-01 10:00:00', INTERVAL(3, 1, 5)",
    "SELECT 1.5, 1.5e0, 15, -15, TRUE, 18446744073709551615, 18446744073709551616, 0xFF, b'1010'",
    "SELECT " + ", ".join(f"{n} AS c{n}" for n in range(300)),
    "SELECT REPEAT('x', 300), REPEAT('y', 70000)",
    "TRUNCATE TABLE u",
    "DROP VIEW v",
    "DROP TABLE u",
)

TABLE = pathlib.Path(__file__).parents[1] / "wire" / "statements" / "mysql.tsv"

VARIES = re.compile(
    r"now|time|date|rand|uuid|connection_id|port|host|processlist|status|random|sleep|benchmark|version|@@|row_count"
    r"|statistics|analyze|innodb|threads|user|profile|master|slave|replica|binlog|events|plugins|table_name",
    re.IGNORECASE,
)
"""What is not the same at two servers, or takes its time."""


def known_reads():
    """The reads of the lexer's table, as far as two servers answer them in the same way."""
    lines = (
        line.split("\t", 3) for line in TABLE.read_text().split("\n") if line and not line.startswith("#")
    )
    return [
        text for kind, _, mode, text in lines if (kind, mode) == ("read", "-") and not VARIES.search(text)
    ]


def statements():
    found = list(OBJECTS)
    for place, (kind, values) in enumerate(TYPES.items()):
        found += of_type(place, kind, values)
    return [*found, *known_reads(), *PLAIN_STATEMENTS]


@pytest.mark.parametrize("capabilities", CAPABILITIES.values(), ids=CAPABILITIES)
def test_replies_to_many_statements_are_those_of_the_server(twins, capabilities):
    asked = statements()
    assert len(asked) > 800
    differ = []
    with twins.schema() as name, twins.connect(schema=name, capabilities=capabilities) as client:
        for text in asked:
            try:
                client.query(text)
            except AssertionError as error:
                differ.append((text[:200], str(error).split("ours:")[1][:1500]))
    assert not differ, (
        "\n".join(f"{text}\n    ours:{how}" for text, how in differ) + f"\n{len(differ)} differ"
    )


@pytest.mark.parametrize("capabilities", CAPABILITIES.values(), ids=CAPABILITIES)
def test_replies_to_prepared_statements_are_those_of_the_server(twins, capabilities):
    with twins.schema() as name, twins.connect(schema=name, capabilities=capabilities) as client:
        for text in OBJECTS:
            client.query(text)
        for place, (kind, values) in enumerate(TYPES.items()):
            for text in of_type(place, kind, values)[:3]:
                client.query(text)
            assert client.prepare("all", f"SELECT * FROM k{place}")
            client.execute("all")
            client.execute("all", cursor=1)
            client.told("all", raw.FETCH, struct.pack("<I", 2))
            client.told("all", raw.FETCH, struct.pack("<I", 100))
            client.query("SELECT @@autocommit")
            client.execute("all")
            client.told("all", raw.CLOSE, answered=False)
        for text in (
            "INSERT INTO u (name) VALUES ('a')",
            "CALL three()",
            "CALL fails()",
            "CALL outs(@n)",
            "SELECT * FROM t WHERE 0",
            "SELECT 1/0",
            "SET @x = 5",
            "BEGIN",
            "SELECT LAST_INSERT_ID(), ROW_COUNT()",
            "UPDATE u SET name = 'b'",
            "COMMIT",
            "CREATE TABLE made (id INT)",
            "SELECT missing",
            "SELECT 1; SELECT 2",
            "",
            "SHOW TABLES",
        ):
            if client.prepare(text, text):
                client.execute(text)
                # Without tables and faults of its own, a statement leaves the warnings of any one before it.
                if text in ("SELECT 1/0", "CALL fails()") or "INTO u" in text:
                    client.query("SHOW WARNINGS")
                client.execute(text)


PARAMETERS = {
    "null": (b"\1\1\6\0", "NULL"),
    "tiny": (b"\0\1\1\0\xff", "-1"),
    "long": (b"\0\1\3\0\1\2\3\4", "67305985"),
    "longlong": (b"\0\1\x08\x80" + b"\xff" * 8, "18446744073709551615"),
    "double": (b"\0\1\5\0" + struct.pack("<d", 1.5), "1.5"),
    "text": (b"\0\1\xfd\0\5hello", "hello"),
    "long-text": (b"\0\1\xfd\0\xfd\0\0\2" + b"x" * 0x20000, "x…"),
    "date": (b"\0\1\x0a\0\4\xe8\7\2\x1d", "2024-02-29"),
    "time": (b"\0\1\x0b\0\x0c\1\1\0\0\0\2\3\4\x40\xe2\1\0", "-26:03:04.123456"),
}


@pytest.mark.parametrize("parameter", PARAMETERS)
def test_parameters_reach_the_server_as_they_were_sent(twins, parameter):
    with twins.connect(capabilities=PLAIN) as client:
        assert client.prepare("p", "SELECT ?, LENGTH(?), 'end'") and client.prepare("one", "SELECT ?, 'end'")
        sent, _ = PARAMETERS[parameter]
        client.execute("one", sent)
        client.execute("one", sent[:1] + b"\0" + sent[4:])
        client.execute("p")


def test_long_data_goes_with_the_next_execution(twins):
    with twins.connect() as client:
        assert client.prepare("p", "SELECT LENGTH(?), MD5(?)")
        for _ in range(3):
            client.told("p", raw.LONG_DATA, b"\0\0" + b"x" * 100_000, answered=False)
        client.told("p", raw.LONG_DATA, b"\1\0abc", answered=False)
        client.execute("p", b"\0\1\xfc\0\xfc\0")
        client.told("p", raw.LONG_DATA, b"\0\0gone", answered=False)
        client.told("p", raw.RESET)
        client.execute("p", b"\0\1\xfc\0\xfc\0\1a\1b")


def test_statements_that_were_not_prepared_are_unknown(twins):
    with twins.connect() as client:
        client.execute("nothing")
        client.told("nothing", raw.RESET)
        client.told("nothing", raw.FETCH, b"\1\0\0\0")
        client.told("nothing", raw.CLOSE, answered=False)
        client.told("nothing", raw.LONG_DATA, b"\0\0x", answered=False)
        client.query("SELECT 1")
        assert client.prepare("p", "SELECT 1")
        client.told("p", raw.CLOSE, answered=False)
        client.execute("nothing")
        client.query("SELECT 1")


@pytest.mark.parametrize("capabilities", CAPABILITIES.values(), ids=CAPABILITIES)
def test_replies_to_other_commands_are_those_of_the_server(twins, capabilities):
    with twins.schema() as name, twins.connect(capabilities=capabilities) as client:
        client.query("SELECT DATABASE()")
        client.query("SHOW TABLES")
        client.query("SELECT * FROM t")
        client.ask(raw.PING)
        client.ask(raw.INIT_DB, "missing")
        client.ask(raw.INIT_DB, name)
        client.query("SELECT DATABASE()")
        for text in OBJECTS:
            client.query(text)
        client.ask(raw.FIELD_LIST, b"t\0")
        client.ask(raw.FIELD_LIST, b"t\0b%")
        client.ask(raw.FIELD_LIST, b"missing\0")
        client.query("BEGIN")
        client.ask(raw.PING)
        client.ask(raw.FIELD_LIST, b"t\0")
        client.query("INSERT INTO u (name) VALUES ('a')")
        client.ask(raw.RESET_CONNECTION)
        client.query("SELECT DATABASE(), @@autocommit")
        client.ask(raw.INIT_DB, name)
        client.query("SELECT COUNT(*) FROM u")
        client.ask(raw.SET_OPTION, b"\1\0")
        client.query("SELECT 1; SELECT 2")
        client.ask(raw.SET_OPTION, b"\0\0")
        client.query("SELECT 1; SELECT 2")
        client.query("SET @x = 1")
        client.ask(raw.SET_OPTION, b"\1\0")
        client.query("SELECT 1; SELECT 2")
        client.ask(raw.SET_OPTION, b"\0\0")
        client.query("SELECT 1; SELECT 2")


@pytest.mark.parametrize("place", ["a-free-session", "a-kept-session"])
@pytest.mark.parametrize("more", [-5, -4, -3, 4 << 20, 17 << 20], ids=str)
def test_large_values_come_as_they_are(twins, place, more):
    with twins.connect(capabilities=PLAIN | DEPRECATE_EOF) as client:
        if place == "a-kept-session":
            client.query("SET @x = 1")
        reply = client.query(f"SELECT REPEAT('x', {raw.LARGEST + more}), 'end'")
        assert len(reply) > raw.LARGEST
        client.query("SELECT 1")


@pytest.mark.parametrize("more", [-2, -1, 0, 1, 20 << 20], ids=str)
def test_large_statements_reach_the_server_as_they_are(twins, more):
    with twins.schema() as name, twins.connect(schema=name) as client:
        for begin, end in (("SELECT MD5('", "')"), ("INSERT INTO t VALUES ('", "')")):
            client.query("CREATE TABLE IF NOT EXISTS t (a LONGTEXT)")
            size = raw.LARGEST + more - len(begin) - len(end)
            client.query(begin + "x" * size + end)
        client.query("SELECT LENGTH(a), MD5(a) FROM t")


def test_a_statement_that_is_larger_than_the_server_takes_has_an_error(twins):
    with twins.connect() as client:
        text = "SELECT '" + "x" * (65 << 20) + "'"
        # Whoever rejects it closes the connection, and may do so while the client still sends.
        for one in (client.ours, client.theirs):
            with contextlib.suppress(ConnectionError, Closed):
                one.write(raw.QUERY, text)
                assert raw.numbers(one.reply()) in ([1153], [2013])
    with twins.connect() as client:
        client.query("SELECT 1")


def test_many_rows_come_in_order(twins):
    with twins.connect(schema="test", capabilities=PLAIN) as client:
        reply = client.query("SELECT seq, REPEAT('x', seq % 300), IF(seq % 7, seq, NULL) FROM seq_1_to_50000")
        assert len(raw.split(reply)) == 1 + 3 + 1 + 50_000 + 1
        client.query("SELECT 1 FROM seq_1_to_10; SELECT seq FROM seq_1_to_20000; SELECT 1")


def test_a_session_ends_with_the_transaction_that_is_to_end_it(twins):
    with twins.connect() as client:
        client.query("BEGIN")
        client.query("COMMIT RELEASE")
        assert client.theirs.rest() == client.ours.rest() == b""


@pytest.mark.parametrize("command", [5, 6, 7, 8, 10, 11, 13, 15, 16, 18, 20, 21, 29, 30, 99, 250, 255])
def test_commands_that_no_client_sends_are_unknown(twins, command):
    with twins.connect() as client:
        assert raw.numbers(client.ours.ask(command, b"\0\0\0\0\0\0\0\0\0\0x")) == [1047]
        client.query("SELECT 1")
