"""helm, and what it makes of the chart."""

import subprocess

import yaml

from .proxy import ROOT

PROGRAM = ROOT / ".cache/helm"
"""`scripts/helm.sh` builds it."""

CHART = ROOT / "charts/proxima"

MONITORING = ("monitoring.coreos.com/v1/ServiceMonitor", "monitoring.coreos.com/v1/PrometheusRule")
"""What a cluster with the operator of Prometheus says that it knows."""


def helm(*arguments):
    """Runs helm to its end."""
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, timeout=60)


def template(*values, release="cache", namespace="web", version=None, apis=MONITORING, chart=CHART, sets=()):
    """What `helm template` says of these files of values, for a cluster of this version."""
    return helm(
        "template",
        release,
        chart,
        f"--namespace={namespace}",
        *(["--kube-version", version] if version else []),
        *(part for api in apis for part in ("--api-versions", api)),
        *(part for file in values for part in ("--values", file)),
        *(part for pair in sets for part in ("--set", pair)),
    )


class Objects(dict):
    """Rendered objects by kind and name."""

    def __init__(self, text):
        found = [each for each in yaml.safe_load_all(text) if each]
        super().__init__({(each["kind"], each["metadata"]["name"]): each for each in found})
        assert len(self) == len(found), "two objects have one name"

    def of(self, kind):
        """The objects of this kind, by name."""
        return {name: each for (known, name), each in self.items() if known == kind}

    def pods(self):
        """Each template of a pod, by kind and name of the object that has it."""
        jobs = {"CronJob": lambda each: each["spec"]["jobTemplate"]["spec"]["template"]}
        kinds = ("DaemonSet", "Deployment", "Job", "CronJob")
        return {
            (kind, name): jobs.get(kind, lambda each: each["spec"]["template"])(each)
            for (kind, name), each in self.items()
            if kind in kinds
        }

    def configurations(self):
        """The text of each configuration of a proxy, by the name of its ConfigMap."""
        maps = self.of("ConfigMap").items()
        return {name: each["data"]["proxima.yaml"] for name, each in maps if "proxima.yaml" in each["data"]}


def objects(*values, **settings):
    """The objects that the chart makes of these files of values."""
    made = template(*values, **settings)
    assert made.returncode == 0, made.stderr
    return Objects(made.stdout)
