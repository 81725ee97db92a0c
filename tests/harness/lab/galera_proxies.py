"""Proxies before the Galera cluster of the lab: a release of the chart without a cache."""

import json

import yaml

from ..helm import CHART, PROGRAM
from .galera import MONITOR, NAME, PASSWORD, SPACE, USER
from .release import image

ADMIN = 9150
PORT = 3306
SERVICE = "proxies"
"""The Service of the admin ports."""

_SELECTED = "app.kubernetes.io/instance=proxima,app.kubernetes.io/component=db"
_FILES = "/etc/proxima/users"


class Proxies:
    """A proxy on each node."""

    def __init__(self, lab):
        self._lab = lab
        self._file = lab.switch.folder / "proxies.yaml"
        secret = {"users.yaml": f"{USER}: {{password: {PASSWORD}}}\n", "monitor": f"{MONITOR}\n"}
        lab.apply(
            {
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {"name": "users", "namespace": SPACE},
                "stringData": secret,
            }
        )
        lab.apply(
            {
                "apiVersion": "v1",
                "kind": "Service",
                "metadata": {"name": SERVICE, "namespace": SPACE},
                "spec": {
                    "clusterIP": "None",
                    "selector": dict(pair.split("=") for pair in _SELECTED.split(",")),
                    "ports": [{"name": "admin", "port": ADMIN, "targetPort": "admin"}],
                },
            }
        )
        listener = {
            "address": f"0.0.0.0:{PORT}",
            "protocol": "mysql",
            "route": NAME,
            "users": f"{_FILES}/users.yaml",
        }
        pool = {
            "protocol": "mysql",
            "kubernetes": f"{NAME}:mysql",
            # One that brings another one up to date serves meanwhile: two are online at any time.
            "galera": {"donors": "serve", "consistency": "strict"},
            "user": MONITOR,
            "password_file": f"{_FILES}/monitor",
            # The machine may be busy.
            "timeout": "5s",
        }
        self.values = {
            "fullnameOverride": "proxima",
            "image": image(lab, "proxima"),
            "cache": {"mode": "none"},
            "monitoring": {"enabled": False},
            "proxies": {
                NAME: {
                    "kind": "DaemonSet",
                    "adminPort": ADMIN,
                    "config": {"listeners": [listener], "pools": {NAME: pool}},
                    "volumes": [{"name": "users", "secret": {"secretName": "users"}}],
                    "volumeMounts": [{"name": "users", "mountPath": _FILES, "readOnly": True}],
                }
            },
        }
        self.install()
        self.ready()

    def install(self, **values):
        """Installs or upgrades the release."""
        self._file.write_text(yaml.safe_dump({**self.values, **values}))
        client = [f"--kubeconfig={self._lab.plane.kubeconfig}", f"--namespace={SPACE}"]
        words = ["upgrade", "--install", "proxima", CHART, f"--values={self._file}"]
        self._lab.switch.run(PROGRAM, *client, *words)

    def ready(self):
        """Waits until each node has a proxy that serves, and returns their pods."""
        return self._lab.ready(_SELECTED, len(self._lab.nodes), SPACE)

    def addresses(self):
        """Where clients connect, a proxy each."""
        return [f"{pod['status']['podIP']}:{PORT}" for pod in self.ready()]

    def members(self, pod):
        """What a proxy says of each server."""
        [pool] = json.loads(self._lab.http(pod, ADMIN, f"/mysql?pool={NAME}")[1])["pools"]
        return pool["members"]
