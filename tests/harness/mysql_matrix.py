"""What a session of MySQL leaves at its server, who is served next by that connection, and how the first one
has left: the three lists of a table, and what is expected in each of its cells.

A kind of state that is added here needs a question that shows it, and a test fails where the question does
not. A way, or a reason to stay, that is added needs a row of rules for each of the others.
"""

import dataclasses
import re
from collections.abc import Callable

from . import mysql_raw as raw
from .mysql_raw import DEPRECATE_EOF, PLAIN, SESSION_TRACK, Connection

NO_ARGUMENTS, AS_TEXT, WITH_CURSOR = b"\0\1\0\0\0", b"\0\1\0\0\0\0\1\xfc\0", b"\1\1\0\0\0"

LOOSE, RESULT, HELD = "loose", "result", "held"
"""What a kind of state asks of the connection: nothing, as it can be told another one; to stay for a moment,
as the statement right behind may ask for it; to stay until the state ends."""

SAME, OTHER, FREE = "same", "other", "free"
"""Who serves the next one: the very connection, although it has that one alone; another connection, as the
first one keeps its own; any, and the first one's is reset or closed."""


class Client(Connection):
    """A connection that remembers the number of the statement that it has prepared."""

    statement = None

    def __init__(self, address, words, user="first", schema="own", **options):
        self.words = words
        super().__init__(address, user=words[user], schema=words.get(schema, ""), **options)

    def tell(self, step):
        """The reply to a step: a text, which may name `words` in braces, or what is done with a client."""
        return step(self) if callable(step) else self.query(step.format_map(self.words))

    def prepared(self, text):
        """The replies to a text that is prepared, executed and closed, without the statement's number."""
        reply = self.ask(raw.PREPARE, text)
        if reply[4] == 0xFF:
            return reply
        number = reply[5:9]
        executed = self.ask(raw.EXECUTE, number + NO_ARGUMENTS)
        self.write(raw.CLOSE, number)
        return reply[:5] + bytes(4) + reply[9:] + executed


def prepares(text, execute=b"", *more):
    """Prepares a text, executes it with this payload, and goes on with more commands about it."""

    def step(client):
        reply = client.ask(raw.PREPARE, text)
        client.statement = reply[5:9]
        if execute:
            reply = client.ask(raw.EXECUTE, client.statement + execute)
        for command, payload in more:
            client.write(command, client.statement + payload)
            if command != raw.LONG_DATA:
                reply = client.reply(command)
        return reply

    return step


def asks_of(command, payload):
    """A command about one's own statement; a client that has none tries the number of the first client's,
    as the proxy numbers the statements of each client from 1."""

    def step(client):
        return client.ask(command, (client.statement or b"\1\0\0\0") + payload)

    return step


def asks_for_long_data(client):
    """Executes one's own statement: with what was sent ahead, or with a text."""
    if client.statement:
        return client.ask(raw.EXECUTE, client.statement + AS_TEXT)
    reply = client.ask(raw.PREPARE, LONG)
    number = reply[5:9]
    reply = client.ask(raw.EXECUTE, number + AS_TEXT + b"\5other")
    client.write(raw.CLOSE, number)
    return reply


LONG = "SELECT ?"
NEXT_ROW = (raw.FETCH, b"\1\0\0\0")


@dataclasses.dataclass(frozen=True)
class Kind:
    """A kind of state: what sets it, what shows it first, and what it asks of the connection. `before` is run
    at the server itself, so that the answers are the same each time. `new`: what a client of the server says
    first on its new connection. `hidden`: why nothing shows it. `lost`: why the first one does not keep it.
    `stays`: why it is there behind a reset, at a server itself. `is_seen`: all clients see it until the
    server has ended it, which it does a moment after its client has left."""

    keeps: str
    sets: tuple
    asks: str | Callable
    before: tuple = ()
    new: tuple = ()
    hidden: str = ""
    lost: str = ""
    stays: str = ""
    is_seen: bool = False


def kind(keeps, asks, *sets, **more):
    return Kind(keeps, sets, asks, **more)


def variables(*names):
    return f"SELECT {', '.join('@@' + name for name in names)}"


NAMES = variables(
    "character_set_client", "character_set_results", "character_set_connection", "collation_connection"
)
ISOLATION = variables("tx_isolation", "autocommit", "sql_mode")
COUNT = "SELECT COUNT(*) FROM t"
WRITES = "DELETE FROM t WHERE id < 0"

SERVED_BEFORE = ("SELECT 1",)
"""MariaDB tells the first statement of a connection how many rows another connection has found."""

NO_RESET = "neither COM_RESET_CONNECTION nor COM_CHANGE_USER ends it at MariaDB 10.11"

