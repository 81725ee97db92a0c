"""Runtime variables, which change what is shadowed and where keys are while mcrouter's door runs, and the
limit of copies under way."""

import json
import pathlib

import pytest

from harness import until

pytestmark = pytest.mark.either_io

KEYS = [f"f{number}" for number in range(100)]
# The keys whose hash lies in the first tenth.
TENTH = [f"f{number}" for number in (5, 7, 13, 33, 43, 46, 58, 71, 83, 85, 89, 91, 93)]
# Those whose hash lies from 0.4 to 0.5.
MIDDLE = [f"f{number}" for number in (9, 10, 20, 26, 32, 34, 42, 47, 54, 63, 64, 98)]


def stored(server):
    with server.raw() as direct:
        return [key for key in KEYS if direct.get(key) is not None]


def set_all(proxy):
    with proxy.raw() as client:
        for key in KEYS:
            client.send(f"set {key} 0 0 1\r\n1\r\n".encode())
        for key in KEYS:
            assert client.line() == b"STORED\r\n", key


def shadowed(main, shadow, **range_of_keys):
    """A configuration with one shadow."""
    entry = {"target": "PoolRoute|S", **range_of_keys}
    pools = {"A": {"servers": [main.address]}, "S": {"servers": [shadow.address]}}
    return {"pools": pools, "route": {"type": "PoolRoute", "pool": "A", "shadows": [entry]}}


class Variables:
    """The file of runtime variables."""

    def __init__(self, folder, **values):
        self.file = pathlib.Path(folder) / "runtime.json"
        self.write(json.dumps(values))

    def write(self, text):
        new = self.file.with_suffix(".new")
        new.write_text(text)
        new.rename(self.file)

    @property
    def option(self):
        return f"--runtime-vars-file={self.file}"


def test_a_variable_decides_which_keys_are_shadowed(memcached, router, tmp_path):
    main, shadow = memcached.several(2)
    variables = Variables(tmp_path, part=[0.0, 0.1])
    config = shadowed(main, shadow, key_fraction_range=[0.4, 0.5], key_fraction_range_rv="part")
    proxy = router(config, variables.option)

    def shadows(keys):
        with shadow.raw() as direct:
            direct.ask(b"flush_all\r\n")
        set_all(proxy)
        return stored(shadow) == keys

    until(lambda: shadows(TENTH), "the variable wins")
    variables.write(json.dumps({"part": [0.4, 0.5]}))
    until(lambda: shadows(MIDDLE), "the new value counts")
    variables.write('{"part": [0.0, 0.')
    until(lambda: "runtime.json" in proxy.log(), "the bad file is logged")
    assert shadows(MIDDLE), "what runs stays"
    variables.write('{"part": [0.0, 0.1]} // mended')
    until(lambda: shadows(TENTH), "the mended file counts")
    for text in ("{}", '{"part": [0.3, 0.1]}', '{"part": "all"}'):
        variables.write(text)
        until(lambda: shadows(MIDDLE), "what the configuration says counts")
        variables.write(json.dumps({"part": [0, 1]}))
        until(lambda: shadows(KEYS), "and the variable again")


def test_a_variable_decides_which_servers_are_shadowed(memcached, router, tmp_path):
    first, second, shadow = memcached.several(3)
    variables = Variables(tmp_path, places=[0, 1])
    config = shadowed(first, shadow, index_range_rv="places")
    config["pools"]["A"]["servers"].append(second.address)
    proxy = router(config, variables.option)
    set_all(proxy)
    until(lambda: stored(shadow) == stored(first), "the first server is shadowed")
    assert 20 < len(stored(first)) < 80
    variables.write(json.dumps({"places": [0, 2]}))

    def all_are():
        set_all(proxy)
        return stored(shadow) == KEYS

    until(all_are, "both are shadowed")


@pytest.mark.parametrize("name", ["WeightedCh3Rv", "WeightedCh3RV"])
def test_weights_may_be_a_variable(memcached, router, tmp_path, name):
    servers = memcached.several(3)
    variables = Variables(tmp_path, weights=[1, 0, 1])
    pools = {"A": {"servers": [server.address for server in servers]}}
    route = {"type": "PoolRoute", "pool": "A", "hash": {"hash_func": name, "weights_rv": "weights"}}
    proxy = router({"pools": pools, "route": route}, variables.option)
    set_all(proxy)
    counts = [len(stored(server)) for server in servers]
    assert counts[1] == 0 and counts[0] + counts[2] == 100
    variables.write(json.dumps({"weights": [0, 1, 0]}))

    def all_there():
        set_all(proxy)
        return stored(servers[1]) == KEYS

    until(all_there, "the new weights count")


@pytest.mark.parametrize("text", [None, "{", "[]"], ids=["missing", "broken", "a list"])
def test_without_usable_variables_the_configuration_alone_counts(memcached, router, tmp_path, text):
    main, shadow = memcached.several(2)
    file = tmp_path / "runtime.json"
    if text:
        file.write_text(text)
    config = shadowed(main, shadow, key_fraction_range=[0.4, 0.5], key_fraction_range_rv="part")
    proxy = router(config, f"--runtime-vars-file={file}")
    until(lambda: "--runtime-vars-file: " in proxy.log(), "it is logged")
    set_all(proxy)
    until(lambda: stored(shadow) == MIDDLE, "the configuration counts")
    file.write_text('{"part": [0, 1]}')

    def all_are():
        set_all(proxy)
        return stored(shadow) == KEYS

    until(all_are, "the variable is found later")


@pytest.mark.parametrize("most, expected", [("2", 2), ("0", 10), ("1000", 10)])
def test_copies_under_way_to_a_shadow_are_limited(memcached, router, most, expected):
    main, shadow = memcached.several(2)
    options = (f"--target-max-shadow-requests={most}", "--server-timeout=30000")
    proxy = router(shadowed(main, shadow), *options)
    shadow.freeze()
    with proxy.raw() as client:
        for number in range(10):
            client.set(f"k{number}", "1")
            assert client.get(f"k{number}") == b"1", "the shadow holds nobody up"
    shadow.thaw()
    until(lambda: shadow.stat("cmd_set") + shadow.stat("cmd_get") >= expected, "copies arrive")
    with proxy.raw() as client:
        # A copy that is answered makes room for another.
        until(lambda: client.get("last") is None and shadow.stat("get_misses") >= 1, "it is shadowed again")
    if most == "2":
        assert shadow.stat("cmd_set") + shadow.stat("get_hits") == 2
