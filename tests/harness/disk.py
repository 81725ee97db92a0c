"""A small disk for a test, which may become full or read-only."""

import subprocess
from pathlib import Path


def _run(*words):
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode:
        raise OSError(f"{' '.join(words)}: {done.stderr.strip()}")
    return done.stdout.strip()


class Disk:
    """A file system of its own at `folder`, in the file `image`. `OSError`: nothing may be mounted here."""

    SIZE = 4 << 20

    def __init__(self, image, folder):
        self.image = image
        self.folder = folder
        folder.mkdir()
        with image.open("wb") as file:
            file.truncate(self.SIZE)
        _run("mkfs.ext4", "-q", "-F", "-b", "1024", "-m", "0", str(image))
        self._mount()

    def _mount(self):
        _run("mount", "-o", "loop,errors=remount-ro", str(self.image), str(self.folder))

    def fill(self):
        """Leaves no room but that in the last block of each file."""
        with (self.folder / "filler").open("wb", buffering=0) as filler:
            try:
                while filler.write(b"x" * 512):
                    pass
            except OSError:
                pass

    def fail(self):
        """Makes it read-only under whoever writes to it, as the kernel does when it has found an error."""
        device = Path(_run("findmnt", "--noheadings", "--output", "SOURCE", str(self.folder))).name
        Path(f"/sys/fs/ext4/{device}/trigger_fs_error").write_text("test\n")

    def mend(self):
        """Makes room again, and makes it writable again. Nobody may use it meanwhile."""
        _run("umount", str(self.folder))
        # Exit code 1 means that errors were corrected.
        checked = subprocess.run(["e2fsck", "-f", "-y", str(self.image)], capture_output=True, text=True)
        assert checked.returncode in (0, 1), checked.stdout + checked.stderr
        self._mount()
        (self.folder / "filler").unlink(missing_ok=True)

    def remove(self):
        _run("umount", "--lazy", str(self.folder))
