"""Auto discovery: clients and other proxies are told which proxies there are."""

import json

import pytest

from harness import ports, until
from harness.discovering import Discovering, told
from harness.load import Load
from harness.names import System, may_mount
from harness.proxy import BINARY, Program, config
from harness.raw import connect

pytestmark = pytest.mark.either_io

NEW, OLD = b"config get cluster\r\n", b"get AmazonElastiCache:cluster\r\n"
KEYS = [f"k{number}" for number in range(100)]


def discovering(address, peers, folder, route="embedded", pools=None, **keys):
    """A configuration whose listener tells of `peers`."""
    made = config(route, pools)
    discovery = {"peers": peers, "keep": str(folder / f"told-{address.rsplit(':', 1)[1]}"), **keys}
    made["listeners"][0] |= {"address": address, "discovery": discovery}
    return made


def agree(addresses, at=None, above=0):
    """Waits until the proxies `at` tell these proxies, all under the same version; returns that."""
    nodes = sorted(tuple([host, host, port]) for host, port in (each.rsplit(":", 1) for each in addresses))

    def same():
        all_told = [told(each) for each in at or addresses]
        if all(each and sorted(each[1]) == nodes and each[0] > above for each in all_told):
            versions = {version for version, _ in all_told}
            return len(versions) == 1 and versions.pop()
        return False

    return until(same, f"{at or addresses} tell of {addresses}")


@pytest.fixture
def listed(tmp_path):
    """Writes the file of proxies."""
    file = tmp_path / "proxies"

    def write(*addresses):
        new = tmp_path / "proxies.new"
        new.write_text("# the proxies\n" + "".join(f"{address}\n" for address in addresses))
        new.rename(file)
        return {"file": str(file)}

    return write


@pytest.fixture
def two(proxima, memcached, listed, tmp_path):
    """Two proxies before one server, which know each other by a file."""
    server = memcached()
    addresses = [ports.address(), ports.address()]
    peers = listed(*addresses)
    pools = {"cache": [server.address]}
    proxies = [proxima(discovering(each, peers, tmp_path, "cache", pools)) for each in addresses]
    agree(addresses)
    return proxies


def test_list_is_told_in_both_forms_and_in_the_order_of_requests(proxima, memcached, tmp_path):
    address, other = sorted([ports.address(), ports.address()])
    server = memcached()
    proxy = proxima(discovering(address, [other], tmp_path, "cache", {"cache": [server.address]}))
    agree([address, other], at=[address])
    nodes = " ".join(f"127.0.0.1|127.0.0.1|{each.rsplit(':', 1)[1]}" for each in (address, other))
    text = f"1\n{nodes}\n"
    new = f"CONFIG cluster 0 {len(text)}\r\n{text}\r\nEND\r\n".encode()
    old = f"VALUE AmazonElastiCache:cluster 0 {len(text)}\r\n{text}\r\nEND\r\n".encode()
    asked = b"set a 0 0 1\r\nx\r\n" + NEW + b"get a\r\n" + OLD + b"get b\r\nmn\r\n"
    expected = b"STORED\r\n" + new + b"VALUE a 0 1\r\nx\r\nEND\r\n" + old + b"END\r\nMN\r\n"
    with proxy.raw() as client:
        for _ in range(2):
            client.send(asked)
            assert client.until(b"MN\r\n") == expected
        for byte in range(len(NEW)):
            client.send(NEW[byte : byte + 1])
        assert client.until(b"END\r\n") == new


@pytest.mark.parametrize(
    "request_, reply",
    [
        (b"config get other\r\n", b"ERROR\r\n"),
        (b"config set cluster\r\n", b"ERROR\r\n"),
        (b"config\r\n", b"ERROR\r\n"),
        (b"get AmazonElastiCache:cluster b\r\n", b"END\r\n"),
        (b"get AmazonElastiCache:clusters\r\n", b"END\r\n"),
        (b"mg AmazonElastiCache:cluster v\r\n", b"EN\r\n"),
    ],
)
def test_other_requests_are_no_discovery(proxima, tmp_path, request_, reply):
    address = ports.address()
    proxy = proxima(discovering(address, [ports.address()], tmp_path))
    with proxy.raw() as client:
        assert client.ask(request_) == reply


