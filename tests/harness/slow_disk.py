"""A Galera cluster whose servers have disks that can be slow."""

import contextlib
import shutil

from .building import build
from .galera_node import GaleraNode
from .galera_own import own

COMMAND = ["cc", "-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o", "slow_disk.so", "slow_disk.c"]


class SlowDisk:
    """The disk of a server, whose syncs take as long as the file `delay` in its folder says."""

    def __init__(self, folder, built):
        self._folder = folder
        folder.mkdir()
        # The server runs as another account, which may read nothing where this was built.
        folder.chmod(0o777)
        self._library = shutil.copy(built, folder)
        self.delay(0)

    def delay(self, seconds):
        """From now on each sync takes this much longer."""
        new = self._folder / "delay.new"
        new.write_text(f"{round(seconds * 1000)}\n")
        new.chmod(0o644)
        new.rename(self._folder / "delay")

    def delayed(self):
        """The number of syncs that took longer."""
        with contextlib.suppress(FileNotFoundError):
            return (self._folder / "delayed").stat().st_size
        return 0

    def before(self):
        """The command that runs a program with this disk."""
        return ["env", f"LD_PRELOAD={self._library}", f"SLOW_DISK={self._folder}"]


@contextlib.contextmanager
def slow_disks():
    """Starts the cluster, whose servers have a disk each. Yields it, and the disks by server."""
    built, disks = build("slow-disk", COMMAND, "slow_disk.so"), {}

    def make(kind, folder, number):
        disk = disks[folder.name] = SlowDisk(folder.with_name(f"disk-{number}"), built)
        # What a server says is written is on its disk, as it is where data have to last.
        options = ["--innodb-flush-log-at-trx-commit=1"]
        return GaleraNode(kind, folder, before=disk.before(), options=options)

    with own(make) as cluster:
        yield cluster, disks
