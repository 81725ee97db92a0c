"""The example `auto-eject-pool`: what its clients see while servers and proxies come and go."""

import pathlib
import re
import shutil
import subprocess

import pytest

from harness.judge import BENCH
from harness.nutcracker import NUTCRACKER
from harness.proxy import BINARY, ROOT, environment

HAPROXY = shutil.which("haproxy", path="/usr/sbin:/usr/bin:/sbin:/bin")
CLIENTS = 8
"""The clients of each balancer. Each has one request at a time."""
TOGETHER = 2
"""So many requests may share the fate of one that finds a lost server still lost."""


def figures(text, step):
    """How many requests failed in a step, and how many were asked again on a new connection: first with
    Proxima, and then with twemproxy if it is there."""
    [line] = re.findall(rf"^{step} +(\d+ of .*)$", text, re.M)
    found = re.findall(r"(\d+) of (\d+), (\d+) again", line)
    assert all(int(requests) > 20 for _, requests, _ in found), line
    return [(int(errors), int(again)) for errors, _, again in found]


def told(text, kind, step):
    """The errors that clients were told in this step, each as often as it was told."""
    section = text.split(f"== What they were told with {kind}\n")[1].split("\n== ")[0]
    lines = re.findall(rf"^{step}: (\d+) (.*)$", section, re.M)
    return [said for count, said in lines for _ in range(int(count))]


@pytest.mark.heavy
@pytest.mark.timeout(120)
@pytest.mark.skipif(not HAPROXY, reason="haproxy is missing: scripts/prepare.sh installs it")
@pytest.mark.skipif(not shutil.which("redis-server"), reason="redis-server is missing: scripts/prepare.sh")
def test_clients_of_the_example_see_no_more_errors_than_with_twemproxy(fixed_ports):
    script = ROOT / "examples/auto-eject-pool/demo.sh"
    with fixed_ports:
        ran = subprocess.run(
            ["bash", script], capture_output=True, text=True, env={**environment(), "PROXIMA_BIN": BINARY}
        )
    text = ran.stdout
    assert ran.returncode == 0, text + ran.stderr
    kinds = ["Proxima", *(["twemproxy"] if pathlib.Path(NUTCRACKER).exists() else [])]
    lost = [told(text, kind, "a server is killed") for kind in kinds]
    assert [len(errors) for errors in lost] == [errors for errors, _ in figures(text, "a server is killed")]
    refused, *theirs = [sum("refused" in said for said in errors) for errors in lost]
    # Each of the two proxies finds each of the two servers lost, once.
    assert 0 < refused <= max([4, *theirs]) + TOGETHER, text
    assert len(lost[0]) - refused <= CLIENTS, f"more than were under way\n{text}"
    for step in (
        "nothing happens",
        "the server returns",
        "a proxy is drained, and comes back",
        "the proxy is started again",
        "a fifth server is added to the file",
    ):
        assert figures(text, step)[0][0] == 0, text
    assert figures(text, "a fifth server is added to the file")[0][1] == 0, f"connections were lost\n{text}"
    assert figures(text, "a proxy is killed")[0][0] <= CLIENTS, text
    assert all(said.startswith("no reply") for said in told(text, "Proxima", "a proxy is killed")), text


@pytest.mark.heavy
@pytest.mark.timeout(120)
@pytest.mark.skipif(not HAPROXY, reason="haproxy is missing: scripts/prepare.sh installs it")
@pytest.mark.skipif(not pathlib.Path(NUTCRACKER).exists(), reason="nutcracker is missing: scripts/prepare.sh")
def test_the_figures_of_the_example_have_both_proxies_with_and_without_a_balancer(tmp_path):
    words = f"--quick --rounds 1 --distribution modula --results {tmp_path} --plots {tmp_path}"
    env = {**environment(), "PROXIMA_BIN": BINARY, "PROXIMA_BENCH": BENCH, "FIGURES": words}
    script = ROOT / "examples/auto-eject-pool/demo.sh"
    ran = subprocess.run(["bash", script], capture_output=True, text=True, env=env)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    paths = "direct | proxima-nutcracker | proxima-nutcracker, balanced | twemproxy | twemproxy, balanced |"
    assert ran.stdout.count(f"| requests | servers | {paths}") == 2, ran.stdout
    for asked in ("get, connections kept", "set, one connection each"):
        rates, costs = re.findall(rf"^\| {asked}, modula \| 5 \| (.*) \|$", ran.stdout, re.M)
        assert "–" not in [cell.split()[0] for cell in rates.split(" | ")], ran.stdout
        assert [cell.split()[0] == "–" for cell in costs.split(" | ")] == [True] + [False] * 4, ran.stdout
