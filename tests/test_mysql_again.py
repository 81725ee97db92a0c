"""What is sent to a server again, and what never is: a relay in front of a server that is no cluster says how
that is, and answers in its place, so that it shows how often a statement has come."""

import contextlib
import itertools
import struct
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from harness import until
from harness.mysql_between import Between, Lost, galera
from harness.mysql_between import error as error_packet
from harness.mysql_raw import EXECUTE, PREPARE, QUERY, Connection, numbers
from harness.split import clustered, connect, error, rows, telling, value

pytestmark = pytest.mark.either_io

REJECTS = (1047, "WSREP has not yet prepared node for application use")
TAKES_NO_WRITES = (1290, "The MariaDB server is running with the --read-only option")
STATUS, BARRIER = b"SHOW GLOBAL STATUS WHERE", b"SET SESSION wsrep_sync_wait = 1; SELECT 1"
"""The questions by which a proxy knows how a server is, and what it has."""
MOST = 3
"""How often servers may reject a statement before its client is told."""

ANSWERS = {
    "not ready": REJECTS,
    "takes no writes": TAKES_NO_WRITES,
    "another option": (1290, "The MariaDB server is running with the --secure-file-priv option"),
    "unknown command": (1047, "Unknown command"),
    "only reads": (1792, "Cannot execute statement in a READ ONLY transaction"),
    "deadlock": (1213, "Deadlock found when trying to get lock; try restarting transaction"),
    "lock": (1205, "Lock wait timeout exceeded; try restarting transaction"),
    "killed": (1317, "Query execution was interrupted"),
    "too long": (1969, "Query execution was interrupted (max_statement_time exceeded)"),
    "too long at MySQL": (3024, "Query execution was interrupted, maximum statement execution time exceeded"),
    "shuts down": (1053, "Server shutdown in progress"),
    "no user": (1045, "Access denied for user 'app'"),
    "lost": None,
}
"""What the writer answers to a statement instead of running it; None: it ends the connection."""

BEFORE = {
    "a statement": [],
    "a change of a schema": [],
    "a locking read": [],
    "BEGIN": [],
    "without autocommit": ["SET autocommit = 0"],
    "behind an id": ["INSERT INTO t (a) VALUES (7)"],
    "in a transaction": ["BEGIN"],
    "behind a temporary table": ["CREATE TEMPORARY TABLE own (a INT)"],
    "a procedure": [],
    "a comment that hides a procedure": [],
    "two statements": [],
    "a prepared statement": [],
    "a statement to prepare": [],
    "a procedure behind SET": [],
}
"""What a client does before the statement."""

STATEMENTS = {
    "a change of a schema": "ALTER TABLE t COMMENT 'marked'",
    "a locking read": "SELECT 'marked' FROM t FOR UPDATE",
    "BEGIN": "BEGIN /* marked */",
    "a procedure": "CALL inserts('marked')",
    "a comment that hides a procedure": "/*!50000 CALL */ inserts('marked')",
    "a procedure behind SET": "SET STATEMENT max_statement_time = 9 FOR CALL inserts('marked')",
    "two statements": "INSERT INTO t (b) VALUES ('marked'); INSERT INTO t (b) VALUES ('marked')",
}
COMMANDS = {"a prepared statement": EXECUTE, "a statement to prepare": PREPARE}
"""The command that is answered so, where that is not the text of the statement."""
COUNT = itertools.count()
USUAL = "INSERT INTO t (b) VALUES ('marked')"

BOUND = {"in a transaction", "behind a temporary table"}
"""The session has a connection for itself."""
NOT_WHOLE = {"two statements", *(kind for kind in BEFORE if "procedure" in kind)}
"""A part of it may have run."""

REJECTIONS = {"not ready", "takes no writes"}
CONFLICTS = {"deadlock", "lock"}

OF_THE_READER = {"only reads", "no user"}
"""They say something of a reader alone."""


def times(answer, kind, retries):
    """How often the writer is given the statement if it always answers so."""
    if kind in BOUND or kind in NOT_WHOLE:
        return 1
    if answer in REJECTIONS:
        return MOST
    if answer in CONFLICTS:
        # A statement that was rolled back was no transaction of its own there.
        is_own = kind not in ("without autocommit", "BEGIN", "a change of a schema")
        return 1 + retries if is_own else 1
    return 1


