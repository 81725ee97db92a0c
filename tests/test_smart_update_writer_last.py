"""The operator rolls a Galera cluster: readers first, the writer last."""

import pytest

from harness.lab.galera import PODS

# One process has the lab.
pytestmark = [pytest.mark.alone, pytest.mark.timeout(300)]


def test_the_writer_is_replaced_last_and_takes_writes_again(galera_pods, galera_proxies, smart_update):
    if galera_proxies.writer() == PODS[0]:
        # Otherwise it could be the last one because of its number.
        pod = galera_pods.pods()[PODS[0]]
        assert galera_pods.evict(pod) == 201
        galera_pods.replaced(pod)
        galera_proxies.wait_for_all()
    writer = galera_proxies.writer()
    assert writer != PODS[0]
    smart_update.wait_for_roll(galera_pods.template_changed(turn="writer"))
    pods = galera_pods.pods().items()
    replaced = sorted(dict(pods), key=lambda name: dict(pods)[name]["metadata"]["creationTimestamp"])
    readers = [name for name in reversed(PODS) if name != writer]
    assert replaced == [*readers, writer]
    assert galera_proxies.writer() == writer
