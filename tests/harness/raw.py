"""A client that sends and receives plain bytes."""

import socket
import struct

from . import PATIENCE


def connect(address, receive=None, source=None):
    """A connected socket to `host:port`, `[v6]:port` or `unix:/path`.

    `receive` is the size of its kernel's receive buffer, `source` the address that it comes from."""
    if address.startswith("unix:"):
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        sock.settimeout(PATIENCE)
        sock.connect(address.removeprefix("unix:"))
        return sock
    host, port = address.rsplit(":", 1)
    host = host.strip("[]")
    sock = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    sock.settimeout(PATIENCE)
    if receive:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive)
    if source:
        sock.bind((source, 0))
    sock.connect((host, int(port)))
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


class Closed(Exception):
    """The other side has closed the connection, after `args[0]`. Its text has the last of these bytes: one
    failure must not hide the others in a log."""

    def __str__(self):
        return f"after {len(self.args[0])} bytes: {self.args[0][-200:]!r}"


class Raw:
    """One connection. Received bytes are kept until a test takes them, so that the next step sees a byte too
    many."""

    def __init__(self, address, receive=None, source=None):
        self.sock = connect(address, receive, source)
        self.pending = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.sock.close()

    def abort(self):
        """Leaves with a reset: nothing that is due can be delivered any more."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()

    def finish(self):
        """Sends no more, and still reads."""
        self.sock.shutdown(socket.SHUT_WR)

    def send(self, data):
        self.sock.sendall(data)

    def _more(self):
        try:
            data = self.sock.recv(1 << 20)
        except ConnectionResetError:
            data = b""
        if not data:
            raise Closed(self.pending)
        self.pending += data

    def until(self, end):
        """The bytes up to and with `end`."""
        start = 0
        while (found := self.pending.find(end, start)) < 0:
            start = max(0, len(self.pending) - len(end) + 1)
            self._more()
        taken, self.pending = self.pending[: found + len(end)], self.pending[found + len(end) :]
        return taken

    def line(self):
        return self.until(b"\r\n")

    def exactly(self, count):
        """The next `count` bytes."""
        parts, size = [self.pending], len(self.pending)
        while size < count:
            self.pending = b""
            try:
                self._more()
            except Closed:
                raise Closed(b"".join(parts)) from None
            parts.append(self.pending)
            size += len(self.pending)
        everything = b"".join(parts)
        self.pending = everything[count:]
        return everything[:count]

    def rest(self):
        """The bytes until the other side closes."""
        try:
            while True:
                self._more()
        except Closed:
            taken, self.pending = self.pending, b""
            return taken

    def ask(self, request):
        """The whole answer to `request`, which may be empty. A no-op behind it shows where it ends."""
        self.send(request + b"mn\r\n")
        return self.until(b"MN\r\n").removesuffix(b"MN\r\n")

    def set(self, key, value, flags=0, ttl=0):
        """Stores a value, and fails the test unless it was stored."""
        key, value = _bytes(key), _bytes(value)
        self.send(b"set %b %d %d %d\r\n%b\r\n" % (key, flags, ttl, len(value), value))
        answer = self.line()
        assert answer == b"STORED\r\n", answer

    def get(self, key):
        """The value, or None for a miss. An error fails the test."""
        key = _bytes(key)
        self.send(b"get %b\r\n" % key)
        head = self.line()
        if head == b"END\r\n":
            return None
        words = head.split()
        assert words[:2] == [b"VALUE", key], head
        value = self.exactly(int(words[3]))
        end = self.exactly(7)
        assert end == b"\r\nEND\r\n", end
        return value

    def stats(self, what=""):
        """The answer to `stats` as a dictionary."""
        self.send(f"stats {what}".strip().encode() + b"\r\n")
        lines = self.until(b"END\r\n").decode().splitlines()[:-1]
        return dict(line.split(" ", 2)[1:] for line in lines)


def _bytes(text):
    return text if isinstance(text, bytes) else text.encode()
