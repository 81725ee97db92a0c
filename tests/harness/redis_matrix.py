"""The cells of the matrix of routes and of ways in which a request of Redis travels (`test_redis_matrix.py`).

A cell's right value is said once, by a rule. Most cells have the rule CHILD: a route adds nothing to what its
child gives, so that the replies are those of a server without a proxy."""

import pathlib
import re

ROOT = pathlib.Path(__file__).parents[2]
OF_MYSQL = "by_user", "by_schema", "consistency"
"""Routes that a listener of another protocol is refused."""

REFERENCE = re.findall(r"^## `(\w+)`", (ROOT / "docs" / "routes.md").read_text(), re.MULTILINE)
NAMES = [name for name in REFERENCE if name not in OF_MYSQL]


def rows(name):
    lines = (ROOT / "wire" / "commands" / name).read_text().split("\n")
    return [line.split("\t") for line in lines if line and not line.startswith("#")]


# Requests by their command.
EXAMPLES = {
    name: [words.split(" ") for words in requests.split("; ") if words]
    for name, requests, _ in rows("empty.tsv")
}
SERVED = {row[0]: row[5] for row in rows("redis.tsv")}

# Rules.
CHILD = "as by the child's server"
EMPTY = "as by an empty server"
REFUSED = "refused, with command, route and remedy"
ERROR = "the route's own error"
EITHER = "as by the child's server, or refused"
MEMCACHED = "the configuration is refused: memcached alone"
ELSEWHERE = "a test of its own"

# Ways.
MISSES = "one key, nothing there"
HITS = "one key, something there"
TAGGED = "several keys that a tag keeps at one of several servers"
APART = "several keys at several servers"
KEYLESS = "no key"
WHOLE = "a transaction in one piece"
STEPS = "a transaction step by step"
WATCHED = "a transaction after WATCH"
DISCARDED = "a transaction that is discarded"
BLOCKING = "a command that blocks"
CHANNELS = "subscribers"
SCRIPTS = "a script"
STREAMED = "a value that is passed on as it comes"
WAYS = (
    MISSES,
    HITS,
    TAGGED,
    APART,
    KEYLESS,
    WHOLE,
    STEPS,
    WATCHED,
    DISCARDED,
    BLOCKING,
    CHANNELS,
    SCRIPTS,
    STREAMED,
)
TRANSACTIONS = (WHOLE, STEPS, WATCHED, DISCARDED)

# What does not do the same at every server is refused by routes to several.
OWN = {"eval", "evalsha", "fcall"}
OWN |= {"spop", "xadd", "xclaim", "xautoclaim", "xreadgroup"}
# Replies of these name the key, which a route that changes keys would have to change back.
NAMING = {
    "blpop",
    "brpop",
    "bzpopmin",
    "bzpopmax",
    "blmpop",
    "bzmpop",
    "lmpop",
    "zmpop",
    "xread",
    "xreadgroup",
}
BLOCKS = {
    name for name, row in ((row[0], row) for row in rows("redis.tsv")) if "blocking" in row[2].split(",")
}
# The proxy answers these, or they go to every server; each has tests of its own.
NOT_BY_KEY = {"here", "alone", "own", "refused", "container", "transaction", "channels", "any", "walk"}
# What depends on chance or on the clock cannot be compared where something is there.
UNSTEADY = {
    "xadd",
    "spop",
    "srandmember",
    "hrandfield",
    "zrandmember",
    "vrandmember",
    "randomkey",
    "dump",
    "restore",
}
UNSTEADY |= {
    "object|idletime",
    "object|freq",
    "memory|usage",
    "pexpire",
    "pttl",
    "hpexpire",
    "hpttl",
    "geosearchstore",
}
EXPIRY = {
    "ttl",
    "pttl",
    "expiretime",
    "pexpiretime",
    "persist",
    "expire",
    "pexpire",
    "expireat",
    "pexpireat",
    "getex",
}

LARGE = "v" * 300_000


def by(rule, *ways, **commands):
    """Rules by way, and for single commands."""
    return {"ways": dict.fromkeys(ways, rule), **commands}


REFUSING = by(REFUSED, *TRANSACTIONS, BLOCKING, SCRIPTS, refused=OWN | BLOCKS)
ANSWERING = {
    "ways": {**dict.fromkeys(WAYS, EMPTY), **dict.fromkeys((STEPS, WATCHED, DISCARDED, CHANNELS), REFUSED)}
}
CHANGING = by(CHILD, refused=NAMING)

