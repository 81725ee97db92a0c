"""The comparison of the phases of `.ci/run` with the table in CONTRIBUTING.md: what has grown is an error,
and a machine of another speed is not."""

import subprocess
import sys

import pytest

from harness.proxy import ROOT

SCRIPT = ROOT / "scripts/phases.py"
NAMES = ["lint", "program", "crates", "model", "end to end", "alone"]
RECORDED = dict(zip(NAMES, [150, 300, 700, 90, 1000, 200]))


def growth(name):
    return "25 %: a time" if name == "alone" else "10 %"


PAGE = (
    "before\n\n| phase | seconds | CPU seconds | may grow by |\n|---|--:|--:|---|\n"
    + "".join(f"| {name} | 1 | {cpu} | {growth(name)} |\n" for name, cpu in RECORDED.items())
    + "| node agent | 1 | 100 | anything: a cache |\n\nafter\n"
)


def at(pace, **changed):
    """The phases of a run at this pace, with those that are named in `changed` so many times longer."""
    factors = {name.replace("_", " "): factor for name, factor in changed.items()}
    return {name: int(cpu * pace * factors.get(name, 1)) for name, cpu in RECORDED.items()}


@pytest.fixture
def run(tmp_path):
    """Runs a task of the script with these phases. Returns exit code, words, and the page afterwards."""
    page, rows = tmp_path / "page.md", tmp_path / "rows.tsv"
    page.write_text(PAGE)

    def run(task, phases):
        rows.write_text("".join(f"10\t{cpu}\t{name}\n" for name, cpu in phases.items()))
        command = [sys.executable, SCRIPT, task, "--rows", rows, "--page", page]
        done = subprocess.run(command, capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr, page.read_text()

    return run


@pytest.mark.parametrize(
    "phases, blamed",
    [
        pytest.param(at(1), None, id="as recorded"),
        pytest.param(at(1, crates=1.09), None, id="a tenth is not reached"),
        pytest.param(at(1, crates=1.15), "crates", id="one has grown"),
        pytest.param(at(1, alone=1.2), None, id="one that may grow by more"),
        pytest.param(at(1, alone=1.3), "alone", id="one that may grow by more has grown by even more"),
        pytest.param(at(1.3), None, id="a slower machine"),
        pytest.param(at(1.3, end_to_end=1.15), "end to end", id="a slower machine, and one has grown"),
        pytest.param(at(0.6), None, id="a faster machine"),
        pytest.param(at(0.6, crates=1.5), None, id="a faster machine is given no less time"),
        pytest.param(at(1, model=1.14), None, id="a few seconds of a short phase"),
        pytest.param({**at(1), "node agent": 900}, None, id="a phase that is not compared"),
        pytest.param({**at(1), "new": 900}, None, id="a phase that is not recorded"),
        pytest.param(at(1, crates=0.01, lint=0.01), None, id="two that were built before"),
    ],
)
def test_a_phase_that_grew_by_a_tenth_on_its_own_is_an_error_with_its_name_and_remedy(run, phases, blamed):
    code, words, page = run("compare", phases)
    assert page == PAGE
    if blamed:
        assert code == 1 and f"\n{blamed}: " in words and "RECORD_PHASES=1" in words, words
        assert words.count("CPU seconds,") == 1, words
    else:
        assert code == 0, words


@pytest.mark.parametrize(
    "phases", [at(2), dict(list(at(1, lint=3).items())[:3])], ids=["a machine of another kind", "few phases"]
)
def test_where_the_pace_is_not_known_it_says_so_and_blames_nobody(run, phases):
    code, words, _ = run("compare", phases)
    assert code == 0 and "NOT COMPARED" in words, words


def test_recorded_phases_replace_the_table_and_nothing_else(run):
    tools = "tools, installed once"
    code, words, page = run("record", {tools: 40, "crates": 8, "new": 5})
    assert code == 0, words
    table = "| crates | 10 | 8 | 10 % |\n| new | 10 | 5 | 10 % |\n"
    assert table in page and f"| {tools} | 10 | 40 | anything: " in page
    assert page.startswith("before\n\n| phase |") and page.endswith("|\n\nafter\n") and "lint" not in page


def test_a_run_whose_phase_failed_is_not_recorded(run):
    code, words, page = run("record", {"crates: not ended well": "-"})
    assert code == 1 and "not every phase ended well" in words and page == PAGE


def test_the_page_has_a_table_that_the_script_reads():
    page = (ROOT / "CONTRIBUTING.md").read_text()
    assert page.count("| phase | seconds | CPU seconds | may grow by |\n") == 1
