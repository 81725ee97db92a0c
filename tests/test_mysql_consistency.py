"""How fresh reads are: by each word a read shows at least what the word promises, wherever it goes."""

import contextlib
import json
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import quote

import pymysql
import pytest

from harness import SOAK, until
from harness.galera import rows
from harness.galera_door import WHO
from harness.judge import BENCH
from harness.proxy import environment

pytestmark = [pytest.mark.either_io, pytest.mark.timeout(300)]

READS = 400_000 if SOAK else 20_000
WORDS = ["session", "causal", "strict", "eventual"]
"""The listeners behind those of every proxy, in this order."""


BENCH_USER = ("app", "secret")
"""The user of `proxima-bench`, with its password."""


PATIENT = {"read_wait": "20s", "read_age": "60s"}
"""With these a read finds a reader, however busy the machine is."""


def with_words(cluster, before, **keys):
    """A proxy with a listener for each word, and these keys of `galera`."""
    name, password = BENCH_USER
    cluster.nodes[0].run(
        "CREATE DATABASE IF NOT EXISTS proxima_bench",
        f"CREATE USER IF NOT EXISTS {name} IDENTIFIED BY '{password}'",
        f"GRANT ALL ON proxima_bench.* TO {name}",
    )
    listeners = [{"consistency": word} for word in WORDS]
    return before(cluster, listeners=listeners, users=[BENCH_USER], galera=keys or True)


@pytest.fixture
def fresh(galera, before):
    return with_words(galera, before)


@pytest.fixture
def patient(galera, before):
    return with_words(galera, before, **PATIENT)


BEHIND = [
    ["/* proxima: member=writer */ SELECT a FROM t"],
    ["SELECT a FROM t FOR UPDATE"],
    ["BEGIN", "SELECT a FROM t"],
]
"""Ways to read at the writer, each with the statements for it."""


def listener(word):
    return 4 + WORDS.index(word)


def judging(door, word, *options):
    """A run of `proxima-bench stale` through the listener with this word."""
    address = door.proxy.addresses[listener(word)]
    command = [BENCH, "stale", "--protocol", "mysql", "--write", address, "--quiet", "--json", "-", *options]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment()
    )


def report(run):
    """What it has seen."""
    out, error = run.communicate()
    assert run.returncode in (0, 1), out + error
    return json.loads(out)


NEVER = ["foreign_replies", "wrong", "lost_acknowledged_writes", "writes_applied_twice", "unread_keys"]
"""What is counted of faults that no word allows."""


def faults(said, *more):
    """Those that a report has, with these counts of it as well."""
    return {name: said[name] for name in [*NEVER, *more] if said[name]}


