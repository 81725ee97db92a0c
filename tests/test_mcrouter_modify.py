"""mcrouter's handles that change what servers get: ModifyExptimeRoute and ModifyKeyRoute."""

import base64
import json
import time

import pytest

from harness import until
from harness.mcrouter import Router, written

pytestmark = pytest.mark.either_io


def modified(**keys):
    return {"type": "ModifyExptimeRoute", "target": "PoolRoute|A", **keys}


def seen(memcached, routed, **keys):
    """A router over such a route, and its server."""
    server = memcached()
    return routed(modified(**keys), {"A": [server]}), server


STORING = {
    "set": b"set k 0 %d 1\r\nx\r\n",
    "add": b"add k 0 %d 1\r\nx\r\n",
    "replace": b"replace k 0 %d 1\r\nx\r\n",
    "cas": b"cas k 0 %d 1 %b\r\nx\r\n",
    "touch": b"touch k %d\r\n",
    "gat": b"gat %d k\r\n",
    "gats": b"gats %d k\r\n",
}
"""Commands that carry an expiry, in the order in which a test may ask them."""


def ttl_at(server):
    """The seconds that the server keeps the key for; -1: for ever; None: it does not have it."""
    with server.raw() as direct:
        answer = direct.ask(b"mg k t\r\n")
    return None if answer == b"EN\r\n" else int(answer.split()[1].removeprefix(b"t"))


def expiries(router, server, asked):
    """The expiry that each command leaves which asks for this one."""
    found = {}
    with router.raw() as client:
        for name, line in STORING.items():
            if name == "add":
                client.ask(b"delete k\r\n")
            elif name != "set":
                server.set("k", "x")
            if name == "cas":
                with server.raw() as direct:
                    token = direct.ask(b"gets k\r\n").split()[4]
                request = line % (asked, token)
            else:
                request = line % asked
            answer = client.ask(request)
            good = (b"STORED\r\n", b"TOUCHED\r\n")
            assert answer in good or answer.startswith(b"VALUE k 0 1"), (name, answer)
            found[name] = ttl_at(server)
    return found


def about(ttl, expected):
    """A second may have begun since."""
    return ttl == expected or (expected is not None and ttl is not None and 0 < expected - ttl <= 2)


CASES = {
    "set": ({"exptime": 100}, [(0, 100), (5, 100), (1000, 100), (-1, 100)]),
    "set by name": ({"exptime": 100, "action": "set"}, [(0, 100), (1000, 100)]),
    "set to infinite": ({"exptime": 0}, [(0, -1), (5, -1), (1000, -1), (-1, -1)]),
    "set to a negative": ({"exptime": -1}, [(0, None), (5, None), (1000, None)]),
    "min": ({"exptime": 100, "action": "min"}, [(0, 100), (20, 20), (1000, 100), (-1, None)]),
    "min of infinite": ({"exptime": 0, "action": "min"}, [(0, -1), (20, 20), (1000, 1000), (-1, None)]),
    "min of a negative": ({"exptime": -1, "action": "min"}, [(0, None), (20, None)]),
}


@pytest.mark.parametrize("keys, expected", CASES.values(), ids=CASES.keys())
def test_expiry_of_every_command_is_modified(memcached, routed, keys, expected):
    router, server = seen(memcached, routed, **keys)
    for asked, ttl in expected:
        found = expiries(router, server, asked)
        assert all(about(seconds, ttl) for seconds in found.values()), (asked, ttl, found)


def test_short_expiry_takes_a_value_away(memcached, routed):
    router, server = seen(memcached, routed, exptime=1)
    with router.raw() as client:
        client.set("k", "1")
        assert client.get("k") == b"1"
        until(lambda: client.get("k") is None, "it expires")
        # A delete is not changed.
        server.set("k", "1")
        assert client.ask(b"delete k\r\n") == b"DELETED\r\n"


def test_absolute_times_are_compared_with_relative_ones_as_moments(memcached, routed):
    router, server = seen(memcached, routed, exptime=100, action="min")
    with router.raw() as client:
        for seconds, left in ((20, 20), (1000, 100)):
            client.set("k", "1", ttl=int(time.time()) + seconds)
            found = ttl_at(server)
            assert abs(found - left) <= 2, (seconds, found)


ENSURED = {"ensure_key_prefix": "foo:"}
IN_PLACE = {"ensure_key_prefix": "foo:", "modify_inplace": True}
REPLACED = {"ensure_key_prefix": "foo:", "replace_key_prefix": "bar:"}

