"""Writers and readers of versions, and what readers may not see.

Each key has one writer, whose values are versions that only grow. A read may return no version that is older
than the newest one that was acknowledged before it began, and nothing of what a flush had ended by then.
"""

import random
import threading
import time

from .raw import Closed


class Key:
    """What is known of one key. Every change of these numbers is one assignment, which threads see whole."""

    def __init__(self, name):
        self.name = name
        self.version = 0
        """The newest version that was sent."""
        self.acknowledged = 0
        """The newest that was acknowledged; a deleted key has a version, too."""
        self.removed = 0
        """The newest version that was sent to be a removal."""
        self.ended = 0
        """What a flush has ended: versions up to this may not be read any more."""


class History:
    """Keys, their writers and readers, and what went wrong. `may_miss`: others may remove keys: a miss is
    never too old."""

    def __init__(self, keys, seconds, may_miss=False):
        self._may_miss = may_miss
        self.keys = [Key(f"k{number}") for number in range(keys)]
        self.stale = []
        self.writes = self.reads = self.missed = self.errors = 0
        self.flushes = 0
        self._lock = threading.Lock()
        self._end = time.monotonic() + seconds
        self._threads = []
        self._failures = []

    def is_over(self):
        return time.monotonic() >= self._end

    def run(self, target, *arguments):
        """Runs `target` in a thread until it returns."""

        def guarded():
            try:
                target(*arguments)
            except Exception as failure:  # noqa: BLE001 - whatever it is, the test has to fail with it
                self._failures.append(failure)

        thread = threading.Thread(target=guarded, daemon=True)
        self._threads.append(thread)
        thread.start()

    def join(self):
        """Waits for all threads, and fails with the first failure."""
        for thread in self._threads:
            thread.join(60)
            assert not thread.is_alive(), "a thread does not end"
        if self._failures:
            raise self._failures[0]

    def count(self, **numbers):
        with self._lock:
            for name, number in numbers.items():
                setattr(self, name, getattr(self, name) + number)

    def write(self, connect, numbers, write, abandons=False):
        """A client that writes these keys. `write(client, key, version)` returns whether the key is there
        afterwards, and raises where nobody knows what became of it.

        `abandons`: a key whose change has no answer is written no more. A server may execute it late, which
        no cache is to blame for.
        """
        chance = random.Random(numbers[0])
        mine = [self.keys[number] for number in numbers]
        key = None
        while not self.is_over() and mine:
            try:
                with connect() as client:
                    while not self.is_over() and mine:
                        key = chance.choice(mine)
                        self._write_one(client, key, write)
                        time.sleep(chance.random() * 0.004)
            except (OSError, Closed, Refused):
                self.count(errors=1)
                if abandons and key in mine:
                    mine.remove(key)
                time.sleep(0.02)

    def _write_one(self, client, key, write):
        key.version += 1
        version = key.version
        removes = write.removes(version)
        if removes:
            key.removed = version
        write(client, key.name, version, removes)
        key.acknowledged = version
        self.count(writes=1)

    def flush(self, connect, flush, pause):
        """A client that flushes everything now and then."""
        with connect() as client:
            while not self.is_over():
                time.sleep(pause)
                before = [key.acknowledged for key in self.keys]
                self.count(flushes=1)
                flush(client)
                for key, version in zip(self.keys, before, strict=True):
                    key.ended = max(key.ended, version)

    def read(self, connect, seed, read):
        """A client that reads. `read(client, name)` returns a version, or None."""
        chance = random.Random(seed)
        while not self.is_over():
            try:
                with connect() as client:
                    while not self.is_over():
                        # Most readers meet at few keys.
                        number = min(chance.randrange(len(self.keys)) for _ in range(2))
                        self._read_one(client, self.keys[number], read)
            except (OSError, Closed, Refused):
                self.count(errors=1)
                time.sleep(0.02)

    def _read_one(self, client, key, read):
        need, ended = key.acknowledged, key.ended
        version = read(client, key.name)
        if version is None:
            # Missing is what a removal has left that may be the newest, or a flush.
            may_miss = self._may_miss or self.flushes
            is_stale = not may_miss and key.removed < need
            self.count(missed=1)
        else:
            is_stale = version < need or version <= ended
        self.count(reads=1)
        if is_stale:
            self.stale.append((key.name, version, need, ended))

    def check(self):
        """No read was stale, and there was enough to see."""
        self.join()
        assert not self.stale, f"{len(self.stale)} of {self.reads} reads are stale, as {self.stale[:3]}"
        assert self.writes > 20 and self.reads > 200, (self.writes, self.reads, self.errors)


class Refused(Exception):
    """The proxy answered with an error."""


class Write:
    """How a key is changed: `change(client, name, version, removes)`. Each `removing`-th one removes it."""

    def __init__(self, change, removing=7):
        self._change = change
        self._removing = removing

    def removes(self, version):
        return bool(self._removing) and version % self._removing == 0

    def __call__(self, client, name, version, removes):
        self._change(client, name, version, removes)
