"""What mcrouter's door answers when a server fails, while the asynchronous log is on: an error, but to a
delete. `test_mcrouter_replies.py` has the words of each error with the log switched off."""

import pytest

from harness import until
from harness.servers import answering

pytestmark = pytest.mark.either_io

NOT_FOUND = b"NOT_FOUND\r\n"

CHANGES = {
    "set": b"set k 0 0 1\r\nx\r\n",
    "append": b"append k 0 0 1\r\nx\r\n",
    "prepend": b"prepend k 0 0 1\r\nx\r\n",
    "touch": b"touch k 0\r\n",
    "incr": b"incr k 1\r\n",
    "decr": b"decr k 1\r\n",
}


def swallowing(sock):
    """A server that reads everything and answers nothing."""
    while sock.recv(65536):
        pass


def hanging_up(sock):
    """A server that closes the connection at the first request."""
    sock.recv(65536)


@pytest.mark.parametrize(
    "error",
    [
        b"SERVER_ERROR out of memory\r\n",
        b"SERVER_ERROR 307 busy\r\n",
        b"SERVER_ERROR 301 shutdown\r\n",
        b"SERVER_ERROR 302 try again\r\n",
        b"SERVER_ERROR \xff\r\n",
    ],
)
def test_a_delete_that_a_server_refused_is_kept_and_other_errors_are_relayed(scripted, routed, error):
    options = ("--disable-tko-tracking",)
    with routed("PoolRoute|A", {"A": [scripted(answering(error))]}, *options).raw() as client:
        for name, request in CHANGES.items():
            assert client.ask(request) == error, name
        assert client.ask(b"get k\r\n") == client.ask(b"gat 0 k\r\n") == error
        assert client.ask(b"delete k\r\n") == NOT_FOUND
    options += ("--asynclog-disable",)
    with routed("PoolRoute|A", {"A": [scripted(answering(error))]}, *options).raw() as client:
        assert client.ask(b"delete k\r\n") == error


def test_a_delete_that_is_wrong_is_answered_as_the_server_does(scripted, routed):
    error = b"CLIENT_ERROR bad command line format\r\n"
    with routed("PoolRoute|A", {"A": [scripted(answering(error))]}).raw() as client:
        for request in (*CHANGES.values(), b"delete k\r\n", b"get k\r\n"):
            assert client.ask(request) == error


def test_a_delete_without_an_answer_is_kept(scripted, routed):
    late = routed("PoolRoute|A", {"A": [scripted(swallowing)]}, "--server-timeout=100")
    with late.raw() as client:
        assert client.ask(b"delete k\r\n") == NOT_FOUND
        assert client.ask(b"set k 0 0 1\r\nx\r\n") == b"SERVER_ERROR Reply timeout\r\n"
    lost = routed("PoolRoute|A", {"A": [scripted(hanging_up)]})
    with lost.raw() as client:
        assert client.ask(b"delete k\r\n") == NOT_FOUND


BROKEN = (b"connection error", b"remote error", b"Failed to read", b"AsyncSocketException")
"""How the text of a lost connection may begin."""


@pytest.mark.parametrize("name", [*CHANGES, "get"])
def test_a_lost_connection_and_a_server_left_out_have_their_words(scripted, routed, name):
    request = CHANGES.get(name, b"get k\r\n")
    options = ("--timeouts-until-tko=1", "--probe-timeout-initial=60000")
    with routed("PoolRoute|A", {"A": [scripted(hanging_up)]}, *options).raw() as client:
        answer = client.ask(request)
        assert answer.startswith(tuple(b"SERVER_ERROR " + text for text in BROKEN)), answer
        # A server that breaks a connection is left out at once.
        assert client.ask(request).startswith(b"SERVER_ERROR Server unavailable. Reason: ")
        assert client.ask(b"delete k\r\n") == NOT_FOUND
    options += ("--server-timeout=100",)
    with routed("PoolRoute|A", {"A": [scripted(swallowing)]}, *options).raw() as client:
        assert client.ask(request) == b"SERVER_ERROR Reply timeout\r\n"
        assert client.ask(request).startswith(b"SERVER_ERROR Server unavailable. Reason: ")
        assert client.ask(b"delete k\r\n") == NOT_FOUND


def test_answers_that_are_none_break_the_connection(scripted, routed):
    for answer in (b"nonsense\r\n", b"VALUE\r\n", b"STORED", b"\r\n"):

        def talk(sock, answer=answer):
            sock.recv(65536)
            sock.sendall(answer)

        with routed("PoolRoute|A", {"A": [scripted(talk)]}).raw() as client:
            assert client.ask(b"set k 0 0 1\r\nx\r\n").startswith(b"SERVER_ERROR AsyncSocketException"), (
                answer
            )


def test_sums_that_fail_answer_with_the_error(memcached, scripted, routed):
    server = memcached()
    with routed("PoolRoute|A", {"A": [server]}).raw() as client:
        client.set("k", "text")
        refused = b"CLIENT_ERROR cannot increment or decrement non-numeric value\r\n"
        for request in (CHANGES["incr"], CHANGES["decr"]):
            assert client.ask(request) == refused
        assert client.get("k") == b"text", "the connection to the server is usable"
        server.kill()
        for request in (CHANGES["incr"], CHANGES["decr"], CHANGES["touch"]):
            assert client.ask(request).startswith(b"SERVER_ERROR ")


