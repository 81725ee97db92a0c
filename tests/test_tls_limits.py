"""Handshakes have a time, a share of each turn and a bound: whoever begins them harms nobody else."""

import os
import ssl
import threading

import pytest

from harness import until
from harness.proxy import config
from harness.raw import Closed, Raw
from harness.tls import Authority, Secure


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture
def proxy(proxima, authority):
    made = config("embedded", workers=1)
    made["listeners"][0]["tls"] = authority.certificate("here").listener()
    return proxima(made)


def hello(context):
    """The bytes with which a client begins."""
    outgoing = ssl.MemoryBIO()
    client = context.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="localhost")
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    return outgoing.read()


def ended(client):
    """What has come until the other end closed the connection."""
    with pytest.raises(Closed) as closed:
        client.until(b"nothing of this kind")
    return closed.value.args[0]


def test_clients_that_do_not_go_on_with_a_handshake_are_closed_and_counted(proxy, authority):
    whole = hello(authority.context())
    with Raw(proxy.address) as silent, Raw(proxy.address) as half, Raw(proxy.address) as late:
        half.send(whole[: len(whole) // 2])
        late.send(whole)
        with Secure(proxy.address, authority.context()) as client:
            for each in (silent, half, late):
                ended(each)
            client.send(b"get k\r\n")
            assert client.until(b"END\r\n") == b"END\r\n"
    assert proxy.metric("tls_handshakes_total", side="clients", result="timeout") == 3


def test_handshake_in_pieces_is_one(proxy, authority):
    with Raw(proxy.address) as wire:
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        client = authority.context().wrap_bio(incoming, outgoing, server_hostname="localhost")
        is_done = False
        while not is_done:
            try:
                client.do_handshake()
                is_done = True
            except ssl.SSLWantReadError:
                pass
            for byte in outgoing.read():
                wire.send(bytes([byte]))
            if not is_done:
                incoming.write(wire.sock.recv(7))
        client.write(b"get k\r\n")
        for byte in outgoing.read():
            wire.send(bytes([byte]))
        while True:
            try:
                assert client.read() == b"END\r\n"
                break
            except ssl.SSLWantReadError:
                incoming.write(wire.sock.recv(3))


def test_the_handshake_that_has_waited_the_longest_gives_way(proxy, authority):
    idle = [Raw(proxy.address) for _ in range(1030)]
    try:
        displaced = {"side": "clients", "result": "displaced"}
        until(lambda: proxy.metric("tls_handshakes_total", **displaced) >= 6, "some give way")
        ended(idle[0])
        with Secure(proxy.address, authority.context()) as client:
            client.send(b"get k\r\n")
            assert client.until(b"END\r\n") == b"END\r\n"
    finally:
        for each in idle:
            each.close()


HOSTILE = {
    "a record that is too long": b"\x16\x03\x01\xff\xff" + bytes(70_000),
    "a handshake without an end": b"\x16\x03\x01\x40\x00\x01\xff\xff\xff" + bytes(16_380),
    "noise": b"\x16\x03\x01\x02\x00" + os.urandom(512),
    "an alert": b"\x15\x03\x03\x00\x02\x02\x28",
}


@pytest.mark.parametrize("case", HOSTILE, ids=[name.replace(" ", "-") for name in HOSTILE])
def test_hostile_bytes_end_their_own_connection_alone(proxy, authority, case):
    with Secure(proxy.address, authority.context()) as client, Raw(proxy.address) as hostile:
        try:
            for _ in range(20):
                hostile.send(HOSTILE[case])
        except OSError:
            pass
        try:
            ended(hostile)
        except OSError:
            pass
        client.send(b"get k\r\n")
        assert client.until(b"END\r\n") == b"END\r\n"

    def failed():
        names = ("malformed", "alert", "incompatible", "cut", "timeout")
        return sum(proxy.metric("tls_handshakes_total", side="clients", result=name) for name in names)

    until(lambda: failed() == 1, "it is counted")


def test_storm_of_handshakes_leaves_others_served(proxy, authority):
    """Others are served between the handshakes, and all of those come to an end."""
    context = authority.context()
    done, failed = [], []

    def connect():
        for _ in range(25):
            try:
                Secure(proxy.address, context).close()
                done.append(1)
            except OSError as error:
                failed.append(error)

    with Secure(proxy.address, context) as client:
        threads = [threading.Thread(target=connect) for _ in range(16)]
        for thread in threads:
            thread.start()
        asked = 0
        while any(thread.is_alive() for thread in threads):
            client.send(b"get k\r\n")
            assert client.until(b"END\r\n") == b"END\r\n"
            asked += 1
        for thread in threads:
            thread.join()
    assert len(done) == 400 and not failed and asked > 10
    assert proxy.metric("tls_handshakes_total", side="clients", result="full") == 401
