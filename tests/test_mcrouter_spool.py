"""mcrouter's asynchronous log: deletes that a server has not taken are kept in files until it is back."""

import contextlib
import json
import os
import pathlib
import signal

import pytest

from harness import ports, until
from harness.disk import Disk
from harness.mcrouter import Router
from harness.servers import answering

pytestmark = pytest.mark.either_io


@pytest.fixture
def mcrouter(cleanup, io, tmp_path):
    def start(config, *arguments, port=None):
        quick = ("--timeouts-until-tko=1", "--probe-timeout-initial=100")
        router = Router(json.dumps(config), tmp_path, io, *quick, *arguments, port=port)
        cleanup.callback(router.stop)
        return router

    return start


@pytest.fixture
def disk(folder):
    try:
        small = Disk(folder / "image", folder / "disk")
    except OSError as error:
        pytest.skip(f"nothing may be mounted here: {error}")
    yield small
    small.remove()


def pools(*servers, **keys):
    """A configuration with one pool for each server, by the first letter of the key."""
    named = {chr(ord("a") + number): {"servers": [server]} for number, server in enumerate(servers)}
    routes = {name: {"type": "PoolRoute", "pool": name, **keys} for name in named}
    route = {"type": "PrefixSelectorRoute", "policies": routes, "wildcard": "NullRoute"}
    return {"pools": named, "route": route}


def files(folder):
    """The spool's files. The router deletes files and hours meanwhile: what is gone is not listed."""
    return sorted(pathlib.Path(path, name) for path, _, names in os.walk(folder) for name in names)


def lines(folder):
    found = []
    for file in files(folder):
        with contextlib.suppress(FileNotFoundError):
            found += [json.loads(line) for line in file.read_text().splitlines()]
    return found


def counted(router):
    kinds = ("kept", "refused", "replayed", "dropped")
    return tuple(router.metric("spooled_deletes_total", event=kind) for kind in kinds)


def test_a_delete_that_failed_is_kept_and_sent_when_its_server_is_back(memcached, mcrouter, tmp_path):
    address, spool = ports.address(), tmp_path / "spool"
    router = mcrouter(pools(address))
    with router.raw() as client:
        assert not spool.exists()
        # One that is ejected is not asked, and a pipeline is answered in order.
        asked = b"".join(b"delete a%d\r\n" % number for number in range(10))
        assert client.ask(asked) == b"NOT_FOUND\r\n" * 10
        assert client.ask(b"set a 0 0 1\r\nv\r\n").startswith(b"SERVER_ERROR")
        until(lambda: len(lines(spool)) == 10, "all are in files")
    host, port = address.split(":")
    for number, line in enumerate(lines(spool)):
        assert line[0] == "AS1.0" and line[2:] == ["C", [host, int(port), f"delete a{number}\r\n"]]
    [file] = files(spool)
    assert f"-mcrouter-{router.address.split(':')[1]}-t0-" in file.name
    server = memcached(port=address.split(":")[1])
    until(lambda: server.stat("delete_misses") == 10, "it has had all of them")
    until(lambda: not files(spool), "the file is gone")
    assert counted(router) == (10, 0, 10, 0)
    with router.raw() as client:
        until(
            lambda: client.ask(b"delete a\r\n") == b"NOT_FOUND\r\n" and counted(router)[0] == 10,
            "it is asked",
        )


def test_each_server_gets_its_own_when_it_is_back(memcached, mcrouter, tmp_path):
    first, second, spool = ports.address(), ports.address(), tmp_path / "spool"
    router = mcrouter(pools(first, second, asynclog_name="named"), "--use-asynclog-version2", "-R/east/one/")
    with router.raw() as client:
        for key in (b"a1", b"b1", b"a2", b"b2"):
            assert client.ask(b"delete %b\r\n" % key) == b"NOT_FOUND\r\n"
    until(lambda: len(lines(spool)) == 4, "all are in files")
    host, port = second.split(":")
    facts = {"f": router.address.split(":")[1], "p": "named", "r": "/east/one/", "s": "mcrouter"}
    rest = [{**facts, "h": f"[{host}]:{port}", "k": key} for key in ("b1", "b2")]
    assert [line[3] for line in lines(spool) if line[3]["k"].startswith("b")] == rest
    assert {line[0] for line in lines(spool)} == {"AS2.0"}
    server = memcached(port=first.split(":")[1])
    until(lambda: [line[3] for line in lines(spool)] == rest, "what the second has missed is left")
    assert server.stat("delete_misses") == 2
    memcached(port=second.split(":")[1])
    until(lambda: not files(spool), "all are sent")
    assert counted(router) == (4, 0, 4, 0)


@pytest.mark.parametrize("form", [[], ["--use-asynclog-version2"]], ids=["first form", "second form"])
def test_another_port_gets_what_servers_have_missed(memcached, mcrouter, tmp_path, form):
    address, spool = ports.address(), tmp_path / "spool"
    other = ports.address().split(":")[1]
    router = mcrouter(pools(address), f"--asynclog-port-override={other}", *form)
    with router.raw() as client:
        assert client.ask(b"delete a1\r\n") == b"NOT_FOUND\r\n"
    [line] = until(lambda: lines(spool), "it is in a file")
    assert (line[3]["h"].split(":")[1] if form else str(line[3][1])) == other
    server = memcached(port=other)
    until(lambda: server.stat("delete_misses") == 1, "it has had it")
    until(lambda: not files(spool), "the file is gone")


