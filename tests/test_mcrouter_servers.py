"""What servers behind mcrouter's door are sent: the requests of clients, and nothing before them. The version
is asked for only when a meta command comes, which mcrouter does not know."""

import socket
import threading

import pytest

pytestmark = pytest.mark.either_io

REQUESTS = {
    "get": b"get k\r\n",
    "set": b"set k 0 0 1\r\nx\r\n",
    "append": b"append k 0 0 1\r\nx\r\n",
    "delete": b"delete k\r\n",
    "incr": b"incr k 1\r\n",
    "touch": b"touch k 0\r\n",
}


HIT = [b"VALUE k 0 1\r\n", b"1\r\n", b"END\r\n"]


def once(answer, heard):
    """A server that reads once, answers once and hangs up."""

    def talk(sock):
        heard.append(sock.recv(1000))
        sock.sendall(answer)

    return talk


@pytest.mark.parametrize("request_line", REQUESTS.values(), ids=REQUESTS.keys())
def test_the_first_bytes_of_a_connection_are_a_request(scripted, routed, request_line):
    for error in (b"SERVER_ERROR x\r\n", b"CLIENT_ERROR y\r\n"):
        heard = []
        server = scripted(once(error, heard), version=None)
        with routed("PoolRoute|A", {"A": [server]}, "--asynclog-disable").raw() as client:
            client.send(request_line)
            assert client.line() == error
        assert heard == [request_line]


def test_a_server_that_reads_one_line_of_a_large_set_refuses_it(scripted, routed):
    error = b"SERVER_ERROR object too large for cache\r\n"
    line, value = b"set k 0 0 %d\r\n" % (4 << 20), b"x" * (4 << 20)

    def talk(sock):
        assert sock.recv(len(line), socket.MSG_WAITALL) == line
        sock.sendall(error)
        while sock.recv(65536):
            pass

    server = scripted(talk, version=None)
    with routed("PoolRoute|A", {"A": [server]}).raw() as client:
        client.send(line)
        assert client.line() == error
        client.send(value + b"\r\nversion\r\n")
        assert client.line() == b"VERSION 1.0.0 mcrouter\r\n"
    assert server.connections == 1


def speaking(version, heard, values=b"VALUE k 0 1\r\n1\r\nEND\r\n"):
    """A server that answers whole lines, and knows meta commands and leases if its version says so."""

    def talk(sock):
        lines = sock.makefile("rb")
        for line in lines:
            heard.append(line)
            word = line.split()[0]
            if word in (b"set", b"ms", b"lease-set"):
                heard.append(lines.readline())
            sock.sendall(
                {
                    b"version": version,
                    b"mg": b"HD\r\n",
                    b"ms": b"HD\r\n",
                    b"set": b"STORED\r\n",
                    b"lease-set": b"STORED\r\n",
                    b"get": values,
                    b"lease-get": values,
                }[word]
            )

    return talk


def test_the_version_is_asked_for_once_and_holds_what_comes_behind(scripted, routed):
    heard = []
    server = scripted(speaking(b"VERSION 1.6.18\r\n", heard), version=None)
    with routed("PoolRoute|A", {"A": [server]}).raw() as client:
        client.set("k", "1")
        client.send(b"get k\r\nmg k t\r\nget k\r\nms k 1\r\n2\r\nget k\r\n")
        expected = [*HIT, b"HD\r\n", *HIT, b"HD\r\n", *HIT]
        assert [client.line() for _ in expected] == expected
    stored, get = [b"set k 0 0 1\r\n", b"1\r\n"], b"get k\r\n"
    assert heard == [*stored, get, b"version\r\n", b"mg k t\r\n", get, b"ms k 1\r\n", b"2\r\n", get]


VERSIONS = {"old": b"VERSION 1.5.6\r\n", "unknown": b"ERROR\r\n", "empty": b"VERSION \r\n"}


@pytest.mark.parametrize("version", VERSIONS.values(), ids=VERSIONS.keys())
def test_a_server_that_is_too_old_is_given_no_meta_command(scripted, routed, version):
    heard = []
    server = scripted(speaking(version, heard), version=None)
    with routed("PoolRoute|A", {"A": [server]}).raw() as client:
        for is_first in (True, False):
            heard.clear()
            # The value looks like requests.
            client.send(b"get k\r\nms k 7\r\nset x 0\r\nget k\r\nmg k\r\nget k\r\n")
            for _ in range(2):
                assert [client.line() for _ in range(3)] == HIT
                assert client.line().endswith(b": meta commands need 1.6.10 or later\r\n")
            assert [client.line() for _ in range(3)] == HIT
            assert heard.count(b"version\r\n") == is_first
            assert [line for line in heard if line != b"version\r\n"] == [b"get k\r\n"] * 3
        client.set("k", "1")
    assert server.connections == 1


def test_a_large_meta_set_waits_for_the_version(memcached, scripted, routed):
    value = b"x" * 300_000
    request = b"ms k %d\r\n%b\r\n" % (len(value), value)
    with routed("PoolRoute|A", {"A": [memcached()]}).raw() as client:
        client.send(request)
        assert client.line() == b"HD\r\n"
        assert client.get("k") == value
    old = scripted(speaking(b"VERSION 1.5.6\r\n", []), version=None)
    with routed("PoolRoute|A", {"A": [old]}).raw() as client:
        client.send(request + b"get k\r\n")
        assert client.line().endswith(b": meta commands need 1.6.10 or later\r\n")
        assert [client.line() for _ in range(3)] == HIT


@pytest.mark.parametrize("first", ["lease", "meta"])
def test_leases_and_meta_commands_are_proved_one_behind_the_other(scripted, routed, first):
    heard = []
    server = scripted(speaking(b"VERSION 1.6.18\r\n", heard), version=None)
    lease, meta = b"lease-set k 7 0 0 1\r\n1\r\n", b"mg k\r\n"
    requests = [lease, meta] if first == "lease" else [meta, lease]
    answers = [b"STORED\r\n", b"HD\r\n"] if first == "lease" else [b"HD\r\n", b"STORED\r\n"]
    with routed("PoolRoute|A", {"A": [server]}).raw() as client:
        client.send(b"".join(requests) + b"get k\r\n")
        expected = [*answers, *HIT]
        assert [client.line() for _ in expected] == expected
        client.send(b"".join(requests))
        assert [client.line() for _ in answers] == answers
    assert heard.count(b"version\r\n") == heard.count(b"lease-get proxima:leases\r\n") == 1


def test_many_clients_get_their_own_answers_while_versions_are_asked_for(memcached, routed):
    server = memcached()
    router = routed("PoolRoute|A", {"A": [server]}, "--num-proxies=2")
    wrong = []

    def play(name):
        with router.raw() as client:
            for number in range(200):
                key = b"k%d-%d" % (name, number)
                client.send(b"set %b 0 0 1\r\n%d\r\nmg %b v\r\nget %b\r\n" % (key, number % 10, key, key))
                digit = b"%d\r\n" % (number % 10)
                expected = [b"STORED\r\n", b"VA 1\r\n", digit, b"VALUE %b 0 1\r\n" % key, digit, b"END\r\n"]
                found = [client.line() for _ in expected]
                if found != expected:
                    wrong.append((key, found))

    threads = [threading.Thread(target=play, args=(name,)) for name in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
