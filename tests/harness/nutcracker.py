"""twemproxy's front door as a process, and the real `nutcracker` beside it."""

import json
import os
import pathlib
import shutil
import socket

from . import PATIENCE, number, ports, until
from .proxy import BINARY, Program

NUTCRACKER = os.environ.get("NUTCRACKER", shutil.which("nutcracker") or "/usr/sbin/nutcracker")


def entry(server, weight=1, name=None):
    """A line of `servers`: a harness server or an address, its weight, and a name."""
    address = getattr(server, "address", server).removeprefix("unix:")
    return f"{address}:{weight}" + (f" {name}" if name else "")


def written(pools):
    """The text of a file with these pools. twemproxy reads block style alone."""

    def value(said):
        return (
            str(said).lower()
            if isinstance(said, bool)
            else json.dumps(said)
            if isinstance(said, str)
            else said
        )

    lines = []
    for name, keys in pools.items():
        lines.append(f"{name}:")
        for key, said in keys.items():
            if key == "servers":
                lines += ["  servers:", *(f"    - {json.dumps(each)}" for each in said)]
            else:
                lines.append(f"  {key}: {value(said)}")
    return "\n".join(lines) + "\n"


class _Started(Program):
    def __init__(self, command, pools, folder, arguments, admin=None):
        self.folder = pathlib.Path(folder)
        self.file = self.folder / f"nutcracker-{number()}.yml"
        self.pools = pools
        self.write(pools)
        self._statistics = ports.free()
        place = ["-a", "127.0.0.1", "-s", str(self._statistics), "-i", "20"]
        addresses = [keys["listen"].split(" ")[0] for keys in pools.values()]
        addresses = [f"unix:{each}" if each.startswith("/") else each for each in addresses]
        super().__init__([*command, "-c", str(self.file), *place, *arguments], folder, addresses, admin)
        self.wait_ready()

    def write(self, pools):
        """Replaces the file by renaming."""
        new = self.file.with_suffix(".new")
        new.write_text(pools if isinstance(pools, str) else written(pools))
        new.rename(self.file)

    def stats_socket(self):
        """A connection to the statistics port for which little fits into the buffers of both ends."""
        sock = socket.socket()
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 536)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        sock.settimeout(PATIENCE)
        sock.connect(("127.0.0.1", self._statistics))
        return sock

    def stats(self):
        """What the statistics port says."""
        with socket.create_connection(("127.0.0.1", self._statistics), PATIENCE) as sock:
            text = b""
            while more := sock.recv(1 << 16):
                text += more
        return json.loads(text)


class Twemproxy(_Started):
    """The real `nutcracker`."""

    def __init__(self, pools, folder, *arguments):
        log = pathlib.Path(folder) / f"twemproxy-{number()}.log"
        super().__init__([NUTCRACKER, "-o", str(log)], pools, folder, arguments)

    def stop(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(PATIENCE)


class Door(_Started):
    """Proxima, called as `nutcracker` or as `proxima nutcracker`."""

    def __init__(self, pools, folder, io, *arguments, program=(BINARY, "nutcracker"), workers=2):
        admin = ports.address()
        command = [*program, f"--io={io}", f"--admin={admin}", f"--workers={workers}"]
        super().__init__(command, pools, folder, arguments, admin)


def listed(servers):
    """Which servers have each key."""
    found = {}
    for server in servers:

        def dump():
            with server.raw() as direct:
                direct.send(b"lru_crawler metadump all\r\n")
                parts = []
                while not b"".join(parts[-2:]).endswith((b"END\r\n", b"request\r\n")):
                    parts.append(direct.sock.recv(1 << 20))
                text = b"".join(parts)
                return None if text.startswith(b"BUSY") else text

        for line in until(dump, "the keys are listed").splitlines()[:-1]:
            key = line.split(b" ", 1)[0].removeprefix(b"key=")
            found.setdefault(key, []).append(server.address)
    return found


def write(proxy, keys_of, batch=500):
    """Stores each pool's keys through it."""
    for listener, keys in enumerate(keys_of):
        with proxy.raw(listener) as client:
            for start in range(0, len(keys), batch):
                part = keys[start : start + batch]
                client.send(b"".join(b"set %b 0 0 1\r\nv\r\n" % key for key in part))
                answer = client.exactly(len(part) * 8)
                assert answer == b"STORED\r\n" * len(part), answer[:100]


def lost(proxy, key, listener=0, count=1):
    """Which of this many requests, each from a client of its own, got an error."""

    def ask():
        with proxy.raw(listener) as client:
            client.send(b"set %b 0 0 1\r\nv\r\n" % key)
            return client.line().startswith(b"SERVER_ERROR")

    return [ask() for _ in range(count)]


def key_of(both, servers, which):
    """A key that modula gives to this one of the servers."""
    theirs, _ = both({"p": {"distribution": "modula", "servers": [entry(server) for server in servers]}})
    keys = [b"key%d" % i for i in range(20)]
    write(theirs, [keys])
    return next(key for key, at in listed(servers).items() if at == [servers[which].address])


def counts(proxy):
    """The counters of the pool `p`: its own, and the sums over its servers."""
    pool = proxy.stats()["p"]
    servers = [value for value in pool.values() if isinstance(value, dict)]
    own = {name: value for name, value in pool.items() if not isinstance(value, dict)}
    return own, {name: sum(server[name] for server in servers) for name in servers[0]}
