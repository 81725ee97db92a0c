"""Health listeners, as load balancers and shells ask them."""

import json
import re
import socket
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from harness import ports, until
from harness.balancer import HAPROXY, Balancer
from harness.netns import Network, forbidden, ip
from harness.nutcracker import entry
from harness.proxy import config
from harness.raw import connect

needs_haproxy = pytest.mark.skipif(not HAPROXY, reason="haproxy is missing: scripts/prepare.sh installs it")


def ask(address, text=b"GET / HTTP/1.0\r\n\r\n", source=None):
    """Everything that is answered to `text`; b"" is also a connection that was closed at once."""
    with connect(address, source=source) as sock:
        try:
            sock.sendall(text)
            return b"".join(iter(lambda: sock.recv(4096), b""))
        except ConnectionError:
            return b""


def status(address):
    """The number and the reason of an answer over HTTP/1.0."""
    head, _, body = ask(address).partition(b"\r\n\r\n")
    return int(head.split()[1]), body.decode()


def is_open(address):
    try:
        connect(address).close()
    except ConnectionRefusedError:
        return False
    return True


@pytest.fixture
def pool(memcached, proxima):
    """A proxy before three servers, of which two must be up, with a health listener of each kind."""
    servers = memcached.several(3)
    listeners = [
        {"address": ports.address(), "check": check, "pools": {"cache": 2}} for check in ("http", "tcp")
    ]
    pools = {"cache": {"servers": [server.address for server in servers], "eject": {"probe_initial": "50ms"}}}
    proxy = proxima(config("cache", pools, health=listeners))
    proxy.http_check, proxy.tcp_check = (listener["address"] for listener in listeners)
    proxy.servers = servers
    return proxy


def lose(proxy, server):
    """Ends a server, and has the proxy notice it."""
    server.stop()

    def noticed():
        with proxy.raw() as client:
            for number in range(30):
                client.send(f"get k{number}\r\n".encode())
                client.line()
        return proxy.member(server.address)["state"] == "ejected"

    until(noticed, "the server is ejected")


def test_health_is_well_while_enough_members_are_up(pool):
    assert status(pool.http_check) == (200, "well\n")
    until(lambda: is_open(pool.tcp_check), "accepting means well")
    lose(pool, pool.servers[0])
    assert status(pool.http_check) == (200, "well\n")
    lose(pool, pool.servers[1])
    until(lambda: status(pool.http_check)[0] == 503, "too few members are up")
    reason = "pool cache: 1 of 3 members up, at least 2 wanted\n"
    assert status(pool.http_check) == (503, reason)
    until(lambda: not is_open(pool.tcp_check), "a closed port means unwell")
    pool.servers[0].start()
    until(lambda: status(pool.http_check)[0] == 200, "enough members are up again")
    until(lambda: is_open(pool.tcp_check), "the port is open again")


@pytest.mark.parametrize(
    "request_text",
    [
        b"OPTIONS / HTTP/1.0\r\n\r\n",
        b"GET /any/path?x=1 HTTP/1.1\r\nHost: balancer.example\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n",
        b"HEAD /health HTTP/1.0\r\n\r\n",
    ],
    ids=["options-1.0", "path-1.1", "post", "head"],
)
def test_health_answers_any_method_and_path_of_both_versions_and_closes(pool, request_text):
    answer = ask(pool.http_check, request_text)
    assert re.match(rb"HTTP/1\.[01] 200 OK\r\n", answer)
    body = answer.partition(b"\r\n\r\n")[2]
    assert body == (b"" if request_text.startswith(b"HEAD") else b"well\n")


def test_health_is_understood_by_bash(pool):
    host, port = pool.http_check.split(":")
    script = f"exec 3<>/dev/tcp/{host}/{port}; printf 'GET / HTTP/1.0\\r\\n\\r\\n' >&3; cat <&3"
    said = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=60)
    assert said.stdout.startswith("HTTP/1.0 200 OK") and said.stdout.endswith("well\n")
    host, port = pool.tcp_check.split(":")
    assert subprocess.run(["bash", "-c", f"exec 3<>/dev/tcp/{host}/{port}"], timeout=60).returncode == 0


