"""What a Galera cluster does when its servers lie, refuse and lose: relays in front of servers that are no
cluster say how they are, so that it shows which of them has taken a statement."""

import contextlib
import struct
import threading
import time

import pymysql
import pytest

from harness import mysql_raw as raw
from harness import until
from harness.mysql_between import Between, Losing, galera
from harness.mysql_between import error as error_packet
from harness.mysql_raw import DEPRECATE_EOF, EXECUTE, PLAIN, PREPARE, SESSION_TRACK, Connection
from harness.split import clustered, connect, error, rows, telling, value

pytestmark = pytest.mark.either_io

WHO = "SELECT name FROM who"
WRITER = WHO + " FOR UPDATE"

FAR_BEHIND = {"wsrep_local_state": "1"}
"""What a node says that takes part in nothing yet."""


@pytest.fixture
def name(mysql_pair):
    """A schema with a table that tells which of the two servers answers."""
    objects = (
        "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, a INT)",
        "CREATE FUNCTION sets() RETURNS INT BEGIN SET @x = 'secret'; RETURN 1; END",
        "CREATE FUNCTION writes() RETURNS INT BEGIN INSERT INTO t (a) VALUES (9); RETURN 1; END",
    )
    with telling(mysql_pair, ("first", "second"), *objects) as name:
        yield name


@pytest.fixture
def before(mysql_pair, proxima, tmp_path, cleanup):
    """Starts a proxy before a cluster of these nodes, with one listener that has these keys."""

    def start(*nodes, **keys):
        for node in nodes:
            cleanup.callback(node.stop)
        return proxima(clustered(tmp_path, mysql_pair, nodes, **keys))

    return start


@pytest.fixture
def healthy(mysql_pair):
    """Makes a relay for each of the two servers, which are both well, and answer all else by `answer`."""

    def make(answer=lambda packet: None):
        return [
            Between(server.address, galera(node, answer))
            for server, node in zip(mysql_pair, ("first", "second"))
        ]

    return make


def wait_for_reader(client):
    """Waits until reads go to the second server."""
    until(lambda: value(client, WHO) == "second", "the second server is read")


def written(server, name):
    with connect(server.address, database=name) as direct:
        return rows(direct, "SELECT a FROM t")


def test_the_first_server_that_is_well_takes_the_writes(before, healthy, name):
    for _ in range(5):
        proxy = before(*healthy())
        with connect(proxy.address, database=name) as client:
            assert value(client, WRITER) == "first"
        proxy.stop()


def test_a_write_that_a_read_hides_is_at_the_writer_and_no_reader_takes_it(before, healthy, mysql_pair, name):
    proxy = before(*healthy())
    with connect(proxy.address, database=name) as client:
        wait_for_reader(client)
        assert value(client, "SELECT writes()") == 1
        # The text is the same, and so is where it ends up.
        assert value(client, "SELECT writes()") == 1
        assert value(client, WHO) == "second"
    assert written(mysql_pair[1], name) == []
    assert written(mysql_pair[0], name) == [(9,), (9,)]


@pytest.mark.parametrize(
    "keys", [{}, {"writer_reads": True, "consistency": "eventual"}], ids=["alone", "beside"]
)
def test_a_read_at_the_writer_may_change_its_session(before, healthy, name, keys):
    """It is not run again, as there is no other server that could, and the session keeps what it has set."""
    nodes = healthy()[: 2 if keys else 1]
    proxy = before(*nodes, galera=keys or True)
    with connect(proxy.address, database=name) as client:
        for _ in range(6):
            assert value(client, "SELECT sets()") == 1
            assert value(client, "SELECT @x") == "secret"
            rows(client, "SET @x = NULL")


