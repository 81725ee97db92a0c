"""Container images of this machine's programs, without a registry: program, libraries and loader."""

import hashlib
import io
import json
import os
import pathlib
import re
import shutil
import subprocess
import tarfile

from .. import agent, image
from ..galera_node import PROVIDER
from ..proxy import BINARY, ROOT

BEFORE = os.environ.get("PROXIMA_BEFORE", BINARY)
"""The program of the release before. Where none is named, it is the same program in another image."""


def libraries(program):
    """The libraries of a program and its loader; none if it is linked statically."""
    listed = subprocess.run(["ldd", program], capture_output=True, text=True).stdout
    return [pathlib.Path(path) for path in re.findall(r"(/\S+) \(0x", listed)]


def _layer(files):
    """A tar with these files: their places in the image, and on this machine."""
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w") as tar:
        for place, source in files.items():
            tar.add(os.path.realpath(source), place.lstrip("/"))
    return written.getvalue()


def _archive(file, reference, files, config):
    """Writes an image as `docker save` does."""
    layer = _layer(files)
    digest = hashlib.sha256(layer).hexdigest()
    described = {
        "architecture": "amd64",
        "os": "linux",
        "config": config,
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}"]},
    }
    manifest = [{"Config": "config.json", "RepoTags": [reference], "Layers": ["layer.tar"]}]
    parts = {
        "layer.tar": layer,
        "config.json": json.dumps(described).encode(),
        "manifest.json": json.dumps(manifest).encode(),
    }
    with tarfile.open(file, "w") as tar:
        for name, data in parts.items():
            head = tarfile.TarInfo(name)
            head.size = len(data)
            tar.addfile(head, io.BytesIO(data))


def _program(source, place):
    return {place: source} | {str(library): library for library in libraries(source)}


def _pause(folder):
    built = folder / "pause"
    subprocess.run(["cc", "-O2", "-static", "-o", built, ROOT / "tests/lab/pause.c"], check=True)
    return {"/pause": built}, {"Entrypoint": ["/pause"]}


def _memcached(folder):
    files = _program(shutil.which("memcached"), "/usr/bin/memcached")
    return files, {"Entrypoint": ["/usr/bin/memcached"], "User": "11211:11211"}


def _stripped(folder, program=BINARY):
    """The program without what only a debugger reads, which would be most of the image."""
    stripped = folder / "proxima"
    subprocess.run(["strip", "-o", stripped, program], check=True)
    return stripped


def _proxima(folder, program=BINARY):
    place = "/usr/local/bin/proxima"
    return _program(_stripped(folder, program), place), {"Entrypoint": [place], "User": "65532:65532"}


def _redis(folder):
    files = _program(shutil.which("redis-server"), "/usr/bin/redis-server")
    return files, {"Entrypoint": ["/usr/bin/redis-server"], "User": "999:999"}


def _agent(folder):
    place = "/proxima-agent"
    return _program(agent.program(), place), {"Entrypoint": [place]}


def _before(folder):
    return _proxima(folder, BEFORE)


def _operator(folder):
    place = "/usr/local/bin/proxima-operator"
    return {place: OPERATOR}, {"Entrypoint": [place], "User": "65532:65532"}


OPERATOR = pathlib.Path(os.environ.get("PROXIMA_OPERATOR", ROOT / "operator/bin/proxima-operator"))
"""`make -C operator build` makes it."""


def _mariadb(folder):
    """A server of a Galera cluster, with what the scripts call by which it takes over another one's data."""
    listed = subprocess.run(["dpkg", "-L", "coreutils"], capture_output=True, text=True, check=True).stdout
    files = {place: pathlib.Path(place) for place in ("/etc/passwd", "/etc/group", str(PROVIDER))}
    files |= {str(library): library for library in libraries(PROVIDER)}
    names = [*SCRIPTED.split(), *re.findall(r"^/(?:usr/)?bin/(\S+)$", listed, re.M)]
    for name in names:
        source = shutil.which(name, path="/usr/sbin:/usr/bin:/sbin:/bin")
        files |= _program(source, f"/usr/bin/{name}")
    # Scripts name their shell by the place that it always had.
    files["/bin/bash"] = files["/bin/sh"] = files["/usr/bin/bash"]
    for share in ("/usr/share/mysql/english", "/usr/share/mysql/charsets"):
        files |= {str(file): file for file in pathlib.Path(share).iterdir()}
    entry = "/usr/local/bin/galera"
    files[entry] = ROOT / "tests/lab/galera.sh"
    return files, {"Entrypoint": [entry], "User": "mysql"}


def _mariadb_next(folder):
    """The same server, which calls itself the next version: another one is not on this machine."""
    files, config = _mariadb(folder)
    return files, {**config, "Env": [f"CALLED={next_version()}"]}


def next_version():
    """The version behind that of the server of this machine."""
    said = subprocess.run(["mariadbd", "--version"], capture_output=True, text=True, check=True).stdout
    series, patch = re.search(r"Ver (\d+\.\d+)\.(\d+)", said).groups()
    return f"{series}.{int(patch) + 1}"


SCRIPTED = """
bash sh sed grep hostname ps env awk find xargs rsync lsof getopt getconf my_print_defaults resolveip
mariadb mariadbd wsrep_sst_common wsrep_sst_rsync
"""
"""The programs that a server needs beside coreutils."""


KINDS = {
    "pause": _pause,
    "memcached": _memcached,
    "proxima": _proxima,
    "proxima-before": _before,
    "redis": _redis,
    "agent": _agent,
    "operator": _operator,
    "mariadb": _mariadb,
    "mariadb-next": _mariadb_next,
}


class Image:
    """An image by its name, with the file that a runtime imports."""

    def __init__(self, name, folder):
        self.reference = f"localhost/{name}:lab"
        self.file = folder / f"{name}.tar"
        folder.mkdir(parents=True, exist_ok=True)
        files, config = KINDS[name](folder)
        _archive(self.file, self.reference, files, config)


class Shipped:
    """The image of `scripts/image.sh` that has programs for scripts, too."""

    def __init__(self, folder):
        folder.mkdir(parents=True, exist_ok=True)
        self.file = image.build(folder / "shipped.tar", "--debian", program=_stripped(folder))
        with tarfile.open(self.file) as tar:
            [described] = json.load(tar.extractfile("index.json"))["manifests"]
        self.reference = described["annotations"]["io.containerd.image.name"]
