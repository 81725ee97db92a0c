"""A cache with leases, which no memcached has: it behaves as mcrouter's users say of theirs."""

import itertools
import socket
import threading
import time

from . import ports
from .listening import accepted, close, in_thread

HOT = 10
"""For so many seconds a miss that somebody fills is a hot miss for everybody else."""


class Leasing:
    """Speaks memcached's text protocol, with `lease-get`, `lease-set` and `metaget`.

    A miss of `lease-get` comes with a token, and others get `NOT_FOUND_HOT` as long as that is awaited.
    `lease-set` stores only with the token of the last miss. A `delete` makes all tokens of the key invalid;
    what is set with one of them then is stored as stale. Without `knows_leases` it is a memcached, to which
    those commands are unknown words. If it `shows_stale`, a miss comes with the value that was deleted.
    """

    def __init__(self, port=None, knows_leases=True, first_token=100, shows_stale=False):
        self.knows_leases, self.shows_stale = knows_leases, shows_stale
        self.asked = []
        """Every line that was read as a command, in order."""
        self.broken = None
        """What every command gets in place of its answer."""
        self._tokens = itertools.count(first_token)
        self._items, self._leases, self._deleted = {}, {}, {}
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", port or ports.free()), backlog=64)
        self.host, self.port = self._listener.getsockname()
        self.address = f"{self.host}:{self.port}"
        self._open = set()
        in_thread(self._accept)

    def named(self, *words):
        """The commands with one of these words that it was given, without the proxy's own question."""
        lines = [line for line in self.asked if line.split()[0].decode() in words]
        return [line for line in lines if b"proxima:" not in line]

    def put(self, key, value, flags=0, expiry=0):
        self._items[key.encode()] = (value, flags, expiry, time.time())

    def value(self, key):
        """The value that it holds; None: it holds none."""
        return self._items.get(key.encode(), (None,))[0]

    def _accept(self):
        for sock in accepted(self._listener):
            self._open.add(sock)
            in_thread(self._serve, sock)

    def _serve(self, sock):
        try:
            with sock.makefile("rb") as stream:
                for line in stream:
                    words = line.split()
                    self.asked.append(line.strip())
                    answer = self._answer(words, stream) if words else b"ERROR\r\n"
                    if self.broken is not None and words and words[0] != b"version":
                        answer = self.broken
                    if words[-1:] != [b"noreply"]:
                        sock.sendall(answer)
        except OSError:
            pass
        finally:
            self._open.discard(sock)
            sock.close()

    def _answer(self, words, stream):
        with self._lock:
            match words:
                case [b"version"]:
                    return b"VERSION 1.6.18\r\n"
                case [b"lease-get", *keys] if keys and self.knows_leases:
                    return b"".join(map(self._lease_get, keys)) + b"END\r\n"
                case [b"metaget", *keys] if keys and self.knows_leases:
                    return b"".join(map(self._metaget, keys)) + b"END\r\n"
                case [b"lease-set", key, token, flags, expiry, size, *_] if self.knows_leases:
                    value = stream.read(int(size) + 2)[:-2]
                    return self._lease_set(key, int(token), value, int(flags), int(expiry))
                case [b"get", *keys] if keys:
                    return b"".join(map(self._get, keys)) + b"END\r\n"
                case [b"gets", *keys] if keys:
                    return b"".join(self._get(key, b" %d" % self._version(key)) for key in keys) + b"END\r\n"
                case [b"cas", key, flags, expiry, size, version, *_]:
                    value = stream.read(int(size) + 2)[:-2]
                    if key not in self._items:
                        return b"NOT_FOUND\r\n"
                    if int(version) != self._version(key):
                        return b"EXISTS\r\n"
                    self._items[key] = (value, int(flags), int(expiry), time.time())
                    if int(expiry) < 0:
                        del self._items[key]
                    return b"STORED\r\n"
                case [b"set" | b"add", key, flags, expiry, size, *_]:
                    value = stream.read(int(size) + 2)[:-2]
                    if words[0] == b"add" and key in self._items:
                        return b"NOT_STORED\r\n"
                    self._items[key] = (value, int(flags), int(expiry), time.time())
                    self._leases.pop(key, None)
                    return b"STORED\r\n"
                case [b"delete", key, *_]:
                    if key in self._leases:
                        self._leases[key] = (None, 0)
                    if key not in self._items:
                        return b"NOT_FOUND\r\n"
                    self._deleted[key] = self._items.pop(key)
                    return b"DELETED\r\n"
        return b"ERROR\r\n"

    def _version(self, key):
        """The version of a value is the time at which it was stored."""
        *_, since = self._items.get(key, (0,))
        return int(since * 1e6)

    def _get(self, key, version=b""):
        if key not in self._items:
            return b""
        value, flags, *_ = self._items[key]
        return b"VALUE %b %d %d%b\r\n%b\r\n" % (key, flags, len(value), version, value)

    def _lease_get(self, key):
        if key in self._items:
            return self._get(key)
        token, since = self._leases.get(key, (None, 0))
        if token and time.time() - since < HOT:
            return b"NOT_FOUND_HOT %b\r\n" % key
        token = next(self._tokens)
        self._leases[key] = (token, time.time())
        value, flags, *_ = self._deleted.get(key, (b"", 0)) if self.shows_stale else (b"", 0)
        return b"LVALUE %b %d %d %d\r\n%b\r\n" % (key, token, flags, len(value), value)

    def _lease_set(self, key, token, value, flags, expiry):
        if key not in self._leases:
            return b"NOT_STORED\r\n"
        awaited, _ = self._leases[key]
        if awaited == token:
            self._items[key] = (value, flags, expiry, time.time())
            del self._leases[key]
            return b"STORED\r\n"
        return b"STALE_STORED\r\n" if awaited is None else b"NOT_STORED\r\n"

    def _metaget(self, key):
        if key not in self._items:
            return b""
        _, _, expiry, since = self._items[key]
        age = b"unknown" if expiry < 0 else b"%d" % int(time.time() - since)
        return b"META %b age: %b; exptime: %d; from: 127.0.0.1; is_transient: 0\r\n" % (key, age, expiry)

    def stop(self):
        close(self._listener)
        for sock in list(self._open):
            close(sock)