KINDS = {
    "nothing": kind(LOOSE, "SELECT 1", "DO 1", hidden="there is nothing"),
    "user variable": kind(HELD, "SELECT @own", "SET @own = 'mine'"),
    "user variable of a read": kind(HELD, "SELECT @own", "SELECT @own := 'mine'"),
    "user variable of a selection": kind(HELD, "SELECT @own", "SELECT 'mine' INTO @own"),
    "user variable of a function": kind(
        HELD, "SELECT @own", "SELECT sets()", lost="a pool without `galera` runs no read again at the writer"
    ),
    "temporary table": kind(HELD, "SELECT * FROM own", "CREATE TEMPORARY TABLE own (id INT)"),
    "temporary table of a procedure": kind(HELD, "SELECT * FROM own", "CALL makes()"),
    "lock by name": kind(HELD, "SELECT RELEASE_LOCK('kept')", "SELECT GET_LOCK('kept', 0)", is_seen=True),
    "locked tables": kind(HELD, "SELECT * FROM aside", "LOCK TABLES t READ"),
    "global read lock": kind(
        HELD, "TRUNCATE TABLE aside NOWAIT", "FLUSH TABLES WITH READ LOCK", is_seen=True
    ),
    "flushed table": kind(HELD, "SELECT * FROM aside", "FLUSH TABLES t WITH READ LOCK"),
    "backup stage": kind(HELD, "BACKUP STAGE END", "BACKUP STAGE START", is_seen=True),
    "handler": kind(HELD, "HANDLER who READ FIRST", "HANDLER who OPEN"),
    "prepared in SQL": kind(HELD, "EXECUTE own", "PREPARE own FROM 'SELECT 3'"),
    "transaction": kind(HELD, COUNT, "BEGIN", "INSERT INTO t (a) VALUES (1)"),
    "transaction that only reads": kind(HELD, WRITES, "START TRANSACTION READ ONLY"),
    "transaction of a procedure": kind(HELD, "SELECT @@in_transaction", "CALL begins()"),
    "two-phase transaction": kind(HELD, COUNT, "XA START 'mine'", "INSERT INTO t (a) VALUES (1)"),
    "transaction without autocommit": kind(
        HELD, variables("autocommit", "in_transaction"), "SET autocommit = 0", "SELECT * FROM t"
    ),
    "next transaction": kind(HELD, WRITES, "SET TRANSACTION READ ONLY"),
    "next transaction behind a failure": kind(HELD, WRITES, "SET TRANSACTION READ ONLY", WRITES),
    "no autocommit": kind(LOOSE, variables("autocommit"), "SET autocommit = 0"),
    "no autocommit behind a commit": kind(
        LOOSE, variables("autocommit"), "SET autocommit = 0", "INSERT INTO aside VALUES (1)", "COMMIT"
    ),
    "session that only reads": kind(LOOSE, WRITES, "SET SESSION TRANSACTION READ ONLY"),
    "isolation": kind(LOOSE, ISOLATION, "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED"),
    "serializable": kind(LOOSE, ISOLATION, "SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE"),
    "names": kind(LOOSE, NAMES, "SET NAMES latin1"),
    "names and collation": kind(LOOSE, NAMES, "SET NAMES utf8mb4 COLLATE utf8mb4_bin"),
    # It is told again by NAMES: the columns of an answer have its number then, and the values are the same.
    "collation": kind(
        LOOSE,
        "SELECT CAST(@@collation_connection AS BINARY), CAST(@@character_set_connection AS BINARY)",
        "SET collation_connection = utf8mb4_swedish_ci",
    ),
    "character set of results": kind(LOOSE, NAMES, "SET character_set_results = NULL"),
    "character set of the schema": kind(HELD, NAMES, "SET CHARACTER SET latin2"),
    "sql_mode": kind(LOOSE, "SELECT \"name\" <> '' FROM who", "SET sql_mode = 'ANSI_QUOTES'"),
    "sql_mode and backslashes": kind(LOOSE, r"SELECT 'a\\'", "SET sql_mode = 'NO_BACKSLASH_ESCAPES'"),
    "time zone": kind(LOOSE, "SELECT FROM_UNIXTIME(0), @@time_zone", "SET time_zone = '+05:30'"),
    "checks": kind(
        LOOSE, variables("foreign_key_checks", "unique_checks"), "SET foreign_key_checks=0, unique_checks=0"
    ),
    "time-outs": kind(
        LOOSE,
        variables("wait_timeout", "lock_wait_timeout", "innodb_lock_wait_timeout", "max_statement_time"),
        "SET wait_timeout = 1000, lock_wait_timeout = 33, innodb_lock_wait_timeout = 44",
        "SET max_statement_time = 55.5",
    ),
    "limit of rows": kind(LOOSE, "SELECT 1 UNION SELECT 2", "SET sql_select_limit = 1"),
    "variables of plugins": kind(
        LOOSE,
        variables("innodb_ft_enable_stopword", "innodb_compression_default", "aria_repair_threads"),
        "SET innodb_ft_enable_stopword = 0, innodb_compression_default = 1, aria_repair_threads = 2",
    ),
    "variable of a procedure": kind(HELD, variables("time_zone"), "CALL shifts()"),
    "variables that are many": kind(
        HELD,
        variables("max_sort_length"),
        "SET {many}, max_sort_length = 1111",
    ),
    "another schema": kind(LOOSE, "SELECT DATABASE()", "USE {other}"),
    "another schema by the protocol": kind(
        LOOSE, "SELECT DATABASE()", lambda client: client.ask(raw.INIT_DB, client.words["other"])
    ),
    "role": kind(HELD, "SELECT CURRENT_ROLE()", "SET ROLE {role}", stays=NO_RESET),
    "found rows": kind(
        RESULT,
        "SELECT FOUND_ROWS()",
        "SELECT SQL_CALC_FOUND_ROWS seq FROM seq_1_to_50 LIMIT 3",
        new=SERVED_BEFORE,
        stays=NO_RESET,
    ),
    "rows of a read": kind(
        RESULT, "SELECT FOUND_ROWS()", "SELECT seq FROM seq_1_to_7", new=SERVED_BEFORE, stays=NO_RESET
    ),
    "changed rows": kind(RESULT, "SELECT ROW_COUNT()", "INSERT INTO aside VALUES (1), (2), (3)"),
    "warning": kind(RESULT, "SHOW WARNINGS", "SELECT CAST('x' AS INT)"),
    "warning of a write": kind(RESULT, "SHOW WARNINGS", "INSERT IGNORE INTO aside VALUES ('x')"),
    "error": kind(RESULT, "SHOW ERRORS", "SELECT * FROM missing"),
    "number of errors": kind(RESULT, variables("error_count", "warning_count"), "SELECT * FROM missing"),
    "generated id": kind(
        RESULT,
        "SELECT LAST_INSERT_ID()",
        "INSERT INTO ids (a) VALUES (7)",
        before=("TRUNCATE TABLE ids",),
    ),
    "chosen id": kind(HELD, "SELECT LAST_INSERT_ID()", "SELECT LAST_INSERT_ID(77)"),
    "last_insert_id": kind(HELD, "SELECT LAST_INSERT_ID()", "SET last_insert_id = 77"),
    "insert_id": kind(HELD, variables("insert_id"), "SET insert_id = 88"),
    "timestamp": kind(HELD, "SELECT NOW() < '2000-01-01'", "SET timestamp = 1000"),
    "random numbers": kind(HELD, "SELECT RAND() < 0.0000001", "SET rand_seed1 = 1, rand_seed2 = 2"),
    "setting of one statement": kind(
        HELD,
        "SELECT GROUP_CONCAT(seq), @@group_concat_max_len FROM seq_1_to_9",
        "SET STATEMENT group_concat_max_len = 5 FOR SELECT GROUP_CONCAT(seq) FROM seq_1_to_9",
        hidden="it ends with its statement",
    ),
    "prepared by the protocol": kind(
        LOOSE, asks_of(raw.EXECUTE, NO_ARGUMENTS), prepares("SELECT 'mine'", NO_ARGUMENTS)
    ),
    "open cursor": kind(
        HELD, asks_of(*NEXT_ROW), prepares("SELECT seq FROM seq_1_to_5", WITH_CURSOR, NEXT_ROW)
    ),
    "long data": kind(HELD, asks_for_long_data, prepares(LONG, b"", (raw.LONG_DATA, b"\0\0mine"))),
    "words of PyMySQL": kind(LOOSE, ISOLATION, "SET NAMES utf8mb4", "SET AUTOCOMMIT = 0"),
    "words of MySQL's connector": kind(
        LOOSE,
        NAMES,
        "SET NAMES 'utf8mb4' COLLATE 'utf8mb4_general_ci'",
        "SET @@session.autocommit = OFF",
        "SELECT @@session.sql_mode",
    ),
    "words of SQLAlchemy": kind(
        LOOSE,
        ISOLATION,
        "SET NAMES utf8mb4",
        "SET AUTOCOMMIT = 0",
        "SELECT VERSION()",
        "SELECT DATABASE()",
        "SELECT @@tx_isolation",
        "SELECT @@sql_mode",
        "SELECT @@lower_case_table_names",
        "ROLLBACK",
    ),
    "words of Django": kind(
        LOOSE,
        ISOLATION,
        "SET AUTOCOMMIT = 0",
        "SET AUTOCOMMIT = 1",
        "SELECT VERSION(), @@sql_mode, @@default_storage_engine, @@sql_auto_is_null",
        "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
    ),
    "words of go-sql-driver": kind(LOOSE, variables("time_zone"), "SET NAMES utf8mb4, time_zone = '+00:00'"),
    "words of ActiveRecord": kind(
        LOOSE,
        variables("sql_mode", "sql_auto_is_null", "wait_timeout"),
        "SET @@SESSION.sql_mode = CONCAT(CONCAT(@@sql_mode, ',STRICT_ALL_TABLES'), ',NO_AUTO_VALUE_ON_ZERO'),"
        " @@SESSION.sql_auto_is_null = 0, @@SESSION.wait_timeout = 2147483",
    ),
    "words of Connector/J": kind(
        LOOSE,
        NAMES,
        "/* mysql-connector-j-9 */SELECT @@session.auto_increment_increment AS auto_increment_increment,"
        " @@character_set_client AS character_set_client",
        "SET character_set_results = NULL",
        "SET autocommit=1",
        "SELECT @@session.tx_isolation",
    ),
    "words of HikariCP": kind(
        LOOSE,
        ISOLATION,
        "SET autocommit=0",
        "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
        "ROLLBACK",
    ),
    "words of MariaDB's Connector/J": kind(
        LOOSE,
        variables("sql_mode"),
        "set sql_mode=CONCAT(@@sql_mode,',PIPES_AS_CONCAT'),session_track_system_variables ="
        " CONCAT(@@global.session_track_system_variables,',tx_isolation'),NAMES utf8mb4",
    ),
    "words of a dump": kind(
        HELD,
        "SELECT @OLD_TIME_ZONE, @@time_zone, @@sql_mode",
        "/*!40103 SET @OLD_TIME_ZONE=@@TIME_ZONE */",
        "/*!40103 SET TIME_ZONE='+00:00' */",
        "/*!40101 SET SQL_MODE='NO_AUTO_VALUE_ON_ZERO' */",
    ),
}


