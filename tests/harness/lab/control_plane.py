"""A real API server of Kubernetes with its store."""

import contextlib
import http.client
import json
import pathlib
import signal
import ssl
import subprocess
import urllib.error
import urllib.request

import yaml

from .. import ports, until
from ..proxy import ROOT
from ..tls import Authority

PROGRAM = ROOT / ".cache/control-plane"
"""The programs of a cluster as one: `scripts/control-plane.sh` builds it."""

ADMIN, PROXY = "admin-token", "proxy-token"
"""Who may do all, and the proxy, which may what a test lets it."""

SERVICES = "10.96.0.0/16"
"""The addresses of Services. The API server itself has the first one."""


class ControlPlane:
    """The store and the API server, until `stop`.

    They run on this machine, or on one of the lab's, where nodes reach them. Endpoints are never loopback
    addresses, so that an API server of this machine is none.
    """

    def __init__(self, folder, machine=None):
        self.folder = pathlib.Path(folder)
        self._machine = machine
        self.host = machine.address if machine else "127.0.0.1"
        self.authority = Authority(self.folder, "kubernetes")
        names = [f"IP:{self.host}", "IP:10.96.0.1", "DNS:kubernetes.default.svc"]
        pair = self.authority.certificate("apiserver", *names)
        self.key = self.folder / "account.key"
        subprocess.run(["openssl", "genrsa", "-out", self.key, "2048"], check=True, capture_output=True)
        users = f"{ADMIN},admin,1,system:masters\n{PROXY},proxy,2\n"
        (self.folder / "users.csv").write_text(users)
        store, peers, self.port = ports.address(), ports.address(), ports.free()
        client, peer = f"http://{store}", f"http://{peers}"
        self.url = f"https://{self.host}:{self.port}"
        self.kubeconfig = self._write_kubeconfig()
        self._processes = []
        self._start(
            "etcd",
            f"--data-dir={self.folder}/etcd",
            "--unsafe-no-fsync",
            "--log-level=error",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}",
        )
        self._api = [
            f"--etcd-servers={client}",
            f"--bind-address={self.host}",
            f"--secure-port={self.port}",
            f"--token-auth-file={self.folder}/users.csv",
            "--authorization-mode=RBAC",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-signing-key-file={self.key}",
            f"--service-account-key-file={self.key}",
            f"--service-cluster-ip-range={SERVICES}",
            f"--tls-cert-file={pair.crt}",
            f"--tls-private-key-file={pair.key}",
            f"--endpoint-reconciler-type={'lease' if machine else 'none'}",
            "--allow-privileged=true",
            "--kubelet-preferred-address-types=InternalIP",
        ]
        self.begin()

    def _write_kubeconfig(self):
        """The file by which the programs of the cluster and `kubectl` reach the API server, as admin."""
        file = self.folder / "kubeconfig"
        server = {"server": self.url, "certificate-authority": str(self.authority.file)}
        made = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "lab", "cluster": server}],
            "users": [{"name": "admin", "user": {"token": ADMIN}}],
            "contexts": [{"name": "lab", "context": {"cluster": "lab", "user": "admin"}}],
            "current-context": "lab",
        }
        file.write_text(yaml.safe_dump(made))
        return file

    def _start(self, *command):
        if self._machine:
            return self._machine.start(command[0], PROGRAM, *command)
        with self._log(command[0]).open("a") as log:
            process = subprocess.Popen([PROGRAM, *command], stdout=log, stderr=log)
        self._processes.append(process)
        return process

    def _log(self, name):
        return self.folder / f"{name}.log"

    def begin(self):
        """Starts the API server, and waits until it is ready."""
        self.api = self._start("kube-apiserver", *self._api)
        until(self._is_ready, f"it is ready: {self._log('kube-apiserver')}", every=0.1)

    def kill(self):
        """Kills the API server, which `begin` starts again with all that it had."""
        self.api.kill()
        self.api.wait()

    def freeze(self):
        self.api.send_signal(signal.SIGSTOP)

    def thaw(self):
        self.api.send_signal(signal.SIGCONT)

    def stop(self):
        for process in reversed(self._processes):
            process.kill()
            process.wait()

    def _is_ready(self):
        assert self.api.poll() is None, self._log("kube-apiserver").read_text()[-3000:]
        with contextlib.suppress(OSError):
            return self.ask("GET", "/readyz")[0] == 200
        return False

    def ask(self, method, path, body=None, token=ADMIN, kind="application/json"):
        """A request, as the administrator. Returns its status and answer."""
        try:
            with self._open(method, path, body, token, kind) as reply:
                return reply.status, reply.read()
        except urllib.error.HTTPError as error:
            return error.code, error.read()

    def watch(self, path):
        """The changes of the objects there, as they come, until the API server ends."""
        with contextlib.suppress(OSError, http.client.HTTPException):
            for line in self._open("GET", f"{path}{'&' if '?' in path else '?'}watch=true"):
                yield json.loads(line)

    def _open(self, method, path, body=None, token=ADMIN, kind="application/json"):
        request = urllib.request.Request(
            f"{self.url}{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {token}", "Content-Type": kind},
        )
        context = ssl.create_default_context(cafile=self.authority.file)
        with self._machine.entered() if self._machine else contextlib.nullcontext():
            return urllib.request.urlopen(request, context=context)

    def make(self, path, body):
        """Makes an object."""
        status, answer = self.ask("POST", path, body)
        assert status == 201, answer
        return json.loads(answer)
