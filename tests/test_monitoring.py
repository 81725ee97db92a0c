"""A real Prometheus asks proxies under load: no panel is empty, each rule can be evaluated, and what an alert
says to look at can be looked at."""

import contextlib
import json
import re
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pymysql
import pytest
import redis

from harness import number, ports, split, until
from harness.fleet import Fleet
from harness.load import Load
from harness.near_cache import near
from harness.prometheus import PROMETHEUS, Prometheus
from harness.proxy import BINARY, ROOT, Proxy
from harness.redis import Redis
from harness.servers import Memcached
from harness.tls import Authority, Secure

sys.path.insert(0, str(ROOT / "deploy/monitoring"))

import families  # noqa: E402
import generate  # noqa: E402

IO = "auto"
"""What is counted does not depend on the back end."""

QUICK = {"lease": "3s", "suspect": "1500ms"}
"""A lost peer is left out soon, and a busy machine loses no other."""

NEAR, PLAIN, FAILING, SECURE, EMBEDDED, REDIS, MYSQL, NO_CLUSTER = range(8)
"""The listeners of the proxy that uses everything."""

BOARDS = ("proxima-node", "proxima-fleet")
LOOKS = sorted({command for alert in generate.described("rules.yaml")["alerts"] for command in alert["look"]})


class Scene:
    """Two peers of a fleet and a proxy that uses everything else, with clients, as Prometheus sees them."""

    def __init__(self, prometheus, everything, peers):
        self.prometheus, self.everything, self.peers = prometheus, everything, peers

    def proxies(self):
        return [self.everything, *(peer.proxy for peer in self.peers)]


@pytest.fixture(scope="module")
def scene(mysql_pair, tmp_path_factory):
    if not PROMETHEUS:
        pytest.skip("prometheus is missing: scripts/prepare.sh installs it")
    folder = tmp_path_factory.mktemp("monitoring")
    # memcached runs as another user.
    for each in (folder, folder.parent, folder.parent.parent):
        each.chmod(0o755)
    with contextlib.ExitStack() as stack:
        servers = [Memcached(), Memcached(), Redis()]
        for server in servers:
            stack.callback(server.stop)
        authority = Authority(folder)
        everything = Proxy(with_everything(folder, servers, mysql_pair, authority), IO, folder)
        stack.callback(everything.stop)
        peers = Fleet(2, IO, folder, stack, fleet=QUICK)
        scene = Scene(None, everything, peers)
        scene.prometheus = Prometheus(folder, [proxy.admin for proxy in scene.proxies()])
        stack.callback(scene.prometheus.stop)
        stack.enter_context(clients(everything, authority))
        stack.enter_context(Load([peers[0].address], tolerant=True))
        lose_a_peer(scene)
        yield scene


def with_everything(folder, servers, mysql_pair, authority):
    """A configuration that has something for each panel of a proxy that is in no fleet."""
    *memcacheds, redis_server = (server.address for server in servers)
    config = split.made(folder, *mysql_pair)
    [mysql] = config["listeners"]
    routes = [near("cache"), "cache", {"failover": ["gone", "cache"]}, "cache", "embedded"]
    listeners = [{"address": ports.address(), "route": route} for route in routes]
    listeners[SECURE]["tls"] = authority.certificate("proxy").listener()
    redis_listener = {"address": ports.address(), "protocol": "redis", "route": "redis"}
    no_cluster = {**mysql, "address": ports.address(), "route": "no-cluster"}
    config["listeners"] = [*listeners, redis_listener, mysql, no_cluster]
    config["pools"] |= {
        # Its server is in no cluster, so that it has no writer.
        "no-cluster": {**config["pools"]["writer"], "galera": {"writer_wait": "200ms"}},
        "cache": {"servers": memcacheds},
        "gone": {"servers": [ports.address()]},
        "redis": {"protocol": "redis", "servers": [redis_server]},
    }
    return config


@contextlib.contextmanager
def clients(proxy, authority):
    """Clients of each listener, which have all been served once, and go on until the end."""
    stop = threading.Event()
    kinds = [over_memcached(proxy, authority), over_redis(proxy), over_mysql(proxy)]
    with contextlib.ExitStack() as stack:
        executor = stack.enter_context(ThreadPoolExecutor())
        all_ask = [stack.enter_context(kind) for kind in kinds]
        for ask in all_ask:
            ask()

        def repeat(ask):
            while not stop.wait(0.02):
                ask()

        repeated = [executor.submit(repeat, ask) for ask in all_ask]
        stack.callback(lambda: [future.result() for future in repeated])
        stack.callback(stop.set)
        yield


@contextlib.contextmanager
def over_memcached(proxy, authority):
    with contextlib.ExitStack() as stack:
        listeners = [proxy.raw(listener) for listener in (NEAR, PLAIN, FAILING, EMBEDDED)]
        listeners.append(Secure(proxy.addresses[SECURE], authority.context()))
        for client in listeners:
            stack.enter_context(client)

        def ask():
            for client in listeners:
                client.set("k", "v")
                assert client.get("k") == b"v"
                assert client.get("k") == b"v"
                assert client.get("none") is None

        yield ask


