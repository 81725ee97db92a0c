"""The node agent: the real program with pods that need not run, and impostors controlled by a test."""

import functools
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile

import pytest
import yaml

from . import PATIENCE, number
from .listening import accepted, close, in_thread
from .program import Program
from .proxy import ROOT


@functools.cache
def program():
    """The path of the agent's program, built once. The test is skipped where there is no Go."""
    if given := os.environ.get("PROXIMA_AGENT"):
        return given
    go = shutil.which("go") or "/usr/local/go/bin/go"
    if not pathlib.Path(go).exists():
        pytest.skip("the node agent cannot be built: there is no Go")
    built = pathlib.Path(tempfile.mkdtemp(prefix="proxima-agent-")) / "proxima-agent"
    made = subprocess.run(
        [go, "build", "-o", str(built), "./cmd/proxima-agent"],
        cwd=ROOT / "agent",
        capture_output=True,
        text=True,
    )
    if made.returncode and "dial tcp" in made.stderr:
        pytest.skip("the node agent cannot be built: its modules cannot be fetched")
    assert made.returncode == 0, made.stderr
    return str(built)


def pod(name, address, cpus=None, near=None, container=None):
    """A running pod, with a CPU of its own or beside another pod."""
    resources = {"limits": {"cpu": cpus, "memory": "64Mi"}} if cpus else {"requests": {"cpu": "100m"}}
    metadata = {"name": name, "labels": {"app": name}}
    if near:
        metadata["annotations"] = {"proxima.io/near": f"app={near}"}
    status = {"podIP": address} if address else {}
    if container:
        status["containerStatuses"] = [{"name": "c", "containerID": f"containerd://{container}"}]
    return {
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"containers": [{"name": "c", "resources": resources}]},
        "status": status,
    }


class Agent(Program):
    """Runs `proxima-agent simulate --serve`, which places these pods on a machine of this shape and informs
    proxies."""

    def __init__(self, folder, pods, shape="sockets=2,nodes=2,cores=2"):
        folder = pathlib.Path(folder)
        self.socket = folder / f"nodes{number()}.sock"
        self._file = folder / f"pods{number()}.yaml"
        self.place(pods)
        command = [program(), "simulate", "--shape", shape, "--serve", str(self.socket), str(self._file)]
        super().__init__(command, str(self.socket))

    def place(self, pods):
        """Makes these the pods from now on."""
        new = self._file.with_suffix(".new")
        new.write_text(yaml.safe_dump_all(pods))
        new.rename(self._file)

    def answers(self):
        return self.snapshot()

    def snapshot(self):
        with socket.socket(socket.AF_UNIX) as sock:
            sock.settimeout(PATIENCE)
            sock.connect(str(self.socket))
            return json.loads(sock.makefile().readline())

    def nodes(self):
        """The one NUMA node of each pod."""
        nodes = {pod["name"]: pod["containers"][0]["nodes"] for pod in self.snapshot()["pods"]}
        assert all(len(on) == 1 for on in nodes.values()), nodes
        return {name: only for name, (only,) in nodes.items()}

    def sockets(self):
        """The socket of each NUMA node."""
        return {node["id"]: node["sockets"][0] for node in self.snapshot()["nodes"]}


class Impostor:
    """Listens where an agent would. `talk(sock)` is called for each connection, in a thread of its own."""

    def __init__(self, folder, talk):
        self.socket = pathlib.Path(folder) / f"nodes{number()}.sock"
        self.connections = 0
        self._talk = talk
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(self.socket))
        self._listener.listen()
        in_thread(self._accept)

    def _accept(self):
        for sock in accepted(self._listener):
            self.connections += 1
            in_thread(self._serve, sock)

    def _serve(self, sock):
        try:
            self._talk(sock)
        except OSError:
            pass
        finally:
            sock.close()

    def stop(self):
        close(self._listener)


STRANGER = """
import os, socket, sys
os.setresgid(65534, 65534, 65534)
os.setresuid(65534, 65534, 65534)
listener = socket.socket(socket.AF_UNIX)
listener.bind(sys.argv[1])
os.chmod(sys.argv[1], 0o666)
listener.listen()
print("listens", flush=True)
while True:
    sock, _ = listener.accept()
    sock.sendall(sys.argv[2].encode())
"""


def stranger(path, line):
    """A process of another user, not root, that listens at `path` and sends this line."""
    command = [sys.executable, "-c", STRANGER, str(path), line]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "listens\n"
    return process


def joined(container):
    """A cgroup named like a container's, for a process of the test. The test is skipped where none can be
    made."""
    for root in ("/sys/fs/cgroup", "/sys/fs/cgroup/pids", "/sys/fs/cgroup/memory", "/sys/fs/cgroup/freezer"):
        folder = pathlib.Path(root) / "proxima-tests" / container
        try:
            folder.mkdir(parents=True)
            (folder / "cgroup.procs").read_text()
        except OSError:
            continue
        return folder
    pytest.skip("no cgroup can be made here")
