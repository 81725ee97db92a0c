"""What clients of mcrouter's door are answered: its texts for errors that it makes, and servers' errors byte
for byte."""

import json
import socket

import pytest

from harness import PATIENCE, until
from harness.mcrouter import REQUESTS, Router
from harness.raw import Closed

pytestmark = pytest.mark.either_io

LONG = b"k" * 10_000
"""A key that is far too long."""

MALFORMED = b"CLIENT_ERROR malformed request\r\n"


@pytest.fixture
def router(cleanup, io, tmp_path):
    """Starts mcrouter's door before a pool of these servers. Deletes that fail are answered as they are."""

    def start(*servers, arguments=(), route="PoolRoute|A"):
        pools = {"A": {"servers": [server.address for server in servers]}}
        text = json.dumps({"pools": pools, "route": route})
        started = Router(text, tmp_path, io, "--asynclog-disable", *arguments)
        cleanup.callback(started.stop)
        return started

    return start


def swallowing(sock):
    """A server that reads everything and answers nothing."""
    while sock.recv(65536):
        pass


def hanging_up(sock):
    """A server that closes the connection at the first request."""
    sock.recv(65536)


def test_plain_commands_and_expiry_times_reach_the_server_untouched(memcached, router):
    server = memcached()
    with router(server).raw() as client:
        for ttl in (0, 100, -1, 1, 2_000_000_000):
            assert client.ask(b"set k 5 %d 1\r\nx\r\n" % ttl) == b"STORED\r\n"
            assert client.ask(b"get k\r\n") == (b"END\r\n" if ttl < 0 else b"VALUE k 5 1\r\nx\r\nEND\r\n")
        assert client.ask(b"append k 0 0 1\r\ny\r\n") == b"STORED\r\n"
        assert client.ask(b"prepend k 0 0 1\r\nw\r\n") == b"STORED\r\n"
        token = client.ask(b"gets k\r\n").split()[4]
        assert client.ask(b"cas k 0 0 1 %b\r\nz\r\n" % token) == b"STORED\r\n"
        assert client.ask(b"cas k 0 0 1 %b\r\nz\r\n" % token) == b"EXISTS\r\n"
        assert client.ask(b"gat 100 k\r\n") == b"VALUE k 0 1\r\nz\r\nEND\r\n"
        assert client.ask(b"gats 100 k\r\n").startswith(b"VALUE k 0 1 ")
        assert client.ask(b"touch k -1\r\n") == b"TOUCHED\r\n"
        assert client.ask(b"touch k 0\r\n") == b"NOT_FOUND\r\n"
        # Blanks between the words and before the end, and a bare line feed.
        assert client.ask(b"set  k  0  0  1 \nx\r\n") == b"STORED\r\n"
        assert client.ask(b"get  k \n") == b"VALUE k 0 1\r\nx\r\nEND\r\n"


@pytest.mark.parametrize("request_line", REQUESTS.values(), ids=REQUESTS.keys())
def test_a_late_reply_and_a_lost_connection_have_mcrouters_words(scripted, router, request_line):
    late = router(scripted(swallowing), arguments=("--server-timeout=100", "--timeouts-until-tko=1"))
    with late.raw() as client:
        assert client.ask(request_line) == b"SERVER_ERROR Reply timeout\r\n"
        # One time-out is enough here. From now on the server is left out.
        assert client.ask(request_line).startswith(b"SERVER_ERROR Server unavailable. Reason: ")
    lost = router(scripted(hanging_up), arguments=("--disable-tko-tracking",))
    with lost.raw() as client:
        assert client.ask(request_line).startswith(b"SERVER_ERROR AsyncSocketException")


def test_a_dead_server_has_mcrouters_words(memcached, router):
    server = memcached()
    started = router(server)
    server.kill()
    with started.raw() as client:
        assert client.ask(b"incr k 1\r\n").startswith(b"SERVER_ERROR AsyncSocketException")
        assert client.ask(b"incr k 1\r\n").startswith(b"SERVER_ERROR Server unavailable. Reason: ")


ERRORS = {
    "server error": b"SERVER_ERROR out of memory storing object\r\n",
    "client error": b"CLIENT_ERROR cannot increment or decrement non-numeric value\r\n",
    "a text that is not UTF-8": b"SERVER_ERROR \xff\xfe caf\xe9\r\n",
    "an empty text": b"SERVER_ERROR \r\n",
}


@pytest.mark.parametrize("error", ERRORS.values(), ids=ERRORS.keys())
def test_errors_of_servers_are_relayed_byte_for_byte(scripted, router, error):
    def talk(sock):
        while sock.recv(65536):
            sock.sendall(error)

    with router(scripted(talk)).raw() as client:
        answers = {name: client.ask(request) for name, request in REQUESTS.items()}
        assert answers == dict.fromkeys(REQUESTS, error)
        assert client.ask(b"get a b\r\n") == error


def test_an_error_to_the_line_of_a_large_set_is_relayed_at_once(scripted, router):
    error = b"SERVER_ERROR object too large for cache\r\n"

    def talk(sock):
        sock.recv(65536, socket.MSG_PEEK)
        sock.sendall(error)
        swallowing(sock)

    size = 4 << 20
    with router(scripted(talk)).raw() as client:
        client.send(b"set k 0 0 %d\r\n" % size + b"x" * 100_000)
        assert client.line() == error
        # The rest of the value is accepted still.
        client.send(b"x" * (size - 100_000) + b"\r\n")
        client.send(b"version\r\n")
        assert client.line() == b"VERSION 1.0.0 mcrouter\r\n"


