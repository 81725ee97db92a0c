#!/usr/bin/env python3
"""Unpacks the memcached of Debian testing beside its own C library, and prints its version and its command.

    ./newest.py                     # into target/memcached-newest; fetched once

Nothing is installed. apt works on lists and packages of its own there, and the loader of the C library that
came with the server starts it.
"""

import pathlib
import shutil
import subprocess
import sys

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "target" / "memcached-newest"
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
SUITE = "testing"


class Unavailable(Exception):
    """The reason why the newest memcached is not available here."""


def run(*command):
    result = subprocess.run(command, capture_output=True, text=True, timeout=300)
    if result.returncode:
        raise Unavailable(f"{' '.join(map(str, command))}: {result.stderr.strip()[-400:]}")
    return result.stdout


def mirror():
    """The Debian mirror of this machine."""
    lines = run("apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages").split()
    return next(
        (line.rstrip("/") for line in lines if line.rstrip("/").endswith("/debian")),
        "http://deb.debian.org/debian",
    )


def apt():
    """Options that keep apt from changing this machine."""
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
    """The names of memcached's package and of all packages that it depends on."""
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
    """Unpacks packages below root/."""
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
    """The command that starts the server, as words."""
    root = FOLDER / "root"
    if not root.exists():
        fetch()
    loader = next(root.glob("usr/lib*/ld-linux-*.so.*"), None) or next(
        root.glob("usr/lib/*/ld-linux-*.so.*"), None
    )
    if not loader:
        raise Unavailable(f"no loader below {root}")
    library = ":".join(str(path) for path in root.glob("usr/lib/*-linux-gnu"))
    return [str(loader), "--library-path", library, str(root / "usr/bin/memcached")]


def version(words):
    """The version that a memcached started with this command reports, such as `1.6.45`."""
    return run(*words, "-V").split()[1]


if __name__ == "__main__":
    try:
        words = command()
        print(version(words), *words)
    except (Unavailable, subprocess.TimeoutExpired, OSError) as error:
        sys.exit(f"no newest memcached here: {error}")
