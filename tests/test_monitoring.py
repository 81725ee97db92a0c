"""A real Prometheus asks proxies under load: no panel is empty, each rule can be evaluated, and what an alert
says to look at can be looked at."""

import contextlib
import functools
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor

import pymysql
import pytest
import redis

from harness import number, ports, split, until
from harness.fleet import Fleet
from harness.load import Load
from harness.near_cache import near
from harness.prometheus import Prometheus
from harness.proxy import BINARY, ROOT, Proxy
from harness.redis import Redis
from harness.servers import Memcached
from harness.tls import Authority, Secure

sys.path.insert(0, str(ROOT / "deploy/monitoring"))

import families  # noqa: E402
import generate  # noqa: E402

pytestmark = pytest.mark.heavy

IO = "auto"
"""What is counted does not depend on the back end."""

QUICK = {"lease": "3s", "suspect": "1500ms"}
"""A lost peer is left out soon, and a busy machine loses no other."""

NEAR, PLAIN, FAILOVER, LOST, SECURE, EMBEDDED, REDIS, MYSQL, NO_CLUSTER = range(9)
"""The listeners of the proxy that uses everything."""

MAY_BE_ZERO = {
    "proxima_clients_closed_total",
    "proxima_copies",
    "proxima_copy_",
    "proxima_dedicated_queued",
    "proxima_descriptor_shortages_total",
    "proxima_embedded_evictions_total",
    "proxima_failover_all_failed_total",
    # A probe may find the dead server before a request does.
    "proxima_failovers_total",
    "proxima_fleet_fill",
    "proxima_fleet_foreign_connections",
    "proxima_fleet_lease_seconds",
    "proxima_fleet_refused_view_total",
    "proxima_fleet_superseded_total",
    "proxima_fleet_unleased_replies_total",
    "proxima_lanes_opened_total",
    "proxima_member_errors_total",
    "proxima_skipped_writes_total",
}
"""Metrics of what these clients and faults do not bring about: their panels may show a line at 0."""


class Scene:
    """Two peers of a fleet, a proxy that uses everything else, and the Prometheus that asks them."""

    def __init__(self, prometheus, everything, peers):
        self.prometheus, self.everything, self.peers = prometheus, everything, peers

    def proxies(self):
        return [self.everything, *(peer.proxy for peer in self.peers)]


@pytest.fixture(scope="module")
def scene(mysql_pair):
    for program in ("prometheus", "redis-server", "openssl", "curl"):
        if not shutil.which(program):
            pytest.skip(f"{program} is missing")
    with contextlib.ExitStack() as stack:
        folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
        # memcached runs as another user.
        folder.chmod(0o777)
        servers = [Memcached(), Memcached(), Memcached(), Redis()]
        for server in servers:
            stack.callback(server.stop)
        authority = Authority(folder)
        everything = Proxy(with_everything(folder, servers, mysql_pair, authority), IO, folder)
        stack.callback(everything.stop)
        peers = Fleet(2, IO, folder, stack, fleet=QUICK)
        admins = [everything.admin, *(peer.proxy.admin for peer in peers)]
        prometheus = Prometheus(folder, admins)
        stack.callback(prometheus.stop)
        stack.enter_context(clients(everything, authority))
        stack.enter_context(Load([peers[0].address], tolerant=True))
        until(lambda: len(prometheus.values("proxima_near_bytes")) > 1, "Prometheus has seen the clients")
        servers[0].kill()
        change_configuration(everything)
        lose_a_peer(peers, prometheus)
        yield Scene(prometheus, everything, peers)


def with_everything(folder, servers, mysql_pair, authority):
    """A configuration that has something for each panel of a proxy that is in no fleet."""
    lost, *memcacheds, redis_server = (server.address for server in servers)
    config = split.made(folder, *mysql_pair)
    [mysql] = config["listeners"]
    routes = [near("cache"), "cache", {"failover": ["lost", "cache"]}, "lost", "cache", "embedded"]
    listeners = [{"address": ports.address(), "route": route} for route in routes]
    listeners[SECURE]["tls"] = authority.certificate("proxy").listener()
    redis_listener = {"address": ports.address(), "protocol": "redis", "route": "redis"}
    no_cluster = {**mysql, "address": ports.address(), "route": "no-cluster"}
    config["listeners"] = [*listeners, redis_listener, mysql, no_cluster]
    config["pools"] |= {
        # Its server is in no cluster, so that it has no writer.
        "no-cluster": {**config["pools"]["writer"], "galera": {"writer_wait": "200ms"}},
        "cache": {"servers": memcacheds},
        "lost": {"servers": [lost]},
        "redis": {"protocol": "redis", "servers": [redis_server]},
    }
    return config


@contextlib.contextmanager
def clients(proxy, authority):
    """Clients of each listener, which have all been served once, and go on until the end."""
    stop = threading.Event()
    kinds = [ask_memcached, functools.partial(ask_by_tls, authority), ask_redis, ask_mysql, ask_for_a_writer]
    for ask in kinds:
        ask(proxy)

    def repeat(ask):
        while not stop.wait(0.02):
            ask(proxy)

    with split.connect(proxy.addresses[MYSQL]) as bound, ThreadPoolExecutor() as executor:
        bound.query("BEGIN")
        repeated = [executor.submit(repeat, ask) for ask in kinds]
        yield
        stop.set()
        for future in repeated:
            future.result()


