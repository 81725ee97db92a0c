"""Clients of a Galera pool that write, read and remember, so that what is wrong shows."""

import collections
import contextlib
import itertools
import threading
import time

import pymysql

from . import until
from .galera import rows

LOST = {0, 1180, 2003, 2006, 2013}
"""What a client has whose connection has ended, or whose server leaves its cluster in the midst of a commit.
It does not know then what became of its statement."""
REFUSED = {1040, 1041, 1047, 1053, 1105, 1205, 1213, 1290, 1317, 1927}
"""What a statement has that has changed nothing."""

PAUSE = 0.004
"""Seconds before each statement."""

WORDS = ("strict", "causal")
"""How fresh the reads of those are that only read: all see what this process has acknowledged."""

TABLES = (
    "CREATE TABLE log (id BIGINT PRIMARY KEY AUTO_INCREMENT, client INT, turn INT, KEY (client, turn))",
    "CREATE TABLE pairs (id BIGINT PRIMARY KEY AUTO_INCREMENT, client INT, turn INT, half INT)",
    "CREATE TABLE counters (client INT PRIMARY KEY, n INT)",
)


class Failed(Exception):
    """A statement had an error, of which it is known, or not, that it has changed nothing."""

    def __init__(self, number):
        self.number, self.is_in_doubt = number, number in LOST


class Pauses:
    """The longest time between two answers, to all clients of a kind, from the first one on."""

    def __init__(self):
        self._lock, self._last, self.longest = threading.Lock(), None, 0.0

    def note(self):
        with self._lock:
            now = time.monotonic()
            self.longest = max(self.longest, now - (self._last or now))
            self._last = now


