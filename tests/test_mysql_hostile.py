"""Bad input from clients and from servers: an error or a close, bounded memory, and no harm to others."""

import contextlib
import random
import socket
import struct
import threading

import pymysql
import pytest

from harness import mysql_raw as raw
from harness import number, ports, until
from harness.mysql_raw import Connection
from harness.raw import Closed, Raw, connect
from harness.split import connect as connect_to
from harness.split import error, made, rows, runs, value

pytestmark = pytest.mark.either_io

ROOM = 48 << 20
"""Bytes by which the proxy may grow while it is attacked."""

OUT_OF_ORDER, BAD_HANDSHAKE = 1156, 1043


@pytest.fixture
def attacked(mysql_pair, proxima, tmp_path):
    """A proxy, and an innocent client that is served before and after."""
    proxy = proxima(made(tmp_path, *mysql_pair, workers=1, limits={"total_bytes": "32MiB"}))
    with connect_to(proxy.address, database="test") as innocent:
        assert value(innocent, "SELECT 'before'") == "before"
        before = proxy.memory()
        yield proxy
        assert value(innocent, "SELECT 'after'") == "after"
        assert value(innocent, "SELECT 'after' FROM DUAL FOR UPDATE") == "after"
        assert proxy.memory("VmHWM") < before + ROOM, (before, proxy.memory("VmHWM"))


def packet(payload, sequence=0, size=None):
    return struct.pack("<I", (len(payload) if size is None else size) | sequence << 24) + payload


HELLO = struct.pack("<IIB23x", raw.PLAIN, 1 << 24, 45)
HANDSHAKES = {
    "zeroes": bytes(100),
    "nothing-in-a-packet": packet(b"", 1),
    "one-byte": packet(b"\1", 1),
    "no-user": packet(HELLO, 1),
    "user-without-end": packet(HELLO + b"app", 1),
    "proof-without-end": packet(HELLO + b"app\0\x14abc", 1),
    "version-3": packet(b"\0\0\0\0\0app\0", 1),
    "tls-that-is-not-offered": packet(struct.pack("<IIB23x", raw.PLAIN | raw.TLS, 1 << 24, 45), 1),
    "a-statement": packet(b"\3SELECT 1"),
    "the-largest": packet(b"x", 1, 0xFFFFFF),
    "noise": packet(random.Random(1).randbytes(300), 1),
}


@pytest.mark.parametrize("attack", HANDSHAKES)
def test_what_is_no_login_is_refused_and_closed(attacked, attack):
    for _ in range(10):
        with Raw(attacked.address) as client:
            head = client.exactly(4)
            client.exactly(int.from_bytes(head[:3], "little"))
            with contextlib.suppress(OSError):
                client.send(HANDSHAKES[attack])
            heard = client.rest()
            assert raw.numbers(heard)[-1:] in ([BAD_HANDSHAKE], [1045]), heard


def test_who_speaks_http_is_closed(mysql_pair, proxima, tmp_path):
    proxy = proxima(made(tmp_path, *mysql_pair, limits={"request_timeout": "1s"}))
    with Raw(proxy.address) as client:
        client.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        client.rest()


def test_who_says_nothing_is_closed(mysql_pair, proxima, tmp_path):
    proxy = proxima(made(tmp_path, *mysql_pair, limits={"request_timeout": "1s"}))
    silent = [Raw(proxy.address) for _ in range(20)]
    for place, client in enumerate(silent):
        client.exactly(4)
        if place % 2:
            client.send(packet(HELLO, 1, 500))
    with connect_to(proxy.address) as served:
        for client in silent:
            client.rest()
            client.close()
        # An idle client is one that may take its time.
        assert value(served, "SELECT 1") == 1


@pytest.mark.parametrize("sequence", [1, 2, 7, 255])
@pytest.mark.parametrize("kept", [False, True], ids=["free", "kept"])
def test_a_statement_with_a_wrong_number_is_refused(attacked, sequence, kept):
    with Connection(attacked.address) as client:
        if kept:
            client.query("SET @x = 1")
        client.send(packet(b"\3SELECT 1", sequence))
        heard = client.reply()
        assert raw.numbers(heard) == [OUT_OF_ORDER], heard


def test_a_statement_whose_packets_have_wrong_numbers_is_refused(attacked):
    with Connection(attacked.address) as client:
        with contextlib.suppress(OSError):
            client.send(packet(b"\3SELECT '" + b"x" * (raw.LARGEST - 9), 0) + packet(b"x'", 5))
        heard = client.reply()
        assert raw.numbers(heard) == [OUT_OF_ORDER], heard


