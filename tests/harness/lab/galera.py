"""A Galera cluster in a cluster of the lab: a StatefulSet of three pods, whose disks all nodes have."""

import contextlib
import pwd
import shutil
from typing import NamedTuple

import pymysql
import yaml

from .. import PATIENCE, until
from ..galera_node import GaleraNode
from ..mysql import databases
from ..proxy import ROOT
from .objects import is_ready, path_of

SPACE = "db"
"""The namespace of the set and of what is before it."""

NAME = "db"
PODS = [f"{NAME}-{number}" for number in range(3)]

USER, PASSWORD = "app", "secret"
MONITOR = "monitor"

_FIRST = (
    f"CREATE USER {MONITOR} IDENTIFIED BY '{MONITOR}'",
    f"CREATE USER {USER} IDENTIFIED BY '{PASSWORD}'",
    f"GRANT ALL ON *.* TO {USER}",
    "CREATE DATABASE proxima_bench",
)


class Schema(NamedTuple):
    """A schema of the cluster, in which `USER` may do all."""

    name: str


class Server:
    """A server of the cluster, past all proxies."""

    def __init__(self, lab, pod):
        self._lab, self._address = lab, pod["status"]["podIP"]
        self.name = pod["metadata"]["name"]

    def connect(self, schema=None):
        with self._lab.switch.entered():
            where = {"host": self._address, "user": USER, "password": PASSWORD, "autocommit": True}
            return pymysql.connect(**where, database=schema and schema.name)

    def barrier(self):
        """Waits until the server has what was written at any of them before. False: it could not."""
        with contextlib.suppress(pymysql.err.MySQLError), self.connect() as direct:
            direct.query("SET SESSION wsrep_sync_wait = 1")
            direct.query("SELECT 1")
            return True
        return False


class Galera:
    """The cluster, which is ready."""

    def __init__(self, lab):
        self._lab = lab
        self._disks = lab.switch.folder / "disks"
        self._make_disks()
        self._objects = list(yaml.safe_load_all((ROOT / "tests/lab/galera.yaml").read_text()))
        for each in self._objects:
            each["metadata"]["namespace"] = SPACE
        self._set = self._objects[-1]
        self._pod = self._set["spec"]["template"]["spec"]
        self._pod["volumes"][0]["hostPath"]["path"] = str(self._disks)
        self._pod["containers"][0]["image"] = lab.image("mariadb")
        labels = {"pod-security.kubernetes.io/enforce": "privileged"}
        lab.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SPACE, "labels": labels}})
        lab.apply(self._objects)
        self.ready()

    def _make_disks(self):
        """Gives all servers one state: one that joins then asks for what it lacks, and not for all data."""
        shutil.rmtree(self._disks, ignore_errors=True)
        self._disks.mkdir()
        kind = databases.installed()
        template = GaleraNode(kind, self._disks / "template")
        kind.make(template.data)
        template.give()
        try:
            template.start([])
            until(template.is_synced, f"the first server is synced: {template.log}", every=0.05)
            with pymysql.connect(unix_socket=str(template.socket), user="root") as direct:
                for statement in _FIRST:
                    direct.query(statement)
            template.terminate()
            template.process.wait(PATIENCE)
        finally:
            template.kill()
        account = pwd.getpwnam("mysql")
        for name in PODS:
            disk = self._disks / name
            shutil.copytree(template.data, disk)
            if name == PODS[0]:
                (disk / "first").touch()
            for path in [disk, *disk.rglob("*")]:
                shutil.chown(path, account.pw_uid, account.pw_gid)

    def pods(self):
        """The pods by name, those included that are about to end."""
        return {pod["metadata"]["name"]: pod for pod in self._lab.pods(f"app={NAME}", SPACE)}

    def ready(self):
        """Waits until all pods are ready, and returns them."""
        return self._lab.ready(f"app={NAME}", len(PODS), SPACE)

    def servers(self):
        return [Server(self._lab, pod) for pod in self.ready()]

    def new_schema(self):
        """A schema that nothing is in."""
        schema = Schema("clients")
        first, *others = self.servers()
        with first.connect() as direct:
            direct.query(f"DROP DATABASE IF EXISTS {schema.name}")
            direct.query(f"CREATE DATABASE {schema.name}")
        for other in others:
            assert other.barrier(), f"{other.name} has the schema"
        return schema

    def status(self):
        """What the API server says of the set, once its controller has seen its newest form."""
        path = f"/apis/apps/v1/namespaces/{SPACE}/statefulsets/{NAME}"

        def seen():
            found = self._lab.get(path)
            is_seen = found["status"].get("observedGeneration") == found["metadata"]["generation"]
            return found["status"] if is_seen else None

        return until(seen, "the controller has seen the set")

    def image(self):
        return self._pod["containers"][0]["image"]

    def wait_before_the_end(self, seconds):
        """Servers of the next template hear so late that their pod ends; `None`: at once."""
        [container] = self._pod["containers"]
        container.pop("lifecycle", None)
        if seconds:
            container["lifecycle"] = {"preStop": {"sleep": {"seconds": seconds}}}

    def template_changed(self, image=None, **annotations):
        """Changes the template of the pods, and returns its revision."""
        if image:
            self._pod["containers"][0]["image"] = image
        self._set["spec"]["template"]["metadata"]["annotations"].update(annotations)
        self._lab.apply(self._set)
        return self.status()["updateRevision"]

    def evict(self, pod):
        """Asks the API server to evict this pod and no other one. Returns its status: 201, or 429 where a
        budget forbids it."""
        metadata = {key: pod["metadata"][key] for key in ("name", "namespace")}
        options = {"preconditions": {"uid": pod["metadata"]["uid"]}}
        body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata, "deleteOptions": options}
        return self._lab.plane.ask("POST", f"{path_of(pod)}/eviction", body)[0]

    def replaced(self, pod):
        """Waits until another pod of this name is ready, and returns it."""
        name, uid = pod["metadata"]["name"], pod["metadata"]["uid"]

        def found():
            new = self.pods().get(name)
            return new if new and new["metadata"]["uid"] != uid and is_ready(new) else None

        return until(found, f"another pod {name} is ready", every=0.05)

    def roll_bare(self):
        """Evicts one pod after the other, and asks no proxy."""
        for name in reversed(PODS):
            pod = self.pods()[name]
            until(lambda pod=pod: self.evict(pod) == 201, f"{name} is evicted", every=0.05)
            self.replaced(pod)

    def roll_plain(self, **annotations):
        """The template changes, and the controller of the set rolls by itself."""
        self._set["spec"]["updateStrategy"] = {"type": "RollingUpdate"}
        try:
            revision = self.template_changed(**annotations)
            until(lambda: self.is_rolled(revision), "the set is rolled", every=0.05)
        finally:
            self._set["spec"]["updateStrategy"] = {"type": "OnDelete"}
            self._lab.apply(self._set)

    def is_rolled(self, revision):
        """Whether all pods are ready, and of this revision."""
        pods = self.pods().values()
        return len(pods) == len(PODS) and all(is_of(pod, revision) and is_ready(pod) for pod in pods)


def is_of(pod, revision):
    return pod["metadata"]["labels"]["controller-revision-hash"] == revision
