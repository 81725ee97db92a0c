"""Options of mcrouter's door that change what clients get, or what is logged."""

import threading
import time

import pytest

from harness import until
from harness.leasing import Leasing
from harness.mcrouter import of_pool, stats

pytestmark = pytest.mark.either_io

DEFAULT_REPLIES = {
    b"set k 0 0 1\r\ny\r\n": b"NOT_STORED\r\n",
    b"add n 0 0 1\r\ny\r\n": b"NOT_STORED\r\n",
    b"replace k 0 0 1\r\ny\r\n": b"NOT_STORED\r\n",
    b"append k 0 0 1\r\ny\r\n": b"NOT_STORED\r\n",
    b"prepend k 0 0 1\r\ny\r\n": b"NOT_STORED\r\n",
    b"cas k 0 0 1 1\r\ny\r\n": b"NOT_STORED\r\n",
    b"delete k\r\n": b"NOT_FOUND\r\n",
    b"incr k 1\r\n": b"NOT_FOUND\r\n",
    b"decr k 1\r\n": b"NOT_FOUND\r\n",
    b"touch k 10\r\n": b"NOT_FOUND\r\n",
}


def test_only_reads_are_sent_where_only_gets_are_allunanswered(memcached, router):
    server = memcached()
    server.set("k", "5")
    with router(of_pool(server.address), "--allow-only-gets").raw() as client:
        for request, reply in DEFAULT_REPLIES.items():
            assert client.ask(request) == reply, request
        assert server.get("k") == b"5" and server.get("n") is None
        for request in (b"get k\r\n", b"gat 100 k\r\n"):
            client.send(request)
            assert client.exactly(21) == b"VALUE k 0 1\r\n5\r\nEND\r\n", request
        for request in (b"gets k\r\n", b"gats 100 k\r\n"):
            client.send(request)
            assert client.line().startswith(b"VALUE k 0 1 "), request
            assert client.exactly(8) == b"5\r\nEND\r\n", request


def test_leases_are_asked_for_and_metadata_read_where_only_gets_are_allunanswered(cleanup, router):
    server = Leasing()
    cleanup.callback(server.stop)
    with router(of_pool(server.address), "--allow-only-gets").raw() as client:
        client.send(b"lease-get k\r\n")
        word, _, token, *_ = client.line().split()
        assert word == b"LVALUE"
        assert client.exactly(7) == b"\r\nEND\r\n"
        assert client.ask(b"lease-set k %b 0 0 1\r\nx\r\n" % token) == b"NOT_STORED\r\n"
        assert client.ask(b"metaget k\r\n") == b"END\r\n"
        assert client.ask(b"get k\r\n") == b"END\r\n"
        counts = stats(client, "count")
        names = ("lease_get", "lease_set", "metaget", "get")
        assert [counts[f"cmd_{name}_count"] for name in names] == ["1"] * 4
        assert counts["request_sent_count"] == "3"


def test_requests_are_logged_with_their_clients_by_each_router(memcached, router):
    options = ("--enable-logging-route", "--retain-source-ip")
    back = router(of_pool(memcached().address), *options)
    front = router(of_pool(back.address), *options)
    with front.raw() as client:
        client.set("k", "v")
        assert client.get("k") == b"v"
        assert client.get("none") is None

    def lines(proxy):
        return [line for line in proxy.log().splitlines() if " request " in line]

    for proxy in (front, back):
        until(lambda which=proxy: len(lines(which)) == 3, "each request is logged")
        expected = ['command="set" key=k outcome=Stored', 'command="get" key=k outcome=Found']
        expected.append('command="get" key=none outcome=NotFound')
        for line, end in zip(lines(proxy), expected, strict=True):
            assert line.endswith(f"{end} client=127.0.0.1"), line
        assert "has no effect" not in proxy.log()


