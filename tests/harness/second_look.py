"""pytest's part of a second look: tests that failed beside others run once more, alone, unless their failing
can be no accident. docs/decisions/0071 says why; scripts/test.sh asks for it."""

import pytest

ACCIDENTS = 3
"""Tests of one run that fail by accident at most."""


def pytest_addoption(parser):
    parser.addoption(
        "--second-look", action="store_true", help="with --last-failed: run few, and none that is a verdict"
    )


def pytest_collection_finish(session):
    if not session.config.getoption("second_look"):
        return
    verdicts = [item.nodeid for item in session.items if item.get_closest_marker("verdict")]
    if verdicts:
        pytest.exit(f"second look: none, as one failure is a verdict: {', '.join(verdicts)}", returncode=1)
    if len(session.items) > ACCIDENTS:
        pytest.exit(f"second look: none, as {len(session.items)} tests failed", returncode=1)


def pytest_terminal_summary(terminalreporter, config):
    if config.getoption("second_look"):
        for report in terminalreporter.getreports("passed"):
            terminalreporter.line(f"second look: FLAKY, passed alone: {report.nodeid}")
