"""The operator is killed in a roll, and the roll ends right."""

import itertools
import time

import pytest

from harness import SOAK
from harness.lab.galera_clients import Clients

# One process has the lab.
pytestmark = [pytest.mark.alone, pytest.mark.timeout(300)]

STEPS = ("Draining", "Evicting", "AwaitingPod", "MovingWriter", "ReturningWriter")
AWAY = (1, 60)
"""Seconds for which it is not there."""

KILLS = list(itertools.product(STEPS, AWAY)) * 2 if SOAK else [("AwaitingPod", 1)]


@pytest.mark.parametrize("number", range(len(KILLS)))
def test_a_roll_ends_right_whose_operator_was_killed(
    lab, galera_pods, galera_proxies, smart_update, tmp_path, number
):
    step, away = KILLS[number]
    with Clients(lab, galera_pods, galera_proxies, tmp_path) as clients:
        revision = galera_pods.template_changed(turn=f"killed-{number}")
        smart_update.wait_for_step(step)
        smart_update.kill()
        if away > 1:
            smart_update.scale(0)
            time.sleep(away)
            smart_update.scale(1)
        smart_update.wait_for_roll(revision)
        clients.more()
    verdict = clients.verdict()
    print(f"killed in step {step}, away for {away} s: {verdict}")
    verdict.check(errors=False)
    # Where an order ends before the operator is back, each proxy moves its writer by itself.
    assert [text for text in verdict.texts if "1213" not in text] == []
