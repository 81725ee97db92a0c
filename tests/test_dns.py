"""Members by DNS: a new server serves as soon as an answer names it, and no bad answer changes anything."""

import json
import time

import pytest
from dnslib import RCODE

from harness import until
from harness.copies import copies_of, until_current
from harness.load import Load
from harness.members import COPIES, HOSTS, addresses, members, questions
from harness.names import TROUBLES, Names, System, may_mount, rcode
from harness.proxy import config

pytestmark = pytest.mark.either_io

NAME = "memcached.cache.svc.cluster.local"
answered, failed = questions("dns")


@pytest.fixture
def names(cleanup):
    server = Names()
    cleanup.callback(server.stop)
    return server


def pool(names, port, interval="100ms", **keys):
    """A pool by DNS, asked more often than by default, so that tests wait less. The default has a test of its
    own."""
    name = f"{NAME}:{port}" if port else NAME
    return {"dns": {"name": name, "interval": interval, "server": names.address, **keys}}


def port_of(node):
    return int(node.address.rsplit(":", 1)[1])


def test_dns_adds_and_removes_servers_with_one_answer(names, nodes, proxima):
    names.set(NAME, *HOSTS[:3])
    # This uses the default: DNS is asked every second.
    dns = {"name": f"{NAME}:{port_of(nodes[0])}", "server": names.address}
    proxy = proxima(config(COPIES, {"cache": {"dns": dns}}))
    assert members(proxy) == addresses(nodes[:3])
    shown = []

    def once(request, reply, transport):
        """Lets one answer with the fourth server through, and is silent afterwards."""
        if shown:
            return None
        shown.append(time.monotonic())
        return reply

    with Load(proxy.address, rate=300) as load, proxy.raw() as client:
        names.set(NAME, *HOSTS)
        names.trouble = once
        until(lambda: nodes[3].address in members(proxy), "the fourth is a member")
        print(f"the fourth served {time.monotonic() - shown[0]:.3f} s after the first answer with it")
        client.set("k", "v")
        assert [node.get("k") for node in nodes] == [b"v"] * 4
        names.trouble = None
        names.set(NAME, *HOSTS[:1], *HOSTS[2:])
        until(lambda: nodes[1].address not in members(proxy), "the second is none any more")
        client.set("k", "w")
        assert [node.get("k") for node in nodes] == [b"w", b"v", b"w", b"w"]
        load.after(100)
    until(lambda: nodes[1].stat("curr_connections") == 1, "no connection to it is left")
    assert {name for name, *_ in names.asked} == {NAME}, "no search domain is tried"


def test_the_order_of_a_dns_answer_changes_nothing(names, nodes, proxima):
    names.set(NAME, *HOSTS)
    proxy = proxima(config("cache", {"cache": pool(names, port_of(nodes[0]))}))
    version = proxy.version()
    answered(proxy, 20)
    assert members(proxy) == addresses(nodes)
    assert proxy.version() == version and proxy.metric("config_reloads_total") == 0


@pytest.mark.parametrize("trouble", TROUBLES)
def test_a_bad_dns_answer_changes_no_server(names, nodes, proxima, trouble):
    names.set(NAME, *HOSTS)
    proxy = proxima(config(COPIES, {"cache": pool(names, port_of(nodes[0]))}))
    version = proxy.version()
    assert proxy.metric("dns_up", pool="cache", name=NAME) == 1
    with Load(proxy.address, rate=300) as load:
        names.trouble = TROUBLES[trouble]
        failed(proxy)
        assert proxy.metric("dns_up") == 0
        assert members(proxy) == addresses(nodes) and proxy.version() == version
        load.after(50)
        names.trouble = None
        until(lambda: proxy.metric("dns_up") == 1, "it answers again")
        load.after(50)
    assert proxy.version() == version and proxy.metric("config_reloads_total") == 0
    told = [line for line in proxy.log().splitlines() if "WARN" in line or "ERROR" in line or "again" in line]
    assert len(told) == 2 and "DNS fails" in told[0] and "DNS answers again" in told[1], told


