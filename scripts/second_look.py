"""Runs the few tests of the crates that have failed beside others once more, one at a time.

    python3 scripts/second_look.py target/cargo-test.log

The log is that of `cargo test --no-fail-fast`. Exit code 0: each of them has passed, and is named as flaky. A
test without sockets depends on nothing but its input, so that it gets no second look: neither do more than
three, which are no accident. docs/decisions/0071 says why there is a second look at all.
"""

import re
import subprocess
import sys

MOST = 3
"""Failures of one run that can be accidents."""
WITH_SOCKETS = {"contract", "engine", "reactor", "suite"}
"""Programs of tests whose peers are real, so that a machine without a free processor can disturb them."""


def failures(log):
    """The programs that failed, as options of cargo, and the names of the tests that failed in them."""
    programs = re.findall(r"^    `(-p \S+ --\S+(?: \S+)?)`$", log, re.M)
    names = re.findall(r"^test (\S+)(?: - should panic)? \.\.\. FAILED$", log, re.M)
    return programs, list(dict.fromkeys(names))


def why_not(programs, names):
    """Why these failures get no second look, or None."""
    if not programs or not names:
        return "something else than a test failed"
    others = [program for program in programs if program.split()[-1] not in WITH_SOCKETS]
    if others:
        return f"{', '.join(others)} depends on its input alone"
    if len(names) > MOST:
        return f"{len(names)} tests failed"
    return None


def main():
    with open(sys.argv[1]) as log:
        programs, names = failures(log.read())
    reason = why_not(programs, names)
    if reason:
        sys.exit(f"second look: none, as {reason}")
    print(f"second look: {', '.join(names)} failed beside others and run once more, alone", flush=True)
    for program in programs:
        command = ["cargo", "test", "--locked", *program.split(), "--", "--test-threads=1", "--exact", *names]
        if subprocess.run(command).returncode:
            sys.exit("second look: failed again")
    print(f"second look: FLAKY, passed alone: {', '.join(names)}")


if __name__ == "__main__":
    main()
