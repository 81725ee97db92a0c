"""Clients that judge what a release serves."""

import threading
import time

from .. import until
from ..raw import Closed
from .release import read, stored

REQUESTS = 20
"""Turns of a client on one connection."""


class Witness:
    """A client on each node that writes and reads, through the address of the Service: what it reads is never
    older than what any of them was told is stored. A connection may end between two requests."""

    def __init__(self, release, nodes):
        self._release, self._ended = release, threading.Event()
        self.wrong, self.errors, self.done = [], [], 0
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

    def more(self, count=200):
        goal = self.done + count
        until(lambda: self.done >= goal or self.wrong, "they go on")

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
                    self.errors.append((node, str(closed)))
            except (OSError, AssertionError) as error:
                self.errors.append((node, repr(error)))
                time.sleep(0.05)

    def _step(self, client, node, turn):
        key = b"of-" + node.encode()
        if stored(client, key, b"%d" % turn):
            with self._lock:
                self._stored[key] = turn
        for other in list(self._stored):
            with self._lock:
                least = self._stored[other]
            found = read(client, other)
            if found is not None and int(found) < least:
                self.wrong.append((node, other, int(found), least))
        self.done += 1
        time.sleep(0.002)
