#!/usr/bin/env python3
"""Unpacks the memcached of Debian testing beside its own C library, and prints how to run it and which version it is.

    ./newest.py                     # into target/memcached-newest; fetched once

Nothing is installed: apt works on lists and packages of its own there, and the server is started by the loader of the
C library that came with it.
"""

import pathlib
import shutil
import subprocess
import sys

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "target" / "memcached-newest"
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
SUITE = "testing"


class Unavailable(Exception):
    """There is no newest memcached here, and why."""


def run(*command):
    result = subprocess.run(command, capture_output=True, text=True, timeout=300)
    if result.returncode:
        raise Unavailable(f"{' '.join(map(str, command))}: {result.stderr.strip()[-400:]}")
    return result.stdout


def mirror():
    """The Debian mirror of this machine."""
    lines = run("apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages").split()
    return next((line.rstrip("/") for line in lines if line.rstrip("/").endswith("/debian")), "http://deb.debian.org/debian")


def apt():
    """Options that keep apt's hands off this machine."""
    for name in ["lists/partial", "cache/archives/partial", "packages"]:
        (FOLDER / name).mkdir(parents=True, exist_ok=True)
    sources = FOLDER / "sources.list"
    sources.write_text(f"deb [signed-by={KEYRING}] {mirror()} {SUITE} main\n")
    options = {
        "Dir::Etc::sourcelist": sources,
        "Dir::Etc::sourceparts": "/dev/null",
        "Dir::Etc::preferencesparts": "/dev/null",
        "Dir::State::lists": FOLDER / "lists",
        "Dir::State::status": "/dev/null",
        "Dir::Cache": FOLDER / "cache",
        "Acquire::Languages": "none",
        "Acquire::http::Timeout": "20",
        "APT::Sandbox::User": "",
    }
    return [word for name, value in options.items() for word in ("-o", f"{name}={value}")]


def libraries(options):
    """memcached and the libraries that it needs, and those need."""
    names, todo = set(), ["memcached"]
    while todo:
        name = todo.pop()
        if name in names:
            continue
        names.add(name)
        for line in run("apt-cache", *options, "depends", "--important", name).splitlines():
            kind, _, needed = line.strip().partition(" ")
            if kind.endswith("Depends:") and needed.startswith(("lib", "zlib")):
                todo.append(needed)
    return sorted(names)


def fetch():
    """Packages, unpacked below root/."""
    if not pathlib.Path(KEYRING).exists() or not shutil.which("apt-get"):
        raise Unavailable("this is no Debian system")
    options = apt()
    run("apt-get", *options, "-q", "update")
    packages = FOLDER / "packages"
    command = ["apt-get", *options, "-q", "download", *libraries(options)]
    result = subprocess.run(command, cwd=packages, capture_output=True, text=True, timeout=300)
    if result.returncode:
        raise Unavailable(result.stderr.strip()[-400:])
    root = FOLDER / "unpacking"
    shutil.rmtree(root, ignore_errors=True)
    for package in packages.glob("*.deb"):
        run("dpkg", "-x", package, root)
    root.rename(FOLDER / "root")


def command():
    """The words that start it."""
    root = FOLDER / "root"
    if not root.exists():
        fetch()
    loader = next(root.glob("usr/lib*/ld-linux-*.so.*"), None) or next(root.glob("usr/lib/*/ld-linux-*.so.*"), None)
    if not loader:
        raise Unavailable(f"no loader below {root}")
    library = ":".join(str(path) for path in root.glob("usr/lib/*-linux-gnu"))
    return [str(loader), "--library-path", library, str(root / "usr/bin/memcached")]


def version(words):
    """What a memcached that is started with these words calls itself: `1.6.45`."""
    return run(*words, "-V").split()[1]


if __name__ == "__main__":
    try:
        words = command()
        print(version(words), *words)
    except (Unavailable, subprocess.TimeoutExpired, OSError) as error:
        sys.exit(f"no newest memcached here: {error}")
