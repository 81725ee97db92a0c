"""A node of the lab: a machine with mounts of its own, a container runtime, a kubelet and a kube-proxy."""

import json
import os
import pathlib
import shutil
import time

import yaml

from .. import until
from ..netns import ip
from .control_plane import PROGRAM
from .machine import Machine
from .requirements import CNI, PORTMAP, RUNC, RUNTIME

MOST = 9
"""Nodes of a lab."""

PATH = f"PATH={RUNTIME}:{RUNC.parent}:/usr/sbin:/usr/bin:/sbin:/bin"

TUNABLES = ("vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops")
TUNABLES += ("kernel/keys/root_maxkeys", "kernel/keys/root_maxbytes")
"""What a kubelet sets for the whole machine: below /proc/sys."""

SOCKET = "/run/containerd/containerd.sock"

CONTAINERD = """
version = 3
[plugins."io.containerd.cri.v1.images".pinned_images]
  sandbox = "localhost/pause:lab"
[plugins."io.containerd.cri.v1.runtime"]
  restrict_oom_score_adj = true
  disable_apparmor = true
  disable_hugetlb_controller = true
  [plugins."io.containerd.cri.v1.runtime".cni]
    bin_dirs = ["{cni}"]
    conf_dir = "{folder}/net.d"
"""


def address(number):
    return f"10.77.0.{10 + number}"


def pods(number):
    """The addresses of a node's pods."""
    return f"10.78.{number}.0/24"