@contextlib.contextmanager
def over_redis(proxy):
    host, port = proxy.addresses[REDIS].rsplit(":", 1)
    with redis.Redis(host, int(port), protocol=2) as client:

        def ask():
            client.set("k", "v")
            assert client.get("k") == b"v"
            # A connection of its own.
            with client.pipeline() as transaction:
                transaction.watch("k")
                transaction.multi()
                transaction.get("k")
                assert transaction.execute() == [b"v"]
            with pytest.raises(redis.exceptions.ResponseError, match="WRONGTYPE"):
                client.lpush("k", "v")

        yield ask


@contextlib.contextmanager
def over_mysql(proxy):
    with split.connect(proxy.addresses[MYSQL]) as first, split.connect(proxy.addresses[MYSQL]) as second:
        sessions = ((first, number()), (second, number()))
        with pytest.raises(pymysql.err.OperationalError, match="its pool held it back"):
            split.connect(proxy.addresses[NO_CLUSTER])

        def ask():
            for client, wait in sessions:
                split.rows(client, f"SET lock_wait_timeout = {wait}")
                assert split.value(client, "SELECT @@lock_wait_timeout") == wait
                assert split.error(client, "SELECT nonsense") == 1054

        yield ask


def lose_a_peer(scene):
    """A peer that does not lead is away until Prometheus has seen what it misses, and comes back."""
    [lost] = [peer for peer in scene.peers if not peer.status()["is_leader"]]
    until(lambda: scene.prometheus.values("proxima_fleet_frames_total > 0"), "changes leave for the peer")
    lost.proxy.kill()
    until(lambda: scene.prometheus.values("proxima_fleet_owed_keys"), "the peer has missed something")
    lost.start()
    scene.peers.until_settled()


def queries(board):
    """All queries of a dashboard's file, as Grafana asks them for all proxies, by panel and legend."""
    text = json.loads((ROOT / f"deploy/monitoring/{board}.json").read_text())
    for panel in text["panels"]:
        for target in panel.get("targets", ()):
            query = re.sub(r"\$(job|instance)", ".*", target["expr"]).replace("$__rate_interval", "1m")
            yield (panel["title"], target["legendFormat"]), query


@pytest.mark.parametrize("board", BOARDS)
def test_no_panel_is_empty(board, scene):
    waiting = dict(queries(board))
    assert len(waiting) > 20

    def are_full():
        for panel, query in list(waiting.items()):
            if scene.prometheus.values(query):
                del waiting[panel]
        return not waiting

    with contextlib.suppress(AssertionError):
        until(are_full, "each panel has data", every=0.5, longest=20)
    assert waiting == {}


def test_every_rule_can_be_evaluated_and_those_that_should_wait_for_their_time(scene):
    rules = scene.prometheus.rules()
    assert {name: rule["lastError"] for name, rule in rules.items() if rule["health"] != "ok"} == {}
    described = generate.described("rules.yaml")
    assert {rule["record"] for rule in described["records"]} < rules.keys()
    # The pool `gone` has a server that nobody has started, and `no-cluster` has no writer.
    awaited = {"ProximaServersDown", "ProximaHalfOfPoolDown", "ProximaNoWriter"}
    until(
        lambda: (
            awaited <= {alert["labels"]["alertname"] for alert in scene.prometheus.api("alerts")["alerts"]}
        ),
        "the alerts have begun",
    )


def test_metrics_are_called_in_the_pages_as_the_proxies_call_them(scene):
    served = {name for proxy in scene.proxies() for name in proxy.metrics()}
    series = {re.sub(r"_(bucket|sum|count)$", "", name) for name in served}
    assert len(series) > 100
    pages = "".join(page.read_text() for page in ROOT.glob("docs/*.md"))
    named = set(re.findall(r"\b(?:proxima|process)_\w+", pages))
    assert {name for name in series if name not in named} == set()
    bare = {families.bare(name) for name in series}
    known = {re.sub(r"_(bucket|sum|count)$", "", name) for name in named}
    assert {name for name in known if families.bare(name) in bare} - series == set()
    assert bare <= families.families()


@pytest.mark.parametrize("looked", LOOKS)
def test_what_an_alert_says_to_look_at_is_there(looked, scene):
    proxy = scene.peers[0].proxy if "fleet" in looked else scene.everything
    words = looked.replace("proxima.yaml", str(proxy.file)).replace("localhost:9150", proxy.admin)
    if re.match("proxima (fleet|mysql)", words):
        words += f" --admin {proxy.admin}"
    words = re.sub("^proxima", BINARY, words).replace("curl", "curl --silent --show-error", 1)
    done = subprocess.run(words, shell=True, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and done.stdout, done
    assert not re.search("no such page|[Nn]ot [Ff]ound|unrecognized", done.stdout + done.stderr), done
