"""What operators see of pools of MySQL servers whose roles the routes say."""

import contextlib
import functools
import json
import time
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import quote

import pytest

from harness import mysql_raw as raw
from harness import until
from harness.split import Split, error, made, rows, runs, schema, users_of, value, wait_for_members

pytestmark = pytest.mark.either_io


def table(text):
    """The rows of a table by their first words."""
    return {line.split()[0]: line.split() for line in text.splitlines() if line}


def test_mysql_show_prints_each_pool_with_its_servers(splitting, command):
    with splitting.connect() as client:
        client.query("BEGIN")
        shown = command("mysql", "show", "--admin", splitting.proxy.admin)
    assert shown.returncode == 0, shown
    assert "pool readers: its members have no roles" in shown.stdout
    rows = table(shown.stdout)
    _, role, since, up, connections, in_use, _, queued, waiting = rows[splitting.writer.address]
    assert (role, since, up, in_use, queued, waiting) == ("-", "-", "yes", "1", "0", "0")
    assert int(connections) >= 1

    as_json = json.loads(command("mysql", "show", "--json", "--admin", splitting.proxy.admin).stdout)
    assert [pool["name"] for pool in as_json["pools"]] == ["readers", "writer"]
    assert not any(pool["has_roles"] for pool in as_json["pools"])


def test_mysql_show_says_so_where_there_is_no_such_pool(embedded, command):
    proxy = embedded()
    shown = command("mysql", "show", "--admin", proxy.admin)
    assert (shown.returncode, shown.stdout) == (1, "")
    assert "no pool has `protocol: mysql`" in shown.stderr


SPLITS, ONLY_READS, AT_WRITER = range(3)
"""The listeners of `splitting`."""

NOTHING = "keeps no connection, unless a function or procedure changes the session"
FOR_GOOD = "keeps its connection until the session ends: "
TRANSACTION = "keeps its connection until the transaction ends: a transaction begins"


def explained(proxy, sql, listener=SPLITS):
    """What /explain says of a statement: its lines."""
    status, text = proxy.http(f"/explain?sql={quote(sql)}&listener={listener}")
    assert status == 200, text
    return [line.strip() for line in text.splitlines()]


@pytest.mark.parametrize(
    "sql, listener, class_, way, keeps, server",
    [
        ("SELECT 'secret'", SPLITS, "read", "it goes where reads go", NOTHING, "reader"),
        ("SELECT 1 FOR UPDATE", SPLITS, "locking-read", "it goes where writes go", NOTHING, "writer"),
        ("UPDATE t SET a = 'secret'", SPLITS, "write", "it goes where writes go", NOTHING, "writer"),
        ("SELECT 1; SELECT 2", SPLITS, "read, several statements", "several", NOTHING, "writer"),
        ("SHOW TABLES", SPLITS, "read", "at a reader it would wait for no write", NOTHING, "writer"),
        ("SELECT 1", AT_WRITER, "read", "the listener reads there", NOTHING, "writer"),
        ("/* proxima: member=writer */ SELECT 1", SPLITS, "read", "its hint says so", NOTHING, "writer"),
        ("/* proxima: member=reader */ SHOW TABLES", SPLITS, "", "where reads go", NOTHING, "reader"),
        ("BEGIN", SPLITS, "transaction", "it goes where writes go", TRANSACTION, "writer"),
        ("BEGIN", ONLY_READS, "transaction", "the listener rejects writes", TRANSACTION, "reader"),
        ("COMMIT", SPLITS, "transaction", "it goes where writes go", NOTHING, "writer"),
        ("SET autocommit = 0", SPLITS, "session", "writes go", "without autocommit", "writer"),
        ("SET TRANSACTION READ ONLY", SPLITS, "session", "writes go", "the next transaction", "writer"),
        ("SET @x = 'secret'", SPLITS, "session", "writes go", f"{FOR_GOOD}user variables", "writer"),
        ("SET timestamp = 1", SPLITS, "session", "writes go", f"{FOR_GOOD}a variable", "writer"),
        ("SET CHARACTER SET latin1", SPLITS, "session", "writes go", f"{FOR_GOOD}a collation", "writer"),
        ("CREATE TEMPORARY TABLE a (b INT)", SPLITS, "ddl", "writes", f"{FOR_GOOD}temporary", "writer"),
        ("DO GET_LOCK('secret', 1)", SPLITS, "", "writes go", f"{FOR_GOOD}locks by name", "writer"),
        ("COMMIT RELEASE", SPLITS, "transaction", "writes", f"{FOR_GOOD}the session ends", "writer"),
    ],
)
def test_explain_says_what_a_statement_does_and_where_it_goes(
    splitting, sql, listener, class_, way, keeps, server
):
    title, *lines = explained(splitting.proxy, sql, listener)
    assert title.startswith("statement (configuration ")
    first, second, third, *walk = lines
    assert first.startswith(f"class {class_}") and way in second and keeps in third, lines
    assert walk[-1].startswith(f"member {getattr(splitting, server).address} "), lines
    assert "secret" not in "".join(lines) and "secret" not in splitting.proxy.log()


