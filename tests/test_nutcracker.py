"""twemproxy's front door: its command line, process, sockets and statistics, beside the real `nutcracker`."""

import contextlib
import json
import os
import pathlib
import re
import signal
import subprocess
import time

import pytest

from harness import ports, until
from harness.load import Load
from harness.nutcracker import NUTCRACKER, counts, entry, written
from harness.proxy import BINARY
from harness.raw import Raw
from harness.redis import Connection, array

pytestmark = [
    pytest.mark.either_io,
    pytest.mark.skipif(
        not pathlib.Path(NUTCRACKER).exists(), reason="nutcracker is missing: scripts/prepare.sh"
    ),
]


def test_the_program_called_nutcracker_says_what_nutcracker_says(tmp_path):
    link = tmp_path / "nutcracker"
    link.symlink_to(pathlib.Path(BINARY).resolve())
    bad, good = tmp_path / "bad.yml", tmp_path / "good.yml"
    bad.write_text("a:\n  listen: 127.0.0.1:1\n")
    good.write_text(written({"a": {"listen": ports.address(), "servers": [entry(ports.address())]}}))
    for arguments in (
        ["-V"],
        ["-D"],
        ["-t", "-c", str(tmp_path / "missing")],
        ["-t", "-c", str(bad)],
        ["-x"],
        ["-s0"],
        ["--de"],
        ["-d", "-c", str(good), "-o", "/no/such/folder/log"],
    ):
        theirs, ours = (
            subprocess.run([program, *arguments], capture_output=True) for program in (NUTCRACKER, link)
        )
        assert (ours.returncode, ours.stdout) == (theirs.returncode, theirs.stdout)

        def said(program):
            return [
                line for line in program.stderr.splitlines() if line.startswith((b"nutcracker: ", b"opening"))
            ]

        assert said(ours) == said(theirs)


def test_metrics_that_the_description_of_statistics_names_are_there(door):
    proxy = door({"p": {"listen": ports.address(), "servers": [entry(ports.address())]}})
    told = subprocess.run([BINARY, "nutcracker", "-D"], capture_output=True, text=True).stderr
    named = re.findall(r'^  proxima_(\w+) +"(.+)"$', told, re.MULTILINE)
    page = proxy.http("/metrics")[1]
    known = dict(re.findall(r"^# HELP proxima_(\w+) (.+)$", page, re.MULTILINE))
    assert len(named) == 10
    assert {name: known.get(name, known.get(name.removesuffix("_total"))) for name, _ in named} == dict(named)


def test_pools_of_both_protocols_are_served_from_one_file(door, memcached, redis_server, folder):
    socket = folder / "m.sock"
    pools = {
        "m": {
            "listen": f"{socket} 0600",
            "servers": [entry(memcached(socket=str(folder / "server.sock")), 1, "m")],
        },
        "r": {"listen": ports.address(), "redis": True, "servers": [entry(redis_server())]},
        "other": {"listen": ports.address(), "servers": [entry(memcached())]},
    }
    proxy = door(pools)
    assert socket.stat().st_mode & 0o777 == 0o600
    for listener in (0, 2):
        with proxy.raw(listener) as client:
            client.set("k", str(listener))
            assert client.get("k") == str(listener).encode()
    with Connection(proxy.addresses[1]) as client:
        assert client.ask("SET", "k", "r") == b"+OK\r\n"


def test_preconnect_connects_before_the_first_request(door, memcached):
    servers = memcached.several(2)
    before = [server.stat("total_connections") for server in servers]
    pool = {"listen": ports.address(), "preconnect": True, "servers": [entry(server) for server in servers]}
    door({"p": pool}, workers=2)

    def connected():
        # Each question is a connection, too.
        return all(server.stat("curr_connections") >= 3 for server in servers)

    until(connected, f"both workers have connected; {before} before")


def test_sockets_are_made_as_the_file_says(door, memcached):
    server = memcached()
    port = ports.free()
    listen = f"127.0.0.1:{port}"
    keys = {"backlog": 77, "tcpkeepalive": True, "reuseport": True, "servers": [entry(server)]}
    first, second = (door({"p": {"listen": listen, **keys}}, workers=1) for _ in range(2))
    assert first.process.poll() is None and second.process.poll() is None
    with first.raw() as client:
        client.set("k", "v")
        # Column 5 is the timer: 02 is that of keepalive.
        with open("/proc/net/tcp") as table:
            rows = [line.split() for line in table.readlines()[1:]]
        own = [row for row in rows if row[1].endswith(f":{port:04X}") and row[3] == "01"]
        assert own and all(row[5].startswith("02:") for row in own)
        theirs = [
            row
            for row in rows
            if row[2].endswith(f":{int(server.address.split(':')[1]):04X}") and row[3] == "01"
        ]
        assert theirs and all(row[5].startswith("02:") for row in theirs)
    # State, Recv-Q, Send-Q, the local and the peer's address.
    told = subprocess.run(["ss", "-Hltn", f"sport = :{port}"], capture_output=True, text=True, check=True)
    assert [line.split()[2] for line in told.stdout.splitlines()] == ["77", "77"]


