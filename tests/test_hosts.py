"""Servers written with host names: whatever DNS answers, the proxy starts, serves the others, and follows
each name."""

import json

import pytest

from harness import ports, until
from harness.copies import copies_of
from harness.load import Load
from harness.names import TROUBLES, System, may_mount
from harness.proxy import BINARY, Program, config

pytestmark = [
    pytest.mark.either_io,
    pytest.mark.skipif(not may_mount(), reason="only root has a resolv.conf of its own, and port 53"),
]

IPS = ["127.0.0.1", "127.0.0.2", "127.0.0.3", "127.0.0.4"]
NAMES = [f"mc-{number}.mc.cache.svc.cluster.local" for number in range(3)]
COPIES = {"by_operation": {"read": {"nearest": "cache"}, "default": {"all_sync": "cache"}}}


@pytest.fixture
def system(cleanup, tmp_path):
    system = System(tmp_path)
    cleanup.callback(system.stop)
    return system


@pytest.fixture
def nodes(memcached):
    """A memcached on each address, all on one port. There is one more than there are names."""
    return memcached.on(IPS)


def servers(nodes, names=NAMES):
    port = nodes[0].address.rsplit(":", 1)[1]
    return [f"{name}:{port}" for name in names]


def where(proxy, listed=None):
    """The addresses to which the names lead, of these servers or of all."""
    found = {row["address"]: row.get("resolves_to") for row in json.loads(proxy.http("/members")[1])}
    return [found[server] for server in listed or sorted(found)]


def resolve(system, *ips):
    for name, ip in zip(NAMES, ips):
        if ip:
            system.names.set(name, ip)


def refused(client, request, server, before=""):
    answer = client.ask(request)
    return answer == f"SERVER_ERROR {before}{server}: ejected: its name does not resolve\r\n".encode()


@pytest.mark.parametrize("trouble", ["NXDOMAIN", "empty", "SERVFAIL"])
def test_a_server_whose_name_has_no_address_is_ejected_and_others_serve(system, nodes, proxima, trouble):
    resolve(system, *IPS[:2])
    bad = TROUBLES[trouble]
    system.names.trouble = lambda request, reply, transport: (
        bad(request, reply, transport) if "mc-2" in str(request.q.qname) else reply
    )
    listed = servers(nodes)
    routes = [COPIES, "cache", {"failover": [{"member": f"cache/{listed[2]}"}, "embedded"]}]
    proxy = proxima(
        config(routes[0], {"cache": listed}, *routes[1:]), "--node-address", "192.0.2.1", before=system.before
    )
    lost = proxy.member(listed[2])
    assert lost["state"] == "ejected" and lost["why"].startswith("its name does not resolve: "), lost
    assert where(proxy) == [nodes[0].address, nodes[1].address, None]
    assert [line for line in proxy.log().splitlines() if "does not resolve" in line and NAMES[2] in line]
    assert "is on this host" not in proxy.log(), "the lost one may be"
    assert proxy.http("/ready")[0] == 200 and proxy.http("/ready?up=3")[0] == 503
    assert proxy.metric("dns_up", name=NAMES[2]) == 0 and proxy.metric("dns_up") == 2
    with proxy.raw() as client:
        assert refused(client, b"set k 0 0 1\r\nv\r\n", listed[2])
        assert client.get("k") == b"v", "the others have it"
        assert "1 passed by, as their names do not resolve" in proxy.explain("k")
    with proxy.raw(1) as client:
        # The hash chooses one of three servers, and no other takes the lost one's keys.
        answers = {client.ask(f"set {key} 0 0 1\r\nv\r\n".encode())[:12] for key in range(100)}
        assert answers == {b"STORED\r\n", b"SERVER_ERROR"}
    with proxy.raw(2) as client:
        client.set("k", "v")
        assert "ejected as its name does not resolve" in proxy.explain("k", listener=2)
    failures = proxy.metric("dns_failures_total")
    until(lambda: proxy.metric("dns_failures_total") >= failures + 2, "it is asked again")
    assert proxy.log().count("does not resolve") == 1, "it is told once"


