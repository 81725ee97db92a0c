#!/usr/bin/env python3
"""Writes redis.tsv: every command of the servers that are served, as data.

    ./generate.py            # asks the servers
    ./generate.py --known    # takes what redis.tsv says of them: only decisions have changed

It asks the installed redis-server and those of servers.py for COMMAND, takes names, arities, flags and key
specifications from the answers (facts, and no sentence), and joins decisions.tsv, near.tsv and empty.tsv.
Where two servers have a command, they must agree about its keys. The newest one's word holds for the rest.
What they answer to the requests of empty.tsv, while they are empty, it writes to captures/resp/empty.tsv.
"""

import datetime
import fnmatch
import pathlib
import re
import subprocess
import sys
import tempfile
import time

import servers

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "captures"))
INSTALLED = ("redis", "installed")


def read(stream):
    """The next value of a reply in RESP2."""
    line = stream.readline()
    kind, rest = line[:1], line[1:-2]
    if kind == b"*":
        return [read(stream) for _ in range(int(rest))]
    if kind == b"$":
        return stream.read(int(rest) + 2)[:-2].decode() if int(rest) >= 0 else None
    return int(rest) if kind == b":" else rest.decode()


def read_bytes(stream):
    """The bytes of the next reply."""
    line = stream.readline()
    kind, rest = line[:1], line[1:-2]
    if kind == b"$" and int(rest) >= 0:
        return line + stream.read(int(rest) + 2)
    count = int(rest) * (2 if kind == b"%" else 1) if kind in b"*~%" else 0
    return line + b"".join(read_bytes(stream) for _ in range(count))


class Server:
    """A server on a Unix socket of its own."""

    def __init__(self, words):
        self.words = words

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory()
        path = pathlib.Path(self.folder.name, "socket")
        options = ["--port", "0", "--unixsocket", str(path), "--save", "", "--dir", self.folder.name]
        self.process = subprocess.Popen([*self.words, *options], stdout=subprocess.DEVNULL)
        self.client = servers.connect(path)
        return self

    def ask(self, *words, read=read):
        request = [f"*{len(words)}\r\n", *(f"${len(word)}\r\n{word}\r\n" for word in words)]
        self.client.sendall("".join(request).encode())
        with self.client.makefile("rb") as stream:
            return read(stream)

    def when_empty(self, request):
        """What it answers to this request in RESP2 and in RESP3 while it is empty; nothing if it does not
        know the request."""
        found = []
        for version in "23":
            self.ask("HELLO", version, read=read_bytes)
            self.ask("FLUSHALL", read=read_bytes)
            found.append(self.ask(*request.split(" "), read=read_bytes).decode().replace("\r\n", r"\r\n"))
        self.ask("HELLO", "2", read=read_bytes)
        is_unknown = found[0].startswith(("-ERR unknown ", "-ERR wrong number ", "-ERR syntax error"))
        return None if is_unknown else found

    def __exit__(self, *_):
        self.client.close()
        self.process.terminate()
        self.process.wait()
        self.folder.cleanup()


# Servers do not tell all keys of these: SORT's destination stands behind a word, BY and GET name patterns,
# and of channels only those of shards are told.
TOLD = {
    "sort": "@1 range 0 1 0; @STORE,2 range 0 1 0",
    "sort_ro": "@1 range 0 1 0",
    "publish": "@1 range 0 1 0 channel",
    "pubsub|numsub": "@2 range -1 1 0 channel",
    "pubsub|shardnumsub": "@2 range -1 1 0 channel",
}


def pairs(values):
    return dict(zip(values[::2], values[1::2], strict=True))


def spec(raw):
    """One key specification: where to begin, and which of the arguments from there on are keys."""
    outer = pairs(raw)
    begin, find = pairs(outer["begin_search"]), pairs(outer["find_keys"])
    if "unknown" in (begin["type"], find["type"]):
        return "?"
    begin_spec, find_spec = pairs(begin["spec"]), pairs(find["spec"])
    if begin["type"] == "index":
        where = f"@{begin_spec['index']}"
    else:
        where = f"@{begin_spec['keyword']},{begin_spec['startfrom']}"
    if find["type"] == "range":
        which = "range {lastkey} {keystep} {limit}".format(**find_spec)
    else:
        which = "number {keynumidx} {firstkey} {keystep}".format(**find_spec)
    marks = {mark.lower() for mark in outer["flags"]}
    return f"{where} {which}" + " channel" * ("not_key" in marks)


