"""Clients that check every byte of their replies while a test does something else."""

import asyncio
import itertools
import threading
import time

from . import PATIENCE

_names = itertools.count()


class Wrong(Exception):
    """A reply that cannot belong to this request."""


class Load:
    """Opens `clients` connections, each with keys of its own, which set and get at `rate` requests a second
    in all.

    A value is `key|sequence|padding`. It shows whether a reply belongs to another client, another key or an
    older write. Each round is one pipeline: a set, a get of the same key, and a get of two other keys.

    A `tolerant` load counts errors and misses and does not fail for them, for tests in which a server dies.
    `refused` counts the errors of writes. A `forgiving` load also counts values that were replaced before, as
    `stale`. Wrong replies always fail the test.
    """

    def __init__(self, addresses, clients=10, rate=500, keys=4, padding=100, tolerant=False, forgiving=False):
        self.addresses = [addresses] if isinstance(addresses, str) else list(addresses)
        self.clients, self.rate, self.keys = clients, rate, keys
        self.tolerant, self.forgiving = tolerant or forgiving, forgiving
        self._padding = b"x" * padding
        self.replies = 0
        self.errors, self.wrong, self.misses, self.refused = [], [], 0, 0
        self.stale, self.failed = 0, 0.0
        self.known = {}
        self.slowest = 0.0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), daemon=True)

    def __enter__(self):
        self._thread.start()
        self.after(self.clients)
        return self

    def __exit__(self, kind, *_):
        self._stop.set()
        self._thread.join(PATIENCE)
        if kind is None:
            self.check()

    def check(self):
        """Fails if any client has seen something that it should not have."""
        assert not self.wrong, self.wrong[:5]
        assert self.replies > 0
        if not self.tolerant:
            assert not self.errors, (len(self.errors), self.errors[:5])
            assert not self.misses, f"{self.misses} misses"

    def after(self, replies):
        """Waits until this many more replies have come."""
        goal = self.replies + replies
        end = time.monotonic() + PATIENCE * 0.9
        while self.replies < goal:
            assert self._thread.is_alive() and time.monotonic() < end, (
                self.replies,
                self.errors[:5],
                self.wrong[:5],
            )
            time.sleep(0.01)

    async def _run(self):
        await asyncio.gather(*(self._client(number) for number in range(self.clients)))

    async def _client(self, number):
        name = b"load%d-%d" % (next(_names), number)
        address = self.addresses[number % len(self.addresses)]
        # Each key has the sequence that was acknowledged last and the one that was sent last.
        known = [[0, 0] for _ in range(self.keys)]
        self.known |= {b"%b:%d" % (name, key): each for key, each in enumerate(known)}
        pause = 4 * self.clients / self.rate
        streams = None
        for sequence in itertools.count(1):
            if self._stop.is_set():
                break
            begun = time.monotonic()
            errors = len(self.errors)
            try:
                streams = streams or await _open(address)
                async with asyncio.timeout(PATIENCE * 0.9):
                    await self._round(streams, name, known, sequence)
            except Wrong as wrong:
                self.wrong.append((name, sequence, str(wrong)))
                streams = _close(streams)
            except (OSError, EOFError, TimeoutError) as error:
                self.errors.append((name, sequence, repr(error)))
                streams = _close(streams)
            took = time.monotonic() - begun
            if len(self.errors) > errors:
                self.failed = time.monotonic()
            self.slowest = max(self.slowest, took)
            await asyncio.sleep(max(pause - took, 0.001))
        _close(streams)

    async def _round(self, streams, name, known, sequence):
        reader, writer = streams
        own = sequence % self.keys
        asked = [own, (own + 1) % self.keys, (own + 2) % self.keys]
        keys = [b"%b:%d" % (name, key) for key in asked]
        value = b"%b|%d|%b" % (keys[0], sequence, self._padding)
        known[own][1] = sequence
        writer.write(
            b"set %b 0 0 %d\r\n%b\r\nget %b\r\nget %b %b\r\n"
            % (keys[0], len(value), value, keys[0], keys[1], keys[2])
        )
        stored = await reader.readuntil(b"\r\n")
        if stored == b"STORED\r\n":
            known[own][0] = sequence
        elif stored.startswith(b"SERVER_ERROR "):
            self.errors.append((name, sequence, stored))
            self.refused += 1
        else:
            raise Wrong(f"to a set: {stored!r}")
        self.replies += 1
        for wanted in (asked[:1], asked[1:]):
            await self._values(reader, name, {b"%b:%d" % (name, key): known[key] for key in wanted}, sequence)
            self.replies += 1

    async def _values(self, reader, name, wanted, sequence):
        """Reads and checks the reply to a get of these keys, in their order."""
        left = list(wanted)
        while True:
            head = await reader.readuntil(b"\r\n")
            if head == b"END\r\n":
                break
            if head.startswith(b"SERVER_ERROR "):
                self.errors.append((name, sequence, head))
                return
            words = head.split()
            if words[:1] != [b"VALUE"] or words[1] not in left:
                raise Wrong(f"to a get of {list(wanted)}: {head!r}")
            self._missed(left[: left.index(words[1])], wanted)
            left = left[left.index(words[1]) + 1 :]
            body = await reader.readexactly(int(words[3]) + 2)
            key, found, padding = body.removesuffix(b"\r\n").split(b"|")
            acknowledged, sent = wanted[words[1]]
            stale = int(found) < acknowledged
            self.stale += stale
            if (
                key != words[1]
                or padding != self._padding
                or int(found) > sent
                or stale
                and not self.forgiving
            ):
                raise Wrong(f"{words[1]!r}, written {acknowledged} to {sent}, is {body!r}")
        self._missed(left, wanted)

    def _missed(self, keys, wanted):
        self.misses += sum(wanted[key][0] > 0 for key in keys)


async def _open(address):
    if address.startswith("unix:"):
        return await asyncio.open_unix_connection(address.removeprefix("unix:"))
    host, port = address.rsplit(":", 1)
    return await asyncio.open_connection(host.strip("[]"), int(port))


def _close(streams):
    if streams:
        streams[1].close()