def test_a_value_in_parts_is_not_answered_before_its_error(scripted, routed):
    """A reply of several keys ends at its first error; the hits before it stay."""

    def talk(sock):
        while asked := sock.recv(65536):
            for key in asked.split()[1:]:
                bad = key.startswith(b"b")
                sock.sendall(b"SERVER_ERROR no\r\n" if bad else b"VALUE %b 0 1\r\n1\r\nEND\r\n" % key)

    # Each server gets one of the keys.
    route = {"type": "PrefixSelectorRoute", "policies": {"b": "PoolRoute|B"}, "wildcard": "PoolRoute|A"}
    with routed(route, {"A": [scripted(talk)], "B": [scripted(talk)]}).raw() as client:
        assert client.ask(b"get a b\r\n") == b"VALUE a 0 1\r\n1\r\nSERVER_ERROR no\r\n"
        assert client.ask(b"get b a\r\n") == b"SERVER_ERROR no\r\n"
        assert client.ask(b"get a\r\n") == b"VALUE a 0 1\r\n1\r\nEND\r\n"


def test_requests_behind_a_failed_one_are_answered_in_order(memcached, routed):
    live, dead = memcached.several(2)
    dead.kill()
    route = {"type": "PrefixSelectorRoute", "policies": {"b": "PoolRoute|B"}, "wildcard": "PoolRoute|A"}
    with routed(route, {"A": [live], "B": [dead]}).raw() as client:
        asked = b"set a 0 0 1\r\n1\r\ndelete b\r\nget a\r\nset %b 0 0 1\r\n2\r\nget a\r\n" % (b"k" * 10_000)
        hit = b"VALUE a 0 1\r\n1\r\nEND\r\n"
        assert client.ask(asked) == b"STORED\r\n" + NOT_FOUND + hit + b"CLIENT_ERROR bad key\r\n" + hit


@pytest.mark.parametrize(
    "item, answer", [("1m", b"SERVER_ERROR object too large for cache"), ("4m", b"STORED")]
)
def test_the_server_decides_about_a_large_value_and_the_connection_stays(memcached, routed, item, answer):
    server = memcached(item=item)
    large = b"x" * ((2 << 20) + 1)
    with routed("PoolRoute|A", {"A": [server]}).raw() as client:
        client.send(b"set k 0 0 %d\r\n%b\r\nget l\r\n" % (len(large), large))
        assert [client.line() for _ in range(2)] == [answer + b"\r\n", b"END\r\n"]
        client.set("l", "1")
        assert client.get("l") == b"1"


HUGE = b"9" * 30
KEPT = {
    # What mcrouter reads and memcached refuses, and the answer.
    b"set k 0 %b 1\r\nx\r\n" % HUGE: b"CLIENT_ERROR bad command line format\r\n",
    b"set k %b 0 1\r\nx\r\n" % HUGE: b"CLIENT_ERROR bad command line format\r\n",
    b"cas k 0 0 1 %b\r\nx\r\n" % HUGE: b"CLIENT_ERROR bad command line format\r\n",
    b"set k 0 %b 1 noreply\r\nx\r\n" % HUGE: b"",
    b"incr k %b\r\n" % HUGE: b"CLIENT_ERROR invalid numeric delta argument\r\n",
    b"touch k 4294967296\r\n": b"CLIENT_ERROR invalid exptime argument\r\n",
    b"gat %b k\r\n" % HUGE: b"CLIENT_ERROR invalid exptime argument\r\n",
    b"delete k 5 noreply\r\n": b"",
    b"delete k -5 noreply\r\n": b"",
    b"delete k 5\r\n": b"CLIENT_ERROR bad command line format.  Usage: delete <key> [noreply]\r\n",
    b"flush_regex .*\r\n": b"SERVER_ERROR Command disabled\r\n",
    b"exec anything\r\n": b"SERVER_ERROR Command disabled\r\n",
}


def test_what_mcrouter_reads_never_closes_a_client(memcached, routed):
    with routed("PoolRoute|A", {"A": [memcached()]}).raw() as client:
        for request, answer in KEPT.items():
            assert client.ask(request + b"get none\r\n") == answer + b"END\r\n", request


EMPTY = {
    "by an empty list": ({"servers": []}, True),
    "as an error": ({"servers": [], "error_on_empty": True}, True),
    "as a miss": ({"servers": [], "error_on_empty": False}, False),
}


@pytest.mark.parametrize("pool, is_error", EMPTY.values(), ids=EMPTY.keys())
@pytest.mark.parametrize("hash", [None, "WeightedCh3", "Crc32"])
def test_an_empty_pool_is_an_error_or_a_miss(routed, pool, is_error, hash):
    route = {"type": "PoolRoute", "pool": "A", **({"hash": hash} if hash else {})}
    with routed(route, {"A": pool}, "--asynclog-disable").raw() as client:
        error = b"SERVER_ERROR HashRoute with empty children, name: A\r\n"
        assert client.ask(b"get k\r\n") == (error if is_error else b"END\r\n")
        assert client.ask(CHANGES["set"]) == (error if is_error else b"NOT_STORED\r\n")
        assert client.ask(b"delete k\r\n") == (error if is_error else NOT_FOUND)


def test_a_server_that_is_back_is_found_by_a_probe(memcached, routed):
    server = memcached()
    options = ("--timeouts-until-tko=1", "--probe-timeout-initial=100")
    with routed("PoolRoute|A", {"A": [server]}, *options).raw() as client:
        client.set("k", "1")
        server.kill()
        until(
            lambda: client.ask(b"get k\r\n").startswith(b"SERVER_ERROR Server unavailable"), "it is left out"
        )
        server.start()
        until(lambda: client.ask(b"get k\r\n") == b"END\r\n", "it is back")
