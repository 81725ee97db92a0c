"""The process: its start, its listeners, its log, and its end."""

import itertools
import json
import os
import re
import signal
import socket
import stat

import pytest
import yaml

from harness import ports, until
from harness.proxy import BINARY, Program, config
from harness.raw import Raw


def test_the_log_says_where_the_proxy_serves(memcached, proxima):
    proxy = proxima(config("cache", {"cache": [memcached().address]}))
    [line] = [line for line in proxy.log().splitlines() if " serves " in line]
    assert proxy.address in line and f"version={proxy.version()}" in line
    assert f"http://{proxy.admin}" in proxy.log()


def test_the_start_log_counts_connections_of_each_protocol(proxima, tmp_path):
    def pool(protocol, **dedicated):
        return {"protocol": protocol, "servers": [ports.address()], "dedicated": dedicated}

    (tmp_path / "password").write_text("secret")
    login = {"user": "proxy", "password_file": str(tmp_path / "password")}
    pools = {
        "cache": [ports.address()],
        "redis": pool("redis", max=20),
        "limited": pool("redis", max=90, total=30),
        "mysql": pool("mysql", max=100) | login,
    }
    redis = {"by_prefix": {"prefixes": {"a": "redis"}, "default": "limited"}}
    listeners = [
        {"address": ports.address(), "route": "cache"},
        {"address": ports.address(), "protocol": "redis", "route": redis},
        {"address": ports.address(), "protocol": "mysql", "route": "mysql"},
    ]
    log = proxima(config("cache", pools, workers=2, listeners=listeners)).log()
    counts = re.findall(r"connections_to_each_(\w*server)=(\d+)", log)
    assert counts == [("server", "10"), ("redis_server", "52"), ("mysql_server", "202")]


def test_port_0_is_a_free_port_and_is_logged(proxima, cleanup, io, tmp_path):
    file = tmp_path / "free.yaml"
    file.write_text(yaml.safe_dump({"listeners": [{"address": "127.0.0.1:0", "route": "embedded"}]}))
    program = Program([BINARY, "run", "--config", str(file), "--io", io], tmp_path, ["127.0.0.1:0"])
    cleanup.callback(program.stop)
    line = until(lambda: [line for line in program.log().splitlines() if " serves " in line], "it serves")[0]
    with Raw(line.split(" serves ")[1].split()[0]) as client:
        client.set("k", "v")
        assert client.get("k") == b"v"


@pytest.mark.parametrize("which", ["listener", "admin"])
def test_a_second_process_on_the_same_address_is_refused(proxima, command, io, which):
    first = proxima(config("embedded"))
    second = dict(first.config)
    if which == "listener":
        second["admin"] = ports.address()
    else:
        second["listeners"] = [{"address": ports.address(), "route": "embedded"}]
    file = first.file.with_name("second.yaml")
    file.write_text(yaml.safe_dump(second))
    done = command("run", "--config", str(file), "--io", io)
    assert done.returncode == 2
    assert (first.address if which == "listener" else first.admin) in done.stderr
    assert "in use" in done.stderr
    with first.raw() as client:
        client.set("k", "v")


def test_a_bad_configuration_is_refused_at_start(tmp_path, command, io):
    file = tmp_path / "bad.yaml"
    file.write_text("listeners:\n  - address: 127.0.0.1:0\n    route: nowhere\n")
    done = command("run", "--config", str(file), "--io", io)
    assert done.returncode == 2
    assert f"{file}:3:12: " in done.stderr and "nowhere" in done.stderr


def test_a_missing_configuration_is_refused_at_start(tmp_path, command, io):
    done = command("run", "--config", str(tmp_path / "absent.yaml"), "--io", io)
    assert done.returncode == 2 and "absent.yaml" in done.stderr


def test_sigterm_serves_pending_requests_before_the_end(memcached, proxima):
    server = memcached()
    proxy = proxima(config("cache", {"cache": {"servers": [server.address], "timeout": "50s"}}))
    server.set("k", "v")
    with proxy.raw() as waiting, proxy.raw() as idle, proxy.raw() as writing:
        idle.set("a", "1")
        writing.send(b"set big 0 0 1000000\r\n" + b"x" * 500_000)
        until(lambda: proxy.metric("uploads_total") == 1, "the upload has begun")
        server.freeze()
        waiting.send(b"get k\r\n")
        until(lambda: proxy.metric("requests_in_flight") == 2, "two requests are on their way")
        proxy.signal(signal.SIGTERM)
        assert idle.rest() == b""
        until(lambda: not proxy.connects(), "it takes no new clients")
        assert proxy.http("/ready")[0] == 503
        assert proxy.process.poll() is None
        server.thaw()
        assert waiting.rest() == b"VALUE k 0 1\r\nv\r\nEND\r\n"
        writing.send(b"x" * 500_000 + b"\r\n")
        assert writing.rest() == b"STORED\r\n"
    assert proxy.wait() == 0


