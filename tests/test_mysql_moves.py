"""Planned moves: another server takes the writes of a Galera cluster because an operator says so."""

import contextlib
import json
import time
from concurrent.futures import ThreadPoolExecutor

import pymysql
import pytest

from harness import SOAK, until
from harness.galera import rows
from harness.galera_door import clients

pytestmark = [pytest.mark.either_io, pytest.mark.timeout(300)]

MOVES = 100 if SOAK else 20
WRITERS = 32 if SOAK else 8


def move(door, to, **keys):
    """Orders the move to this server, and waits until it is over. Returns status and text."""
    more = "".join(f"&{key}={value}" for key, value in keys.items())
    return door.proxy.http(f"/orders/writer?pool=db&member={to.address}{more}", "POST")


def take_back(door):
    assert door.proxy.http("/orders/writer?pool=db", "DELETE")[0] == 200


def others(cluster, door):
    """The servers that take no writes, by name."""
    writer = door.writer()
    return [node for node in cluster.nodes if node.name != writer]


@pytest.fixture
def door(galera, before):
    """A proxy with a table for pairs, of which a transaction inserts both."""
    door = before(galera)
    with door.connect() as client:
        client.query("CREATE TABLE pairs (client INT, turn INT, half INT, server VARCHAR(64))")
        client.query("CREATE TABLE told (client INT, turn INT)")
        client.query("CREATE TABLE ids (id BIGINT PRIMARY KEY AUTO_INCREMENT, client INT, turn INT)")
        client.query(
            "CREATE FUNCTION tells(a INT, b INT) RETURNS INT"
            " BEGIN INSERT INTO told VALUES (a, b); RETURN b; END"
        )
    return door


def inserts_a_pair(client, number, turn):
    client.begin()
    for half in range(2):
        client.query(f"INSERT INTO pairs VALUES ({number}, {turn}, {half}, @@wsrep_node_name)")
    client.commit()
    return number, turn


def test_the_writer_moves_again_and_again_and_no_client_sees_an_error(galera, door):
    def inserts(client, number, turn):
        match number % 5:
            case 0 | 1:
                inserts_a_pair(client, number, turn)
            case 2:
                client.query(
                    f"INSERT INTO pairs VALUES ({number}, {turn}, 0, @@wsrep_node_name),"
                    f" ({number}, {turn}, 1, @@wsrep_node_name)"
                )
            case 3:
                # It goes to a reader, which rejects it, as the function writes.
                assert rows(client, f"SELECT tells({number}, {turn})") == ((turn,),)
                return number, turn
            case 4:
                # A connection stays with a client that may ask for the id, and moves all the same.
                client.begin()
                client.query(f"INSERT INTO ids (client, turn) VALUES ({number}, {turn})")
                client.commit()
                if turn % 2:
                    new = "SELECT client, turn FROM ids WHERE id = LAST_INSERT_ID()"
                    assert rows(client, new) == ((number, turn),)
                return number, turn
        assert rows(client, f"SELECT COUNT(*) FROM pairs WHERE client = {number} AND turn = {turn}") == (
            (2,),
        )
        return number, turn

    with clients(door, inserts, WRITERS) as done:
        for _ in range(MOVES):
            to = others(galera, door)[-1]
            already = len(done)
            assert move(door, to)[0] == 200
            assert door.writer() == to.name
            until(lambda: len(done) > already, "they go on")
    with door.connect() as client:
        stored = rows(client, "SELECT client, turn FROM pairs")
        told = rows(client, "SELECT client, turn FROM told")
        ids = rows(client, "SELECT client, turn FROM ids")
        apart = "SELECT COUNT(*) FROM pairs GROUP BY client, turn HAVING COUNT(DISTINCT server) > 1"
        assert rows(client, apart) == (), "no transaction has run at two servers"
    expected = sorted(one for one in done if one[0] % 5 < 3)
    assert sorted(stored) == sorted(2 * expected), "acknowledged is stored, and nothing twice"
    assert sorted(told) == sorted(one for one in done if one[0] % 5 == 3)
    assert sorted(ids) == sorted(one for one in done if one[0] % 5 == 4)
    assert "it serves no longer" not in door.proxy.log()