def test_dev_null_counts_what_it_takes(memcached, router):
    server = memcached()
    config = of_pool(server.address, route="PoolRoute|A")
    config["route"] = {
        "type": "OperationSelectorRoute",
        "default_policy": "PoolRoute|A",
        "operation_policies": {"set": "DevNullRoute", "delete": "DevNullRoute", "add": "NullRoute"},
    }
    with router(config).raw() as client:
        assert stats(client, "count")["dev_null_requests"] == "0"
        for _ in range(3):
            assert client.ask(b"set k 0 0 1\r\nx\r\n") == b"NOT_STORED\r\n"
            assert client.ask(b"delete k\r\n") == b"NOT_FOUND\r\n"
            assert client.ask(b"add k 0 0 1\r\nx\r\n") == b"NOT_STORED\r\n"
            assert client.ask(b"get k\r\n") == b"END\r\n"
        counts = stats(client, "count")
        assert (counts["dev_null_requests"], counts["request_sent_count"]) == ("6", "3")
        assert stats(client, "detailed")["dev_null_requests"] == "6"


class Counting:
    """A server that answers nothing before it may. It knows how many requests it had to answer at once."""

    def __init__(self, start):
        self.unanswered, self.most, self.may = 0, 0, threading.Event()
        self.address = start(self._talk).address

    def _talk(self, sock):
        sock.settimeout(0.01)
        while True:
            try:
                data = sock.recv(65536)
            except TimeoutError:
                data = None
            if data == b"":
                return
            self.unanswered += data.count(b"\n") if data else 0
            self.most = max(self.most, self.unanswered)
            if self.may.is_set() and self.unanswered:
                sock.sendall(b"END\r\n" * self.unanswered)
                self.unanswered = 0


@pytest.mark.parametrize(
    "option, each, together",
    [
        ("--target-max-inflight-requests=2", 2, 4),
        ("--proxy-max-inflight-requests=3", 3, 3),
        ("--target-max-inflight-requests=0", 160, 160),
    ],
)
def test_requests_over_a_limit_wait(scripted, router, option, each, together):
    servers = [Counting(scripted), Counting(scripted)]
    addresses = [server.address for server in servers]
    # Two handles lead to the same servers, which have one limit each.
    route = {
        "type": "OperationSelectorRoute",
        "default_policy": "PoolRoute|A",
        "operation_policies": {"gets": "HashRoute|Pool|A"},
    }
    options = (option, "--server-timeout=30000")
    proxy = router({"pools": {"A": {"servers": addresses}}, "route": route}, *options)
    clients = [proxy.raw() for _ in range(4)]
    for word, client in zip([b"get", b"get", b"gets", b"gets"], clients, strict=True):
        client.send(b"".join(b"%b k%d\r\n" % (word, number) for number in range(40)))
    until(lambda: sum(server.unanswered for server in servers) >= together, "the limit is reached")
    time.sleep(0.3)
    assert sum(server.unanswered for server in servers) == together
    for server in servers:
        server.may.set()
    for client in clients:
        assert client.exactly(5 * 40) == b"END\r\n" * 40
        client.close()
    assert all(server.most <= each for server in servers)


@pytest.mark.parametrize(
    "options, answer",
    [
        (
            ("--proxy-max-inflight-requests=1", "--proxy-max-throttled-requests=2"),
            b"SERVER_ERROR 307 busy\r\n",
        ),
        (
            ("--target-max-inflight-requests=1", "--target-max-pending-requests=2"),
            b"SERVER_ERROR local error\r\n",
        ),
    ],
    ids=["proxy", "target"],
)
def test_requests_for_which_there_is_no_place_to_wait_are_refused(scripted, router, options, answer):
    server = Counting(scripted)
    proxy = router(of_pool(server.address), *options, "--server-timeout=30000")
    with proxy.raw() as first, proxy.raw() as late:
        first.send(b"get k\r\n" * 3)
        # They have come in one piece: the other two wait when the first one is under way.
        until(lambda: server.unanswered == 1, "one is under way")
        assert late.ask(b"get k\r\n") == answer
        server.may.set()
        assert first.exactly(15) == b"END\r\n" * 3
        assert late.ask(b"get k\r\n") == b"END\r\n"
        assert server.most == 1
