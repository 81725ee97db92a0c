"""A pool whose servers are the endpoints of a Service of Kubernetes, and an API server that may lie."""

import json
import subprocess
import time

import pytest

from harness import until
from harness.api_server import endpoint
from harness.names import System, may_mount
from harness.proxy import BINARY, config, environment

pytestmark = [
    pytest.mark.either_io,
    pytest.mark.skipif(not may_mount(), reason="only root can give a process the account of a pod"),
]


@pytest.fixture
def before(proxima, api):
    """Starts a proxy whose pool follows the Service."""

    def start(service="mc", also=(), **keys):
        pool = {"kubernetes": service, **keys}
        return proxima(config("cache", {"cache": pool}, workers=1), before=[*api.before, *also])

    return start


def addresses(proxy):
    """The addresses of all members that are not drained, and of those that are."""
    members = json.loads(proxy.http("/members")[1])
    shown = [
        (member["address"], member.get("drains", False)) for member in members if member["pool"] == "cache"
    ]
    return sorted(at for at, drains in shown if not drains), sorted(at for at, drains in shown if drains)


def becomes(proxy, serving, ending=()):
    until(lambda: addresses(proxy) == (sorted(serving), sorted(ending)), f"{serving} serve, {ending} end")


def test_members_follow_the_endpoints_of_a_service(api, before):
    api.set("a", endpoint("10.0.0.1"), endpoint("10.0.0.2"))
    api.set("b", endpoint("10.0.0.3"))
    api.set("c", endpoint("10.0.0.4"))
    proxy = before()
    becomes(proxy, [f"10.0.0.{n}:11211" for n in (1, 2, 3, 4)])
    api.set("a", endpoint("10.0.0.1", terminating=True), endpoint("10.0.0.2", serving=False))
    becomes(proxy, ["10.0.0.3:11211", "10.0.0.4:11211"])
    api.delete("c")
    becomes(proxy, ["10.0.0.3:11211"])
    api.set("a", endpoint("10.0.0.1", serving=True))
    becomes(proxy, ["10.0.0.1:11211", "10.0.0.3:11211"])
    assert api.listed == 2, "two pages at the start, and then the watch alone"


GONE = json.dumps({"type": "ERROR", "object": {"code": 410, "message": "too old"}}).encode() + b"\n"
"""A line of a watch whose version is no longer kept."""

TROUBLES = [
    "unauthorized",
    "forbidden",
    "too many requests",
    "broken",
    "away",
    "silent",
    "cut",
    "no list",
    "no JSON",
    "older",
    "another service",
]


@pytest.mark.parametrize("trouble", TROUBLES)
def test_no_bad_answer_changes_a_member(api, before, trouble):
    api.set("a", endpoint("10.0.0.1"))
    proxy = before()
    becomes(proxy, ["10.0.0.1:11211"])
    until(lambda: api.watched == 1, "it watches")
    api.trouble = trouble
    # What it said before is gone, so that all is listed anew.
    api.say(GONE)
    until(lambda: "the API server fails" in proxy.log(), "it is told")
    assert addresses(proxy) == (["10.0.0.1:11211"], [])
    api.trouble = None
    api.set("a", endpoint("10.0.0.2"))
    becomes(proxy, ["10.0.0.2:11211"])


def test_a_store_that_was_put_back_is_believed_after_a_while(api, before):
    """Its versions begin anew, below those that are known."""
    api.set("a", endpoint("10.0.0.1"))
    proxy = before()
    becomes(proxy, ["10.0.0.1:11211"])
    until(lambda: api.watched == 1, "it watches")
    api.trouble = "put back"
    api.say(GONE)
    until(lambda: "is older than what is known" in proxy.log(), "it is refused")
    api.set("a", endpoint("10.0.0.2"))
    assert addresses(proxy) == (["10.0.0.1:11211"], [])
    becomes(proxy, ["10.0.0.2:11211"])


LINES = {
    "no JSON": b"{\n",
    "another kind": b'{"type": "TOLD", "object": {}}\n',
    "an error": b'{"type": "ERROR", "object": {"code": 500, "message": "broken"}}\n',
    "an object that is too long": b'{"type": "MODIFIED", "object": "' + b"x" * (10 << 20) + b'"}\n',
}


