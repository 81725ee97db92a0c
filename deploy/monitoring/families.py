"""Metrics that exist, found in the sources of the proxy, the node agent and the operator."""

import functools
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROXY = ROOT / "proxy/src/admin"
AGENT = ROOT / "agent/internal/status/metrics.go"
OPERATOR = ROOT / "operator/internal/controller/metrics.go"

KINDS = {"gauge", "counter", "histogram", "summary", "info"}
# A name stands before its type, or before its meaning, which begins with a capital.
NAMED = re.compile(
    rf'"([a-z]\w+)",\s*(?:Counter::\w+,\s*)?(?:"(?:{"|".join(sorted(KINDS))})"|"[A-Z`]|help\b)'
)
BOUND = re.compile(r'let name = "(\w+)";')
OF_AGENT = re.compile(r'\b(?:metric|labelled)\("(\w+)"')
OF_OPERATOR = re.compile(r'Name: "(proxima_operator_\w+)"')
UNIT = re.compile(r"_(total|bucket|sum|count|info)$")


@functools.cache
def families():
    """The names of all families, with their prefix and without the ending of their rows."""
    sources = [*PROXY.glob("metrics/*.rs"), PROXY / "process.rs"]
    text = "".join(path.read_text() for path in sources)
    names = {*NAMED.findall(text), *BOUND.findall(text)} - KINDS
    names = {name if name.startswith("process_") else f"proxima_{name}" for name in names}
    names |= {f"proxima_agent_{name}" for name in OF_AGENT.findall(AGENT.read_text())}
    names |= {bare(name) for name in OF_OPERATOR.findall(OPERATOR.read_text())}
    return {bare(name) for name in names}


def bare(name):
    """The family of a row's name."""
    return UNIT.sub("", name)
