"""helm, and what it makes of the chart."""

import subprocess

import yaml

from .proxy import ROOT

PROGRAM = ROOT / ".cache/helm"
"""`scripts/helm.sh` builds it."""

BEFORE = ROOT / ".cache/helm3"
"""The helm before it, which `scripts/helm.sh 3` builds."""

CHART = ROOT / "charts/proxima"

CASES = ROOT / "tests/charts"
"""Files of values: `good` ones, and `bad` ones with what helm must say in their first line."""

GOOD = sorted(CASES.glob("good/*.yaml"))
BAD = sorted(CASES.glob("bad/*.yaml"))

OTHERS = ("Certificate", "ServiceMonitor", "PrometheusRule")
"""Kinds that other programs define, of which Kubernetes itself knows nothing."""

MONITORING = ("monitoring.coreos.com/v1/ServiceMonitor", "monitoring.coreos.com/v1/PrometheusRule")
"""What a cluster with the operator of Prometheus says that it knows."""


def helm(*arguments, program=PROGRAM):
    """Runs helm to its end."""
    return subprocess.run([program, *arguments], capture_output=True, text=True, timeout=60)


def template(
    *values,
    release="cache",
    namespace="web",
    version=None,
    apis=MONITORING,
    chart=CHART,
    sets=(),
    program=PROGRAM,
):
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
        program=program,
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

    def configuration(self, name="cache-proxima"):
        """What the configuration of a proxy says."""
        return yaml.safe_load(self.configurations()[name])


def objects(*values, **settings):
    """The objects that the chart makes of these files of values."""
    made = template(*values, **settings)
    assert made.returncode == 0, made.stderr
    return Objects(made.stdout)


def case(name):
    """A good file of values."""
    return CASES / f"good/{name}.yaml"


def containers(pod):
    return [*pod["spec"].get("initContainers", []), *pod["spec"]["containers"]]


def container(pod, name="proxima"):
    [found] = [each for each in containers(pod) if each["name"] == name]
    return found
