"""mcrouter's file and flags, with one flag more: the nodes' proxies are a fleet."""

import json

import pytest
import yaml

from harness import ports, until
from harness.fleet import CALM
from harness.mcrouter import Router, node_local

pytestmark = pytest.mark.either_io

HOSTS = [f"127.0.0.{number}" for number in range(41, 44)]


class Node:
    """A node as its agent sets it up: a memcached, mcrouter's file with this node's server first, and the
    section about the fleet."""

    def __init__(self, host, servers, listens, io, folder, text):
        self.name = host
        self.server = next(server for server in servers if server.address.startswith(f"{host}:"))
        folder = folder / host
        folder.mkdir()
        listen = next(listen for listen in listens if listen.startswith(f"{host}:"))
        fleet = {"listen": listen, "peers": listens, "name": host, "dir": "fleet", **CALM}
        file = folder / "fleet.yaml"
        file.write_text(yaml.safe_dump({"fleet": fleet}))
        first = sorted(servers, key=lambda server: server is not self.server)
        self.proxy = Router(text(first), folder, io, f"--fleet={file}")

    def raw(self):
        return self.proxy.raw()

    def status(self):
        return json.loads(self.proxy.http("/fleet")[1])

    def is_settled(self, count):
        deciding = [peer for peer in self.status()["peers"] if peer["decides"]]
        return len(deciding) == count and self.proxy.http("/ready")[0] == 200


@pytest.fixture
def nodes(io, folder, cleanup, memcached):
    def start(text=node_local):
        servers = [memcached(host=host) for host in HOSTS]
        listens = [ports.address(host) for host in HOSTS]
        started = []
        for host in HOSTS:
            node = Node(host, servers, listens, io, folder, text)
            cleanup.callback(node.proxy.stop)
            started.append(node)
        for node in started:
            until(lambda node=node: node.is_settled(len(HOSTS)), f"{node.name} is settled")
        return started

    return start


def test_a_write_by_the_unchanged_file_is_read_through_every_other_node_and_at_every_copy(nodes):
    nodes = nodes()
    clients = [node.raw() for node in nodes]
    for round in range(60):
        clients[round % 3].set(f"k{round}", str(round))
        for client in clients:
            assert client.get(f"k{round}") == str(round).encode()
    for node in nodes:
        assert node.server.get("k59") == b"59"
    assert clients[0].ask(b"delete k59\r\n") == b"DELETED\r\n"
    assert [node.server.get("k59") for node in nodes] == [None] * 3
    assert clients[1].ask(b"add k59 0 0 1\r\n1\r\n") == b"STORED\r\n"
    assert clients[2].ask(b"add k59 0 0 1\r\n1\r\n") == b"NOT_STORED\r\n"


def local_pool(servers):
    """Reads from a pool that lists the node's own server alone."""
    listed = json.dumps([server.address for server in servers])
    return f"""{{
  "pools": {{"all": {{"servers": {listed}}}, "local": {{"servers": ["{servers[0].address}"]}}}},
  "route": {{
    "type": "OperationSelectorRoute",
    "default_policy": "AllSyncRoute|Pool|all",
    "operation_policies": {{"get": "PoolRoute|local"}}
  }}
}}"""


@pytest.mark.parametrize("text", [node_local, local_pool], ids=["list", "local_pool"])
def test_each_node_reads_its_own_server_and_a_neighbours_when_that_is_lost(nodes, text):
    nodes = nodes(text=text)
    for node in nodes:
        before = node.server.stat("cmd_get")
        with node.raw() as client:
            client.set("k", node.name)
            for _ in range(20):
                assert client.get("k") == node.name.encode()
        assert node.server.stat("cmd_get") - before == 20
    first, second, _ = nodes
    first.server.kill()
    with first.raw() as client, second.raw() as other:
        for round in range(20):
            other.set("k", str(round))
            assert client.get("k") == str(round).encode()
        first.server.start()

        def own_copy_is_read():
            other.set("new", "1")
            assert client.get("new") == b"1"
            return first.server.stat("get_hits") > 0

        until(own_copy_is_read, "the own server is read again")


def test_fleet_beside_keep_writing_and_a_pool_that_is_none_of_the_fleets_are_refused(command, tmp_path):
    config, fleet = tmp_path / "mcrouter.json", tmp_path / "fleet.yaml"
    config.write_text('{"pools": {"A": {"servers": ["127.0.0.1:1"]}}, "route": "AllSyncRoute|Pool|A"}')
    section = {"listen": "127.0.0.1:2", "peers": ["127.0.0.1:2"], "dir": "fleet"}
    fleet.write_text(yaml.safe_dump({"fleet": section, "own": {"B": "127.0.0.1:1"}}))
    given = ("mcrouter", f"--port={ports.free()}", f"--config-file={config}", f"--fleet={fleet}")
    done = command(*given)
    assert done.returncode == 2
    assert "`own` of `B`: no AllSyncRoute writes to a pool of this name" in done.stderr
    assert "these are written as a whole: A" in done.stderr
    done = command(*given, "--keep-writing")
    assert done.returncode == 3
    assert "--fleet beside --keep-writing" in done.stderr
