#!/usr/bin/env python3
"""Unpacks the memcached of Debian testing beside its own C library, and prints its version and its command.

    ./newest.py                     # into target/memcached-newest; fetched once

Nothing is installed.
"""

import subprocess
import sys

import debian
from debian import Unavailable

FOLDER = debian.TARGET / "memcached-newest"


def command():
    """The command that starts the server, as words."""
    root = debian.unpacked(FOLDER, "testing", ["memcached"])
    return [*debian.loader(root), str(root / "usr/bin/memcached")]


def version(words):
    """The version that a memcached started with this command reports, such as `1.6.45`."""
    return debian.run(*words, "-V").split()[1]


if __name__ == "__main__":
    try:
        words = command()
        print(version(words), *words)
    except (Unavailable, subprocess.TimeoutExpired, OSError) as error:
        sys.exit(f"no newest memcached here: {error}")