@pytest.mark.parametrize("alone", [False, True], ids=["with-a-reader", "alone"])
def test_a_write_that_a_read_hides_is_not_run_again_when_its_reply_is_lost(before, mysql_pair, name, alone):
    first, second = mysql_pair
    losing = Losing(first.address, b"writes()", galera("first"))
    proxy = before(losing, *([] if alone else [Between(second.address, galera("second"))]))
    with connect(proxy.address, database=name) as client:
        if not alone:
            wait_for_reader(client)
            assert value(client, WRITER) == "first"
        assert error(client, "SELECT writes()") is not None
        assert value(client, WHO) == ("first" if alone else "second")
    assert losing.runs == 1
    assert written(second, name) == []


def test_where_writes_are_rejected_what_a_transaction_has_lost_is_not_run_elsewhere(before, mysql_pair, name):
    nodes = [Losing(server.address, b"lost", galera(server.address)) for server in mysql_pair]
    proxy = before(*nodes, writes="rejected")
    with connect(proxy.address, database=name) as client:
        rows(client, "BEGIN")
        assert value(client, WHO) in ("first", "second")
        assert error(client, "SELECT 'lost'") is not None
    assert sum(node.runs for node in nodes) == 1


def test_a_writer_that_is_no_member_any_more_gives_way_to_one_that_serves(before, mysql_pair, name):
    first, second = mysql_pair
    behind = Between(first.address, galera("behind", **FAR_BEHIND))
    able = [Between(second.address, galera(node)) for node in ("one", "another")]
    proxy = before(behind, *able)
    with connect(proxy.address, database=name) as client:
        assert value(client, WRITER) == "second"

    def has_written(node):
        return any(WRITER.encode() in packet for packet in node.log)

    writer, other = sorted(able, key=has_written, reverse=True)
    assert not has_written(other)
    proxy.config["pools"]["db"]["servers"] = [node.address for node in (behind, other)]
    proxy.write(proxy.config)
    assert proxy.reload()[0] == 200

    def write():
        with contextlib.suppress(pymysql.err.MySQLError), connect(proxy.address, database=name) as client:
            # The server that is behind takes no writes at any time.
            assert value(client, WRITER) == "second"

    until(lambda: write() or has_written(other), "the other server takes the writes")
    before_it = len(writer.log)
    write()
    assert not any(WRITER.encode() in packet for packet in writer.log[before_it:])


def test_a_user_whose_logins_are_refused_moves_no_writes_of_others(before, healthy, name):
    refused = []

    def answer(packet):
        if b"other\0" in packet and b"mysql_native_password" in packet:
            refused.append(packet)
            return error_packet(1226, "User 'other' has exceeded the 'max_user_connections' resource", 2)

    proxy = before(*healthy(answer))
    ends = threading.Event()

    def come_again():
        while not ends.is_set():
            with contextlib.suppress(pymysql.err.MySQLError):
                with connect(proxy.address, "other") as client:
                    error(client, "SELECT 1 FROM DUAL FOR UPDATE")

    with connect(proxy.address, database=name) as client:
        wait_for_reader(client)
        assert value(client, WRITER) == "first"
        thread = threading.Thread(target=come_again)
        thread.start()
        try:
            seen = set()
            until(lambda: seen.add(value(client, WRITER)) or len(refused) > 20, "many logins are refused")
        finally:
            ends.set()
            thread.join()
        assert seen == {"first"}


@pytest.mark.parametrize("capabilities", [PLAIN, PLAIN | DEPRECATE_EOF | SESSION_TRACK])
@pytest.mark.parametrize(
    "text", ["SELECT sets(); SELECT 'second result'", "SELECT REPEAT('x', 100000); SELECT writes()"]
)
def test_a_text_of_several_reads_that_do_more_has_its_own_results_alone(
    before, healthy, mysql_pair, name, text, capabilities
):
    """What the first result does, or the second one behind a large one, shows when it has been done."""
    proxy = before(*healthy())
    with Connection(proxy.address, schema=name, capabilities=capabilities) as client:
        until(lambda: b"second" in client.query(WHO), "the second server is read")
        client.query(text)
        for place in range(3):
            reply = client.query(f"SELECT 'answer {place}'")
            assert f"answer {place}".encode() in reply, raw.shown(reply)
    assert written(mysql_pair[1], name) == []


