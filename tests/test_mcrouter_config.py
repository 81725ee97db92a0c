"""mcrouter's configuration language through the program: macros, constants, imports, files of pools."""

import json
import os
import pathlib

import pytest

from harness import ports, until
from harness.mcrouter import Router

pytestmark = pytest.mark.either_io


@pytest.fixture
def mcrouter(cleanup, io, tmp_path):
    def start(text, *arguments, **options):
        router = Router(text, tmp_path, io, *arguments, **options)
        cleanup.callback(router.stop)
        return router

    return start


def port(server):
    return server.address.rsplit(":", 1)[1]


POLICIES = """{
  /* One macro for both regions. */
  "macros": {
    "pool": {"type": "macroDef", "params": ["port", {"name": "ms", "default": "500"}],
      "result": {"servers": ["127.0.0.1:%port%"], "server_timeout": "@int(%ms%)"}},
    "policy": {"type": "macroDef", "params": ["local"], "result": {
      "type": "OperationSelectorRoute",
      "default_policy": "PoolRoute|%local%",
      "operation_policies": {
        "delete": {"type": "AllSyncRoute", "children": {
          "type": "foreach", "from": "@import(regions.json)", "use": ["PoolRoute|%item%"]}},
      }}},
  },
  "pools": {"east": "@pool(%EAST%)", "west": "@pool(%WEST%, 700)"},
  "routes": {"type": "transform", "dictionary": {"east": 1, "west": 1},
    "keyTransform": "/%key%/main/", "itemTransform": "@policy(%key%)"},
}
"""


def test_policies_by_region_are_one_macro_and_follow_their_imports(memcached, mcrouter, tmp_path):
    east, west = memcached.several(2)
    regions = tmp_path / "regions.json"
    regions.write_text('// all of them\n["east", "west",]')
    params = f"--config-params=EAST:{port(east)},WEST:{port(west)}"
    router = mcrouter(POLICIES, params, "--route-prefix=/east/main/")
    with router.raw() as client:
        client.set("k", "here")
        client.set("/west/main/k", "there")
        assert (east.get("k"), west.get("k")) == (b"here", b"there")
        assert client.ask(b"delete k\r\n") == b"DELETED\r\n"
        assert (east.get("k"), west.get("k")) == (None, None)

        # The imported file alone changes.
        regions.write_text('["west"]')

        def only_west_is_deleted():
            for server in (east, west):
                server.set("k", "v")
            client.ask(b"delete k\r\n")
            return (east.get("k"), west.get("k")) == (b"v", None)

        until(only_west_is_deleted, "the changed import takes effect")

        regions.write_text('["west", "@nowhere(x)"]')
        until(lambda: "Macro: 'nowhere' not found" in router.log(), "the log has the reason")
        assert "Import 'regions.json': 1:10: " in router.log()
        assert only_west_is_deleted(), "the running configuration stays"


def test_pools_are_read_from_files_with_constants_in_them(memcached, mcrouter, tmp_path):
    server = memcached()
    pool = tmp_path / "pool.json"
    pool.write_text('{"servers": ["127.0.0.1:%PORT%"]}')
    text = json.dumps({"pools": {"A": f"file:{pool}"}, "route": "PoolRoute|A"})
    with mcrouter(text, "--config-params", f"PORT:{port(server)}").raw() as client:
        client.set("k", "v")
    assert server.get("k") == b"v"


REFUSED = {
    "an unknown macro": ('{"route": "@none"}', "1:11: Macro: 'none' not found"),
    "an unknown name": ('{"route": "PoolRoute|%none%"}', "1:11: Param in string: 'none' not found"),
    "a macro that calls itself": (
        '{"macros": {"m": {"type": "macroDef", "result": "@m"}}, "route": "@m"}',
        "Too many nested macros. Check for cycles.",
    ),
    "a message of its own": (
        '{"route": "@if(@equals(%hostid%, x), NullRoute, @fail(wrong host))"}',
        "wrong host",
    ),
    "a missing import": ('{"route": "@import(none.json)"}', "Import 'none.json': cannot be read"),
    "a value that grows without bound": (
        """{"x": {"type": "process", "initialValue": [1], "dictionary": "@range(@int(1),@int(99))",
            "transform": ["%value%", "%value%"]}, "route": "NullRoute"}""",
        "larger than 5000000 values",
    ),
}


@pytest.mark.parametrize("text, reason", REFUSED.values(), ids=REFUSED.keys())
def test_macros_that_cannot_be_expanded_are_refused_at_the_start(tmp_path, command, text, reason):
    file = tmp_path / "mcrouter.json"
    file.write_text(text)
    done = command("mcrouter", f"--port={ports.free()}", f"--config-file={file}")
    assert done.returncode == 2
    assert reason in done.stderr, done.stderr


THOUSAND_POOLS = """{
  "macros": {
    "name": {"type": "macroDef", "params": ["n"], "result": {"type": "merge", "params": ["p", "@str(%n%)"]}},
    "pool": {"type": "macroDef", "params": ["n"], "result": {"servers": {
      "type": "transform", "dictionary": "@range(@int(1),@int(10))",
      "itemTransform": {"type": "merge", "params": ["10.", "@str(@div(%n%,@int(256)))", ".",
        "@str(@mod(%n%,@int(256)))", ".", "@str(%item%)", ":11211"]}}}}
  },
  "pools": {"type": "foreach", "from": "@range(@int(0),@int(999))",
    "use": {"@name(%item%)": "@pool(%item%)"}},
  "route": {"type": "PrefixSelectorRoute", "wildcard": "ErrorRoute|first", "policies": {
    "type": "foreach", "from": "@range(@int(0),@int(999))",
    "use": {"type": "define", "vars": {"name": "@name(%item%)"}, "result": {"%name%:": "PoolRoute|%name%"}}}}
}"""


def test_a_thousand_pools_with_ten_thousand_servers_load_and_reload_quickly(mcrouter):
    router = mcrouter(THOUSAND_POOLS)
    # The promise is two seconds. What the start has taken of a processor does not depend on others.
    times = pathlib.Path(f"/proc/{router.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    assert sum(map(int, times[11:13])) / os.sysconf("SC_CLK_TCK") < 10
    with router.raw() as client:
        assert client.ask(b"get k\r\n") == b"SERVER_ERROR first\r\n"
        router.write(THOUSAND_POOLS.replace("first", "second"))
        until(lambda: client.ask(b"get k\r\n") == b"SERVER_ERROR second\r\n", "the change takes effect")
