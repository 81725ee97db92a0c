"""What operators see of pools of MySQL servers whose roles the routes say."""

import functools
import json
from urllib.parse import quote

import pytest

from harness import until
from harness.split import made, rows, schema

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
    head = rows["member"]
    assert head == ["member", "role", "since", "up", "connections", "in", "use", "waiting", "why"]
    _, role, since, up, connections, in_use, waiting = rows[splitting.writer.address]
    assert (role, since, up, in_use, waiting) == ("-", "-", "yes", "1", "0")
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
            assert (metric(state=state), metric()) == (1, 1)


def test_mysql_sessions_prints_them_by_worker_and_state(splitting, command):
    asked = ["mysql", "sessions", "--admin", splitting.proxy.admin]
    until(lambda: command(*asked).stdout == "there are no sessions\n", "no session is left")
    with splitting.connect() as one, splitting.connect() as other, splitting.connect() as free:
        one.begin()
        other.query("SET @x = 1")
        free.query("SELECT 1")
        head, *lines = [line.split() for line in command(*asked).stdout.splitlines()]
        workers = json.loads(command(*asked, "--json").stdout)["workers"]
    states = ["free", "transaction", "user_variables"]
    assert head == ["worker", *states]
    assert lines[-1] == ["all", "1", "1", "1"]
    for number, worker in enumerate(workers):
        assert lines[number] == [str(number), *(str(worker.get(state, 0)) for state in states)]
