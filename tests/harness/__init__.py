"""What the tests are made of: real servers, the proxy as a process, clients that check every byte."""

import itertools
import os
import pathlib
import signal
import time

SOAK = bool(os.environ.get("PROXIMA_SOAK"))
"""The long runs: `make soak` sets it."""

TRIES = 200 if SOAK else 20
"""How often what depends on luck is tried."""

PATIENCE = 60.0
"""Seconds after which something that ought to happen is taken not to. A hang guard: nothing normally comes near it."""

_numbers = itertools.count(1)


def number():
    """For the name of a file: no other call in this process gets it."""
    return next(_numbers)


def until(condition, what):
    """Polls `condition` until it returns something true, and returns that. `what` is said when it never does."""
    end = time.monotonic() + PATIENCE * 0.9
    while True:
        result = condition()
        if result:
            return result
        assert time.monotonic() < end, f"never happened: {what}"
        time.sleep(0.01)


def freeze(process):
    """Stops a process until SIGCONT: what happens meanwhile it finds all at once."""
    process.send_signal(signal.SIGSTOP)
    tasks = pathlib.Path(f"/proc/{process.pid}/task")

    def stands_still():
        states = [(task / "stat").read_text().rsplit(")", 1)[1].split()[0] for task in tasks.iterdir()]
        return set(states) == {"T"}

    until(stands_still, "every thread has stopped")