RULES = {
    ("idle", LOOSE): SAME,
    ("idle", RESULT): OTHER,
    ("idle", HELD): OTHER,
    ("quits", LOOSE): SAME,
    ("quits", RESULT): SAME,
    ("quits", HELD): FREE,
    ("breaks off", LOOSE): SAME,
    ("breaks off", RESULT): SAME,
    ("breaks off", HELD): FREE,
    ("breaks off in a transaction", LOOSE): FREE,
    ("breaks off in a transaction", RESULT): FREE,
    ("breaks off in a transaction", HELD): FREE,
    ("breaks off while a statement runs", LOOSE): FREE,
    ("breaks off while a statement runs", RESULT): FREE,
    ("breaks off while a statement runs", HELD): FREE,
    ("resets its session", LOOSE): SAME,
    ("resets its session", RESULT): SAME,
    ("resets its session", HELD): SAME,
    ("becomes another user", LOOSE): SAME,
    ("becomes another user", RESULT): SAME,
    ("becomes another user", HELD): SAME,
}
"""Which connection serves the next one, by how the first one has left, and by what its state asks for."""


@dataclasses.dataclass(frozen=True)
class Comer:
    """Who is served next. `before`: what it says first. `shares`: whether a server's connection of the first
    one can serve it. `ask`: how it asks."""

    options: dict = dataclasses.field(default_factory=dict)
    before: tuple = ()
    shares: bool = True
    ask: Callable = Client.tell
    at: str = "route"