@needs_haproxy
@pytest.mark.parametrize("kind", ["http", "tcp"])
def test_health_is_understood_by_haproxy_which_leads_clients_away_from_a_drained_proxy(
    pool, cleanup, tmp_path, kind
):
    check, options = {
        "http": (pool.http_check, "    option httpchk\n"),
        "tcp": (pool.tcp_check, "    option tcp-check\n"),
    }[kind]
    balancer = Balancer(tmp_path, pool.address, check, options)
    cleanup.callback(balancer.stop)
    until(lambda: balancer.state() == "UP", "the balancer takes the proxy for well")
    pool.http("/drain", "POST")
    until(lambda: balancer.state() == "DOWN", "the balancer takes the proxy for unwell")
    pool.http("/drain", "DELETE")
    until(lambda: balancer.state() == "UP", "the balancer takes the proxy for well again")


@needs_haproxy
@pytest.mark.either_io
@pytest.mark.parametrize("protocol", ["memcached", "redis"])
def test_twemproxys_file_has_health_and_a_drain_file_by_options(
    door, memcached, redis_server, cleanup, tmp_path, protocol
):
    """What the script behind xinetd and the file in /tmp did: at least two of three servers, or taken out."""
    servers = {"memcached": memcached, "redis": redis_server}[protocol].several(3)
    eject = {"auto_eject_hosts": True, "server_failure_limit": 1, "server_retry_timeout": 600_000}
    # Some of its keys go to each server: similar ones may all go to one by the default hash.
    keys = {**eject, "hash": "md5"}
    pools = {
        "p": {"redis": protocol == "redis", **keys, "servers": [entry(server) for server in servers]},
        # It concerns nobody, and no server of it is up.
        "other": {**keys, "servers": [entry(ports.address())]},
    }
    pools = {name: {"listen": ports.address(), **said} for name, said in pools.items()}
    check, out = ports.address(), tmp_path / "out"
    proxy = door(
        pools, f"--health=p={check}", "--health-min", "2", "--drain-file", str(out), "--drain-delay=500ms"
    )
    balancer = Balancer(tmp_path, proxy.address, check, "    option httpchk\n")
    cleanup.callback(balancer.stop)
    lines = {"memcached": b"get %b\r\n", "redis": b"*2\r\n$3\r\nGET\r\n$3\r\n%b\r\n"}[protocol]

    def lose(server):
        server.stop()

        def is_ejected():
            with proxy.raw() as client:
                for number in range(200):
                    client.send(lines % (b"%03d" % number))
                    client.line()
            return proxy.member(server.address)["state"] == "ejected"

        until(is_ejected, "the server is ejected")

    until(lambda: balancer.state() == "UP", "the balancer takes the proxy for well")
    with proxy.raw() as before:
        out.touch()
        until(lambda: balancer.state() == "DOWN", "it is taken out")
        assert status(check) == (503, f"draining: the file {out} is there\n")
        assert before.rest() == b"", "each client is closed when nothing is due to it"
    out.unlink()
    until(lambda: balancer.state() == "UP", "it is put back")
    lose(servers[0])
    assert status(check) == (200, "well\n")
    lose(servers[1])
    until(lambda: balancer.state() == "DOWN", "too few servers are up")
    assert status(check) == (503, "pool p: 1 of 3 members up, at least 2 wanted\n")


def test_health_answers_only_the_networks_that_may_ask(proxima):
    listener = {"address": ports.address("0.0.0.0"), "allow": ["127.0.0.2", "127.1.0.0/16"]}
    proxima(config("embedded", health=[listener]))
    address = listener["address"].replace("0.0.0.0", "127.0.0.1")
    asked = {"127.0.0.2": True, "127.1.9.9": True, "127.0.0.1": False, "127.2.0.1": False}
    for source, answered in asked.items():
        assert ask(address, source=source).startswith(b"HTTP/1.0 200") == answered, source


def test_health_listeners_follow_the_configuration(proxima):
    first, second = ports.address(), ports.address()
    proxy = proxima(config("embedded", health=[first]))
    assert status(first)[0] == 200
    proxy.config["health"] = [second]
    proxy.write(proxy.config)
    until(lambda: is_open(second), "the new listener answers")
    until(lambda: not is_open(first), "the old one is closed")


def test_a_health_address_in_use_is_refused_at_the_start(proxima, command, io, tmp_path):
    first = proxima(config("embedded", health=[ports.address()]))
    taken = first.config["health"][0]
    # The first one follows its own file, and would take the addresses of the second.
    second = tmp_path / "second.yaml"
    second.write_text(json.dumps({**config("embedded", health=[taken]), "admin": ports.address()}))
    done = command("run", "--config", str(second), "--io", io)
    assert done.returncode == 2 and f"health address {taken}" in done.stderr


