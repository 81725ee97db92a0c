"""Servers of other versions, and how they read each line."""

import pathlib
import subprocess
import sys

import pytest

from harness import until
from harness.proxy import config
from harness.raw import Raw
from harness.servers import MEMCACHED, answering

CAPTURES = pathlib.Path(__file__).resolve().parents[1] / "wire" / "captures"
sys.path.insert(0, str(CAPTURES))

import differ  # noqa: E402
import newest  # noqa: E402
import record  # noqa: E402

OLD = b"VERSION 1.5.22\r\n"


@pytest.fixture(scope="session")
def newer():
    """The command that starts the newest memcached."""
    try:
        return newest.command()
    except (newest.Unavailable, subprocess.TimeoutExpired, OSError) as error:
        pytest.skip(f"the newest memcached cannot be had here: {error}")


def records():
    """Lines, each with the recorded answers of the older and the newer server."""
    for line in differ.CORPUS.read_text("ascii").splitlines():
        if not line.startswith("#"):
            line, older, newer = line.split("\t")
            yield record.decode(line), older, older if newer == "=" else newer


def pool(address, **keys):
    """A configuration with one worker, so that all clients share one connection."""
    return config("p", {"p": {"servers": [address], "eject": {"failures": 0}, **keys}}, workers=1)


def test_recorded_answers_are_those_of_the_installed_servers(newer):
    """Every tenth line is sent live. A new version that reads one of them in another way shows here."""
    wrong = []
    with differ.Server([MEMCACHED]) as first, differ.Server(newer) as second:
        for line, older, newest_said in list(records())[::10]:
            for server, expected in ((first, older), (second, newest_said)):
                found = differ.record(server, line)
                if found != expected:
                    wrong.append(f"{server.words[0]}: {line!r}: {found}, recorded {expected}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("kind", ["older", "newer", "embedded"])
def test_no_recorded_line_shifts_the_replies_of_a_shared_connection(
    request, kind, cleanup, memcached, proxima
):
    """Every line is sent to the proxy with eight requests behind it, while a bystander reads its own keys."""
    if kind == "embedded":
        proxy = proxima(config("embedded"))
    elif kind == "older":
        proxy = proxima(pool(memcached().address))
    else:
        second = cleanup.enter_context(differ.Server(request.getfixturevalue("newer")))
        proxy = proxima(pool(f"unix:{second.path}"))
    with Raw(proxy.address) as bystander:
        bystander.set("bystander", "own")
        for line, _, _ in records():
            if line.split()[:1] == [b"flush_all"]:
                continue
            with Raw(proxy.address) as client:
                client.send(line + differ.TAIL)
                bystander.send(b"get bystander\r\n")
                assert bystander.until(b"END\r\n") == b"VALUE bystander 0 3\r\nown\r\nEND\r\n", line
        assert proxy.is_live()


def test_a_value_behind_an_odd_flag_is_not_executed_as_a_command(newer, proxima):
    """Such a value was once executed on the shared connection, and its replies went to the next client."""
    with differ.Server(newer) as server:
        proxy = proxima(pool(f"unix:{server.path}"))
        with Raw(proxy.address) as owner, Raw(proxy.address) as attacker:
            owner.set("secret", "s3cret")
            owner.set("own", "mine")
            for flag in differ.ODD_FLAGS:
                attacker.send(b"ms x 10 " + flag + b"\r\nget secret\r\n")
                assert owner.ask(b"get own\r\n") == b"VALUE own 0 4\r\nmine\r\nEND\r\n", flag


@pytest.mark.parametrize(
    ("version", "words"),
    [(OLD, b"memcached 1.5.22"), (b"ERROR\r\n", b"it does not say its version (`ERROR`)")],
)
def test_an_old_server_gets_text_commands_only(scripted, proxima, version, words):
    heard = []

    def talk(sock):
        while data := sock.recv(65536):
            heard.append(data)
            sock.sendall(b"END\r\n" * data.count(b"get ") + b"STORED\r\n" * data.count(b"set "))

    server = scripted(talk, version=version)
    proxy = proxima(pool(server.address))
    with Raw(proxy.address) as client:
        for _ in range(2):
            client.send(b"ms k 9\r\nflush_all\r\nget k\r\nmg k v\r\nset k 0 0 1\r\nx\r\nmd k\r\nma k\r\n")
            error = b"SERVER_ERROR %b: %b: meta commands need 1.6.10 or later\r\n" % (
                server.address.encode(),
                words,
            )
            assert [client.line() for _ in range(6)] == [
                error,
                b"END\r\n",
                error,
                b"STORED\r\n",
                error,
                error,
            ]
    said = b"".join(heard)
    assert said.replace(b"get k\r\n", b"").replace(b"set k 0 0 1\r\nx\r\n", b"") == b"", said


def test_an_old_server_is_never_a_current_copy(memcached, scripted, proxima):
    good = memcached()
    writes = []

    def talk(sock):
        while data := sock.recv(65536):
            if data.startswith(b"stats"):
                sock.sendall(
                    b"STAT pid 1\r\nSTAT uptime 100\r\nSTAT total_items 0\r\nSTAT version 1.5.22\r\nEND\r\n"
                )
            elif data.startswith(b"version"):
                sock.sendall(OLD)
            else:
                writes.append(data)
                sock.sendall(b"STORED\r\n")

    old = scripted(talk, version=OLD)
    servers = [good.address, old.address]
    proxy = proxima(config("p", {"p": {"servers": servers, "replicated": {"min_acks": 1}}}))

    def row():
        return proxy.member(old.address)["copy"]

    until(lambda: "1.5.22" in row().get("why", ""), "the reason is told")
    with Raw(proxy.address) as client:
        client.set("k", "v")
        assert client.get("k") == b"v"
        assert client.ask(b"mg k v\r\n") == b"VA 1\r\nv\r\n"
    assert row()["state"] != "current"
    assert not writes


@pytest.mark.parametrize(
    "first",
    [b"\x80\x0a\0\0\0\0\0\0", b"\x16\x03\x01\x02\0", b"GET / HTTP/1.1\r\nHost: x\r\n\r\nflush_all\r\n"],
)
@pytest.mark.parametrize("kind", ["proxied", "embedded"])
def test_a_client_of_another_protocol_is_closed_at_once(memcached, proxima, first, kind):
    server = memcached()
    proxy = proxima(pool(server.address) if kind == "proxied" else config("embedded"))
    with Raw(proxy.address) as owner:
        owner.set("k", "v")
        with Raw(proxy.address) as stranger:
            stranger.send(first)
            assert stranger.rest() == b""
        assert owner.get("k") == b"v"
    assert proxy.metric("requests_refused_total") == 1
    assert proxy.log().count("closed a client") == 1


def test_a_server_that_answers_version_with_garbage_fails(scripted, proxima):
    server = scripted(answering(b"\0\1\2\r\n"), version=None)
    proxy = proxima(pool(server.address))
    with Raw(proxy.address) as client:
        assert client.ask(b"get k\r\n").startswith(b"SERVER_ERROR ")