@pytest.mark.parametrize(
    "capabilities", [PLAIN, PLAIN | DEPRECATE_EOF, PLAIN | DEPRECATE_EOF | SESSION_TRACK]
)
def test_a_statement_that_was_prepared_in_another_schema_has_one_whole_reply(
    before, healthy, name, capabilities
):
    """Its server goes to that schema and back, and says that something has changed, without saying what."""
    proxy = before(*healthy(), galera={"consistency": "eventual"})
    with Connection(proxy.address, capabilities=capabilities) as client:
        number = struct.unpack_from("<I", client.ask(PREPARE, f"SELECT name FROM {name}.who"), 5)[0]
        execute = struct.pack("<IBI", number, 0, 1)
        until(lambda: b"second" in client.ask(EXECUTE, execute), "the second server is read")
        assert client.query(f"USE {name}")[4] == 0
        for place in range(3):
            reply = client.ask(EXECUTE, execute)
            assert b"second" in reply or b"first" in reply, raw.shown(reply)
            reply = client.query(f"SELECT 'answer {place}'")
            assert f"answer {place}".encode() in reply, raw.shown(reply)


class Changing:
    """What a node says of itself, until it says something else."""

    def __init__(self, server, name):
        self.says = {}
        self.node = Between(server.address, lambda packet: galera(name, **self.says)(packet))


@pytest.mark.parametrize(
    "says",
    [{"read_only": "ON"}, {"wsrep_reject_queries": "ALL"}, {"wsrep_local_state": "1"}],
    ids=lambda says: next(iter(says)),
)
def test_a_transaction_at_a_former_writer_ends_before_another_server_takes_writes(
    before, mysql_pair, name, says
):
    first, second = (Changing(server, node) for server, node in zip(mysql_pair, ("first", "second")))
    proxy = before(first.node, second.node, workers=3)

    def writer():
        # What runs at the former writer when its connections end has an error.
        with contextlib.suppress(pymysql.err.MySQLError), connect(proxy.address, database=name) as other:
            return value(other, WRITER)

    with contextlib.ExitStack() as stack:
        # Some at each worker.
        clients = [stack.enter_context(connect(proxy.address, database=name)) for _ in range(9)]
        assert writer() == "first"
        for client in clients:
            rows(client, "BEGIN")
            rows(client, "INSERT INTO t (a) VALUES (1)")
        first.says.update(says)
        until(lambda: writer() == "second", "another server takes writes")
        for client in clients:
            assert error(client, "COMMIT") is not None
        # They hold no locks any more, and nothing of them is there.
        assert written(mysql_pair[0], name) == []
    with connect(proxy.address, database=name) as other:
        rows(other, "INSERT INTO t (a) VALUES (2)")
    assert (written(mysql_pair[0], name), written(mysql_pair[1], name)) == ([], [(2,)])


@pytest.mark.parametrize(
    ("number", "text", "is_asked"),
    [
        (1047, "WSREP has not yet prepared node for application use", True),
        (1053, "Server shutdown in progress", True),
        (1290, "The server is running with the --read-only option", True),
        (1047, "Unknown command", False),
        (1064, "no SQL", False),
    ],
)
def test_a_server_is_asked_at_once_when_an_error_says_that_it_serves_no_longer(
    before, healthy, name, number, text, is_asked
):
    """A function may raise the same error: its status decides, and it stays what it is."""

    def answer(packet):
        return error_packet(number, text) if b"'fails'" in packet else None

    first, second = healthy(answer)
    proxy = before(first, second)

    def asked():
        return sum(b"wsrep_ready" in packet for packet in first.log)

    with connect(proxy.address, database=name) as client:
        assert value(client, WRITER) == "first"
        count, begun = asked(), time.monotonic()
        for _ in range(40):
            assert error(client, "SELECT 'fails' FOR UPDATE") == number
            time.sleep(0.05)
        usual = (time.monotonic() - begun) / 0.25 + 2
        assert (asked() - count > 1.5 * usual) == is_asked
        assert value(client, WRITER) == "first"


