"""The operator rolls a Galera cluster: readers first, the writer last."""

import pytest

from harness import until
from harness.lab.galera import PODS
from harness.lab.galera_proxies import WRITER

# One process has the lab.
pytestmark = [pytest.mark.alone, pytest.mark.timeout(300)]


def test_the_writer_is_replaced_last_and_takes_writes_again(galera_pods, galera_proxies, smart_update):
    until(lambda: galera_proxies.writer() == WRITER, "it takes writes", every=0.1)
    smart_update.wait_for_roll(galera_pods.template_changed(turn="writer"))
    pods = galera_pods.pods()
    replaced = sorted(pods, key=lambda name: pods[name]["metadata"]["creationTimestamp"])
    readers = [name for name in reversed(PODS) if name != WRITER]
    assert replaced == [*readers, WRITER]
    assert galera_proxies.writer() == WRITER
