"""A proxy before a Galera cluster, with a listener for each way to serve it."""

import contextlib
import json
import threading
from concurrent.futures import ThreadPoolExecutor

import pymysql

from . import ports
from .galera import rows

MONITOR = "monitor_of_proxima"
"""The account with which the proxy asks servers itself. It may log in, and nothing else."""

WHO = "SELECT VARIABLE_VALUE FROM information_schema.GLOBAL_VARIABLES WHERE VARIABLE_NAME = 'WSREP_NODE_NAME'"
"""A read that tells which server has answered it."""


class Door:
    """The addresses of a proxy before a cluster: one that splits, one for reads alone, one with old
    reads, and one whose users the servers know."""

    def __init__(self, proxy, account):
        self.proxy, self.account = proxy, account

    def connect(self, listener=0, **options):
        host, port = self.proxy.addresses[listener].rsplit(":", 1)
        usual = {"user": self.account.name, "password": self.account.password, "database": self.account.name}
        usual |= {"charset": "utf8mb4", "autocommit": True}
        with self.proxy.entered():
            return pymysql.connect(host=host, port=int(port), **{**usual, **options})

    def who(self, statement=WHO, **options):
        """The server that answers a session's first read."""
        with self.connect(**options) as client:
            return rows(client, statement)[0][0]

    def writer(self):
        """The server that takes writes."""
        return self.who(f"{WHO} FOR UPDATE")

    def members(self):
        """What `/mysql` says of each server."""
        [pool] = json.loads(self.proxy.http("/mysql?pool=db")[1])["pools"]
        return pool["members"]

    def in_use(self):
        """The number of connections to servers that sessions have."""
        return sum(member["in_use"] for member in self.members())


def begin(proxima, folder, cluster, **options):
    """The same as `another`, with the table `t`, which has one row: 1, 0."""
    door = another(proxima, folder, cluster, **options)
    with door.connect() as client:
        client.query("CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, a INT)")
        client.query("INSERT INTO t VALUES (1, 0)")
    return door


def another(proxima, folder, cluster, workers=2, listeners=(), users=(), source=None, **keys):
    """Starts a proxy before this cluster, with these listeners behind those of `Door`, these users beside its
    own (names and passwords) and these keys of its pool, whose servers `source` names."""
    cluster.nodes[0].run(f"CREATE USER IF NOT EXISTS {MONITOR} IDENTIFIED BY 'monitor'")
    for node in cluster.nodes:
        assert node.barrier(), f"{node.name} knows the account"
    account = cluster.account
    known = [(account.name, account.password), *users]
    lines = [f"{name}: {{password: {password}}}\n" for name, password in known]
    (folder / "users.yaml").write_text("".join(lines))
    (folder / "monitor").write_text("monitor\n")
    listener = {"protocol": "mysql", "route": "db", "users": "users.yaml"}
    usual = ({}, {"writes": "rejected"}, {"consistency": "eventual"}, {"users": "server"})
    listeners = [{"address": ports.address(), **listener, **more} for more in (*usual, *listeners)]
    # On a busy machine servers have much time to answer.
    pool = {"protocol": "mysql", "user": MONITOR, "password_file": "monitor", "timeout": "20s"}
    source = source or {"servers": [node.address for node in cluster.nodes]}
    pool |= {**source, "galera": True, **keys}
    proxy = proxima({"workers": workers, "listeners": listeners, "pools": {"db": pool}})
    return Door(proxy, account)


@contextlib.contextmanager
def clients(door, work, count):
    """Clients that do this all the time, and each tell what they have done. The first error ends the test."""
    ended, done = threading.Event(), []

    def go_on(number):
        with door.connect() as client:
            turn = 0
            while not ended.is_set():
                done.append(work(client, number, turn))
                turn += 1

    with ThreadPoolExecutor(count) as threads:
        running = [threads.submit(go_on, number) for number in range(count)]
        try:
            yield done
        finally:
            ended.set()
        for client in running:
            client.result()