def test_without_a_time_out_a_frozen_server_is_waited_for(door, memcached):
    server = memcached()
    proxy = door({"p": {"listen": ports.address(), "servers": [entry(server)]}})
    with proxy.raw() as client:
        client.set("k", "v")
        server.freeze()
        client.send(b"get k\r\n")
        time.sleep(2)
        server.thaw()
        assert client.line() == b"VALUE k 0 1\r\n"


def test_statistics_are_those_of_twemproxy_field_for_field(both, redis_server):
    servers = redis_server.several(2)
    entries = [entry(server, 1, name) for server, name in zip(servers, ["long", "b"])]
    theirs, ours = both(
        {"p": {"redis": True, "distribution": "modula", "preconnect": True, "servers": entries}}
    )
    shapes = [
        [(name, list(value) if isinstance(value, dict) else 0) for name, value in proxy.stats().items()]
        for proxy in (theirs, ours)
    ]
    assert shapes[1] == shapes[0]
    assert list(ours.stats()["p"]["b"]) == list(theirs.stats()["p"]["b"])
    assert (ours.stats()["service"], ours.stats()["version"]) == ("nutcracker", "0.5.0")
    expected = []
    for proxy in (theirs, ours):
        # The harness has looked whether it serves.
        left = counts(proxy)[0]["client_eof"]
        with Connection(proxy.address) as client:
            for i in range(10):
                assert client.ask("SET", f"key{i}", "value") == b"+OK\r\n"
            for i in range(10):
                assert client.ask("GET", f"key{i}") == b"$5\r\nvalue\r\n"
            until(lambda: counts(proxy)[1]["responses"] == 20, "twenty requests are counted")
            first = counts(proxy)
            client.ask("MGET", *(f"key{i}" for i in range(10)))
            until(lambda: counts(proxy)[1]["responses"] == 22, "one more for each server")
            client.ask("PING")
            expected.append((first, counts(proxy)))
        with Connection(proxy.address) as client:
            client.send(array("NOSUCH"))
            assert client.rest() == b""
        until(lambda: counts(proxy)[0]["client_err"] == 1, "the client that was refused is counted")
        until(lambda: counts(proxy)[0]["client_eof"] > left, "the client that has left is counted")
    same = "client_err client_connections server_ejects forward_error".split()
    of_servers = "server_eof server_err server_timedout requests responses request_bytes response_bytes"
    of_servers = [*of_servers.split(), "in_queue", "out_queue"]
    for theirs, ours in zip(*expected):
        assert [ours[0][name] for name in same] == [theirs[0][name] for name in same]
        assert [ours[1][name] for name in of_servers] == [theirs[1][name] for name in of_servers]


def test_requests_that_fail_are_counted_as_forward_errors_of_twemproxy(both, memcached, redis_server):
    """Once for each reply, whatever has failed, and not where the client wants no reply."""
    dead, frozen = entry(ports.address(), 1, "dead"), memcached()
    spread = {"hash": "md5", "distribution": "modula"}
    limited = {"auto_eject_hosts": True, "server_failure_limit": 1, "server_retry_timeout": 600_000}
    refusing = ("--rename-command", "MGET", "", "--rename-command", "DEL", "")
    pools = {
        "half": {**spread, "servers": [entry(memcached()), dead]},
        "none": {**limited, "servers": [dead, entry(ports.address(), 1, "gone")]},
        "late": {"timeout": 300, "servers": [entry(frozen)]},
        "keys": {**spread, "redis": True, "servers": [entry(redis_server()), dead]},
        "refused": {
            **spread,
            "redis": True,
            "servers": [entry(server) for server in redis_server.several(2, options=refusing)],
        },
    }
    frozen.freeze()
    keys = [b"k%d" % i for i in range(20)]
    names = [key.decode() for key in keys]
    counted = []
    for proxy in both(pools):
        with proxy.raw(0) as client:
            for key in keys:
                client.send(b"set %b 0 0 1 noreply\r\nv\r\n" % key)
            for key in keys:
                client.send(b"get %b\r\n" % key)
            client.send(b"get %b\r\n" % b" ".join(keys))
            # Its answer comes behind all others.
            client.send(b"set end 0 0 1\r\nv\r\nquit\r\n")
            client.rest()
        for number, request in ((1, b"get k\r\n" * 10 + b"quit\r\n"), (2, b"get k\r\n" * 3 + b"quit\r\n")):
            with proxy.raw(number) as client:
                client.send(request)
                client.rest()
        for number in (3, 4):
            for request in [["GET", name] for name in names] + [["MGET", *names], ["DEL", *names]]:
                # twemproxy closes some of the clients that were told of a failure.
                with Connection(proxy.addresses[number]) as client:
                    client.ask(*request)

        def stats():
            time.sleep(0.1)
            told = proxy.stats()
            return {name: told[name]["forward_error"] for name in pools}

        counted.append(until(lambda: (found := stats()) == stats() and found, "statistics are fresh"))
    theirs, ours = counted
    assert ours == theirs
    assert all(theirs.values()) and (theirs["none"], theirs["late"]) == (10, 3)


