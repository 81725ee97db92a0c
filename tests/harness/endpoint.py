"""A configuration endpoint on loopback, which answers as the vendor's documentation says, or wrongly."""

import socket
import ssl

from . import ports
from .listening import accepted, close, in_thread

NEW, OLD = b"config get cluster", b"get AmazonElastiCache:cluster"


class Endpoint:
    """Tells `nodes` as the list of version `version`. An engine before 1.4.14 knows only the old question.

    `trouble` may be a function of the good answer that returns other bytes, or None for silence. With
    `closes` the connection ends behind each answer. `certificate` makes it one that speaks TLS alone.
    """

    def __init__(self, host="127.0.0.1", port=None, old=False, certificate=None):
        self.old = old
        self.version, self.nodes = None, ()
        self.trouble, self.closes = None, False
        self.asked = []
        """Every question."""
        self._tls = None
        if certificate:
            self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self._tls.load_cert_chain(*certificate)
        self._listener = socket.create_server((host, port or ports.free(host)), backlog=128)
        self.host, self.port = self._listener.getsockname()[:2]
        self.address = f"{self.host}:{self.port}"
        self._open = set()
        in_thread(self._accept)

    def set(self, version, *nodes):
        """Tells this list from now on. A node is an address, or host, ip (perhaps empty) and port."""
        self.version, self.nodes = version, [_node(node) for node in nodes]

    def text(self):
        return f"{self.version}\n{' '.join(self.nodes)}\n".encode()

    def _answer(self, line):
        known = {OLD} if self.old else {NEW, OLD}
        if line not in known:
            return b"ERROR\r\n"
        if self.version is None:
            return b"END\r\n"
        head = b"CONFIG cluster" if line == NEW else b"VALUE AmazonElastiCache:cluster"
        text = self.text()
        return b"%b 0 %d\r\n%b\r\nEND\r\n" % (head, len(text), text)

    def _accept(self):
        for sock in accepted(self._listener):
            self._open.add(sock)
            in_thread(self._serve, sock)

    def _serve(self, sock):
        try:
            if self._tls:
                sock = self._tls.wrap_socket(sock, server_side=True)
            with sock.makefile("rb") as stream:
                for line in stream:
                    self.asked.append(line.strip())
                    answer = self._answer(line.strip())
                    if self.trouble and answer != b"ERROR\r\n":
                        answer = self.trouble(answer)
                    if answer is not None:
                        sock.sendall(answer)
                    if self.closes:
                        return
        except OSError:
            pass
        finally:
            self._open.discard(sock)
            sock.close()

    def stop(self):
        close(self._listener)
        for sock in list(self._open):
            sock.close()


def _node(node):
    if isinstance(node, str):
        host, port = node.rsplit(":", 1)
        return f"{host}|{host}|{port}"
    host, ip, port = node
    return f"{host}|{ip}|{port}"


LARGE = 100 << 20
"""Bytes of an answer that no list has."""


def _resized(change):
    """The answer with another length in its first line."""

    def trouble(answer):
        head, rest = answer.split(b"\r\n", 1)
        words = head.split(b" ")
        words[-1] = b"%d" % (int(words[-1]) + change)
        return b" ".join(words) + b"\r\n" + rest

    return trouble


def _around(text):
    """An answer of the right length around this text."""
    return b"CONFIG cluster 0 %d\r\n%b\r\nEND\r\n" % (len(text), text)


TROUBLES = {
    "silence": lambda answer: None,
    "END": lambda answer: b"END\r\n",
    "SERVER_ERROR": lambda answer: b"SERVER_ERROR out of memory\r\n",
    "cut": lambda answer: answer[:-10],
    "cut in the head": lambda answer: answer[:10],
    "no bytes": lambda answer: b"",
    "too short by one": _resized(-1),
    "too long by one": _resized(1),
    "a negative length": lambda answer: b"CONFIG cluster 0 -1\r\n\r\nEND\r\n",
    "a length of 100 digits": lambda answer: b"CONFIG cluster 0 %b\r\n" % (b"9" * 100),
    "no nodes": lambda answer: _around(b"9\n\n"),
    "no version": lambda answer: _around(b"x\na||1\n"),
    "a port of six digits": lambda answer: _around(b"9\na||112110\n"),
    "port 0": lambda answer: _around(b"9\na||0\n"),
    "a node twice": lambda answer: _around(b"9\na||1 a||1\n"),
    "a host with a slash": lambda answer: _around(b"9\na/b||1\n"),
    "HTTP": lambda answer: b"HTTP/1.1 400 Bad Request\r\n\r\n",
    "garbage": lambda answer: b"\xff" * 1000,
    "100 MiB": lambda answer: b"CONFIG cluster 0 %d\r\n%b\r\nEND\r\n" % (LARGE, b"x" * LARGE),
    "100 MiB in one line": lambda answer: b"x" * LARGE,
}