def asks_prepared(client, step):
    """Has a text prepared."""
    return step(client) if callable(step) else client.prepared(step.format_map(client.words))


COMERS = {
    "the same account": Comer(),
    "another account": Comer({"user": "second"}, shares=False),
    "another schema": Comer({"schema": "third"}),
    "no schema": Comer({"schema": ""}, shares=False),
    "another character set": Comer({"collation": 8}, shares=False),
    "other options of the protocol": Comer(
        {"capabilities": PLAIN | DEPRECATE_EOF | SESSION_TRACK}, shares=False
    ),
    "a prepared statement": Comer(ask=asks_prepared),
    "a transaction": Comer(before=("BEGIN",)),
    "no autocommit": Comer(before=("SET autocommit = 0",)),
    "a read at a reader": Comer(shares=False, at="split"),
}

OF_A_CONNECTION = (
    *("timestamp", "pseudo_thread_id", "rand_seed1", "rand_seed2", "error_count", "warning_count"),
    # Servers are asked for more than their clients have asked for.
    *("session_track_schema", "session_track_state_change", "session_track_system_variables"),
    "session_track_transaction_info",
)
"""Variables that differ among connections that nobody has used."""


READING = "tx_read_only", "transaction_read_only"
"""Variables that say at a reader that its connection is not to be written by, and which no read asks for."""