class Silent:
    """A node that answers nothing more once it is asked for `WHEN`."""

    WHEN = b"'silent'"

    def __init__(self, server, name):
        self._says, self._ended = galera(name), threading.Event()
        self.is_silent = False
        self.node = Between(server.address, self._answer)

    def _answer(self, packet):
        self.is_silent |= self.WHEN in packet
        if self.is_silent:
            self._ended.wait()
        return self._says(packet)

    def end(self):
        self._ended.set()


def test_a_read_at_a_server_that_falls_silent_is_answered_by_another(before, mysql_pair, name, cleanup):
    silent = Silent(mysql_pair[1], "second")
    cleanup.callback(silent.end)
    proxy = before(Between(mysql_pair[0].address, galera("first")), silent.node, timeout="1s")
    with connect(proxy.address, database=name) as client:
        wait_for_reader(client)
        assert value(client, f"{WHO} WHERE 'silent' <> ''") == "first"
        assert silent.is_silent


@pytest.mark.parametrize("pause", [0, 0.5], ids=["all-the-time", "now-and-then"])
def test_a_server_that_is_late_with_its_status_and_answers_clients_serves_on(
    before, mysql_pair, name, cleanup, pause
):
    ended, is_late = threading.Event(), threading.Event()
    cleanup.callback(ended.set)
    says, asked = galera("second"), []

    def answer(packet):
        if is_late.is_set() and b"SHOW GLOBAL STATUS" in packet:
            asked.append(packet)
            ended.wait()
        return says(packet)

    first, second = mysql_pair
    nodes = Between(first.address, galera("first")), Between(second.address, answer)
    proxy = before(*nodes, timeout="1s")
    with connect(proxy.address, database=name) as client:
        wait_for_reader(client)
        is_late.set()
        while len(asked) < 4:
            assert value(client, WHO) == "second"
            # It is asked other questions meanwhile, which it answers.
            time.sleep(pause)


@pytest.mark.parametrize(
    ("listener", "expected"),
    [({}, "eventual"), ({"consistency": "strict"}, "strict")],
    ids=["pool", "listener"],
)
def test_a_pool_says_how_fresh_reads_are_where_the_listener_says_nothing(
    before, healthy, mysql_pair, name, listener, expected
):
    mysql_pair[1].run(f"CREATE TABLE {name}.only_here (id INT)")
    proxy = before(*healthy(), galera={"consistency": "eventual"}, **listener)
    with connect(proxy.address, database=name) as client:
        wait_for_reader(client)
        found = rows(client, "SHOW TABLES LIKE 'only_here'")
        assert found == ([("only_here",)] if expected == "eventual" else [])


def test_a_server_of_another_cluster_than_the_writers_is_not_read(before, mysql_pair, name):
    """It says that all is well, and its barriers succeed: it has what its own cluster has."""
    first, second = mysql_pair
    says = {"wsrep_cluster_state_uuid": "one"}
    nodes = [Between(first.address, galera("first", wsrep_cluster_state_uuid="one"))]
    nodes += [Between(second.address, lambda packet: galera("second", **says)(packet))]
    proxy = before(*nodes)
    with connect(proxy.address, database=name) as client:
        wait_for_reader(client)
        says["wsrep_cluster_state_uuid"] = "another"
        until(lambda: proxy.member(nodes[1].address)["role"] == "out", "it is out")
        assert "another cluster" in proxy.member(nodes[1].address)["role_why"]
        assert proxy.metric("member_out", member=nodes[1].address, reason="other_cluster") == 1
        assert {value(client, WHO) for _ in range(10)} == {"first"}
        says["wsrep_cluster_state_uuid"] = "one"
        wait_for_reader(client)