def test_a_dns_name_without_records_keeps_its_last_servers(names, nodes, proxima):
    names.set(NAME, *HOSTS)
    proxy = proxima(config(COPIES, {"cache": pool(names, port_of(nodes[0]))}))
    names.set(NAME)
    failed(proxy)
    assert members(proxy) == addresses(nodes)
    names.set(NAME, HOSTS[2])
    until(lambda: members(proxy) == [nodes[2].address], "the next good answer counts")


def test_1000_servers_of_one_dns_name_come_by_tcp(names, memcached, proxima):
    """One memcached on every address of this host stands for all servers, so no key is missed wherever it
    goes."""
    server = memcached(host="0.0.0.0", options=("-c", "8192"))
    many = [f"127.1.{number // 250}.{number % 250 + 1}" for number in range(1000)]
    names.set(NAME, HOSTS[0])
    proxy = proxima(config("cache", {"cache": pool(names, port_of(server))}))
    with Load(proxy.address, clients=20, rate=400) as load:
        names.set(NAME, *many)
        until(lambda: len(members(proxy)) == 1000, "all of them are members")
        load.after(400)
        assert proxy.metric("pool_members", pool="cache", up="true") == 1000
        names.set(NAME, *many[:500])
        until(lambda: len(members(proxy)) == 500, "half of them have gone")
        load.after(200)
        names.set(NAME, HOSTS[0])
        until(lambda: len(members(proxy)) == 1, "all but one have gone")
        load.after(200)
    assert names.questions("tcp") > 0
    until(lambda: proxy.metric("lanes") <= 4, "connections to those that have gone are closed")


def test_srv_records_give_ports_weights_and_priorities(names, memcached, proxima):
    first, second, spare = memcached.several(3)
    names.set("a.node", "127.0.0.1")
    names.set("b.node", "127.0.0.1")
    names.set("gone.node")
    ours = [(10, 50, port_of(first), "a.node"), (10, 25, port_of(second), "b.node"), (10, 25, 1, "gone.node")]
    names.set_services(NAME, *ours, (20, 25, port_of(spare), "a.node"))
    proxy = proxima(config({"all_sync": "cache"}, {"cache": pool(names, None, record="srv")}))
    rows = json.loads(proxy.http("/members")[1])
    expected = sorted([(first.address, 2.0), (second.address, 1.0)], key=lambda row: port_of_address(row[0]))
    assert [(row["address"], row["weight"]) for row in rows] == expected
    version = proxy.version()

    # A target whose look-up fails is not gone.
    def trouble(request, reply, transport):
        return rcode(RCODE.SERVFAIL)(request, reply, transport) if "b.node" in str(request.q.qname) else reply

    names.trouble = trouble
    failed(proxy)
    assert proxy.version() == version
    names.trouble = None
    # Kubernetes' weights change with the number of pods. Equal weights mean the same as before.
    names.set_services(NAME, (0, 100, port_of(first), "a.node"))
    until(lambda: members(proxy) == [first.address], "one is left")
    assert proxy.member(first.address)["weight"] == 1.0
    # Without the other servers, the next priority is the best.
    names.set_services(NAME, (20, 25, port_of(spare), "a.node"))
    until(lambda: members(proxy) == [spare.address], "the spare one serves")


def test_addresses_beside_srv_records_may_be_truncated(names, proxima):
    names.set("single.node", "127.0.0.1")
    names.set("several.node", "127.0.0.2", "127.0.0.3", "127.0.0.4", "::1")
    names.set("six.node", "::1")
    names.set_services(
        NAME, *((1, 1, port, f"{node}.node") for port, node in enumerate(("single", "several", "six"), 1))
    )
    proxy = proxima(config({"all_sync": "cache"}, {"cache": pool(names, None, record="srv")}))
    expected = ["127.0.0.1:1", "127.0.0.2:2", "127.0.0.3:2", "127.0.0.4:2", "[::1]:3"]
    for along in range(6):
        names.along = along
        answered(proxy)
        assert members(proxy) == expected, along
    assert proxy.metric("config_reloads_total") == 0
    # A target whose only address came with the SRV records is not looked up.
    asked = len(names.asked)
    answered(proxy)
    assert "single.node" not in {name for name, *_ in names.asked[asked:]}