@pytest.fixture
def name(mysql_pair):
    """A schema with a table into which statements insert, and a procedure that does."""
    objects = (
        "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, a INT, b VARCHAR(20))",
        "CREATE PROCEDURE inserts(b VARCHAR(20)) INSERT INTO t (b) VALUES (b)",
        # It says what a server says that serves no longer, when it has locked a row.
        "CREATE FUNCTION lies(id INT) RETURNS INT BEGIN"
        " SIGNAL SQLSTATE '08S01' SET MYSQL_ERRNO = 1047, MESSAGE_TEXT = 'WSREP has not yet prepared node';"
        " RETURN id; END",
    )
    with telling(mysql_pair, ("first", "second"), *objects) as name:
        yield name


class Says:
    """A server that answers a marked statement so, `count` times; and tells how often it came. Texts with one
    of the parts in `late` have no answer before those are taken back."""

    def __init__(self, server, name):
        self.real, self.node_says, self._name = server, {}, name
        self.late = set()
        self.begin(None, 0)
        self.relay = Between(server.address, self._answers)
        self.address = self.relay.address

    def begin(self, answer, count, kind=None):
        self.answer, self.left, self.came = answer, count, 0
        self._command = COMMANDS.get(kind, QUERY)

    def _answers(self, packet):
        for part in set(self.late):
            if part in packet:
                until(lambda: part not in self.late, "it is answered")
        return galera(self._name, self._answer, **self.node_says)(packet)

    def _answer(self, packet):
        is_it = packet[:1] == bytes([self._command]) and (self._command == EXECUTE or b"marked" in packet)
        if not is_it:
            return None
        self.came += 1
        if not self.left:
            return None
        self.left -= 1
        if self.answer is None:
            raise Lost
        return error_packet(*self.answer)


@pytest.fixture
def says(mysql_pair, cleanup):
    found = [Says(server, node) for server, node in zip(mysql_pair, ("first", "second"))]
    for one in found:
        cleanup.callback(one.relay.stop)
    return found


@pytest.fixture
def before(mysql_pair, proxima, tmp_path):
    """Starts a proxy before a cluster of these nodes."""

    def start(*nodes, workers=1, **galera):
        return proxima(clustered(tmp_path, mysql_pair, nodes, galera=galera or True, workers=workers))

    return start


def ask(proxy, name, kind):
    """A client of this kind does its statement. Returns the numbers of errors in the reply."""
    with Connection(proxy.address, schema=name) as client:
        for statement in BEFORE[kind]:
            assert numbers(client.query(statement)) == [], statement
        text = STATEMENTS.get(kind, USUAL)
        if kind not in COMMANDS:
            return numbers(client.query(text))
        # What was prepared before is answered from what is known.
        reply = client.ask(PREPARE, f"{text} -- {next(COUNT)}")
        if failed := numbers(reply):
            return failed
        number = struct.unpack_from("<I", reply, 5)[0]
        return numbers(client.ask(EXECUTE, struct.pack("<IBI", number, 0, 1)))


@pytest.mark.parametrize(("retries", "answers"), [(0, ANSWERS), (2, CONFLICTS)], ids=["usual", "conflicts"])
def test_each_kind_of_statement_is_given_to_the_writer_as_often_as_its_answer_allows(
    before, says, name, retries, answers
):
    """All answers to all kinds of statements, of a writer whose status says that all is well."""
    proxy = before(says[0], conflict_retries=retries)
    wrong = []
    for answer, kind in itertools.product(sorted(answers), BEFORE):
        expected = times(answer, kind, retries)
        for count in (1,) if expected == 1 else (1, MOST + 1):
            says[0].begin(ANSWERS[answer], count, kind)
            found = ask(proxy, name, kind)
            came = min(expected, count + 1)
            is_well = came > count
            number = 2013 if ANSWERS[answer] is None else ANSWERS[answer][0]
            if (says[0].came, found) != (came, [] if is_well else [number]):
                wrong.append(f"{answer}, {kind}, {count} times: it came {says[0].came} times, {found}")
    assert not wrong, "\n".join(wrong)


