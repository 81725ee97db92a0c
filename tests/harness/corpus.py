"""Commands of all types for Redis, with what a server answers to none of them by chance."""

import subprocess
import sys

from .proxy import ROOT

TABLE = ROOT / "wire" / "commands" / "redis.tsv"

KINDS = {
    "string": ("SET", "{c}string", "value"),
    "number": ("SET", "{c}number", "41"),
    "list": ("RPUSH", "{c}list", "a", "b", "c"),
    "set": ("SADD", "{c}set", "1", "2", "3"),
    "hash": ("HSET", "{c}hash", "f", "v", "1", "2"),
    "zset": ("ZADD", "{c}zset", "1", "a", "2", "b"),
    "stream": ("XADD", "{c}stream", "1-1", "f", "v"),
    "hyperloglog": ("PFADD", "{c}hyperloglog", "a", "b"),
    "geo": ("GEOADD", "{c}geo", "13.36", "38.11", "Palermo", "15.08", "37.50", "Catania"),
    "bits": ("SETBIT", "{c}bits", "7", "1"),
    "none": ("DEL", "{c}none"),
}
"""A key of each type, and one that does not exist."""

CHANCE = set(
    "spop srandmember hrandfield zrandmember randomkey object|idletime object|freq memory|usage "
    "lastsave time dump restore xadd xautoclaim xclaim xreadgroup xread pttl ttl expiretime pexpiretime "
    "migrate xinfo|stream xinfo|groups xinfo|consumers xpending object|help debug lolwut command|docs "
    "command|getkeysandflags expire pexpire setex psetex hexpire hpexpire getex function|load "
    "function|dump function|restore function|stats function|list script|show script|load".split()
)
"""Commands whose replies depend on chance, a clock or memory, or whose words would have to make sense."""


TWO_KEYS = set(
    "rpoplpush sdiffstore sinterstore sunionstore rename renamenx copy pfmerge smove lmove zrangestore "
    "geosearchstore zdiffstore zunionstore zinterstore bitop lcs".split()
)
"""Commands whose second word is a key too: it is at the same server."""


def rows():
    """Name, arity, flags, how it is served, of each command."""
    for line in TABLE.read_text("utf-8").splitlines():
        if line and not line.startswith("#"):
            name, arity, flags, _positions, specs, served, *_ = line.split("\t")
            yield name, int(arity), set(flags.split(",")), specs, served


def arity_errors():
    """Each command with too few words, where the server itself is asked or the proxy speaks for it."""
    for name, arity, _flags, _specs, served in rows():
        if served not in ("refused", "own", "here", "container", "alone") and abs(arity) > 1:
            words = name.upper().split("|")
            if len(words) < abs(arity):
                yield tuple(words)


def of_each_type():
    """Each command about one key, for a key of each type; the key is made anew before."""
    for name, arity, flags, specs, served in rows():
        plain = specs.startswith(("@1 range 0 1 0", "@2 range 0 1 0")) and served in ("key", "pattern")
        if not plain or name in CHANCE or "blocking" in flags:
            continue
        words = name.upper().split("|")
        for make in KINDS.values():
            yield "DEL", make[1], "{c}1"
            yield make
            filling = ["{c}1" if name in TWO_KEYS else "1"] * max(0, abs(arity) - len(words) - 1)
            yield (*words, make[1], *filling)


def split():
    """Commands whose keys are at several servers; keys of other types and none are among them."""
    keys = [f"split:{n}" for n in range(60)]
    yield ("FLUSHALL",)
    yield "MSET", *(word for key in keys for word in (key, f"value of {key}"))
    yield "RPUSH", keys[7], "no string"
    yield "DEL", keys[7], keys[7]
    yield "RPUSH", keys[7], "no string"
    for name in ("MGET", "EXISTS", "TOUCH", "MGET", "DEL", "UNLINK", "MGET", "DEL"):
        yield name, *keys[5:40], "none", *keys[5:10]
        yield name, keys[-1]
        yield ("DBSIZE",)
    yield from (("MSET", "a"), ("MSET", "a", "1", "b"), ("MGET",), ("DEL",), ("UNLINK",), ("TOUCH",))
    yield ("FLUSHDB",)
    yield "EXISTS", *keys
    yield ("RANDOMKEY",)


def commands(server):
    """Those that this server knows, in order."""
    listed = server.ask("COMMAND", "LIST").split(b"\r\n")[2::2]
    known = {name.decode().lower() for name in listed}
    subcommands = server.ask("COMMAND", "LIST", "FILTERBY", "PATTERN", "*|*").split(b"\r\n")[2::2]
    known |= {name.decode().lower().replace("|", " ") for name in subcommands}
    for words in [*arity_errors(), *of_each_type()]:
        name = words[0].lower()
        if name in known and (name not in CONTAINERS or f"{name} {words[1].lower()}" in known):
            yield words


CONTAINERS = {name.split("|")[0] for name, *_ in rows() if "|" in name}


def valkey():
    """The words that start Valkey 8.1, which scripts/prepare.sh has unpacked; None: it is not here."""
    sys.path.insert(0, str(ROOT / "wire" / "commands"))
    import servers

    if not (servers.FOLDER / "valkey-trixie" / "root").exists():
        return None
    try:
        return servers.command("valkey", "trixie")
    except (servers.Unavailable, subprocess.TimeoutExpired, OSError):
        return None