def commands(raw):
    """Name, arity, flags and keys of each command and subcommand."""
    for entry in raw:
        name, arity, flags, first, last, step, _categories, _tips, specs, subcommands = entry
        name = name.lower()
        yield (
            name,
            {
                "arity": arity,
                "flags": sorted(flags),
                "keys": f"{first} {last} {step}",
                "specs": TOLD.get(name) or "; ".join(map(spec, specs)),
            },
        )
        yield from commands(subcommands)


def decisions():
    return [(columns + [""] * 4)[:4] for columns in rows_of("decisions.tsv")]


def rows_of(file):
    """The rows of a table, without its comments."""
    lines = (HERE / file).read_text("utf-8").split("\n")
    return [line.split("\t") for line in lines if line and not line.startswith("#")]


def answer_of_none(name, served, rows):
    """What an empty server answers to a command, as text; nothing for one that never reaches a server's place
    in a tree."""
    for pattern, _requests, answer in rows:
        if fnmatch.fnmatchcase(name, pattern):
            return answer
    if served in ("alone", "own"):
        return "server"
    if served not in ("here", "transaction", "channels", "refused", "container"):
        raise SystemExit(f"empty.tsv does not say what an empty server answers to {name}")
    return ""


def decide(name, command, rows):
    for pattern, served, kind, reason in rows:
        if fnmatch.fnmatchcase(name, pattern):
            return served, kind or by_flags(command), reason
    if not command["specs"] and not command["is_container"]:
        raise SystemExit(f"{name} has no key and no decision")
    return "key", by_flags(command), ""


def by_flags(command):
    flags = command["flags"]
    if "blocking" in flags or command["is_container"]:
        return "session"
    return "write" if "write" in flags else "read" if "readonly" in flags else "write"


def near(name, command, kind, rows):
    """Whether a reply may be kept, and what the command changes, as words."""
    words = [word for pattern, word, *_ in rows if fnmatch.fnmatchcase(name, pattern)]
    kept = [word for word in words if word in ("kept", "never")]
    changes = [word for word in words if word not in ("kept", "never")]
    reads_one_key = kind == "read" and re.fullmatch(r"@\d+ range 0 1 0", command["specs"])
    if len(kept) != (1 if reads_one_key else 0) or len(changes) > 1:
        raise SystemExit(f"near.tsv: {words or 'nothing'} is said of {name}")
    return "kept" if "kept" in kept else "", changes[0] if changes else changes_by_flags(command)


def changes_by_flags(command):
    if "write" not in command["flags"]:
        return "nothing"
    return "keys" if command["specs"] else "everything"


SERVED = {
    "key": "by key",
    "pattern": "by key, alone with BY or GET",
    "any": "by one server",
    "list": "one for each server, elements in order",
    "pairs": "one for each server, elements in order",
    "sum": "one for each server, summed",
    "ok": "one for each server, all must be OK",
    "here": "by the proxy",
    "each:ok": "by every server, all must be OK",
    "each:sum": "by every server, summed",
    "each:concat": "by every server, one list behind the other",
    "each:unite": "by every server, what any lists once",
    "each:first": "by every server, the first reply",
    "each:one": "by every server, one that has found something",
    "each:and": "by every server, the least of each element",
    "each:any": "by every server, one success is enough",
    "walk": "by one server after the other",
    "channel": "by the server of its channel",
    "channels": "by the servers of its channels, on connections of the client's own",
    "patterns": "by every server, on connections of the client's own",
    "transaction": "in a transaction",
    "alone": "alone",
    "own": "alone, on a connection of the client's own from then on",
    "refused": "refused",
    "container": "by its subcommands",
}


