"""Two databases behind the proxy, one of which is read, and clients of theirs."""

import contextlib
import pathlib

import pymysql
import yaml
from pymysql.constants import CLIENT

from . import number, ports, until
from .mysql_raw import Twins

PASSWORDS = {"app": "secret", "other": "another secret", "hashed": "a third secret"}
"""The users of the servers and the listeners. Of `hashed` the proxy knows only a hash."""

MONITOR = "watches"
"""The password of the user `monitor`, as whom the proxy itself logs in."""

ADMINISTERED = "performance_schema", "sys", "information_schema", "mysql", "test"


def prepare(server):
    """Makes the users at a server."""
    for user, password in {**PASSWORDS, "monitor": MONITOR}.items():
        server.run(f"CREATE USER {user} IDENTIFIED BY '{password}'")
    server.run(*(f"GRANT ALL ON *.* TO {user}" for user in PASSWORDS))


def native_hash(server, user):
    """The hash of a user's password, as the server shows it."""
    with server.connect() as direct, direct.cursor() as cursor:
        cursor.execute("SELECT authentication_string FROM mysql.user WHERE user = %s", user)
        return cursor.fetchone()[0]


def made(folder, writer, reader, listeners=None, users=None, **keys):
    """A configuration in this folder with a route that reads from `reader`, and one listener for each of
    `listeners`, which says what it has beside the address and the route."""
    folder = pathlib.Path(folder)
    if users is None:
        users = {name: {"password": password} for name, password in PASSWORDS.items()}
        users["hashed"] = {"native_hash": native_hash(writer, "hashed")}
    file = folder / f"users-{number()}.yaml"
    file.write_text(yaml.safe_dump(users))
    (folder / "monitor").write_text(MONITOR)
    common = {"protocol": "mysql", "user": "monitor", "password_file": str(folder / "monitor")}
    return {
        "workers": 2,
        "listeners": [
            {"address": ports.address(), "protocol": "mysql", "route": "split", "users": str(file), **more}
            for more in listeners or [{}]
        ],
        "pools": {
            "writer": {"servers": [writer.address], **common},
            "readers": {"servers": [reader.address], **common},
        },
        "routes": {"split": {"by_operation": {"read": "readers", "default": "writer"}}},
        **keys,
    }


def clustered(folder, pair, nodes, galera=True, timeout="20s", workers=1, **listener):
    """A configuration in this folder for a cluster of these nodes, each of which stands before a server of
    `pair`. It has one listener, with these keys."""
    users = {name: {"password": PASSWORDS[name]} for name in ("app", "other")}
    config = made(folder, *pair, [{"route": "db", **listener}], users, workers=workers)
    pool = {**config["pools"]["writer"], "timeout": timeout, "galera": galera}
    del config["routes"]
    config["pools"] = {"db": {**pool, "servers": [node.address for node in nodes]}}
    return config


def connect(address, user="app", **options):
    """A connection to the proxy, or to a server at its port. A text may have several statements."""
    host, port = address.rsplit(":", 1)
    options = {"password": PASSWORDS.get(user), "charset": "utf8mb4", "autocommit": None, **options}
    flags = options.pop("client_flag", 0) | CLIENT.MULTI_STATEMENTS
    return pymysql.connect(host=host, port=int(port), user=user, client_flag=flags, **options)


def rows(connection, statement, arguments=None):
    """All rows of all results of a text."""
    with connection.cursor() as cursor:
        cursor.execute(statement, arguments)
        found = list(cursor.fetchall())
        while cursor.nextset():
            found += cursor.fetchall()
    return found


def value(connection, statement, arguments=None):
    """The only value of a result."""
    [[found]] = rows(connection, statement, arguments)
    return found


def error(connection, statement):
    """The number of the error that a statement has, or None."""
    try:
        rows(connection, statement)
    except pymysql.err.MySQLError as caught:
        return caught.args[0]
    return None


def users_of(server, user="app"):
    """The connections of a user at a server: their numbers and the statements that they run."""
    with server.connect() as direct:
        return rows(
            direct, "SELECT id, info FROM information_schema.processlist WHERE user = %s ORDER BY id", user
        )


def runs(server, part, user="app"):
    """Whether a statement with this part runs at the server."""
    return any(info and part in info for _, info in users_of(server, user))


def wait_for_members(proxy, *servers):
    """Waits until the proxy has reached these servers."""

    def are_up():
        return all(proxy.member(server.address)["state"] == "up" for server in servers)

    until(are_up, "the servers are up")


@contextlib.contextmanager
def schema(*servers):
    """A new schema at each of these servers, with a name that no other call in this process gets."""
    name = f"s{number()}"
    for server in servers:
        server.run(f"DROP DATABASE IF EXISTS {name}", f"CREATE DATABASE {name}")
    try:
        yield name
    finally:
        for server in servers:
            server.run(f"SET lock_wait_timeout = 20; DROP DATABASE {name}")


@contextlib.contextmanager
def telling(servers, answers, *objects):
    """A new schema at each of these servers, with these objects behind a table `who`, whose one row is the
    server's answer."""
    with schema(*servers) as name:
        for server, answer in zip(servers, answers):
            who = ("CREATE TABLE who (name VARCHAR(20))", f"INSERT INTO who VALUES ('{answer}')")
            server.run(f"USE {name}", *who, *objects)
        yield name


class Split:
    """A proxy over a `writer` and a `reader` that know nothing of each other. Its listeners serve everything,
    reads alone, and everything at the writer."""

    LISTENERS = ({}, {"writes": "rejected"}, {"reads": "writer"})

    def __init__(self, proxy, writer, reader):
        self.proxy, self.writer, self.reader = proxy, writer, reader
        self.address, self.only_reads, self.at_writer = proxy.addresses

    def connect(self, user="app", address=None, **options):
        return connect(address or self.address, user, **options)


class Beside:
    """A proxy over a server, and another server that is like the first one."""

    def __init__(self, proxy, behind, beside):
        self.proxy, self.behind, self.beside = proxy, behind, beside
        self.address = proxy.address

    def connect(self, **options):
        """Twin connections of the user `app`."""
        return Twins(self.address, self.beside.address, **options)

    def schema(self):
        return schema(self.behind, self.beside)
