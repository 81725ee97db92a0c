"""The proxy as a process."""

import contextlib
import json
import os
import pathlib
import re
import signal
import subprocess
import urllib.error
import urllib.request

import yaml

from . import PATIENCE, number, ports, until
from .raw import Raw
from .watching import Watcher

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = os.environ.get("PROXIMA_BIN", str(ROOT / "target/quick/proxima"))
WATCHED = bool(os.environ.get("PROXIMA_WATCHED"))
"""Whether somebody watches each proxy, so that its requests come by a tap: a part of `make soak` sets it."""
TIMED = bool(os.environ.get("PROXIMA_TIMED"))
"""Whether each request of each proxy is slow, and so is timed: a part of `make soak` sets it."""


def environment():
    """The environment of the tests, without the variables that change the proxy's behaviour."""
    return {name: value for name, value in os.environ.items() if name not in ("HOST_IP", "RUST_LOG")}


class Program:
    """A started `proxima`, with any front door. Its log goes to a file."""

    def __init__(self, command, folder, addresses, admin=None):
        self.addresses = addresses
        self.address = addresses[0]
        self.admin = admin
        self._killed = False
        self._log = pathlib.Path(folder) / f"log.{number()}"
        with self._log.open("wb") as log:
            env = {**environment(), "STATE_DIRECTORY": str(folder)}
            self.process = subprocess.Popen(command, stdout=log, stderr=log, env=env)

    def log(self):
        """The log, without colours."""
        return re.sub(r"\x1b\[[0-9;]*m", "", self._log.read_text(errors="replace"))

    def entered(self):
        """Sockets that this thread makes meanwhile belong to the network of the program's clients."""
        return contextlib.nullcontext()

    def raw(self, listener=0, source=None):
        """A client of it; `source`: the address that it comes from."""
        return Raw(self.addresses[listener], source=source)

    def connects(self, listener=0):
        """Whether a client can connect."""
        try:
            self.raw(listener).close()
        except OSError:
            return False
        return True

    def wait_ready(self):
        def ready():
            assert self.process.poll() is None, f"ended with {self.process.returncode}:\n{self.log()}"
            return self.is_live() if self.admin else all(map(self.connects, range(len(self.addresses))))

        until(ready, "the proxy serves")
        return self

    def is_live(self):
        try:
            return self.http("/live") == (200, "live\n")
        except OSError:
            return False

    def http(self, path, method="GET", headers=None, body=None):
        """Status and text of a page of the admin port. A request that changes something has the header for
        that. The body is bytes."""
        if headers is None:
            headers = {} if method == "GET" else {"X-Proxima": "yes"}
        request = urllib.request.Request(f"http://{self.admin}{path}", body, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def metrics(self):
        """All samples of /metrics: {name: [(labels, value)]}, through the reference parser."""
        from prometheus_client.openmetrics.parser import text_string_to_metric_families

        samples = {}
        for family in text_string_to_metric_families(self.http("/metrics")[1]):
            for sample in family.samples:
                samples.setdefault(sample.name, []).append((sample.labels, sample.value))
        return samples

    def metric(self, name, /, **labels):
        """The sum of the samples that have these labels."""
        found = self.metrics().get(f"proxima_{name}", [])
        return sum(value for has, value in found if labels.items() <= has.items())

    def version(self):
        """The version of the running configuration."""
        [(labels, _)] = self.metrics()["proxima_config_info"]
        return labels["version"]

    def member(self, address, of=""):
        """What /members says of the server there; `of`: the address of a client."""
        path = f"/members?from={of}" if of else "/members"
        [found] = [row for row in json.loads(self.http(path)[1]) if row["address"] == address]
        return found

    def explain(self, key, command="get", listener=0, of=""):
        asked = f"/explain?key={key}&command={command}&listener={listener}"
        status, text = self.http(f"{asked}&from={of}" if of else asked)
        assert status == 200, text
        return text

    def memory(self, which="VmRSS"):
        """Bytes of resident memory now, or with `VmHWM` the most since the start."""
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(rf"^{which}:\s+(\d+) kB", status, re.M)[1]) * 1024

    def signal(self, number):
        self.process.send_signal(number)

    def wait(self):
        """Waits for the end and returns the exit code."""
        return self.process.wait(PATIENCE)

    def kill(self):
        """Ends the process as a crash does."""
        self.process.kill()
        self.process.wait(PATIENCE)
        self._killed = True

    def _waits(self):
        """What each thread waits for: its name, its state, and the kernel's function."""
        threads = []
        for task in pathlib.Path(f"/proc/{self.process.pid}/task").iterdir():
            name, state = re.search(r"\((.*)\) (\S)", (task / "stat").read_text()).groups()
            threads.append((name, state, (task / "wchan").read_text()))
        return threads

    def stop(self):
        """Ends the process at once, and fails if it had ended by itself or has panicked."""
        if self._killed:
            return
        code = self.process.poll()
        if code is None:
            self.signal(signal.SIGINT)
            try:
                code = self.process.wait(PATIENCE / 2)
            except subprocess.TimeoutExpired:
                waits = self._waits()
                self.process.kill()
                raise AssertionError(f"does not end: {waits}\n{self.log()[-20_000:]}") from None
        log = self.log()
        assert "panicked" not in log, log
        assert code == 0, f"ended with {code}:\n{log}"


class Proxy(Program):
    """`proxima run` with a configuration in YAML. The admin port is a free one unless the configuration names
    one.

    `before` is a command that runs the program.
    """

    def __init__(self, config, io, folder, arguments=(), before=()):
        folder = pathlib.Path(folder)
        admin = config.setdefault("admin", ports.address())
        admin = admin["address"] if isinstance(admin, dict) else admin
        self.file = folder / f"proxima-{number()}.yaml"
        self.config = config
        self.write(config)
        command = [*before, BINARY, "run", "--config", str(self.file), "--io", io, *arguments]
        addresses = [listener["address"] for listener in config["listeners"]]
        super().__init__(command, folder, addresses, admin)
        self.wait_ready()
        self._watcher = Watcher(self, "/watch?with=samples") if WATCHED else None

    def write(self, config):
        """Replaces the configuration file by renaming, as a careful operator does."""
        if TIMED and isinstance(config, dict):
            config = {"slow_requests": {"over": "1us", "keep": 1000, "keys": "plain"}, **config}
        text = config if isinstance(config, str) else yaml.safe_dump(config, sort_keys=False)
        new = self.file.with_suffix(".new")
        new.write_text(text)
        new.rename(self.file)

    def reload(self):
        """Status and text of POST /reload."""
        return self.http("/reload", "POST")


def config(route, pools=None, *more, **keys):
    """A configuration with one listener for each route, on free ports."""
    listeners = [{"address": ports.address(), "route": each} for each in (route, *more)]
    made = {"workers": 2, "listeners": listeners, **keys}
    if pools:
        made["pools"] = pools
    return made
