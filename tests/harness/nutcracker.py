"""twemproxy's front door as a process, and the real `nutcracker` beside it."""

import json
import os
import pathlib
import shutil
import socket

from . import PATIENCE, number, ports
from .proxy import BINARY, Program

NUTCRACKER = os.environ.get("NUTCRACKER", shutil.which("nutcracker") or "/usr/sbin/nutcracker")


def entry(server, weight=1, name=None):
    """A line of `servers`: a harness server or an address, its weight, and a name."""
    address = getattr(server, "address", server).removeprefix("unix:")
    return f"{address}:{weight}" + (f" {name}" if name else "")


def written(pools):
    """The text of a file with these pools. twemproxy reads block style alone."""

    def value(said):
        return str(said).lower() if isinstance(said, bool) else json.dumps(said) if isinstance(said, str) else said

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
        self._stats = ports.free()
        place = ["-a", "127.0.0.1", "-s", str(self._stats), "-i", "20"]
        addresses = [keys["listen"].split(" ")[0] for keys in pools.values()]
        addresses = [f"unix:{each}" if each.startswith("/") else each for each in addresses]
        super().__init__([*command, "-c", str(self.file), *place, *arguments], folder, addresses, admin)
        self.wait_ready()

    def write(self, pools):
        """Replaces the file by renaming."""
        new = self.file.with_suffix(".new")
        new.write_text(pools if isinstance(pools, str) else written(pools))
        new.rename(self.file)

    def stats(self):
        """What the statistics port says."""
        with socket.create_connection(("127.0.0.1", self._stats), PATIENCE) as sock:
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