def test_explain_says_what_is_answered_by_the_proxy(splitting):
    assert "answered here: error 1290" in explained(splitting.proxy, "DELETE FROM t", ONLY_READS)
    assert "answered here: it ends what another connection does" in explained(splitting.proxy, "KILL 7")


def test_what_is_not_read_is_unknown(splitting):
    lines = explained(splitting.proxy, "SELECT '" + "a" * 40_000 + "\\")
    assert lines[1].startswith("class unknown"), lines


def test_the_command_explains_a_statement_by_a_file(splitting, command, tmp_path):
    (tmp_path / "p.yaml").write_text(splitting.proxy.http("/config")[1])
    told = command("explain", "--sql", "SELECT 1", "--config", str(tmp_path / "p.yaml"))
    assert told.returncode == 0, told
    assert told.stdout.count("class read") == 3 and told.stdout.count("listener 127.0.0.1") == 3
    large = "SELECT " + "1" * 66_000
    told = command("explain", "--sql", large, "--config", str(tmp_path / "p.yaml"))
    assert "class unknown, the text is longer than 64 KiB and not read" in told.stdout
    assert f"member {splitting.writer.address} " in told.stdout
    told = command("explain", "--sql", "SELECT 1")
    assert told.returncode == 1 and "memcached has no statements" in told.stderr


def test_explain_knows_what_holds_for_a_user(mysql_pair, proxima, tmp_path):
    users = {"app": {"password": "a"}, "batch": {"password": "a", "consistency": "eventual"}}
    proxy = proxima(made(tmp_path, *mysql_pair, users=users))
    for user, server in zip(users, mysql_pair):
        status, text = proxy.http(f"/explain?sql=SHOW+TABLES&user={user}")
        assert status == 200 and f"member {server.address} " in text, text


def test_explain_takes_a_key_or_a_statement(splitting):
    for query in "key=a&sql=b", "sql=a&command=get", "":
        status, text = splitting.proxy.http(f"/explain?{query}")
        assert status == 400 and "which key?" in text
    assert splitting.proxy.http("/explain?key=a")[0] == 400


@pytest.mark.parametrize(
    "statements, state",
    [
        (["SELECT 1"], "free"),
        (["SET NAMES latin1", "INSERT INTO t (a) VALUES (1)"], "free"),
        (["BEGIN"], "transaction"),
        (["SET autocommit = 0"], "free"),
        (["SET autocommit = 0", "SELECT COUNT(*) FROM t"], "transaction"),
        (["SET autocommit = 0", "SELECT 1", "ROLLBACK"], "free"),
        (["BEGIN", "COMMIT"], "free"),
        (["SET TRANSACTION READ ONLY"], "next_transaction"),
        (["SET @x = 1"], "user_variables"),
        (["SET @x = 1", "BEGIN"], "user_variables"),
        (["CREATE TEMPORARY TABLE a (b INT)"], "temporary_tables"),
        (["SELECT GET_LOCK('test_of_sessions', 0)"], "named_locks"),
        (["LOCK TABLES t READ"], "table_locks"),
        (["HANDLER t OPEN"], "handlers"),
        (["PREPARE p FROM 'SELECT 1'"], "sql_prepare"),
        (["SELECT SQL_CALC_FOUND_ROWS 1"], "free"),
        (["SELECT LAST_INSERT_ID(7)"], "result"),
        (["SET timestamp = 1"], "variable"),
        (["SET CHARACTER SET latin1"], "collation"),
        (["SELECT sets()"], "state"),
    ],
)
def test_metrics_tell_what_binds_a_session(splitting, statements, state):
    with schema(splitting.writer, splitting.reader) as name:
        for server in splitting.writer, splitting.reader:
            server.run(
                f"USE {name}",
                "CREATE TABLE t (a INT)",
                "CREATE FUNCTION sets() RETURNS INT BEGIN SET @x = 1; RETURN 1; END",
            )
        metric = functools.partial(splitting.proxy.metric, "sessions", protocol="mysql")
        until(lambda: metric() == 0, "no other session is left")
        with splitting.connect(database=name, address=splitting.at_writer) as client:
            for statement in statements:
                rows(client, statement)
            # Nothing is bound that has kept a connection for a second only.
            until(lambda: metric(state="recent") == 0, "nothing is left to be asked for")
            assert (metric(state=state), metric()) == (1, 1)


