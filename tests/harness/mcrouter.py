"""mcrouter's front door as a process, and the node-local configuration that is well known."""

import json
import pathlib

from . import number, ports
from .proxy import BINARY, Program


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