def test_sigterm_without_clients_ends_at_once(proxima):
    proxy = proxima(config("embedded"))
    proxy.signal(signal.SIGTERM)
    assert proxy.wait() == 0


def test_a_unix_socket_is_served_by_all_workers(memcached, proxima, tmp_path):
    listener = {"address": f"unix:{tmp_path}/socket", "route": "cache"}
    pools = {"cache": [server.address for server in memcached.several(2)]}
    proxy = proxima(config("cache", pools, workers=4, listeners=[listener]))
    clients = [proxy.raw() for _ in range(200)]
    assert {client.stats()["worker"] for client in clients} == {"0", "1", "2", "3"}
    for number, client in enumerate(clients):
        client.set(f"k{number}", str(number))
    for number, client in enumerate(reversed(clients)):
        assert client.get(f"k{number}") == str(number).encode()
        client.close()


def test_a_dead_unix_socket_is_replaced(proxima, tmp_path):
    listener = {"address": f"unix:{tmp_path}/socket", "route": "embedded"}
    first = proxima(config("embedded", listeners=[listener]))
    first.kill()
    # The kernel releases a ring, and the sockets in it, a moment after the process has ended.
    until(lambda: not first.connects(), "nobody listens any more")
    assert (tmp_path / "socket").exists()
    with proxima(config("embedded", listeners=[listener])).raw() as client:
        client.set("k", "v")


def test_all_workers_share_a_port(memcached, proxima):
    proxy = proxima(config("cache", {"cache": [memcached().address]}, workers=4))
    workers = set()

    def all_have_answered():
        with proxy.raw() as client:
            workers.add(client.stats()["worker"])
        return len(workers) == 4

    until(all_have_answered, "clients come to all four workers")


def test_listener_admin_and_server_may_use_ipv6(memcached, proxima):
    server = memcached(host="::1")
    listener = {"address": ports.address("::1"), "route": "cache"}
    proxy = proxima(
        config("cache", {"cache": [server.address]}, listeners=[listener], admin=ports.address("::1"))
    )
    with proxy.raw() as client:
        client.set("k", "v")
        assert client.get("k") == b"v"
    assert server.get("k") == b"v"


def test_all_workers_share_the_embedded_store(proxima):
    """The embedded store's `stats` do not name the worker, so many clients make sure that all workers are
    used."""
    proxy = proxima(config("embedded", workers=4))
    clients = [proxy.raw() for _ in range(40)]
    for number, client in enumerate(clients):
        client.set(f"k{number}", str(number))
    for client in clients:
        for number in range(40):
            assert client.get(f"k{number}") == str(number).encode()
    clients[0].set("n", "0")
    for client in clients * 5:
        client.send(b"incr n 1\r\n")
    for client in clients * 5:
        client.line()
    assert clients[7].get("n") == b"200"
    assert clients[3].ask(b"flush_all\r\n") == b"OK\r\n"
    assert [client.get("k1") for client in clients] == [None] * 40
    stats = clients[0].stats()
    assert (stats["threads"], stats["curr_connections"], int(stats["pid"])) == ("4", "40", proxy.process.pid)
    for client in clients:
        client.close()


def test_run_without_a_configuration_serves_the_embedded_store(embedded):
    program = embedded()
    with program.raw() as client:
        client.set("k", "v")
        assert client.get("k") == b"v"
    assert program.address in program.log()
    assert "connections_to_each_server" not in program.log()


def test_explain_without_a_configuration_shows_the_embedded_store(command):
    done = command("explain", "k")
    assert (done.returncode, done.stderr) == (0, "")
    assert "embedded: the store in this process" in done.stdout


def test_stats_conns_names_listeners_and_clients_as_memcached_does(proxima, tmp_path):
    made = config("embedded")
    made["listeners"].append({"address": f"unix:{tmp_path}/sock", "route": "embedded"})
    program = proxima(made)
    tcp, unix = f"tcp:{program.addresses[0]}", program.addresses[1]
    with program.raw(0) as first, program.raw(1) as second:
        second.ask(b"")
        own = f"tcp:127.0.0.1:{first.sock.getsockname()[1]}"
        rows = first.stats("conns").items()
    assert sorted(value for key, value in rows if key.endswith(":addr")) == sorted([tcp, unix, own, "unix:"])
    assert sorted(value for key, value in rows if key.endswith(":listen_addr")) == sorted([tcp, unix])