def test_statistics_are_told_while_others_take_nothing(door):
    servers = [entry(f"127.0.0.1:{port}") for port in range(1, 2_001)]
    proxy = door({"p": {"listen": ports.address(), "servers": servers}}, workers=1)

    def open_files():
        return len(os.listdir(f"/proc/{proxy.process.pid}/fd"))

    before = open_files()
    with contextlib.ExitStack() as idle:
        for _ in range(100):
            idle.enter_context(proxy.stats_socket())
        assert sum(isinstance(value, dict) for value in proxy.stats()["p"].values()) == len(servers)
        assert open_files() <= before + 70


ENDS = {
    "memcached": [
        b"",
        b"quit\r\n",
        b"get k\r\nquit\r\n",
        b"flush_all\r\n",
        b"nonsense\r\n",
        b"set k 0 0 1\r\nvv\r\n",
        b"get k " + b"k" * 251 + b"\r\n",
    ],
    "redis": [
        b"",
        array("QUIT"),
        array("PING") + array("QUIT"),
        array("PING", "x"),
        array("NOSUCH", "k"),
        array("MSET", "a", "1", "b"),
        array("GET"),
        b"*3\r\n*abcde\r\n",
        b"PING\r\n",
    ],
}


@pytest.mark.parametrize("protocol", ENDS)
def test_ends_of_clients_are_counted_as_in_twemproxy(both, protocol, memcached, redis_server):
    server = {"memcached": memcached, "redis": redis_server}[protocol]()
    counted = []
    for proxy in both({"p": {"redis": protocol == "redis", "servers": [entry(server)]}}):
        found = {}
        # The harness has looked whether it serves.
        until(lambda: counts(proxy)[0]["client_connections"] == 0, "nobody is connected")
        for request in ENDS[protocol]:
            before = counts(proxy)[0]
            with proxy.raw() as client:
                client.send(request)
                if request:
                    client.rest()

            def ended():
                now = counts(proxy)[0]
                return {name: now[name] - before[name] for name in ("client_eof", "client_err")}

            until(lambda: any(ended().values()), f"the end after {request} is counted")
            found[request] = ended()
        counted.append(found)
    assert counted[1] == counted[0]


