#!/usr/bin/env python3
"""Records the answers of a real memcached as the `<` and `!` lines of the captures beside this file.

    ./record.py [FILE.txt ...]      # default: all

A capture is a list of exchanges on one fresh server:

    # comment
    > set a 0 0 1\\r\\nx\\r\\n        what the client sends
    < STORED\\r\\n                  what the server answers ("<" alone: nothing)
    ! closed                      the server closed the connection

`\\r`, `\\n`, `\\\\` and `\\xNN` are bytes, `{k*251}` is 251 times k. Another request follows every exchange
that ends with a line end. It is not written down: its reply tells where the recorded one ends, so a capture
shows how many bytes the server took for one request. The server is the newest that `newest.py` finds;
MEMCACHED names another binary.
"""

import os
import pathlib
import re
import socket
import subprocess
import sys
import tempfile
import time

import newest

NEXT, NEXT_REPLY = b"mg next-request k\r\n", b"EN knext-request\r\n"
ESCAPE = re.compile(rb"\\(r|n|\\|x[0-9a-f]{2})|\{(.)\*(\d+)\}", re.DOTALL)


def decode(text):
    def one(match):
        escape, byte, count = match.groups()
        if byte:
            return byte * int(count)
        return {b"r": b"\r", b"n": b"\n", b"\\": b"\\"}.get(escape) or bytes([int(escape[1:], 16)])

    if re.search(r"\\(?!r|n|\\|x[0-9a-f]{2})", text.replace("\\\\", "")):
        raise SystemExit(f"unknown escape in {text}")
    return ESCAPE.sub(one, text.encode("ascii"))


def encode(data):
    names = {13: "\\r", 10: "\\n", 92: "\\\\"}
    text = "".join(
        names.get(b) or (chr(b) if 32 <= b < 127 and b not in b"{}" else f"\\x{b:02x}") for b in data
    )
    return re.sub(r"([^\\{}])\1{39,}", lambda m: f"{{{m[1]}*{len(m[0])}}}", text)


class Server:
    """A memcached on a Unix socket of its own."""

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = os.path.join(self.folder.name, "memcached")
        program = os.environ.get("MEMCACHED")
        words = [program] if program else newest.command()
        self.process = subprocess.Popen([*words, "-u", "root", "-s", self.path, "-t", "1"])
        return self

    def connect(self):
        client = socket.socket(socket.AF_UNIX)
        client.settimeout(5)
        for _ in range(100):
            try:
                client.connect(self.path)
                return client
            except (FileNotFoundError, ConnectionRefusedError):
                time.sleep(0.05)
        raise SystemExit("memcached does not answer")

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()
        self.folder.cleanup()


def exchange(client, request):
    """The reply to `request`, and whether the server closed the connection."""
    reply = b""
    try:
        client.sendall(request + NEXT * request.endswith(b"\n"))
        while not reply.endswith(NEXT_REPLY):
            part = client.recv(65536)
            if not part:
                return reply, True
            reply += part
    except (BrokenPipeError, ConnectionResetError):
        return reply, True
    except TimeoutError:
        raise SystemExit(f"no end of the reply to {request[:80]}: {reply[:80]}") from None
    return reply[: -len(NEXT_REPLY)], False


def record(path):
    lines = []
    with Server() as server:
        client = server.connect()
        for line in path.read_text("ascii").splitlines():
            if line.startswith(("<", "!")):
                continue
            lines.append(line)
            if line.startswith("> "):
                reply, closed = exchange(client, decode(line[2:]))
                lines.append(f"< {encode(reply)}".rstrip())
                if closed:
                    lines.append("! closed")
                    client.close()
                    client = server.connect()
    path.write_text("\n".join(lines) + "\n", "ascii")


if __name__ == "__main__":
    folder = pathlib.Path(__file__).parent
    for path in [pathlib.Path(name) for name in sys.argv[1:]] or sorted(folder.glob("*.txt")):
        record(path)