def document(rows):
    """Writes the table of docs/redis.md."""
    page = HERE.parents[1] / "docs" / "redis.md"
    begin, end = "<!-- generated by wire/commands/generate.py -->\n", "<!-- end -->\n"
    before, rest = page.read_text("utf-8").split(begin)
    after = rest.split(end)[1]
    table = ["| command | served | why, or what instead |", "|---|---|---|"]
    for row in rows:
        name, _arity, flags, _keys, _specs, served, _class, reason, *_ = row.split("\t")
        if served == "channels" and name.startswith("p"):
            served = "patterns"
        words = SERVED[served] + ", dedicated while it blocks" * ("blocking" in flags and served != "refused")
        table.append(f"| `{name.replace('|', ' ').upper()}` | {words} | {reason} |")
    page.write_text(before + begin + "\n" + "\n".join(table) + "\n\n" + end + after, "utf-8")


def installed():
    return ["redis-server"]


def ask_servers():
    """The commands of all servers by name, and the line that says who was asked."""
    known, seen, answers = {}, [], {}
    requests = [text for _, texts, _ in rows_of("empty.tsv") for text in texts.split("; ") if text]
    sources = [INSTALLED, *servers.SERVERS]
    for server, suite in sources:
        words = installed() if (server, suite) == INSTALLED else servers.command(server, suite)
        with Server(words) as running:
            about = dict(
                line.split(":", 1) for line in running.ask("INFO", "SERVER").splitlines() if ":" in line
            )
            version = about.get("valkey_version") or about["redis_version"]
            seen.append(f"{server} {version}")
            label = f"{server[0]}{'.'.join(version.split('.')[:2])}"
            for name, command in commands(running.ask("COMMAND")):
                before = known.setdefault(name, command | {"servers": []})
                if (before["keys"], before["specs"]) != (command["keys"], command["specs"]):
                    raise SystemExit(f"{name}: {before}, but {version} says {command}")
                before |= command
                if label not in before["servers"]:
                    before["servers"].append(label)
            for request in requests:
                answer = running.when_empty(request)
                if answer and answers.setdefault(request, answer) != answer:
                    raise SystemExit(f"{request}: {answers[request]}, but {version} answers {answer}")
    lines = ["# What empty servers answer in RESP2 and in RESP3. Written by ../../commands/generate.py."]
    lines += ["\t".join([request, *answers[request]]) for request in requests if request in answers]
    (HERE.parent / "captures" / "resp" / "empty.tsv").write_text("\n".join(lines) + "\n", "utf-8")
    return known, f"# Asked on {datetime.date.today()}: {', '.join(seen)}."


def asked_before():
    """The same, as redis.tsv says it."""
    known = {}
    for name, arity, flags, keys, specs, *_, told_by in rows_of("redis.tsv"):
        known[name] = {
            "arity": int(arity),
            "flags": flags.split(",") if flags else [],
            "keys": keys,
            "specs": specs,
            "servers": told_by.split(","),
        }
    return known, (HERE / "redis.tsv").read_text("utf-8").splitlines()[1]


def main():
    known, asked = asked_before() if sys.argv[1:] == ["--known"] else ask_servers()
    for name, command in known.items():
        command["is_container"] = any(other.startswith(f"{name}|") for other in known)
    rows, near_rows, empty = decisions(), rows_of("near.tsv"), rows_of("empty.tsv")
    lines = [
        "# Every command of the servers below. Written by generate.py; change decisions.tsv, not this file.",
        asked,
        "# name\tarity\tflags\tfirst last step\tkey specifications\tserved\tclass\treason"
        "\twithout a server\tkept\tchanges\tservers",
    ]
    for name, command in sorted(known.items()):
        served, kind, reason = decide(name, command, rows)
        if command["is_container"] and not command["specs"] and served == "key":
            served = "container"
        columns = [
            name,
            str(command["arity"]),
            ",".join(command["flags"]),
            command["keys"],
            command["specs"],
            served,
            kind,
            reason,
            answer_of_none(name, served, empty),
            *near(name, command, kind, near_rows),
            ",".join(command["servers"]),
        ]
        lines.append("\t".join(columns))
    (HERE / "redis.tsv").write_text("\n".join(lines) + "\n", "utf-8")
    document(rows=lines[3:])
    print(f"{len(known)} commands")


if __name__ == "__main__":
    started = time.monotonic()
    main()
    print(f"{time.monotonic() - started:.1f} s")