@pytest.mark.parametrize("workers", [1, 4])
def test_the_daemon_detaches_logs_to_its_file_and_ends_with_its_pid_file(tmp_path, memcached, io, workers):
    listen, port = ports.address(), ports.free()
    link, file = tmp_path / "nutcracker", tmp_path / "n.yml"
    link.symlink_to(pathlib.Path(BINARY).resolve())
    server = entry(memcached(), 1, "server1")
    file.write_text(written({"p": {"listen": listen, "servers": [server]}}))
    log, pid_file = tmp_path / "n.log", tmp_path / "n.pid"
    options = f"-d -c {file} -o {log} -p {pid_file} -s {port} -a 127.0.0.1 -v 6 -m 512 -i 1".split()
    command = [link, *options, f"--io={io}", f"--workers={workers}"]
    assert subprocess.run(command, timeout=30).returncode == 0
    pid = int(until(lambda: pid_file.exists() and pid_file.read_text(), "the pid file is written"))
    try:

        def serves():
            try:
                with Raw(listen) as client:
                    client.set("k", "v")
            except OSError:
                return False
            return True

        until(serves, "the daemon serves")
        assert os.getsid(pid) == pid
        told = json.loads(Raw(f"127.0.0.1:{port}").rest())
        assert told["service"] == "nutcracker" and isinstance(told["p"]["server1"]["requests"], int)
        log.unlink()
        os.kill(pid, signal.SIGHUP)
        until(lambda: log.exists() and "SIGHUP" in log.read_text(), "the log is opened anew")
        assert "the log file is opened anew" in log.read_text()
        os.kill(pid, signal.SIGTTIN)
        until(
            lambda: "signal 21 (SIGTTIN) received, up logging level" in log.read_text(), "the level is raised"
        )
        until(lambda: "up log level to 7" in log.read_text(), "the level is told")
        os.kill(pid, signal.SIGTTOU)
        until(lambda: "down log level to 6" in log.read_text(), "the level is lowered")
        second = [link, "-c", file, "-s", str(port), "-p", pid_file]
        assert subprocess.run(second, capture_output=True, timeout=30).returncode == 1
        assert pid_file.read_text() == str(pid), "a start that fails leaves the file alone"
    finally:
        os.kill(pid, signal.SIGTERM)
    until(lambda: not pid_file.exists(), "the pid file is removed")


def test_the_name_of_each_signal_is_in_the_log_at_every_level(tmp_path, memcached, io):
    file, log = tmp_path / "n.yml", tmp_path / "n.log"
    listen = ports.address()
    file.write_text(written({"p": {"listen": listen, "servers": [entry(memcached())]}}))
    command = [BINARY, "nutcracker", f"--io={io}", "-c", file, "-o", log, "-v", "0"]
    process = subprocess.Popen([*command, "-a", "127.0.0.1", "-s", str(ports.free())])
    try:
        until(lambda: can_connect(listen), "it serves")
        log.unlink()
        for name in ("HUP", "TTIN", "TTOU", "USR1", "USR2"):
            number = signal.Signals[f"SIG{name}"]
            process.send_signal(number)
            said = f"signal {number.value} (SIG{name}) received"
            until(lambda: log.exists() and said in log.read_text(), said)
        with Raw(listen) as client:
            client.set("k", "v")
        process.send_signal(signal.SIGSEGV)
        assert process.wait(30) == -signal.SIGSEGV
        assert "signal 11 (SIGSEGV) received" in log.read_text()
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


def can_connect(address):
    try:
        Raw(address).close()
    except OSError:
        return False
    return True


def test_a_pid_file_that_cannot_be_written_ends_the_start(tmp_path):
    file, missing = tmp_path / "n.yml", tmp_path / "no" / "pid"
    file.write_text(written({"p": {"listen": ports.address(), "servers": [entry(ports.address())]}}))
    command = [BINARY, "nutcracker", "-c", file, "-p", missing, "-a", "127.0.0.1", "-s", str(ports.free())]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30)
    assert done.returncode == 1
    assert f"opening pid file '{missing}' failed: No such file or directory" in done.stderr


def test_file_of_1000_servers_that_changes_again_and_again_fails_no_request(door, memcached):
    """One memcached on every address of this host stands for all servers."""
    port = memcached(host="0.0.0.0", options=("-c", "8192")).address.rsplit(":", 1)[1]
    servers = [f"127.1.{number // 250}.{number % 250 + 1}:{port}:1" for number in range(1_003)]
    pool = {"listen": ports.address()}
    proxy = door({"p": {**pool, "servers": servers[:1_000]}})
    with Load(proxy.address, rate=300) as load:
        for change in range(1, 4):
            proxy.write({"p": {**pool, "servers": servers[change : 1_000 + change]}})
            until(lambda: proxy.metric("config_reloads_total") == change, "the change is in effect")
            load.after(50)
    assert proxy.metric("pool_members", pool="p", up="true") == 1_000


def test_a_changed_file_takes_effect_without_a_lost_client(door, memcached):
    servers = memcached.several(3)
    pool = {"listen": ports.address(), "hash": "md5", "servers": [entry(server) for server in servers[:2]]}
    proxy = door({"p": pool})
    with proxy.raw() as client:
        client.set("k", "v")
        proxy.write({"p": {**pool, "servers": [entry(server) for server in servers]}})

        def known():
            for i in range(50):
                client.set(f"key{i}", "v")
            return servers[2].stat("curr_items")

        until(known, "the third server gets keys")
        proxy.write("p:\n  listen: nonsense\n")
        until(lambda: "p.listen: expected `host:port`" in proxy.log(), "the mistake is told")
        client.set("k", "w")
