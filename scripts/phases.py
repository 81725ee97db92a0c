"""Compares how much processor time the phases of `.ci/run` took with what CONTRIBUTING.md records.

    python3 scripts/phases.py compare [--rows target/phases.tsv] [--page CONTRIBUTING.md]
    python3 scripts/phases.py record  the same options: writes the page's table anew

A phase that took over 10 % more than recorded, or over the share that the table gives it, is an error.
Machines differ in speed, and two processors that share a core are slower than one, so that the figures of
another run are first divided by this run's pace: the median, over all phases, of what they took by what was
recorded. A phase that alone has grown does not move the median. A faster machine is given no less time than
the recorded one.
"""

import argparse
import pathlib
import re
import statistics
import sys

USUAL = "10 %"
SLACK = 5
"""Seconds more that no phase is blamed for: a short phase varies by more than a tenth."""
LEAST = 20
"""Seconds that a phase takes at least where the pace is taken from it."""
FEWEST = 4
"""Phases that the pace is taken from. Of fewer, one that has grown would be a large part."""
SLOWEST = 1.5
"""The pace above which nothing is said: such a machine is another one, or busy with something else."""

HEAD = "| phase | seconds | CPU seconds | may grow by |"
ROW = re.compile(r"^\| (?P<name>[^|]+?) \| (?P<seconds>\d+) \| (?P<cpu>\d+) \| (?P<growth>[^|]*?) \|$")
GROWTHS = {
    "tools, installed once": "anything: they may be there",
    "control plane of Kubernetes, built once": "anything: it may be there, and Go has a cache",
    "helm, built once": "anything: it may be there, and Go has a cache",
    "cargo-deny, built once": "anything: it may be there",
    "operator, with a real API server": "anything: Go has a cache",
    "node agent, waited for (it began at the start)": "anything: Go has a cache of its own",
    "end-to-end tests, 2 at a time": "25 %: they load the processors for a time",
    "end-to-end tests, one by one": "25 %: they load the processors for a time",
}
"""The last column of phases that depend on more than this repository, or whose load ends by time alone."""


def read_rows(text):
    """The phases of a run: {name: (seconds, CPU seconds)}. A phase that ran twice counts twice. None: a phase
    did not end well."""
    phases = {}
    for line in text.splitlines():
        seconds, cpu, name = line.split("\t")
        if cpu == "-":
            return None
        before = phases.get(name, (0, 0))
        phases[name] = (before[0] + int(seconds), before[1] + int(cpu))
    return phases


def read_page(text):
    """The recorded CPU seconds of each phase that is compared, and the factor by which it may grow."""
    recorded = {}
    for row in filter(None, map(ROW.match, text.splitlines())):
        if percent := re.match(r"(\d+) %", row["growth"]):
            recorded[row["name"]] = (int(row["cpu"]), 1 + int(percent[1]) / 100)
    return recorded


def compare(phases, recorded):
    """This run's pace, and a line for each phase that has grown. Without a pace nothing can be said."""
    both = {name: (phases[name][1], *known) for name, known in recorded.items() if name in phases}
    ratios = [now / before for now, before, _ in both.values() if before >= LEAST]
    if len(ratios) < FEWEST:
        return None, []
    pace = statistics.median(ratios)
    if pace > SLOWEST:
        return None, []
    grown = []
    for name, (now, before, growth) in both.items():
        allowed = before * max(pace, 1) * growth + SLACK
        if now > allowed:
            grown.append(f"{name}: {now} CPU seconds, {before} recorded, at most {allowed:.0f} at this pace")
    return pace, grown


def table(phases):
    lines = [HEAD, "|---|--:|--:|---|"]
    for name, (seconds, cpu) in phases.items():
        lines.append(f"| {name} | {seconds} | {cpu} | {GROWTHS.get(name, USUAL)} |")
    return "\n".join(lines)


def written(page, phases):
    """The page with the table of these phases in place of its own."""
    return re.sub(
        rf"^{re.escape(HEAD)}\n(\|.*\n)*", lambda _: table(phases) + "\n", page, count=1, flags=re.M
    )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("task", choices=["compare", "record"])
    parser.add_argument("--rows", type=pathlib.Path, default="target/phases.tsv")
    parser.add_argument("--page", type=pathlib.Path, default="CONTRIBUTING.md")
    options = parser.parse_args()
    phases = read_rows(options.rows.read_text())
    if phases is None:
        sys.exit("phases: not every phase ended well, so that nothing is said about them")
    page = options.page.read_text()
    if options.task == "record":
        options.page.write_text(written(page, phases))
        return
    pace, grown = compare(phases, read_page(page))
    if pace is None:
        print("phases: NOT COMPARED: this run has too few phases of the table, or a machine of another speed")
        return
    print(f"phases: compared with {options.page}, at {pace:.2f} times the recorded processor time")
    if grown:
        remedy = "find out why, or write the table anew: RECORD_PHASES=1 .ci/run (CONTRIBUTING.md)"
        sys.exit("\n".join(["phases: these have grown:", *grown, remedy]))


if __name__ == "__main__":
    main()
