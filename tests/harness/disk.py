"""A small disk for a test, which may be full or read-only."""

import subprocess


def _run(*words):
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode:
        raise OSError(f"{' '.join(words)}: {done.stderr.strip()}")


class Disk:
    """A file system in memory. `OSError`: nothing may be mounted here."""

    SIZE = 64 << 10

    def __init__(self, folder):
        self.folder = folder
        folder.mkdir()
        _run("mount", "-t", "tmpfs", "-o", f"size={self.SIZE}", "tmpfs", str(folder))

    def fill(self):
        """Leaves no room."""
        with (self.folder / "filler").open("wb", buffering=0) as filler:
            try:
                while filler.write(b"x" * 512):
                    pass
            except OSError:
                pass

    def empty(self):
        """Makes room again."""
        (self.folder / "filler").unlink()

    def read_only(self, is_so):
        _run("mount", "-o", f"remount,{'ro' if is_so else 'rw'}", str(self.folder))

    def remove(self):
        _run("umount", "--lazy", str(self.folder))