def port_of_address(address):
    return int(address.rsplit(":", 1)[1])


def test_aaaa_records_give_ipv6_servers(names, memcached, proxima):
    server = memcached(host="::1")
    names.set(NAME, "::1", "127.0.0.1")
    proxy = proxima(config("cache", {"cache": pool(names, port_of(server), record="aaaa")}))
    assert members(proxy) == [server.address]
    with proxy.raw() as client:
        client.set("k", "v")
    assert server.get("k") == b"v"


@pytest.mark.parametrize("trouble", ["NXDOMAIN", "silence"])
def test_a_dns_name_without_an_answer_does_not_hold_up_the_start(names, nodes, proxima, trouble):
    names.trouble = TROUBLES[trouble]
    routes = [
        "cache",
        {"nearest": "cache"},
        {"all_sync": "cache"},
        {"all_async": "cache"},
        {"random": "cache"},
    ]
    also = {"failover": ["cache", "embedded"]}
    proxy = proxima(config(routes[0], {"cache": pool(names, port_of(nodes[0]))}, *routes[1:], also))
    status, text = proxy.http("/ready")
    assert status == 503 and "pool cache: 0 of 0 members up" in text
    assert proxy.metric("dns_up") == 0 and proxy.metric("pool_members", pool="cache") == 0
    assert "DNS fails" in proxy.log()
    for listener, route in enumerate(routes):
        with proxy.raw(listener) as client:
            if "all_async" not in route:
                for request in (b"get k\r\n", b"set k 0 0 1\r\nv\r\n", b"delete k\r\n"):
                    answer = client.ask(request)
                    assert answer.startswith(b"SERVER_ERROR ") and b"DNS has not named any" in answer, (
                        route,
                        answer,
                    )
    with proxy.raw(len(routes)) as client:
        client.set("k", "v")
        assert client.get("k") == b"v"
    names.trouble = None
    names.set(NAME, *HOSTS)
    until(lambda: proxy.http("/ready")[0] == 200, "ready as soon as it answers")
    with proxy.raw(2) as client:
        client.set("k", "v")
    assert [node.get("k") for node in nodes] == [b"v"] * 4


def test_a_copy_missing_from_dns_for_a_moment_loses_only_missed_keys(names, nodes, proxima):
    """This happens to a pod that is not ready for a while."""
    names.set(NAME, *HOSTS)
    proxy = proxima(config("cache", {"cache": {**pool(names, port_of(nodes[0])), "replicated": True}}))
    with proxy.raw() as client:
        client.set("k", "old")
        client.set("other", "v")
        names.set(NAME, *HOSTS[1:])
        until(lambda: proxy.member(nodes[0].address)["copy"].get("departed"), "it has left")
        client.set("k", "new")
        until(lambda: copies_of(nodes, "k") == [b"old"] + [b"new"] * 3, "it is not written")
        assert client.get("k") == b"new"
        names.set(NAME, *HOSTS)
        until_current(proxy, nodes[0])
    assert copies_of(nodes, "k") == [None] + [b"new"] * 3
    assert copies_of(nodes, "other") == [b"v"] * 4


def test_a_reload_to_a_name_without_an_answer_is_refused_until_dns_answers(names, nodes, proxima):
    made = config(COPIES, {"cache": addresses(nodes[:1])})
    proxy = proxima(made)
    version = proxy.version()
    with Load(proxy.address, rate=300) as load:
        proxy.write({**made, "pools": {"cache": pool(names, port_of(nodes[0]))}})
        status, text = proxy.reload()
        assert status == 422 and f"pool cache: no answer for {NAME} (there is no such name)" in text
        load.after(50)
        assert proxy.version() == version and proxy.http("/ready")[0] == 200
        names.set(NAME, *HOSTS)
        until(lambda: members(proxy) == addresses(nodes), "it takes effect with the first answer")
        load.after(50)
        assert proxy.reload()[0] == 200
        # The old configuration is back, and DNS is not asked any more.
        proxy.write(made)
        assert proxy.reload()[0] == 200
        asked = len(names.asked)
        load.after(100)
        assert len(names.asked) <= asked + 1


