"""An HTTP origin in this process, which answers each request as a test decides."""

import socket
import threading
import time

from . import ports
from .listening import accepted, close, in_thread


def reply(body=b"", status="200 OK", *fields):
    """The bytes of a whole reply. `fields` are lines."""
    head = [f"HTTP/1.1 {status}", f"content-length: {len(body)}", *fields]
    return "\r\n".join([*head, "", ""]).encode() + body


class Request:
    """What was asked."""

    def __init__(self, head):
        lines = head.decode("latin-1").split("\r\n")
        self.method, self.target, self.version = lines[0].split(" ")
        fields = (line.split(": ", 1) for line in lines[1:] if line)
        self.fields = {name.lower(): value for name, value in fields}


class Origin:
    """`answer(request)` returns the bytes of a reply, or a function that is given the socket. A connection is
    kept after bytes, and closed after a function."""

    def __init__(self, answer):
        self.answer = answer
        self.requests = []
        self.connections = 0
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", ports.free()), backlog=256)
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self.url = f"http://{self.address}/maps/{{key}}"
        in_thread(self._accept)

    def _accept(self):
        for sock in accepted(self._listener):
            self.connections += 1
            in_thread(self._serve, sock)

    def _serve(self, sock):
        heard = b""
        with sock:
            try:
                while True:
                    while b"\r\n\r\n" not in heard:
                        part = sock.recv(65536)
                        if not part:
                            return
                        heard += part
                    head, heard = heard.split(b"\r\n\r\n", 1)
                    request = Request(head)
                    with self._lock:
                        self.requests.append(request)
                    answer = self.answer(request)
                    if callable(answer):
                        answer(sock)
                        return
                    sock.sendall(answer)
            except OSError:
                pass

    def targets(self):
        return [request.target for request in self.requests]

    def stop(self):
        close(self._listener)


def endless(sock):
    """A body without an end."""
    sock.sendall(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
    while True:
        sock.sendall(b"10000\r\n" + b"x" * 65536 + b"\r\n")


def slow(sock):
    """A body of one byte a second."""
    sock.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n")
    for _ in range(1000):
        sock.sendall(b"x")
        time.sleep(1)


def broken(head, body):
    """A body that is shorter than its head says."""
    return lambda sock: sock.sendall(head + body)


def silent(_):
    """No answer at all."""
    time.sleep(20)