def test_servers_without_addresses_at_the_start_serve_once_dns_answers(system, nodes, proxima):
    resolve(system, *IPS)
    system.names.trouble = TROUBLES["silence"]
    proxy = proxima(config(COPIES, {"cache": servers(nodes)}), before=system.before)
    assert where(proxy) == [None] * 3 and proxy.http("/ready")[0] == 503
    with proxy.raw() as client:
        assert refused(client, b"get k\r\n", servers(nodes)[0])
    system.names.trouble = None
    until(lambda: proxy.http("/ready?up=3")[0] == 200, "all names have come")
    assert proxy.metric("config_reloads_total") == 1, "they come together"
    with proxy.raw() as client:
        client.set("k", "v")
    assert copies_of(nodes, "k") == [b"v"] * 3 + [None]


def test_a_host_name_that_appears_or_moves_is_followed(system, nodes, proxima):
    """Under load, only requests to the server whose name has no address fail."""
    resolve(system, IPS[0])
    made = config("cache", {"cache": servers(nodes)[:2]})
    proxy = proxima(made, before=system.before)
    resolve(system, IPS[0], IPS[1])
    until(lambda: where(proxy) == [nodes[0].address, nodes[1].address], "the second has come")
    with proxy.raw() as client:
        for key in range(100):
            client.set(str(key), "v")
    placed = [[key for key in range(100) if node.get(str(key))] for node in nodes]
    assert placed[0] and placed[1] and not placed[2]
    version = proxy.version()
    # The old server has the values. Reads miss, and writes go to the new one.
    with Load(proxy.address, rate=300, tolerant=True) as load:
        resolve(system, IPS[2], IPS[1])
        until(lambda: where(proxy) == [nodes[2].address, nodes[1].address], "the first has moved")
        load.after(200)
        assert not load.errors
    with proxy.raw() as client:
        for key in range(100):
            client.set(str(key), "w")
    assert [key for key in range(100) if nodes[2].get(str(key))] == placed[0], "the hash knows names only"
    assert [key for key in range(100) if nodes[1].get(str(key)) == b"w"] == placed[1]
    assert proxy.version() == version, "it is the same configuration"
    until(lambda: nodes[0].stat("curr_connections") == 1, "no connection to the old one is left")


def test_a_host_name_keeps_its_address_in_use_while_dns_lists_it(system, nodes, proxima):
    system.names.set(NAMES[0], IPS[1])
    proxy = proxima(config("cache", {"cache": servers(nodes)[:1]}), before=system.before)

    def asked(more):
        goal = proxy.metric("dns_answers_total") + more
        until(lambda: proxy.metric("dns_answers_total") >= goal, "it is asked again")

    system.names.set(NAMES[0], *IPS[:3])
    asked(2)
    assert where(proxy) == [nodes[1].address] and proxy.metric("config_reloads_total") == 0
    # Failures change nothing.
    for trouble in ("NXDOMAIN", "empty", "SERVFAIL", "garbage"):
        system.names.trouble = TROUBLES[trouble]
        until(lambda: proxy.metric("dns_up") == 0, "it fails")
        assert where(proxy) == [nodes[1].address] and proxy.member(servers(nodes)[0])["state"] == "up"
        system.names.trouble = None
        until(lambda: proxy.metric("dns_up") == 1, "it answers again")
    system.names.set(NAMES[0], IPS[3], IPS[2])
    until(lambda: where(proxy) == [nodes[2].address], "the least of others")


def test_host_names_are_resolved_by_hosts_file_and_search_domains(system, memcached, proxima):
    """The names come from /etc/hosts, search domains, or IPv6 alone. `localhost` needs neither a file nor
    DNS."""
    port = ports.free_on(["127.0.0.1", "127.0.0.2", "::1"])
    nodes = [memcached(host=host, port=port) for host in ("127.0.0.1", "127.0.0.2", "::1")]
    system.names.set("mc-0.mc.svc.cluster.local", "127.0.0.2")
    system.names.set("six.svc.cluster.local", "::1")
    system.hosts.write_text("127.0.0.2 own\n")
    listed = [
        f"{name}:{port}" for name in ("localhost", "own", "mc-0.mc", "six", "mc-0.mc.svc.cluster.local.")
    ]
    proxy = proxima(config({"all_sync": "cache"}, {"cache": listed}), before=system.before)
    assert where(proxy, listed) == [nodes[index].address for index in (0, 1, 1, 2, 1)]
    asked = {name for name, *_ in system.names.asked}
    assert "localhost" not in asked and "own" not in asked
    # A name that was found by a search domain is looked up by its whole name from then on.
    before = len(system.names.asked)
    until(lambda: len(system.names.asked) >= before + 10, "they are asked again")
    again = {name for name, *_ in system.names.asked[before:]}
    assert again == {"mc-0.mc.svc.cluster.local", "six.svc.cluster.local"}
    system.hosts.write_text("127.0.0.1 own\n")
    until(lambda: where(proxy, listed)[1] == nodes[0].address, "a changed /etc/hosts counts")
    # This proxy has no DNS server.
    system.resolv.write_text("")
    alone = proxima(config({"all_sync": "cache"}, {"cache": listed[:3]}), before=system.before)
    assert where(alone, listed[:3]) == [nodes[0].address, nodes[0].address, None]
    assert "whom to ask is not known" in alone.member(listed[2])["why"]


