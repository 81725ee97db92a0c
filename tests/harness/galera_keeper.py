"""The process that keeps a Galera cluster for all processes of one run of pytest.

    python -m harness.galera_keeper PATH DESCRIPTOR

It starts the cluster, and then does what its users ask for through the Unix socket PATH. The one that has
started it is connected already, through DESCRIPTOR. It ends the cluster when no user is left, and so however
they end: the kernel closes the connections of a process that was killed. The servers are ended by the kernel
if this process is.
"""

import contextlib
import json
import pathlib
import select
import shutil
import signal
import socket
import sys
import tempfile

from . import PATIENCE, until
from .galera_node import GaleraNode
from .mysql import databases

NODES = 3


class Cluster:
    """The servers of a cluster. `make` makes each of them of its kind, its folder and its number."""

    def __init__(self, make=lambda kind, folder, _: GaleraNode(kind, folder)):
        self._make, self.nodes = make, []

    def begin(self, folder, is_wanted):
        """Starts them in folders below this one, as long as somebody waits for them."""
        self._is_wanted = is_wanted
        kind = databases.installed()
        template = GaleraNode(kind, folder / "template")
        kind.make(template.data)
        template.give()
        self.nodes = [template]
        # It gives all servers one state. One that joins then asks for what it lacks, and not for all data.
        self._first(template)
        template.terminate()
        template.process.wait(PATIENCE)
        self.nodes = [self._make(kind, folder / f"node-{number}", number) for number in range(NODES)]
        for node in self.nodes:
            shutil.copytree(template.data, node.data)
            node.give()
        first, *others = self.nodes
        self._first(first)
        # One after the other: two that join at once need several rounds, and more time, to agree.
        for node in others:
            self.start(node)
            self._wait(node)

    def _first(self, node):
        node.start([])
        self._wait(node)

    def _wait(self, node):
        def is_synced():
            assert self._is_wanted(), "nobody waits for the cluster any longer"
            return node.is_synced()

        until(is_synced, f"{node.data} is synced", every=0.05)

    def start(self, node):
        """Starts a server, which joins the others. If none of them runs, it begins the cluster again."""
        others = [other for other in self.nodes if other is not node]
        is_first = not any(other.is_running() for other in others)
        node.start([] if is_first else [other.group for other in others])

    def told(self):
        """What a user has to know of each server."""
        return [
            [node.data.parent.name, node.serving, node.port, str(node.socket), str(node.log)]
            for node in self.nodes
        ]

    def do(self, verb, number):
        """What a user asks for."""
        node = self.nodes[number]
        if verb == "start":
            return self.start(node)
        return getattr(node, verb)()

    def kill(self):
        for node in self.nodes:
            node.kill()


class User:
    """A connection of a process of tests, which is told of the servers first."""

    def __init__(self, connection, cluster):
        self._connection, self._cluster = connection, cluster
        self._file = connection.makefile("rw")
        self._say(cluster.told())

    def fileno(self):
        return self._connection.fileno()

    def _say(self, answer):
        # One that has gone is noticed at its next request.
        with contextlib.suppress(OSError):
            print(json.dumps(answer), file=self._file, flush=True)

    def is_served(self):
        """Does what it asks for. False: it has gone."""
        with contextlib.suppress(OSError):
            if request := self._file.readline():
                self._say(self._cluster.do(*json.loads(request)))
                return True
        return False

    def close(self):
        with contextlib.suppress(OSError):
            self._file.close()
        self._connection.close()


def serve(cluster, path, first):
    """Answers users until none is left, and returns the last one."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        users = [User(first, cluster)]
        while True:
            for ready in select.select([listener, *users], [], [])[0]:
                if ready is listener:
                    users.append(User(listener.accept()[0], cluster))
                elif not ready.is_served():
                    users.remove(ready)
                    if not users:
                        # Who has connected meanwhile sees its end, and starts another cluster.
                        path.unlink()
                        return ready
                    ready.close()


def main(path, descriptor):
    # Whoever interrupts pytest does not end this process, but its users.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    first = socket.socket(fileno=int(descriptor))
    cluster = Cluster()
    with tempfile.TemporaryDirectory(prefix="galera-") as folder:
        # Servers run as another account.
        pathlib.Path(folder).chmod(0o755)
        try:
            # It says nothing before it was answered, so that what comes is the end of its connection.
            cluster.begin(pathlib.Path(folder), lambda: not select.select([first], [], [], 0)[0])
            last = serve(cluster, pathlib.Path(path), first)
        finally:
            cluster.kill()
    last.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
