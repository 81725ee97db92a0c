"""mcrouter's front door as a process, and the node-local configuration that is well known."""

import json
import pathlib

from . import number, ports
from .proxy import BINARY, Program

REQUESTS = {
    "get": b"get k\r\n",
    "gets": b"gets k\r\n",
    "gat": b"gat 0 k\r\n",
    "gats": b"gats 0 k\r\n",
    "set": b"set k 0 0 1\r\nx\r\n",
    "add": b"add k 0 0 1\r\nx\r\n",
    "replace": b"replace k 0 0 1\r\nx\r\n",
    "append": b"append k 0 0 1\r\nx\r\n",
    "prepend": b"prepend k 0 0 1\r\nx\r\n",
    "cas": b"cas k 0 0 1 7\r\nx\r\n",
    "delete": b"delete k\r\n",
    "incr": b"incr k 1\r\n",
    "decr": b"decr k 1\r\n",
    "touch": b"touch k 0\r\n",
}
"""A request of each command that has a key."""


def node_local(servers):
    """The configuration as it is written on a node, with the node's own server first."""
    listed = ",\n        ".join(f'"{server.address}"' for server in servers)
    return f"""{{
  // written by the node's agent
  "pools": {{
    "A": {{
      "servers": [
        {listed}, /* this node's first */
      ]
    }}
  }},
  "route": {{
    "type": "OperationSelectorRoute",
    "operation_policies": {{
      "add": "AllSyncRoute|Pool|A",
      "delete": "AllSyncRoute|Pool|A",
      "get": "FailoverRoute|Pool|A",
      "set": "AllSyncRoute|Pool|A"
    }}
  }}
}}
"""


def migrate(start, interval, old="old", new="new"):
    """A MigrateRoute from one pool to another from second `start` on."""
    return {
        "type": "MigrateRoute",
        "from": f"PoolRoute|{old}",
        "to": f"PoolRoute|{new}",
        "start_time": start,
        "interval": interval,
    }


def written(route, pools=None, **more):
    """The text of a configuration. A pool is a list of servers and addresses, or an object as in the file."""

    def listed(pool):
        return {"servers": [getattr(server, "address", server) for server in pool]}

    pools = {name: listed(pool) if isinstance(pool, list) else pool for name, pool in (pools or {}).items()}
    return json.dumps({"pools": pools, "route": route, **more})


class Router(Program):
    """`mcrouter --listen-addresses=IP --port=N --config-file=F --stats-root=D`, or `proxima mcrouter`."""

    def __init__(self, text, folder, io, *arguments, program=(BINARY, "mcrouter"), port=None):
        self.file = pathlib.Path(folder) / f"mcrouter-{number()}.json"
        self.write(text)
        port, admin = port or ports.free(), ports.address()
        command = [*program, "--listen-addresses=127.0.0.1", f"--port={port}", f"--config-file={self.file}"]
        command += [f"--stats-root={folder}", f"--async-dir={folder}/spool", f"--admin={admin}", f"--io={io}"]
        command += arguments
        super().__init__(command, folder, [f"127.0.0.1:{port}"], admin)
        self.wait_ready()

    def write(self, text):
        """Writes the file in place, as the node's scripts do. A reader may find half of it."""
        self.file.write_text(text)


def of_pool(*addresses, route="PoolRoute|A", **keys):
    """A configuration of one pool."""
    return {"pools": {"A": {"servers": list(addresses), **keys}}, "route": route}


def asked(client, request):
    """The whole answer to a request of `stats` or `get`."""
    client.send(request)
    lines = [client.line()]
    while not lines[-1].startswith((b"END", b"CLIENT_ERROR")):
        lines.append(client.line())
    return b"".join(lines)


def stats(client, group=""):
    """The figures of a group."""
    lines = asked(client, f"stats {group}\r\n".encode()).decode().splitlines()
    assert lines.pop() == "END"
    rows = [line.split(" ", 2) for line in lines]
    assert all(word == "STAT" for word, *_ in rows)
    return {name: value for _, name, value in rows}


def told(client, request):
    """The value that is read from `__mcrouter__.REQUEST`."""
    key = b"__mcrouter__." + request.encode()
    answer = asked(client, b"get " + key + b"\r\n")
    head, rest = answer.split(b"\r\n", 1)
    value = rest.removesuffix(b"\r\nEND\r\n")
    assert head == b"VALUE %s 0 %d" % (key, len(value))
    return value.decode()


def stored(server, keys):
    with server.raw() as direct:
        return [key for key in keys if direct.get(key) is not None]
