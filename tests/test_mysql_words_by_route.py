"""A route that says how fresh the reads are of the schemas and users that it serves."""

import struct
from urllib.parse import quote

import pytest

from harness.galera import rows
from harness.mysql_raw import EXECUTE, PREPARE, Connection, change_user, packets

pytestmark = [pytest.mark.either_io, pytest.mark.timeout(300)]

ROUTED = 4
"""The listener with the route, behind those of every proxy."""

ANYWHERE = {"read_wait": "20s", "read_age": "60s"}
"""With these a read finds a reader, however busy the machine is."""


def says(word, child="db"):
    return {"consistency": {"child": child, "level": word}}


@pytest.fixture
def door(galera, before):
    """A proxy whose last listener says `strict`, and whose route says otherwise: for a user, and for the
    schema of the test."""
    by_schema = {"by_schema": {"schemas": {galera.account.name: says("eventual")}, "default": "db"}}
    route = {"by_user": {"users": {"app": says("causal")}, "default": by_schema}}
    listener = {"route": route, "consistency": "strict"}
    return before(galera, listeners=[listener], users=[("app", "secret")], galera=ANYWHERE)


def word(door, sql, **of):
    """The word by which a statement would go, as `/explain` tells it."""
    of = "".join(f"&{name}={value}" for name, value in of.items())
    status, text = door.proxy.http(f"/explain?listener={ROUTED}&sql={quote(sql)}{of}")
    assert status == 200, text
    found = [one for one in ("strict", "causal", "session", "eventual") if f": `{one}`" in text]
    assert len(found) == 1, text
    return found[0]


def test_explain_tells_the_word_of_the_route(galera, door):
    name, read = galera.account.name, "SELECT 1"
    assert word(door, read) == "strict"
    assert word(door, read, schema=name) == "eventual"
    assert word(door, read, user="app") == "causal"
    assert word(door, read, user="app", schema=name) == "causal", "the route of the user stands above"
    hint = "/* proxima: consistency=session */ SELECT 1"
    assert word(door, hint, schema=name) == "session", "a hint counts for more"
    _, text = door.proxy.http(f"/explain?listener={ROUTED}&sql=SELECT+1&schema={name}")
    assert "consistency: reads are `eventual`" in text, "the route says that it was it"


def is_read_at_a_reader(door, client, ask=None):
    """A statement that shows tables goes to a reader by every word but `strict`."""

    def counted():
        return door.proxy.metric("pool_reads_total", pool="db", role="reader")

    before = counted()
    if ask:
        ask()
    else:
        client.query(f"SHOW TABLES FROM {door.account.name}")
    return counted() > before


def test_reads_are_as_fresh_as_the_route_of_their_schema_says(galera, door):
    with door.connect(ROUTED) as client, door.connect(ROUTED, database=None) as other:
        assert is_read_at_a_reader(door, client)
        assert not is_read_at_a_reader(door, other)
        # The session is the same behind USE, which leads to another route.
        other.query(f"USE {galera.account.name}")
        assert is_read_at_a_reader(door, other)
        client.query("SET @proxima_consistency = 'strict'")
        assert not is_read_at_a_reader(door, client), "the session counts for more"
        client.query("SET @proxima_consistency = DEFAULT")
        assert is_read_at_a_reader(door, client)
        assert rows(client, "SELECT a FROM t") == ((0,),)


def test_a_reload_changes_the_word_of_sessions_that_are_there(galera, before):
    door = before(galera, listeners=[{"route": says("eventual"), "consistency": "strict"}], galera=ANYWHERE)
    with door.connect(ROUTED) as client:
        assert is_read_at_a_reader(door, client)
        for route, is_old in (("db", False), (says("session"), True)):
            door.proxy.config["listeners"][ROUTED]["route"] = route
            door.proxy.write(door.proxy.config)
            assert door.proxy.reload()[0] == 200
            assert is_read_at_a_reader(door, client) == is_old


def test_users_whom_the_servers_know_have_the_word_of_their_route(galera, before):
    route = {"by_user": {"users": {galera.account.name: says("session")}, "default": "db"}}
    listener = {"route": route, "consistency": "strict", "users": "server"}
    door = before(galera, listeners=[listener], galera=ANYWHERE)
    with door.connect(ROUTED) as client:
        assert is_read_at_a_reader(door, client)


def test_a_prepared_statement_has_the_word_of_the_schema_that_is_used_now(galera, door):
    name, password = galera.account.name, galera.account.password
    with Connection(door.proxy.addresses[ROUTED], name, password) as client:
        number = struct.unpack_from("<I", client.ask(PREPARE, f"SHOW TABLES FROM {name}"), 5)[0]

        def executes():
            reply = client.ask(EXECUTE, struct.pack("<IBI", number, 0, 1))
            assert reply[4] != 0xFF, reply

        assert not is_read_at_a_reader(door, None, executes)
        assert client.query(f"USE {name}")[4] == 0
        assert is_read_at_a_reader(door, None, executes)


def test_what_comes_in_one_write_behind_use_has_the_word_of_its_schema(galera, door):
    name, password = galera.account.name, galera.account.password
    with Connection(door.proxy.addresses[ROUTED], name, password) as client:
        texts = [f"USE {name}", f"SHOW TABLES FROM {name}"]

        def asks():
            client.send(b"".join(packets(b"\3" + text.encode()) for text in texts))
            assert client.reply()[4] == 0
            assert client.reply()[4] != 0xFF

        assert is_read_at_a_reader(door, None, asks)


def test_who_becomes_another_user_has_that_ones_word(galera, door):
    name, password = galera.account.name, galera.account.password
    show = f"SHOW TABLES FROM {name}"
    galera.nodes[0].run(
        "CREATE USER IF NOT EXISTS app IDENTIFIED BY 'secret'", f"GRANT SELECT ON {name}.* TO app"
    )
    for node in galera.nodes:
        assert node.barrier(), f"{node.name} knows the user"
    with Connection(door.proxy.addresses[ROUTED], name, password) as client:
        assert not is_read_at_a_reader(door, None, lambda: client.query(show))
        assert change_user(client, "app", "secret")[0] == 0
        assert is_read_at_a_reader(door, None, lambda: client.query(show))
        assert change_user(client, name, password)[0] == 0
        assert not is_read_at_a_reader(door, None, lambda: client.query(show))