def test_what_is_under_way_ends_before_the_writer_moves(galera, door):
    writer = door.writer()
    to = others(galera, door)[0]
    with contextlib.ExitStack() as stack:
        client, other, reader = [stack.enter_context(door.connect()) for _ in range(3)]
        threads = stack.enter_context(ThreadPoolExecutor(2))
        client.begin()
        client.query("INSERT INTO pairs VALUES (0, 0, 0, @@wsrep_node_name)")
        moving = threads.submit(move, door, to)
        until(lambda: "writes wait" in door.proxy.log(), "it has begun")
        writing = threads.submit(other.query, "INSERT INTO pairs VALUES (1, 0, 0, @@wsrep_node_name)")
        # Reads go on, and so does the transaction.
        assert rows(reader, "SELECT a FROM t") == ((0,),)
        client.query("INSERT INTO pairs VALUES (0, 0, 1, @@wsrep_node_name)")
        assert not moving.done() and not writing.done()
        client.commit()
        assert moving.result()[0] == 200
        writing.result()
        assert door.writer() == to.name
        at = dict(rows(client, "SELECT DISTINCT client, server FROM pairs"))
    assert at == {0: writer, 1: to.name}


@pytest.mark.parametrize("keeps", ["a transaction", "a temporary table"])
def test_a_move_is_given_up_while_something_keeps_the_writer(galera, door, keeps):
    writer = door.writer()
    to = others(galera, door)[0]
    with door.connect() as client:
        if keeps == "a transaction":
            client.begin()
            client.query("INSERT INTO pairs VALUES (0, 0, 0, 'a')")
        else:
            client.query("CREATE TEMPORARY TABLE own (a INT)")
        status, text = move(door, to, within="300ms")
        assert status == 422 and "still keep connections to the writer" in text, text
        assert door.proxy.http("/orders")[1] == "[]", "the order is taken back"
        assert door.writer() == writer
        if keeps == "a transaction":
            client.commit()
        else:
            client.query("INSERT INTO own VALUES (1)")
            assert rows(client, "SELECT a FROM own") == ((1,),)
        client.query("INSERT INTO pairs VALUES (1, 0, 0, 'a')")


def test_by_force_what_is_left_ends_with_an_error_and_the_writer_moves(galera, door):
    to = others(galera, door)[0]
    with door.connect() as client:
        client.begin()
        client.query("INSERT INTO pairs VALUES (0, 0, 0, 'a')")
        assert move(door, to, within="300ms", force="yes")[0] == 200
        with pytest.raises(pymysql.err.MySQLError):
            client.query("INSERT INTO pairs VALUES (0, 0, 1, 'a')")
    assert door.writer() == to.name
    with door.connect() as client:
        assert rows(client, "SELECT * FROM pairs") == ()


def test_of_two_moves_at_once_the_second_is_rejected(galera, door):
    first, second = others(galera, door)
    with door.connect() as client, ThreadPoolExecutor(1) as threads:
        client.begin()
        client.query("INSERT INTO pairs VALUES (0, 0, 0, 'a')")
        moving = threads.submit(move, door, first)
        until(lambda: "writes wait" in door.proxy.log(), "it has begun")
        status, text = move(door, second)
        assert status == 422 and "moves to" in text and "just now" in text, text
        client.commit()
        assert moving.result()[0] == 200
    assert door.writer() == first.name


def test_of_two_orders_in_the_same_moment_one_is_rejected(galera, door):
    with door.connect() as client, ThreadPoolExecutor(2) as threads:
        client.begin()
        client.query("INSERT INTO pairs VALUES (0, 0, 0, 'a')")
        moving = {node.name: threads.submit(move, door, node) for node in others(galera, door)}
        until(lambda: any(one.done() for one in moving.values()), "one is rejected")
        client.commit()
        answers = {name: one.result() for name, one in moving.items()}
    [to] = [name for name, (status, _) in answers.items() if status == 200]
    [(status, text)] = [answer for name, answer in answers.items() if name != to]
    assert status == 422 and "just now" in text, text
    assert door.writer() == to


def test_the_order_stands_until_it_is_taken_back(galera, door):
    first, second = others(galera, door)
    assert move(door, first)[0] == 200
    assert move(door, first)[0] == 200, "it is the writer"
    assert move(door, second)[0] == 200, "the next order takes the place of that"
    assert door.writer() == second.name
    take_back(door)
    assert door.writer() == second.name, "the writer stays where it is"


def test_a_reload_in_the_middle_of_a_move_leaves_one_writer(galera, door):
    """The pool's settings change, so that its state is made anew."""
    to = others(galera, door)[0]
    with door.connect() as client, door.connect() as other, ThreadPoolExecutor(2) as threads:
        client.begin()
        client.query("INSERT INTO pairs VALUES (0, 0, 0, 'a')")
        moving = threads.submit(move, door, to)
        until(lambda: "writes wait" in door.proxy.log(), "it has begun")
        waiting = threads.submit(other.query, "INSERT INTO pairs VALUES (2, 0, 0, 'a')")
        # It waits by the state that ends.
        time.sleep(0.2)
        door.proxy.config["pools"]["db"]["galera"] = {"read_age": "3s"}
        door.proxy.write(door.proxy.config)
        assert door.proxy.reload()[0] == 200
        client.query("INSERT INTO pairs VALUES (0, 0, 1, 'a')")
        client.commit()
        waiting.result()
        assert moving.result()[0] == 200
        assert door.writer() == to.name
        client.query("INSERT INTO pairs VALUES (1, 0, 0, 'a')")
        assert len(rows(client, "SELECT * FROM pairs")) == 4


