#!/usr/bin/env python3
"""The MariaDB of this system, and the MariaDB 11.8, MySQL 9.7 and MySQL Router 9.7 of other Debian releases,
which are unpacked as the servers of `servers.py` are.

    ./databases.py                   # all of them, into target/servers; fetched once

A server's data has a user `root` without a password and an empty database `test`.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "captures"))
import debian
from debian import Unavailable

_SBIN = os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin", "/sbin"))
MARIADBD = os.environ.get("MARIADBD") or shutil.which("mariadbd", path=_SBIN)


def as_user():
    """What a server must be told that we run as root: it refuses to otherwise."""
    return ["--user=root"] if os.geteuid() == 0 else []


class Server:
    """How a server is started, and how its data is made."""

    def __init__(self, command, options):
        self._command, self._options = command, options

    def start(self, data, *options):
        """The words that start it with this data directory."""
        return [*self._command, *self.places(data), *self._options, *options]

    def places(self, data):
        """Where it writes. A server that starts removes temporary tables that it finds, so that each has a
        place of its own for them."""
        return [f"--datadir={data}", f"--tmpdir={data.parent}"]

    def make(self, data):
        """Makes a data directory."""
        raise NotImplementedError


class MariaDB(Server):
    """A MariaDB, of which `places` say where its parts are."""

    def __init__(self, program, install, places=()):
        self._install = [install, "--no-defaults", *places]
        # Files of the usual size make starts and copies slow.
        super().__init__([program, "--no-defaults", *places], ["--innodb-log-file-size=8M"])

    def make(self, data):
        options = ["--auth-root-authentication-method=normal", "--skip-test-db", *self._options]
        debian.run(*self._install, *as_user(), *self.places(data), *options)
        (data / "test").mkdir()


class MySQL(Server):
    """A MySQL below `root`, which was not installed."""

    def __init__(self, root):
        share = root / "usr/share/mysql"
        places = [f"--basedir={root}/usr", f"--plugin-dir={root}/usr/lib/mysql/plugin"]
        places += [f"--lc-messages-dir={share}", f"--character-sets-dir={share}/charsets"]
        command = [*debian.loader(root), str(root / "usr/sbin/mysqld"), "--no-defaults", *places]
        options = ["--innodb-redo-log-capacity=32M", "--disable-log-bin", "--mysqlx=OFF"]
        super().__init__(command, [*options, "--secure-file-priv=NULL"])

    def make(self, data):
        with tempfile.NamedTemporaryFile("w", suffix=".sql") as first:
            first.write("CREATE DATABASE test;\n")
            first.flush()
            debian.run(*self.start(data, "--initialize-insecure", f"--init-file={first.name}", *as_user()))


class Unpacked:
    """A server whose data was made once and is copied from then on. To make it takes longer than a start."""

    def __init__(self, server, folder):
        self._server, self._data = server, folder / "data"
        self.start = server.start

    def prepare(self):
        """Makes the data that is copied."""
        if not self._data.exists():
            new = self._data.with_name("making")
            shutil.rmtree(new, ignore_errors=True)
            self._server.make(new)
            new.rename(self._data)

    def make(self, data):
        """Makes a data directory."""
        shutil.copytree(self._data, data)


def installed():
    """MariaDB of this system."""
    install = shutil.which("mariadb-install-db", path=_SBIN)
    if not MARIADBD or not install:
        raise Unavailable("mariadbd is missing: scripts/prepare.sh installs it")
    return MariaDB(MARIADBD, install)


def _mariadb(root):
    # The program that makes the data starts all of these by their names.
    for program in ("usr/sbin/mariadbd", "usr/bin/my_print_defaults", "usr/bin/resolveip"):
        debian.wrap(root, program)
    share = root / "usr/share/mariadb"
    places = [f"--basedir={root}/usr", f"--plugin-dir={root}/usr/lib/mysql/plugin"]
    places += [f"--lc-messages-dir={share}", f"--character-sets-dir={share}/charsets"]
    return MariaDB(str(root / "usr/sbin/mariadbd"), str(root / "usr/bin/mariadb-install-db"), places)


OTHERS = {
    "mariadb118": ("trixie", "11.8", ("mariadb-server-core", "mariadb-client-core"), _mariadb),
    "mysql97": ("sid", "9.7", ("mysql-server-core",), MySQL),
}
"""Servers of other releases: suite, version, packages, and what knows how they are started."""


def folder(name):
    return debian.TARGET / "servers" / name


def is_here(name):
    """Whether this server was fetched and can be started at once."""
    return (folder(name) / "data").exists()


def other(name):
    """A server of another release, which is fetched once."""
    suite, version, packages, server = OTHERS[name]
    root = debian.unpacked(folder(name), suite, packages, version)
    found = Unpacked(server(root), folder(name))
    found.prepare()
    return found


ROUTER = "mysqlrouter97"


def router():
    """MySQL Router, which is fetched once. Others start it by its name."""
    root = debian.unpacked(folder(ROUTER), "sid", ("mysql-router",), "9.7")
    debian.wrap(root, "usr/bin/mysqlrouter", "usr/lib/mysql-router")
    return root / "usr/bin/mysqlrouter"


def command(name):
    """The words that start one of the programs that were unpacked."""
    return [router()] if name == ROUTER else other(name).start(pathlib.Path("DATA"))


if __name__ == "__main__":
    for name in (*OTHERS, ROUTER):
        try:
            print(name, *command(name))
        except (Unavailable, subprocess.TimeoutExpired, OSError) as error:
            print(f"no {name} here: {error}")
