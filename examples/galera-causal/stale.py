"""The stale test: clients write a row and at once read it. How often is it not there, and what does it take?

A way is how the application reaches the cluster: the address of its writes, and that of its reads. All ways
take turns, in several rounds, on one cluster.
"""

import contextlib
import dataclasses
import multiprocessing
import signal
import time

import pymysql

ROUNDS = 5
CLIENTS = 8
"""Each is a process of its own with one write or read at a time."""
PATIENCE = 60.0
"""Seconds after which a client that others wait for counts as lost."""

TABLE = "galera_causal"
MAKE = f"CREATE TABLE {TABLE} (id BIGINT PRIMARY KEY AUTO_INCREMENT, client INT)"
WHERE = (
    "SELECT VARIABLE_VALUE FROM information_schema.GLOBAL_VARIABLES WHERE VARIABLE_NAME = 'WSREP_NODE_NAME'"
)
"""A read that tells which server has answered it. MySQL does not have this table."""


@dataclasses.dataclass(frozen=True)
class Account:
    """Whom clients log in as, and the schema of their table."""

    user: str
    password: str
    schema: str

    def connect(self, address):
        host, port = address.rsplit(":", 1)
        account = {"user": self.user, "password": self.password, "database": self.schema}
        return pymysql.connect(host=host, port=int(port), autocommit=True, **account)


@dataclasses.dataclass(frozen=True)
class Way:
    """How an application reaches the cluster."""

    name: str
    write: str
    """The address of its writes."""
    reads: tuple[str, ...] = ()
    """The addresses of its reads, one for each client in turn. Without them clients write and read on one
    connection."""
    waits: bool = True
    """Whether reads promise to see what was written before."""
    set_by_client: bool = False
    """Whether the application makes servers wait by `wsrep_sync_wait`."""

    def connect(self, account, number):
        """The connections of a client for writes and for reads."""
        writes = reads = account.connect(self.write)
        if self.reads:
            reads = account.connect(self.reads[number % len(self.reads)])
        if self.set_by_client:
            for connection in {writes, reads}:
                connection.query("SET SESSION wsrep_sync_wait = 3")
        return writes, reads


@dataclasses.dataclass
class Part:
    """What a client has seen in a round, or all clients together. Times are in seconds."""

    begun: float
    ended: float
    writes: list[float]
    reads: list[float]
    stale: int
    servers: set[str]
    """Names of the servers that have answered reads."""

    def add(self, other):
        self.begun, self.ended = min(self.begun, other.begun), max(self.ended, other.ended)
        self.writes += other.writes
        self.reads += other.reads
        self.stale += other.stale
        self.servers |= other.servers

    def rate(self):
        """How many pairs of a write and a read there were a second."""
        return len(self.reads) / (self.ended - self.begun)


def rows(connection, statement):
    with connection.cursor() as cursor:
        cursor.execute(statement)
        return cursor.fetchall()


class Client:
    """One of the clients, in its process. It keeps its connections, as applications do."""

    def __init__(self, account, number, all_ready):
        self._account, self._number, self._all_ready = account, number, all_ready
        self._connections = {}

    def take_part(self, way, pairs):
        """Its part in a round, which begins when all clients are ready."""
        if way not in self._connections:
            self._connections[way] = way.connect(self._account, self._number)
        writes, reads = self._connections[way]
        part = Part(0, 0, [], [], 0, server_of(reads))
        self._all_ready.wait(PATIENCE)
        part.begun = time.perf_counter()
        for _ in range(pairs):
            before = time.perf_counter()
            writes.query(f"INSERT INTO {TABLE} (client) VALUES ({self._number})")
            between = time.perf_counter()
            found = rows(reads, f"SELECT client FROM {TABLE} WHERE id = {writes.insert_id()}")
            after = time.perf_counter()
            if found not in ((), ((self._number,),)):
                raise ValueError(f"{way.name}: {found} instead of {self._number}")
            part.writes.append(between - before)
            part.reads.append(after - between)
            part.stale += not found
        part.ended = time.perf_counter()
        return part


def become_client(account, numbers, all_ready):
    """Called in each process of the pool. It is told to end by the demo, and not by who ends the demo."""
    global _client, _abort
    _client, _abort = Client(account, numbers.get(), all_ready), all_ready.abort
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


def take_part(task):
    """Called once in each process for each round, as those that are ready wait for the others."""
    try:
        return _client.take_part(*task)
    except BaseException:
        _abort()
        raise


def server_of(reads):
    """The name of the server that answers a read, as a set, which is empty where none tells it."""
    with contextlib.suppress(pymysql.err.MySQLError):
        return {rows(reads, WHERE)[0][0]}
    return set()


def measure(ways, account, reads):
    """The rounds of each way. Each has so many reads, or some more."""
    pairs = -(-reads // (ROUNDS * CLIENTS))
    fork = multiprocessing.get_context("fork")
    found = {way: [] for way in ways}
    numbers = fork.SimpleQueue()
    for number in range(CLIENTS):
        numbers.put(number)
    with fork.Pool(CLIENTS, become_client, (account, numbers, fork.Barrier(CLIENTS))) as pool:

        def run(way, pairs):
            tasks = [(way, pairs)] * CLIENTS
            first, *others = pool.imap_unordered(take_part, tasks)
            for other in others:
                first.add(other)
            return first

        for way in ways:
            # The first connections of a way and its first statements cost more than those behind them.
            run(way, min(pairs, 10))
        for turn in range(ROUNDS):
            begin = turn % len(ways)
            for way in ways[begin:] + ways[:begin]:
                found[way].append(run(way, pairs))
    return found
