"""A real API server of Kubernetes with its store, for tests of who follows it. No node is behind it: tests
post the objects that controllers would."""

import contextlib
import json
import pathlib
import signal
import ssl
import subprocess
import urllib.error
import urllib.request

from . import ports, until
from .pod import Pod
from .proxy import ROOT
from .tls import Authority

PROGRAM = ROOT / ".cache/control-plane"
"""The servers of a control plane as one program: `scripts/control-plane.sh` builds it."""

ADMIN, PROXY = "admin-token", "proxy-token"
"""Who may do all, and the proxy, which may what a test lets it."""


class ControlPlane:
    """The store and the API server, until `stop`."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.authority = Authority(self.folder, "kubernetes")
        pair = self.authority.certificate("apiserver", "IP:127.0.0.1")
        key = self.folder / "account.key"
        subprocess.run(["openssl", "genrsa", "-out", key, "2048"], check=True, capture_output=True)
        users = f"{ADMIN},admin,1,system:masters\n{PROXY},proxy,2\n"
        (self.folder / "users.csv").write_text(users)
        store, peers, self.port = ports.address(), ports.address(), ports.free()
        client, peer = f"http://{store}", f"http://{peers}"
        self._processes = []
        self._start(
            "etcd",
            "--data-dir",
            self.folder / "etcd",
            "--unsafe-no-fsync",
            "--log-level=error",
            "--listen-client-urls",
            client,
            "--advertise-client-urls",
            client,
            "--listen-peer-urls",
            peer,
            "--initial-advertise-peer-urls",
            peer,
            "--initial-cluster",
            f"default={peer}",
        )
        self._api = [
            "--etcd-servers",
            client,
            "--bind-address=127.0.0.1",
            "--secure-port",
            str(self.port),
            "--token-auth-file",
            self.folder / "users.csv",
            "--authorization-mode=RBAC",
            "--service-account-issuer=https://tests",
            "--service-account-signing-key-file",
            key,
            "--service-account-key-file",
            key,
            "--service-cluster-ip-range=10.96.0.0/16",
            "--tls-cert-file",
            pair.crt,
            "--tls-private-key-file",
            pair.key,
            "--endpoint-reconciler-type=none",
            "--enable-admission-plugins=",
            "--disable-admission-plugins=ServiceAccount",
        ]
        self.begin()

    def _start(self, *command):
        with (self.folder / f"{command[0]}.log").open("a") as log:
            process = subprocess.Popen([PROGRAM, *map(str, command)], stdout=log, stderr=log)
        self._processes.append(process)
        return process

    def begin(self):
        """Starts the API server, and waits until it is ready."""
        self.api = self._start("kube-apiserver", *self._api)
        until(self._is_ready, f"it is ready: {self.folder}/kube-apiserver.log", every=0.1)

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
        assert self.api.poll() is None, (self.folder / "kube-apiserver.log").read_text()[-3000:]
        with contextlib.suppress(OSError):
            return self.ask("GET", "/readyz")[0] == 200
        return False

    def ask(self, method, path, body=None, token=ADMIN, kind="application/json"):
        """A request, as the administrator. Returns its status and answer."""
        request = urllib.request.Request(
            f"https://127.0.0.1:{self.port}{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {token}", "Content-Type": kind},
        )
        context = ssl.create_default_context(cafile=self.authority.file)
        try:
            with urllib.request.urlopen(request, context=context) as reply:
                return reply.status, reply.read()
        except urllib.error.HTTPError as error:
            return error.code, error.read()

    def make(self, path, body):
        """Makes an object."""
        status, answer = self.ask("POST", path, body)
        assert status == 201, answer
        return json.loads(answer)


class Namespace:
    """A namespace with a Service, and a pod's account in it for a proxy behind the command `before`."""

    def __init__(self, plane, folder, name, service="mc"):
        self._plane, self.name, self.service = plane, name, service
        plane.make("/api/v1/namespaces", {"metadata": {"name": name}})
        self.before = Pod(folder, plane.authority, plane.port, name, PROXY).before

    def let(self):
        """Lets the proxy follow EndpointSlices here."""
        rules = [
            {
                "apiGroups": ["discovery.k8s.io"],
                "resources": ["endpointslices"],
                "verbs": ["get", "list", "watch"],
            }
        ]
        place = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{self.name}"
        self._plane.make(f"{place}/roles", {"metadata": {"name": "proxy"}, "rules": rules})
        self._plane.make(
            f"{place}/rolebindings",
            {
                "metadata": {"name": "proxy"},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "proxy"},
                "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "proxy"}],
            },
        )

    @property
    def _path(self):
        return f"/apis/discovery.k8s.io/v1/namespaces/{self.name}/endpointslices"

    def set(self, name, *endpoints, port=11211, family="IPv4"):
        """A slice has these endpoints now."""
        slice = {
            "metadata": {"name": name, "labels": {"kubernetes.io/service-name": self.service}},
            "addressType": family,
            "endpoints": list(endpoints),
            "ports": [{"name": "mc", "port": port, "protocol": "TCP"}],
        }
        status, _ = self._plane.ask("GET", f"{self._path}/{name}")
        if status == 404:
            self._plane.make(self._path, slice)
            return
        status, answer = self._plane.ask("PUT", f"{self._path}/{name}", slice)
        assert status == 200, answer

    def delete(self, name):
        status, answer = self._plane.ask("DELETE", f"{self._path}/{name}")
        assert status == 200, answer
