"""Packages of other Debian releases, unpacked in folders of their own, and how their programs are started.

Nothing is installed. apt works on lists and packages of its own there, and the loader of the C library that
came with a program starts it.
"""

import pathlib
import re
import shlex
import shutil
import subprocess

KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
TARGET = pathlib.Path(__file__).resolve().parents[2] / "target"

LIBRARIES = ("lib", "zlib", "lua")
"""How the names of the packages begin that a program may be linked with."""


class Unavailable(Exception):
    """The reason why a program is not available here."""


def run(*command, **options):
    result = subprocess.run(command, capture_output=True, text=True, timeout=300, **options)
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


def needed(lines):
    """The names in the output of `apt-cache depends --recurse`, each with the libraries that it needs."""
    packages, name = {}, None
    for line in lines:
        kind, _, other = line.strip().partition(" ")
        if not line.startswith(" "):
            name = line.strip()
            packages[name] = set()
        elif kind.endswith("Depends:") and other.startswith(LIBRARIES):
            packages[name].add(other)
    return packages


def with_libraries(options, programs):
    """The names of these packages and of the libraries that they are linked with."""
    # One call for all of them, as apt reads its lists again in each.
    told = run("apt-cache", *options, "depends", "--important", "--recurse", *programs)
    packages = needed(told.splitlines())
    names, todo = set(), list(programs)
    while todo:
        name = todo.pop()
        if name not in names:
            names.add(name)
            todo += packages.get(name, ())
    return sorted(names)


def require(options, package, version):
    """The suite has this version of a package: `9.7` stands for all whose name begins so."""
    told = run("apt-cache", *options, "show", "--no-all-versions", package)
    found = next(line for line in told.splitlines() if line.startswith("Version: "))
    if not re.match(rf"Version: (\d+:)?{re.escape(version)}\b", found):
        raise Unavailable(f"{package} is not of version {version}: {found}")


def fetch(folder, suite, programs, version):
    """Unpacks these packages and their libraries below root/."""
    if not pathlib.Path(KEYRING).exists() or not shutil.which("apt-get"):
        raise Unavailable("this is no Debian system")
    options = apt(folder, suite)
    run("apt-get", *options, "-q", "update")
    if version:
        require(options, programs[0], version)
    packages = folder / "packages"
    run("apt-get", *options, "-q", "download", *with_libraries(options, programs), cwd=packages)
    root = folder / "unpacking"
    shutil.rmtree(root, ignore_errors=True)
    for package in packages.glob("*.deb"):
        run("dpkg", "-x", package, root)
    root.rename(folder / "root")
    for name in ("lists", "packages"):
        shutil.rmtree(folder / name)


def unpacked(folder, suite, programs, version=None):
    """The root of these packages, which are fetched once. The first of them has this version."""
    root = folder / "root"
    if not root.exists():
        fetch(folder, suite, programs, version)
    return root


def loader(root, *private):
    """The words that start a program below `root`, which stands behind them, with its own libraries.
    `private`: folders below `root` with libraries of this program alone."""
    places = [*root.glob("usr/lib*/ld-linux-*.so.*"), *root.glob("usr/lib/*/ld-linux-*.so.*")]
    if not places:
        raise Unavailable(f"no loader below {root}")
    folders = [*root.glob("usr/lib/*-linux-gnu"), *(root / folder for folder in private)]
    return [str(places[0]), "--library-path", ":".join(map(str, folders))]


def wrap(root, program, *private):
    """Replaces a program below `root` by a script that starts it with its own libraries, and with those in
    the `private` folders. This is for programs that others start by their name."""
    path = root / program
    real = path.with_name(f"{path.name}.real")
    if real.exists():
        return
    words = shlex.join([*loader(root, *private), "--argv0"])
    script = path.with_name(f"{path.name}.script")
    script.write_text(f'#!/bin/sh\nexec {words} "$0" {shlex.quote(str(real))} "$@"\n')
    script.chmod(0o755)
    path.rename(real)
    script.rename(path)
