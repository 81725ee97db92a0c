"""MariaDB with a data directory of its own."""

import os
import pathlib
import shutil
import subprocess
import tempfile

import pymysql
from pymysql.constants import CLIENT

from . import PATIENCE, ports
from .program import Program

_SBIN = os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin", "/sbin"))
MARIADBD = os.environ.get("MARIADBD", shutil.which("mariadbd", path=_SBIN))

# What makes a start quick and a server small. Nothing outlives a test.
_OPTIONS = (
    "--innodb-buffer-pool-size=16M",
    "--innodb-log-file-size=8M",
    "--innodb-flush-log-at-trx-commit=0",
    "--innodb-fast-shutdown=2",
    "--key-buffer-size=1M",
    "--performance-schema=OFF",
    "--skip-name-resolve",
)


def _user():
    """The server refuses to run as root unless it is told to."""
    return ["--user=root"] if os.geteuid() == 0 else []


class MariaDB(Program):
    """A server on a free port of 127.0.0.1 and on a Unix socket, with a user `root` without a password and an
    empty database `test`."""

    def __init__(self, options=()):
        self._folder = tempfile.TemporaryDirectory()
        folder = pathlib.Path(self._folder.name)
        data, self.socket = folder / "data", str(folder / "socket")
        install = [shutil.which("mariadb-install-db", path=_SBIN), "--no-defaults", *_user()]
        install += [f"--datadir={data}", "--auth-root-authentication-method=normal", "--skip-test-db"]
        subprocess.run(install, check=True, capture_output=True, timeout=PATIENCE)
        (data / "test").mkdir(exist_ok=True)
        address = ports.address()
        place = [f"--datadir={data}", f"--socket={self.socket}", f"--pid-file={folder}/pid"]
        # Statements write no file elsewhere.
        place += [
            f"--secure-file-priv={folder}",
            "--bind-address=127.0.0.1",
            f"--port={address.rsplit(':', 1)[1]}",
        ]
        super().__init__([MARIADBD, "--no-defaults", *_user(), *place, *_OPTIONS, *options], address)

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
