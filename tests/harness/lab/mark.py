"""The name that everything of one lab bears, by which it is found again after its process was killed."""

import pathlib
import socket


class Mark:
    """Labs with different marks may run at the same time, and know nothing of each other."""

    def __init__(self, name="proxima-lab"):
        self.name = name
        self.folder = pathlib.Path("/var/cache") / name

    def namespace(self, machine):
        """The name of a machine's network namespace."""
        return f"{self.name}.{machine}"

    def namespaces(self):
        """All network namespaces that bear the mark."""
        made = pathlib.Path("/run/netns")
        return [path.name for path in made.glob(f"{self.name}.*")]

    def cgroup(self, machine):
        return f"{self.name}/{machine}"

    def claim(self):
        """A socket that reserves the mark. The kernel releases it however the process ends."""
        claim = socket.socket(socket.AF_UNIX)
        try:
            claim.bind(f"\0{self.name}")
        except OSError:
            claim.close()
            raise RuntimeError(f"another process has the lab {self.name}") from None
        return claim