def test_a_reload_to_dns_has_its_servers_at_once(names, nodes, proxima):
    made = config(COPIES, {"cache": addresses(nodes[:1])})
    proxy = proxima(made)
    names.set(NAME, *HOSTS)
    with Load(proxy.address, rate=300) as load:
        for number in range(10):
            dns = pool(names, port_of(nodes[0]), interval=f"{number + 100}ms")
            proxy.write({**made, "pools": {"cache": dns if number % 2 == 0 else addresses(nodes[:1])}})
            assert proxy.reload()[0] == 200
            assert len(members(proxy)) == (4 if number % 2 == 0 else 1)
            load.after(20)
    assert proxy.metric("config_failures_total") == 0


def test_dns_is_followed_while_the_configuration_file_is_bad(names, nodes, proxima):
    names.set(NAME, *HOSTS[:1])
    proxy = proxima(config(COPIES, {"cache": pool(names, port_of(nodes[0]))}))
    proxy.write("listeners: [\n")
    until(lambda: proxy.metric("config_failures_total") > 0, "the file is refused")
    names.set(NAME, *HOSTS)
    until(lambda: members(proxy) == addresses(nodes), "all are members")


def test_two_pools_may_use_one_dns_name(names, nodes, proxima):
    names.set(NAME, *HOSTS)
    pools = {"cache": pool(names, port_of(nodes[0])), "other": pool(names, port_of(nodes[0]))}
    proxy = proxima(config(COPIES, pools, {"all_sync": "other"}))
    assert len(members(proxy)) == 8
    assert proxy.metric("dns_up") == 2


def test_explain_resolves_names_without_a_running_proxy(names, command, tmp_path):
    names.set(NAME, "127.0.0.9")
    file = tmp_path / "proxima.yaml"
    file.write_text(json.dumps(config("cache", {"cache": pool(names, 11211)})))
    done = command("explain", "k", "--config", str(file))
    assert done.returncode == 0 and "127.0.0.9:11211" in done.stdout, done


@pytest.mark.skipif(not may_mount(), reason="only root has a resolv.conf of its own, and port 53")
def test_name_servers_come_from_resolv_conf_and_names_from_hosts(cleanup, nodes, proxima, tmp_path):
    """The files are those of a pod, with one more name in /etc/hosts."""
    system = System(tmp_path)
    cleanup.callback(system.stop)
    names, resolv, hosts = system.names, system.resolv, system.hosts
    names.set(NAME, *HOSTS)
    hosts.write_text(f"{HOSTS[1]} own\n")
    port = port_of(nodes[0])
    pools = {"cache": {"dns": f"{NAME}:{port}"}, "own": {"dns": f"own:{port}"}}
    proxy = proxima(config(COPIES, pools, "own"), before=system.before)
    assert members(proxy) == [*addresses(nodes), nodes[1].address]
    assert {name for name, *_ in names.asked} == {NAME}
    # The files are read again when they change.
    hosts.write_text(f"{HOSTS[2]} own\n")
    until(lambda: members(proxy)[4:] == [nodes[2].address], "a changed /etc/hosts counts")
    version = proxy.version()
    resolv.write_text("")
    failed(proxy)
    assert proxy.version() == version
    resolv.write_text(f"nameserver {names.host}\n")
    until(lambda: proxy.metric("dns_up", pool="cache") == 1, "it is asked again")
    # A dead name server in front does not matter, not even where the answer needs TCP.
    resolv.write_text(f"nameserver 127.53.53.54\nnameserver {names.host}\n")
    names.set(NAME, *(f"127.2.0.{number}" for number in range(1, 201)))
    until(lambda: len(members(proxy)) == 201, "the second name server is asked")
