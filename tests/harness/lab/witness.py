"""Clients that judge what a release serves."""

import collections
import datetime
import threading
import time

from .. import until
from ..raw import Closed
from .release import read, store

REQUESTS = 20
"""Turns of a client on one connection."""

ENDED = ("ConnectionRefusedError", "ConnectionResetError", "BrokenPipeError")
"""What a client sees of a proxy that is not there. Nobody answers with an error or does not answer."""

OF_SERVER = "SERVER_ERROR unix:/run/memcached/memcached.sock: "
"""Begins the answer to a request that is under way to a server when that dies."""

REFUSED = (
    "SERVER_ERROR this proxy has no lease",
    "SERVER_ERROR this proxy was removed from its fleet",
    "SERVER_ERROR no copy of this pool can take a write now",
)
"""How a proxy refuses a write while it, or the peer that decides on the key, has no lease."""


class Witness:
    """A client on each node that writes and reads, through the address of the Service: what it reads is never
    older than what any of them was told is stored. A connection may end between two requests. Writes that a
    proxy has refused because it had no lease are in `refused`, all other errors in `errors`."""

    def __init__(self, release, nodes):
        self._release, self._ended = release, threading.Event()
        self.wrong, self.errors, self.refused, self.done, self.slowest = [], [], [], 0, 0.0
        self._stored = {}
        self._lock = threading.Lock()
        self._threads = [threading.Thread(target=self._run, args=(node,), daemon=True) for node in nodes]

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        self.more()
        return self

    def __exit__(self, *_):
        self._ended.set()
        for thread in self._threads:
            thread.join()

    def __str__(self):
        kinds = collections.Counter(f"{node}: {error[:110]}" for node, error, _ in self.errors + self.refused)
        seen = f"{self.done} turns, slowest {self.slowest:.2f} s, stale {len(self.wrong)}"
        return f"{seen}, errors {dict(kinds)}"

    def more(self, count=200):
        goal = self.done + count
        until(lambda: self.done >= goal or self.wrong, "they go on")

    def answered(self, but=None):
        """Errors but those of connections that are refused or end, and those with this text."""
        answered = [each for each in self.errors if not each[1].startswith(ENDED)]
        return [each for each in answered if but is None or but not in each[1]]

    def _run(self, node):
        turn = 0
        while not self._ended.is_set():
            try:
                with self._release.client(node) as client:
                    # A connection stays where it was made: only new ones follow what has changed.
                    for _ in range(REQUESTS):
                        turn += 1
                        self._step(client, node, turn)
            except Closed as closed:
                # Between two requests it is no error.
                if closed.args[0]:
                    self._failed(node, str(closed))
            except (OSError, AssertionError) as error:
                self._failed(node, repr(error))
                time.sleep(0.05)

    def _failed(self, node, error):
        now = datetime.datetime.now(datetime.UTC)
        failures = self.refused if any(text in error for text in REFUSED) else self.errors
        failures.append((node, error, f"{now:%H:%M:%S.%f}"))

    def _step(self, client, node, turn):
        key, begun = b"of-" + node.encode(), time.monotonic()
        answer = store(client, key, b"%d" % turn)
        assert answer == b"STORED\r\n", b"a write: " + answer
        with self._lock:
            self._stored[key] = turn
        for other in list(self._stored):
            with self._lock:
                least = self._stored[other]
            found = read(client, other)
            if found is not None and int(found) < least:
                self.wrong.append((node, other, int(found), least))
        self.done += 1
        self.slowest = max(self.slowest, time.monotonic() - begun)
        time.sleep(0.002)