def sessions(proxy, query="", **wanted):
    """The listed sessions, by number."""
    status, text = proxy.http(f"/mysql/sessions{query}")
    assert status == 200, text
    found = {row["number"]: row for row in json.loads(text)["sessions"]}
    return {number: row for number, row in found.items() if wanted.items() <= row.items()}


def own(proxy, client):
    """The listed session of this client."""
    return sessions(proxy)[client.thread_id()]


def becomes_free(proxy, client):
    """Waits until a session keeps nothing of its last statement: drivers say something when they connect."""
    until(lambda: own(proxy, client)["state"] == "free", "it needs no connection")


@pytest.fixture
def alone(splitting):
    """The proxy, without a session of another test."""
    until(lambda: not sessions(splitting.proxy), "no session is left")
    return splitting


def test_a_session_is_listed_with_its_connection_and_why_it_has_it(alone):
    with schema(alone.writer, alone.reader) as name, alone.connect(database=name) as client:
        client.query("SET @x = 1")
        number = value(client, "SELECT CONNECTION_ID() + 0")
        first = own(alone.proxy, client)
        assert first["client"] == "{}:{}".format(*client._sock.getsockname())
        assert (first["user"], first["schema"], first["state"]) == ("app", name, "user_variables")
        has = first["connection"]
        assert (has["pool"], has["address"]) == ("writer", alone.writer.address)
        assert (has["number"], has["runs"]) == (number, False)
        assert number in dict(users_of(alone.writer))
        later = functools.partial(lambda: own(alone.proxy, client)["connection"]["seconds"])
        until(lambda: later() > has["seconds"] + 0.3, "the time goes on")
        client.query("DO 1")
        assert own(alone.proxy, client)["connection"]["seconds"] > 0.3, "it has had it all the time"


def test_a_session_without_a_connection_is_listed_with_none(alone):
    with alone.connect() as client:
        becomes_free(alone.proxy, client)
        assert own(alone.proxy, client)["connection"] is None
        rows(client, "SELECT 1")
        recent = own(alone.proxy, client)
        assert recent["state"] == "recent" and recent["connection"]["address"] == alone.reader.address
        metric = functools.partial(alone.proxy.metric, "sessions", protocol="mysql")
        assert (metric(state="recent"), metric(state="free")) == (1, 0)
        becomes_free(alone.proxy, client)
        assert own(alone.proxy, client)["connection"] is None
        assert (metric(state="recent"), metric(state="free")) == (0, 1)


def test_a_statement_that_runs_is_said_to_run_and_not_shown(alone):
    with alone.connect() as client, ThreadPoolExecutor(1) as thread:
        running = thread.submit(error, client, "SELECT SLEEP(30) AS nobody_reads_this")
        until(lambda: runs(alone.reader, "nobody_reads_this"), "it runs")
        text = alone.proxy.http("/mysql/sessions")[1]
        [row] = json.loads(text)["sessions"]
        assert row["connection"]["runs"] and row["number"] == client.thread_id()
        assert row["connection"]["number"] in dict(users_of(alone.reader))
        assert "nobody_reads_this" not in text and "SLEEP" not in text
        with alone.connect() as other:
            other.query(f"KILL QUERY {row['number']}")
        assert running.result() == 1317
        assert not own(alone.proxy, client)["connection"]["runs"]