def test_what_was_given_to_a_server_again_is_counted_by_the_reason(before, says, name):
    proxy = before(*says, conflict_retries=1)
    with connect(proxy.address, database=name) as client:
        until(lambda: value(client, "SELECT name FROM who") == "second", "the second server is read")

        def counted():
            found = proxy.metrics()["proxima_pool_retries_total"]
            return {labels["reason"]: count for labels, count in found if count}

        known = counted()
        for place, answer, text, reason in [
            (0, REJECTS, USUAL, "rejected"),
            (0, ANSWERS["deadlock"], USUAL, "conflict"),
            (1, ANSWERS["only reads"], "SELECT 'marked' FROM who", "writes"),
            (1, ANSWERS["no user"], "SELECT 'marked' FROM who", "behind"),
            (1, None, "SELECT 'marked' FROM who", "lost"),
        ]:
            says[place].begin(answer, 1)
            assert error(client, text) is None
            known[reason] = known.get(reason, 0) + 1
            # A reader whose connection has ended may be asked for its connection again.
            assert {**counted(), "unsent": 0} == {**known, "unsent": 0}, reason


def test_what_may_have_been_written_is_said_to_be_in_doubt(before, says, name):
    proxy = before(says[0])
    with connect(proxy.address, database=name) as client:
        says[0].begin(None, 1)
        try:
            rows(client, USUAL)
        except Exception as caught:
            number, text = caught.args
        assert number == 2013 and text.endswith("its outcome is not known"), text
        assert says[0].came == 1
        # Its session goes on.
        assert error(client, USUAL) is None
        assert value(client, "SELECT COUNT(*) FROM t WHERE b = 'marked'") == 1


@pytest.mark.parametrize(
    ("node_says", "answer"),
    [
        ({"wsrep_ready": "OFF", "wsrep_local_state": "6"}, REJECTS),
        ({"wsrep_reject_queries": "ALL"}, REJECTS),
        ({"read_only": "ON"}, TAKES_NO_WRITES),
    ],
    ids=["not ready", "rejects queries", "read only"],
)
def test_what_a_writer_has_rejected_runs_at_the_next_one(before, mysql_pair, says, name, node_says, answer):
    """Its status says so a little later than its errors do."""
    proxy = before(*says, workers=2)
    first, second = says

    def done(client):
        return [value(client, "SELECT @@autocommit"), error(client, USUAL)]

    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(connect(proxy.address, database=name)) for _ in range(6)]
        until(lambda: value(clients[0], "SELECT name FROM who") == "second", "the second server is read")
        for client in clients:
            assert done(client) == [1, None]
        first.begin(answer, 1_000_000)
        first.node_says.update(node_says)
        assert [done(client) for client in clients] == [[1, None]] * 6
        assert [done(client) for client in clients] == [[1, None]] * 6
    count = f"SELECT COUNT(*) FROM {name}.t WHERE b = 'marked'"
    found = []
    for server in mysql_pair:
        with connect(server.address) as direct:
            found.append(value(direct, count))
    assert found == [6, 12], "nothing is lost, and nothing twice"
    assert second.came == 12


def test_a_read_waits_until_it_is_known_whether_the_writer_still_serves(before, says, name):
    """No reader has all that it must see, and the writer rejects it without having said what is wrong."""
    proxy = before(*says, consistency="causal", read_age="60s")
    first, second = says
    with connect(proxy.address, database=name) as client, ThreadPoolExecutor(1) as threads:
        until(lambda: value(client, "SELECT name FROM who") == "second", "the second server is read")
        second.late.add(BARRIER)
        rows(client, "INSERT INTO t (a) VALUES (1)")
        assert value(client, "SELECT name FROM who") == "first"
        first.late.add(STATUS)
        first.begin(REJECTS, 1_000_000)
        reading = threads.submit(error, client, "SELECT 'marked' FROM who")
        until(lambda: first.came, "the writer has rejected it")
        # The time in which it would be rejected as often as its client is told of.
        time.sleep(0.5)
        first.begin(None, 0)
        first.late.clear()
        assert reading.result() is None
        assert first.came == 1, "it was asked again when its status said that it serves"
        second.late.clear()


