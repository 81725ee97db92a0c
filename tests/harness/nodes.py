"""Three nodes with a memcached each, and the proxy of the first node."""

from . import until
from .proxy import config

HOSTS = ["127.0.0.1", "127.0.0.2", "127.0.0.3"]
TIMEOUT = 0.25
"""Seconds until the proxy gives a request up. Everything else is left at its defaults."""

ROUTES = {"replicated": "cache"}
for _rule in ("all_sync", "all_majority", "all_fastest"):
    ROUTES[_rule] = {"by_operation": {"read": {"nearest": "cache"}, "default": {_rule: "cache"}}}
ROUTES["failover"] = {"failover": "cache"}


class Nodes:
    """`members` are the servers as the proxy addresses them; the first is its own."""

    def __init__(self, servers, members, route, start, folder):
        self.servers, self.members = servers, members
        self._start, self._file = start, folder / "servers"
        self.list(members)
        replicated = route == "replicated"
        pool = {"file": str(self._file), "timeout": f"{TIMEOUT}s", "replicated": replicated}
        self._config = config(ROUTES[route], {"cache": pool})
        if replicated:
            self._config["state"] = str(folder / "state.json")
        self.start_proxy()
        until(self.are_well, "all are read")

    def start_proxy(self):
        self.proxy = self._start(self._config, "--node-address", HOSTS[0])

    def list(self, members):
        """Makes these the pool's servers from now on."""
        new = self._file.with_suffix(".new")
        new.write_text("".join(f"{member.address}\n" for member in members))
        new.rename(self._file)

    def are_well(self):
        """Whether every member is up, and current where it is a copy."""
        try:
            rows = [self.proxy.member(member.address) for member in self.members]
        except (OSError, ValueError):
            # The proxy does not run, or does not know one of them.
            return False
        return all(
            row["state"] == "up" and row.get("copy", {}).get("state", "current") == "current" for row in rows
        )
