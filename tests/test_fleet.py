"""Several proxies, each with a memcached at its side, keep one promise together."""

import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest

from harness import until
from harness.proxy import BINARY, ROOT, environment

pytestmark = pytest.mark.either_io


def test_a_write_through_any_peer_is_read_at_once_through_every_other(fleet):
    nodes = fleet()
    clients = [node.raw() for node in nodes]
    for round in range(100):
        writer = clients[round % 3]
        writer.set(f"k{round}", str(round))
        for reader in clients:
            assert reader.get(f"k{round}") == str(round).encode()
    for node in nodes:
        assert node.server.get("k99") == b"99"


def values(nodes, key):
    """What each copy holds, asked for at the server itself."""
    return [node.server.get(key) for node in nodes]


def test_writers_that_race_on_the_same_keys_leave_the_copies_equal(fleet):
    nodes = fleet()
    keys = [f"k{number}" for number in range(200)]

    def write(number):
        with nodes[number].raw() as client:
            for round in range(5):
                lines = [f"set {key} 0 0 3\r\n{number}.{round}\r\n".encode() for key in keys]
                client.send(b"".join(lines))
                for _ in keys:
                    assert client.line() == b"STORED\r\n"

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(write, range(3)))
    for key in keys:
        held = values(nodes, key)
        assert len(set(held)) == 1, f"{key}: {held}"


def test_counters_lose_nothing_whoever_counts(fleet):
    nodes = fleet()
    with nodes[0].raw() as client:
        client.set("n", "0")

    def count(number):
        with nodes[number % 3].raw() as client:
            for _ in range(100):
                assert client.ask(b"incr n 1\r\n").strip().isdigit()

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(count, range(6)))
    assert values(nodes, "n") == [b"600"] * 3


def test_of_clients_that_add_the_same_key_at_different_peers_one_succeeds(fleet):
    nodes = fleet()
    for number in range(50):
        said = []

        def add(node, number=number, said=said):
            with node.raw() as client:
                said.append(client.ask(f"add k{number} 0 0 2\r\n{node.name}\r\n".encode()))

        with ThreadPoolExecutor(3) as pool:
            list(pool.map(add, nodes))
        assert sorted(said) == [b"NOT_STORED\r\n"] * 2 + [b"STORED\r\n"]
        assert len(set(values(nodes, f"k{number}"))) == 1


def test_cas_with_a_version_read_at_one_peer_succeeds_once_at_another(fleet):
    nodes = fleet()
    with nodes[0].raw() as one, nodes[1].raw() as other, nodes[2].raw() as third:
        one.set("k", "old")
        version = one.ask(b"gets k\r\n").split()[4].decode()
        change = f"cas k 0 0 3 {version}\r\nnew\r\n".encode()
        assert other.ask(change) == b"STORED\r\n"
        assert third.ask(change) == b"EXISTS\r\n"
        assert [client.get("k") for client in (one, other, third)] == [b"new"] * 3


def test_the_demo_shows_what_it_says(fixed_ports):
    script = ROOT / "examples/fleet/demo.sh"
    with fixed_ports:
        ran = subprocess.run(
            ["bash", script], capture_output=True, text=True, env={**environment(), "PROXIMA_BIN": BINARY}
        )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "3 times 100 is 300" in ran.stdout


def test_a_flushed_copy_gets_the_values_of_its_neighbours_with_flags_and_expiry_as_they_are_read(fleet):
    nodes = fleet()
    first, second, _ = nodes
    keys = [f"k{number}" for number in range(300)]
    with second.raw() as client:
        for key in keys:
            value = f"value of {key}"
            client.send(f"set {key} 7 1000 {len(value)}\r\n{value}\r\n".encode())
            assert client.line() == b"STORED\r\n"
    # A proxy that ends without a goodbye has its copy flushed.
    first.proxy.process.kill()
    first.proxy.wait()
    first.start()
    nodes.until_settled()
    # memcached counts items among its own until somebody asks for them, also after a flush.
    with first.server.raw() as own:
        assert [own.get(key) for key in keys] == [None] * len(keys)
    with first.raw() as client:
        for key in keys:
            assert client.get(key) == f"value of {key}".encode()
        until(lambda: first.proxy.metric("fleet_filled_total") == len(keys), "every value was stored")
        with second.raw() as other:
            other.set("k0", "newer")
            assert other.ask(b"delete k1\r\n") == b"DELETED\r\n"
        assert client.get("k0") == b"newer"
        assert client.get("k1") is None
    with first.server.raw() as own:
        flags, left = own.ask(b"mg k299 f t\r\n").split()[1:]
        assert flags == b"f7"
        assert 900 < int(left[1:]) <= 1000


def test_looks_at_neighbours_end_when_they_find_nothing(fleet):
    nodes = fleet()
    first = nodes[0]
    with first.raw() as client:
        for number in range(1500):
            assert client.get(f"none{number}") is None
        # The one worker of this client has looked a thousand times, of which none helped.
        assert first.proxy.metric("fleet_fill_looks_total") == 1000