KEYS = {
    "nothing": ({}, {"a": "a", "foo:a": "foo:a", "a:": "a:"}),
    "ensure": (
        ENSURED,
        {
            "a": "foo:a",
            "foo:a": "foo:a",
            "foo:": "foo:",
            "foo": "foo:foo",
            "bar:a": "foo:bar:a",
            "fo": "foo:fo",
        },
    ),
    "ensure with a hash stop": (ENSURED, {"a|#|b": "foo:a|#|b", "foo:a|#|b": "foo:a|#|b"}),
    "in place": (
        IN_PLACE,
        {"abcdef": "foo:ef", "abcd": "foo:", "abc": "foo:abc", "foo:a": "foo:a", "bar:a": "foo:a"},
    ),
    "not in place": ({**IN_PLACE, "modify_inplace": False}, {"abcdef": "foo:abcdef", "foo:a": "foo:a"}),
    "replace": (
        REPLACED,
        {"bar:a": "foo:a", "a": "foo:a", "foo:a": "foo:a", "foo:bar:a": "foo:bar:a", "bar": "foo:bar"},
    ),
    "replace everything": ({**REPLACED, "replace_key_prefix": ""}, {"a": "foo:a", "foo:a": "foo:foo:a"}),
    "remove": ({"replace_key_prefix": "bar:"}, {"bar:a": "a", "a": "a", "bar:bar:a": "bar:a"}),
    "remove by an empty prefix": (
        {"ensure_key_prefix": "", "replace_key_prefix": "bar:"},
        {"bar:a": "a", "foo:a": "foo:a"},
    ),
    "suffix": ({"set_key_suffix": ":z"}, {"a": "a:z", "a:z": "a:z:z", "a|#|b": "a|#|b:z"}),
    "ensure and suffix": ({**ENSURED, "set_key_suffix": ":z"}, {"a": "foo:a:z", "foo:a": "foo:a:z"}),
    "replace and suffix": ({**REPLACED, "set_key_suffix": ":z"}, {"bar:a": "foo:a:z", "foo:a": "foo:a:z"}),
    "in place and suffix": ({**IN_PLACE, "set_key_suffix": ":z"}, {"abcdef": "foo:ef:z", "abc": "foo:abc:z"}),
}


def test_keys_get_lose_and_change_their_prefixes(memcached, cleanup, io, tmp_path):
    server = memcached()
    routes = {
        f"/a/{number}/": {"type": "ModifyKeyRoute", "target": "PoolRoute|A", **keys}
        for number, (keys, _) in enumerate(KEYS.values())
    }
    pools = {"A": {"servers": [server.address]}}
    router = Router(json.dumps({"pools": pools, "routes": routes}), tmp_path, io, "-R/a/0/")
    cleanup.callback(router.stop)
    wrong = []
    with router.raw() as client:
        for number, (name, (_, keys)) in enumerate(KEYS.items()):
            for asked, sent in keys.items():
                with server.raw() as direct:
                    direct.ask(b"flush_all\r\n")
                key = f"/a/{number}/{asked}"
                client.set(key, "1")
                good = server.get(sent) == b"1" and client.get(key) == b"1"
                good = good and client.ask(f"incr {key} 1\r\n".encode()) == b"2\r\n"
                good = good and client.ask(f"delete {key}\r\n".encode()) == b"DELETED\r\n"
                if not (good and server.get(sent) is None):
                    wrong.append((name, asked, sent))
    assert wrong == []


def test_several_keys_of_one_get_have_their_own_names_in_the_answer(memcached, routed):
    server = memcached()
    server.set("foo:a", "1")
    server.set("foo:b", "2")
    route = {"type": "ModifyKeyRoute", "target": "PoolRoute|A", **ENSURED}
    with routed(route, {"A": [server]}).raw() as client:
        expected = b"VALUE a 0 1\r\n1\r\nVALUE foo:b 0 1\r\n2\r\nEND\r\n"
        assert client.ask(b"get a none foo:b\r\n") == expected


BAD = {
    "missing": ({"replace_key_prefix": "bar:"}, b"bar:"),
    "too long": ({"set_key_suffix": "z" * 100}, b"a" * 151),
    "space or control character": ({"ensure_key_prefix": "f o"}, b"a"),
}


@pytest.mark.parametrize("reason", BAD)
def test_a_key_that_becomes_bad_is_answered_with_the_reason(memcached, routed, reason):
    keys, key = BAD[reason]
    server = memcached()
    with routed({"type": "ModifyKeyRoute", "target": "PoolRoute|A", **keys}, {"A": [server]}).raw() as client:
        answer = b"SERVER_ERROR ModifyKeyRoute: invalid key: invalid key: %b\r\n" % reason.encode()
        for request in (b"get %b\r\n", b"set %b 0 0 1\r\nx\r\n", b"delete %b\r\n", b"incr %b 1\r\n"):
            assert client.ask(request % key) == answer
        assert client.ask(b"get %b\r\n" % key[:1]) != answer or reason.startswith("space")


