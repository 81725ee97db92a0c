"""Replies reach their clients whole, once and in order, in any pieces and however slowly they are read."""

import random
import signal
import socket
import threading
import time

import pytest

from harness import freeze, until
from harness.proxy import config
from harness.raw import Raw

# No client is closed for taking nothing, so what a test waits for must come by itself.
PATIENT = {"write_timeout": "10m"}


def value_of(key):
    """The value of a key that ends with `-length`. No part of it occurs in another key's value or elsewhere
    in it."""
    length = int(key.rsplit(b"-", 1)[1])
    return b"".join(b"%b@%d|" % (key, at) for at in range(0, length, 16))[:length]


def reply_of(key):
    value = value_of(key)
    return b"VALUE %b 0 %d\r\n%b\r\nEND\r\n" % (key, len(value), value)


def requests(sock):
    """The requested keys, as lists of those that came together."""
    pending = b""
    while data := sock.recv(65536):
        pending += data
        lines = pending.split(b"\r\n")
        pending = lines.pop()
        yield [line.split()[1] for line in lines]


def in_pieces(sizes):
    """A `talk` for `Scripted` that answers in pieces of these sizes, over and over."""

    def talk(sock):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        at = 0
        for keys in requests(sock):
            replies = memoryview(b"".join(map(reply_of, keys)))
            while replies:
                size = sizes[at % len(sizes)]
                at += 1
                sock.sendall(replies[:size])
                replies = replies[size:]

    return talk


def behind(server, listen=None, **limits):
    """A configuration with one worker in front of this server."""
    pool = {"servers": [server.address], "timeout": "50s"}
    made = config("cache", {"cache": pool}, workers=1, limits={**PATIENT, **limits})
    if listen:
        made["listeners"][0]["address"] = listen
    return made


def narrow(proxy):
    """A client whose socket takes few bytes at a time."""
    host, port = proxy.address.rsplit(":", 1)
    client = Raw.__new__(Raw)
    client.sock, client.pending = socket.socket(), b""
    client.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
    client.sock.settimeout(60)
    client.sock.connect((host, int(port)))
    return client


SIZES = {
    "one byte": [1],
    "two": [2],
    "seven": [7],
    "odd": [1, 100, 3, 1500, 13, 5000, 2, 2, 65536],
    "random": [
        random.Random(7).choice([1, 5, 50, 511, 512, 513, 1460, 4096, 30_000, 65_536]) for _ in range(997)
    ],
    "whole": [1 << 20],
}


@pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES.keys())
def test_replies_that_come_in_pieces_are_passed_on_whole(scripted, proxima, sizes):
    proxy = proxima(behind(scripted(in_pieces(sizes))))
    small = sizes[0] < 10 and len(sizes) == 1
    lengths = [0, 1, 30, 1000, 3000] if small else [0, 1, 500, 1024, 40_000, 65_400, 65_536, 70_000, 204_800]
    with proxy.raw() as one, proxy.raw() as two:
        for round in range(6):
            for length in lengths:
                mine, other = b"a%d-%d" % (round, length), b"b%d-%d" % (round, length)
                one.send(b"get %b\r\n" % mine)
                two.send(b"get %b\r\nversion\r\nget %b\r\n" % (other, other))
                assert one.exactly(len(reply_of(mine))) == reply_of(mine)
                assert two.exactly(len(reply_of(other))) == reply_of(other)
                assert two.line().startswith(b"VERSION ")
                assert two.exactly(len(reply_of(other))) == reply_of(other)
        assert one.ask(b"") == two.ask(b"") == b""


def test_large_replies_reach_slow_clients_whole(scripted, proxima):
    """Some clients close their side before they have read anything."""
    proxy = proxima(behind(scripted(in_pieces(SIZES["random"]))))
    dice = random.Random(11)
    due = {}
    for number in range(16):
        client = narrow(proxy)
        keys = [b"n%d.%d-%d" % (number, at, dice.randrange(200 << 10)) for at in range(3)]
        due[client] = b"".join(map(reply_of, keys))
        for key in keys:
            client.send(b"get %b\r\n" % key)
        if number % 2:
            client.finish()
    got = {client: b"" for client in due}
    while due != got:
        for client in due:
            missing = len(due[client]) - len(got[client])
            if missing:
                got[client] += client.sock.recv(min(missing, dice.randrange(1, 30_000)))
                assert due[client].startswith(got[client])
    for number, client in enumerate(due):
        if number % 2:
            assert client.rest() == b""
        else:
            assert client.ask(b"") == b""
        client.close()
    until(lambda: proxy.metric("clients") == 0, "all have left")