def test_each_of_many_sessions_is_listed_once(narrow):
    with contextlib.ExitStack() as clients:
        for _ in range(600):
            clients.enter_context(raw.Connection(narrow.address))
        until(lambda: len(sessions(narrow.proxy)) == 600, "all have logged in")
        _, text = narrow.proxy.http("/mysql/sessions?state=free")
        numbers = [row["number"] for row in json.loads(text)["sessions"]]
        assert len(numbers) == 600 and numbers == sorted(set(numbers))


def test_sessions_are_filtered_by_user_state_and_pool(alone):
    with alone.connect() as free, alone.connect() as busy, alone.connect(user="other") as other:
        busy.begin()
        other.query("SET @x = 1")
        found = functools.partial(sessions, alone.proxy)
        assert len(found()) == 3
        becomes_free(alone.proxy, free)
        assert list(found("?state=free")) == [free.thread_id()]
        assert list(found("?user=other")) == [other.thread_id()]
        assert list(found("?state=transaction&user=app")) == [busy.thread_id()]
        assert set(found("?pool=writer")) == {busy.thread_id(), other.thread_id()}
        assert found("?pool=readers") == found("?user=nobody") == found("?state=") == {}
        status, text = alone.proxy.http("/mysql/sessions?limit=1")
        assert status == 400 and "known are user, state, pool" in text


def test_mysql_sessions_prints_who_keeps_a_connection_longest_first(alone, command):
    asked = ["mysql", "sessions", "--admin", alone.proxy.admin]
    assert command(*asked).stdout == "there are no sessions\n"
    with contextlib.ExitStack() as clients:
        free, one = (clients.enter_context(alone.connect()) for _ in range(2))
        one.begin()
        other = clients.enter_context(alone.connect(user="other"))
        other.query("SET @x = 1")
        connections = [value(client, "SELECT CONNECTION_ID() + 0") for client in (one, other)]
        becomes_free(alone.proxy, free)
        head, *lines = [line.split() for line in command(*asked).stdout.splitlines()]
        assert head[:5] == ["session", "user", "client", "schema", "state"]
        numbers = [client.thread_id() for client in (one, other, free)]
        assert [int(line[0]) for line in lines[:3]] == numbers
        assert [line[1] for line in lines[:3]] == ["app", "other", "app"]
        assert [line[4] for line in lines[:3]] == ["transaction", "user_variables", "free"]
        assert [line[5:8] for line in lines[:2]] == [
            ["writer", alone.writer.address, str(number)] for number in connections
        ]
        assert lines[2][5:] == ["-", "-", "-", "-", "-"]
        assert lines[-1] == ["all", "1", "1", "1"]

        few = command(*asked, "--limit", "1").stdout.splitlines()
        assert few[1].split()[0] == str(numbers[0]) and few[2].startswith("and 2 more")
        only = command(*asked, "--user", "other", "--state", "user_variables").stdout.splitlines()
        assert [line.split()[0] for line in only] == ["session", str(numbers[1])]
        assert command(*asked, "--pool", "readers").stdout == "there are no such sessions\n"
        as_json = json.loads(command(*asked, "--json", "--user", "app").stdout)
        assert [row["number"] for row in as_json["sessions"]] == [numbers[0], numbers[2]]
        assert as_json["left_out"] == 0 and sum(as_json["workers"][0].values()) <= 3


def test_mysql_sessions_prints_sums_by_worker_and_state(alone, command):
    asked = ["mysql", "sessions", "--admin", alone.proxy.admin]
    with alone.connect() as one, alone.connect() as other, alone.connect() as free:
        one.begin()
        other.query("SET @x = 1")
        becomes_free(alone.proxy, free)
        head, *lines = [line.split() for line in command(*asked, "--sums").stdout.splitlines()]
        workers = json.loads(command(*asked, "--json").stdout)["workers"]
    states = ["free", "transaction", "user_variables"]
    assert head == ["worker", *states]
    assert lines[-1] == ["all", "1", "1", "1"]
    for number, worker in enumerate(workers):
        assert lines[number] == [str(number), *(str(worker.get(state, 0)) for state in states)]


