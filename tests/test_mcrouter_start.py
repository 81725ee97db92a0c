"""How others start mcrouter: forms of options, an inherited socket, an empty environment, exit codes, and the
last good configuration for a start that finds a bad one."""

import contextlib
import json
import os
import pathlib
import signal
import socket
import subprocess
import time

import pytest

from harness import PATIENCE, ports, until
from harness.proxy import BINARY
from harness.raw import Closed, Raw

pytestmark = pytest.mark.either_io


@pytest.fixture
def launch(cleanup, io, tmp_path):
    """Starts `mcrouter` with exactly these arguments, and nothing in its environment but one variable.
    Returns the process and its log."""

    def start(*arguments, inherited=()):
        log = tmp_path / f"log-{time.monotonic_ns()}"
        with log.open("wb") as out:
            process = subprocess.Popen(
                [BINARY, "mcrouter", *arguments, f"--io={io}"],
                stdout=out,
                stderr=out,
                env={"LD_PRELOAD": ""},
                pass_fds=inherited,
            )

        def stop():
            if process.poll() is None:
                process.kill()
            process.wait(PATIENCE)

        cleanup.callback(stop)
        return process, log

    return start


def answers(address):
    """Whether a proxy answers there."""
    try:
        with Raw(address) as client:
            return client.ask(b"version\r\n").startswith(b"VERSION ")
    except (OSError, Closed):
        return False


def written(folder, server, name="config.json"):
    """A configuration of one server, with comments and trailing commas."""
    file = folder / name
    pools = f'"pools": {{"A": {{"servers": ["{server.address}",]}}}}'
    file.write_text(f'{{\n// one server\n{pools}, /* all */ "route": "PoolRoute|A",}}')
    return file


def test_an_inherited_socket_that_is_bound_is_served_by_both_families(memcached, launch, tmp_path):
    config = written(tmp_path, memcached())
    with socket.socket(socket.AF_INET6) as given:
        given.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        given.bind(("::", 0))
        port = given.getsockname()[1]
        arguments = [
            f"--config=file:{config}",
            *("--proxy-threads", "2", "--rss-limit-mb", "16384", "--fibers-stack-size=65536"),
            *("--stats-root", str(tmp_path), "-a", str(tmp_path), "--debug-fifo-root", str(tmp_path)),
            *("-L", str(tmp_path / "mcrouter.log"), "--listen-sock-fd", str(given.fileno())),
        ]
        process, _ = launch(*arguments, inherited=(given.fileno(),))
        for address in (f"127.0.0.1:{port}", f"[::1]:{port}"):
            until(lambda where=address: answers(where), f"{address} answers")
        # Both threads accept from it.
        clients = [Raw(f"127.0.0.1:{port}") for _ in range(20)]
        for number, client in enumerate(clients):
            client.set(f"k{number}", "v")
            client.close()
        log = (tmp_path / "mcrouter.log").read_text()
        assert "unknown option `--rss-limit-mb` is ignored" in log
        assert "option `--fibers-stack-size=65536` has no effect here" in log
    process.terminate()
    assert process.wait(PATIENCE) == 0


def test_a_number_that_is_no_open_socket_is_refused(memcached, launch, tmp_path):
    config = written(tmp_path, memcached())
    process, log = launch(f"--config=file:{config}", "--listen-sock-fd=900")
    assert process.wait(PATIENCE) == 2
    assert "fd:900" in log.read_text()


