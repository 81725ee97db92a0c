"""Redis behind the proxy, and a client that sees every byte of its protocol."""

import os
import shutil
import socket
import tempfile

from . import PATIENCE, ports
from .program import Program

REDIS = os.environ.get("REDIS", shutil.which("redis-server") or "/usr/bin/redis-server")


def array(*words):
    """A request: these words as an array of bulk strings."""
    encoded = [word if isinstance(word, bytes) else str(word).encode() for word in words]
    return b"*%d\r\n" % len(encoded) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in encoded)


def _password(options):
    """The words behind AUTH for a server with these options."""
    words = list(options)
    return words[words.index("--requirepass") + 1 :][:1] if "--requirepass" in words else ()


class Redis(Program):
    """A redis-server on a free port of 127.0.0.1, without persistence."""

    def __init__(self, options=(), program=(REDIS,), login=()):
        self._login = login or _password(options)
        address = ports.address()
        self._folder = tempfile.TemporaryDirectory()
        port = address.rsplit(":", 1)[1]
        place = ["--bind", "127.0.0.1", "--port", port, "--dir", self._folder.name]
        command = [*program, *place, "--save", "", "--appendonly", "no", *options]
        super().__init__(command, address)

    def answers(self):
        return self.ask("PING")[:1] in b"+-"

    def connect(self):
        """A connection that bypasses the proxy, logged in."""
        connection = self.plain()
        if self._login:
            connection.ask("AUTH", *self._login)
        return connection

    def plain(self):
        """A connection that bypasses the proxy."""
        return Connection(self.address)

    def ask(self, *words):
        with self.connect() as direct:
            return direct.ask(*words)

    def stop(self):
        super().stop()
        self._folder.cleanup()


class Closed(Exception):
    """The other side has closed the connection."""


class Connection:
    """A connection that speaks RESP. Replies are returned as the bytes that have come."""

    def __init__(self, address):
        self.address = address
        if address.startswith("/"):
            self._socket = socket.socket(socket.AF_UNIX)
            self._socket.settimeout(PATIENCE)
            self._socket.connect(address)
        else:
            host, port = address.rsplit(":", 1)
            self._socket = socket.create_connection((host, int(port)), PATIENCE)
        self._heard = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self._socket.close()

    def name(self):
        """The address of this end."""
        return "{}:{}".format(*self._socket.getsockname())

    def send(self, data):
        self._socket.sendall(data)

    def ask(self, *words):
        """The reply to one command."""
        self.send(array(*words))
        return self.reply()

    def _more(self):
        part = self._socket.recv(65536)
        if not part:
            raise Closed(self._heard)
        self._heard += part

    def take(self, count):
        """The next bytes, so many."""
        while len(self._heard) < count:
            self._more()
        taken, self._heard = self._heard[:count], self._heard[count:]
        return taken

    def more_bytes(self):
        """What has come by now, at least one byte."""
        if not self._heard:
            self._more()
        heard, self._heard = self._heard, b""
        return heard

    def reply(self):
        """The bytes of the next message, nested values included."""
        while b"\r\n" not in self._heard:
            self._more()
        head = self.take(self._heard.index(b"\r\n") + 2)
        kind, rest = head[:1], head[1:-2]
        if kind in b"$=!" and int(rest) >= 0:
            return head + self.take(int(rest) + 2)
        if kind in b"*~>%|" and int(rest) >= 0:
            count = int(rest) * (2 if kind in b"%|" else 1) + (kind == b"|")
            return head + b"".join(self.reply() for _ in range(count))
        return head

    def rest(self):
        """Everything up to the end of the connection."""
        try:
            while True:
                self._more()
        except (Closed, ConnectionResetError):
            heard, self._heard = self._heard, b""
            return heard

    def is_silent(self, seconds=0.2):
        """Whether nothing comes for so long."""
        if self._heard:
            return False
        self._socket.settimeout(seconds)
        try:
            self._more()
        except TimeoutError:
            return True
        finally:
            self._socket.settimeout(PATIENCE)
        return False


def pools(servers, **options):
    """One pool of these servers."""
    return {"redis": {"protocol": "redis", "servers": [server.address for server in servers], **options}}


def config(servers, route="redis", **keys):
    """A configuration with one listener that leads to a pool of these servers."""
    listeners = [{"address": ports.address(), "protocol": "redis", "route": route}]
    return {"workers": 2, "listeners": listeners, "pools": pools(servers), **keys}