def test_what_was_held_before_a_reload_goes_to_the_writer_of_then(galera, door):
    """It waits by the state that the pool had before its settings changed."""
    to = others(galera, door)[0]
    with door.connect() as client, door.connect() as reader, ThreadPoolExecutor(1) as threads:
        # A session that has a connection goes on there.
        until(lambda: door.in_use() == 0, "no session has a connection")
        assert door.proxy.http("/orders/hold?pool=db", "POST")[0] == 200
        waiting = threads.submit(client.query, "INSERT INTO pairs VALUES (0, 0, 0, @@wsrep_node_name)")
        # It waits by the state that ends.
        time.sleep(0.2)
        door.proxy.config["pools"]["db"]["galera"] = {"read_age": "3s"}
        door.proxy.write(door.proxy.config)
        assert door.proxy.reload()[0] == 200
        assert move(door, to)[0] == 200
        assert not waiting.done()
        assert door.proxy.http("/orders/hold?pool=db", "DELETE")[0] == 200
        waiting.result()
        assert rows(reader, "SELECT server FROM pairs") == ((to.name,),)


def test_a_transaction_at_a_server_that_has_another_name_now_holds_the_move_up(galera, door):
    writer, to = door.writer(), others(galera, door)[0]
    [address] = [node.address for node in galera.nodes if node.name == writer]
    with door.connect() as client, ThreadPoolExecutor(1) as threads:
        client.begin()
        client.query("INSERT INTO pairs VALUES (0, 0, 0, @@wsrep_node_name)")
        servers = door.proxy.config["pools"]["db"]["servers"]
        renamed = [{"address": one, "name": "other"} if one == address else one for one in servers]
        door.proxy.config["pools"]["db"]["servers"] = renamed
        door.proxy.write(door.proxy.config)
        assert door.proxy.reload()[0] == 200
        until(lambda: door.proxy.member(address)["role"] == "writer", "it is known by its name")
        moving = threads.submit(move, door, to)
        until(lambda: "writes wait" in door.proxy.log(), "it has begun")
        client.query("INSERT INTO pairs VALUES (0, 0, 1, @@wsrep_node_name)")
        assert not moving.done()
        client.commit()
        assert moving.result()[0] == 200
        assert rows(client, "SELECT DISTINCT server FROM pairs") == ((writer,),)


def test_what_keeps_a_server_that_drains_is_printed(galera, door, command):
    def drain(member, *words):
        return command("mysql", "drain", "db", member, *words, "--admin", door.proxy.admin)

    # At the address for reads alone, transactions are at readers.
    with door.connect(1) as client:
        client.begin()
        assert rows(client, "SELECT a FROM t") == ((0,),)
        until(lambda: door.in_use() == 1, "nobody else has a connection")
        [at] = [row["address"] for row in door.members() if row["in_use"]]
        drained = drain(at, "--within", "300ms")
        assert drained.returncode == 1 and "still has 1 connections of sessions" in drained.stderr, drained
        [session] = [line.split() for line in drained.stderr.splitlines()[1:] if at in line]
        assert str(client.thread_id()) in session and "transaction" in session, drained
        client.commit()
    assert drain(at).returncode == 0


@pytest.mark.parametrize("drained", ["writer", "reader"])
def test_a_server_that_drains_is_left_and_no_client_sees_an_error(galera, door, drained):
    first = door.writer()
    address = next(node.address for node in galera.nodes if (node.name == first) == (drained == "writer"))
    with clients(door, inserts_a_pair, 4) as done:
        until(lambda: len(done) > 20, "they write")
        assert door.proxy.http(f"/orders/drain?pool=db&member={address}", "POST")[0] == 200
        already = len(done)
        until(lambda: len(done) > already + 20 and door.proxy.member(address)["role"] == "out", "they go on")
        assert (door.writer() == first) == (drained == "reader")
        assert door.proxy.http(f"/orders/drain?pool=db&member={address}", "DELETE")[0] == 200
    assert "it serves no longer" not in door.proxy.log()