def test_replies_of_proxy_and_server_keep_their_order_in_pipelines(scripted, proxima):
    proxy = proxima(behind(scripted(in_pieces(SIZES["odd"]))))
    dice = random.Random(13)
    with proxy.raw() as client:
        client.send(b"version\r\n")
        version = client.line()
        for round in range(30):
            asked, due = b"", b""
            for at in range(dice.randrange(1, 30)):
                key = b"p%d.%d-%d" % (round, at, dice.choice([0, 10, 1000, 60_000, 100_000]))
                here = dice.random() < 0.5
                asked += b"version\r\n" if here else b"get %b\r\n" % key
                due += version if here else reply_of(key)
            sender = threading.Thread(target=client.send, args=(asked,))
            sender.start()
            assert client.exactly(len(due)) == due
            sender.join()
        assert client.ask(b"") == b""


class Prompted:
    """A server for `Scripted` that holds every reply until the test sends it."""

    def __init__(self):
        self.asked = threading.Semaphore(0)
        self.replies = {}

    def talk(self, sock):
        for keys in requests(sock):
            for key in keys:
                self.replies[key] = sock
                self.asked.release()

    def wait(self, count):
        for _ in range(count):
            assert self.asked.acquire(timeout=50)

    def reply(self, key):
        self.replies.pop(key).sendall(reply_of(key))


@pytest.mark.parametrize("kind", ["tcp", "unix"])
@pytest.mark.parametrize("leave", ["close", "abort", "finish"])
def test_clients_that_leave_while_their_reply_comes_are_closed(scripted, proxima, tmp_path, kind, leave):
    prompted = Prompted()
    listen = f"unix:{tmp_path}/socket" if kind == "unix" else None
    proxy = proxima(behind(scripted(prompted.talk), listen))
    for round in range(5):
        keys = [b"k%d.%d-%d" % (round, number, length) for number, length in enumerate([1, 1000, 60_000])]
        clients = [proxy.raw() for _ in keys]
        for client, key in zip(clients, keys):
            client.send(b"get %b\r\n" % key)
            prompted.wait(1)
        freeze(proxy.process)
        for client, key in zip(clients, keys):
            prompted.reply(key)
            getattr(client, leave)()
        proxy.signal(signal.SIGCONT)
        if leave == "finish":
            for client, key in zip(clients, keys):
                assert client.rest() == reply_of(key)
        until(lambda: proxy.metric("clients") == 0, "all have left")
        for client in clients:
            client.close()


def test_a_half_closed_client_that_dies_with_bytes_due_is_closed(scripted, proxima):
    proxy = proxima(behind(scripted(in_pieces([1 << 20]))))
    key = b"k-60000"
    for asked in (1, 100):
        client = narrow(proxy)
        client.send(b"get %b\r\n" % key * asked)
        client.exactly(1)
        client.finish()
        with proxy.raw() as other:
            # One turn later the proxy has seen the end of the requests.
            assert other.ask(b"get b-10\r\n") == reply_of(b"b-10")
        client.abort()
        until(lambda: proxy.metric("clients") == 0, "it is closed")


def test_a_client_that_takes_its_replies_is_neither_slow_nor_idle(scripted, proxima):
    prompted = Prompted()
    proxy = proxima(behind(scripted(prompted.talk), write_timeout="500ms", idle="400ms"))
    with proxy.raw() as client:
        for round in range(4):
            key = b"k%d-1000" % round
            client.send(b"get %b\r\n" % key)
            prompted.wait(1)
            freeze(proxy.process)
            # The proxy checks clients once a second, here in the turn in which the reply comes.
            time.sleep(1.1)
            prompted.reply(key)
            proxy.signal(signal.SIGCONT)
            assert client.exactly(len(reply_of(key))) == reply_of(key)
    until(lambda: proxy.metric("clients") == 0, "it has left")
    assert (
        proxy.metric("clients_closed_total", reason="slow")
        == proxy.metric("clients_closed_total", reason="idle")
        == 0
    )