def test_what_a_process_leaves_is_sent_by_the_next(memcached, mcrouter, tmp_path):
    address, spool = ports.address(), tmp_path / "spool"
    router = mcrouter(pools(address))
    with router.raw() as client:
        assert client.ask(b"delete a1\r\n") == b"NOT_FOUND\r\n"
    router.signal(signal.SIGTERM)
    assert router.wait() == 0
    assert len(lines(spool)) == 1
    [file] = files(spool)
    with file.open("a") as text:
        text.write('["AS1.0", 1, "C", ["127.0.0.1", 1, "flush_all\\r\\n"]]\nhalf a l')
    other = spool / "20200101T00-1577836800" / "20200101T000000-1577836800-mcrouter-1-t0-1"
    other.parent.mkdir()
    other.write_text("another router's\n")
    server = memcached(port=address.split(":")[1])
    router = mcrouter(pools(address), port=int(router.address.split(":")[1]))
    until(lambda: server.stat("delete_misses") == 1, "it has had it")
    until(lambda: files(spool) == [other], "nothing else is left")
    assert counted(router) == (0, 0, 1, 2)


@pytest.mark.parametrize("how", ["--asynclog-disable", "pool", "not a PoolRoute"])
def test_a_client_hears_of_the_failure_where_nothing_is_kept(mcrouter, tmp_path, how):
    keys = {"asynclog": False} if how == "pool" else {}
    config = pools(ports.address(), **keys)
    if how == "not a PoolRoute":
        config["route"] = "HashRoute|Pool|a"
    router = mcrouter(config, *([how] if how.startswith("-") else []))
    with router.raw() as client:
        assert client.ask(b"delete a1\r\n").startswith(b"SERVER_ERROR")
    assert not (tmp_path / "spool").exists()


def test_an_error_of_the_client_is_not_kept(mcrouter, scripted, tmp_path):
    server = scripted(answering(b"CLIENT_ERROR no\r\n"))
    with mcrouter(pools(server.address)).raw() as client:
        client.send(b"delete a1\r\n")
        assert client.line() == b"CLIENT_ERROR no\r\n"
    assert not (tmp_path / "spool").exists()


def test_a_disk_that_takes_nothing_lets_clients_hear_of_the_failure(memcached, mcrouter, tmp_path):
    address, spool = ports.address(), tmp_path / "spool"
    spool.write_text("no folder")
    router = mcrouter(pools(address))
    with router.raw() as client:
        until(lambda: client.ask(b"delete a1\r\n").startswith(b"SERVER_ERROR"), "it is refused")
        kept = counted(router)[0]
        assert counted(router)[1] >= 1 and kept >= 1
        assert "cannot be written" in router.log()
        spool.unlink()
        until(lambda: client.ask(b"delete a2\r\n") == b"NOT_FOUND\r\n", "the disk is back")
    server = memcached(port=address.split(":")[1])
    until(lambda: server.stat("delete_misses") == kept + 1, "none that was kept is lost")


@pytest.mark.alone
def test_a_full_disk_loses_no_request_and_says_so(memcached, mcrouter, disk):
    """Mounting changes the machine, so that nothing may run beside it."""
    up, down = memcached(), ports.address()
    router = mcrouter(pools(up.address, down), f"--async-dir={disk.folder}/spool")
    kept, refused = [], []
    with router.raw() as client:
        client.set("a", "v")
        assert client.ask(b"delete b0\r\n") == b"NOT_FOUND\r\n"
        until(lambda: len(lines(disk.folder / "spool")) == 1, "it is written")
        disk.fill()
        for number in range(1, 3000):
            answer = client.ask(b"delete b%d\r\n" % number)
            (kept if answer == b"NOT_FOUND\r\n" else refused).append(number)
            assert answer == b"NOT_FOUND\r\n" or answer.startswith(b"SERVER_ERROR"), answer
            # Nobody else notices.
            assert client.get("a") == b"v"
            if len(refused) == 20:
                break
        assert len(refused) == 20, "clients hear of the failure"
        assert "failed deletes cannot be written" in router.log()
        assert counted(router)[:2] == (len(kept) + 1, len(refused))
        (disk.folder / "filler").unlink()
        until(lambda: client.ask(b"delete b\r\n") == b"NOT_FOUND\r\n", "the disk takes deletes again")
    server = memcached(port=down.split(":")[1])
    until(lambda: server.stat("delete_misses") == len(kept) + 2, "none that was kept is lost")
    until(lambda: not files(disk.folder / "spool"), "the file is gone")


@pytest.mark.alone
def test_deletes_reach_a_server_that_is_back_although_the_disk_is_full(memcached, mcrouter, disk):
    """Sending them is what makes room. Those of a server that is still away stay."""
    back, away, spool = ports.address(), ports.address(), disk.folder / "spool"
    router = mcrouter(pools(back, away), f"--async-dir={spool}")
    kept = {b"a": 0, b"b": 0}
    with router.raw() as client:
        for key in kept:
            assert client.ask(b"delete %b0\r\n" % key) == b"NOT_FOUND\r\n"
            kept[key] += 1
        until(lambda: len(lines(spool)) == 2, "they are written")
        disk.fill()
        for number in range(1, 4000):
            key = b"ab"[number % 2 :][:1]
            if client.ask(b"delete %b%d\r\n" % (key, number)) != b"NOT_FOUND\r\n":
                break
            kept[key] += 1
    assert "failed deletes cannot be written" in router.log()
    server = memcached(port=back.split(":")[1])
    until(lambda: server.stat("delete_misses") >= 1, "what is in files has come")
    (disk.folder / "filler").unlink()
    until(lambda: server.stat("delete_misses") >= kept[b"a"], "and the others")
    other = memcached(port=away.split(":")[1])
    until(lambda: other.stat("delete_misses") >= kept[b"b"], "none that was kept is lost")
    until(lambda: not files(spool), "the files are gone")
