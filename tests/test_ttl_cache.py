"""The example of expensive answers that are kept as bytes: its daemon, and what its demo says."""

import re
import subprocess

from harness.proxy import BINARY, ROOT, environment


def test_the_demo_shows_what_it_says(fixed_ports):
    script = ROOT / "examples/ttl-cache/demo.sh"
    settings = {**environment(), "PROXIMA_BIN": BINARY, "READS": "20"}
    with fixed_ports:
        ran = subprocess.run(["bash", script], capture_output=True, text=True, env=settings)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "http://127.0.0.1:9711/" in ran.stdout
    assert "50 modules ask at once: the daemon makes 1 map" in ran.stdout
    before, after = re.search(r"from epoch (\d+), .* has epoch (\d+)", ran.stdout).groups()
    assert int(after) == int(before) + 1
    with_tag, without = re.search(r"CPU is (\d+) ms with ETag and (\d+) ms without", ran.stdout).groups()
    assert int(with_tag) < int(without)
    rows = re.findall(r"^ *(\d+)  (received|decoded)", ran.stdout, re.MULTILINE)
    assert {number for number, _ in rows} == {"10", "100", "1000", "3000"}
    assert "manager" in ran.stdout.split("rule ")[1], "the rule is listed"
