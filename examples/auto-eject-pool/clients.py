"""Clients that write and read through a balancer: `clients.py memcached|redis HOST:PORT`.

Prints a line for each request: `ok`, `repeated`, or the error that the client saw.

Half of the clients open a connection for each request. The others keep theirs. Like most libraries, they
connect anew when a kept connection has ended before any of the reply came, and ask again, once.
"""

import itertools
import random
import socket
import sys
import threading
import time

CLIENTS = 4
KEYS = 500
PAUSE = 0.02
PATIENCE = 10


class Gone(Exception):
    """The connection ended before the reply."""


class Memcached:
    def write(self, key, value):
        return b"set %b 0 0 %d\r\n%b\r\n" % (key, len(value), value)

    def read(self, key):
        return b"get %b\r\n" % key

    def reply(self, file):
        """The value or the word that the server answers. `None`: a miss."""
        line = line_of(file)
        if not line.startswith(b"VALUE "):
            return None if line == b"END" else line
        value = file.read(int(line.split()[3]) + 2)[:-2]
        line_of(file)
        return value

    stored = b"STORED"


class Redis:
    def write(self, key, value):
        return self._array(b"SET", key, value)

    def read(self, key):
        return self._array(b"GET", key)

    def reply(self, file):
        """The value or the word that the server answers. `None`: a miss."""
        line = line_of(file)
        if not line.startswith(b"$"):
            return line
        size = int(line[1:])
        return None if size < 0 else file.read(size + 2)[:-2]

    stored = b"+OK"

    def _array(self, *words):
        return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%b\r\n" % (len(word), word) for word in words)


def line_of(file):
    line = file.readline()
    if not line.endswith(b"\n"):
        raise Gone
    return line.rstrip(b"\r\n")


class Client:
    def __init__(self, protocol, address, keeps):
        self._protocol = protocol
        self._address = address
        self._keeps = keeps
        self._connection = None

    def outcome(self, number):
        """The outcome of one request, which is a write or a read."""
        key = b"{user:%d}:name" % random.randrange(KEYS)
        writes = number % 2 == 0
        request = self._protocol.write(key, key + b" %d" % number) if writes else self._protocol.read(key)
        try:
            answer, word = self._ask(request)
        except (Gone, OSError) as error:
            self._close()
            return f"no reply: {error}"
        is_good = answer == self._protocol.stored if writes else answer is None or answer.startswith(key)
        return word if is_good else answer.decode()

    def _ask(self, request):
        """The reply, and whether it was asked for once."""
        if self._connection:
            try:
                return self._exchange(request), "ok"
            except (Gone, OSError):
                self._close()
                return self._exchange(request), "repeated"
        return self._exchange(request), "ok"

    def _exchange(self, request):
        if not self._connection:
            self._connection = socket.create_connection(self._address, PATIENCE)
        self._connection.sendall(request)
        with self._connection.makefile("rb") as file:
            answer = self._protocol.reply(file)
        if not self._keeps:
            self._close()
        return answer

    def _close(self):
        if self._connection:
            self._connection.close()
        self._connection = None


def run(client):
    for number in itertools.count():
        # A line is written in one piece, as other threads write, too.
        sys.stdout.write(client.outcome(number) + "\n")
        sys.stdout.flush()
        time.sleep(random.uniform(0, 2 * PAUSE))


def main():
    protocol = {"memcached": Memcached, "redis": Redis}[sys.argv[1]]()
    host, port = sys.argv[2].split(":")
    for number in range(CLIENTS):
        client = Client(protocol, (host, int(port)), keeps=number % 2 == 0)
        threading.Thread(target=run, args=[client]).start()


main()
