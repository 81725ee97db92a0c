"""A client that orders the same at several proxies before one cluster, as an operator does."""

import json

from . import until


class Orderer:
    """Orders of one name at these doors. Each call returns what each of them answers."""

    def __init__(self, doors, name="me", pool="db", time="30s"):
        self._doors, self._time = doors, time
        self._path = f"/pools/{pool}/orders/{name}"
        self.held = []
        """For how long each proxy has held its writes in each move, in ms."""

    def _ask(self, door, method, wish=None):
        body = None if wish is None else json.dumps(wish).encode()
        status, text = door.proxy.http(self._path, method, body=body)
        assert status == 200, text
        return json.loads(text)

    def put(self, **wish):
        return [self._ask(door, "PUT", {"for": self._time, **wish}) for door in self._doors]

    def end(self):
        return [self._ask(door, "DELETE") for door in self._doors]

    def told(self):
        return [self._ask(door, "GET") for door in self._doors]

    def move(self, to, drain=()):
        """Has the member with this name take the writes of all at once."""
        wish = {"drain": list(drain)}
        self.put(hold=True, **wish)
        until(lambda: all(told["quiet"] for told in self.told()), "all are quiet", every=0.005)
        self.put(hold=True, writer=to, **wish)
        until(lambda: all(self._has_all(told, to) for told in self.told()), "it has all", every=0.005)
        answers = self.put(writer=to, **wish)
        self.held += [told["longest_hold_ms"] for told in answers]
        until(lambda: all(told["writer"] == to for told in self.told()), "it takes the writes", every=0.005)

    @staticmethod
    def _has_all(told, to):
        [barrier] = [row["barrier"] for row in told["members"] if row["name"] == to]
        return barrier == "passed"