class Witnesses:
    """Runs `writers` clients that write alone, as many that write in transactions, as many that read by each
    of `words`, and so many that connect for each read, until it is left. Each of them lets this time pass
    before a statement."""

    def __init__(self, door, writers=2, words=WORDS, newcomers=0, pause=PAUSE):
        self._door, self._pause, self._ended = door, pause, threading.Event()
        self.wrong, self.errors, self.texts = [], collections.Counter(), []
        self.errors_of = collections.Counter()
        self.pauses = {kind: Pauses() for kind in ("write", "transaction", "read")}
        self.acknowledged = collections.defaultdict(int)
        self._rows, self._refused = collections.defaultdict(set), collections.defaultdict(set)
        self._pairs, self._no_pairs = set(), set()
        self._added, self._maybe_added = collections.Counter(), collections.Counter()
        self.done = collections.Counter()
        # No number is used again, whatever became of it.
        self._turns = {number: itertools.count(1) for number in range(writers)}
        self._writers = range(writers)
        with door.connect() as client:
            for statement in TABLES:
                client.query(statement)
            for number in self._writers:
                client.query(f"INSERT INTO counters VALUES ({number}, 0)")
        loops = [(self._writes, number) for number in self._writers]
        loops += [(self._transacts, number) for number in self._writers]
        loops += [(self._reads, number, word) for number, word in itertools.product(self._writers, words)]
        loops += [(self._arrives, number % writers) for number in range(newcomers)]
        self._threads = [threading.Thread(target=self._guarded, args=loop) for loop in loops]

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self._ended.set()
        for thread in self._threads:
            thread.join()

    def _guarded(self, loop, *arguments):
        try:
            while not self._ended.is_set():
                with contextlib.suppress(Failed), self._connection(loop.__name__.strip("_")) as client:
                    loop(client, *arguments)
        except BaseException as error:
            self.wrong.append(f"{loop.__name__} has ended: {error!r}")
            raise

    @contextlib.contextmanager
    def _connection(self, kind):
        client = self._do(kind, self._door.connect)
        try:
            yield client
        finally:
            with contextlib.suppress(pymysql.err.MySQLError):
                client.close()

    def _do(self, kind, action, *arguments):
        """What the action returns. A moment before leaves the processors to others. An error is counted."""
        time.sleep(self._pause)
        try:
            return action(*arguments)
        except pymysql.err.MySQLError as error:
            number = error.args[0]
            if number not in LOST | REFUSED:
                self.wrong.append(f"{kind}: an error that is not documented: {error}")
            self.errors[kind, number] += 1
            self.errors_of[threading.current_thread().name] += 1
            self.texts.append(f"{kind}: {error}")
            # Whoever has an error at once tries again a little later.
            time.sleep(0.01)
            raise Failed(number) from error

    def _writes(self, client, number):
        """Adds rows and counts, and sees its own."""
        while not self._ended.is_set():
            turn = next(self._turns[number])
            try:
                self._do("writes", client.query, f"INSERT INTO log (client, turn) VALUES ({number}, {turn})")
            except Failed as failed:
                if not failed.is_in_doubt:
                    self._refused[number].add(turn)
                raise
            self._rows[number].add(turn)
            self.acknowledged[number] = turn
            self.pauses["write"].note()
            self.done["write"] += 1
            self._sees("writes", client, number, "session", acknowledged=turn)
            try:
                self._do("writes", client.query, f"UPDATE counters SET n = n + 1 WHERE client = {number}")
                self._added[number] += 1
            except Failed as failed:
                self._maybe_added[number] += failed.is_in_doubt
                raise

    def _transacts(self, client, number):
        """Adds the halves of pairs in transactions."""
        while not self._ended.is_set():
            turn = next(self._turns[number])
            is_over = False
            try:
                self._do("transacts", client.begin)
                for half in range(2):
                    text = f"INSERT INTO pairs (client, turn, half) VALUES ({number}, {turn}, {half})"
                    self._do("transacts", client.query, text)
                is_over = True
                self._do("transacts", client.commit)
            except Failed as failed:
                if not (is_over and failed.is_in_doubt):
                    self._no_pairs.add((number, turn))
                raise
            self._pairs.add((number, turn))
            self.pauses["transaction"].note()
            self.done["transaction"] += 1

    def _reads(self, client, number, word):
        """Sees what was acknowledged when the read began, and no less than before."""
        last = 0
        while not self._ended.is_set():
            last = self._sees("reads", client, number, word, last, self.acknowledged[number])
            self.pauses["read"].note()
            self.done["read"] += 1

    def _arrives(self, client, number):
        """Sees what was acknowledged, with the first statement of its connection."""
        self._sees("arrives", client, number, "strict", acknowledged=self.acknowledged[number])
        self.done["arrival"] += 1

    def _sees(self, kind, client, number, word, last=0, acknowledged=0):
        token = time.monotonic_ns()
        text = f"/* proxima: consistency={word} */ SELECT {token}, COALESCE(MAX(turn), 0) FROM log"
        [(told, turn)] = self._do(kind, rows, client, f"{text} WHERE client = {number}")
        if told != token:
            self.wrong.append(f"a {word} read had the reply of another one")
        if turn < acknowledged:
            self.wrong.append(f"a {word} read saw {turn}, and {acknowledged} was acknowledged")
        if turn < last:
            self.wrong.append(f"a {word} read saw {turn}, and the one before it {last}")
        return turn

    def compare(self, nodes):
        """Compares what each of these servers has with what clients were told."""
        for node in nodes:
            # One that has just joined does not answer at once.
            until(node.barrier, f"{node.name} has what the others have")
            with node.connect(self._door.account) as direct:
                stored = collections.Counter(rows(direct, "SELECT client, turn FROM log"))
                halves = collections.Counter(rows(direct, "SELECT client, turn FROM pairs"))
                counted = dict(rows(direct, "SELECT client, n FROM counters"))
            told = {(client, turn) for client, turns in self._rows.items() for turn in turns}
            refused = {(client, turn) for client, turns in self._refused.items() for turn in turns}
            checks = {
                "an acknowledged row is lost": told - set(stored),
                "a refused row is there": refused & set(stored),
                "a row is there twice": [row for row, count in stored.items() if count > 1],
                "an acknowledged pair is lost": self._pairs - set(halves),
                "a pair that was rolled back is there": self._no_pairs & set(halves),
                "a pair has another number of halves": [row for row, count in halves.items() if count != 2],
                "a counter is not what was counted": [
                    (client, n, self._added[client], self._maybe_added[client])
                    for client, n in counted.items()
                    if not 0 <= n - self._added[client] <= self._maybe_added[client]
                ],
            }
            self.wrong += [
                f"{node.name}: {what}: {list(found)[:5]}" for what, found in checks.items() if found
            ]

    def failed(self, *kinds):
        """The errors of clients of these kinds: how often each number."""
        found = collections.Counter()
        for (kind, number), count in self.errors.items():
            if kind in kinds:
                found[number] += count
        return dict(found)
