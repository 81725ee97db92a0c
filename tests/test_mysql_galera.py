"""A Galera cluster through the proxy: one server takes writes, the others serve reads, none of them stale."""

import collections
import ssl
import time

import pymysql
import pytest

from harness import TRIES, ports, until
from harness.galera import rows
from harness.galera_door import WHO, another, clients

pytestmark = [pytest.mark.either_io, pytest.mark.timeout(300)]

ROUNDS = 15 * TRIES


def unverified():
    """TLS with whoever answers."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def load(door):
    """Clients that write all the time. None of them sees an error."""
    with door.connect() as client:
        client.query("CREATE TABLE loaded (id INT PRIMARY KEY AUTO_INCREMENT, text TEXT)")
    inserts = "INSERT INTO loaded (text) VALUES (REPEAT('x', 1000))"
    return clients(door, lambda client, number, turn: client.query(inserts), 3)


def test_a_user_is_served_as_soon_as_the_writer_knows_it(galera, before):
    """Readers hear of a user later: until then they reject its login, and the writer answers its reads."""
    door = before(galera)
    writer = next(node for node in galera.nodes if node.name == door.writer())
    schema = galera.account.name
    with load(door):
        for turn in range(2 * TRIES):
            name = f"{schema}_{turn}"
            writer.run(f"CREATE USER {name} IDENTIFIED BY 'new'", f"GRANT SELECT ON {schema}.* TO {name}")
            with door.connect(3, user=name, password="new", ssl=unverified()) as client:
                for _ in range(3):
                    assert rows(client, "SELECT a FROM t WHERE id = 1") == ((0,),), name
            writer.run(f"DROP USER {name}")


@pytest.mark.parametrize("lacks", ["DROP USER {0}", "REVOKE SELECT ON {0}.* FROM {0}", "DROP DATABASE {0}"])
def test_what_readers_have_not_heard_of_is_served_by_the_writer(galera, before, lacks):
    door = before(galera)
    name = f"{galera.account.name}_late"
    writer = next(node for node in galera.nodes if node.name == door.writer())
    readers = [node for node in galera.nodes if node is not writer]
    writer.run(f"CREATE DATABASE {name}", f"CREATE TABLE {name}.t AS SELECT 7 AS a")
    writer.run(f"CREATE USER {name} IDENTIFIED BY 'new'", f"GRANT SELECT ON {name}.* TO {name}")
    try:
        for node in readers:
            assert node.barrier()
            node.run("SET SESSION wsrep_on = OFF", lacks.format(name))
        options = {"user": name, "password": "new", "database": name, "ssl": unverified()}
        with door.connect(3, **options) as client:
            for _ in range(5):
                assert rows(client, "SELECT a FROM t") == ((7,),)
    finally:
        for node in readers:
            node.run(
                "SET SESSION wsrep_on = OFF",
                f"CREATE USER IF NOT EXISTS {name} IDENTIFIED BY 'new'",
                f"CREATE DATABASE IF NOT EXISTS {name}",
            )
        writer.run(f"DROP USER {name}", f"DROP DATABASE {name}")


def test_writes_go_to_one_server_and_reads_are_shared_out_among_the_others(galera, before):
    door = before(galera)
    writer = door.writer()
    served = collections.Counter()
    with door.connect() as client:
        for _ in range(ROUNDS):
            served[rows(client, WHO)[0][0]] += 1
        assert rows(client, f"{WHO} LOCK IN SHARE MODE")[0][0] == writer
        client.begin()
        assert rows(client, WHO)[0][0] == writer
        client.rollback()
    names = {node.name for node in galera.nodes}
    assert set(served) == names - {writer}
    for count in served.values():
        assert abs(count - ROUNDS / 2) <= ROUNDS / 20, served


def test_no_read_is_stale(galera, before):
    door = before(galera)
    with load(door), door.connect() as writer, door.connect() as reader:
        for value in range(ROUNDS):
            writer.query(f"UPDATE t SET a = {value}")
            assert rows(reader, "SELECT a FROM t") == ((value,),)


def test_a_hint_that_asks_for_it_makes_a_read_fresh_where_others_may_be_old(galera, before):
    door = before(galera)
    with load(door), door.connect() as writer, door.connect(2) as reader:
        for value in range(ROUNDS):
            writer.query(f"UPDATE t SET a = {value}")
            assert rows(reader, "/* proxima: consistency=strict */ SELECT a FROM t") == ((value,),)


def test_a_read_that_turns_out_to_write_runs_at_the_writer(galera, before):
    door = before(galera)
    with door.connect() as client:
        writes = "RETURNS INT BEGIN INSERT INTO t (a) VALUES (7); RETURN ROW_COUNT(); END"
        client.query(f"CREATE FUNCTION writes() {writes}")
        client.query(
            "CREATE FUNCTION where_it_writes() RETURNS VARCHAR(20) BEGIN "
            "INSERT INTO t (a) VALUES (8); RETURN @@wsrep_node_name; END"
        )
        assert rows(client, "SELECT writes()") == ((1,),)
        assert rows(client, "SELECT COUNT(*) FROM t WHERE a = 7") == ((1,),)
        for _ in range(10):
            assert rows(client, "SELECT where_it_writes()") == ((door.writer(),),)
    with door.connect(1) as client:
        with pytest.raises(pymysql.err.MySQLError) as caught:
            rows(client, "SELECT writes()")
        assert caught.value.args[0] == 1290
        assert rows(client, "SELECT COUNT(*) FROM t WHERE a = 7") == ((1,),)


def test_the_address_for_reads_leads_to_readers_alone(galera, before):
    door = before(galera)
    writer = door.writer()
    with door.connect(1) as client:
        for _ in range(10):
            assert rows(client, WHO)[0][0] != writer
        client.begin()
        assert rows(client, WHO)[0][0] != writer
        with pytest.raises(pymysql.err.MySQLError) as caught:
            client.query("INSERT INTO t (a) VALUES (1)")
        assert caught.value.args[0] == 1290
        assert rows(client, "SELECT id FROM t") == ((1,),)


def test_a_donor_or_a_server_that_rejects_queries_serves_no_reads(galera_alone, before):
    door = before(galera_alone)
    writer = door.writer()
    readers = [node for node in galera_alone.nodes if node.name != writer]
    for statement, undo in [
        ("SET GLOBAL wsrep_reject_queries = 'ALL'", "SET GLOBAL wsrep_reject_queries = 'NONE'"),
        ("SET GLOBAL wsrep_desync = ON", "SET GLOBAL wsrep_desync = OFF"),
    ]:
        readers[0].run(statement)
        until(lambda: {door.who() for _ in range(10)} == {readers[1].name}, "it is left out")
        with readers[0].connect() as direct:
            direct.query(undo)
        until(
            lambda: {door.who() for _ in range(10)} == {reader.name for reader in readers}, "it serves again"
        )


def test_writes_go_on_at_another_server_when_the_writer_is_killed(galera_alone, before):
    # The one that comes back may be brought up to date by the writer, which is not to hand the writes on.
    door = before(galera_alone, galera={"donors": "serve"})
    writer = door.writer()
    [killed] = [node for node in galera_alone.nodes if node.name == writer]
    with door.connect() as client, door.connect() as bound:
        client.query("UPDATE t SET a = 1")
        bound.begin()
        bound.query("INSERT INTO t (a) VALUES (5)")
        killed.kill()
        client.query("UPDATE t SET a = a + 1")
        with pytest.raises(pymysql.err.MySQLError):
            bound.commit()
        assert rows(client, "SELECT a FROM t") == ((2,),)
    after = door.writer()
    assert after != writer
    galera_alone.repair()
    until(lambda: writer in {door.who() for _ in range(10)}, "it serves reads")
    assert door.writer() == after


def test_a_server_that_is_no_member_any_more_is_never_the_writer(galera_alone, before):
    """It was well when a reload removed it, and comes first by name."""
    door = before(galera_alone)
    writer = door.writer()
    killed, removed, left = sorted(galera_alone.nodes, key=lambda node: (node.name != writer, node.name))
    servers = door.proxy.config["pools"]["db"]["servers"]
    servers.remove(removed.address)
    door.proxy.write(door.proxy.config)
    assert door.proxy.reload()[0] == 200
    with door.connect() as client:
        client.query("UPDATE t SET a = 1")
        killed.kill()
        client.query("UPDATE t SET a = a + 1")
        assert rows(client, "SELECT a FROM t") == ((2,),)
    assert door.writer() == left.name


@pytest.mark.parametrize("removed", ["writer", "all but a reader"])
def test_a_writer_that_is_no_member_any_more_is_followed(galera, before, removed):
    door = before(galera)
    writer = door.writer()
    [former] = [node.address for node in galera.nodes if node.name == writer]
    servers = door.proxy.config["pools"]["db"]["servers"]
    with door.connect() as client, door.connect() as bound:
        bound.begin()
        bound.query("UPDATE t SET a = 7")
        servers.remove(former)
        if removed != "writer":
            servers.pop()
        door.proxy.write(door.proxy.config)
        assert door.proxy.reload()[0] == 200
        # What was under way there has ended, so that it does not hold up what follows.
        client.query("UPDATE t SET a = a + 1")
        with pytest.raises(pymysql.err.MySQLError):
            bound.commit()
        assert rows(client, "SELECT a FROM t") == ((1,),)
    assert door.writer() != writer


def roles(door, cluster):
    """What `/members` says of each server: its role, and why it is out."""
    rows = [(node.name, door.proxy.member(node.address)) for node in cluster.nodes]
    return {name: (row["role"], row.get("role_why")) for name, row in rows}


def test_members_have_a_role_and_say_why_they_are_out(galera_alone, before):
    door = before(galera_alone)
    names = {node.name: node for node in galera_alone.nodes}
    writer = door.writer()
    serving = {name: ("writer" if name == writer else "reader", None) for name in names}
    until(lambda: roles(door, galera_alone) == serving, "all of them serve")
    out = names[next(name for name in names if name != writer)]
    labels = {"pool": "db", "member": out.address}
    assert door.proxy.metric("member_role", **labels, role="reader") == 1
    assert door.proxy.metric("member_out") == 0

    out.run("SET GLOBAL wsrep_reject_queries = 'ALL'")
    expected = {**serving, out.name: ("out", "it rejects queries")}
    until(lambda: roles(door, galera_alone) == expected, "one is out")
    since = door.proxy.member(out.address)["role_since"]
    assert since < door.proxy.member(names[writer].address)["role_since"]
    assert door.proxy.metric("member_role", **labels, role="reader") == 0
    assert door.proxy.metric("member_role", **labels, role="out") == 1
    assert door.proxy.metric("member_out", **labels, reason="rejects_queries") == 1
    assert door.proxy.metric("member_role", role="writer") == 1
    with out.connect() as direct:
        direct.query("SET GLOBAL wsrep_reject_queries = 'NONE'")
    until(lambda: roles(door, galera_alone) == serving, "it serves again")


def test_a_server_that_takes_no_writes_tells_how_far_behind_it_is(galera, before):
    door = before(galera)
    writer = next(node for node in galera.nodes if node.name == door.writer())
    late = next(node for node in galera.nodes if node is not writer)

    def told(node):
        [member] = [member for member in door.members() if member["address"] == node.address]
        return member.get("position"), member.get("unapplied")

    def are_current():
        return all(told(node) == (int(node.status("last_committed")), 0) for node in galera.nodes)

    table = f"{galera.account.name}.counted"
    writer.run(f"CREATE TABLE {table} (a INT PRIMARY KEY)")
    until(are_current, "all have told what they have")
    with late.held_back():
        writer.run(*(f"INSERT INTO {table} VALUES ({number})" for number in range(5)))
        until(lambda: (told(late)[1] or 0) > 0, "it has writes that it does not show")
        until(lambda: told(writer)[0] >= told(late)[0] + 4, "the writer is ahead of it")
    until(are_current, "it has caught up")


def test_a_member_that_cannot_be_asked_is_out_and_says_why(galera, before, command):
    nobody = ports.address()
    door = before(galera, servers=[*(node.address for node in galera.nodes), nobody])
    until(lambda: door.proxy.metric("member_out", member=nobody, reason="failed") == 1, "it is out")
    row = door.proxy.member(nobody)
    assert row["role"] == "out" and "refused" in row["role_why"]
    assert door.proxy.metric("member_role", role="out") == 1

    writer = door.writer()
    names = {node.address: node.name for node in galera.nodes}
    shown = command("mysql", "show", "--admin", door.proxy.admin).stdout
    first, *lines = shown.splitlines()
    assert names[first.removeprefix("pool db: writer ")] == writer
    found = {line.split()[0]: line for line in lines if line}
    for address, name in names.items():
        assert ("writer" if name == writer else "reader") in found[address].split(), found[address]
    assert "out" in found[nobody].split() and "refused" in found[nobody]


def test_a_writer_by_order_is_shown_as_the_writer(galera, before):
    door = before(galera)
    writer = door.writer()
    other = next(node for node in galera.nodes if node.name != writer)
    ordered = f"/orders/writer?pool=db&member={other.address}"
    assert door.proxy.http(ordered, method="POST")[0] == 200
    found = roles(door, galera)
    assert found[other.name] == ("writer", None) and found[writer] == ("reader", None)
    assert door.proxy.http(ordered.split("&")[0], method="DELETE")[0] == 200
    assert roles(door, galera)[other.name] == ("writer", None), "it stays where it is"


def test_explain_names_the_writer_and_a_reader(galera, before):
    door = before(galera)
    names = {node.address: node.name for node in galera.nodes}
    writer = door.writer()
    for sql, role, is_writer in [("SELECT+1", "a reader", False), ("DELETE+FROM+t", "the writer", True)]:
        status, text = door.proxy.http(f"/explain?sql={sql}")
        assert status == 200 and f"assigned: {role} of pool db" in text, text
        member = text.split("member ")[1].split()[0]
        assert (names[member] == writer) is is_writer, text


def test_the_writer_stays_when_settings_of_the_pool_change(galera, before):
    """And so do transactions that are open there, while the new settings hold."""
    last = sorted(node.name for node in galera.nodes)[-1]
    door = before(galera, galera={"writer": [last]})
    assert door.writer() == last
    with door.connect() as client, door.connect(2) as reader:
        client.begin()
        client.query("UPDATE t SET a = 5")
        # Nothing is proved within a microsecond, so that no reader is asked any more.
        door.proxy.config["pools"]["db"]["galera"] = {"read_age": "1us"}
        door.proxy.write(door.proxy.config)
        assert door.proxy.reload()[0] == 200
        assert door.writer() == last
        until(lambda: rows(reader, WHO)[0][0] == last, "the new settings hold")
        client.commit()
        assert rows(client, "SELECT a FROM t") == ((5,),)
    assert door.writer() == last


def test_statements_that_wait_for_their_pool_are_counted_with_their_time(galera, before):
    door = before(galera)
    counted = {
        name: door.proxy.metric(f"pool_wait_duration_seconds_{name}", pool="db") for name in ("count", "sum")
    }
    with door.connect() as client:
        assert door.proxy.http("/orders/hold?pool=db&for=500ms", method="POST")[0] == 200
        client.query("INSERT INTO t (a) VALUES (5)")
    until(
        lambda: door.proxy.metric("pool_wait_duration_seconds_count", pool="db") == counted["count"] + 1,
        "it is counted",
    )
    assert door.proxy.metric("pool_wait_duration_seconds_sum", pool="db") >= counted["sum"] + 0.1


def test_a_reader_that_has_waited_in_vain_serves_nobody_until_it_has_caught_up(galera_alone, before):
    door = before(galera_alone)
    held = next(node for node in galera_alone.nodes if node.name != door.writer())

    def member():
        return door.proxy.member(held.address)

    usual = "repl.causal_read_timeout=PT30S"
    held.run("SET GLOBAL wsrep_provider_options = 'repl.causal_read_timeout=PT1S'")
    try:
        with held.connect() as holding, door.connect() as client:
            holding.query(f"FLUSH TABLES {galera_alone.account.name}.t FOR EXPORT")
            client.query("UPDATE t SET a = 1")
            until(lambda: member()["role"] == "out", "it waits in vain")
            assert "not yet waited" in member()["role_why"]
            for value in range(2, 20):
                client.query(f"UPDATE t SET a = {value}")
                assert rows(client, "SELECT a FROM t") == ((value,),)
            holding.query("UNLOCK TABLES")
            until(lambda: member()["role"] == "reader", "it has caught up")
    finally:
        held.run(f"SET GLOBAL wsrep_provider_options = '{usual}'")


@pytest.mark.parametrize(
    ("begin", "end"),
    [
        (None, None),
        ("SET GLOBAL wsrep_reject_queries = 'ALL'", "SET GLOBAL wsrep_reject_queries = 'NONE'"),
        ("SET GLOBAL read_only = ON", "SET GLOBAL read_only = OFF"),
    ],
    ids=["is stopped", "rejects queries", "becomes read-only"],
)
def test_a_writer_that_serves_no_longer_is_not_seen_outside_of_transactions(galera_alone, before, begin, end):
    door = before(galera_alone)
    writer = door.writer()
    [node] = [node for node in galera_alone.nodes if node.name == writer]
    with door.connect() as client:
        client.query("CREATE TABLE pairs (client INT, turn INT, half INT)")

    in_doubt = []

    def inserts(client, number, turn):
        # All of them at once would take the processors from other tests.
        time.sleep(0.005)
        try:
            client.query(f"INSERT INTO pairs VALUES ({number}, {turn}, 0), ({number}, {turn}, 1)")
        except pymysql.err.MySQLError as error:
            # It has left its cluster in the midst of a commit.
            assert error.args[0] == 1180 and begin is None, error
            in_doubt.append((number, turn))
            return number, turn
        count = f"SELECT COUNT(*) FROM pairs WHERE client = {number} AND turn = {turn}"
        assert rows(client, count) == ((2,),)
        return number, turn

    def more():
        already = len(done)
        until(lambda: len(done) > already + 100, "they go on")

    with clients(door, inserts, 8) as done:
        more()
        with node.connect() as direct:
            if begin:
                direct.query(begin)
            else:
                node.stop()
            more()
            if end:
                direct.query(end)
            more()
    assert door.writer() != writer
    with door.connect() as client:
        stored = rows(client, "SELECT client, turn FROM pairs")
    told = [one for one in done if one not in in_doubt]
    known = [row for row in stored if row not in in_doubt]
    assert sorted(known) == sorted(2 * told), "acknowledged is stored, and nothing twice"
    assert all(stored.count(one) in (0, 2) for one in in_doubt)
    # One that stops may reject nothing: it closes its connections soon behind that it has left its cluster.
    if begin:
        assert door.proxy.metric("pool_retries_total", pool="db", reason="rejected") > 0


@pytest.mark.parametrize("failback", ["500ms", "never"])
def test_writes_go_back_to_the_server_that_is_named_first(galera_alone, before, proxima, tmp_path, failback):
    """So two proxies of which one alone was told to leave it have one writer again."""
    first = sorted(galera_alone.nodes, key=lambda node: node.name)[1]
    settings = {"writer": [first.name], "failback": failback}
    doors = [before(galera_alone, galera=settings), another(proxima, tmp_path, galera_alone, galera=settings)]
    assert [door.writer() for door in doors] == [first.name] * 2
    [_, to] = sorted((node for node in galera_alone.nodes if node is not first), key=lambda node: node.name)

    def inserts(client, number, turn):
        time.sleep(0.005)
        client.query("INSERT INTO t (a) VALUES (1)")

    with clients(doors[0], inserts, 4) as done:
        ordered = f"/orders/writer?pool=db&member={to.address}"
        assert doors[0].proxy.http(ordered, method="POST")[0] == 200
        assert [door.writer() for door in doors] == [to.name, first.name]
        assert doors[0].proxy.http(ordered.split("&")[0], method="DELETE")[0] == 200
        if failback == "never":
            already = len(done)
            until(lambda: len(done) > already + 500, "they go on")
            assert doors[0].writer() == to.name
        else:
            until(lambda: doors[0].writer() == first.name, "writes have gone back")
    with doors[0].connect() as client:
        assert rows(client, "SELECT COUNT(*) FROM t WHERE a = 1") == ((len(done),),)
