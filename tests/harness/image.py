"""Builds, unpacks and runs the container image as a container runtime would, in a changed root and as its
user."""

import hashlib
import json
import os
import shutil
import subprocess

from .proxy import BINARY, ROOT


def why_not():
    """The reason why an image cannot be built or run here, or None."""
    if not os.environ.get("PROXIMA_IMAGE"):
        headers = subprocess.run(
            ["readelf", "--program-headers", BINARY], capture_output=True, text=True
        ).stdout
        if "INTERP" in headers:
            return (
                f"{BINARY} is not linked statically; scripts/build.sh does so where glibc's static library is"
            )
    if (
        os.geteuid() != 0
        and subprocess.run(["unshare", "--map-root-user", "true"], capture_output=True).returncode
    ):
        return "changing the root needs root, or user namespaces"
    return None


class Unavailable(Exception):
    """Packages of Debian cannot be had here."""


def build(output, *options, program=BINARY):
    command = ["sh", ROOT / "scripts/image.sh", *options, "--program", program, "--output", output]
    made = subprocess.run(command, stderr=subprocess.PIPE, text=True)
    if "debian: apt-get cannot fetch" in made.stderr:
        raise Unavailable(made.stderr)
    assert made.returncode == 0, made.stderr
    return output


class Image:
    """An unpacked image. `root` is its file system, and `config` says how to run it."""

    def __init__(self, file, folder):
        layout, self.root = folder / "layout", folder / "root"
        for place in (layout, self.root):
            place.mkdir()
        subprocess.run(["tar", "--extract", "--file", file, "--directory", layout], check=True)
        self._blobs = layout / "blobs/sha256"
        [described] = json.loads((layout / "index.json").read_text())["manifests"]
        self.manifest = json.loads(self.blob(described))
        described = json.loads(self.blob(self.manifest["config"]))
        self.rootfs, self.config = described["rootfs"], described["config"]
        [self.docker] = json.loads((layout / "manifest.json").read_text())
        for layer in self.manifest["layers"]:
            subprocess.run(["tar", "-xz", "--directory", self.root], input=self.blob(layer), check=True)

    def blob(self, described):
        """The bytes that a descriptor names, checked against its digest and size."""
        kind, digest = described["digest"].split(":")
        data = (self._blobs / digest).read_bytes()
        assert (kind, hashlib.sha256(data).hexdigest(), len(data)) == ("sha256", digest, described["size"])
        return data

    def command(self, command=None, args=None):
        """The command that a container of the image runs. `command` and `args` are those of Kubernetes, and
        replace the image's."""
        arguments = command or self.config["Entrypoint"]
        arguments = arguments + (args or ([] if command else self.config["Cmd"]))
        clean = ["env", "--ignore-environment", *self.config["Env"]]
        if os.geteuid() == 0:
            changed = [
                shutil.which("chroot", path="/usr/sbin:/sbin:/usr/bin"),
                f"--userspec={self.config['User']}",
                self.root,
            ]
        else:
            changed = [shutil.which("unshare"), "--map-root-user", f"--root={self.root}"]
        return [*clean, *changed, *arguments]
