"""The main job: a node reads from its own memcached, its writes reach every node, and nodes may come."""

import itertools
import re
import subprocess

import pytest

from harness import until
from harness.load import Load
from harness.proxy import BINARY, ROOT, config, environment
from harness.raw import Raw

HOSTS = ["127.0.0.1", "127.0.0.2", "127.0.0.3"]
ROUTE = {"by_operation": {"read": {"nearest": "nodes"}, "default": {"all_sync": "nodes"}}}


@pytest.fixture
def nodes(memcached, proxima):
    """A memcached and a proxy for each of three nodes. The proxies' configurations differ only in their
    addresses."""
    servers = [memcached(host=host) for host in HOSTS]
    pools = {"nodes": [server.address for server in servers]}
    proxies = [proxima(config(ROUTE, pools), "--node-address", host) for host in HOSTS]
    return servers, proxies


def test_reads_stay_on_the_node_and_writes_reach_every_node(nodes):
    servers, proxies = nodes
    for number, proxy in enumerate(proxies):
        with proxy.raw() as client:
            client.set(f"from{number}", str(number))
    before = [(server.stat("cmd_get"), server.stat("cmd_set")) for server in servers]
    assert [sets for _, sets in before] == [3, 3, 3]
    for number, proxy in enumerate(proxies):
        with proxy.raw() as client:
            for _ in range(10 * (number + 1)):
                assert client.get("from0") == b"0"
                assert client.get("from2") == b"2"
    gets = [server.stat("cmd_get") - had for server, (had, _) in zip(servers, before)]
    assert gets == [20, 40, 60]


def test_explain_says_why_the_nodes_own_is_read(nodes):
    servers, proxies = nodes
    for server, proxy in zip(servers, proxies):
        assert f"{server.address}) of pool nodes: distance host" in proxy.explain("k", "get")
        assert all(other.address in proxy.explain("k", "set") for other in servers)


def test_a_delete_and_a_counter_reach_every_node(nodes):
    servers, proxies = nodes
    with proxies[0].raw() as here, proxies[2].raw() as there:
        here.set("n", "1")
        assert there.ask(b"incr n 5\r\n") == b"6\r\n"
        assert [server.get("n") for server in servers] == [b"6"] * 3
        assert there.ask(b"delete n\r\n") == b"DELETED\r\n"
        assert here.get("n") is None


def test_a_node_added_to_the_file_of_servers_is_followed_without_an_error(memcached, proxima, tmp_path):
    servers = [memcached(host=host) for host in HOSTS]
    file = tmp_path / "nodes"

    def write(count):
        new = tmp_path / "nodes.new"
        new.write_text("# nodes\n" + "".join(f"{server.address}\n" for server in servers[:count]))
        new.rename(file)

    write(2)
    proxies = [
        proxima(config(ROUTE, {"nodes": {"file": str(file)}}), "--node-address", host) for host in HOSTS[:2]
    ]
    version = proxies[0].version()
    with Load([proxy.address for proxy in proxies], rate=300) as load, proxies[0].raw() as client:
        client.set("before", "v")
        assert servers[2].get("before") is None
        write(3)
        numbers = itertools.count()

        def reaches_the_new_node():
            key = f"after{next(numbers)}"
            client.set(key, "v")
            return servers[2].get(key) == b"v"

        until(reaches_the_new_node, "writes reach the new node")
        until(lambda: all(len(_members(proxy)) == 3 for proxy in proxies), "both proxies know it")
        load.after(100)
        write(2)
        until(lambda: all(len(_members(proxy)) == 2 for proxy in proxies), "both proxies have let it go")
        load.after(100)
    assert proxies[0].metric("config_failures_total") == 0
    write(3)
    until(lambda: proxies[0].version() != version, "the version tells that the servers are others")


def _members(proxy):
    return [labels["member"] for labels, _ in proxy.metrics()["proxima_member_up"]]


def test_a_bad_file_of_servers_is_refused_and_the_nodes_stay(memcached, proxima, tmp_path):
    server = memcached()
    file = tmp_path / "nodes"
    file.write_text(f"{server.address}\n")
    proxy = proxima(config(ROUTE, {"nodes": {"file": str(file)}}))
    for bad, place in (("", "names no server"), (f"{server.address}\nnonsense\n", "nodes:2:1")):
        failures = proxy.metric("config_failures_total")
        file.write_text(bad)
        until(lambda: proxy.metric("config_failures_total") > failures, "the file is refused")
        assert place in proxy.log()
        with proxy.raw() as client:
            client.set("k", "v")
            assert client.get("k") == b"v"


def test_a_node_without_a_local_server_is_warned_of(memcached, proxima):
    server = memcached()
    proxy = proxima(config(ROUTE, {"nodes": [server.address]}), "--node-address", "127.0.0.9")
    until(lambda: "WARN" in proxy.log() and "nodes" in proxy.log(), "a warning that no member is local")
    with proxy.raw() as client:
        client.set("k", "v")
        assert client.get("k") == b"v"


def test_a_proxys_store_is_a_member_like_any_other(embedded, proxima):
    """Two nodes keep their values inside their proxies."""
    stores = [embedded() for _ in range(2)]
    pools = {"nodes": [store.address for store in stores]}
    with proxima(config(ROUTE, pools)).raw() as client:
        for number in range(50):
            client.set(f"k{number}", str(number))
    for store in stores:
        with Raw(store.address) as direct:
            assert all(direct.get(f"k{number}") == str(number).encode() for number in range(50))


@pytest.mark.heavy
@pytest.mark.timeout(120)
def test_the_demo_shows_local_reads_a_node_that_joins_and_what_a_transaction_takes(fixed_ports, tmp_path):
    # No binary of mcrouter is at hand. Its options and its file are served by ours, too.
    stand_in = tmp_path / "mcrouter"
    stand_in.write_text(f'#!/bin/sh\nexec {BINARY} mcrouter "$@"\n')
    stand_in.chmod(0o755)
    env = {**environment(), "PROXIMA_BIN": BINARY, "DEMO_SECONDS": "0.5", "MCROUTER": str(stand_in)}
    with fixed_ports:
        command = ["bash", ROOT / "examples/node-local-memcached/demo.sh"]
        ran = subprocess.run(command, capture_output=True, text=True, env=env, cwd=tmp_path)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "its console at http://127.0.0.2:9311/" in ran.stdout
    rows = re.findall(r"^(all is well|a node is lost|a node joins) +(.*)$", ran.stdout, re.M)
    cells = {name: re.split(r" {2,}", line) for name, line in rows}
    assert len(rows) == 3 and all(len(row) == 3 for row in cells.values()), ran.stdout

    def mean(cell):
        assert "failed" not in cell, ran.stdout
        return float(cell.split(" ms")[0])

    far, theirs, ours = map(mean, cells["all is well"])
    # 22 requests wait for two milliseconds each, or two do.
    assert far >= 44 and theirs >= 4 and 4 <= ours < far, ran.stdout
    assert "failed" in cells["a node is lost"][0], ran.stdout
    for situation in ("a node is lost", "a node joins"):
        assert mean(cells[situation][2]) >= 4, ran.stdout