OF_READER = (
    "SELECT MD5(GROUP_CONCAT(variable_name, '=', variable_value ORDER BY variable_name))"
    f" FROM information_schema.session_variables WHERE variable_name NOT IN {OF_A_CONNECTION + READING}"
)
"""A read that asks for all variables of a session but those."""

SESSION = (
    "SELECT GROUP_CONCAT('@@', variable_name SEPARATOR ', ') FROM information_schema.system_variables"
    f" WHERE variable_scope LIKE 'SESSION%' AND variable_name NOT IN {OF_A_CONNECTION}"
)
"""The names of all variables that a session of a server has, but those of a connection, as an expression."""


def probes(comer):
    """The questions to the next one, behind the one about the kind of state."""
    return (
        OF_READER if comer.at == "split" else "SELECT MD5(CONCAT_WS(',', {session}))",
        "SELECT ROW_COUNT(), FOUND_ROWS(), LAST_INSERT_ID()",
        "SELECT CURRENT_USER(), CURRENT_ROLE(), DATABASE(), @@in_transaction, @@autocommit",
        "SELECT @@insert_id, @@tx_read_only, @@wsrep_sync_wait",
        "SELECT IS_FREE_LOCK('kept')",
        "SELECT * FROM t",
        'SELECT "name" FROM who',
        "SELECT * FROM own",
        "SELECT @own, @x",
        "EXECUTE own",
        "HANDLER who READ FIRST",
    )


def idles(client, cell):
    pass


def quits(client, cell):
    client.write(raw.QUIT)
    client.rest()
    client.close()


def breaks_off(client, cell):
    client.abort()


def breaks_off_in_a_transaction(client, cell):
    # A transaction that is open already would be committed.
    for text in ("ROLLBACK", "BEGIN", "INSERT INTO t (a) VALUES (2)"):
        client.query(text)
    client.abort()


def breaks_off_while_a_statement_runs(client, cell):
    client.write(raw.QUERY, "DO SLEEP(3000)")
    cell.wait_for_sleep()
    client.abort()


def resets(client, cell=None):
    assert client.ask(raw.RESET_CONNECTION)[4] == 0


def becomes_another(client, cell=None):
    assert raw.change_user(client, client.words["second"], "secret")[0] == 0


WAYS = {
    "idle": idles,
    "quits": quits,
    "breaks off": breaks_off,
    "breaks off in a transaction": breaks_off_in_a_transaction,
    "breaks off while a statement runs": breaks_off_while_a_statement_runs,
    "resets its session": resets,
    "becomes another user": becomes_another,
}

STAYS = {"idle": None, "resets its session": resets, "becomes another user": becomes_another}
"""The ways in which the first one goes on, and what a client of the server itself does to be where it is."""


MAY_HIDE = (
    *("variable of a procedure", "user variable of a function", "temporary table of a procedure"),
    *("prepared in SQL", "setting of one statement"),
)
"""What has come of a routine, or of a text within a text: it may be a role."""

EXCEPTIONS = {
    (kind, way, comer): (FREE, f"the connection may be closed, as {NO_RESET}")
    for kind in ("role", *MAY_HIDE)
    for way in ("resets its session", "becomes another user")
    for comer in COMERS
}
"""The cells, by their kind, way and comer, that have another rule, and the reason."""

HANDLER = re.compile(rb"handler \(\d+\)")


def expectation(kind, way, comer):
    """Which connection serves the next one."""
    expected, _ = EXCEPTIONS.get((kind, way, comer), (RULES[way, KINDS[kind].keeps], ""))
    return FREE if expected == SAME and not COMERS[comer].shares else expected


def masked(reply, capabilities):
    """A reply as it is compared: numbers of prepared statements are the server's or the proxy's."""
    reply = HANDLER.sub(b"handler (n)", reply)
    try:
        return raw.in_order(reply, capabilities)
    except IndexError:
        # A row in binary form looks like what tells of a session.
        return raw.split(reply)


def readable(packets):
    """A reply, for people."""
    text = b" ".join(payload for _, payload in packets if payload[:4] != b"\3def")
    return re.sub(r"\\x[0-9a-f]{2}", ".", repr(text[:300]))