def test_listener_that_does_not_say_so_tells_nothing(proxima, memcached):
    server = memcached()
    server.set("AmazonElastiCache:cluster", "a value")
    proxy = proxima(config("cache", {"cache": [server.address]}))
    with proxy.raw() as client:
        assert client.ask(NEW) == b"ERROR\r\n"
        assert client.get("AmazonElastiCache:cluster") == b"a value"


def test_proxies_of_one_file_tell_the_same_and_a_higher_version_after_a_change(
    two, proxima, listed, tmp_path
):
    addresses = [proxy.address for proxy in two]
    first = agree(addresses)
    third = ports.address()
    peers = listed(*addresses, third)
    second = agree([*addresses, third], at=addresses, above=first)
    assert second == first + 1
    for proxy in two:
        labels = {"listener": proxy.address}
        figures = [proxy.metric(f"discovery_{name}", **labels) for name in ("proxies", "version", "up")]
        assert figures == [3, second, 1]
    proxima(discovering(third, peers, tmp_path))
    assert agree([*addresses, third]) == second, "who comes takes the version of the others"
    listed(*addresses)
    assert agree(addresses, above=second) == second + 1


def test_version_outlives_all_proxies(two, proxima, listed, tmp_path):
    addresses = [proxy.address for proxy in two]
    listed(*addresses, "127.0.0.1:1")
    version = agree([*addresses, "127.0.0.1:1"], at=addresses)
    for proxy in two:
        proxy.kill()
    # While they are away the list changes.
    listed(*addresses)
    for proxy in two:
        proxima(proxy.config)
    agree(addresses, above=version)


def test_proxy_that_was_away_takes_the_version_of_the_others(two, proxima, listed):
    addresses = [proxy.address for proxy in two]
    first = agree(addresses)
    two[1].kill()
    for number in range(1, 4):
        listed(*addresses, f"127.0.0.1:{number}")
        latest = agree([*addresses, f"127.0.0.1:{number}"], at=addresses[:1])
    assert latest == first + 3
    proxima(two[1].config)
    assert agree([*addresses, "127.0.0.1:3"], at=addresses) == latest


def test_bad_file_of_proxies_changes_nothing(two, listed, tmp_path):
    addresses = [proxy.address for proxy in two]
    version = agree(addresses)
    told_of = "it is not known who the proxies are"
    for text in ("# nobody\n", f"{addresses[0]}\n127.0.0.1\n", "127.0.0.1:112110\n", None):
        before = two[0].log().count(told_of)
        match text:
            case None:
                (tmp_path / "proxies").unlink()
            case _:
                (tmp_path / "proxies").write_text(text)
        until(lambda: two[0].log().count(told_of) > before, "it is told")
        assert agree(addresses) == version
        until(lambda: two[0].metric("discovery_up") == 0, "and seen")
        assert (two[0].metric("discovery_version"), two[0].metric("discovery_proxies")) == (version, 2)
    listed(addresses[0])
    agree(addresses[:1], above=version)


@pytest.mark.skipif(not may_mount(), reason="only root has a resolv.conf of its own, and port 53")
def test_proxies_of_one_dns_name_tell_the_same(cleanup, io, tmp_path):
    system = System(tmp_path)
    cleanup.callback(system.stop)
    hosts = ["127.0.7.1", "127.0.7.2", "127.0.7.3"]
    port = ports.free_on(hosts)
    name = "proxies.cache.svc.cluster.local"
    system.names.set(name, *hosts[:2])
    addresses = [f"{host}:{port}" for host in hosts]
    for number, address in enumerate(addresses[:2]):
        made = discovering(address, {"dns": f"{name}:{port}"}, tmp_path, keep=str(tmp_path / f"kept{number}"))
        made["admin"] = ports.address()
        file = tmp_path / f"{number}.yaml"
        file.write_text(json.dumps(made))
        command = [*system.before, BINARY, "run", "--config", str(file), "--io", io]
        proxy = Program(command, tmp_path, [address], made["admin"])
        cleanup.callback(proxy.stop)
        proxy.wait_ready()
    first = agree(addresses[:2])
    system.names.set(name, *hosts)
    second = agree(addresses, at=addresses[:2], above=first)
    system.names.trouble = lambda request, reply, transport: None
    until(lambda: "it is not known who the proxies are" in proxy.log(), "DNS is silent")
    assert agree(addresses, at=addresses[:2]) == second