def test_a_reply_that_comes_before_its_request_is_not_forgotten(scripted, proxima):
    """One turn brings a reply, the client's next request, and the reply to it by a server that did not wait
    for it."""
    prompted = Prompted()
    pools = {
        name: {"servers": [scripted(prompted.talk).address], "timeout": "50s"} for name in ("one", "two")
    }
    route = {"by_prefix": {"prefixes": {"a": "one"}, "default": "two"}}
    proxy = proxima(config(route, pools, workers=1, limits=PATIENT))
    with proxy.raw() as client:
        for round in range(3):
            first, second, early = b"a%d-10" % round, b"b%d-10" % round, b"c%d-10" % round
            client.send(b"get %b\r\n" % second)
            prompted.wait(1)
            hasty = prompted.replies[second]
            prompted.reply(second)
            assert client.exactly(len(reply_of(second))) == reply_of(second)
            client.send(b"get %b\r\n" % first)
            prompted.wait(1)
            freeze(proxy.process)
            prompted.reply(first)
            client.send(b"get %b\r\n" % early)
            hasty.sendall(reply_of(early))
            proxy.signal(signal.SIGCONT)
            both = reply_of(first) + reply_of(early)
            assert client.exactly(len(both)) == both
            prompted.wait(1)


def test_a_client_that_ends_in_mid_value_while_waiting_for_a_place_is_closed(scripted, proxima):
    def talk(sock):
        while sock.recv(65536):
            pass

    proxy = proxima(behind(scripted(talk)))
    uploads = [proxy.raw() for _ in range(3)]
    for upload in uploads:
        upload.send(b"set k 0 0 100000\r\nhalf")
    until(lambda: proxy.metric("requests_in_flight") == 3, "all that may upload at once do")
    with proxy.raw() as late:
        freeze(proxy.process)
        # The value is larger than one that is held until it is whole.
        late.send(b"set k 0 0 2000000\r\nhalf")
        late.finish()
        proxy.signal(signal.SIGCONT)
        until(lambda: proxy.metric("clients_accepted_total") == 4, "it is there")
        until(lambda: proxy.metric("clients") == 3, "it waits for nothing that would come")
        for upload in uploads:
            upload.close()
        until(lambda: proxy.metric("clients") == 0, "the others have gone too")


@pytest.mark.parametrize("size", [100_000, 1_000_000])
def test_a_get_behind_a_failed_key_is_still_answered(memcached, proxima, size):
    server, lost = memcached(memory=64), memcached(memory=64)
    route = {
        "by_prefix": {"prefixes": {"lost:": {"member": lost.address}}, "default": {"member": server.address}}
    }
    proxy = proxima(config(route, workers=1))
    server.set("large", bytes(size))
    server.set("next", "v")
    lost.stop()
    for keys in (b"lost:a large", b"large lost:a", b"lost:a large large small", b"lost:a lost:b large"):
        with proxy.raw() as client:
            for _ in range(5):
                client.send(b"get %b\r\nget next\r\n" % keys)
                client.until(b"VALUE next 0 1\r\nv\r\nEND\r\n")
    until(lambda: proxy.metric("clients") == 0, "all have left")


def test_no_more_keys_are_fetched_for_a_client_that_is_gone(memcached, proxima):
    server = memcached(memory=64)
    proxy = proxima(config("cache", {"cache": [server.address]}, workers=1))
    server.set("large", bytes(500_000))
    keys = 2000
    with proxy.raw() as client:
        client.send(b"get" + keys * b" large" + b"\r\n")
        client.exactly(300_000)
        client.abort()
    # Another client's requests are served meanwhile and afterwards.
    with proxy.raw() as other:
        until(lambda: proxy.metric("clients") == 1, "the client that is gone is still counted")
        assert other.get("small") is None
    assert server.stat("get_hits") < keys / 4
