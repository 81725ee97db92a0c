"""Servers behind the proxy: real memcached, and one that answers as a test decides."""

import os
import pwd
import shutil
import socket

from . import ports
from .listening import accepted, close, in_thread
from .program import Program
from .raw import Raw, connect

MEMCACHED = os.environ.get("MEMCACHED", shutil.which("memcached") or "/usr/bin/memcached")


class Memcached(Program):
    """A memcached on a free port of `host`, or on the given port. `before` is a command that runs it.
    `socket` is the path of a Unix socket to be used instead of a port."""

    def __init__(
        self,
        host="127.0.0.1",
        port=None,
        threads=1,
        memory=64,
        item=None,
        options=(),
        program=(MEMCACHED,),
        before=(),
        socket=None,
    ):
        address = f"unix:{socket}" if socket else ports.address(host, port)
        place = ["-s", socket, "-a", "777"] if socket else ["-l", host, "-p", address.rsplit(":", 1)[1]]
        command = [*before, *program, *place, "-U", "0", "-t", str(threads), "-m", str(memory)]
        if item:
            command += ["-I", item]
        if os.geteuid() == 0:
            command += ["-u", pwd.getpwnam("nobody").pw_name]
        super().__init__([*command, *options], address)

    def answers(self):
        connect(self.address).close()
        return True

    def raw(self):
        """A connection that bypasses the proxy."""
        return Raw(self.address)

    def stat(self, name):
        with self.raw() as direct:
            return int(direct.stats()[name])

    def get(self, key):
        with self.raw() as direct:
            return direct.get(key)

    def set(self, key, value):
        with self.raw() as direct:
            direct.set(key, value)


class Scripted:
    """A server in this process. `talk(sock)` is called for each connection, in a thread of its own.

    The first question is for its version, which it answers with `version`. With None, `talk` sees that
    question, too.
    """

    def __init__(self, talk, version=b"VERSION 1.6.18\r\n"):
        self._talk = talk
        self._version = version
        self._listener = socket.create_server(("127.0.0.1", ports.free()))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self.connections = 0
        self._open = []
        in_thread(self._accept)

    def _accept(self):
        for sock in accepted(self._listener):
            self.connections += 1
            self._open.append(sock)
            in_thread(self._serve, sock)

    def _serve(self, sock):
        try:
            question = b"version\r\n"
            if self._version and sock.recv(len(question), socket.MSG_PEEK) == question:
                sock.recv(len(question))
                sock.sendall(self._version)
            self._talk(sock)
        except OSError:
            pass
        finally:
            sock.close()

    def stop(self):
        close(self._listener)
        for sock in self._open:
            sock.close()


def answering(answer):
    """A `talk` for `Scripted` that sends `answer` whenever bytes come."""

    def talk(sock):
        while sock.recv(65536):
            sock.sendall(answer)

    return talk