def test_client_spreads_over_two_proxies_and_follows_when_one_leaves(two, listed):
    addresses = [proxy.address for proxy in two]
    client = Discovering(addresses[0])
    assert sorted(client.clients) == sorted(addresses)
    for key in KEYS:
        assert client.set(key, "v")
    asked = [proxy.metric("requests_total", command="set") for proxy in two]
    assert sum(asked) == len(KEYS) and min(asked) > len(KEYS) / 5, asked
    listed(addresses[1])
    agree(addresses[1:])
    client.refresh(addresses[1])
    assert list(client.clients) == [addresses[1]]
    two[0].kill()
    assert all(client.get(key) == b"v" for key in KEYS)


def test_pymemcaches_own_client_spreads_over_two_proxies(two, listed):
    ext = pytest.importorskip("pymemcache.client.ext.aws_ec_client", reason="no release has it yet")
    addresses = [proxy.address for proxy in two]
    client = ext.AWSElastiCacheHashClient(addresses[1], timeout=10)
    assert sorted(client.clients) == sorted(addresses)
    assert client.set("k", "v", noreply=False) and client.get("k") == b"v"
    listed(addresses[1])
    agree(addresses[1:])
    client.reconfigure_nodes()
    assert list(client.clients) == [addresses[1]]
    # What has left stays in its hash: only a new client asks the right one for every key.
    client = ext.AWSElastiCacheHashClient(addresses[1], timeout=10)
    two[0].kill()
    assert all(client.set(key, "v", noreply=False) for key in KEYS) and client.get("k") == b"v"


@pytest.mark.parametrize("old", [False, True], ids=["new question", "old question"])
def test_proxy_discovers_proxies_from_a_proxy(two, proxima, listed, tmp_path, old, scripted):
    addresses = sorted(proxy.address for proxy in two)
    source = {"endpoint": two[0].address, "interval": "100ms", "keep": str(tmp_path / "front")}
    if old:
        source["endpoint"] = scripted(older(two[0].address), version=None).address
    front = proxima(config("cache", {"cache": {"elasticache": source}}))

    def members():
        return sorted(row["address"] for row in json.loads(front.http("/members")[1]))

    assert members() == addresses
    with Load(front.address, rate=300) as load:
        load.after(50)
        third = ports.address()
        proxima(config("cache", two[0].config["pools"], listeners=[{"address": third, "route": "cache"}]))
        listed(*addresses, third)
        until(lambda: members() == sorted([*addresses, third]), "the third is a member")
        load.after(50)
        listed(*addresses)
        until(lambda: members() == addresses, "it has gone")
        load.after(50)


def older(address):
    """Hands on what the proxy at `address` answers, and does not know the new question."""

    def talk(sock):
        with connect(address) as behind:
            while line := sock.recv(4096):
                if line == NEW:
                    sock.sendall(b"ERROR\r\n")
                    continue
                behind.sendall(line)
                answer = b""
                while not answer.endswith(b"END\r\n"):
                    answer += behind.recv(4096)
                sock.sendall(answer)

    return talk


def test_discovery_comes_and_goes_with_the_configuration(proxima, tmp_path):
    address = ports.address()
    made = discovering(address, ["127.0.0.1:1"], tmp_path)
    plain = {**made, "listeners": [{key: made["listeners"][0][key] for key in ("address", "route")}]}
    proxy = proxima(plain)
    with proxy.raw() as client:
        assert client.ask(NEW) == b"ERROR\r\n"
    proxy.write({**made, "admin": proxy.admin})
    assert proxy.reload()[0] == 200
    version = agree([address, "127.0.0.1:1"], at=[address])
    changed = discovering(address, ["127.0.0.1:1", "127.0.0.1:2"], tmp_path)
    proxy.write({**changed, "admin": proxy.admin})
    assert proxy.reload()[0] == 200
    agree([address, "127.0.0.1:1", "127.0.0.1:2"], at=[address], above=version)
    proxy.write({**plain, "admin": proxy.admin})
    assert proxy.reload()[0] == 200
    with proxy.raw() as client:
        assert client.ask(NEW) == b"ERROR\r\n"
