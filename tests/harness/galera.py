"""A Galera cluster of three servers, which all processes of one run of pytest share."""

import contextlib
import fcntl
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys

import pymysql
from pymysql.constants import CLIENT

from . import number, until
from .galera_node import PROVIDER
from .mysql import databases

HARNESS = pathlib.Path(__file__).parent


def why_not():
    """Why there can be no cluster here, or None."""
    needs = {"mariadbd": databases.MARIADBD, "galera-4": PROVIDER.exists(), "rsync": shutil.which("rsync")}
    missing = [name for name, found in needs.items() if not found]
    return f"{', '.join(missing)} missing: scripts/prepare.sh installs them" if missing else None


class Keeper:
    """A connection to the process that has started the servers (`galera_keeper`)."""

    def __init__(self, folder):
        self._path, self._log = folder / "galera", folder / "galera.log"
        with (folder / "galera.starting").open("w") as lock:
            # One process starts the cluster, and others wait for it.
            fcntl.flock(lock, fcntl.LOCK_EX)
            self.nodes = self._join() or self._begin()

    def _join(self):
        """What the keeper tells, if there is one. One that is about to end does not answer."""
        self._connection = socket.socket(socket.AF_UNIX)
        try:
            self._connection.connect(str(self._path))
            return self._answer()
        except (FileNotFoundError, ConnectionError):
            self._connection.close()
            return None

    def _begin(self):
        self._connection, theirs = socket.socketpair()
        command = [sys.executable, "-m", "harness.galera_keeper", self._path, str(theirs.fileno())]
        with theirs, self._log.open("w") as log:
            # A process group of its own: what interrupts pytest at a terminal does not reach it.
            self._process = subprocess.Popen(
                command,
                cwd=HARNESS.parent,
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        return self._answer()

    def _answer(self):
        answer = self._connection.makefile().readline()
        if not answer:
            raise ConnectionResetError(f"the cluster has ended: {self._log.read_text()[-5000:]}")
        return json.loads(answer)

    def ask(self, *words):
        """What it answers, once it has done this."""
        self._connection.sendall(json.dumps(words).encode() + b"\n")
        return self._answer()

    def leave(self):
        """Leaves the cluster, and waits until it has ended if nobody else uses it."""
        self._connection.shutdown(socket.SHUT_WR)
        self._connection.recv(1)
        self._connection.close()


class Node:
    """A server of the cluster."""

    def __init__(self, keeper, index):
        self._keeper, self._index = keeper, index
        self.name, host, self.port, self.socket, self.log = keeper.nodes[index]
        self.count = len(keeper.nodes)
        self.address = f"{host}:{self.port}"

    def _do(self, verb):
        return self._keeper.ask(verb, self._index)

    def is_running(self):
        return self._do("is_running")

    def kill(self):
        self._do("kill")

    def freeze(self):
        """Stops the server until `thaw`."""
        self._do("freeze")

    def thaw(self):
        self._do("thaw")

    def terminate(self):
        """Asks the server to end well, and does not wait for it."""
        self._do("terminate")

    def stop(self):
        """Ends the server well."""
        self.terminate()
        until(lambda: not self.is_running(), f"{self.name} has ended")

    def start(self):
        """Starts the server again, which then joins the others."""
        self._do("start")

    def forget(self):
        """While it is stopped: its next start takes over all data of another, or begins a new cluster."""
        self._do("forget")

    def connect(self, account=None, **options):
        """A connection that bypasses the proxy: as `root`, or as this account with its schema."""
        who = {"user": "root"}
        if account:
            who = {"user": account.name, "password": account.password, "database": account.name}
        usual = {"charset": "utf8mb4", "autocommit": True, "client_flag": CLIENT.MULTI_STATEMENTS}
        # A Unix socket is there whatever the server's network is and does.
        return pymysql.connect(**{**usual, **who, "unix_socket": self.socket, **options})

    def run(self, *statements):
        """Runs these statements as `root`, on a connection of their own."""
        with self.connect() as direct:
            for statement in statements:
                direct.query(statement)

    @contextlib.contextmanager
    def held_back(self):
        """Takes no write of the other servers meanwhile, and says that all is well."""
        with self.connect() as direct:
            direct.query("FLUSH TABLES WITH READ LOCK")
            try:
                yield
            finally:
                direct.query("UNLOCK TABLES")

    def status(self, name):
        """A word of SHOW STATUS, or None where the server does not answer."""
        with contextlib.suppress(pymysql.err.MySQLError), self.connect() as direct:
            return rows(direct, f"SHOW STATUS LIKE 'wsrep_{name}'")[0][1]

    def barrier(self):
        """Waits until the server has what was written at any of them before. False: it could not."""
        try:
            with self.connect() as direct:
                direct.query("SET SESSION wsrep_sync_wait = 1")
                direct.query("SELECT 1")
        except pymysql.err.MySQLError:
            return False
        return True

    def is_synced(self):
        """Whether it serves, beside all others."""
        if not self.is_running():
            return False
        size, state = self.status("cluster_size"), self.status("local_state_comment")
        # A server that was frozen says so for some time after it was evicted, but cannot wait for the others.
        return (size, state) == (str(self.count), "Synced") and self.barrier()


def rows(connection, statement):
    """What a statement answers."""
    with connection.cursor() as cursor:
        cursor.execute(statement)
        return cursor.fetchall()


class Account:
    """A schema and a user who may do all in it, both of this name."""

    def __init__(self, cluster):
        self._cluster = cluster
        self.name = f"test_{os.getpid()}_{number()}"
        self.password = "secret"
        make = f"CREATE USER {self.name} IDENTIFIED BY '{self.password}'"
        grant = f"GRANT ALL ON {self.name}.* TO {self.name}"
        cluster.nodes[0].run(f"CREATE DATABASE {self.name}", make, grant)
        for node in cluster.nodes:
            assert node.barrier(), f"{node.name} knows the account"

    def drop(self):
        self._cluster.nodes[0].run(f"DROP DATABASE {self.name}", f"DROP USER {self.name}")


class Cluster:
    """The servers, as one process of pytest sees them. `keep` finds who keeps them."""

    def __init__(self, folder, keep=Keeper):
        self._keeper = keep(folder)
        self.account = None
        self._use = (folder / "galera.use").open("w")
        self.nodes = [Node(self._keeper, index) for index in range(len(self._keeper.nodes))]

    @contextlib.contextmanager
    def used(self, alone=False):
        """A test has the cluster with an account of its own, beside others or alone. One that is alone may
        break the cluster."""
        fcntl.flock(self._use, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        try:
            self.account = Account(self)
            yield self
            if alone:
                self.repair()
            self.account.drop()
        finally:
            fcntl.flock(self._use, fcntl.LOCK_UN)

    def repair(self):
        """Starts the servers that have ended or are about to, and waits until all of them serve."""

        def is_back(node):
            # None is synced before all are there, also those behind it.
            for other in self.nodes:
                if not other.is_running():
                    other.start()
            return node.is_synced()

        for node in self.nodes:
            if node.is_running():
                node.thaw()
        for node in self.nodes:
            until(lambda: is_back(node), f"{node.name} is back: {node.log}", every=0.1)

    def wait_synced(self):
        for node in self.nodes:
            until(node.is_synced, f"{node.name} is synced: {node.log}", every=0.1)

    def leave(self):
        self._use.close()
        self._keeper.leave()
