"""A shell with `kubectl` beside a running cluster: `make lab`."""

import os
import pathlib
import subprocess
import sys

from ..proxy import BINARY, ROOT
from .cluster import Cluster
from .control_plane import PROGRAM
from .mark import Mark
from .requirements import why_not

IMAGES = ("memcached", "proxima")


def main():
    if reason := why_not():
        sys.exit(f"lab: {reason}")
    # A lab of the tests may run at the same time.
    mark = Mark("proxima-lab-shell")
    print("lab: starting two nodes", flush=True)
    cluster = Cluster(mark=mark)
    try:
        names = [cluster.image(name) for name in IMAGES if name != "proxima" or pathlib.Path(BINARY).exists()]
        bin = mark.folder / "bin"
        bin.mkdir()
        kubectl = bin / "kubectl"
        kubectl.write_text(f'#!/bin/sh\nexec {PROGRAM} kubectl "$@"\n')
        kubectl.chmod(0o755)
        print(f"lab: kubectl get nodes; images, with imagePullPolicy: Never: {', '.join(names)}")
        print(f"lab: logs are in {mark.folder}; `exit` ends the lab and removes it", flush=True)
        paths = f"{bin}:{ROOT}/.cache:{os.environ['PATH']}"
        keys = {"PATH": paths, "KUBECONFIG": str(cluster.plane.kubeconfig)}
        shell = os.environ.get("SHELL", "/bin/sh")
        subprocess.run(cluster.switch.inside(shell), env=os.environ | keys)
    finally:
        cluster.stop()


main()
