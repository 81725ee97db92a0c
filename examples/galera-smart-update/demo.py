"""Rolls a Galera cluster in three ways while sixteen clients write and read, and prints what they saw.

`demo.sh` runs it with the tests' tools, which start a Kubernetes cluster of two nodes on this machine.
"""

import sys
import tempfile

from harness import galera
from harness.lab import requirements
from harness.lab.cluster import Cluster
from harness.lab.galera import Galera
from harness.lab.galera_clients import under_load
from harness.lab.galera_proxies import Proxies
from harness.lab.mark import Mark
from harness.lab.smart_update import SmartUpdate

HEAD = ("roll", "took", "errors", "of requests", "stale or lost", "no write for", "servers at least", "holds")


def say(text):
    print(f"demo: {text}", flush=True)


def main():
    if reason := requirements.why_not() or galera.why_not():
        sys.exit(f"demo: {reason}")
    say("starting a Kubernetes cluster of two nodes, and a Galera cluster of three pods in it")
    # A lab of the tests may run at the same time.
    lab = Cluster(mark=Mark("proxima-lab-demo"))
    try:
        with tempfile.TemporaryDirectory() as folder:
            table(rolls(lab, folder))
    finally:
        lab.stop()


def rolls(lab, folder):
    """The cells of the table, a row for each way."""
    pods = Galera(lab)
    proxies = Proxies(lab)

    def row(name, roll, holds=lambda: ""):
        say(f"rolling: {name}")
        verdict, took = under_load(lab, pods, proxies, folder, roll)
        pause = f"{1000 * verdict.no_write_for:.0f} ms"
        counted = (verdict.errors, verdict.requests, len(verdict.wrong))
        return name, f"{took:.0f} s", *counted, pause, verdict.fewest_online, holds()

    yield row("RollingUpdate", lambda: pods.roll_plain(turn="plain"))
    yield row("evictions alone", pods.roll_bare)
    operator = SmartUpdate(lab, proxies)

    def roll():
        operator.wait_for_roll(pods.template_changed(turn="smart"))

    yield row("SmartUpdate", roll, lambda: ", ".join(f"{hold} ms" for hold in operator.moves()))


def table(rows):
    lines = [HEAD, ["---"] * len(HEAD), *rows]
    print()
    for line in lines:
        print(f"| {' | '.join(map(str, line))} |")


main()
