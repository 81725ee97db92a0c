"""A Galera cluster in the lab is rolled by orders to its proxies, as any program may give them."""

import pytest

from harness import SOAK
from harness.lab.galera import PODS
from harness.lab.galera_clients import under_load
from harness.lab.orders import Orders, Roll

# One process has the lab.
pytestmark = [
    pytest.mark.alone,
    pytest.mark.timeout(300),
    pytest.mark.skipif(not SOAK, reason="the operator's roll is the sample of `make test`"),
]


def test_no_client_sees_an_error_in_a_roll_by_orders(lab, galera_pods, galera_proxies, tmp_path):
    writer = galera_proxies.writer()
    roll = Roll(galera_pods, Orders(lab, galera_proxies))
    revision = galera_pods.template_changed(turn="orders")
    verdict, took = under_load(lab, galera_pods, galera_proxies, tmp_path, lambda: roll.run(revision))
    print(f"orders: {took:.1f} s, holds {roll.holds} ms: {verdict}")
    verdict.check()
    assert galera_pods.is_rolled(revision)
    assert roll.order == [*(name for name in reversed(PODS) if name != writer), writer]
    assert galera_proxies.writer() == writer
