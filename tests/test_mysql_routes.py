"""Routes that look at what a client of MySQL has said of itself: its user, and the schema that it uses."""

import collections

import pytest

from harness import mysql_raw as raw
from harness.split import PASSWORDS, connect, error, made, rows, schema, value

pytestmark = pytest.mark.either_io

WHO = "SELECT name FROM who"
NO_DATABASE, UNKNOWN_DATABASE = 1046, 1049


@pytest.fixture
def name(mysql_pair):
    """A schema with a table that tells which of the two servers answers."""
    with schema(*mysql_pair) as name:
        for server, answer in zip(mysql_pair, ("writer", "reader")):
            server.run(f"CREATE TABLE {name}.who SELECT '{answer}' AS name")
        yield name


@pytest.fixture
def routed(mysql_pair, proxima, tmp_path):
    """Starts a proxy with this route to the pools `writer` and `readers`."""

    def start(route):
        users = {user: {"password": password} for user, password in PASSWORDS.items()}
        return proxima(made(tmp_path, *mysql_pair, users=users, routes={"split": route}))

    return start


def test_each_user_has_a_route_and_others_the_default_one(routed, name):
    proxy = routed({"by_user": {"users": {"app": "writer", "other": "readers"}, "default": "writer"}})
    for user, expected in (("app", "writer"), ("other", "reader"), ("hashed", "writer")):
        with connect(proxy.address, user, database=name) as client:
            assert value(client, WHO) == expected
            rows(client, "BEGIN")
            assert value(client, WHO) == expected
            rows(client, "ROLLBACK")


def test_without_a_default_other_users_are_told_that_there_is_no_route(routed, name):
    proxy = routed({"by_user": {"users": {"app": "writer"}}})
    with connect(proxy.address, database=name) as client:
        assert value(client, WHO) == "writer"
    with raw.Connection(proxy.address, "other", PASSWORDS["other"]) as client:
        assert b"no route for this client's user" in client.query("SELECT 1")


def test_each_schema_has_a_route_to_which_use_leads(routed, mysql_pair, name):
    writer, reader = mysql_pair
    with schema(writer) as here, schema(reader) as there:
        for server, one in ((writer, here), (reader, there)):
            server.run(f"CREATE TABLE {one}.who SELECT '{one}' AS name")
        proxy = routed({"by_schema": {"schemas": {here: "writer", there: "readers"}, "default": "readers"}})
        with connect(proxy.address, database=here) as client:
            assert value(client, WHO) == here
            for one, use in ((there, f"USE {there}"), (here, f"use `{here}`;"), (there, None)):
                rows(client, use) if use else client.select_db(one)
                assert value(client, WHO) == one
                assert value(client, "SELECT DATABASE()") == one
            # What does not exist there changes nothing.
            assert error(client, "USE nowhere") == UNKNOWN_DATABASE
            assert value(client, WHO) == there
            # A transaction stays where it began.
            rows(client, "BEGIN")
            assert error(client, f"USE {here}") == UNKNOWN_DATABASE
            rows(client, "ROLLBACK")
            rows(client, f"USE {here}")
            assert value(client, WHO) == here
        with connect(proxy.address) as client:
            assert error(client, WHO) == NO_DATABASE
            assert value(client, f"SELECT name FROM {name}.who") == "reader"


def test_reads_are_shared_out_among_the_servers_of_a_pool_and_writes_are_not(
    mysql_pair, proxima, tmp_path, name
):
    """The two know nothing of each other: what is written at one of them is not at the other."""
    config = made(tmp_path, *mysql_pair, workers=1)
    config["pools"]["all"] = {
        **config["pools"]["writer"],
        "servers": [server.address for server in mysql_pair],
    }
    config["listeners"][0]["route"] = "all"
    proxy = proxima(config)
    with connect(proxy.address, database=name) as client:
        read = collections.Counter(value(client, WHO) for _ in range(200))
        assert all(70 <= read[server] <= 130 for server in ("writer", "reader")), read
        assert len({value(client, f"{WHO} FOR UPDATE") for _ in range(20)}) == 1


def test_explain_takes_the_user_and_the_schema_of_a_statement(routed, mysql_pair, command, tmp_path):
    writer, reader = mysql_pair
    proxy = routed(
        {
            "by_user": {
                "users": {"app": "writer"},
                "default": {"by_schema": {"schemas": {"here": "writer"}, "default": "readers"}},
            }
        }
    )
    (tmp_path / "p.yaml").write_text(proxy.http("/config")[1])
    for said, expected in [
        ({"user": "app"}, writer),
        ({"user": "other", "schema": "here"}, writer),
        ({"user": "other"}, reader),
        ({}, reader),
    ]:
        query = "".join(f"&{name}={value}" for name, value in said.items())
        status, text = proxy.http(f"/explain?sql=DELETE+FROM+t{query}")
        assert status == 200 and f"member {expected.address} " in text, text
        words = [word for name, value in said.items() for word in (f"--{name}", value)]
        told = command("explain", "--sql", "DELETE FROM t", *words, "-c", str(tmp_path / "p.yaml"))
        assert f"member {expected.address} " in told.stdout, told
    assert proxy.http("/explain?key=a&user=app")[0] == 400
