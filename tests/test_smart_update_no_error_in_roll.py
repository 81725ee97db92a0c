"""A Galera cluster in the lab is rolled by the operator, and clients notice nothing."""

import statistics

import pytest

from harness import SOAK
from harness.lab.galera_clients import under_load

# One process has the lab.
pytestmark = [pytest.mark.alone, pytest.mark.timeout(3600 if SOAK else 300)]

ROLLS = 10 if SOAK else 1


def test_no_client_sees_an_error_in_a_roll_while_a_third_proxy_comes(
    lab, galera_pods, galera_proxies, smart_update, tmp_path
):
    holds = []

    def roll(turn):
        revision = galera_pods.template_changed(turn=f"error-{turn}")
        smart_update.wait_for_step("AwaitingPod")
        galera_proxies.scale(3)
        galera_proxies.ready()
        last = smart_update.wait_for_roll(revision)
        holds.append(last["longestHoldMs"])

    for turn in range(ROLLS):
        verdict, took = under_load(lab, galera_pods, galera_proxies, tmp_path, lambda turn=turn: roll(turn))
        print(f"roll {turn + 1}: {took:.1f} s, longest hold {holds[-1]} ms: {verdict}")
        verdict.check()
        galera_proxies.scale(2)
        galera_proxies.ready()
    moves = smart_update.moves()
    print(f"holds: {moves}, median {statistics.median(moves):.0f} ms")


@pytest.mark.skipif(not SOAK, reason="what other rolls do to clients is part of `make soak`")
def test_rolls_without_the_operator_for_comparison(lab, galera_pods, galera_proxies, tmp_path):
    plain = ("RollingUpdate", lambda: galera_pods.roll_plain(turn="plain"))
    for name, roll in (plain, ("evictions alone", galera_pods.roll_bare)):
        verdict, took = under_load(lab, galera_pods, galera_proxies, tmp_path, roll)
        print(f"{name}: {took:.1f} s: {verdict}")
        assert verdict.wrong == []
