"""MariaDB and MySQL with a data directory of their own."""

import pathlib
import sys
import tempfile

import pymysql
from pymysql.constants import CLIENT

from . import ports
from .program import Program
from .proxy import ROOT

sys.path.insert(0, str(ROOT / "wire" / "commands"))

import databases  # noqa: E402

# What makes a start quick and a server small. Nothing outlives a test.
QUICK = (
    "--innodb-buffer-pool-size=16M",
    "--innodb-flush-log-at-trx-commit=0",
    "--innodb-fast-shutdown=2",
    "--key-buffer-size=1M",
    "--performance-schema=OFF",
    # A status flag tells clients of slow statements, which a busy machine has at chance.
    "--long-query-time=86400",
    "--skip-name-resolve",
)


class Database(Program):
    """A server on a free port of 127.0.0.1 and on a Unix socket, with a user `root` without a password and an
    empty database `test`."""

    def __init__(self, kind, options=()):
        self._folder = tempfile.TemporaryDirectory()
        folder = pathlib.Path(self._folder.name)
        data, self.socket = folder / "data", str(folder / "socket")
        kind.make(data)
        address = ports.address()
        place = [f"--socket={self.socket}", f"--pid-file={folder}/pid"]
        # Statements write no file elsewhere.
        place += [
            f"--secure-file-priv={folder}",
            "--bind-address=127.0.0.1",
            f"--port={address.rsplit(':', 1)[1]}",
        ]
        super().__init__(kind.start(data, *databases.as_user(), *place, *QUICK, *options), address)

    def answers(self):
        try:
            self.connect().close()
        except pymysql.err.OperationalError as error:
            raise OSError(*error.args) from error
        return True

    def connect(self, **options):
        """A connection that bypasses the proxy. A text may have several statements."""
        options = {"user": "root", "database": "test", "charset": "utf8mb4", **options}
        return pymysql.connect(unix_socket=self.socket, client_flag=CLIENT.MULTI_STATEMENTS, **options)

    def run(self, *statements):
        """Runs these statements on a connection of their own."""
        with self.connect(autocommit=True) as direct:
            for statement in statements:
                direct.query(statement)

    def stop(self):
        super().stop()
        self._folder.cleanup()
