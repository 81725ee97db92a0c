"""Tests that failed beside others run once more, alone: few of them, and none whose failing is a verdict."""

import os
import subprocess
import sys

import pytest

from harness.proxy import ROOT

ONCE = """
import pathlib, pytest
def fails_once(name):
    seen = pathlib.Path(__file__).with_name(name)
    before = seen.exists()
    seen.touch()
    assert before
"""
LOG = """
test wire::a ... ok
test sessions::b ... FAILED

error: 1 target failed:
    `{program}`
"""


@pytest.fixture
def run(tmp_path):
    """Runs these tests, and then those that failed a second time. Returns both processes."""

    def run(body):
        (tmp_path / "test_it.py").write_text(ONCE + body)
        (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n    verdict: as ours\n")
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-p",
            "harness.second_look",
            "-n",
            "2",
            "--dist",
            "worksteal",
        ]
        environment = {
            name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "PROXIMA_"))
        }
        environment["PYTHONPATH"] = str(ROOT / "tests")

        def look(*more):
            return subprocess.run(
                [*command, *more, tmp_path], capture_output=True, text=True, cwd=tmp_path, env=environment
            )

        return look("--cache-clear"), look("--last-failed", "--second-look", "-n", "0")

    return run


def test_what_failed_beside_others_and_passes_alone_is_named(run):
    first, second = run("def test_one(): fails_once('one')\ndef test_two(): pass\n")
    assert first.returncode == 1
    assert second.returncode == 0, second.stdout
    assert "second look: FLAKY, passed alone: test_it.py::test_one" in second.stdout
    assert "test_two" not in second.stdout


def test_what_fails_again_fails(run):
    first, second = run("def test_one(): assert False\n")
    assert (first.returncode, second.returncode) == (1, 1)


def test_a_verdict_gets_no_second_look(run):
    _, second = run("@pytest.mark.verdict\ndef test_one(): fails_once('one')\n")
    assert second.returncode == 1
    assert "second look: none, as one failure is a verdict" in second.stdout


def test_many_failures_are_no_accident(run):
    _, second = run("@pytest.mark.parametrize('name', 'abcd')\ndef test_one(name): fails_once(name)\n")
    assert second.returncode == 1
    assert "second look: none, as 4 tests failed" in second.stdout


def judged(tmp_path, log):
    """What the script for the crates does with this log. `cargo` is one that passes and tells its options."""
    cargo = tmp_path / "cargo"
    cargo.write_text('#!/bin/sh\necho "cargo $*"\n')
    cargo.chmod(0o755)
    (tmp_path / "log").write_text(log)
    path = f"{tmp_path}:{os.environ['PATH']}"
    script = ROOT / "scripts/second_look.py"
    command = [sys.executable, script, tmp_path / "log"]
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PATH": path})


def test_of_the_crates_those_with_sockets_run_again(tmp_path):
    done = judged(tmp_path, LOG.format(program="-p proxima --test contract"))
    assert done.returncode == 0, done.stderr
    assert (
        "cargo test --locked -p proxima --test contract -- --test-threads=1 --exact sessions::b"
        in done.stdout
    )
    assert "second look: FLAKY, passed alone: sessions::b" in done.stdout


def test_of_the_crates_what_depends_on_its_input_alone_does_not(tmp_path):
    done = judged(tmp_path, LOG.format(program="-p proxima --lib"))
    assert done.returncode == 1
    assert "second look: none, as -p proxima --lib depends on its input alone" in done.stderr


def test_an_error_of_the_compiler_gets_no_second_look(tmp_path):
    done = judged(tmp_path, "error: could not compile `proxima`\n")
    assert done.returncode == 1
    assert "second look: none, as something else than a test failed" in done.stderr
