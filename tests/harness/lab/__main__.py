"""A shell with `kubectl` and `helm` beside a running cluster, whose nodes have the images of the chart by the
names that it has for them: `make lab`."""

import os
import subprocess
import sys

import yaml

from ..helm import CHART
from ..proxy import ROOT
from .cluster import Cluster
from .control_plane import PROGRAM
from .mark import Mark
from .requirements import why_not

IMAGES = ("memcached", "proxima")


def name_in_chart(image):
    """The whole name that the chart has for an image where nobody says another one."""
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    version = yaml.safe_load((CHART / "Chart.yaml").read_text())["appVersion"]
    named = values["image"] if image == "proxima" else values["cache"]["memcached"]["image"]
    place = named["registry"] or "docker.io/library"
    return f"{place}/{named['repository']}:{named['tag'] or version}"


def main():
    if reason := why_not():
        sys.exit(f"lab: {reason}")
    # A lab of the tests may run at the same time.
    mark = Mark("proxima-lab-shell")
    count = int(os.environ["NODES"])
    print(f"lab: starting {count} nodes", flush=True)
    cluster = Cluster(count, mark)
    try:
        for name in IMAGES:
            own = cluster.image(name)
            for node in cluster.nodes.values():
                node.ctr("images", "tag", own, name_in_chart(name))
        bin = mark.folder / "bin"
        bin.mkdir()
        kubectl = bin / "kubectl"
        kubectl.write_text(f'#!/bin/sh\nexec {PROGRAM} kubectl "$@"\n')
        kubectl.chmod(0o755)
        names = ", ".join(map(name_in_chart, IMAGES))
        print(f"lab: kubectl and helm are here, and on the nodes the images {names}")
        print(f"lab: logs are in {mark.folder}; `exit` ends the lab and removes it", flush=True)
        paths = f"{bin}:{ROOT}/.cache:{os.environ['PATH']}"
        keys = {"PATH": paths, "KUBECONFIG": str(cluster.plane.kubeconfig)}
        shell = os.environ.get("SHELL", "/bin/sh")
        subprocess.run(cluster.switch.inside(shell), env=os.environ | keys)
    finally:
        cluster.stop()


main()
