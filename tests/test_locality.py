"""Distances by the node agent: each client reads from its own NUMA node, then its socket, then its host."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import pytest

from harness import until
from harness.agent import Agent, Impostor, joined, pod, stranger
from harness.load import Load
from harness.proxy import config

pytestmark = pytest.mark.either_io

NUMBERS = (0, 1, 2, 3)
SERVERS = [f"127.0.1.{n + 1}" for n in NUMBERS]
CLIENTS = [f"127.0.2.{n + 1}" for n in NUMBERS]
STRANGER = "127.0.3.1"
ROUTE = {"nearest": "cache"}


def pods(*more):
    """A server on each NUMA node, which has one CPU for a container and one to share, and a client beside
    each."""
    servers = [pod(f"s{n}", SERVERS[n], cpus=1) for n in NUMBERS]
    return [*servers, *(pod(f"c{n}", CLIENTS[n], near=f"s{n}") for n in NUMBERS), *more]


@pytest.fixture
def agent(cleanup, tmp_path):
    def start(placed=None):
        agent = Agent(tmp_path, placed or pods())
        cleanup.callback(agent.stop)
        return agent

    return start


@pytest.fixture
def servers(memcached):
    return [memcached(host=host) for host in SERVERS]


def followed(agent, servers, **keys):
    nodes = {"from": str(agent.socket), **keys}
    return config(ROUTE, {"cache": [server.address for server in servers]}, nodes=nodes)


def is_followed(proxy):
    return until(lambda: proxy.metric("agent_up") == 1, "the agent is followed")


def reads(proxy, servers, source, count=5):
    """The number of the one server whose reads rise when a client from this address reads."""
    before = [server.stat("cmd_get") for server in servers]
    with proxy.raw(source=source) as client:
        for _ in range(count):
            assert client.get("k") is None
    rise = [server.stat("cmd_get") - had for server, had in zip(servers, before)]
    assert sorted(rise) == [0] * (len(servers) - 1) + [count], rise
    return rise.index(count)


def test_each_client_reads_from_the_server_on_its_own_numa_node(agent, servers, proxima):
    agent = agent()
    nodes, sockets = agent.nodes(), agent.sockets()
    assert (
        sorted(nodes[f"s{n}"] for n in NUMBERS) == [0, 1, 2, 3] == sorted(nodes[f"c{n}"] for n in NUMBERS)
    ), nodes
    proxy = proxima(followed(agent, servers))
    is_followed(proxy)
    beside = {nodes[f"s{n}"]: n for n in NUMBERS}
    assert [reads(proxy, servers, source) for source in CLIENTS] == [beside[nodes[f"c{n}"]] for n in NUMBERS]
    assert reads(proxy, servers, STRANGER) == 0, "the host's distance to all: the pool's order"

    for client, source in enumerate(CLIENTS):
        node = nodes[f"c{client}"]
        for number, server in enumerate(servers):
            other = nodes[f"s{number}"]
            near = "numa_node" if other == node else "socket" if sockets[other] == sockets[node] else "host"
            row = proxy.member(server.address, of=source)
            assert (row["distance"], row["distance_source"], row["numa_nodes"]) == (near, "agent", [other])
        text = proxy.explain("k", of=source)
        chosen = servers[beside[node]].address
        assert f"client: NUMA node {node}, by the node agent" in text
        assert (
            "nearest: distance numa_node" in text
            and f"({chosen}) of pool cache: distance numa_node by agent" in text
        )
    assert proxy.member(servers[1].address)["distance"] == "host"
    assert "client: anywhere on this host" in proxy.explain("k")
    assert proxy.metric("pool_distances", pool="cache", distance="host", source="agent") == 4
    assert proxy.metric("agent_containers") == 0, "the simulated containers have no ids of a runtime"
    with proxy.raw(source=CLIENTS[0]) as near, proxy.raw(source=STRANGER) as far:
        near.get("k"), far.get("k")
        assert proxy.metric("clients_located", place="numa_node") == 1
        assert proxy.metric("clients_located", place="host") == 1
    assert proxy.http("/members?from=nowhere")[0] == 400
    assert proxy.http("/explain?key=k&from=nowhere")[0] == 400


def test_without_an_agent_all_clients_read_from_the_same_server(servers, proxima):
    proxy = proxima(config(ROUTE, {"cache": [server.address for server in servers]}))
    assert {reads(proxy, servers, source) for source in [*CLIENTS, STRANGER]} == {0}
    assert not [
        name for name in proxy.metrics() if name.startswith(("proxima_agent", "proxima_clients_located"))
    ]
    row = proxy.member(servers[0].address)
    assert (row["distance"], row["distance_source"]) == ("elsewhere", "nothing") and "numa_nodes" not in row


def test_clients_of_a_dead_server_read_from_the_next_nearest(agent, servers, proxima):
    agent = agent()
    nodes, sockets = agent.nodes(), agent.sockets()
    proxy = proxima(followed(agent, servers))
    is_followed(proxy)
    own = next(n for n in NUMBERS if nodes[f"s{n}"] == nodes["c0"])
    beside = next(n for n in NUMBERS if n != own and sockets[nodes[f"s{n}"]] == sockets[nodes["c0"]])
    assert reads(proxy, servers, CLIENTS[0]) == own
    servers[own].kill()

    def goes_on():
        with proxy.raw(source=CLIENTS[0]) as client:
            return b"SERVER_ERROR" not in client.ask(b"get k\r\n")

    until(goes_on, "reads go on")
    rest = [server for number, server in enumerate(servers) if number != own]
    assert rest[reads(proxy, rest, CLIENTS[0])] is servers[beside]
    assert "1 nearer ejected" in proxy.explain("k", of=CLIENTS[0])


def test_an_agent_killed_and_restarted_fails_no_request(agent, servers, proxima):
    agent = agent()
    proxy = proxima(followed(agent, servers, grace="1h"))
    is_followed(proxy)
    near = [reads(proxy, servers, source) for source in CLIENTS]
    assert sorted(near) == [0, 1, 2, 3]
    with Load([proxy.address], rate=300) as load:
        agent.kill()
        until(lambda: proxy.metric("agent_up") == 0, "its end is noticed")
        assert "the node agent is not followed" in proxy.log()
        assert "what it told last holds" in proxy.log()
        # The last snapshot stays in effect.
        assert [reads_beside(proxy, source) for source in CLIENTS] == ["numa_node"] * 4
        agent.start()
        is_followed(proxy)
        # Two clients change places. The proxy follows both.
        swapped = pods()
        for one, other in ((4, 5), (5, 4)):
            swapped[one]["status"]["podIP"] = CLIENTS[other - 4]
        agent.place(swapped)
        expected = [near[1], near[0], *near[2:]]
        chosen = [servers[n].address for n in expected]
        until(
            lambda: all(f"({c})" in proxy.explain("k", of=s) for c, s in zip(chosen, CLIENTS)),
            "the change is followed",
        )
    load.check()
    assert [reads(proxy, servers, source) for source in CLIENTS] == expected
    assert proxy.metric("agent_snapshots_total") >= 3 and proxy.metric("agent_failures_total") >= 1


def reads_beside(proxy, source):
    """The distance of the server to which a client from this address is sent."""
    text = proxy.explain("k", of=source)
    return text.partition("nearest: distance ")[2].split()[0]


def test_after_the_agents_grace_all_servers_on_the_host_are_equally_near(agent, servers, proxima):
    agent = agent()
    proxy = proxima(followed(agent, servers, grace="200ms"))
    is_followed(proxy)
    near = {reads(proxy, servers, source) for source in CLIENTS}
    assert near == {0, 1, 2, 3}
    with proxy.raw(source=CLIENTS[3]) as client:
        client.get("k")
        agent.kill()
        until(lambda: "gone for long" in proxy.log(), "the grace ends")
        assert {reads(proxy, servers, source) for source in CLIENTS} == {0}
        before = servers[0].stat("cmd_get")
        client.get("k")
        assert servers[0].stat("cmd_get") == before + 1, "one who was connected goes there, too"
    assert proxy.member(servers[0].address, of=CLIENTS[0])["distance"] == "elsewhere"


def test_a_reload_begins_and_ends_following_the_agent(agent, servers, proxima):
    agent = agent()
    wanted = followed(agent, servers)
    plain = {key: value for key, value in wanted.items() if key != "nodes"}
    proxy = proxima(dict(plain))
    wanted["admin"] = proxy.config["admin"]
    with proxy.raw(source=CLIENTS[2]) as client:
        client.get("k")
        proxy.write(wanted)
        assert proxy.reload()[0] == 200
        is_followed(proxy)
        before = servers[0].stat("cmd_get")
        client.get("k")
        assert servers[0].stat("cmd_get") == before, "one who was connected before is known as well"
        near = [reads(proxy, servers, source) for source in CLIENTS]
        assert sorted(near) == [0, 1, 2, 3]
        # With another pool and the same agent, new trees use the agent's last snapshot.
        wanted["pools"]["cache"] = [server.address for server in reversed(servers)]
        proxy.write(wanted)
        assert proxy.reload()[0] == 200
        assert [reads(proxy, servers, source) for source in CLIENTS] == near
        plain["pools"] = wanted["pools"]
        plain["admin"] = wanted["admin"]
        proxy.write(plain)
        assert proxy.reload()[0] == 200
        until(lambda: reads(proxy, servers, CLIENTS[0]) == 3, "nobody is followed")
        assert {reads(proxy, servers, source) for source in CLIENTS} == {3}


def test_copies_are_read_at_the_clients_own_numa_node(agent, servers, proxima):
    agent = agent()
    pools = {"cache": {"servers": [server.address for server in servers], "replicated": True}}
    proxy = proxima(config("cache", pools, nodes={"from": str(agent.socket)}))
    is_followed(proxy)
    with proxy.raw(source=CLIENTS[0]) as client:
        client.set("k2", "v")
    assert [server.get("k2") for server in servers] == [b"v"] * 4, "a write goes to all"
    assert sorted(reads(proxy, servers, source) for source in CLIENTS) == [0, 1, 2, 3]
    assert "distance numa_node by agent" in proxy.explain("k", of=CLIENTS[1])


def test_explain_without_a_running_proxy_asks_the_agent(agent, servers, command, tmp_path):
    agent = agent()
    file = tmp_path / "offline.yaml"
    file.write_text(json.dumps(followed(agent, servers)))
    for source in CLIENTS:
        done = command("explain", "k", "--config", str(file), "--from", source)
        assert done.returncode == 0 and "distance numa_node by agent" in done.stdout, done
    agent.kill()
    done = command("explain", "k", "--config", str(file), "--from", CLIENTS[0])
    assert done.returncode == 0 and "warning: the node agent does not tell" in done.stdout, done
    assert command("explain", "k", "--config", str(file), "--from", "here").returncode == 2


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a cgroup")
def test_a_client_on_a_unix_socket_is_located_by_its_container(agent, servers, proxima, tmp_path, cleanup):
    container = f"{os.getpid():064x}"
    agent = agent(pods(pod("local", None, near="s2", container=container)))
    nodes = agent.nodes()
    wanted = followed(agent, servers)
    path = tmp_path / "p.sock"
    wanted["listeners"].append({"address": f"unix:{path}", "route": ROUTE})
    proxy = proxima(wanted)
    is_followed(proxy)
    folder = joined(container)
    cleanup.callback(folder.rmdir)
    read = (
        "import os, socket, sys\n"
        "if sys.argv[2]: open(sys.argv[2], 'w').write(str(os.getpid()))\n"
        "sock = socket.socket(socket.AF_UNIX); sock.connect(sys.argv[1])\n"
        "for _ in range(5): sock.sendall(b'get k\\r\\n'); assert sock.recv(100) == b'END\\r\\n'\n"
    )

    def server_of(cgroup):
        before = [server.stat("cmd_get") for server in servers]
        done = subprocess.run([sys.executable, "-c", read, str(path), cgroup], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        rise = [server.stat("cmd_get") - had for server, had in zip(servers, before)]
        assert sorted(rise) == [0, 0, 0, 5], rise
        return rise.index(5)

    assert nodes[f"s{server_of(str(folder / 'cgroup.procs'))}"] == nodes["local"]
    assert server_of("") == 0, "a process of no container has the host's distance"
    assert proxy.metric("agent_containers") == 1


GOOD = json.dumps(
    {
        "version": 1,
        "nodes": [{"id": n, "sockets": [n // 2], "distances": {}} for n in NUMBERS],
        "pods": [
            {"ips": [address], "containers": [{"id": "", "nodes": [n]}]}
            for addresses in (SERVERS, CLIENTS)
            for n, address in enumerate(addresses)
        ],
    }
)


def lines(*said, then=None):
    """A `talk` for `Impostor` that sends these lines, then calls `then` or waits for the other side's end."""

    def talk(sock):
        for each in said:
            sock.sendall(each if isinstance(each, bytes) else each.encode() + b"\n")
        if then:
            return then(sock)
        while sock.recv(4096):
            pass

    return talk


