"""`proxima-bench hostile`, which attacks the proxy and reports what well-behaved clients notice."""

import json
import pathlib
import subprocess
import threading
import time

from . import SOAK, ports
from .judge import BENCH
from .proxy import environment

ONCE = 120 if SOAK else 10
"""Seconds for which all attacks last together."""
EACH = 30 if SOAK else 0
"""Seconds for which each attack lasts alone; 0: the attacks only run together."""


class Report:
    """The result of one run: its JSON, its exit code, and its text for people."""

    def __init__(self, code, data, words):
        self.code, self.data, self.words = code, data, words

    def control(self):
        """The longest time in seconds that a request directly to a server took."""
        return max(round["longest_stalls"]["control_seconds"] for round in self.data["rounds"])


def attack(address, folder, *more, seconds):
    """Runs the attack to its end."""
    file = pathlib.Path(folder) / f"hostile-{ports.free()}.json"
    command = [
        BENCH,
        "hostile",
        "--quiet",
        "--address",
        address,
        "--duration",
        f"{seconds}s",
        "--json",
        str(file),
        *more,
    ]
    done = subprocess.run(command, capture_output=True, text=True, env=environment())
    assert file.exists(), done.stderr
    return Report(done.returncode, json.loads(file.read_text()), done.stdout[-20_000:])


class Connections:
    """Watches how many connections a memcached has in addition to those that it has now."""

    def __init__(self, server):
        self._client = server.raw()
        self._before = self._now()
        self.most = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _now(self):
        return int(self._client.stats()["curr_connections"])

    def _watch(self):
        while not self._over.wait(0.1):
            self.most = max(self.most, self._now() - self._before)

    def stop(self):
        self._over.set()
        self._thread.join()
        self._client.close()


class Live:
    """Asks the admin port continuously whether the process lives, as a kubelet does."""

    def __init__(self, proxy):
        self._proxy = proxy
        self.longest = 0.0
        self.failures = []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._ask, daemon=True)
        self._thread.start()

    def _ask(self):
        while not self._over.wait(0.2):
            begun = time.monotonic()
            try:
                if not self._proxy.is_live():
                    self.failures.append("not live")
            except OSError as error:
                self.failures.append(str(error))
            self.longest = max(self.longest, time.monotonic() - begun)

    def stop(self):
        self._over.set()
        self._thread.join()


class Halting:
    """Stops a server half of the time. It then looks like a server behind a link that is too slow for its
    requests."""

    def __init__(self, server, seconds=0.2):
        self._server, self._seconds = server, seconds
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._halt, daemon=True)
        self._thread.start()

    def _halt(self):
        while not self._over.is_set():
            self._server.freeze()
            time.sleep(self._seconds)
            self._server.thaw()
            time.sleep(self._seconds)

    def stop(self):
        self._over.set()
        self._thread.join()
