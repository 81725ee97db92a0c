"""What the lexer takes for a read is one to a real server as well."""

import pathlib
import re

import pymysql
import pytest

TABLE = pathlib.Path(__file__).parents[1] / "wire" / "statements" / "mysql.tsv"
ROWS = [line.split("\t", 3) for line in TABLE.read_text().split("\n") if line and not line.startswith("#")]

REJECTED = 1792
"""The number of the error that a session which only reads has for every write."""

UNKNOWN = {1054, 1064, 1146, 1305}
"""The numbers of the errors that a server has for what only the other one knows: a column, the syntax, a
table (which a sequence is to MySQL) and a function."""

MYSQL_ONLY = {
    "TABLE t",
    "TABLE t ORDER BY id LIMIT 1",
    "EXPLAIN ANALYZE SELECT * FROM t",
    "(WITH a AS (SELECT 1 AS x) SELECT * FROM a)",
}
"""Reads that MariaDB does not know."""

MARIADB_ONLY = {
    "CREATE SEQUENCE s",
    "SELECT NEXT VALUE FOR s",
    "SELECT * FROM s",
    "SELECT SQL_CACHE id FROM t",
    "SELECT MD5('x'), SHA1('x'), CRC32('x')",
    "SELECT PASSWORD('x')",
    "SELECT id FROM t LIMIT ROWS EXAMINED 100",
    "SELECT id FROM t ORDER BY id FETCH FIRST 3 ROWS ONLY",
    "VALUES (1)",
    "VALUES (1, 2), (3, 4)",
    "EXPLAIN EXTENDED SELECT * FROM t",
    "EXPLAIN PARTITIONS SELECT * FROM t",
    "ANALYZE SELECT * FROM t",
    "ANALYZE FORMAT=JSON SELECT * FROM t",
    "ANALYZE WITH a AS (SELECT 1 AS x) SELECT * FROM a",
}
"""What MySQL 9.7 does not know."""

OBJECTS = (
    "DROP DATABASE IF EXISTS test",
    "CREATE DATABASE test",
    "USE test",
    "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, a INT, b VARCHAR(100), j JSON)",
    "CREATE TABLE u (id INT PRIMARY KEY AUTO_INCREMENT, t_id INT, name VARCHAR(100))",
    "CREATE TABLE `order` (id INT PRIMARY KEY, `select` INT)",
    "CREATE SEQUENCE s",
    "CREATE FUNCTION plus_one(n INT) RETURNS INT DETERMINISTIC RETURN n + 1",
    "CREATE FUNCTION writes() RETURNS INT BEGIN INSERT INTO t (a) VALUES (1); RETURN 1; END",
    "CREATE PROCEDURE p() INSERT INTO t (a) VALUES (1)",
    "INSERT INTO t (a, b) VALUES (1, 'x'), (2, 'y')",
)

WRITES = (
    "INSERT INTO t (a) VALUES (1)",
    "UPDATE t SET a = 1",
    "DELETE FROM t",
    "SELECT * FROM t FOR UPDATE",
    "SELECT NEXT VALUE FOR s",
    "CALL p()",
    "CREATE TEMPORARY TABLE x (id INT)",
    "TRUNCATE t",
    "SELECT 1; DELETE FROM t",
    "SELECT writes()",
)


@pytest.fixture(scope="module", params=["mariadb", "mariadb118", "mysql97"])
def server(request):
    """Each of the servers, with objects that no test here can change, and what it does not know."""
    server = request.getfixturevalue(request.param)
    is_mysql = request.param == "mysql97"
    server.run(*(text for text in OBJECTS if not (is_mysql and text in MARIADB_ONLY)))
    server.foreign = MARIADB_ONLY if is_mysql else MYSQL_ONLY
    return server


def decoded(text):
    """The bytes of a statement of the table."""
    bytes_of = {b"n": b"\n", b"t": b"\t", b"\\": b"\\"}

    def one(match):
        return bytes_of.get(match[1]) or bytes([int(match[2], 16)])

    return re.sub(rb"\\(n|t|\\|x(..))", one, text.encode())


def run(connection, statement):
    """Runs a text, and returns the number of its error, or None."""
    try:
        with connection.cursor() as cursor:
            cursor.execute(statement)
            while cursor.nextset():
                pass
    except pymysql.err.MySQLError as error:
        return error.args[0]
    return None


def reading(server, **options):
    """A connection that only reads. A transaction that only reads does not keep TRUNCATE and its like from
    running: they end it first."""
    return server.connect(init_command="SET SESSION TRANSACTION READ ONLY", **options)


def connect(server, mode):
    """A connection that reads texts in this mode of the table."""
    names = {"ansi": "ANSI_QUOTES", "noescape": "NO_BACKSLASH_ESCAPES"}
    words = mode.split(",")
    modes = ",".join(names[word] for word in words if word in names)
    charset = next((word for word in words if word not in names and word != "-"), "utf8mb4")
    return reading(server, charset=charset, sql_mode=modes)


def in_transaction(connection, statement):
    """The number of the error that a statement has in a transaction, or None."""
    connection.query("START TRANSACTION READ ONLY")
    try:
        return run(connection, statement)
    finally:
        connection.query("ROLLBACK")


def test_no_statement_that_is_classed_as_a_read_is_rejected_as_a_write(server):
    rejected, failed = [], []
    reads = [row for row in ROWS if row[0] == "read"]
    for mode in sorted({row[2] for row in reads}):
        texts = [text for _, _, its_mode, text in reads if its_mode == mode]
        with connect(server, mode) as direct:
            for text in texts:
                error = in_transaction(direct, decoded(text))
                if error == REJECTED:
                    rejected.append(text)
                elif error and not (error in UNKNOWN and text in server.foreign):
                    failed.append((error, text))
    assert not rejected
    assert not failed, "these are no statements to the server"
    assert len(reads) > 200


def test_a_write_is_rejected_where_only_reads_are_allowed(server):
    writes = [text for text in WRITES if text not in server.foreign]
    with reading(server) as direct:
        assert {text: in_transaction(direct, text) for text in writes} == dict.fromkeys(writes, REJECTED)


def test_most_statements_that_are_classed_as_writes_are_rejected(server):
    writes = [row for row in ROWS if row[0] in ("write", "ddl") and row[2] == "-"]
    with reading(server) as direct:
        errors = {text: in_transaction(direct, decoded(text)) for _, _, _, text in writes}
    assert sum(error == REJECTED for error in errors.values()) > len(writes) / 2, errors
