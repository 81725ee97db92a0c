"""What a Galera cluster does that the proxy relies on, without a proxy. A server that does otherwise shows
here."""

import contextlib
import threading
from concurrent.futures import ThreadPoolExecutor

import pymysql
import pytest

from harness import SOAK, TRIES, until
from harness.galera import rows

REJECTED = 1792
"""The number of the error that a session which only reads has for every write."""

NOT_READY = 1047
"""The number of the error of a server that is no member of its cluster, which has done nothing. Without the
word WSREP it means that a command is unknown."""

IN_DOUBT = {0, 1180, 2006, 2013}
"""The numbers of the errors after which nobody knows whether a write was applied: that of a server which left
its cluster during a commit, and PyMySQL's for a connection that has ended."""

ROUNDS = 15 * TRIES

# The first test of a process waits until the cluster has started, and for those that are alone with it.
pytestmark = pytest.mark.timeout(300)

OBJECTS = (
    "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, a INT)",
    "CREATE SEQUENCE s NOCACHE",
    "CREATE PROCEDURE inserts() INSERT INTO t (a) VALUES (2)",
    "CREATE FUNCTION inserts() RETURNS INT BEGIN INSERT INTO t (a) VALUES (3); RETURN 1; END",
    # Which ids a server generates depends on its place in the cluster, which may change when one comes back.
    "INSERT INTO t VALUES (1, 1)",
)

WRITES = (
    "INSERT INTO t (a) VALUES (4)",
    "REPLACE INTO t VALUES (1, 4)",
    "UPDATE t SET a = 4",
    "DELETE FROM t",
    "SELECT * FROM t FOR UPDATE",
    "SELECT NEXTVAL(s)",
    "CALL inserts()",
    "SELECT inserts()",
    "CREATE TABLE u (id INT)",
    "CREATE TEMPORARY TABLE u (id INT)",
    "ALTER TABLE t ADD b INT",
    "TRUNCATE TABLE t",
    "DROP TABLE t",
    "LOCK TABLES t WRITE",
)


@contextlib.contextmanager
def load(node, account, clients=3):
    """Clients that write at a server all the time. None of them sees an error."""
    ended = threading.Event()

    def write():
        with node.connect(account) as direct:
            while not ended.is_set():
                direct.query("INSERT INTO loaded (text) VALUES (REPEAT('x', 1000))")

    node.run(f"CREATE TABLE {account.name}.loaded (id INT PRIMARY KEY AUTO_INCREMENT, text TEXT)")
    with ThreadPoolExecutor(clients) as threads:
        writing = [threads.submit(write) for _ in range(clients)]
        try:
            yield
        finally:
            ended.set()
        for client in writing:
            client.result()


def stale(writer, read):
    """How many of many reads miss what was written just before."""
    missed = 0
    for value in range(ROUNDS):
        writer.query(f"UPDATE t SET a = {value}")
        missed += read() != ((value,),)
    return missed


@pytest.fixture
def nodes(galera):
    """The servers, which have the objects of this file."""
    with galera.nodes[0].connect(galera.account) as direct:
        for text in OBJECTS:
            direct.query(text)
    for node in galera.nodes:
        assert node.barrier()
    return galera.nodes


def test_only_a_read_behind_a_barrier_sees_what_another_server_has_acknowledged(galera, nodes):
    account = galera.account
    first, second, _ = nodes
    with (
        load(first, account),
        first.connect(account) as writer,
        second.connect(account) as reader,
        second.connect(account, init_command="SET SESSION wsrep_sync_wait = 1") as waiting,
    ):

        def plain():
            return rows(reader, "SELECT a FROM t")

        def behind_barrier():
            assert rows(waiting, "SELECT 1") == ((1,),)
            return plain()

        without = stale(writer, plain)
        print(f"{without} of {ROUNDS} reads at another server were stale")
        assert stale(writer, lambda: rows(waiting, "SELECT a FROM t")) == 0
        assert stale(writer, behind_barrier) == 0