def floods(sock):
    """Sends a line without an end."""
    while True:
        sock.sendall(b"[" * 65536)


HOSTILE = {
    "garbage": (lines(b"\x00\xff GET / HTTP/1.1\r\n\r\n"), "it is no snapshot"),
    "nothing": (lines(then=lambda sock: None), "has closed the connection"),
    "half a line": (lines(b'{"version":1,', then=lambda sock: None), "has closed the connection"),
    "another version": (
        lines('{"version":7,"nodes":{}}'),
        "version 7 of the protocol, and this program reads version 1",
    ),
    "a refusal": (
        lines('{"version":1,"refused":"user 5 may not\\nread"}'),
        r"refuses to tell: user 5 may not\nread",
    ),
    "no machine": (lines('{"version":1,"nodes":[],"pods":[]}'), "0 NUMA nodes"),
    "no such node": (lines(GOOD.replace('"nodes": [3]', '"nodes": [9]')), "on NUMA node 9"),
    "without an end": (lines(then=floods), "longer than 4194304 bytes"),
    "deep": (lines('{"version":1,"nodes":' + "[" * 100_000), "it is no snapshot"),
    "slow": (lines(b'{"version":1,'), "no whole snapshot came within 10s"),
    "silent": (lines(), "no whole snapshot came within 10s"),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_an_agent_that_tells_nonsense_changes_nothing(what, servers, proxima, tmp_path, cleanup):
    talk, said = HOSTILE[what]
    impostor = Impostor(tmp_path, talk)
    cleanup.callback(impostor.stop)
    proxy = proxima(followed(impostor, servers))
    before = proxy.memory("VmHWM")
    until(lambda: f"{impostor.socket}: " in proxy.log() and said in proxy.log(), f"the log says: {said}")
    assert {reads(proxy, servers, source) for source in CLIENTS} == {0}
    assert proxy.metric("agent_up") == 0 and proxy.metric("agent_failures_total") >= 1
    if what not in ("slow", "silent"):
        until(lambda: impostor.connections >= 3, "it is tried again")
    # The failure is logged once, however often the proxy tries.
    assert proxy.log().count("the node agent is not followed") == 1
    assert proxy.memory("VmHWM") - before < 64 << 20


def test_the_last_good_snapshot_of_a_failing_agent_stays_in_effect(servers, proxima, tmp_path, cleanup):
    impostor = Impostor(tmp_path, lines(GOOD, "nonsense"))
    cleanup.callback(impostor.stop)
    proxy = proxima(followed(impostor, servers))
    until(lambda: "it is no snapshot" in proxy.log(), "the second line is refused")
    assert [reads(proxy, servers, source) for source in CLIENTS] == [0, 1, 2, 3]
    # A good snapshot now and then does not make the proxy try more often.
    until(lambda: impostor.connections >= 4, "it is tried again")
    assert [reads(proxy, servers, source) for source in CLIENTS] == [0, 1, 2, 3]


def test_a_flood_of_snapshots_delays_no_client(servers, proxima, tmp_path, cleanup):
    def talk(sock):
        while True:
            sock.sendall(GOOD.encode() + b"\n")

    impostor = Impostor(tmp_path, talk)
    cleanup.callback(impostor.stop)
    proxy = proxima(followed(impostor, servers))
    is_followed(proxy)
    # The load reads, too, so that the servers' counts say nothing meanwhile.
    with Load([proxy.address], rate=300) as load:
        assert [reads_beside(proxy, source) for source in CLIENTS] == ["numa_node"] * 4
    load.check()
    assert [reads(proxy, servers, source) for source in CLIENTS] == [0, 1, 2, 3]
    taken = proxy.metric("agent_snapshots_total")
    assert taken <= 10 * proxy.metric("uptime_seconds") + 20, "every 100 ms at most"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_a_socket_of_another_user_is_not_taken_for_an_agent(servers, proxima, cleanup):
    # Any user may make a file in this folder.
    folder = pathlib.Path(tempfile.mkdtemp(prefix="near-"))
    folder.chmod(0o777)
    cleanup.callback(shutil.rmtree, str(folder))
    path = folder / "stranger.sock"
    process = stranger(path, GOOD + "\n")
    cleanup.callback(process.wait)
    cleanup.callback(process.kill)
    pools = {"cache": [server.address for server in servers]}
    proxy = proxima(config(ROUTE, pools, nodes=str(path)))
    until(lambda: "the socket is that of user 65534; an agent is root" in proxy.log(), "it is refused")
    assert {reads(proxy, servers, source) for source in CLIENTS} == {0}
