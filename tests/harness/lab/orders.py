"""Orders to proxies, and a roll by them: what an operator does, in its simplest form."""

import http.client
import json
from concurrent.futures import ThreadPoolExecutor

from .. import PATIENCE, until
from .galera import PODS, is_of
from .galera_proxies import ADMIN, TOKEN

LIFE = "30s"
"""An order ends after this time unless it is repeated."""

ALL = ("writer", "reader")
"""Roles of a member that is online."""


class Orders:
    """What one client asks of all proxies: the answers are those of all of them."""

    def __init__(self, lab, proxies, name="roll", pool="db"):
        self._lab, self._proxies = lab, proxies
        self._all = f"/pools/{pool}/orders"
        self._path = f"{self._all}/{name}"

    def put(self, **wish):
        """The whole wish, which replaces the one before."""
        return self._ask("PUT", self._path, {**wish, "for": LIFE})

    def told(self):
        """What they answer to whoever orders nothing."""
        return self._ask("GET", self._all)

    def end(self):
        self._ask("DELETE", self._path)

    def until(self, condition, what, **wish):
        """Repeats the wish until the condition holds of each answer, and returns the answers."""
        seen = []

        def holds():
            seen[:] = self.put(**wish)
            return all(map(condition, seen))

        try:
            until(holds, what, every=0.02)
        except AssertionError as error:
            error.add_note(json.dumps(seen))
            raise
        return seen

    def _ask(self, method, path, body=None):
        pods = self._proxies.serving()
        with ThreadPoolExecutor(len(pods)) as threads:
            return list(threads.map(lambda pod: self._ask_one(pod, method, path, body), pods))

    def _ask_one(self, pod, method, path, body):
        headers = {"X-Proxima": "yes", "Authorization": f"Bearer {TOKEN}"}
        headers["Content-Type"] = "application/json"
        with self._lab.switch.entered():
            client = http.client.HTTPConnection(pod["status"]["podIP"], ADMIN, timeout=PATIENCE)
            try:
                client.request(method, path, json.dumps(body) if body else None, headers)
                reply = client.getresponse()
                text = reply.read().decode()
            finally:
                client.close()
        assert reply.status == 200, f"{pod['metadata']['name']}: {reply.status} {text}"
        return json.loads(text)


def member(answer, name):
    """What a proxy says of the server in this pod; an empty map: nothing."""
    return next((each for each in answer["members"] if each["pod"] == name), {})


def is_left(answer, name):
    """Whether no session keeps a connection to the server."""
    return member(answer, name).get("sessions") == 0


def is_online(answer, pod):
    """Whether the proxy asks the server in this very pod, which has all that was written before it came."""
    found = member(answer, pod["metadata"]["name"])
    return (
        found.get("uid") == pod["metadata"]["uid"]
        and found["role"] in ALL
        and found["online"]
        and found["barrier"] == "passed"
        and found["barrier_ms"] <= found["role_ms"]
    )


class Roll:
    """A roll of the cluster, in which no client is to see an error."""

    def __init__(self, galera, orders):
        self._galera, self._orders = galera, orders
        self.holds, self.order = [], []

    def run(self, revision):
        """Replaces each pod that is of another revision: readers first, from the highest number down."""
        pods = self._galera.pods()
        outdated = [name for name in reversed(PODS) if not is_of(pods[name], revision)]
        before = self._writer()
        for name in outdated:
            if name != before:
                self._replace(name)
        if before in outdated:
            self._move(next(name for name in PODS if name != before))
            self._replace(before, writer=self._writer())
            self._move(before)
        self._orders.end()

    def _writer(self):
        """Who takes writes, which all proxies say."""
        [name] = {answer["writer"] for answer in self._orders.told()}
        return name

    def _replace(self, name, **wish):
        pod = self._galera.pods()[name]
        self._orders.until(lambda answer: is_left(answer, name), f"{name} is left", **wish, drain=[name])
        assert self._galera.evict(pod) == 201
        self.order.append(name)
        new = self._galera.replaced(pod)
        # The drain was of the former pod. A proxy that has come meanwhile would take it for the new one.
        self._orders.until(lambda answer: is_online(answer, new), f"{name} is online", **wish)

    def _move(self, name):
        """Another server takes the writes, at all proxies together."""
        ask = self._orders.until
        ask(lambda answer: answer["quiet"], "all are quiet", hold=True)
        wish = {"hold": True, "writer": name}
        ask(lambda answer: member(answer, name)["barrier"] == "passed", f"{name} has all", **wish)
        answers = ask(lambda answer: answer["writer"] == name, f"{name} takes writes", writer=name)
        self.holds.append(max(answer["longest_hold_ms"] for answer in answers))
