"""Files and symbols that the documentation names exist.

Every page is looked at but the changelog, which tells of what was. In numbered decisions paths are checked
and symbols are not: their text stays as it was decided.
"""

import functools
import pathlib
import re
import subprocess
import sys

import pytest

from harness.proxy import ROOT

sys.path.insert(0, str(ROOT / "deploy/monitoring"))

import families  # noqa: E402

DECISION = re.compile(r"docs/decisions/\d")
PAGES = sorted(
    {
        *ROOT.glob("*.md"),
        *ROOT.glob("docs/**/*.md"),
        *ROOT.glob("examples/*/*.md"),
        *ROOT.glob("charts/*/*.md"),
    }
)
PAGES.remove(ROOT / "CHANGELOG.md")
CODE = re.compile(
    r"(agent|bench|charts|deploy|examples|guard|operator|proxy|scripts|tests|wire)/.*"
    r"\.(rs|py|go|sh|toml|tsv|ya?ml|json|txt)"
)
NO_CODE = re.compile(r"bench/results/")

FENCED = re.compile(r"^```.*?^```", re.M | re.S)
QUOTED = re.compile(r"`([^`\n]+)`")
FILE = re.compile(r"([\w.{},*-]+/)*[\w.{},*-]+\.(rs|py|go|sh|tsv)")
PATH = re.compile(r"([\w{},*-]+/)+([\w.{},*-]+/?)?")
MEMBER = re.compile(r"((?:\w+::)*\w+)::(\w+)(?:\(\))?")
SYMBOL = re.compile(r"[A-Z][a-z0-9]+(?:[A-Z][a-z0-9]*)*|[a-z]\w*\(\)|[a-z][a-z0-9]*(?:_[a-z0-9]+)+")
STANDS_FOR = re.compile(r"NAME|DATE|KEY|PREFERENCE")

OTHERS = {
    "bench/results/DATE.json": "the place of a date",
    "conf/nutcracker.yml": "twemproxy's own file",
    "library/memcached": "an image",
    "pool/name": "the form of a key",
    "TestReal": "the beginning of tests' names",
    "default_schema": "ProxySQL's",
    "max_transactions_behind": "ProxySQL's",
    "max_writers": "ProxySQL's",
    "mysql_galera_hostgroups": "ProxySQL's",
    "mysql_query_rules": "ProxySQL's",
    "mysql_servers": "ProxySQL's",
    "mysql_users": "ProxySQL's",
    "transaction_persistent": "ProxySQL's",
    "writer_is_also_reader": "ProxySQL's",
    "require_secure_transport": "MySQL's",
    "pxc_strict_mode": "Percona XtraDB Cluster's",
    "ReplicasFirstPrimaryLast": "MariaDB's operator's",
    "uptime_in_seconds": "Redis'",
    "io_uring_enter": "the kernel's",
    "io_uring_register": "the kernel's",
    "listen_disabled_num": "memcached's",
}
"""What pages name that is not in this repository, and whose it is."""


@functools.cache
def paths():
    """The files of the repository and the folders in which they are."""
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True)
    if listed.returncode == 0:
        names = [name for name in listed.stdout.decode().splitlines() if (ROOT / name).exists()]
    else:
        kept = [path for path in ROOT.glob("[!.]*") if path.name != "target"]
        found = [path for top in kept for path in (top, *top.rglob("*")) if path.is_file()]
        names = [str(path.relative_to(ROOT)) for path in found]
    folders = {name[: slash.start() + 1] for name in names for slash in re.finditer("/", name)}
    return [*names, *folders]


@functools.cache
def sources():
    """The text of each file of code, by its name."""
    named = [name for name in paths() if CODE.fullmatch(name) and not NO_CODE.match(name)]
    texts = {name: (ROOT / name).read_text(errors="replace") for name in named}
    # The names that are listed here are nobody's.
    own = str(pathlib.Path(__file__).relative_to(ROOT))
    return texts | {own: re.sub(r'"[^"\n]*"', "", texts[own])}


@functools.cache
def words():
    return {word for text in sources().values() for word in re.findall(r"\w+", text)}


@functools.cache
def endings():
    """Each path, from the root and from any folder on."""
    parts = [path.rstrip("/").split("/") for path in paths()]
    return {"/".join(all_[first:]) for all_ in parts for first in range(len(all_))}


@functools.cache
def of(owner):
    """The words of the files in which a type is defined or gets methods, and of a module's files."""
    defines = re.compile(rf"\b(?:struct|enum|trait|type|mod|impl\b[^{{;]*|static|const)\s*\b{owner}\b")
    is_its = re.compile(rf"(^|/){owner}(/|\.)")
    texts = [
        text
        for name, text in sources().items()
        if name.endswith((".rs", ".go")) and (is_its.search(name) or owner in text and defines.search(text))
    ]
    return {word for text in texts for word in re.findall(r"\w+", text)}


def exists(path):
    """Whether this is a file or folder, from the root or from any folder on. `{a,b}` is each of both."""
    if several := re.search(r"\{([^{}]*)\}", path):
        before, after = path[: several.start()], path[several.end() :]
        return all(exists(f"{before}{one}{after}") for one in several[1].split(","))
    if "*" in path:
        form = re.compile(re.escape(path.rstrip("/")).replace(r"\*", "[^/]*"))
        return any(form.fullmatch(known) for known in endings())
    return path.rstrip("/") in endings()


def is_metric(name):
    """Metrics get their prefix and their ending where they are written."""
    return families.bare(name) in families.families()


def missing(text, is_history=False):
    """The files and symbols in this text that do not exist."""
    found = []
    for name in QUOTED.findall(FENCED.sub("", text)):
        if name in OTHERS or STANDS_FOR.search(name) or re.match(r"target/|[\d./]+$", name):
            continue
        if FILE.fullmatch(name) or PATH.fullmatch(name):
            is_there = exists(name)
        elif is_history:
            continue
        elif member := MEMBER.fullmatch(name):
            is_there = member[2] in of(member[1].split("::")[-1])
        elif SYMBOL.fullmatch(name):
            is_there = name.removesuffix("()") in words() or is_metric(name)
        else:
            continue
        if not is_there:
            found.append(name)
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_files_and_symbols_in_documents_exist(page):
    name = str(page.relative_to(ROOT))
    assert missing(page.read_text(), is_history=bool(DECISION.match(name))) == []


@pytest.mark.parametrize(
    "name",
    [
        "proxy/src/neverland.rs",
        "neverland.rs",
        "route/neverland/",
        "wire/src/{message,neverland}.rs",
        "tests/neverland_*.py",
        "Plan::Neverland",
        "Neverland::plan",
        "Plan::children()",
        "NeverLand",
        "neverland_at_all",
        "neverland_at_all()",
        "proxima_neverland_total",
    ],
)
def test_a_name_that_is_made_up_is_found(name):
    assert missing(f"A page names `{name}` and `Plan::Route`.") == [name]


def test_every_exception_is_still_named_by_a_page():
    texts = [page.read_text() for page in PAGES]
    assert [name for name in OTHERS if not any(f"`{name}`" in text for text in texts)] == []
