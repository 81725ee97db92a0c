"""A control group of the lab, of the same name in each hierarchy."""

import contextlib
import os
import pathlib
import signal

from .. import until


def hierarchies():
    """The hierarchies of version 1 by one of their controllers, and that of version 2, in which runc makes
    groups as well."""
    found = {}
    for line in pathlib.Path("/proc/self/mountinfo").read_text().splitlines():
        before, _, after = line.partition(" - ")
        kind, _, options = after.split()
        if kind in ("cgroup", "cgroup2"):
            name = options.split(",")[-1] if kind == "cgroup" else kind
            found.setdefault(name, pathlib.Path(before.split()[4]))
    return found


class Cgroup:
    """A group in which programs of the lab run. Its groups of containers are below it."""

    def __init__(self, name):
        self._roots = hierarchies()
        self.name = name
        self._freezer = self._roots["freezer"] / name

    def make(self):
        for controller, root in self._roots.items():
            folder = root
            for part in self.name.split("/"):
                folder = folder / part
                folder.mkdir(exist_ok=True)
                if controller == "cpuset":
                    # A group of this hierarchy takes no process before it has processors and memory.
                    for file in ("cpuset.cpus", "cpuset.mems"):
                        (folder / file).write_text((folder.parent / file).read_text())

    def command(self, *words):
        """A command that runs another one in the group, and becomes it."""
        return ["sh", "-c", f'echo $$ >{self._freezer}/cgroup.procs && exec "$@"', "sh", *words]

    def _groups(self, root):
        """The group and all below it, the deepest ones first."""
        return [pathlib.Path(path) for path, _, _ in os.walk(root, topdown=False)]

    def processes(self):
        found = []
        for group in self._groups(self._freezer):
            with contextlib.suppress(FileNotFoundError):
                found += map(int, (group / "cgroup.procs").read_text().split())
        return found

    def memory_of(self, process):
        """The folder by which the memory of a process of the group, and of what shares its container, is
        limited."""
        groups = self._groups(self._roots["memory"] / self.name)
        return next(each for each in groups if str(process) in (each / "cgroup.procs").read_text().split())

    def _freeze(self, state):
        for group in self._groups(self._freezer):
            (group / "freezer.state").write_text(state)

    def kill(self):
        """Kills all processes of the group at once. Frozen ones make no others meanwhile."""
        if not self._freezer.exists():
            return
        (self._freezer / "freezer.state").write_text("FROZEN")
        for process in self.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        self._freeze("THAWED")
        until(lambda: not self.processes(), f"all processes of {self.name} have ended")

    def remove(self):
        """Removes the group, in which no process is left."""
        for root in self._roots.values():
            for group in self._groups(root / self.name):
                until(lambda: _removed(group), f"{group} is empty")


def _removed(group):
    try:
        group.rmdir()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True