@pytest.mark.parametrize("fault", ["to is gone", "to dies", "writer dies"])
def test_a_move_that_meets_a_fault_leaves_one_writer(galera_alone, before, fault):
    door = before(galera_alone)
    writer = door.writer()
    to, other = others(galera_alone, door)
    [written] = [node for node in galera_alone.nodes if node.name == writer]
    if fault == "to is gone":
        to.kill()
        until(lambda: door.proxy.member(to.address)["role"] == "out", "it is out")
        status, text = move(door, to)
        assert status == 422 and "cannot take writes" in text, text
        assert door.writer() == writer
    else:
        with door.connect() as client, ThreadPoolExecutor(1) as threads:
            client.begin()
            client.query("UPDATE t SET a = 1")
            moving = threads.submit(move, door, to, within="5s")
            until(lambda: "writes wait" in door.proxy.log(), "it has begun")
            if fault == "to dies":
                to.kill()
                status, text = moving.result()
                assert status == 422 and "does not serve" in text, text
                client.commit()
                assert door.proxy.http("/orders")[1] == "[]"
                assert door.writer() == writer
            else:
                written.kill()
                assert moving.result()[0] == 200, "it follows the one that has failed"
                assert door.writer() == to.name
    with door.connect() as client:
        client.query("UPDATE t SET a = 7")
        assert rows(client, "SELECT a FROM t") == ((7,),)
    galera_alone.repair()


def test_the_order_says_what_it_needs(galera, before):
    door = before(galera)
    node = galera.nodes[0]
    assert door.proxy.http("/orders/writer?pool=db", "POST") == (
        400,
        "which member? ?pool=NAME&member=NAME\n",
    )
    assert move(door, node, within="soon")[0] == 400
    assert move(door, node, force="no") == (400, "`force=no`: expected `yes`\n")


def test_the_command_line_moves_the_writer_and_drains_readers(galera, door, command):
    to, other = others(galera, door)

    def mysql(*words):
        return command("mysql", *words, "--admin", door.proxy.admin)

    moved = mysql("writer", "db", to.address)
    assert (moved.returncode, moved.stdout) == (0, f"{to.address} takes the writes of pool db\n"), moved
    assert door.writer() == to.name
    with door.connect() as client:
        client.begin()
        client.query("INSERT INTO pairs VALUES (0, 0, 0, 'a')")
        stays = mysql("writer", "db", other.address, "--within", "200ms")
        assert stays.returncode == 1 and "still keep connections to the writer" in stays.stderr, stays
        assert mysql("writer", "db", other.address, "--within", "200ms", "--force").returncode == 0
    assert door.writer() == other.name
    assert mysql("writer", "db", "--end").returncode == 0
    assert door.proxy.http("/orders")[1] == "[]"
    drained = mysql("drain", "db", to.address)
    assert (drained.returncode, drained.stdout) == (
        0,
        f"nothing is left at {to.address}: it can be stopped\n",
    )
    assert door.proxy.member(to.address)["role"] == "out"
    for state, member, code in [
        ("drained", to, 0),
        ("writer", other, 0),
        ("online", to, 1),
        ("writer", to, 1),
        ("drained", other, 1),
    ]:
        waited = mysql("show", "db", "--wait", f"{state}={member.address}", "--for", "200ms")
        assert waited.returncode == code, (state, waited)
        assert (f"pool db: writer {other.address}" in waited.stdout) == (code == 0), waited
    assert f"{other.address} does not drain" in waited.stderr
    assert mysql("undrain", "db", to.address).returncode == 0
    shown = mysql("show", "db", "--wait", f"online={to.address}", "--json")
    [pool] = json.loads(shown.stdout)["pools"]
    assert {row["address"]: row["role"] for row in pool["members"]}[to.address] == "reader", shown
    unknown = mysql("show", "other")
    assert unknown.returncode == 1 and "known are db" in unknown.stderr, unknown
    nobody = mysql("writer", "db", "nobody")
    assert nobody.returncode == 1 and "has no member `nobody`" in nobody.stderr, nobody
    which = mysql("writer", "db")
    assert which.returncode == 1 and "<MEMBER>" in which.stderr, which


def test_each_server_says_which_sessions_have_connections_to_it_and_why(door):
    def kept():
        """By server: the sessions that have a connection, by what binds them."""
        return {
            member["role"]: {row["state"]: (row["count"], row["seconds"]) for row in member["sessions"]}
            for member in door.members()
        }["writer"]

    with door.connect() as bound, door.connect() as other:
        bound.query("CREATE TEMPORARY TABLE own (a INT)")
        until(lambda: kept().get("temporary_tables", (0, 0.0))[1] > 0.2, "it has its connection since then")
        other.begin()
        other.query("INSERT INTO pairs VALUES (0, 0, 0, '')")
        found = kept()
        assert (found["temporary_tables"][0], found["transaction"][0]) == (1, 1)
        other.rollback()
    until(lambda: "temporary_tables" not in kept(), "it has left")
