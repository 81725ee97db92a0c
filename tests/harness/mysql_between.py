"""A relay in front of a real MySQL server that sees what the proxy sends, and may answer in its place."""

import contextlib
import socket
import struct
import threading

from . import ports
from .mysql_raw import QUERY, STATISTICS, packets
from .raw import connect

NUMBERS = b"Uptime: "
"""How the server's answer to STATISTICS begins, which no other answer of these tests does."""


def error(number, text, sequence=1):
    """An error as a server sends it."""
    return packets(b"\xff" + struct.pack("<H", number) + b"#HY000" + text.encode(), sequence)


def _text(value):
    return bytes([len(value)]) + value.encode()


def _column(name):
    return b"\3def\0\0\0" + _text(name) + b"\0\x0c\x2d\0\xff\0\0\0\xfd\0\0\0\0\0"


def _table(pairs):
    """A result with two columns, for a client that has agreed on DEPRECATE_EOF."""
    found = [b"\2", _column("name"), _column("value")]
    found += [_text(name) + _text(value) for name, value in pairs.items()]
    return b"".join(packets(one, place + 1) for place, one in enumerate([*found, b"\xfe\0\0\2\0\0\0"]))


class Lost(Exception):
    """An answer that raises this ends the connection instead."""


class Between:
    """Passes on to the server of `real` what `answer` returns None for, and sends what else it returns. It is
    given the packets of a client without their heads, which are all in `log` as well."""

    def __init__(self, real, answer=lambda packet: None):
        self._real, self._answer = real, answer
        self.log = []
        self._listener = socket.create_server(("127.0.0.1", ports.free()))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def stop(self):
        self._listener.close()

    def answer(self, packet):
        return self._answer(packet)

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                peer, _ = self._listener.accept()
                threading.Thread(target=_Session(self, peer, connect(self._real)).serve, daemon=True).start()


class _Session:
    """One connection of a `Between`."""

    def __init__(self, between, peer, server):
        self._between, self._peer, self._server = between, peer, server
        self._asks, self._told = threading.Event(), threading.Event()

    def serve(self):
        threading.Thread(target=self._pass_back, daemon=True).start()
        rest = b""
        with contextlib.suppress(OSError, Lost):
            while data := self._peer.recv(65536):
                rest += data
                while len(rest) >= 4 and len(rest) >= (size := 4 + int.from_bytes(rest[:3], "little")):
                    packet, rest = rest[:size], rest[size:]
                    self._pass_on(packet)
        self._end()

    def _pass_on(self, packet):
        self._between.log.append(packet[4:])
        answer = self._between.answer(packet[4:])
        if answer is None:
            self._server.sendall(packet)
            return
        if packet[3] == 0:
            self._wait()
        self._peer.sendall(answer)

    def _wait(self):
        """Waits until the server has answered all that was passed on: it answers a last question then."""
        self._told.clear()
        self._asks.set()
        self._server.sendall(packets(bytes([STATISTICS])))
        self._told.wait()

    def _pass_back(self):
        held = b""
        with contextlib.suppress(OSError):
            while data := self._server.recv(65536):
                held += data
                at = held.find(NUMBERS) - 4 if self._asks.is_set() else -1
                if at < 0:
                    # The server may have sent a part of its answer to the question.
                    kept = min(len(held), 11) if self._asks.is_set() else 0
                    passed, held = held[: len(held) - kept], held[len(held) - kept :]
                    self._peer.sendall(passed)
                elif len(held) >= at + 4 + int.from_bytes(held[at : at + 3], "little"):
                    self._peer.sendall(held[:at])
                    held = b""
                    self._asks.clear()
                    self._told.set()
        self._told.set()
        self._end()

    def _end(self):
        for one in (self._peer, self._server):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)


class Losing(Between):
    """Loses the reply to texts with this `part`, as if the server had run it and then been gone."""

    def __init__(self, real, part, answer=lambda packet: None):
        super().__init__(real, answer)
        self._part = part
        self.runs = 0

    def answer(self, packet):
        if packet[:1] == bytes([QUERY]) and self._part in packet:
            self.runs += 1
            raise Lost
        return super().answer(packet)


WELL = {
    "wsrep_ready": "ON",
    "wsrep_cluster_status": "Primary",
    "wsrep_local_state": "4",
    "read_only": "OFF",
    "wsrep_reject_queries": "NONE",
}
"""What a node of a Galera cluster says of itself that serves."""


def galera(name, answer=lambda packet: None, **more):
    """Answers for a node of a Galera cluster with this name how it is, and all else by `answer`."""

    def answers(packet):
        if b"SHOW GLOBAL STATUS WHERE" in packet:
            return _table({**WELL, "wsrep_node_name": name, **more})
        return answer(packet)

    return answers
