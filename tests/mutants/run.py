"""Switches off each rule of `mysql.tsv` beside this file, one after the other, and demands that the tests of
sessions fail without it. `make soak` runs it.

The sources are changed in a worktree of their own, below `target`, which has one build folder for all
rules.
The files are those of this worktree, with what is not committed. Arguments: words that the last column of
a rule must have; without any, all rules are taken.
"""

import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
TABLE = pathlib.Path(__file__).with_name("mysql.tsv")
PLACE = ROOT / "target" / "mutants"
SOURCES, BUILT = PLACE / "sources", PLACE / "built"

TESTS = (
    "tests/test_mysql_matrix.py",
    "tests/test_mysql_marked.py",
    "tests/test_mysql_shared_connections.py",
    "tests/test_mysql_limits.py",
)


def rules():
    """The rules of the table."""
    for number, line in enumerate(TABLE.read_text().splitlines(), 1):
        if line and not line.startswith("#"):
            cells = line.split("\t")
            assert len(cells) == 4, f"line {number} has {len(cells)} columns and not four"
            file, text, instead, what = cells
            yield file, text.replace("\\n", "\n"), instead.replace("\\n", "\n"), what


def changed(file, text, instead):
    """The file with the text replaced, which must stand there exactly once."""
    source = (ROOT / file).read_text()
    count = source.count(text)
    assert count == 1, f"{file}: this text stands there {count} times and not once: {text}"
    return source.replace(text, instead)


def run(command, **options):
    return subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options)


def prepare():
    """Brings the scratch worktree to the files of this one, and keeps its build folder."""
    if not SOURCES.exists():
        done = run(["git", "worktree", "add", "--detach", SOURCES, "HEAD"], cwd=ROOT)
        assert done.returncode == 0, done.stdout
    ours, theirs = names(ROOT), names(SOURCES, "--cached", "--others", "--exclude-standard")
    for name in ours:
        source, copy = ROOT / name, SOURCES / name
        if source.is_file() and not (copy.is_file() and copy.read_bytes() == source.read_bytes()):
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(source.read_bytes())
    # What an earlier run had and this worktree does not would be built too.
    for name in theirs:
        if not (ROOT / name).is_file():
            (SOURCES / name).unlink(missing_ok=True)


def names(worktree, *which):
    """The names of the files that git lists there."""
    return [*filter(None, run(["git", "ls-files", "-z", *which], cwd=worktree).stdout.split("\0"))]


def built():
    """The program as it is built from the scratch worktree, or the compiler's words."""
    env = {**os.environ, "CARGO_TARGET_DIR": str(BUILT), "RUSTFLAGS": "-A warnings"}
    command = ["cargo", "build", "--locked", "-p", "proxima"]
    done = run(command, cwd=SOURCES, env=env)
    return (BUILT / "debug" / "proxima", "") if done.returncode == 0 else (None, done.stdout)


def tests_pass(program):
    """Whether the tests pass with this program, and what they say."""
    env = {**os.environ, "PROXIMA_BIN": str(program)}
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-n", "2", *TESTS]
    done = run(command, cwd=ROOT, env=env)
    # Several processes of pytest that stop at the first failure end as if they were interrupted.
    has_failed = done.returncode == 1 or "stopping after 1 failures" in done.stdout
    assert done.returncode == 0 or has_failed, done.stdout
    return done.returncode == 0, done.stdout


def main(words):
    all_rules = [rule for rule in rules() if all(word in rule[3] for word in words)]
    # A table that is out of date is told before anything is built.
    wrong = []
    for file, text, instead, what in all_rules:
        try:
            changed(file, text, instead)
        except AssertionError as error:
            wrong.append(f"{what}: {error}")
    if not wrong:
        prepare()
        program, said = built()
        assert program, said
        passes, said = tests_pass(program)
        assert passes, f"the tests fail with all rules:\n{said[-5000:]}"
        for file, text, instead, what in all_rules:
            source = SOURCES / file
            source.write_text(changed(file, text, instead))
            program, said = built()
            if not program:
                wrong.append(f"{what}: it does not compile: {said[-1000:]}")
            elif tests_pass(program)[0]:
                wrong.append(f"{what}: no test fails without it")
            else:
                print(f"without it tests fail: {what}", flush=True)
            source.write_text((ROOT / file).read_text())
    print(*wrong, sep="\n")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