def test_an_empty_statement_and_an_empty_packet_end_nothing_else(attacked):
    with Connection(attacked.address) as client:
        client.send(packet(b""))
        with contextlib.suppress(Closed):
            assert raw.numbers(client.reply())
    with Connection(attacked.address) as client:
        assert raw.numbers(client.ask(raw.QUERY)) == [1065]
        assert raw.numbers(client.query("SELECT 1")) == []


def test_announced_statements_that_never_come_take_no_memory(attacked):
    clients = [Connection(attacked.address) for _ in range(50)]
    for client in clients:
        client.send(packet(b"\3SELECT '" + b"x" * 1000, 0, 0xFFFFFF))
    with connect_to(attacked.address) as served:
        assert value(served, "SELECT 1") == 1
    for client in clients:
        client.close()


def test_statements_without_an_end_are_bounded(attacked):
    """Packets of the largest size, none of which is the last."""
    clients = [Connection(attacked.address) for _ in range(2)]

    def send(client):
        block = b"x" * (1 << 20)
        with contextlib.suppress(OSError):
            for sequence in range(40):
                client.send(struct.pack("<I", 0xFFFFFF | sequence << 24) + (b"\3" if not sequence else b"x"))
                for _ in range(15):
                    client.send(block)
                client.send(block[:-2])

    threads = [threading.Thread(target=send, args=(client,)) for client in clients]
    for thread in threads:
        thread.start()
    with connect_to(attacked.address) as served:
        for _ in range(10):
            assert value(served, "SELECT 1") == 1
    for client in clients:
        # It is refused before it has sent half a gigabyte.
        with contextlib.suppress(Closed):
            client.reply()
        client.close()
    for thread in threads:
        thread.join()


@pytest.mark.parametrize("kept", [False, True], ids=["free", "kept"])
def test_unknown_statements_are_errors(attacked, kept):
    with Connection(attacked.address) as client:
        if kept:
            client.query("SET @x = 1")
        unknown = b"\x99\x99\0\0"
        assert raw.numbers(client.ask(raw.EXECUTE, unknown + b"\0\1\0\0\0")) == [1243]
        assert raw.numbers(client.ask(raw.FETCH, unknown + b"\1\0\0\0")) == [1243]
        assert raw.numbers(client.ask(raw.RESET, unknown)) == [1243]
        client.write(raw.CLOSE, unknown)
        client.write(raw.LONG_DATA, unknown + b"\0\0x")
        client.query("SELECT 1")
        for command in (raw.EXECUTE, raw.FETCH, raw.RESET):
            for payload in (b"", b"\1", b"\1\0\0"):
                assert raw.numbers(client.ask(command, payload)), (command, payload)
        client.write(raw.CLOSE, b"")
        client.write(raw.LONG_DATA, b"\1")
        assert raw.numbers(client.query("SELECT 1")) == []


def test_random_commands_do_no_harm(attacked):
    chance = random.Random(7)
    for _ in range(60):
        with Connection(attacked.address) as client:
            with contextlib.suppress(OSError):
                for _ in range(5):
                    command = chance.choice([2, 4, 9, 14, 22, 23, 24, 25, 26, 27, 28, 31, 17, 200])
                    client.send(packet(bytes([command]) + chance.randbytes(chance.randrange(30))))
            client.abort()


def test_pipelined_statements_are_answered_in_order(attacked):
    with Connection(attacked.address) as client:
        texts = [f"SELECT {n}" if n % 3 else f"SELECT {n} FROM DUAL FOR UPDATE" for n in range(300)]
        client.send(b"".join(packet(b"\3" + text.encode()) for text in texts))
        for n in range(300):
            assert raw.split(client.reply())[3][1] == bytes([len(str(n))]) + str(n).encode()


def test_a_client_that_does_not_read_delays_nobody(attacked):
    deaf = [Connection(attacked.address, schema="test") for _ in range(4)]
    for client in deaf:
        client.write(raw.QUERY, "SELECT REPEAT('x', 10000) FROM seq_1_to_50000")
    with connect_to(attacked.address, database="test") as served:
        for n in range(200):
            assert value(served, f"SELECT {n}") == n
            assert value(served, f"SELECT {n} FROM DUAL FOR UPDATE") == n
    for client in deaf:
        client.abort()


def test_a_deaf_client_that_leaves_frees_its_server(attacked, mysql_pair):
    with Connection(attacked.address, schema="test") as client:
        client.write(raw.QUERY, "SELECT REPEAT('x', 10000), 'deaf' FROM seq_1_to_500000")
        client.exactly(1000)
        until(lambda: runs(mysql_pair[1], "deaf"), "it runs")
        client.abort()
    until(lambda: not runs(mysql_pair[1], "deaf"), "it runs no more")


