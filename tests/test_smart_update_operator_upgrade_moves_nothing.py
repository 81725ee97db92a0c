"""An upgrade of the chart, with new pods of the operator and of the proxies, moves no pod of a database."""

import copy

import pytest

from harness import until
from harness.lab import galera_proxies as proxies
from harness.lab import smart_update as operator
from harness.lab.galera import NAME, SPACE
from harness.lab.objects import is_ready

# One process has the lab.
pytestmark = [pytest.mark.alone, pytest.mark.timeout(300)]

ANNOTATIONS = {"upgrade": "done"}


def test_no_database_pod_is_another_one_after_an_upgrade_of_operator_and_proxies(
    lab, galera_pods, galera_proxies, smart_update
):
    before = {name: pod["metadata"]["uid"] for name, pod in galera_pods.pods().items()}
    writer = galera_proxies.writer()
    values = copy.deepcopy(galera_proxies.values)
    for part in (values["operator"], values["proxies"][NAME]):
        part.setdefault("pod", {})["annotations"] = ANNOTATIONS
    galera_proxies.install(**values)

    def is_upgraded(selector, count):
        pods = lab.pods(selector, SPACE)
        new = [pod for pod in pods if ANNOTATIONS.items() <= pod["metadata"].get("annotations", {}).items()]
        return len(new) == len(pods) == count and all(map(is_ready, pods))

    until(lambda: is_upgraded(operator.SELECTED, 1), "the operator is a new one", every=0.1)
    until(lambda: is_upgraded(proxies.SELECTED, galera_proxies.count), "the proxies are new ones", every=0.1)
    # The new operator looks at what is new: a second object for the set, and a limit in the first one.
    second = smart_update.example("second")
    lab.apply(second)
    smart_update.wait_for("Stalled", "AnotherActs", "second")
    lab.delete(second)
    lab.apply(smart_update.example(limits={"moves": 9}))
    smart_update.wait_for("Ready")
    assert {name: pod["metadata"]["uid"] for name, pod in galera_pods.pods().items()} == before
    assert galera_proxies.writer() == writer