def test_a_session_that_only_reads_writes_nothing(galera, nodes):
    account = galera.account
    with nodes[1].connect(account, init_command="SET SESSION TRANSACTION READ ONLY") as reading:
        for text in WRITES:
            with pytest.raises(pymysql.err.MySQLError) as caught:
                rows(reading, text)
            assert caught.value.args[0] == REJECTED, text
            reading.rollback()
            assert rows(reading, "SELECT id, a FROM t") == ((1, 1),), text
    for node in nodes:
        assert node.barrier()
        with node.connect(account) as direct:
            assert rows(direct, "SELECT * FROM t") == ((1, 1),)
            assert rows(direct, "SHOW TABLES") == (("s",), ("t",))
            assert rows(direct, "SELECT next_not_cached_value FROM s") == ((1,),)


def test_a_user_may_log_in_at_another_server_behind_a_barrier(nodes):
    first, second, _ = nodes
    with first.connect() as direct:
        for number in range(TRIES):
            name = f"new_{number}"
            direct.query(f"CREATE USER {name} IDENTIFIED BY 'secret'")
            try:
                assert second.barrier()
                login = {"host": "127.0.0.1", "port": second.port, "user": name, "password": "secret"}
                pymysql.connect(**login).close()
            finally:
                direct.query(f"DROP USER {name}")


# These end servers of a cluster that is started for them.
ends_servers = pytest.mark.skipif(not SOAK, reason="no proxy is between, and they take half a minute")


def begin(cluster):
    """Makes a table, which all servers have then."""
    cluster.nodes[0].run(f"CREATE TABLE {cluster.account.name}.t (id INT PRIMARY KEY AUTO_INCREMENT)")
    assert cluster.nodes[-1].barrier()
    return cluster.account, *cluster.nodes


def come_back(cluster, node):
    """Starts a server that has ended, which then has what was made meanwhile."""
    node.start()
    cluster.wait_synced()
    with node.connect(cluster.account) as direct:
        assert rows(direct, "SELECT * FROM meanwhile") == ()


@pytest.mark.alone
@ends_servers
def test_a_server_that_is_asked_to_end_says_so_and_comes_back(galera_alone):
    account, first, _, third = begin(galera_alone)
    written = 0
    with (
        load(first, account),
        third.connect(account) as direct,
        pytest.raises(pymysql.err.MySQLError) as caught,
    ):
        third.terminate()
        while True:
            direct.query("INSERT INTO t () VALUES ()")
            written += 1
    number, *text = caught.value.args
    assert number in IN_DOUBT or (number == NOT_READY and "WSREP" in text[0])
    with first.connect(account) as direct:
        expected = {written, written + 1} if number in IN_DOUBT else {written}
        assert rows(direct, "SELECT COUNT(*) FROM t")[0][0] in expected
        until(lambda: not third.is_running(), "it has ended")
        direct.query("CREATE TABLE meanwhile (id INT PRIMARY KEY)")
    come_back(galera_alone, third)


@pytest.mark.alone
@ends_servers
def test_the_others_go_on_when_a_server_is_killed(galera_alone):
    account, first, second, third = begin(galera_alone)
    with third.connect(account) as direct, pytest.raises(pymysql.err.MySQLError) as caught:
        third.kill()
        direct.query("INSERT INTO t () VALUES ()")
    assert caught.value.args[0] in IN_DOUBT
    with first.connect(account) as direct:
        # It waits until the two have agreed that the third is gone.
        direct.query("CREATE TABLE meanwhile (id INT PRIMARY KEY)")
    assert second.barrier()
    assert second.status("cluster_size") == "2"
    come_back(galera_alone, third)


@pytest.mark.alone
@ends_servers
def test_only_a_barrier_tells_a_server_that_was_evicted_while_it_was_frozen(galera_alone):
    account, first, _, third = begin(galera_alone)
    third.freeze()
    first.run(f"INSERT INTO {account.name}.t VALUES (1)")
    assert first.status("cluster_size") == "2"
    third.thaw()
    with third.connect(account) as direct:
        assert rows(direct, "SELECT * FROM t") == (), "old data"
        assert [third.status(name) for name in ("ready", "local_state_comment")] == ["ON", "Synced"]
        assert third.status("cluster_size") == "3"
    assert not third.barrier()
    galera_alone.wait_synced()
    with third.connect(account) as direct:
        assert rows(direct, "SELECT * FROM t") == ((1,),)