def test_options_come_in_three_forms_and_paths_may_be_relative(memcached, launch, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    server = memcached()
    for name in ("one.json", "two.json", "three.json"):
        written(tmp_path, server, name)
    starts = [
        ("--config=file:one.json", "--port={}", "--num-proxies=1"),
        ("--config", "file:two.json", "--port", "{}", "--num-proxies", "1"),
        ("-f", "three.json", "-p", "{}", "-R", "/a/b/"),
    ]
    for arguments in starts:
        port = ports.free()
        launch(*(argument.format(port) for argument in arguments))
        until(lambda at=port: answers(f"127.0.0.1:{at}"), f"{arguments} answers")


def test_a_flavor_gives_options_that_the_command_line_overrides(memcached, launch, tmp_path):
    config = written(tmp_path, memcached())
    flavor, taken, free = tmp_path / "flavor.json", ports.free(), ports.free()
    options = {"config": f"file:{config}", "ports": str(taken), "no_such": "1"}
    flavor.write_text(json.dumps({"options": options}))
    launch(f"file:{flavor}", f"--port={free}")
    until(lambda: answers(f"127.0.0.1:{free}"), "the port of the command line answers")
    assert not answers(f"127.0.0.1:{taken}")


def test_a_second_process_on_the_port_ends_and_the_first_goes_on(memcached, launch, tmp_path):
    config, port = written(tmp_path, memcached()), ports.free()
    launch(f"--config=file:{config}", "-p", str(port))
    until(lambda: answers(f"127.0.0.1:{port}"), "the first answers")
    second, _ = launch(f"--config=file:{config}", "-p", str(port))
    assert second.wait(20) == 2
    assert answers(f"127.0.0.1:{port}")


@pytest.mark.parametrize("how", ["--validate-config", "--validate-config=exit", "--validate-config=run"])
@pytest.mark.parametrize("is_good", [True, False], ids=["good", "bad"])
def test_a_configuration_is_validated(memcached, launch, tmp_path, how, is_good):
    config, port = written(tmp_path, memcached()), ports.free()
    if not is_good:
        config.write_text('{\n"route":\n{"type": "XYZRoute"}}')
    # The socket is not inherited, which must not matter to a check.
    where = ("--listen-sock-fd", "900") if "run" not in how else ("-p", str(port))
    process, log = launch(f"--config=file:{config}", how, *where)
    if is_good and "run" in how:
        until(lambda: answers(f"127.0.0.1:{port}"), "it serves")
        return
    code = process.wait(20)
    assert (code == 0) == is_good
    assert is_good or "Unknown RouteHandle: XYZRoute line: 3" in log.read_text()


@pytest.mark.parametrize("how", [None, "exit", "run"])
def test_a_check_refuses_what_is_otherwise_left_out(memcached, launch, tmp_path, how):
    server, config, port = memcached(), tmp_path / "config.json", ports.free()
    shadows = [{"target": "PoolRoute|nowhere"}]
    route = {"type": "PoolRoute", "pool": "A", "shadows": shadows}
    config.write_text(json.dumps({"pools": {"A": {"servers": [server.address]}}, "route": route}))
    process, log = launch(
        f"--config=file:{config}", "-p", str(port), *([f"--validate-config={how}"] if how else [])
    )
    if how:
        assert process.wait(20) != 0
    else:
        until(lambda: answers(f"127.0.0.1:{port}"), "it serves without the shadow")
    assert ("left out" in log.read_text()) == (how is None)
    assert "nowhere" in log.read_text()


def kept_in(folder):
    kept = []
    for path in pathlib.Path(folder).rglob("*"):
        # The router may have replaced a file meanwhile.
        with contextlib.suppress(FileNotFoundError, IsADirectoryError):
            kept.append(path.read_bytes())
    return kept


def test_the_last_good_configuration_starts_the_next_process(memcached, launch, tmp_path):
    server = memcached()
    config, dump = written(tmp_path, server), tmp_path / "dump"
    good = config.read_bytes()

    def start(*arguments):
        with socket.socket(socket.AF_INET6) as given:
            given.bind(("::", 0))
            port = given.getsockname()[1]
            number = str(given.fileno())
            options = (f"--config=file:{config}", f"--config-dump-root={dump}", "--listen-sock-fd", number)
            process, log = launch(*options, *arguments, inherited=(given.fileno(),))
        return process, log, f"[::1]:{port}"

    first, log, address = start()
    until(lambda: answers(address), "it answers")
    until(lambda: kept_in(dump / "mcrouter/0") == [good], "the configuration is kept as it is")
    config.write_text('{"route": "@none"}')
    until(lambda: "Macro: 'none' not found" in log.read_text(), "the bad one is read")
    assert kept_in(dump) == [good], "a bad one is not kept"
    first.terminate()
    assert first.wait(PATIENCE) == 0

    _, log, address = start()
    until(lambda: answers(address), "the dump is served")
    assert "Macro: 'none' not found" in log.read_text()
    with Raw(address) as client:
        client.set("k", "v")
    assert server.get("k") == b"v"
    # The real one is followed.
    config.write_text('{"route": "ErrorRoute|new"}')
    with Raw(address) as client:
        until(lambda: client.ask(b"get k\r\n") == b"SERVER_ERROR new\r\n", "the mended file takes effect")

    config.write_text("{")
    hour = time.time() - 3600
    for path in dump.rglob("*"):
        os.utime(path, (hour, hour))
    late, log, _ = start("--max-dumped-config-age=60")
    assert late.wait(PATIENCE) == 2
    strict, _, _ = start("--validate-config=run")
    assert strict.wait(PATIENCE) == 2


def test_no_process_is_left_after_sigterm(memcached, launch, tmp_path):
    config, port = written(tmp_path, memcached()), ports.free()
    process, log = launch(f"--config=file:{config}", f"--port={port}", "--proxy-threads=auto")
    until(lambda: answers(f"127.0.0.1:{port}"), "it answers")
    for children in pathlib.Path(f"/proc/{process.pid}/task").glob("*/children"):
        # A thread may have ended meanwhile.
        with contextlib.suppress(FileNotFoundError):
            assert children.read_text() == ""
    process.send_signal(signal.SIGTERM)
    assert process.wait(PATIENCE) == 0
    assert not pathlib.Path(f"/proc/{process.pid}").exists()
    assert "reconfigured with" not in log.read_text()