# The route and its rules. ONE stands for its child: a pool of one server, or of several.
ONE = "ONE"
ROUTES = {
    "pool": ({"pool": ONE}, {}),
    "member": ({"member": "one/SERVER"}, by(ELSEWHERE, TAGGED, APART)),
    "embedded": ("embedded", by(ELSEWHERE, *WAYS)),
    "null": ("null", {**ANSWERING, "keyless": EMPTY}),
    "error": ({"error": "no way"}, by(ERROR, *WAYS)),
    "hash": ({"hash": ONE}, {}),
    "near": ({"near": {"child": ONE, "rules": [{"name": ONE, "ttl": "10s"}]}}, {}),
    "nearest": ({"nearest": [ONE, "other"]}, {}),
    "by_operation": (
        {"by_operation": dict.fromkeys(("read", "write", "delete", "arithmetic", "touch"), ONE)},
        {},
    ),
    "by_prefix": ({"by_prefix": {"prefixes": {"x:": "other"}, "default": ONE}}, by(ELSEWHERE, KEYLESS)),
    "by_key_pattern": (
        {"by_key_pattern": {"patterns": {"x:*": "other"}, "default": ONE}},
        by(ELSEWHERE, KEYLESS),
    ),
    "random": ({"random": [ONE, ONE]}, {}),
    "round_robin": ({"round_robin": [ONE, ONE]}, {}),
    "host_id": ({"host_id": [ONE, ONE]}, {}),
    "by_client": ({"by_client": [ONE, ONE]}, {}),
    "latest": ({"latest": {"children": [ONE], "count": 1}}, {}),
    "all_sync": ({"all_sync": [ONE, "other"]}, REFUSING),
    "all_majority": ({"all_majority": [ONE, "other"]}, REFUSING),
    "all_fastest": ({"all_fastest": [ONE, "other"]}, REFUSING),
    "all_initial": ({"all_initial": [ONE, "other"]}, REFUSING),
    "all_async": (
        {"all_async": [ONE, "other"]},
        {
            "ways": {**dict.fromkeys(WAYS, EMPTY), **REFUSING["ways"], CHANNELS: CHILD},
            "refused": OWN | BLOCKS,
        },
    ),
    "failover": ({"failover": [ONE, "other"]}, {}),
    "miss_failover": ({"miss_failover": [ONE, "other"]}, {}),
    "failover_with_ttl": ({"failover_with_ttl": {"normal": ONE, "failover": ["other"]}}, {}),
    "modify_key": ({"modify_key": {"child": ONE, "ensure_prefix": "p:"}}, CHANGING),
    "migrate": ({"migrate": {"from": ONE, "to": "other", "start": 4_000_000_000}}, {}),
    "shard_split": ({"shard_split": {"child": ONE, "splits": {"9": 2}}}, {}),
    "key_split": (
        {"key_split": {"child": ONE, "copies": 2}},
        by(EITHER, BLOCKING, refused=set(), either=NAMING),
    ),
    "key_part": ({"key_part": {"child": ONE}}, {}),
    "hash_stop": ({"hash_stop": {"child": ONE, "prefixes": ["x:"]}}, {}),
    "shadow": ({"shadow": {"child": ONE, "shadows": [{"target": "other"}]}}, {}),
    "rate_limit": ({"rate_limit": {"child": ONE, "gets": 1e6, "sets": 1e6, "deletes": 1e6}}, {}),
    "outstanding_limit": ({"outstanding_limit": {"child": ONE, "requests": 1000}}, {}),
    "warm_up": ({"warm_up": {"cold": ONE, "warm": "other"}}, by(MEMCACHED, *WAYS)),
    "slow_warm_up": (
        {"slow_warm_up": {"child": ONE, "failover": "other", "min_requests": 1_000_000}},
        {},
    ),
    "staging": ({"staging": {"warm": ONE, "staging": "other"}}, by(MEMCACHED, *WAYS)),
    "l1_l2_cache": ({"l1_l2_cache": {"l1": ONE, "l2": "other", "ttl": 5}}, by(MEMCACHED, *WAYS)),
    "size_split": ({"size_split": {"l1": ONE, "l2": "other", "threshold": "1KiB"}}, by(MEMCACHED, *WAYS)),
    "big_value": ({"big_value": {"child": ONE, "threshold": "1KiB"}}, by(MEMCACHED, *WAYS)),
    "by_key": ({"by_key": {"keys": ["x"], "listed": "other", "default": ONE}}, by(ELSEWHERE, KEYLESS)),
    "modify_ttl": ({"modify_ttl": {"child": ONE, "ttl": 100_000, "action": "min"}}, {"skipped": EXPIRY}),
    "log": ({"log": ONE}, {}),
    "fault": ({"fault": {"child": ONE}}, {}),
}


def put(route, pool, server=""):
    """The route with this pool in the place of its child."""
    if isinstance(route, dict):
        return {key: put(value, pool, server) for key, value in route.items()}
    if isinstance(route, list):
        return [put(value, pool, server) for value in route]
    return {ONE: pool, "one/SERVER": f"one/{server}"}.get(route, route)


def rule(name, way):
    return ROUTES[name][1].get("ways", {}).get(way, CHILD)
