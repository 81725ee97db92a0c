#!/usr/bin/env python3
"""Unpacks the Redis and Valkey of other Debian releases, each beside its own C library, and prints how they
are started.

    ./servers.py                     # into target/servers; fetched once
    ./servers.py valkey trixie       # one of them

Nothing is installed. apt works on lists and packages of its own there, and the loader of the C library that
came with a server starts it.
"""

import pathlib
import shutil
import socket
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "captures"))
from newest import KEYRING, Unavailable, mirror, run

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "target" / "servers"
SERVERS = [("redis", "trixie"), ("redis", "sid"), ("valkey", "trixie"), ("valkey", "sid")]


def apt(folder, suite):
    """Options that keep apt from changing this machine."""
    for name in ["lists/partial", "cache/archives/partial", "packages"]:
        (folder / name).mkdir(parents=True, exist_ok=True)
    sources = folder / "sources.list"
    sources.write_text(f"deb [signed-by={KEYRING}] {mirror()} {suite} main\n")
    options = {
        "Dir::Etc::sourcelist": sources,
        "Dir::Etc::sourceparts": "/dev/null",
        "Dir::Etc::preferencesparts": "/dev/null",
        "Dir::State::lists": folder / "lists",
        "Dir::State::status": "/dev/null",
        "Dir::Cache": folder / "cache",
        "Acquire::Languages": "none",
        "Acquire::http::Timeout": "20",
        "APT::Sandbox::User": "",
    }
    return [word for name, value in options.items() for word in ("-o", f"{name}={value}")]


def libraries(options, server):
    """The names of the packages that have the server's program and the libraries that it is linked with."""
    names, todo = set(), [f"{server}-server", f"{server}-tools"]
    while todo:
        name = todo.pop()
        if name in names:
            continue
        names.add(name)
        for line in run("apt-cache", *options, "depends", "--important", name).splitlines():
            kind, _, needed = line.strip().partition(" ")
            if kind.endswith("Depends:") and needed.startswith(("lib", "zlib", "lua")):
                todo.append(needed)
    return sorted(names)


def fetch(server, suite):
    """Unpacks packages below root/."""
    if not pathlib.Path(KEYRING).exists() or not shutil.which("apt-get"):
        raise Unavailable("this is no Debian system")
    folder = FOLDER / f"{server}-{suite}"
    options = apt(folder, suite)
    run("apt-get", *options, "-q", "update")
    command = ["apt-get", *options, "-q", "download", *libraries(options, server)]
    result = subprocess.run(command, cwd=folder / "packages", capture_output=True, text=True, timeout=300)
    if result.returncode:
        raise Unavailable(result.stderr.strip()[-400:])
    root = folder / "unpacking"
    shutil.rmtree(root, ignore_errors=True)
    for package in (folder / "packages").glob("*.deb"):
        run("dpkg", "-x", package, root)
    root.rename(folder / "root")


def command(server, suite):
    """The command that starts the server, as words."""
    root = FOLDER / f"{server}-{suite}" / "root"
    if not root.exists():
        fetch(server, suite)
    places = [*root.glob("usr/lib*/ld-linux-*.so.*"), *root.glob("usr/lib/*/ld-linux-*.so.*")]
    if not places:
        raise Unavailable(f"no loader below {root}")
    library = ":".join(str(path) for path in root.glob("usr/lib/*-linux-gnu"))
    # A server looks at its name to know whether it is to check a file.
    name = f"{server}-server"
    tools = [root / "usr/bin" / name, root / "usr/bin" / f"{server}-check-rdb"]
    program = next(str(tool.resolve()) for tool in tools if tool.exists())
    return [str(places[0]), "--argv0", name, "--library-path", library, program]


def connect(path):
    """A connection to a server that is starting."""
    client = socket.socket(socket.AF_UNIX)
    client.settimeout(5)
    for _ in range(200):
        try:
            client.connect(str(path))
            return client
        except (FileNotFoundError, ConnectionRefusedError):
            time.sleep(0.05)
    raise Unavailable(f"no server at {path}")


if __name__ == "__main__":
    asked = tuple(sys.argv[1:3])
    for server, suite in [asked] if asked in SERVERS else SERVERS:
        try:
            print(server, suite, *command(server, suite))
        except (Unavailable, subprocess.TimeoutExpired, OSError) as error:
            print(f"no {server} of {suite} here: {error}")