@pytest.mark.parametrize(("ready", "writer"), [("ON", "first"), ("OFF", "second")], ids=["donor", "joiner"])
def test_a_donor_that_catches_up_stays_the_writer_and_a_server_that_joins_does_not(
    before, says, name, ready, writer
):
    """Both are in state 3 before they are synced again, and only the donor is ready."""
    proxy = before(*says, donors="serve")
    first, _ = says
    with connect(proxy.address, database=name) as client:
        until(lambda: value(client, "SELECT name FROM who") == "second", "the second server is read")
        assert value(client, "SELECT name FROM who FOR UPDATE") == "first"
        changes = proxy.log().count("the writer has changed")
        first.node_says.update({"wsrep_local_state": "3", "wsrep_ready": ready})
        asked = sum(STATUS in packet for packet in first.relay.log)
        until(lambda: sum(STATUS in packet for packet in first.relay.log) > asked + 2, "it has told so")
        until(lambda: value(client, "SELECT name FROM who FOR UPDATE") == writer, f"the {writer} writes")
        assert (proxy.log().count("the writer has changed") > changes) == (writer == "second")


def test_a_client_whose_routine_says_that_its_server_serves_no_longer_holds_up_nobody_else(
    before, says, name
):
    proxy = before(says[0])
    first = says[0]
    with connect(proxy.address, database=name) as lies, connect(proxy.address, database=name) as other:
        held = "pool_wait_duration_seconds_count"
        assert error(other, "INSERT INTO t (a) VALUES (1)") is None
        waited = proxy.metric(held, pool="db")
        first.begin(REJECTS, 1_000_000)
        for _ in range(5):
            assert error(lies, USUAL) == 1047
            assert error(other, "INSERT INTO t (a) VALUES (1)") is None
        # Only those wait that have had such an error.
        assert proxy.metric(held, pool="db") <= waited + 5 * (MOST - 1)
        assert value(other, "SELECT name FROM who FOR UPDATE") == "first", "it stays the writer"
        assert "it serves no longer" not in proxy.log()


@pytest.mark.parametrize("retries", [0, 1])
def test_a_statement_that_a_deadlock_has_rolled_back_runs_again_if_that_is_asked_for(
    before, says, name, retries
):
    proxy = before(says[0], conflict_retries=retries)
    with contextlib.ExitStack() as stack:
        holds, other = [stack.enter_context(connect(proxy.address, database=name)) for _ in range(2)]
        threads = stack.enter_context(ThreadPoolExecutor(1))
        rows(holds, "INSERT INTO t (id, a) VALUES (1, 0), (2, 0)")
        rows(holds, "BEGIN")
        # The server rolls back the one that has changed less.
        rows(holds, "INSERT INTO t (a) SELECT seq FROM seq_1_to_100")
        rows(holds, "UPDATE t SET a = a + 10 WHERE id = 2")
        asked = threads.submit(error, other, "UPDATE t SET a = a + 1 WHERE id < 3 ORDER BY id")
        waits = "SELECT COUNT(*) FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT'"
        with connect(says[0].real.address) as direct:
            until(lambda: value(direct, waits) > 0, "it has the first row, and waits for the second")
        rows(holds, "UPDATE t SET a = a + 100 WHERE id = 1")
        rows(holds, "COMMIT")
        assert asked.result() == (None if retries else 1213)
        found = rows(holds, "SELECT a FROM t WHERE id < 3 ORDER BY id FOR UPDATE")
        assert found == ([(101,), (11,)] if retries else [(100,), (10,)])


def test_what_a_statement_had_locked_that_lies_about_its_server_is_free_when_it_is_rolled_back(
    before, says, name
):
    """Without autocommit each try has begun a transaction, of which nothing tells."""
    proxy = before(says[0])
    locks = "SELECT id FROM t WHERE id = 1 FOR UPDATE NOWAIT"
    with (
        connect(proxy.address, database=name) as client,
        connect(says[0].real.address, database=name) as direct,
    ):
        rows(client, "INSERT INTO t (id, a) VALUES (1, 0)")
        rows(client, "SET autocommit = 0")
        assert error(client, "SELECT lies(id) FROM t WHERE id = 1 FOR UPDATE") == 1047
        assert error(direct, locks) == 1205, "the last try is the client's own transaction, as at a server"
        rows(client, "ROLLBACK")
        assert error(direct, locks) is None, "no other try has left one"
        assert value(client, "SELECT @@autocommit") == 0
