#!/usr/bin/env python3
"""Records the answers of a real Redis or Valkey as the `<` and `!` lines of the captures in resp/.

    ./record_resp.py [FILE.txt ...]      # default: all

The form is that of `record.py`. A `>` line may hold several requests, and its `<` line then has all replies,
pushes included. Each file is recorded on one fresh server and one connection, which begins in RESP2. A PING
with a token follows every exchange and is not written down: its reply tells where the recorded ones end. The
server is the first `redis-server` in PATH; REDIS names another binary.
"""

import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import time

from record import decode, encode

TOKEN = b"end-of-the-exchange"
NEXT = b"*2\r\n$4\r\nPING\r\n$%d\r\n%s\r\n" % (len(TOKEN), TOKEN)
NEXT_REPLIES = (
    b"*2\r\n$4\r\npong\r\n$%d\r\n%s\r\n" % (len(TOKEN), TOKEN),
    b"$%d\r\n%s\r\n" % (len(TOKEN), TOKEN),
)


class Server:
    """A server on a Unix socket of its own, without persistence."""

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = os.path.join(self.folder.name, "redis")
        options = {
            "port": "0",
            "unixsocket": self.path,
            "save": "",
            "appendonly": "no",
            "dir": self.folder.name,
            "enable-debug-command": "yes",
        }
        words = [word for name, value in options.items() for word in (f"--{name}", value)]
        program = os.environ.get("REDIS", "redis-server")
        self.process = subprocess.Popen([program, *words], stdout=subprocess.DEVNULL)
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
        raise SystemExit("the server does not answer")

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()
        self.folder.cleanup()


def exchange(client, request):
    """The replies to `request`, and whether the server closed the connection."""
    reply = b""
    try:
        client.sendall(request + NEXT * request.endswith(b"\n"))
        while not reply.endswith(NEXT_REPLIES):
            part = client.recv(65536)
            if not part:
                return reply, True
            reply += part
    except (BrokenPipeError, ConnectionResetError):
        return reply, True
    except TimeoutError:
        raise SystemExit(f"no end of the reply to {request[:80]}: {reply[:80]}") from None
    end = next(end for end in NEXT_REPLIES if reply.endswith(end))
    return reply[: -len(end)], False


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
    folder = pathlib.Path(__file__).parent / "resp"
    for path in [pathlib.Path(name) for name in sys.argv[1:]] or sorted(folder.glob("*.txt")):
        record(path)