@pytest.mark.either_io
def test_health_is_unwell_while_there_is_no_room_for_more_clients(proxima):
    listeners = [{"address": ports.address(), "check": check} for check in ("http", "tcp")]
    proxy = proxima(config("embedded", health=listeners), before=("prlimit", "--nofile=64:64"))
    http_check, tcp_check = (listener["address"] for listener in listeners)
    assert status(http_check) == (200, "well\n")
    reason = "no room for more clients: the limit on open files is reached\n"
    crowd = [proxy.raw() for _ in range(80)]
    try:
        until(lambda: status(http_check) == (503, reason), "those in the queue are not sent here")
        until(lambda: not is_open(tcp_check), "a closed port means unwell")
        assert proxy.http("/ready") == (503, f"not ready\n{reason}")
    finally:
        for client in crowd:
            client.close()
    until(lambda: status(http_check) == (200, "well\n"), "there is room again")
    until(lambda: is_open(tcp_check), "the port is open again")
    assert proxy.http("/ready")[0] == 200


def test_clients_of_health_that_say_nothing_keep_nobody_out(proxima):
    address = ports.address()
    proxima(config("embedded", health=[address]))
    silent = [connect(address) for _ in range(300)]
    assert status(address)[0] == 200
    for sock in silent:
        sock.close()


def storm(address, over):
    """Asks for health until `over`, on a connection for each question. Returns how often it was answered, and
    the answers that are wrong."""
    host, port = address.split(":")
    place, count, wrong = (host, int(port)), 0, set()
    while not over():
        with socket.socket() as sock:
            try:
                sock.connect(place)
                sock.sendall(b"GET / HTTP/1.0\r\n\r\n")
                answer = b"".join(iter(lambda: sock.recv(4096), b""))
            except ConnectionError:
                answer = b""
        # Beyond the bound of connections one gives way to the next.
        if answer:
            count += 1
            if not answer.startswith(b"HTTP/1.0 200 OK\r\n"):
                wrong.add(answer)
    return count, wrong


def test_a_storm_of_health_checks_fails_no_request(pool):
    """Ten thousand checks a second, or as many as this machine can make."""
    over = threading.Event()
    with ThreadPoolExecutor(8) as threads:
        storms = [threads.submit(storm, pool.http_check, over.is_set) for _ in range(8)]
        try:
            with pool.raw() as client:
                end = time.monotonic() + 3
                while time.monotonic() < end:
                    client.set("k", "v")
                    assert client.get("k") == b"v"
            assert pool.http("/live") == (200, "live\n")
        finally:
            over.set()
    answered = [each.result() for each in storms]
    print(f"{sum(count for count, _ in answered) / 3:.0f} checks a second")
    assert sum(count for count, _ in answered) > 100 and not any(wrong for _, wrong in answered)
    assert pool.metric("replies_total", outcome="timeout") == 0


@pytest.mark.either_io
@pytest.mark.skipif(bool(forbidden()), reason="network namespaces cannot be made here")
def test_an_address_that_moves_between_two_proxies_is_served_by_the_one_that_has_it(folder, cleanup, io):
    network = Network(2)
    cleanup.callback(network.remove)
    moving, port = "10.77.1.200", ports.free()
    proxies = []
    for place in network.places:
        listeners = [{"address": f"{host}:{port}", "route": "embedded"} for host in (place.serving, moving)]
        admin = f"{place.serving}:{ports.free()}"
        health = f"{moving}:{ports.free()}"
        proxy = place.proxy(
            {"workers": 2, "listeners": listeners, "admin": admin, "health": [health]}, io, folder
        )
        cleanup.callback(proxy.stop)
        assert f"{moving}:{port}" in proxy.log() and "this host has no such address" in proxy.log()
        proxies.append((place, proxy))
    for place, proxy in proxies:
        ip("-n", place.name, "address", "add", f"{moving}/24", "dev", "eth1")
        # Neighbours are told who has it now, as keepalived tells them.
        ip("-n", network.switch.name, "neigh", "flush", "to", moving)
        until(lambda proxy=proxy: proxy.connects(1), "the address is served where it is")
        with proxy.raw(1) as client:
            client.set("k", "v")
            assert client.get("k") == b"v"
        assert proxy.metric("clients_accepted_total") >= 1
        with proxy._clients.entered():
            assert status(proxy.config["health"][0])[0] == 200
        ip("-n", place.name, "address", "delete", f"{moving}/24", "dev", "eth1")
