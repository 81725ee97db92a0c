"""Other things happen while the operator rolls a Galera cluster."""

import contextlib
import os
import pathlib
import signal
import time
from typing import NamedTuple

import pytest

from harness import SOAK, number, until
from harness.lab.backup import backup
from harness.lab.failures import Failures
from harness.lab.galera import SPACE
from harness.lab.galera_clients import Clients, Verdict
from harness.lab.objects import is_ready, node_of

# One process has the lab.
pytestmark = [
    pytest.mark.alone,
    pytest.mark.timeout(600),
    pytest.mark.skipif(not SOAK, reason="what happens in each step of a roll is part of `make soak`"),
]

STEPS = ("Draining", "AwaitingPod", "MovingWriter", "ReturningWriter")


class Roll(NamedTuple):
    """A roll of a cluster with three proxies, of which clients use the first two."""

    lab: object
    pods: object
    proxies: object
    operator: object
    clients: object
    step: str

    def third_proxy(self):
        return max(self.proxies.ready(), key=lambda pod: pod["metadata"]["creationTimestamp"])

    def signal(self, pod, program, number):
        """Sends a signal to the process of a program in a pod."""
        node, uid = self.lab.nodes[pod["spec"]["nodeName"]], pod["metadata"]["uid"]
        groups = {each: pathlib.Path(f"/proc/{each}/cgroup") for each in node.processes(program)}
        [process] = [each for each, group in groups.items() if uid in group.read_text()]
        os.kill(process, number)


def kill_proxy(roll):
    roll.signal(roll.third_proxy(), "/usr/local/bin/proxima", signal.SIGKILL)


def freeze_proxy(roll):
    pod = roll.third_proxy()
    roll.signal(pod, "/usr/local/bin/proxima", signal.SIGSTOP)
    # It sleeps for longer than an order lasts, or until its kubelet has killed it.
    time.sleep(40)
    with contextlib.suppress(ValueError):
        roll.signal(pod, "/usr/local/bin/proxima", signal.SIGCONT)


def restart_proxy(roll):
    roll.lab.delete_pod(roll.third_proxy())


def api_away(roll):
    with roll.lab.api_away():
        time.sleep(60)
    roll.lab.wait_for_nodes()


def begin_backup(roll):
    """No pod goes while it runs. When the writer returns, none is left to go."""
    job = backup(roll.lab)
    roll.lab.apply(job)
    is_last = roll.step == "ReturningWriter"
    roll.operator.wait_for(*(("BackupRunning",) if is_last else ("Reconciling", "BackupRuns")))
    assert all(map(is_ready, roll.pods.pods().values()))
    roll.lab.delete(job)


def drain_node(roll):
    """A node is cordoned, and its servers are evicted as by `kubectl drain`: a budget may say no."""
    roll.lab.kubectl("cordon", "n2")
    try:
        for pod in roll.pods.pods().values():
            if node_of(pod) == "n2":
                until(lambda pod=pod: roll.pods.evict(pod) in (201, 404, 409), "it is evicted", every=0.5)
        until(lambda: all(map(is_ready, roll.pods.pods().values())), "all are back", every=0.5)
    finally:
        roll.lab.kubectl("uncordon", "n2")


@contextlib.contextmanager
def session(roll):
    """A client's connection. A failure names the proxy that it is to."""
    with roll.clients.connect() as client:
        try:
            yield client
        except Exception as error:
            error.add_note(f"by the proxy {client.host}")
            raise


def long_transaction(roll):
    """A transaction of twenty seconds ends well: the writer does not move before."""
    with session(roll) as client:
        client.begin()
        client.query("INSERT INTO pairs (client, turn, half) VALUES (9, 1, 0)")
        time.sleep(20)
        client.query("INSERT INTO pairs (client, turn, half) VALUES (9, 1, 1)")
        client.commit()


def sleep_with_lock(roll):
    """A session keeps a lock by name, and so its connection, and sleeps."""
    with session(roll) as client:
        client.query("SELECT GET_LOCK('mine', 0)")
        time.sleep(20)
        client.query("SELECT RELEASE_LOCK('mine')")


FAULTS = {
    "a proxy is killed": kill_proxy,
    "a proxy is frozen": freeze_proxy,
    "a proxy is restarted": restart_proxy,
    "the API server is away for a minute": api_away,
    "a backup begins": begin_backup,
    "a node is drained": drain_node,
    "a transaction of twenty seconds": long_transaction,
    "a client sleeps with a lock": sleep_with_lock,
}


@pytest.fixture
def seen(lab, galera_pods, galera_proxies, smart_update, tmp_path):
    """Checks what clients see of a roll in which something happens."""

    def check(fault, step, judge=Verdict.check):
        clients = Clients(lab, galera_pods, galera_proxies, tmp_path)
        galera_proxies.scale(3)
        galera_proxies.ready()
        failures = Failures(lab, SPACE)
        with failures.noted(), clients:
            roll = Roll(lab, galera_pods, galera_proxies, smart_update, clients, step)
            revision = galera_pods.template_changed(turn=f"fault-{number()}")
            smart_update.wait_for_step(step)
            with failures.noted():
                FAULTS[fault](roll)
            smart_update.wait_for_roll(revision)
            clients.more()
        with failures.noted():
            verdict = clients.verdict()
            print(f"{fault} in step {step}: {verdict}")
            judge(verdict)
        failures.check()

    yield check
    galera_proxies.scale(2)
    galera_proxies.ready()


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("fault", FAULTS)
def test_clients_notice_nothing_of_what_happens_in_a_roll(seen, fault, step):
    # A server ends at once whose pod others evict, before anybody could lead its clients away.
    judge = Verdict.check_beside_evictions if FAULTS[fault] is drain_node else Verdict.check
    seen(fault, step, judge)


def test_clients_notice_nothing_of_a_drained_node_whose_servers_wait_before_they_end(seen, galera_pods):
    """In this step all pods are of the new template. Proxies hear that they end, and lead clients away."""
    galera_pods.wait_before_the_end(seconds=5)
    try:
        seen("a node is drained", "ReturningWriter")
    finally:
        galera_pods.wait_before_the_end(seconds=None)
