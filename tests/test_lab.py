"""The lab is a Kubernetes cluster: what its methods promise is so, and nothing is left of it."""

import contextlib
import pathlib
import re
import signal
import subprocess
import sys

import dnslib
import pytest

from harness import PATIENCE, until
from harness.lab.cgroups import hierarchies
from harness.lab.mark import Mark
from harness.lab.memcacheds import memcacheds
from harness.lab.node import TUNABLES
from harness.lab.sweep import sweep
from harness.proxy import ROOT
from harness.raw import Raw

# One process has the lab.
pytestmark = pytest.mark.alone


def tunables(folder):
    return {name: (pathlib.Path(folder) / name).read_text().strip() for name in TUNABLES}


BEFORE = tunables("/proc/sys")
"""What the machine's settings are before any lab has started."""


@pytest.fixture(scope="module")
def service(lab):
    """The address of a Service before a memcached on each node."""
    manifest = memcacheds(lab)
    lab.apply(manifest)
    lab.ready("app=mc", len(lab.nodes))
    yield lab.get("/api/v1/namespaces/default/services/mc")["spec"]["clusterIP"]
    lab.delete(manifest)


def ids(lab):
    return {pod["metadata"]["uid"] for pod in lab.pods("app=mc")}


def serving(lab):
    """The nodes whose memcached serves behind the Service."""
    path = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"
    slices = lab.get(f"{path}?labelSelector=kubernetes.io/service-name=mc")["items"]
    found = [each for slice in slices for each in slice["endpoints"] or []]
    return {each["nodeName"] for each in found if each["conditions"]["serving"]}


def answers(node, service):
    """Whether a client on the node reaches memcached by the Service's address."""
    with contextlib.suppress(OSError), node.entered(), Raw(f"{service}:11211") as client:
        client.send(b"version\r\n")
        return client.until(b"\r\n").startswith(b"VERSION")
    return False


def resolved(lab, node, name):
    """The addresses that a node's DNS has for a name."""
    question = dnslib.DNSRecord.question(name)
    with node.entered():
        answer = dnslib.DNSRecord.parse(question.send(lab.switch.address, timeout=PATIENCE))
    return [str(record.rdata) for record in answer.rr]


def test_daemon_set_runs_on_each_node_which_has_a_zone_of_its_own(lab, service):
    pods = lab.ready("app=mc", len(lab.nodes))
    assert {pod["spec"]["nodeName"] for pod in pods} == lab.nodes.keys()
    zones = {
        node["metadata"]["labels"]["topology.kubernetes.io/zone"]
        for node in lab.get("/api/v1/nodes")["items"]
    }
    assert zones == {node.zone for node in lab.nodes.values()}


def test_address_of_a_service_answers_on_each_node(lab, service):
    for node in lab.nodes.values():
        until(lambda: answers(node, service), f"the Service answers on {node.host}", every=0.1)


def test_name_of_a_service_leads_to_its_address(lab, service):
    for node in lab.nodes.values():
        until(
            lambda: resolved(lab, node, "mc.default.svc.cluster.local") == [service],
            f"{node.host} resolves it",
        )


def test_command_runs_in_a_pod(lab, service):
    [pod, *_] = lab.ready("app=mc", len(lab.nodes))
    assert lab.execute(pod, "/usr/bin/memcached", "-V").startswith("memcached 1.")


def test_field_that_kubernetes_does_not_know_is_an_error(lab):
    with pytest.raises(AssertionError, match="hostNetworks"):
        lab.apply(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": "wrong"},
                "spec": {"hostNetworks": True, "containers": [{"name": "c", "image": "i"}]},
            }
        )


def test_servers_answer_while_the_api_server_is_away_and_pods_change_afterwards(lab, service):
    before = ids(lab)
    for node in lab.nodes.values():
        until(lambda: answers(node, service), f"the Service answers on {node.host}", every=0.1)
    with lab.api_away():
        with pytest.raises(OSError):
            lab.pods("app=mc")
        assert all(answers(node, service) for node in lab.nodes.values())
    assert ids(lab) == before
    lab.delete_pod(lab.pods("app=mc")[0])
    until(lambda: len(ids(lab) - before) == 1, "there is another pod", every=0.1)
    lab.ready("app=mc", len(lab.nodes))


def test_new_node_serves_and_is_missed_once_it_was_killed_and_comes_back(lab, service):
    node = lab.node_added()
    until(lambda: serving(lab) == lab.nodes.keys(), "its server is behind the Service", every=0.1)
    until(lambda: answers(node, service), "the Service answers there", every=0.1)
    before = ids(lab)
    lab.kill_node(node.host)
    until(lambda: serving(lab) == lab.nodes.keys() - {node.host}, "its server is out", every=0.1)
    assert not lab.is_ready(node.host)
    lab.boot(node.host)
    until(lambda: serving(lab) == lab.nodes.keys(), "its server is back", every=0.1)
    assert ids(lab) == before
    lab.wait_for_nodes()


def test_node_that_is_cut_off_is_missed_until_its_cable_is_in_again(lab, service):
    with lab.cut("n1"):
        until(lambda: serving(lab) == lab.nodes.keys() - {"n1"}, "its server is out", every=0.1)
    until(lambda: serving(lab) == lab.nodes.keys(), "its server is back", every=0.1)
    lab.wait_for_nodes()


def traces(mark):
    """All that is left of a lab: files, namespaces, control groups, processes and mounts."""
    found = [str(mark.folder)] if mark.folder.exists() else []
    found += mark.namespaces()
    found += [str(root / mark.name) for root in hierarchies().values() if (root / mark.name).exists()]
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        # A process may end meanwhile.
        with contextlib.suppress(OSError):
            words = (process / "cmdline").read_text() + (process / "cgroup").read_text()
            mounts = (process / "mountinfo").read_text()
            if re.search(rf"/{mark.name}(?![\w-])", words + mounts):
                found.append(f"{process}: {words}")
    return found


def test_nothing_is_left_of_a_lab_whose_process_was_killed_and_others_live(lab):
    own, other = Mark("proxima-lab-killed"), Mark()
    script = (
        "from harness.lab.cluster import Cluster\n"
        "from harness.lab.mark import Mark\n"
        f"lab = Cluster(1, Mark({own.name!r}))\n"
        "print('ready', flush=True)\n"
        "input()\n"
    )
    command = [sys.executable, "-c", script]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, cwd=ROOT / "tests", text=True, **pipes) as child:
        assert child.stdout.readline() == "ready\n"
        child.send_signal(signal.SIGKILL)
    assert any("kubelet" in each for each in traces(own))
    before = set(lab.nodes["n1"].cgroup.processes())
    sweep(own)
    until(lambda: not traces(own), f"nothing is left: {traces(own)}")
    assert set(lab.nodes["n1"].cgroup.processes()) == before
    assert traces(other) and lab.is_ready("n1")


def test_kubelet_changes_settings_of_its_node_and_not_of_the_machine(lab):
    for node in lab.nodes.values():
        assert tunables(node.folder / "sys")["vm/overcommit_memory"] == "1"
    assert tunables("/proc/sys") == BEFORE


def test_second_lab_of_a_name_is_refused(lab):
    with pytest.raises(RuntimeError, match="another process has the lab proxima-lab"):
        Mark().claim()