BAD_KEYS = {
    "get": (b"get %b\r\n", b""),
    "gets": (b"gets %b\r\n", b""),
    "gat": (b"gat 0 %b\r\n", b""),
    "set": (b"set %b 0 0 5\r\n", b"get k\r\n"),
    "append": (b"append %b 0 0 11\r\n", b"flush_all\r\n\r\n"),
    "prepend": (b"prepend %b 0 0 1\r\n", b"x\r\n"),
    "cas": (b"cas %b 0 0 1 5\r\n", b"x\r\n"),
    "delete": (b"delete %b\r\n", b""),
    "incr": (b"incr %b 1\r\n", b""),
    "touch": (b"touch %b 0\r\n", b""),
}


@pytest.mark.parametrize("line, value", BAD_KEYS.values(), ids=BAD_KEYS.keys())
@pytest.mark.parametrize("length", [251, 2_500, 10_000])
def test_a_key_that_is_too_long_is_refused_and_its_value_swallowed(memcached, router, line, value, length):
    with router(memcached()).raw() as client:
        client.set("k", "v")
        assert client.ask(line % LONG[:length] + value) == b"CLIENT_ERROR bad key\r\n"
        assert client.get("k") == b"v", "the connection is usable"


def test_keys_are_as_long_as_250_bytes_with_their_prefix(memcached, router):
    with router(memcached()).raw() as client:
        client.set(LONG[:250], "v")
        assert client.ask(b"get /a/b/%b\r\n" % LONG[:246]) == b"CLIENT_ERROR bad key\r\n"


BROKEN = {
    "a get without a key": b"get\r\n",
    "a get with a blank": b"get \r\n",
    "an unknown command": b"nonsense\r\n",
    "another case": b"GET k\r\n",
    "a set without its length": b"set k 0 0\r\n",
    "negative flags": b"set k -1 0 1\r\nx\r\n",
    "a value that is longer than it says": b"set k 0 0 1\r\nxyz\r\n",
    "a delta that is no number": b"incr k x\r\n",
}


@pytest.mark.parametrize("request_line", BROKEN.values(), ids=BROKEN.keys())
def test_what_cannot_be_parsed_is_answered_behind_earlier_replies_and_closes(memcached, router, request_line):
    started = router(memcached())
    with started.raw() as client:
        client.set("k", "v")
        client.send(b"get k\r\n" + request_line)
        assert client.rest() == b"VALUE k 0 1\r\nv\r\nEND\r\n" + MALFORMED
    with started.raw() as client:
        assert client.get("k") == b"v", "the process is alive"


def test_an_empty_pool_and_an_unknown_prefix_are_errors(router):
    with router().raw() as client:
        assert client.ask(b"get k\r\n") == b"SERVER_ERROR HashRoute with empty children, name: A\r\n"
        assert client.ask(b"get /a/b/k\r\n") == b"SERVER_ERROR RootRoute: No rh found\r\n"
        assert client.ask(b"set /a/b/k 0 0 1\r\nx\r\n") == b"SERVER_ERROR RootRoute: No rh found\r\n"


def test_keys_with_an_unknown_prefix_may_take_the_default_route_without_it(memcached, router):
    server = memcached()
    with router(server, arguments=("--send-invalid-route-to-default",)).raw() as client:
        for prefix in (b"/a/b/", b"/*/x/", b"/*/*/"):
            assert client.ask(b"set %bk 0 0 1\r\nx\r\n" % prefix) == b"STORED\r\n"
            assert client.ask(b"append %bk 0 0 1\r\ny\r\n" % prefix) == b"STORED\r\n"
            assert client.ask(b"prepend %bk 0 0 1\r\nw\r\n" % prefix) == b"STORED\r\n"
            assert client.ask(b"get %bk\r\n" % prefix) == b"VALUE %bk 0 3\r\nwxy\r\nEND\r\n" % prefix
            assert server.get("k") == b"wxy"
            assert client.ask(b"delete %bk\r\n" % prefix) == b"DELETED\r\n"


def test_the_delay_of_flush_all_reaches_the_servers(memcached, router):
    servers = memcached.several(2)
    with router(*servers, arguments=("--enable-flush-cmd",)).raw() as client:
        client.set("k", "v")
        assert client.ask(b"flush_all 100\r\n") == b"OK\r\n"
        assert client.get("k") == b"v"
        assert client.ask(b"flush_all\r\n") == b"OK\r\n"
        assert client.get("k") is None
    assert [server.stat("cmd_flush") for server in servers] == [2, 2]


@pytest.mark.parametrize("command", [b"shutdown\r\n", b"shutdown 1\r\n"])
def test_shutdown_ends_the_process_without_a_reply(memcached, router, command):
    started = router(memcached())
    with started.raw() as client, started.raw() as idle:
        client.send(command)
        assert client.rest() == b""
        with pytest.raises(Closed):
            idle.line()
    until(lambda: started.process.poll() is not None, "the process has ended")
    assert started.process.wait(PATIENCE) == 0