@pytest.mark.parametrize(
    "keys, key, sent",
    [
        (ENSURED, "views 7", "foo:views 7"),
        (ENSURED, "caf\u00e9\tx", "foo:caf\u00e9\tx"),
        ({"ensure_key_prefix": "q:", "replace_key_prefix": "views "}, "views 7", "q:7"),
        ({"set_key_suffix": ".s"}, "a b", "a b.s"),
        (ENSURED, "foo:a b", "foo:a b"),
    ],
    ids=["ensure", "bytes", "replace", "suffix", "unchanged"],
)
def test_rules_look_at_the_decoded_key_where_it_comes_in_base64(memcached, routed, keys, key, sent):
    server = memcached()
    key, sent = (base64.b64encode(text.encode()) for text in (key, sent))
    with routed({"type": "ModifyKeyRoute", "target": "PoolRoute|A", **keys}, {"A": [server]}).raw() as client:
        assert client.ask(b"ms %b 1 b\r\nv\r\n" % key) == b"HD\r\n"
        assert client.ask(b"mg %b b k v\r\n" % key) == b"VA 1 k%b b\r\nv\r\n" % key
        with server.raw() as direct:
            assert direct.ask(b"mg %b b v\r\n" % sent) == b"VA 1\r\nv\r\n"
        assert client.ask(b"md %b b\r\n" % key) == b"HD\r\n"
        long = base64.b64encode(b"a b" * 62)
        said = b"SERVER_ERROR ModifyKeyRoute: invalid key: invalid key: too long\r\n"
        assert keys is not ENSURED or client.ask(b"mg %b b v\r\n" % long) == said


PREFIXES = {
    # Keys of the route, and what a pool that keeps routing prefixes is sent for a key without and with one.
    "none": ({}, "a", "/a/b/a"),
    "another": ({"set_routing_prefix": "/c/d/"}, "/c/d/a", "/c/d/a"),
    "the same": ({"set_routing_prefix": "/a/b/"}, "/a/b/a", "/a/b/a"),
    "removed": ({"set_routing_prefix": ""}, "a", "a"),
    "ensure": ({**ENSURED}, "foo:a", "/a/b/foo:a"),
    "another and ensure": ({**ENSURED, "set_routing_prefix": "/c/d/"}, "/c/d/foo:a", "/c/d/foo:a"),
    "removed and ensure": ({**ENSURED, "set_routing_prefix": ""}, "foo:a", "foo:a"),
    "another and suffix": ({"set_key_suffix": ":z", "set_routing_prefix": "/c/d/"}, "/c/d/a:z", "/c/d/a:z"),
    "removed and replace": (
        {"ensure_key_prefix": "b", "replace_key_prefix": "a", "set_routing_prefix": ""},
        "b",
        "b",
    ),
}


@pytest.mark.parametrize("keys, plain, prefixed", PREFIXES.values(), ids=PREFIXES.keys())
def test_routing_prefixes_are_set_and_removed(memcached, routed, keys, plain, prefixed):
    server = memcached()
    route = {"type": "ModifyKeyRoute", "target": "PoolRoute|A", **keys}
    for keeps in (True, False):
        pool = {"servers": [server.address], "keep_routing_prefix": keeps}
        with routed(route, {"A": pool}, "--route-prefix=/a/b/").raw() as client:
            for asked, sent in (("a", plain), ("/a/b/a", prefixed)):
                sent = sent if keeps else sent.rsplit("/", 1)[-1]
                client.set(asked, "1")
                assert server.get(sent) == b"1", asked
                assert (
                    client.ask(f"get {asked}\r\n".encode()) == f"VALUE {asked} 0 1\r\n1\r\nEND\r\n".encode()
                )
                assert client.ask(f"delete {asked}\r\n".encode()) == b"DELETED\r\n"
                assert server.get(sent) is None


def test_a_routing_prefix_that_is_none_is_refused(tmp_path, command):
    for prefix in ("a", "/a/", "/a/b/c", "/", "//"):
        file = tmp_path / "bad.json"
        file.write_text(
            written({"type": "ModifyKeyRoute", "target": "NullRoute", "set_routing_prefix": prefix})
        )
        done = command("mcrouter", "--validate-config", "--port=1", f"--config=file:{file}")
        assert done.returncode == 3 and "set_routing_prefix" in done.stderr, prefix
