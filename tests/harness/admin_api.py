"""docs/admin-api.md as data: the requests that it names, and the examples that it shows.

A heading such as `### GET /ready` names a request. An example is a fenced block `http`: a request with its
headers and body, an empty line, status and content type, and the body. `UPDATE_ADMIN_API=1` writes what the
program answers in the place of the answers."""

import json
import re

from .proxy import ROOT

PAGE = ROOT / "docs/admin-api.md"
MORE = "…"
"""Stands for what an example leaves out."""
WIDTH = 100
LINES = 12

HEADING = re.compile(r"^### ((?:[A-Z]+ /\S*(?:, )?)+)$", re.M)
BLOCK = re.compile(r"^```http\n(.*?)^```$", re.M | re.S)
ROUTE = re.compile(
    r'\.route\(\s*"(?P<path>[^"]+)"(?P<rest>.*?)(?=\n        \.(?:route|layer|with_state)\()', re.S
)


def documented():
    """The requests that headings name, as `GET /ready`."""
    return {request for heading in HEADING.findall(PAGE.read_text()) for request in heading.split(", ")}


def routed():
    """The requests that the program's router knows."""
    text = (ROOT / "proxy/src/admin/mod.rs").read_text()
    found = set()
    for route in ROUTE.finditer(text):
        for method in re.findall(r"\b(get|post|put|delete)\(", route["rest"]):
            found.add(f"{method.upper()} {route['path']}")
    return found


class Example:
    """A request, and the answer that the page shows."""

    def __init__(self, text):
        self.text = text
        self.request, _, self.answer = text.partition("\n\n")
        head, *rest = self.request.split("\n")
        self.method, self.path = head.split(" ", 1)
        headers = [line for line in rest if re.match(r"[A-Za-z-]+: ", line)]
        self.headers = dict(line.split(": ", 1) for line in headers)
        self.body = "\n".join(line for line in rest if line not in headers).encode() or None
        self.status, _, self.shown = self.answer.partition("\n")

    def written(self, status, text):
        """The example with this answer."""
        return f"{self.request}\n\n{status}\n{brief(status, text)}"


def examples():
    return [Example(text) for text in BLOCK.findall(PAGE.read_text())]


def brief(status, text):
    """An answer as the page shows it."""
    if "application/json" in status:
        return pretty(json.loads(text)) + "\n"
    if "event-stream" in status:
        text = "\n\n".join(first_messages(text).values())
    lines = text.splitlines()
    if "ndjson" in status:
        return "\n".join(lines[:LINES]) + "\n"
    lines = [line if len(line) <= WIDTH else line[: WIDTH - 1] + MORE for line in lines]
    return "\n".join(lines[:LINES] + [MORE] * (len(lines) > LINES)) + "\n"


def first_messages(stream):
    """The first message of each kind in a stream of server-sent events."""
    found = {}
    for message in stream.strip().split("\n\n"):
        kind = re.search(r"^event: (.*)$", message, re.M)[1]
        found.setdefault(kind, message)
    return found


NAMED = ("listeners", "pools", "members", "hot_keys", "edges")
WINDOWED = ("latency", "held", "queued")
ELSEWHERE = ("fleet", "near", "mysql")
"""Parts that are described with the request that has them alone."""


def fields(value, place="", parent=""):
    """The paths of all fields of a document, with a word for what is a name."""
    if not isinstance(value, dict) or place in ELSEWHERE:
        return {place}
    found = set()
    for name, item in value.items():
        if parent in WINDOWED:
            # All windows have the same fields, which are described once.
            found |= {f"{place}.WINDOW", *(f"WINDOW.{own}" for own in item)}
        elif parent in NAMED:
            found |= fields(item, f"{place}.NAME")
        else:
            found |= fields(item, f"{place}.{name}".lstrip("."), name)
    return found


FIELD = re.compile(r"^\| `([^`]+)` \| [^|]* \| ([^|]*) ?\|$", re.M)


def described():
    """The fields of the document of `/watch` on the page, and when each is missing; empty: never."""
    return {path: missing.strip() for path, missing in FIELD.findall(PAGE.read_text())}


def pretty(value, indent=0, room=WIDTH):
    """JSON that is short where it fits into a line."""
    short = json.dumps(value, ensure_ascii=False)
    if len(short) <= room - indent or not value or not isinstance(value, (dict, list)):
        return short
    inner = " " * (indent + 1)
    if isinstance(value, list):
        items = [pretty(item, indent + 1, room) for item in value]
        return "[" + f",\n{inner}".join(items) + "]"
    items = []
    for name, item in value.items():
        head = json.dumps(name, ensure_ascii=False) + ": "
        text = json.dumps(item, ensure_ascii=False)
        if items and "\n" not in items[-1] and len(items[-1]) + len(head) + len(text) + indent + 3 < room:
            items[-1] += f", {head}{text}"
        else:
            items.append(head + pretty(item, indent + 1, room - len(head)))
    return "{" + f",\n{inner}".join(items) + "}"


def differences(shown, answered, place="answer"):
    """How the fields of two JSON values differ: their names, and what kind of value they have."""
    if shown is None or answered is None:
        return []
    if isinstance(shown, bool) or not isinstance(shown, (int, float)):
        same = type(shown) is type(answered)
    else:
        same = isinstance(answered, (int, float)) and not isinstance(answered, bool)
    if not same:
        return [f"{place} is {answered!r}, and not as {shown!r}"]
    if isinstance(shown, list):
        if not shown or not answered:
            return [] if bool(shown) == bool(answered) else [f"{place}: {answered} in place of {shown}"]
        return differences(merged(shown), merged(answered), f"{place}[]")
    if not isinstance(shown, dict):
        return []
    found = [f"{place} has no {name}" for name in shown.keys() - answered.keys()]
    found += [f"{place} has {name}, which is not shown" for name in answered.keys() - shown.keys()]
    for name in shown.keys() & answered.keys():
        found += differences(shown[name], answered[name], f"{place}.{name}")
    return found


def merged(values):
    """All fields of some values in one."""
    if not all(isinstance(value, dict) for value in values):
        return values[0]
    return {name: item for value in values for name, item in value.items()}


def masked(line):
    """A line of text without what differs from run to run."""
    line = re.sub(r"[0-9a-f]{16}-[0-9a-f]{8}", "VERSION", line).replace("io_uring", "epoll")
    return re.sub(r"\d+(\.\d+)?", "N", line)


def text_differs(shown, answered):
    """The first line of a text that is not as shown; None if all are."""
    lines, found = shown.splitlines(), answered.splitlines()
    if MORE in lines:
        found = found[: lines.index(MORE)] + [MORE]
    for one, other in zip(lines, found, strict=False):
        if one == MORE:
            continue
        one = one.removesuffix(MORE)
        if masked(one) != masked(other[: len(one)] if len(other) > WIDTH else other):
            return f"`{other}` in place of `{one}`"
    return None if len(lines) == len(found) else f"{len(found)} lines in place of {len(lines)}"
