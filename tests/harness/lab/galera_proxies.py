"""Proxies before the Galera cluster of the lab: a release of the chart without a cache."""

import base64
import json
import re

import yaml

from .. import until
from ..helm import CHART, PROGRAM
from ..proxy import ROOT
from .galera import MONITOR, NAME, PASSWORD, SPACE, USER
from .objects import is_ready
from .release import image

ADMIN = 9150
PORT = 3306
TOKEN = "0123456789abcdef" * 4
"""What orders need, as admin ports are open to other pods."""

WRITER = "db-1"
"""The server that takes writes where it can."""

EXAMPLE = ROOT / "examples/galera-smart-update"

SELECTED = "app.kubernetes.io/instance=proxima,app.kubernetes.io/component=db"


def _secret(name, **texts):
    data = {key: base64.b64encode(text.encode()).decode() for key, text in texts.items()}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": SPACE},
        "data": data,
    }


class Proxies:
    """So many proxies, on as many nodes as there are."""

    def __init__(self, lab, count=2):
        self._lab, self.count = lab, count
        self._file = lab.switch.folder / "proxies.yaml"
        users = f"{USER}: {{password: {PASSWORD}}}\n"
        lab.apply(_secret("users", **{"users.yaml": users, "monitor": f"{MONITOR}\n"}))
        lab.apply(_secret("token", token=TOKEN))
        self.values = yaml.safe_load((EXAMPLE / "values.yaml").read_text())
        galera = self.values["proxies"][NAME]["config"]["pools"][NAME]["galera"]
        # The first one by name would be the writer, and the last one of a roll, by chance as well.
        galera["writer"] = [WRITER]
        self.values["image"] = image(lab, "proxima")
        self.values["operator"]["enabled"] = False
        self.values["monitoring"] = {"enabled": False}
        self.values["admin"] = {"token": {"from": "secret", "secret": "token"}}
        self.scale(count)
        self.ready()

    def scale(self, count):
        """From now on there are so many proxies; waits for none."""
        self.count = count
        self.values["proxies"][NAME]["replicas"] = count
        self.install()

    def install(self, **values):
        """Installs or upgrades the release, with these values from now on."""
        self.values |= values
        self._file.write_text(yaml.safe_dump(self.values))
        client = [f"--kubeconfig={self._lab.plane.kubeconfig}", f"--namespace={SPACE}"]
        words = ["upgrade", "--install", "proxima", CHART, f"--values={self._file}"]
        self._lab.switch.run(PROGRAM, *client, *words)

    def ready(self):
        """Waits until all of them serve and none is about to end, and returns their pods."""
        return self._lab.ready(SELECTED, self.count, SPACE)

    def serving(self):
        """The pods of those that serve now."""
        return [pod for pod in self._lab.pods(SELECTED, SPACE) if is_ready(pod)]

    def addresses(self):
        """Where clients connect, a proxy each."""
        return [f"{pod['status']['podIP']}:{PORT}" for pod in self.ready()]

    def members(self, pod):
        """What a proxy says of each server."""
        [pool] = json.loads(self._lab.http(pod, ADMIN, f"/mysql?pool={NAME}")[1])["pools"]
        return pool["members"]

    def began(self, pod):
        """When the process of a proxy began."""
        page = self._lab.http(pod, ADMIN, "/metrics")[1]
        return re.search(r"^process_start_time_seconds (\S+)", page, re.M)[1]

    def writer(self):
        """Who takes writes, once all proxies say the same."""

        def named():
            found = set()
            for pod in self.ready():
                found.add(
                    next((each["name"] for each in self.members(pod) if each["role"] == "writer"), None)
                )
            return found.pop() if len(found) == 1 else None

        return until(named, "all proxies have one writer", every=0.05)

    def wait_for_all(self):
        """Waits until each proxy has all servers."""

        def complete():
            return all([each["role"] for each in self.members(pod)].count("out") == 0 for pod in self.ready())

        until(complete, "each proxy has all servers", every=0.1)
