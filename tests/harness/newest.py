"""The newest memcached, beside the one of this system."""

import subprocess
import sys

import pytest

from . import SOAK
from .proxy import ROOT


def newest():
    """The command that starts it. The test is skipped where there is none. Only the long runs fetch it."""
    if not SOAK and not (ROOT / "target/memcached-newest/root").exists():
        pytest.skip("the newest memcached was not fetched yet: wire/captures/newest.py")
    done = subprocess.run([sys.executable, ROOT / "wire/captures/newest.py"], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(done.stderr.strip())
    _version, *words = done.stdout.split()
    return words