def ask_memcached(proxy):
    for listener in (NEAR, PLAIN, FAILOVER, EMBEDDED):
        with proxy.raw(listener) as client:
            client.set("k", "v")
            assert [client.get("k"), client.get("k")] == [b"v", b"v"]
            assert client.get("none") is None
            assert client.ask(b"nonsense\r\n") == b"ERROR\r\n"
            if listener == EMBEDDED:
                assert client.ask(b"flush_all\r\n") == b"OK\r\n"
    with proxy.raw(LOST) as client:
        # It is a miss, and an error when the server is dead.
        client.ask(b"mg none\r\n")


def ask_by_tls(authority, proxy):
    with Secure(proxy.addresses[SECURE], authority.context()) as client:
        assert client.get("none") is None


def ask_redis(proxy):
    host, port = proxy.addresses[REDIS].rsplit(":", 1)
    with redis.Redis(host, int(port), protocol=2) as client:
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


def ask_mysql(proxy):
    """A session with a state of its own, behind which its connection gets that of the next one."""
    with split.connect(proxy.addresses[MYSQL]) as client:
        seconds = number()
        split.rows(client, f"SET lock_wait_timeout = {seconds}")
        assert split.value(client, "SELECT @@lock_wait_timeout") == seconds
        assert split.error(client, "SELECT nonsense") == 1054


def ask_for_a_writer(proxy):
    with pytest.raises(pymysql.err.OperationalError, match="its pool held it back"):
        split.connect(proxy.addresses[NO_CLUSTER])


def change_configuration(proxy):
    """A configuration is refused, and another one takes effect."""
    good = {**proxy.config, "drain": {"limit": "30s"}}
    proxy.write("nonsense")
    until(lambda: proxy.metric("config_failures_total") > 0, "it is refused")
    proxy.write(good)
    until(lambda: proxy.metric("config_reloads_total") > 0, "it has taken effect")


def lose_a_peer(peers, prometheus):
    """A peer that does not lead is away until Prometheus has seen what it misses, and comes back."""
    [lost] = [peer for peer in peers if not peer.status()["is_leader"]]
    until(lambda: prometheus.values("proxima_fleet_frames_total > 0"), "changes leave for the peer")
    lost.proxy.kill()
    until(lambda: prometheus.values("proxima_fleet_owed_keys"), "the peer has missed something")
    lost.start()
    peers.until_settled()


def queries():
    """All queries of the dashboards' files, as Grafana asks them for all proxies, by dashboard, panel and
    legend."""
    for board in generate.described("dashboards.yaml"):
        text = json.loads((ROOT / f"deploy/monitoring/{board}.json").read_text())
        for panel in text["panels"]:
            for target in panel.get("targets", ()):
                query = re.sub(r"\$(job|instance)", ".*", target["expr"]).replace("$__rate_interval", "1m")
                yield (board, panel["title"], target["legendFormat"]), query


def test_no_panel_is_empty(scene):
    waiting = dict(queries())
    assert len(waiting) > 100

    def are_full():
        for panel, query in list(waiting.items()):
            values = scene.prometheus.values(query)
            if any(map(float, values)) or values and any(name in query for name in MAY_BE_ZERO):
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
    # The server of `lost` is dead, and `no-cluster` has no writer.
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
    # The head of a family has a name of its own in OpenMetrics.
    pages = re.sub(r"^# (HELP|TYPE) .*$", "", pages, flags=re.MULTILINE)
    named = set(re.findall(r"\b(?:proxima|process)_\w+", pages))
    assert {name for name in series if name not in named} == set()
    bare = {families.bare(name) for name in series}
    known = {re.sub(r"_(bucket|sum|count)$", "", name) for name in named}
    assert {name for name in known if families.bare(name) in bare} - series == set()
    assert bare <= families.families()


def test_what_alerts_say_to_look_at_is_there(scene):
    alerts = generate.described("rules.yaml")["alerts"]
    failed = {}
    for looked in {command for alert in alerts for command in alert["look"]}:
        done = look(looked, scene.peers[0].proxy if "fleet" in looked else scene.everything)
        # A pool has no server up, so that the proxy is not ready.
        status = ("503" if "/ready" in looked else "200") if looked.startswith("curl") else ""
        if done.returncode != 0 or not done.stdout or not done.stdout.endswith(status):
            failed[looked] = done
    assert failed == {}


def look(command, proxy):
    """Runs what an alert says, for this proxy."""
    command = command.replace("proxima.yaml", str(proxy.file)).replace("localhost:9150", proxy.admin)
    if re.match("proxima (fleet|mysql)", command):
        command += f" --admin {proxy.admin}"
    command = re.sub("^proxima", BINARY, command).replace(
        "curl", "curl --silent --write-out '%{http_code}'", 1
    )
    return subprocess.run(command, shell=True, capture_output=True, text=True, timeout=60)
