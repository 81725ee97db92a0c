"""A fleet as its operators meet it: keys, and what is refused without them."""

import pytest
import yaml

from harness import ports, until
from harness.fleet import Node

pytestmark = pytest.mark.either_io


@pytest.fixture
def start(io, folder, cleanup):
    """Starts a node of this name, which does not wait for others."""

    def start(name, listens, number, **keys):
        node = Node(name, io, folder, listens, listens[number], **keys)
        cleanup.callback(node.stop)
        return node

    return start


def addresses(count):
    return [ports.address() for _ in range(count)]


def files(folder, name):
    return {
        "certificate": str(folder / f"{name}.pem"),
        "key": str(folder / f"{name}.key"),
        "ca": str(folder / "ca.pem"),
    }


def settled(nodes):
    """The same number of peers as nodes, at each of them, and its own copy is read."""
    return all(len(node.status()["peers"]) == len(nodes) and node.reads_own_copy() for node in nodes)


def write_and_read_everywhere(nodes, value):
    clients = [node.raw() for node in nodes]
    clients[0].set("k", value)
    assert [client.get("k") for client in clients] == [value.encode()] * len(clients)
    for client in clients:
        client.close()


def test_peers_with_keys_of_one_authority_form_a_fleet_and_one_of_another_authority_never_joins(
    start, command, tmp_path
):
    ours, others = tmp_path / "ours", tmp_path / "others"
    assert command("fleet", "keys", str(ours), "n0", "n1", "n2").returncode == 0
    assert command("fleet", "keys", str(others), "n3").returncode == 0
    listens = addresses(4)
    nodes = [
        start(f"n{number}", listens, number, fleet={"tls": files(ours, f"n{number}"), "expect": 3})
        for number in range(3)
    ]
    until(lambda: settled(nodes), "the three are a fleet")
    stranger = start("n3", listens, 3, fleet={"tls": files(others, "n3"), "expect": 3})
    until(lambda: "a connection was refused" in nodes[0].proxy.log(), "the stranger is refused")
    write_and_read_everywhere(nodes, "v")
    assert stranger.status()["fleet"] is None and not stranger.is_ready()
    assert [len(node.status()["peers"]) for node in nodes] == [3] * 3


def test_listen_address_beyond_loopback_without_tls_is_refused_with_its_remedy(command, tmp_path):
    file = tmp_path / "proxima.yaml"
    fleet = {"listen": "0.0.0.0:11400", "peers": ["10.77.0.1:11400"], "name": "n0", "dir": str(tmp_path)}
    config = {
        "listeners": [{"address": "127.0.0.1:11211", "route": "cache"}],
        "pools": {"cache": {"replicated": True, "own": "127.0.0.1:11212"}},
        "fleet": fleet,
    }
    file.write_text(yaml.safe_dump(config))
    refused = command("check", str(file))
    said = refused.stdout + refused.stderr
    assert refused.returncode != 0 and "`tls` is missing" in said and "tls: none" in said, said
    fleet["tls"] = "none"
    file.write_text(yaml.safe_dump(config))
    good = command("check", str(file))
    assert good.returncode == 0, good.stdout + good.stderr
