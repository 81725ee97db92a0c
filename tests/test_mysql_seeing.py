"""What operators see of pools of MySQL servers whose roles the routes say."""

import json

import pytest


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