def test_the_embedded_store_takes_values_as_large_as_memcached_does(embedded, memcached):
    for server in (embedded(), memcached()):
        with server.raw() as client:
            for size, answer in (
                (1_000_000, b"STORED\r\n"),
                (1 << 20, b"SERVER_ERROR object too large for cache\r\n"),
            ):
                assert client.ask(b"set k 0 0 %d\r\n%b\r\n" % (size, b"v" * size)) == answer
                assert client.get("k") == (b"v" * 1_000_000 if size == 1_000_000 else None)


def test_the_node_address_may_come_from_the_environment(memcached, io, tmp_path, cleanup, monkeypatch):
    server = memcached(host="127.0.0.7")
    made = config({"nearest": "cache"}, {"cache": [server.address]}, admin=ports.address())
    file = tmp_path / "proxima.yaml"
    file.write_text(yaml.safe_dump(made))
    monkeypatch.setattr("harness.proxy.environment", lambda: {**os.environ, "HOST_IP": "127.0.0.7"})
    address = made["listeners"][0]["address"]
    program = Program([BINARY, "run", "--config", str(file), "--io", io], tmp_path, [address], made["admin"])
    cleanup.callback(program.stop)
    assert program.wait_ready().member(server.address)["distance"] == "host"


def test_log_lines_may_be_json(memcached, io, tmp_path, proxima):
    proxy = proxima(config("embedded"), "--log-format", "json")
    lines = [json.loads(line) for line in proxy.log().splitlines()]
    assert lines and all("timestamp" in line and "level" in line for line in lines)


def test_memory_does_not_grow_with_clients_that_have_left(proxima):
    proxy = proxima(config("embedded"))

    def crowd():
        clients = [proxy.raw() for _ in range(300)]
        for client in clients:
            client.set("k", "v")
        for client in clients:
            client.close()
        until(lambda: proxy.metric("clients") == 0, "all have left")
        return proxy.memory()

    crowd()
    first = crowd()
    assert all(crowd() - first < 4 << 20 for _ in itertools.repeat(None, 3))


def test_sigusr1_and_sigusr2_do_not_end_the_process(proxima):
    proxy = proxima(config("embedded"))
    for number in (signal.SIGUSR1, signal.SIGUSR2):
        proxy.signal(number)
        until(lambda: f"{number.name} has no meaning" in proxy.log(), "it is told")
    assert proxy.is_live()


@pytest.mark.parametrize(
    "arguments",
    [["--config", "/nonexistent.yaml"], ["--nonsense"], ["--workers", "none"]],
    ids=["a missing file", "an unknown option", "a bad value"],
)
def test_an_error_at_the_start_is_json_too(command, io, arguments):
    for form in (["--log-format", "json"], ["--log-format=json"]):
        done = command("run", *form, "--io", io, *arguments)
        assert done.returncode == 2 and done.stdout == ""
        lines = [json.loads(line) for line in done.stderr.splitlines()]
        assert lines[-1]["level"] == "ERROR" and lines[-1]["fields"]["message"]


def test_an_address_in_use_is_logged_as_json(proxima, command, io):
    first = proxima(config("embedded"))
    done = command("run", "--config", str(first.file), "--io", io, "--log-format", "json")
    assert done.returncode == 2
    last = [json.loads(line) for line in done.stderr.splitlines()][-1]
    assert first.address in last["fields"]["message"]


def test_the_log_without_a_configuration_is_json_too(embedded):
    program = embedded("--log-format", "json")
    program.signal(signal.SIGTERM)
    assert program.wait() == 0
    assert all(json.loads(line) for line in program.log().splitlines())


def test_log_values_with_blanks_are_quoted(memcached, proxima):
    server = memcached()
    named = {"address": server.address, "name": "a=b"}
    proxy = proxima(config("cache", {"cache": {"servers": [named]}}))
    server.kill()
    with proxy.raw() as client:
        answer = client.ask(b"get k\r\n")
    # The first error names the server, as all that follow do.
    assert answer == f"SERVER_ERROR {server.address}: Connection refused\r\n".encode()
    line = until(lambda: [line for line in proxy.log().splitlines() if " ejected " in line], "it is ejected")[
        0
    ]
    assert 'reason="Connection refused"' in line and 'member="a=b"' in line and "pool=cache" in line


