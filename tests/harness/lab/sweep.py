"""The end of a lab, and of one whose process was killed."""

import shutil

from ..netns import ip
from .cgroups import Cgroup


def sweep(mark):
    """Ends and removes all that bears the mark, and nothing else.

    Mounts are in namespaces of the lab's own, and go with the last process there.
    """
    group = Cgroup(mark.name)
    group.kill()
    group.remove()
    for name in mark.namespaces():
        ip("netns", "delete", name)
    shutil.rmtree(mark.folder, ignore_errors=True)