class Node(Machine):
    """A node, from `boot` until `kill`. What it keeps on its disk outlives that."""

    def __init__(self, mark, number, plane, switch):
        super().__init__(mark, f"n{number}", address(number))
        self._number, self._plane, self._switch = number, plane, switch
        self.zone = f"z{number}"

    def boot(self, images):
        """Starts the node with these images."""
        self.make()
        self._plug_in()
        self._configure()
        self._mount()
        self.start("containerd", "env", PATH, "containerd", "--config", self.folder / "containerd.toml")
        for image in images:
            self.load(image)
        self._begin_agents()

    def _begin_agents(self):
        self._kubelet = self.start(
            "kubelet",
            "env",
            PATH,
            PROGRAM,
            "kubelet",
            f"--config={self.folder}/kubelet.yaml",
            f"--kubeconfig={self._plane.kubeconfig}",
            f"--hostname-override={self.host}",
            f"--node-ip={self.address}",
            f"--node-labels=topology.kubernetes.io/zone={self.zone}",
        )

        self._kube_proxy = self.start(
            "kube-proxy", "env", PATH, PROGRAM, "kube-proxy", f"--config={self.folder}/kube-proxy.yaml"
        )
        # What connects to a Service before that waits for a minute, as the kernel remembers where it leads.
        until(self._balances, f"the node has the rules of Services: {self.log('kube-proxy')}", every=0.05)

    def _balances(self):
        return "kube-proxy" in self.run("env", PATH, "nft", "list", "tables")

    def join_again(self):
        """Its kubelet and its kube-proxy start anew: that of a node which was deleted registers it at its
        start alone, and this one has ended."""
        for agent in (self._kubelet, self._kube_proxy):
            agent.kill()
            agent.wait()
        self._begin_agents()

    def load(self, image):
        """Imports an image."""
        until(self._serves, f"containerd serves: {self.log('containerd')}", every=0.05)
        self.ctr("images", "import", image.file)

    def ctr(self, *words):
        """Runs a command of the container runtime."""
        return self.run(RUNTIME / "ctr", "--address", SOCKET, "--namespace", "k8s.io", *words)

    def _serves(self):
        try:
            self.ctr("version")
        except AssertionError:
            return False
        return True

    def processes(self, program):
        """The processes on the node that run a program of an image, which is at this place there."""
        return [each for each in self.cgroup.processes() if _program(each) == program]

    def kill(self):
        """What a power failure does: nothing ends in order, and memory is lost."""
        super().kill()
        self.cgroup.remove()
        self._spaces.pop()
        ip("-n", self._switch.name, "link", "delete", self.host)
        ip("netns", "delete", self.name)

    def plug(self, state):
        """`down` pulls the node's cable, `up` plugs it in again."""
        ip("-n", self._switch.name, "link", "set", self.host, state)

    def _plug_in(self):
        switch = self._switch.name
        ends = ["type", "veth", "peer", "name", self.host, "netns", switch]
        ip("link", "add", "eth0", "netns", self.name, *ends)
        ip("-n", switch, "link", "set", self.host, "master", "bridge0", "up")
        ip("-n", self.name, "address", "add", f"{self.address}/16", "dev", "eth0")
        ip("-n", self.name, "link", "set", "eth0", "up")
        ip("-n", self.name, "route", "add", "default", "via", self._switch.address)
        for other in range(1, MOST + 1):
            if other != self._number:
                ip("-n", self.name, "route", "add", pods(other), "via", address(other))

    def _configure(self):
        """Writes the configurations of the node's programs."""
        network = {
            "cniVersion": "1.0.0",
            "name": "lab",
            "plugins": [
                {
                    "type": "ptp",
                    "ipam": {
                        "type": "host-local",
                        "ranges": [[{"subnet": pods(self._number)}]],
                        "routes": [{"dst": "0.0.0.0/0"}],
                        "dataDir": "/run/addresses",
                    },
                }
            ],
        }
        if PORTMAP.exists():
            ports = {"type": "portmap", "capabilities": {"portMappings": True}, "backend": "nftables"}
            network["plugins"].append(ports)
        kubelet = {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
            "authorization": {"mode": "AlwaysAllow"},
            "cgroupDriver": "cgroupfs",
            "cgroupRoot": f"/{self.cgroup.name}",
            "clusterDNS": [self._switch.address],
            # A container that ends again and again is started again soon, and a file of a Secret or ConfigMap
            # follows within seconds. By default both take minutes.
            "crashLoopBackOff": {"maxContainerRestartPeriod": "1s"},
            "syncFrequency": "3s",
            "clusterDomain": "cluster.local",
            "containerRuntimeEndpoint": f"unix://{SOCKET}",
            "enforceNodeAllocatable": [],
            "evictionHard": {"memory.available": "1%", "nodefs.available": "1%", "imagefs.available": "1%"},
            "failCgroupV1": False,
            "failSwapOn": False,
            "imageGCHighThresholdPercent": 100,
            "localStorageCapacityIsolation": False,
            "makeIPTablesUtilChains": False,
            "nodeLeaseDurationSeconds": 8,
            "nodeStatusUpdateFrequency": "2s",
            "oomScoreAdj": 0,
            "resolvConf": "",
        }
        client = {"kubeconfig": str(self._plane.kubeconfig)}
        kube_proxy = {
            "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
            "kind": "KubeProxyConfiguration",
            "mode": "nftables",
            "clientConnection": client,
            "conntrack": {"maxPerCore": 0, "min": 0},
            "hostnameOverride": self.host,
        }
        (self.folder / "net.d").mkdir(exist_ok=True)
        files = {
            "net.d/lab.conflist": json.dumps(network),
            "containerd.toml": CONTAINERD.format(cni=CNI, folder=self.folder),
            "kubelet.yaml": yaml.safe_dump(kubelet),
            "kube-proxy.yaml": yaml.safe_dump(kube_proxy),
        }
        for name, text in files.items():
            (self.folder / name).write_text(text)

    def _mount(self):
        """Gives the node its own disk, a /run that is empty at each start, and copies of what its kubelet
        would set for the whole machine. A process that waits keeps these mounts."""
        binds = {self.folder / name: f"/var/{name}" for name in ("lib", "log")}
        for folder in binds:
            folder.mkdir(exist_ok=True)
        for name in TUNABLES:
            real, copy = pathlib.Path("/proc/sys", name), self.folder / "sys" / name
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_text(real.read_text())
            binds[copy] = real
        # Where plugins of the runtime would be, which are installed below /opt.
        layers = {"upperdir": self.folder / "opt", "workdir": self.folder / "opt-work"}
        for folder in layers.values():
            folder.mkdir(exist_ok=True)
        opt = ",".join(["lowerdir=/opt", *(f"{name}={folder}" for name, folder in layers.items())])
        ready = self.folder / "mounted"
        ready.unlink(missing_ok=True)
        steps = [
            "mount --make-rprivate /",
            "mount --make-rshared /",
            *(f"mount --bind {source} {place}" for source, place in binds.items()),
            f"mount -t overlay opt -o {opt} /opt",
            "echo 1 >/proc/sys/net/ipv4/ip_forward",
            "mount -t tmpfs run /run",
            f"touch {ready}",
            "exec sleep infinity",
        ]
        unshare = [shutil.which("unshare"), "--mount", "sh", "-c", " && ".join(steps)]
        keeper = self.start("mounts", *unshare)
        until(ready.exists, f"the node has its mounts: {self.log('mounts')}")
        self._spaces.append(f"--mount=/proc/{keeper.pid}/ns/mnt")


def age(process):
    """The seconds since a process began."""
    stat = pathlib.Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
    return time.clock_gettime(time.CLOCK_BOOTTIME) - int(stat[19]) / os.sysconf("SC_CLK_TCK")


def _program(process):
    """What a process runs, by the first word of its command; none if it has ended."""
    try:
        return pathlib.Path(f"/proc/{process}/cmdline").read_text().split("\0")[0]
    except (FileNotFoundError, ProcessLookupError):
        return None