@pytest.fixture
def narrow(mysql_pair, proxima, tmp_path):
    """A proxy with one connection to each server for all clients."""
    config = made(tmp_path, *mysql_pair, Split.LISTENERS, workers=1)
    for pool in config["pools"].values():
        pool["dedicated"] = {"max": 1, "wait": "60s"}
    proxy = proxima(config)
    wait_for_members(proxy, *mysql_pair)
    return Split(proxy, *mysql_pair)


def test_metrics_and_show_tell_of_connections_and_of_who_waits_for_one(narrow, command):
    def counts(*names):
        return tuple(narrow.proxy.metric(f"dedicated_{name}", pool="writer") for name in names)

    gauges = functools.partial(counts, "lanes", "idle_lanes", "queued")
    waits = functools.partial(counts, "wait_duration_seconds_count", "wait_duration_seconds_sum")
    assert gauges() == (0, 0, 0) and counts("opened_total") == (0,) and waits() == (0, 0)
    with ThreadPoolExecutor(1) as thread, narrow.connect() as one, narrow.connect() as other:
        one.begin()
        # They have waited for each other when they connected.
        (waited,), begun = counts("waits_total"), waits()
        assert begun[0] == waited
        waiting = thread.submit(value, other, "SELECT 7 FOR UPDATE")
        until(lambda: gauges() == (1, 0, 1), "the other one waits")
        assert counts("waits_total") == (waited + 1,) and waits() == begun
        shown = table(command("mysql", "show", "--admin", narrow.proxy.admin).stdout)
        head = ["member", "role", "since", "up", "connections", "in", "use", "idle", "queued", "waiting"]
        assert shown["member"] == [*head, "why"]
        assert shown[narrow.writer.address][1:] == ["-", "-", "yes", "1", "1", "0", "1", "0"]
        time.sleep(0.3)
        one.commit()
        assert waiting.result() == 7
        count, seconds = waits()
        assert count == waited + 1 and 0.3 < seconds - begun[1] < 30
        until(lambda: gauges() == (0, 1, 0), "nobody has it")
        shown = table(command("mysql", "show", "--admin", narrow.proxy.admin).stdout)
        assert shown[narrow.writer.address][1:] == ["-", "-", "yes", "1", "0", "1", "0", "0"]
    assert counts("opened_total") == (1,) and narrow.proxy.metric("dedicated_opened_total") <= 2


def test_a_wait_that_ends_with_its_client_is_counted(narrow):
    waits = functools.partial(narrow.proxy.metric, "dedicated_wait_duration_seconds_count", pool="writer")
    with narrow.connect() as one:
        one.begin()
        begun = waits()
        leaves = raw.Connection(narrow.address)
        leaves.write(raw.QUERY, b"SELECT 1 FOR UPDATE")
        until(lambda: narrow.proxy.metric("dedicated_queued", pool="writer") == 1, "it waits")
        assert waits() == begun
        leaves.abort()
        until(lambda: waits() == begun + 1, "it waits no more")
        assert narrow.proxy.metric("dedicated_queued", pool="writer") == 0


def test_metrics_count_what_brings_a_connection_to_the_state_of_a_session(narrow):
    def counts(pool):
        commands = "replay", "replay-schema", "replay-prepare"
        own = functools.partial(narrow.proxy.metric, "own_requests_total", pool=pool)
        return tuple(own(command=command) for command in commands)

    with narrow.connect(address=narrow.at_writer) as one, narrow.connect(address=narrow.at_writer) as other:
        rows(one, "SET sql_mode = ''")
        # What a client begins with may have been told before.
        begun = counts("writer")
        rows(other, "SELECT 1")
        assert counts("writer") == (begun[0] + 1, *begun[1:])
        rows(one, "SELECT 1")
        assert counts("writer") == (begun[0] + 2, *begun[1:])
    assert narrow.proxy.metric("own_requests_total", pool="readers") == 0
    with schema(narrow.writer, narrow.reader) as name, raw.Connection(narrow.address, schema=name) as client:
        reply = client.ask(raw.PREPARE, "SELECT 1")
        assert counts("readers")[1:] == (1, 0)
        begun = counts("writer")
        client.query("BEGIN")
        client.ask(raw.EXECUTE, reply[5:9] + bytes([0, 1, 0, 0, 0]))
        assert counts("writer")[1:] == (begun[1] + 1, begun[2] + 1)
