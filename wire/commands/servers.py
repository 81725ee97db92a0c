#!/usr/bin/env python3
"""Unpacks the Redis and Valkey of other Debian releases, each beside its own C library, and prints how they
are started.

    ./servers.py                     # into target/servers; fetched once
    ./servers.py valkey trixie       # one of them
"""

import pathlib
import socket
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "captures"))
import debian
from debian import Unavailable

FOLDER = debian.TARGET / "servers"
SERVERS = [("redis", "trixie"), ("redis", "sid"), ("valkey", "trixie"), ("valkey", "sid")]


def command(server, suite):
    """The command that starts the server, as words."""
    programs = [f"{server}-server", f"{server}-tools"]
    root = debian.unpacked(FOLDER / f"{server}-{suite}", suite, programs)
    # A server looks at its name to know whether it is to check a file.
    name = f"{server}-server"
    tools = [root / "usr/bin" / name, root / "usr/bin" / f"{server}-check-rdb"]
    program = next(str(tool.resolve()) for tool in tools if tool.exists())
    return [*debian.loader(root), "--argv0", name, program]


def connect(path):
    """A connection to a server that is starting."""
    client = socket.socket(socket.AF_UNIX)
    client.settimeout(5)
    for _ in range(200):
        try:
            client.connect(str(path))
            return client
        except (FileNotFoundError, ConnectionRefusedError):
            time.sleep(0.05)
    raise Unavailable(f"no server at {path}")


if __name__ == "__main__":
    asked = tuple(sys.argv[1:3])
    for server, suite in [asked] if asked in SERVERS else SERVERS:
        try:
            print(server, suite, *command(server, suite))
        except (Unavailable, subprocess.TimeoutExpired, OSError) as error:
            print(f"no {server} of {suite} here: {error}")