@pytest.mark.parametrize("line", LINES)
def test_no_bad_line_of_a_watch_changes_a_member(api, before, line):
    api.set("a", endpoint("10.0.0.1"))
    proxy = before()
    becomes(proxy, ["10.0.0.1:11211"])
    until(lambda: api.watched == 1, "it watches")
    api.say(LINES[line])
    until(lambda: api.watched == 2, "it watches anew")
    assert addresses(proxy) == (["10.0.0.1:11211"], [])
    api.set("a", endpoint("10.0.0.2"))
    becomes(proxy, ["10.0.0.2:11211"])


def test_a_missing_role_is_named(api, before):
    api.trouble = "forbidden"
    proxy = before()
    until(lambda: "it needs a Role in the namespace cache" in proxy.log(), "it is told")


def test_a_token_is_read_again(api, before):
    api.set("a", endpoint("10.0.0.1"))
    proxy = before()
    becomes(proxy, ["10.0.0.1:11211"])
    until(lambda: api.watched == 1, "it watches")
    api.give_token("second")
    api.cut()
    until(lambda: api.watched == 2, "it watches anew, by the new one")
    api.set("a", endpoint("10.0.0.2"))
    becomes(proxy, ["10.0.0.2:11211"])
    assert "second" not in proxy.log() and "the API server fails" not in proxy.log()


def test_a_pod_on_this_node_is_the_nearest(api, before):
    api.set("a", endpoint("10.0.0.1", node="n1"), endpoint("10.0.0.2", node="n2"))
    proxy = before()
    becomes(proxy, ["10.0.0.1:11211", "10.0.0.2:11211"])
    members = json.loads(proxy.http("/members")[1])
    found = {member["address"]: (member["distance"], member["distance_source"]) for member in members}
    assert found == {"10.0.0.1:11211": ("host", "kubernetes"), "10.0.0.2:11211": ("elsewhere", "nothing")}
    assert proxy.metric("member_info", member="pod-10.0.0.2", node="n2", zone="z1") == 1


def test_requests_go_to_endpoints_and_none_to_one_that_ends(api, before, memcached):
    servers = memcached.several(2)
    ports = [int(server.address.rsplit(":", 1)[1]) for server in servers]
    # A slice for each port, as in the roll of a Service whose port changes.
    for number, port in enumerate(ports):
        api.set(f"s{number}", endpoint("127.0.0.1", pod=f"mc-{number}"), port=port)
    proxy = before()
    becomes(proxy, [server.address for server in servers])
    api.set("s0", endpoint("127.0.0.1", pod="mc-0", terminating=True), port=ports[0])
    becomes(proxy, [servers[1].address])
    with proxy.raw() as client:
        for number in range(50):
            client.set(f"k{number}", "v")
    assert all(servers[0].get(f"k{number}") is None for number in range(50))
    assert all(servers[1].get(f"k{number}") == b"v" for number in range(50))


def test_another_pod_at_an_address_is_another_server(api, before, memcached):
    """What it holds is not known, and not read."""
    servers = memcached.several(2)
    ports = [int(server.address.rsplit(":", 1)[1]) for server in servers]

    def pods(*uids):
        for number, (port, uid) in enumerate(zip(ports, uids)):
            api.set(f"s{number}", endpoint("127.0.0.1", pod=f"mc-{number}", uid=uid), port=port)

    pods("u0", "u1")
    proxy = before(replicated=True)
    becomes(proxy, [server.address for server in servers])
    with proxy.raw() as client:

        def is_stored():
            client.send(b"set k 0 0 3\r\nnew\r\n")
            return client.line() == b"STORED\r\n"

        until(is_stored, "both are read and written")
        until(lambda: [server.get("k") for server in servers] == [b"new"] * 2, "both have it")
        # The same pod, and what it holds is good.
        pods("u0", "u1")
        servers[0].set("k", "old")
        assert client.get("k") in (b"new", b"old")
        pods("other", "u1")
        until(lambda: servers[0].get("k") is None, "it is flushed as one that joins")
        for _ in range(20):
            assert client.get("k") in (b"new", None)


