"""The example `galera-smart-update`: its demo rolls in three ways, and the operator's is without an error."""

import re
import subprocess

import pytest

from harness import SOAK
from harness.judge import BENCH
from harness.lab.images import OPERATOR
from harness.lab.requirements import why_not
from harness.proxy import BINARY, ROOT, environment

# One process has the lab.
pytestmark = [
    pytest.mark.alone,
    pytest.mark.timeout(900),
    pytest.mark.skipif(not SOAK, reason="it starts a Kubernetes cluster of its own"),
    pytest.mark.skipif(bool(why_not()), reason=str(why_not())),
    pytest.mark.skipif(
        not OPERATOR.exists(), reason="there is no operator: `make -C operator build` makes it"
    ),
]


def test_the_demo_shows_what_it_says():
    script = ROOT / "examples/galera-smart-update/demo.sh"
    programs = {"PROXIMA_BIN": BINARY, "PROXIMA_BENCH": BENCH, "PROXIMA_OPERATOR": str(OPERATOR)}
    ran = subprocess.run(["bash", script], capture_output=True, text=True, env={**environment(), **programs})
    assert ran.returncode == 0, ran.stdout + ran.stderr
    lines = [line.split(" | ") for line in re.findall(r"^\| (.*) \|$", ran.stdout, re.M)]
    head, _, *rows = lines
    found = {name: dict(zip(head[1:], cells, strict=True)) for name, *cells in rows}
    assert list(found) == ["RollingUpdate", "evictions alone", "SmartUpdate"]
    assert [row["stale or lost"] for row in found.values()] == ["0"] * 3
    assert found["SmartUpdate"]["errors"] == "0"
    assert re.fullmatch(r"\d+ ms(, \d+ ms)+", found["SmartUpdate"]["holds"])