def test_ip_addresses_are_not_looked_up(system, nodes, proxima):
    proxy = proxima(config(COPIES, {"cache": [node.address for node in nodes]}), before=system.before)
    system.names.set("late", IPS[0])
    assert proxy.metric("dns_up") == 0 and not system.names.asked
    # One reload adds names, and another removes them.
    made = {**proxy.config, "pools": {"cache": [f"late:{nodes[0].address.rsplit(':', 1)[1]}", "never:1"]}}
    proxy.write(made)
    assert proxy.reload()[0] == 200
    assert where(proxy) == [nodes[0].address, None]
    proxy.write(proxy.config)
    assert proxy.reload()[0] == 200
    asked = len(system.names.asked)
    with Load(proxy.address, rate=100) as load:
        load.after(200)
    assert len(system.names.asked) == asked


def test_a_file_of_servers_may_contain_host_names(system, nodes, proxima, tmp_path):
    file = tmp_path / "servers"
    file.write_text("".join(f"{server}\n" for server in servers(nodes)[:2]))
    resolve(system, *IPS[:2])
    proxy = proxima(config(COPIES, {"cache": {"file": str(file)}}), before=system.before)
    assert where(proxy) == [nodes[0].address, nodes[1].address]
    file.write_text("".join(f"{server}\n" for server in servers(nodes)))
    until(lambda: where(proxy)[2:] == [None], "the third is there without an address")
    resolve(system, IPS[0], IPS[3], IPS[2])
    until(lambda: where(proxy) == [nodes[index].address for index in (0, 3, 2)], "one moved, one came")


def replicated(nodes, **keys):
    pool = {"servers": servers(nodes), "timeout": "200ms", "replicated": True, **keys}
    return config("cache", {"cache": pool})


def copy_states(proxy):
    rows = json.loads(proxy.http("/members")[1])
    return [row["copy"]["state"] for row in sorted(rows, key=lambda row: row["address"])]


def test_a_copy_without_an_address_is_out_and_flushed_when_it_comes(system, nodes, proxima):
    resolve(system, *IPS[:2])
    nodes[2].set("k", "older")
    proxy = proxima(replicated(nodes), before=system.before)
    assert copy_states(proxy) == ["current", "current", "out"]
    assert proxy.member(servers(nodes)[2])["copy"]["why"] == "its name does not resolve"
    with Load(proxy.address, rate=300) as load, proxy.raw() as client:
        client.set("k", "v")
        assert client.get("k") == b"v"
        resolve(system, *IPS[:3])
        until(lambda: copy_states(proxy) == ["current"] * 3, "it is read again")
        load.after(100)
        assert nodes[2].get("k") is None, "it was flushed"
        client.set("k", "w")
        assert copies_of(nodes, "k") == [b"w"] * 3 + [None]


def test_a_copy_whose_name_moves_is_not_read_before_repair(system, nodes, proxima):
    """A pod of a StatefulSet starts again elsewhere. What the new server held is never read."""
    resolve(system, *IPS[:3])
    nodes[3].set("k", "older")
    proxy = proxima(replicated(nodes), before=system.before)
    with Load(proxy.address, rate=300, tolerant=True) as load, proxy.raw() as client:
        client.set("k", "v")
        resolve(system, IPS[3], IPS[1], IPS[2])
        while where(proxy)[0] != nodes[3].address or copy_states(proxy) != ["current"] * 3:
            # The value that the new server held is never read.
            assert client.get("k") in (b"v", None)
        load.after(100)
        assert not load.errors
        client.set("k", "w")
        assert copies_of(nodes, "k") == [b"v", b"w", b"w", b"w"]
    until(lambda: nodes[0].stat("curr_connections") == 1, "no connection to the old one is left")


