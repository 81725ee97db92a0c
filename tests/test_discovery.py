"""Auto discovery: a configuration endpoint names the servers, and no bad answer changes any of them.

The endpoint is one of the tests' own (`harness/endpoint.py`). A real one cannot be reached here.
"""

import json
import time

import pytest

from harness import ports, until
from harness.endpoint import NEW, OLD, TROUBLES, Endpoint
from harness.load import Load
from harness.members import COPIES, HOSTS, addresses, members, questions
from harness.names import System, may_mount
from harness.proxy import BINARY, Program, config

pytestmark = pytest.mark.either_io

NAME = "cluster.cfg.cache.example"
answered, failed = questions("endpoint")


@pytest.fixture
def endpoint(cleanup):
    def start(*nodes, version=1, **options):
        endpoint = Endpoint(**options)
        cleanup.callback(endpoint.stop)
        if nodes:
            endpoint.set(version, *nodes)
        return endpoint

    return start


def pool(address, folder, interval="100ms", **keys):
    """A pool by auto discovery, which asks more often than by default, so that tests wait less. The default
    has a test of its own."""
    address = getattr(address, "address", address)
    return {"elasticache": {"endpoint": address, "interval": interval, "keep": str(folder / "nodes")}, **keys}


FORMS = {
    "short": lambda address: {"elasticache": address},
    "map": lambda address: {"elasticache": {"endpoint": address}},
    "source": lambda address: {"source": {"elasticache": address}},
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("old", [False, True], ids=["engine from 1.4.14 on", "older engine"])
def test_endpoint_of_any_engine_names_the_servers(endpoint, nodes, proxima, old, form):
    asked = endpoint(*addresses(nodes), old=old)
    proxy = proxima(config(COPIES, {"cache": FORMS[form](asked.address)}))
    assert members(proxy) == addresses(nodes)
    with proxy.raw() as client:
        client.set("k", "v")
        assert client.get("k") == b"v"
    assert [node.get("k") for node in nodes] == [b"v"] * 4
    assert asked.asked == ([NEW, OLD] if old else [NEW])
    assert proxy.metric("endpoint_up", pool="cache", name=asked.address) == 1
    assert proxy.metric("endpoint_version") == 1


def test_endpoint_under_twemproxys_door_names_the_servers_and_keys_stay(endpoint, nodes, door):
    listed = door({"p": {"listen": ports.address(), "servers": [f"{node.address}:1" for node in nodes]}})
    # The hash mixes what comes first best: keys that only end differently may all be at one server.
    keys = [f"{i}-is-a-key" for i in range(200)]
    with listed.raw() as client:
        for key in keys:
            client.set(key, "v")
    assert all(node.stat("curr_items") for node in nodes)
    asked = endpoint(*addresses(nodes))
    eject = {"auto_eject_hosts": True, "server_failure_limit": 1}
    proxy = door({"p": {"listen": ports.address(), "servers": [f"elasticache:{asked.address}"], **eject}})
    assert members(proxy) == addresses(nodes)
    with proxy.raw() as client:
        assert [client.get(key) for key in keys] == [b"v"] * len(keys)
        asked.set(2, *addresses(nodes[1:]))
        # The endpoint is asked at once after a server was ejected.
        nodes[0].kill()
        until(lambda: members(proxy) == addresses(nodes[1:]), "the first is none any more")
        for key in keys:
            client.set(key, "w")
            assert client.get(key) == b"w"


def test_higher_version_adds_and_removes_servers_without_an_error(endpoint, nodes, proxima, tmp_path):
    asked = endpoint(*addresses(nodes[:3]))
    proxy = proxima(config(COPIES, {"cache": pool(asked, tmp_path)}))
    with Load(proxy.address, rate=300) as load, proxy.raw() as client:
        asked.set(2, *addresses(nodes))
        until(lambda: members(proxy) == addresses(nodes), "the fourth is a member")
        client.set("k", "v")
        assert [node.get("k") for node in nodes] == [b"v"] * 4
        asked.set(3, nodes[0].address, *addresses(nodes[2:]))
        until(lambda: nodes[1].address not in members(proxy), "the second is none any more")
        client.set("k", "w")
        assert [node.get("k") for node in nodes] == [b"w", b"v", b"w", b"w"]
        load.after(100)
    assert proxy.metric("endpoint_version") == 3
    until(lambda: nodes[1].stat("curr_connections") == 1, "no connection to it is left")


def test_servers_without_an_ip_are_looked_up_by_their_names(endpoint, memcached, proxima, tmp_path):
    servers = memcached.several(2)
    first, second = (server.address.rsplit(":", 1)[1] for server in servers)
    asked = endpoint(("localhost", "", first))
    proxy = proxima(config(COPIES, {"cache": pool(asked, tmp_path)}))
    assert members(proxy) == [f"localhost:{first}"]
    with Load(proxy.address, rate=300) as load, proxy.raw() as client:
        client.set("k", "v")
        asked.set(2, ("localhost", "", first), ("second.localhost", "", second))
        until(lambda: f"second.localhost:{second}" in members(proxy), "the second is a member")
        client.set("k", "w")
        load.after(100)
    assert [server.get("k") for server in servers] == [b"w"] * 2


def test_server_keeps_its_keys_when_its_ip_changes(endpoint, memcached, proxima, tmp_path):
    """A node that is replaced keeps its name."""
    port = ports.free_on(HOSTS)
    servers = [memcached(host=host, port=port) for host in HOSTS]
    asked = endpoint(*((f"node{number}.cache", host, port) for number, host in enumerate(HOSTS[:3])))
    proxy = proxima(config("cache", {"cache": pool(asked, tmp_path)}))
    keys = [f"k{number}" for number in range(60)]
    with proxy.raw() as client:
        for key in keys:
            client.set(key, "v")
        of_second = [key for key in keys if servers[1].get(key)]
        assert of_second
        asked.set(
            2,
            ("node0.cache", HOSTS[0], port),
            ("node1.cache", HOSTS[3], port),
            ("node2.cache", HOSTS[2], port),
        )
        until(lambda: servers[3].address in members(proxy), "the new address serves")
        misses = [key for key in keys if client.get(key) is None]
    assert misses == of_second, "no other key has moved"


def test_listed_server_that_does_not_accept_yet_is_down_until_it_does(endpoint, memcached, proxima, tmp_path):
    first = memcached()
    later = ports.address()
    asked = endpoint(first.address)
    eject = {"probe_initial": "100ms", "probe_max": "100ms"}
    route = {"failover": [{"hash": "cache"}, {"nearest": "cache"}]}
    proxy = proxima(config(route, {"cache": pool(asked, tmp_path, eject=eject)}))
    with Load(proxy.address, rate=300, tolerant=True) as load:
        asked.set(2, first.address, later)
        until(lambda: later in members(proxy), "it is a member")
        until(lambda: proxy.member(later)["state"] == "ejected", "and down")
        load.after(50)
        assert proxy.metric("endpoint_up") == 1 and proxy.http("/ready")[0] == 200
        memcached(port=int(later.rsplit(":", 1)[1]))
        until(lambda: proxy.member(later)["state"] == "up", "it accepts now")
        load.after(50)
    assert not load.errors


def test_lower_version_of_a_node_that_lags_changes_nothing(endpoint, nodes, proxima, tmp_path):
    asked = endpoint(*addresses(nodes), version=7)
    proxy = proxima(config(COPIES, {"cache": pool(asked, tmp_path)}))
    version = proxy.version()
    for lagging in (addresses(nodes[:2]), ["127.0.0.9:1"]):
        asked.set(6, *lagging)
        answered(proxy)
        assert members(proxy) == addresses(nodes)
    assert proxy.version() == version and proxy.metric("endpoint_version") == 7
    passed = [line for line in proxy.log().splitlines() if "passed over a list" in line]
    assert len(passed) == 1 and "version=6" in passed[0], passed
    asked.set(8, *addresses(nodes[:2]))
    until(lambda: members(proxy) == addresses(nodes[:2]), "the next higher version counts")


def test_lower_version_counts_when_the_cluster_was_made_anew(endpoint, nodes, proxima, tmp_path):
    before, after = nodes[:2], nodes[2:]
    asked = endpoint(*addresses(before), version=7)
    proxy = proxima(config(COPIES, {"cache": pool(asked, tmp_path)}))
    asked.set(1, *addresses(after))
    answered(proxy)
    assert members(proxy) == addresses(before), "its nodes are still there"
    before[0].kill()
    answered(proxy)
    assert members(proxy) == addresses(before), "one of them is"
    before[1].kill()
    until(lambda: members(proxy) == addresses(after), "now the new cluster serves")
    assert proxy.metric("endpoint_version") == 1
    asked.set(2, after[0].address)
    until(lambda: members(proxy) == [after[0].address], "and its versions count")


def test_cluster_that_counts_anew_with_the_same_nodes_is_followed(endpoint, nodes, proxima, tmp_path):
    asked = endpoint(*addresses(nodes), version=7)
    proxy = proxima(config(COPIES, {"cache": pool(asked, tmp_path)}))
    asked.set(1, *addresses(nodes))
    until(lambda: proxy.metric("endpoint_version") == 1, "its number is taken")
    asked.set(2, nodes[0].address)
    until(lambda: members(proxy) == [nodes[0].address], "and the next list")


@pytest.mark.parametrize("closes", [False, True], ids=["stays open", "closes"])
@pytest.mark.parametrize("trouble", TROUBLES)
def test_bad_answer_of_an_endpoint_changes_no_server(endpoint, nodes, proxima, tmp_path, trouble, closes):
    asked = endpoint(*addresses(nodes))
    proxy = proxima(config(COPIES, {"cache": pool(asked, tmp_path)}))
    version, memory = proxy.version(), proxy.memory("VmHWM")
    asked.trouble, asked.closes = TROUBLES[trouble], closes
    failed(proxy, 1)
    assert proxy.metric("endpoint_up", pool="cache", name=asked.address) == 0
    assert members(proxy) == addresses(nodes) and proxy.version() == version
    grown = proxy.memory("VmHWM") - memory
    assert grown < 16 << 20, f"memory grew by {grown >> 20} MiB"
    asked.trouble, asked.closes = None, False
    until(lambda: proxy.metric("endpoint_up") == 1, "it answers again")
    assert members(proxy) == addresses(nodes) and proxy.metric("config_reloads_total") == 0
    told = [line for line in proxy.log().splitlines() if "WARN" in line or "ERROR" in line or "again" in line]
    assert "the endpoint fails" in told[0], told
    # On a busy machine a good answer may be late, too.
    assert any("the endpoint answers again" in line for line in told[1:]), told


def test_endpoint_that_is_gone_changes_no_server_and_counts_when_it_is_back(
    endpoint, nodes, proxima, tmp_path
):
    asked = endpoint(*addresses(nodes))
    proxy = proxima(config(COPIES, {"cache": pool(asked, tmp_path)}))
    with Load(proxy.address, rate=300) as load:
        asked.stop()
        failed(proxy)
        assert members(proxy) == addresses(nodes)
        load.after(50)
        endpoint(*addresses(nodes[:2]), version=2, port=asked.port)
        until(lambda: members(proxy) == addresses(nodes[:2]), "it is back, with another list")
        load.after(50)
    assert "Connection refused" in proxy.log()


def test_endpoint_that_wants_tls_is_named_as_such(endpoint, command, proxima, tmp_path):
    keys = tmp_path / "keys"
    assert command("fleet", "keys", str(keys), "n0").returncode == 0
    [certificate] = keys.rglob("n0.pem")
    asked = endpoint("127.0.0.1:1", certificate=(certificate, certificate.with_suffix(".key")))
    proxy = proxima(config("cache", {"cache": pool(asked, tmp_path)}))
    assert "it wants TLS: the pool needs `tls`" in proxy.log()
    assert proxy.metric("endpoint_up") == 0


def test_server_without_auto_discovery_is_named_as_such(memcached, proxima, tmp_path):
    proxy = proxima(config("cache", {"cache": pool(memcached(), tmp_path)}))
    assert "auto discovery is not configured there" in proxy.log()


def test_start_without_the_endpoint_uses_the_list_that_was_kept(endpoint, nodes, proxima, tmp_path):
    asked = endpoint(*addresses(nodes), version=7)
    made = config(COPIES, {"cache": pool(asked, tmp_path)})
    proxy = proxima(made)
    asked.set(8, *addresses(nodes[:3]))
    until(lambda: proxy.metric("endpoint_version") == 8, "the newest list")
    until(lambda: (tmp_path / "nodes").read_text().startswith("8\n"), "is kept")
    proxy.kill()
    asked.stop()
    proxy = proxima(made)
    assert members(proxy) == addresses(nodes[:3]) and proxy.http("/ready")[0] == 200
    with proxy.raw() as client:
        client.set("k", "v")
        assert client.get("k") == b"v"
    assert proxy.metric("endpoint_up") == 0 and proxy.metric("endpoint_version") == 8
    # What lags behind is known as such after a restart, too.
    back = endpoint(nodes[0].address, version=7, port=asked.port)
    answered(proxy)
    assert members(proxy) == addresses(nodes[:3])
    back.set(9, *addresses(nodes))
    until(lambda: members(proxy) == addresses(nodes), "the endpoint is back")


def test_kept_list_that_is_damaged_is_told_of_and_not_used(endpoint, proxima, tmp_path):
    (tmp_path / "nodes").write_text("7\n127.0.0.1|127.0.0.1\n")
    asked = endpoint()
    proxy = proxima(config("cache", {"cache": pool(asked, tmp_path)}))
    assert members(proxy) == []
    assert "the list of nodes that was kept cannot be used" in proxy.log()


def test_endpoint_without_an_answer_does_not_hold_up_the_start(endpoint, nodes, proxima, tmp_path, command):
    address = ports.address()
    made = config("cache", {"cache": pool(address, tmp_path)})
    proxy = proxima(made)
    status, text = proxy.http("/ready")
    assert status == 503 and "pool cache: 0 of 0 members up" in text
    with proxy.raw() as client:
        answer = client.ask(b"get k\r\n")
    assert answer == b"SERVER_ERROR pool cache has no servers: the endpoint has not named any yet\r\n"
    checked = command("check", str(proxy.file))
    told = f"pool cache has no servers: the endpoint has named none for {address} (cannot connect: "
    assert checked.returncode == 0 and told in checked.stdout + checked.stderr
    assert told in proxy.explain("k")
    endpoint(*addresses(nodes), port=int(address.rsplit(":", 1)[1]))
    until(lambda: proxy.http("/ready")[0] == 200, "ready as soon as it answers")
    assert members(proxy) == addresses(nodes)


def test_check_of_a_configuration_keeps_no_list(endpoint, nodes, command, tmp_path):
    asked = endpoint(*addresses(nodes))
    file = tmp_path / "p.yaml"
    file.write_text(json.dumps(config("cache", {"cache": pool(asked, tmp_path)})))
    checked = command("check", str(file))
    assert checked.returncode == 0, checked.stderr
    assert asked.asked and not (tmp_path / "nodes").exists()


def test_reload_to_an_endpoint_without_an_answer_is_refused_until_it_answers(
    endpoint, nodes, proxima, tmp_path
):
    made = config(COPIES, {"cache": addresses(nodes[:1])})
    proxy = proxima(made)
    asked = endpoint()
    with Load(proxy.address, rate=300) as load:
        proxy.write({**made, "pools": {"cache": pool(asked, tmp_path)}})
        status, text = proxy.reload()
        assert status == 422 and f"pool cache: no answer for {asked.address} (it has no list" in text
        load.after(50)
        asked.set(1, *addresses(nodes))
        until(lambda: members(proxy) == addresses(nodes), "it takes effect with the first answer")
        load.after(50)


def test_endpoint_is_asked_once_a_minute_and_at_once_when_a_member_is_lost(endpoint, nodes, proxima):
    asked = endpoint(*addresses(nodes))
    proxy = proxima(config("cache", {"cache": {"elasticache": asked.address}}))
    time.sleep(2.5)
    assert asked.asked == [NEW], "nothing has happened since the start"
    asked.set(2, *addresses(nodes[:3]))
    nodes[3].kill()
    begun = time.monotonic()
    with proxy.raw() as client:

        def is_lost():
            for number in range(20):
                client.ask(b"get k%d\r\n" % number)
            return nodes[3].address not in members(proxy)

        until(is_lost, "the list without it")
    assert time.monotonic() - begun < 10
    assert asked.asked == [NEW] * 2


@pytest.mark.skipif(not may_mount(), reason="only root has a resolv.conf of its own, and port 53")
def test_endpoint_that_moves_to_another_address_is_followed(endpoint, nodes, cleanup, io, tmp_path):
    system = System(tmp_path)
    cleanup.callback(system.stop)
    port = ports.free_on(["127.0.7.1", "127.0.7.2"])
    first = endpoint(*addresses(nodes[:2]), host="127.0.7.1", port=port)
    system.names.set(NAME, "127.0.7.1")
    made = config(COPIES, {"cache": pool(f"{NAME}:{port}", tmp_path)})
    made["admin"] = ports.address()
    file = tmp_path / "p.yaml"
    file.write_text(json.dumps(made))
    command = [*system.before, BINARY, "run", "--config", str(file), "--io", io]
    proxy = Program(command, tmp_path, [made["listeners"][0]["address"]], made["admin"])
    cleanup.callback(proxy.stop)
    proxy.wait_ready()
    assert members(proxy) == addresses(nodes[:2])
    endpoint(*addresses(nodes), version=2, host="127.0.7.2", port=port)
    with Load(proxy.address, rate=300) as load:
        system.names.set(NAME, "127.0.7.2")
        until(lambda: members(proxy) == addresses(nodes), "the other address is asked")
        load.after(50)
        first.stop()
        system.names.trouble = lambda request, reply, transport: None
        failed(proxy, 1)
        assert members(proxy) == addresses(nodes), "a name that cannot be looked up changes nothing"
        load.after(50)


def test_5000_servers_of_an_endpoint_serve(endpoint, memcached, proxima, tmp_path):
    """One memcached on every address of this host stands for all servers."""
    server = memcached(host="0.0.0.0", options=("-c", "8192"))
    port = server.address.rsplit(":", 1)[1]
    many = [f"127.1.{number // 250}.{number % 250 + 1}:{port}" for number in range(5000)]
    asked = endpoint(*many)
    proxy = proxima(config("cache", {"cache": pool(asked, tmp_path, interval="1s")}, workers=1))
    assert proxy.metric("pool_members", pool="cache", up="true") == 5000
    with proxy.raw() as client:
        for number in range(50):
            client.set(f"k{number}", "v")
            assert client.get(f"k{number}") == b"v"