@pytest.mark.parametrize("address", ["", ",", "127.0.0.7,"])
def test_empty_entries_of_host_ip_are_ignored(memcached, io, tmp_path, cleanup, monkeypatch, address):
    server = memcached(host="127.0.0.7")
    made = config({"nearest": "cache"}, {"cache": [server.address]}, admin=ports.address())
    file = tmp_path / "proxima.yaml"
    file.write_text(yaml.safe_dump(made))
    monkeypatch.setattr("harness.proxy.environment", lambda: {**os.environ, "HOST_IP": address})
    command = [BINARY, "run", "--config", str(file), "--io", io]
    program = Program(command, tmp_path, [made["listeners"][0]["address"]], made["admin"])
    cleanup.callback(program.stop)
    distance = program.wait_ready().member(server.address)["distance"]
    assert (distance == "host") == ("7" in address)


def unix(tmp_path, **keys):
    made = config("embedded")
    made["listeners"] = [{"address": f"unix:{tmp_path}/socket", "route": "embedded", **keys}]
    return made


@pytest.mark.parametrize("kind", ["file", "folder", "link"])
def test_a_file_that_is_no_socket_is_never_replaced(tmp_path, command, io, kind):
    path = tmp_path / "socket"
    precious = tmp_path / "precious"
    precious.write_text("mine")
    match kind:
        case "file":
            path.write_text("mine")
        case "folder":
            path.mkdir()
        case "link":
            path.symlink_to(precious)
    file = tmp_path / "proxima.yaml"
    file.write_text(yaml.safe_dump(unix(tmp_path)))
    done = command("run", "--config", str(file), "--io", io)
    assert done.returncode == 2 and "not a socket" in done.stderr
    assert path.is_dir() if kind == "folder" else path.read_text() == "mine"


def test_a_unix_socket_with_a_full_queue_is_not_replaced(tmp_path, command, io):
    with socket.socket(socket.AF_UNIX) as other, socket.socket(socket.AF_UNIX) as waiting:
        other.bind(f"{tmp_path}/socket")
        other.listen(0)
        waiting.connect(f"{tmp_path}/socket")
        file = tmp_path / "proxima.yaml"
        file.write_text(yaml.safe_dump(unix(tmp_path)))
        done = command("run", "--config", str(file), "--io", io)
        assert done.returncode == 2 and "in use" in done.stderr
        assert (tmp_path / "socket").is_socket()


def test_a_unix_socket_has_the_mode_and_owner_of_its_listener(proxima, tmp_path):
    path = tmp_path / "socket"
    proxy = proxima(unix(tmp_path, mode="0622", owner=f"{os.geteuid()}:{os.getegid()}"))
    assert stat.S_IMODE(path.stat().st_mode) == 0o622
    assert (path.stat().st_uid, path.stat().st_gid) == (os.geteuid(), os.getegid())
    proxy.config["listeners"][0]["mode"] = 777
    proxy.write(proxy.config)
    until(lambda: stat.S_IMODE(path.stat().st_mode) == 0o777, "a reload changes it")
    proxy.config["listeners"][0]["owner"] = "nobody-of-this-name"
    proxy.write(proxy.config)
    assert proxy.reload()[0] == 422
    assert "/etc/passwd has no user `nobody-of-this-name`" in proxy.log()


def test_localhost_is_an_address_to_listen_on(proxima):
    made = config("embedded", admin=f"localhost:{ports.free()}")
    made["listeners"][0]["address"] = f"localhost:{ports.free()}"
    proxy = proxima(made)
    with proxy.raw() as client:
        client.set("k", "v")
    assert made["listeners"][0]["address"].replace("localhost", "127.0.0.1") in proxy.log()


@pytest.mark.parametrize("place", ["configuration", "servers", "password"])
def test_a_fifo_in_place_of_a_followed_file_is_refused_and_holds_up_no_sigterm(proxima, tmp_path, place):
    files = {"servers": tmp_path / "servers", "password": tmp_path / "password"}
    files["servers"].write_text("127.0.0.1:1\n")
    files["password"].write_text("secret")
    pool = {
        "protocol": "redis",
        "file": str(files["servers"]),
        "password_file": str(files["password"]),
    }
    made = config("cache", {"cache": pool})
    made["listeners"][0]["protocol"] = "redis"
    proxy = proxima(made)
    file = proxy.file if place == "configuration" else files[place]
    file.unlink()
    os.mkfifo(file)
    until(lambda: proxy.metric("config_failures_total") >= 1, "it is refused")
    until(lambda: "it is a FIFO; put a regular file in its place" in proxy.log(), "it is logged")
    status, text = proxy.reload()
    assert status != 200 and "FIFO" in text
    proxy.signal(signal.SIGTERM)
    assert proxy.wait() == 0
