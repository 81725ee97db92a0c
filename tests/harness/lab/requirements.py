"""What a lab needs of the machine."""

import os
import pathlib
import shutil

from ..netns import forbidden
from .cgroups import hierarchies
from .control_plane import PROGRAM

PACKAGES = pathlib.Path("/var/cache/proxima-agent-lab")
"""Debian packages that `agent/testdata/prepare.sh` has unpacked."""

RUNTIME = PACKAGES / "2.1/usr/bin"
RUNC = PACKAGES / "bin/runc"
CNI = PACKAGES / "net/cni"
PORTMAP = CNI / "portmap"
"""What gives pods ports of their node. Without it a lab has none."""

_CONTROLLERS = {"freezer", "cpuset", "memory", "pids", "devices", "cpu", "cpuacct"}


def why_not():
    """The reason why no lab can run here, or None."""
    if os.geteuid() != 0:
        return "the nodes of a lab need root"
    if not PROGRAM.exists():
        return "scripts/control-plane.sh has not built the programs of Kubernetes"
    for file in (RUNTIME / "containerd", RUNC, CNI):
        if not file.exists():
            return f"{file} is missing: agent/testdata/prepare.sh fetches it"
    for program in ("nft", "cc", "memcached", "nsenter"):
        if not shutil.which(program, path=f"{os.environ['PATH']}:/usr/sbin:/sbin"):
            return f"{program} is missing: scripts/prepare.sh installs it"
    if missing := _CONTROLLERS - hierarchies().keys():
        return f"there are no control groups of version 1 of {', '.join(sorted(missing))}"
    return forbidden()
