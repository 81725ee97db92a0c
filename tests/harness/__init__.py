"""The tests' tools: real servers, the proxy as a process, and clients that check every byte."""

import contextlib
import itertools
import os
import pathlib
import signal
import time

SOAK = bool(os.environ.get("PROXIMA_SOAK"))
"""Whether this is a long run: `make soak` sets it."""

TRIES = 200 if SOAK else 20
"""How often a test repeats what depends on chance."""

PATIENCE = 60.0
"""Seconds after which an expected event counts as missing. It guards against hangs: no test normally comes
near it."""

_numbers = itertools.count(1)


def number():
    """A number for the name of a file, which no other call in this process gets."""
    return next(_numbers)


def until(condition, what, every=0.01, longest=PATIENCE * 0.9):
    """Polls `condition` until it returns something true, and returns that. If it does not within `longest`
    seconds, the test fails with `what`."""
    end = time.monotonic() + longest
    while True:
        result = condition()
        if result:
            return result
        assert time.monotonic() < end, f"never happened: {what}"
        time.sleep(every)


def freeze(process):
    """Stops a process until SIGCONT. The process then finds all at once what has happened meanwhile."""
    process.send_signal(signal.SIGSTOP)
    tasks = pathlib.Path(f"/proc/{process.pid}/task")

    def stands_still():
        states = set()
        for task in tasks.iterdir():
            # A thread may have ended meanwhile.
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                states.add((task / "stat").read_text().rsplit(")", 1)[1].split()[0])
        return states == {"T"}

    until(stands_still, "every thread has stopped")