@pytest.mark.parametrize("word", ["session", "causal", "strict"])
def test_a_session_reads_what_it_has_written(fresh, word):
    with fresh.connect(listener(word)) as client:
        for value in range(1, READS // 40):
            client.query(f"UPDATE t SET a = {value}")
            assert rows(client, "SELECT a FROM t") == ((value,),)


@pytest.mark.parametrize("word", ["causal", "strict"])
def test_a_session_reads_what_another_one_was_told_to_have_written(fresh, word):
    """Applications keep pools of connections: what one has written is read on another."""
    with fresh.connect(listener(word)) as writer, fresh.connect(listener(word)) as reader:
        for value in range(1, READS // 40):
            writer.query(f"UPDATE t SET a = {value}")
            assert rows(reader, "SELECT a FROM t") == ((value,),)


@pytest.mark.parametrize("word", ["session", "causal"])
@pytest.mark.parametrize("begins", ["INSERT", "CREATE", "CALL", "transaction", "prepared"])
def test_every_way_to_write_is_seen(fresh, word, begins):
    with fresh.connect(listener(word)) as client:
        client.query("CREATE PROCEDURE adds(x INT) INSERT INTO t VALUES (x, x)")
        for number in range(2, 102):
            match begins:
                case "INSERT":
                    client.query(f"INSERT INTO t VALUES ({number}, {number})")
                case "CREATE":
                    client.query(f"CREATE TABLE t{number} (a INT)")
                    assert rows(client, f"SELECT COUNT(*) FROM t{number}") == ((0,),)
                    assert len(rows(client, f"SHOW TABLES LIKE 't{number}'")) == 1
                    continue
                case "CALL":
                    client.query(f"CALL adds({number})")
                case "transaction":
                    client.begin()
                    client.query(f"INSERT INTO t VALUES ({number}, {number})")
                    client.commit()
                case "prepared":
                    client.query(f"PREPARE p FROM 'INSERT INTO t VALUES ({number}, {number})'")
                    client.query("EXECUTE p")
                    client.query("DEALLOCATE PREPARE p")
            assert rows(client, f"SELECT a FROM t WHERE id = {number}") == ((number,),)


def test_a_write_is_seen_as_soon_as_a_part_of_its_reply_has_come(fresh):
    """A procedure writes, and then sends more than is passed on at once."""
    with fresh.connect(listener("causal")) as writer, fresh.connect(listener("causal")) as reader:
        shows = "SELECT REPEAT('x', 1000) FROM seq_1_to_1000"
        writer.query(f"CREATE PROCEDURE sets(x INT) BEGIN UPDATE t SET a = x; {shows}; END")
        for value in range(1, READS // 200):
            with writer.cursor(pymysql.cursors.SSCursor) as cursor:
                cursor.execute(f"CALL sets({value})")
                assert len(cursor.fetchone()[0]) == 1000
                assert rows(reader, "SELECT a FROM t") == ((value,),)


@pytest.mark.parametrize("way", ["pool", "hint"])
def test_a_word_counts_however_it_is_said(galera, before, way):
    door = before(galera, galera={"consistency": "causal" if way == "pool" else "strict", **PATIENT})
    hint = "/* proxima: consistency=causal */ " if way == "hint" else ""
    counted = door.proxy.metric("pool_reads_total", pool="db", role="reader")
    with door.connect() as client:
        for value in range(1, 10):
            client.query(f"UPDATE t SET a = {value}")
            assert rows(client, f"{hint}SELECT a FROM t") == ((value,),)
    assert door.proxy.metric("pool_reads_total", pool="db", role="reader") >= counted + 9
    said = door.proxy.http(f"/explain?listener=0&sql={quote(f'{hint}SELECT a FROM t')}")[1]
    assert "a reader with all writes of this process: `causal`" in said


def test_a_session_keeps_to_its_reader_and_new_ones_are_shared_out(patient):
    names = set()
    for _ in range(20):
        with patient.connect(listener("session")) as client:
            served = {rows(client, WHO)[0][0] for _ in range(10)}
            assert len(served) == 1
            names |= served
    assert len(names) == 2 and patient.writer() not in names


def test_what_a_session_has_read_at_the_writer_no_reader_lacks(fresh):
    with fresh.connect(listener("session")) as writer, fresh.connect(listener("session")) as reader:
        for value in range(1, READS // 40):
            writer.query(f"UPDATE t SET a = {value}")
            assert rows(reader, "/* proxima: member=writer */ SELECT a FROM t") == ((value,),)
            assert rows(reader, "SELECT a FROM t") == ((value,),)


@pytest.mark.parametrize("statements", BEHIND, ids=["read", "locking read", "transaction"])
def test_what_a_reader_has_shown_the_writer_shows_as_well(galera_alone, before, statements):
    """Galera orders a write before any server has it, so that a reader may have it first."""
    door = with_words(galera_alone, before, donors="serve", **PATIENT)
    writer = door.writer()
    [written] = [node for node in galera_alone.nodes if node.name == writer]
    another = next(node for node in galera_alone.nodes if node is not written)

    def is_asked():
        under_way = "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE USER = %s AND INFO IS NOT NULL"
        with written.connect() as direct, direct.cursor() as cursor:
            cursor.execute(under_way, (door.account.name,))
            return cursor.fetchone()[0] > 0

    def asks(client):
        return [rows(client, statement) for statement in statements][-1]

    with door.connect(listener("session")) as client, ThreadPoolExecutor(1) as threads:
        with written.held_back():
            another.run(f"UPDATE {door.account.name}.t SET a = 1")
            until(lambda: rows(client, "SELECT a FROM t") == ((1,),), "a reader shows it")
            reading = threads.submit(asks, client)
            until(lambda: reading.done() or is_asked(), "the writer is asked")
        assert reading.result() == ((1,),)


def test_a_reader_that_lags_is_not_asked_for_what_it_lacks(galera_alone, before):
    """Readers that take no write for a time: what must be fresh is read at the writer, and what need not be
    is no older than it may."""
    door = with_words(galera_alone, before)
    writer = door.writer()
    with contextlib.ExitStack() as stack:
        clients = {word: stack.enter_context(door.connect(listener(word))) for word in WORDS}
        for client in clients.values():
            assert rows(client, "SELECT a FROM t") == ((0,),)
        with contextlib.ExitStack() as held:
            for node in galera_alone.nodes:
                if node.name != writer:
                    held.enter_context(node.held_back())
            clients["session"].query("UPDATE t SET a = 1")
            for word in ("session", "causal"):
                assert rows(clients[word], "SELECT a FROM t") == ((1,),), word
            # It may be old for as long as it may be, and for no longer.
            until(lambda: rows(clients["eventual"], "SELECT a FROM t") == ((1,),), "it is read")
            served = door.proxy.metric("pool_reads_total", pool="db", role="writer")
            assert served >= 3
    assert door.proxy.metric("pool_reads_total", pool="db", role="reader") >= 3


def test_a_session_says_itself_how_fresh_its_reads_are(patient):
    """A statement that shows tables goes to a reader by every word but `strict`."""
    with patient.connect() as client:

        def counted():
            return patient.proxy.metric("pool_reads_total", pool="db", role="reader")

        def is_kept_fresh():
            before = counted()
            client.query("SHOW TABLES")
            return counted() > before

        assert not is_kept_fresh()
        for word in ("'session'", "CAUSAL", '"eventual"'):
            client.query(f"SET @proxima_consistency = {word}")
            assert is_kept_fresh(), word
        client.query("SET @proxima_consistency = DEFAULT")
        assert not is_kept_fresh()
        for statement, code in [
            ("SET @proxima_consistency = 'soon'", 1231),
            ("SET @proxima_consistency = 'strict', @a = 1", 1105),
        ]:
            with pytest.raises(pymysql.err.MySQLError) as caught:
                client.query(statement)
            assert caught.value.args[0] == code
        sessions = json.loads(patient.proxy.http("/mysql/sessions")[1])
        assert {one["state"] for one in sessions["sessions"]} <= {"free", "recent"}


@pytest.mark.parametrize("word, readers", [*((word, 32) for word in WORDS), ("causal", 4)])
def test_the_checker_finds_no_read_that_is_older_than_promised(fresh, word, readers):
    """Writers and readers have connections of their own: of writes `session` promises nothing here."""
    options = [
        "--writers",
        "4",
        "--readers",
        str(readers),
        "--keys",
        "100",
        "--pause",
        "0s",
        "--timeout",
        "30s",
    ]
    reads = 0
    while reads < READS // 2:
        said = report(judging(fresh, word, *options, "--duration", "2s"))
        reads += said["hits"] + said["misses"]
        assert (said["refused_reads"], said["lost_reads"], said["lost_writes"]) == (0, 0, 0), said
        assert word == "eventual" or said["backward_reads"] == 0, said
        assert faults(said) == {}, f"{said}"
        if word in ("causal", "strict"):
            assert said["stale_reads"] == 0, said
        elif said["stale_reads"]:
            # What is read has been waited for within the last second.
            assert said["stale_age_seconds"]["max"] <= 1, said


@pytest.mark.parametrize(
    "word, protocol, connections, place",
    [
        ("session", "mysql", "same", "rows"),
        ("session", "mysql-prepared", "same", "rows"),
        ("session", "mysql", "same", "tables"),
        ("causal", "mysql", "pool", "tables"),
        ("causal", "mysql-prepared", "pool", "rows"),
        ("strict", "mysql", "pool", "rows"),
    ],
)
def test_the_checker_finds_no_fault_by_any_connection_or_statement(fresh, word, protocol, connections, place):
    options = ["--protocol", protocol, "--connections", connections, "--as", place]
    options += ["--keys", "8", "--pause", "0s", "--timeout", "30s"]
    said = report(judging(fresh, word, *options, "--duration", "60s" if SOAK else "1s"))
    found = faults(said, "stale_reads", "backward_reads", "misses", "lost_reads", "lost_writes")
    if (connections, place) == ("pool", "tables"):
        # A server whose SHOW gives way to the DDL of another client runs it again, and begins the reply anew
        # behind what it has sent of it: one of some thousand.
        assert found.pop("wrong", 0) <= 1 + said["hits"] // 100, said
    assert found == {}, f"{said}"
    assert said["hits"] > 0


@pytest.mark.parametrize("fault", ["writer killed", "reader frozen"])
def test_no_fault_makes_a_causal_read_stale(galera_alone, before, fault):
    """A server that was frozen and has woken says for some seconds that all is well."""
    door = with_words(galera_alone, before)
    writer = door.writer()
    [written] = [node for node in galera_alone.nodes if node.name == writer]
    read = next(node for node in galera_alone.nodes if node is not written)
    run = judging(door, "causal", "--pause", "1ms", "--timeout", "30s", "--duration", "20s")

    def reads():
        return door.proxy.metric("pool_reads_total", pool="db", role="reader")

    until(lambda: reads() > 1000, "it reads")
    match fault:
        case "writer killed":
            written.kill()
            until(lambda: door.writer() != writer, "another one writes")
        case "reader frozen":
            read.freeze()
            time.sleep(8)
            read.thaw()
    said = report(run)
    galera_alone.repair()
    assert faults(said, "stale_reads", "backward_reads") == {}, f"{said}"
    assert said["acknowledged_writes"] > 0