def test_a_named_copy_that_returns_to_the_list_loses_only_missed_keys(system, nodes, proxima):
    """Its name is asked for while it is waited for: it is repaired of what it missed, and keeps the rest."""
    resolve(system, *IPS[:3])
    made = replicated(nodes)
    proxy = proxima(made, before=system.before)
    with proxy.raw() as client:
        client.set("k", "old")
        client.set("other", "v")
        proxy.write({**made, "pools": {"cache": {**made["pools"]["cache"], "servers": servers(nodes)[:2]}}})
        assert proxy.reload()[0] == 200
        client.set("k", "new")
        proxy.write(made)
        assert proxy.reload()[0] == 200
        until(lambda: copy_states(proxy) == ["current"] * 3, "it is read again")
    assert copies_of(nodes[:3], "k") == [b"new", b"new", None]
    assert copies_of(nodes[:3], "other") == [b"v"] * 3


def test_copies_that_all_come_late_from_dns_are_not_flushed(system, nodes, proxima):
    """DNS was down when the proxy started, which is no reason to flush the whole pool."""
    system.names.trouble = TROUBLES["silence"]
    resolve(system, *IPS[:3])
    for node in nodes[:3]:
        node.set("k", "v")
    proxy = proxima(replicated(nodes), before=system.before)
    with proxy.raw() as client:
        assert client.ask(b"get k\r\n").startswith(b"SERVER_ERROR ")
        assert client.ask(b"set k 0 0 1\r\nw\r\n").startswith(b"SERVER_ERROR ")
        system.names.trouble = None
        until(lambda: copy_states(proxy) == ["current"] * 3, "all are read")
        assert client.get("k") == b"v"
    assert proxy.metric("copy_flushes_total") == 0


def test_mcrouters_front_door_follows_host_names(system, nodes, cleanup, io, tmp_path):
    resolve(system, None, *IPS[1:3])
    route = {
        "type": "OperationSelectorRoute",
        "default_policy": "AllSyncRoute|Pool|A",
        "operation_policies": {"get": "FailoverRoute|Pool|A"},
    }
    made = {"pools": {"A": {"servers": servers(nodes)}}, "route": route}
    port, admin = ports.free(), ports.address()
    command = [
        *system.before,
        BINARY,
        "mcrouter",
        "--listen-addresses=127.0.0.1",
        f"--port={port}",
        f"--io={io}",
    ]
    command += [f"--config-str={json.dumps(made)}", f"--admin={admin}"]
    router = Program(command, tmp_path, [f"127.0.0.1:{port}"], admin).wait_ready()
    cleanup.callback(router.stop)
    with router.raw() as client:
        assert refused(client, b"set k 0 0 1\r\nv\r\n", servers(nodes)[0], "Server unavailable. Reason: ")
        assert client.get("k") == b"v", "a read fails over"
        resolve(system, *IPS[:3])
        until(lambda: where(router)[0] == nodes[0].address, "it has come")
        client.set("k", "w")
        assert copies_of(nodes, "k") == [b"w"] * 3 + [None]


def test_check_and_explain_resolve_host_names(system, command, tmp_path):
    resolve(system, IPS[0])
    file = tmp_path / "proxima.yaml"
    file.write_text(
        json.dumps(
            config({"nearest": "cache"}, {"cache": ["mc-0.mc.cache.svc.cluster.local:1", "mc-1.mc:1"]})
        )
    )
    checked = command(*system.before[1:], BINARY, "check", str(file), name=system.before[0])
    assert checked.returncode == 0 and checked.stderr.count("\n") == 1
    assert "pool cache: `mc-1.mc` does not resolve here (there is no such name)" in checked.stderr
    explained = command(
        *system.before[1:], BINARY, "explain", "k", "--config", str(file), name=system.before[0]
    )
    assert "1 passed by, as their names do not resolve" in explained.stdout