def test_the_list_that_was_kept_serves_until_the_api_server_answers(api, before, tmp_path):
    api.set("a", endpoint("10.0.0.1"))
    service = {"service": "mc", "keep": str(tmp_path / "kept")}
    first = before(service)
    becomes(first, ["10.0.0.1:11211"])
    until((tmp_path / "kept").exists, "it is kept")
    first.stop()
    api.trouble = "away"
    second = before(service)
    becomes(second, ["10.0.0.1:11211"])
    assert "the list that was kept serves" in second.log()
    api.trouble = None
    api.set("a", endpoint("10.0.0.2"))
    becomes(second, ["10.0.0.2:11211"])


def test_without_the_api_server_dns_is_followed(api, before, tmp_path, cleanup):
    system = System(tmp_path)
    cleanup.callback(system.stop)
    api.set("a", endpoint("10.0.0.1"), endpoint("10.0.0.2"))
    proxy = before(also=system.before)
    becomes(proxy, ["10.0.0.1:11211", "10.0.0.2:11211"])
    system.names.set("mc.cache.svc.cluster.local", "10.0.0.2", "10.0.0.3")
    until(lambda: api.watched == 1, "it watches")
    api.trouble = "away"
    api.cut()
    becomes(proxy, ["10.0.0.2:11211", "10.0.0.3:11211"])
    api.trouble = None
    becomes(proxy, ["10.0.0.1:11211", "10.0.0.2:11211"])


def test_a_short_absence_behind_a_long_quiet_is_no_reason_to_ask_dns(api, before, tmp_path, cleanup):
    """DNS knows less, and later."""
    system = System(tmp_path)
    cleanup.callback(system.stop)
    api.set("a", endpoint("10.0.0.1"))
    proxy = before(also=system.before)
    becomes(proxy, ["10.0.0.1:11211"])
    system.names.set("mc.cache.svc.cluster.local", "10.0.0.9")
    until(lambda: api.watched == 1, "it watches")
    # The time behind which DNS is asked where nobody answers.
    time.sleep(6)
    api.trouble = "away"
    api.cut()
    until(lambda: proxy.metric("service_failures_total") >= 3, "it tries again and again")
    assert addresses(proxy) == (["10.0.0.1:11211"], [])
    api.trouble = None
    api.set("a", endpoint("10.0.0.2"))
    becomes(proxy, ["10.0.0.2:11211"])
    assert "10.0.0.9" not in proxy.log()


def run(api, tmp_path, written, *words):
    """What the command says of this configuration, in a pod."""
    file = tmp_path / "proxima.yaml"
    file.write_text(json.dumps(written))
    command = [*api.before, BINARY, *words]
    command = [str(file) if word == "FILE" else word for word in command]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment())


@pytest.mark.parametrize("node", ["n1", "n2"])
def test_explain_names_the_pod_on_the_node(api, tmp_path, node):
    api.set("a", endpoint("10.0.0.1", node="n1"), endpoint("10.0.0.2", node="n2"))
    written = config({"nearest": "cache"}, {"cache": {"kubernetes": "mc"}})
    told = run(api, tmp_path, written, "explain", "k", "--config", "FILE", "--node", node)
    assert told.returncode == 0, told
    address = f"10.0.0.{node[1]}"
    assert f"member pod-{address} ({address}:11211) of pool cache, node {node}, zone z1: " in told.stdout
    assert "distance host by kubernetes" in told.stdout


def test_check_names_the_missing_role(api, tmp_path):
    """For the servers of a pool, and for the peers of a fleet."""
    api.trouble = "forbidden"
    written = config("cache", {"cache": {"kubernetes": "mc"}})
    fleet = {
        "listen": "127.0.0.1:11400",
        "peers": {"kubernetes": "peers"},
        "dir": str(tmp_path / "fleet"),
        "tls": "none",
    }
    told = run(api, tmp_path, {**written, "fleet": fleet}, "check", "FILE")
    assert told.returncode == 0, told
    lines = [line for line in (told.stdout + told.stderr).splitlines() if "it needs a Role" in line]
    assert ["pool cache" in line for line in lines] == [False, True], told