class Liar:
    """A server that logs everybody in as MariaDB does, and then answers statements of clients with what `lie`
    makes of them."""

    def __init__(self, real, lie):
        self._real, self._lie = real, lie
        self._listener = socket.create_server(("127.0.0.1", ports.free()))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                peer, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(peer, connect(self._real)), daemon=True).start()

    def _serve(self, peer, server):
        threading.Thread(target=self._back, args=(server, peer), daemon=True).start()
        with contextlib.suppress(OSError):
            while data := peer.recv(65536):
                if b"falsehood" in data:
                    peer.sendall(self._lie)
                    if not self._lie:
                        break
                else:
                    server.sendall(data)
        for sock in (peer, server):
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)

    def _back(self, server, peer):
        with contextlib.suppress(OSError):
            while data := server.recv(65536):
                peer.sendall(data)
        with contextlib.suppress(OSError):
            peer.shutdown(socket.SHUT_RDWR)

    def stop(self):
        self._listener.close()


COLUMN = b"\3def\0\0\0\1x\0\x0c\x3f\0\1\0\0\0\3\1\0\0\0\0"
LIES = {
    "close": b"",
    "wrong-number": packet(b"\0\0\0\2\0\0\0", 9),
    "empty-packet": packet(b"", 1),
    "no-columns": packet(b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff", 1),
    "number-of-columns-without-end": packet(b"\xfc\1", 1),
    "bad-column": packet(b"\1", 1) + packet(b"\xff" * 10, 2),
    "number-skipped": packet(b"\1", 1) + packet(COLUMN, 3) + packet(b"\xfe\0\0\2\0", 4),
    "file-wanted": packet(b"\xfb/etc/passwd", 1),
    "short-ok": packet(b"\0\0", 1),
    "short-error": packet(b"\xff", 1),
    "tracker-too-long": packet(b"\0\0\0\2\x40\0\0\0\xfd\xff\xff\xff", 1),
    "tracker-in-tracker": packet(b"\0\0\0\2\x40\0\0\0\5\0\xfc\xff\xff\1", 1),
    "noise": random.Random(3).randbytes(4000),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_server_that_lies_fails_its_own_client_alone(mysql_pair, proxima, tmp_path, cleanup, lie):
    writer, reader = mysql_pair
    liar = Liar(reader.address, LIES[lie])
    cleanup.callback(liar.stop)
    proxy = proxima(made(tmp_path, writer, liar, workers=1))
    with connect_to(proxy.address) as innocent:
        assert value(innocent, "SELECT 'before'") == "before"
        for _ in range(3):
            with Connection(proxy.address) as client:
                client.write(raw.QUERY, "SELECT 'falsehood'")
                with contextlib.suppress(Closed):
                    reply = client.reply()
                    # What is read as an error or an empty answer may be passed on as one.
                    assert raw.numbers(reply) or lie in ("short-ok", "file-wanted"), reply
            until(lambda: error(innocent, "SELECT 'innocent'") is None, "the server is used again")
        assert value(innocent, "SELECT 'after' FROM DUAL FOR UPDATE") == "after"
        proxy.memory()


GREETINGS = {
    "nothing": b"",
    "noise": random.Random(5).randbytes(500),
    "http": b"HTTP/1.1 400 Bad Request\r\n\r\n",
    "version-9": packet(b"\x09abc\0"),
    "cut": packet(b"\x0a8.0.0\0\1\0\0\0abcdefgh"),
    "an-error": packet(b"\xff\x10\x04Too many connections"),
    "endless": struct.pack("<I", 0xFFFFFF) + b"x" * 100_000,
    "without-41": packet(b"\x0a5.0\0\1\0\0\0abcdefgh\0\0\0\x21\2\0\0\0\0" + bytes(23)),
}


@pytest.mark.parametrize("greeting", GREETINGS)
def test_a_server_that_does_not_greet_as_one_is_none(mysql_pair, proxima, tmp_path, scripted, greeting):
    def talk(sock):
        sock.sendall(GREETINGS[greeting])
        with contextlib.suppress(OSError):
            while sock.recv(4096):
                pass

    writer, _ = mysql_pair
    proxy = proxima(made(tmp_path, writer, scripted(talk), workers=1, limits={"request_timeout": "2s"}))
    with connect_to(proxy.address) as client:
        with pytest.raises(pymysql.err.MySQLError):
            rows(client, f"SELECT {number()}")
    with connect_to(proxy.address) as client:
        assert value(client, "SELECT 'served' FROM DUAL FOR UPDATE") == "served"
    assert proxy.is_live()
