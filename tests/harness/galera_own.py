"""A Galera cluster of one module of tests, whose servers are not as those that all processes share."""

import contextlib
import pathlib
import tempfile

from .galera import Cluster
from .galera_keeper import Cluster as Servers


class Own:
    """Keeps the servers in this process, as `galera.Keeper` has them kept for all. They end with it."""

    def __init__(self, folder, make):
        self._servers = Servers(make)
        try:
            self._servers.begin(folder, lambda: True)
        except BaseException:
            self.leave()
            raise
        self.nodes = self._servers.told()

    def ask(self, verb, number):
        return self._servers.do(verb, number)

    def leave(self):
        self._servers.kill()


@contextlib.contextmanager
def own(make):
    """A cluster whose servers `make` makes, each of its kind, its folder and its number."""
    with tempfile.TemporaryDirectory(prefix="galera-") as folder:
        # Servers run as another account.
        pathlib.Path(folder).chmod(0o755)
        cluster = Cluster(pathlib.Path(folder), lambda within: Own(within, make))
        try:
            yield cluster
        finally:
            cluster.leave()
