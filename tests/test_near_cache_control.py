"""Operators look at the near cache and change it while it runs: by the admin port, by `proxima near`, and
by a file that outlives the process."""

import concurrent.futures
import copy
import json
import time

import pytest
import yaml

from harness import ports, until
from harness.proxy import config
from harness.redis import Connection

pytestmark = pytest.mark.either_io

RULES = [
    {"name": "maps", "prefix": "map:", "ttl": "10m", "others": "none", "jitter": 0},
    {"name": "rest", "ttl": "0s"},
]


def near(child, rules=RULES):
    return {"near": {"child": child, "rules": rules}}


class Cached:
    """A proxy whose replies are kept, before one memcached."""

    def __init__(self, proxima, server, rules=RULES, **keys):
        self.server = server
        pools = {"cache": {"servers": [server.address]}}
        self.config = config(near("cache", rules), pools, **keys)
        self.proxy = proxima(self.config)

    def changed(self, rules=None, **keys):
        """The configuration with these rules and keys."""
        made = {**copy.deepcopy(self.config), **keys}
        if rules:
            made["listeners"][0]["route"] = near("cache", rules)
        return made

    def get(self, key):
        with self.proxy.raw() as client:
            value = client.get(key)
        return value and value.decode()

    def behind(self, key, value):
        """Changes a key at the server, which the proxy does not see."""
        with self.server.raw() as client:
            client.set(key, value)

    def keep(self, key, value):
        """Has the proxy keep this value."""
        self.behind(key, value)
        assert self.get(key) == value
        self.behind(key, f"not {value}")
        until(lambda: self.get(key) == value, f"{key} is kept")

    def post(self, path, status=200):
        found, text = self.proxy.http(path, "POST")
        assert found == status, text
        return text

    def status(self):
        status, text = self.proxy.http("/near")
        assert status == 200, text
        return json.loads(text)

    def rule(self, name="maps"):
        [rule] = [rule for rule in self.status()["rules"] if rule["name"] == name]
        return rule


@pytest.fixture
def server(memcached):
    return memcached()


@pytest.fixture
def cached(server, proxima):
    return Cached(proxima, server)


@pytest.fixture
def operator(cached, command):
    """Runs `proxima near …` against the proxy; returns what it prints."""

    def run(*words, code=0):
        ended = command("near", *words, "--admin", cached.proxy.admin)
        assert ended.returncode == code, ended
        return ended.stderr if code else ended.stdout

    return run


def test_status_tells_rules_settings_and_counts(cached):
    cached.keep("map:a", "one")
    for _ in range(5):
        cached.get("map:a")
    cached.get("other")
    found = cached.status()
    assert found["memory"] == 64 << 20 and 0 < found["bytes"] < found["memory"] and found["keys"] == 1
    maps, rest = found["rules"]
    assert (maps["name"], maps["keys"], maps["on"]) == ("maps", "prefix map:", True)
    assert maps["settings"]["ttl"] == "10m" and maps["configured"] == {}
    assert maps["hits"] >= 6 and maps["misses"] == maps["fills"] == maps["stored"] == 1
    assert maps["entries"] == 1 and maps["bytes"] > 0 and maps["saved"] > 0
    assert (rest["on"], rest["hits"], rest["fills"]) == (False, 0, 0)
    with cached.proxy.raw() as client:
        client.set("map:a", "two")
    maps = cached.rule()
    assert maps["entries"] == 0 and maps["dropped"]["changed"] == 1


def test_a_shorter_time_holds_for_what_is_kept_already(cached, operator):
    cached.keep("map:a", "one")
    time.sleep(0.3)
    said = operator("set", "maps", "ttl", "200ms")
    assert "ttl is 200ms; the configuration says 10m (until the next start)" in said
    assert cached.get("map:a") == "not one"
    assert cached.rule()["configured"] == {"ttl": "10m"}
    assert "ttl is 200ms; the configuration says 10m" in operator("list")
    operator("set", "maps", "ttl", "10m")
    assert "the configuration says" not in operator("list")
    cached.keep("map:b", "two")
    operator("set", "maps", "largest", "1KiB", "stale", "5s")
    assert cached.get("map:b") == "two", "it is small enough"
    assert cached.rule()["settings"]["stale"] == "5s"


def test_a_smaller_largest_drops_what_it_would_not_keep(cached, operator):
    cached.keep("map:a", "x" * 5000)
    operator("set", "maps", "largest", "1KiB")
    assert cached.rule()["entries"] == 0
    assert cached.get("map:a") == "not " + "x" * 5000
    assert cached.rule()["refused"]["too_large"] == 1
    operator("set", "maps", "largest", "1MiB")
    cached.get("map:a")
    until(lambda: cached.rule()["entries"] == 1, "what was too large is fetched again")


def test_off_empties_and_frees_and_on_goes_back(cached, operator):
    cached.keep("map:a", "one")
    said = operator("off", "maps")
    assert " off " in said
    assert cached.status()["bytes"] == 0 and cached.rule()["entries"] == 0
    assert cached.get("map:a") == "not one"
    asked = cached.server.stat("cmd_get")
    cached.get("map:a")
    cached.get("map:a")
    assert cached.server.stat("cmd_get") == asked + 2
    operator("on", "maps")
    assert cached.rule()["settings"]["ttl"] == "10m"
    cached.keep("map:a", "two")
    # A rule that was off since the start has no time to go back to.
    assert "rule rest has no `ttl` to go back to" in operator("on", "rest", code=1)
    operator("on", "rest", "--ttl", "10s")
    cached.keep("other", "three")
    operator("off", "rest")
    operator("on", "rest")
    assert cached.rule("rest")["settings"]["ttl"] == "10s"


def test_drop_takes_a_key_a_prefix_or_a_rule(cached, operator):
    keys = ["map:a:1", "map:a:2", "map:b", "map:b c".replace(" ", "%20"), "map:ü"]
    for key in keys:
        cached.keep(key, key)
    assert operator("drop", "maps", "map:ü") == "1 kept reply dropped\n"
    assert cached.get("map:ü") == "not map:ü"
    assert operator("drop", "maps", "map:b%20c") == "1 kept reply dropped\n"
    assert operator("drop", "maps", "map:none") == "nothing of it was kept by rule maps\n"
    assert operator("drop", "maps", "--prefix", "map:a:") == "2 kept replies dropped\n"
    assert cached.get("map:a:1") == "not map:a:1" and cached.get("map:b") == "map:b"
    operator("drop", "maps", "--all")
    assert cached.rule()["entries"] == 0 and cached.status()["bytes"] == 0
    assert cached.get("map:b") == "not map:b"


@pytest.mark.parametrize("by", ["key=map:a", "prefix=map:", "all=1"])
def test_a_reply_that_was_asked_for_before_a_drop_is_not_kept(cached, by):
    cached.behind("map:a", "old")
    with concurrent.futures.ThreadPoolExecutor() as pool:
        cached.server.freeze()
        reader = pool.submit(cached.get, "map:a")
        until(lambda: cached.rule()["fills"] == 1, "it is being fetched")
        cached.post(f"/near/drop?rule=maps&{by}")
        after = pool.submit(cached.get, "map:a")
        until(lambda: cached.rule()["fills"] + cached.rule()["joined"] == 2, "the next reader asks itself")
        cached.server.thaw()
        assert reader.result() == "old" and after.result() == "old"
    refused = cached.rule()["refused"]
    assert refused["changed"] + refused["off"] == 1
    assert cached.rule()["fills"] == 2


def test_memory_is_set_and_a_smaller_one_evicts_at_once(cached, operator):
    with cached.server.raw() as direct, cached.proxy.raw() as client:
        for number in range(200):
            direct.set(f"map:{number}", "x" * 20_000)
            client.get(f"map:{number}")
    before = cached.status()["bytes"]
    assert before > 200 * 20_000
    said = operator("set", "memory", "1MiB")
    assert "of 1.0 MiB in use" in said and "the configuration says 64MiB (until the next start)" in said
    found = cached.status()
    assert 0 < found["bytes"] <= found["memory"] == 1 << 20
    assert cached.rule()["dropped"]["evicted"] > 100


def test_top_tells_the_keys_that_were_asked_most(cached, operator):
    for key, hits in [("map:a", 3), ("map:b", 9)]:
        cached.keep(key, "v")
        for _ in range(hits):
            cached.get(key)
    lines = operator("top").splitlines()
    assert lines[0].split() == ["hits", "bytes", "age", "rule", "key"]
    assert [line.split()[-1] for line in lines[1:]] == ["map:b", "map:a"]
    rows = json.loads(operator("top", "maps", "--count", "1", "--json"))
    assert [row["key"] for row in rows] == ["map:b"] and rows[0]["hits"] >= 10
    assert operator("top", "rest").splitlines()[1:] == []


def test_explain_tells_what_a_rule_does_with_a_key(cached, operator):
    assert "nothing is kept: the next read fetches it" in operator("explain", "maps", "map:a")
    cached.keep("map:a", "one")
    said = operator("explain", "maps", "map:a")
    assert "prefix map:, ttl 600s" in said and "kept: " in said and "it is for this key" in said
    assert "rule maps stands before it" in operator("explain", "rest", "map:a")
    said = operator("explain", "maps", "other")
    assert "it is not for this key" in said
    assert "it is off" in operator("explain", "rest", "other")


WRONG = [
    ("/near/set?rule=none&ttl=1s", "there is no rule `none`; known are maps, rest"),
    ("/near/set?rule=maps&ttl=ten", "ttl: expected a duration, found `ten`"),
    ("/near/set?rule=maps&ttl=-1s", "ttl: expected a duration"),
    ("/near/set?rule=maps&jitter=2", "a number from 0 to 1"),
    ("/near/set?rule=maps&largest=0", "a size above 0"),
    ("/near/set?rule=maps&tll=1s", "there is no `tll` here; known are rule, memory, keep, ttl"),
    ("/near/set?rule=maps", "what is to be set?"),
    ("/near/set?ttl=1s", "what is to be set?"),
    ("/near/set?memory=lots", "memory: expected a size above 0"),
    ("/near/set?rule=maps&ttl=1s&keep=yes", "expected 1 or 0"),
    ("/near/set?rule=maps&ttl=1s&keep=1", "near: {settings: FILE}"),
    ("/near/on?rule=rest", "as in `ttl=10s`"),
    ("/near/off", "which rule?"),
    ("/near/drop?rule=maps", "what is to be dropped?"),
    ("/near/drop?rule=maps&key=a&prefix=b", "what is to be dropped?"),
    ("/near/drop?rule=maps&key=", "what is to be dropped?"),
]


@pytest.mark.parametrize(("path", "told"), WRONG, ids=[path for path, _ in WRONG])
def test_what_is_wrong_is_refused_with_what_would_be_right(cached, path, told):
    assert told in cached.post(path, status=400)
    assert cached.rule()["configured"] == {}


def test_wrong_commands_end_with_1(cached, operator):
    assert "there is no rule `none`" in operator("off", "none", code=1)
    assert "expected a duration" in operator("set", "maps", "ttl", "ten", code=1)
    assert "there is no `tll` here" in operator("set", "maps", "tll", "1s", code=1)
    assert "`ttl` has no value" in operator("set", "maps", "ttl", code=1)
    assert "list" in operator("lists", code=1)
    assert "required" in operator("drop", "maps", code=1)
    assert cached.rule()["configured"] == {}


def test_orders_need_the_header_that_no_page_can_send(cached):
    status, text = cached.proxy.http("/near/off?rule=maps", "POST", headers={})
    assert status == 403 and "X-Proxima" in text
    assert cached.rule()["on"]


def test_without_such_a_route_there_is_nothing_to_see(server, proxima):
    proxy = proxima(config("cache", {"cache": {"servers": [server.address]}}))
    assert proxy.http("/near") == (
        404,
        "nothing is kept here: the configuration has no route `near`\n",
    )
    assert not [name for name in proxy.metrics() if name.startswith("proxima_near")]


class TestKeep:
    @pytest.fixture
    def cached(self, server, proxima, tmp_path):
        return Cached(proxima, server, near={"memory": "8MiB", "settings": str(tmp_path / "near.yaml")})

    def test_what_is_kept_outlives_the_process(self, cached, operator, proxima, tmp_path):
        file = tmp_path / "near.yaml"
        said = operator("set", "maps", "ttl", "7s", "stale", "3s", "--keep")
        assert "ttl is 7s; the configuration says 10m (kept)" in said
        operator("set", "memory", "4MiB", "--keep")
        operator("on", "rest", "--ttl", "2s", "--keep")
        assert yaml.safe_load(file.read_text()) == {
            "memory": "4MiB",
            "rules": {"maps": {"ttl": "7s", "stale": "3s"}, "rest": {"ttl": "2s"}},
        }
        listeners = [{**cached.config["listeners"][0], "address": ports.address()}]
        again = proxima(cached.changed(listeners=listeners, admin=ports.address()))
        found = json.loads(again.http("/near")[1])
        maps, rest = found["rules"]
        assert found["memory"] == 4 << 20 and found["memory_configured"] == "8MiB"
        assert (maps["settings"]["ttl"], maps["settings"]["stale"]) == ("7s", "3s")
        assert maps["configured"] == {"ttl": "10m", "stale": "0s"} and rest["on"]
        # The configuration's own value is not kept.
        operator("set", "maps", "ttl", "10m", "stale", "0s", "--keep")
        operator("off", "rest", "--keep")
        operator("set", "memory", "8MiB", "--keep")
        assert not yaml.safe_load(file.read_text())

    def test_a_damaged_file_is_refused_with_place_and_remedy_while_the_old_one_runs_on(
        self, cached, operator, command, tmp_path
    ):
        file = tmp_path / "near.yaml"
        operator("set", "maps", "ttl", "7s", "--keep")
        file.write_text("rules:\n  maps: {ttl: soon}\n")
        status, text = cached.proxy.http("/reload", "POST")
        assert status == 422 and f"{file}:2:15: rules.maps.ttl: expected a duration" in text, text
        assert cached.rule()["settings"]["ttl"] == "7s"
        said = operator("set", "maps", "ttl", "8s", "--keep", code=1)
        assert "what was kept before cannot be read" in said
        assert cached.rule()["settings"]["ttl"] == "7s"
        assert command("check", str(cached.proxy.file)).returncode == 1
        file.write_text("rules:\n  maps: {ttl: 9s}\n  gone: {ttl: 1s}\n")
        assert cached.proxy.http("/reload", "POST")[0] == 200
        assert cached.rule()["settings"]["ttl"] == "9s"
        assert "settings were kept for the rule `gone`, which does not exist" in cached.proxy.log()


class TestReload:
    def test_what_operators_set_stays_while_the_file_says_the_same(self, cached, operator):
        operator("set", "maps", "ttl", "5m", "stale", "3s")
        operator("set", "memory", "32MiB")
        cached.keep("map:a", "one")
        cached.proxy.write(cached.changed(limits={"clients": 999}))
        assert cached.proxy.http("/reload", "POST")[0] == 200
        assert cached.rule()["settings"]["ttl"] == "5m" and cached.status()["memory"] == 32 << 20
        assert cached.get("map:a") == "one", "it is still kept"

    def test_what_the_file_says_otherwise_than_before_wins(self, cached, operator):
        operator("set", "maps", "ttl", "5m", "stale", "3s")
        operator("set", "memory", "32MiB")
        cached.keep("map:a", "one")
        rules = [{**RULES[0], "ttl": "20m"}, RULES[1]]
        cached.proxy.write(cached.changed(rules, near={"memory": "2MiB"}))
        cached.proxy.http("/reload", "POST")
        rule = cached.rule()
        assert rule["settings"]["ttl"] == "20m" and rule["configured"] == {"stale": "0s"}
        assert cached.status()["memory"] == 2 << 20
        until(lambda: cached.status()["bytes"] == 0, "the rule before it is freed")
        assert cached.get("map:a") == "not one"

    def test_a_refused_reload_changes_nothing(self, cached, operator):
        operator("set", "maps", "ttl", "5m")
        cached.keep("map:a", "one")
        # Its port is taken: the change fails after all of it was made ready.
        taken = cached.changed([{**RULES[0], "ttl": "20m"}])
        taken["listeners"].append({"address": cached.server.address, "route": "cache"})
        cached.proxy.write(taken)
        assert cached.proxy.http("/reload", "POST")[0] == 422
        assert cached.rule()["settings"]["ttl"] == "5m" and cached.get("map:a") == "one"
        cached.proxy.write(cached.config)
        cached.proxy.http("/reload", "POST")
        assert cached.rule()["settings"]["ttl"] == "5m" and cached.get("map:a") == "one"


def test_clients_of_memcached_are_told_by_stats_near(cached):
    cached.keep("map:a", "one")
    cached.get("map:a")
    with cached.proxy.raw() as client:
        told = client.stats("near")
        assert told["limit_bytes"] == str(64 << 20) and told["keys"] == "1"
        assert told["maps:ttl"] == "10m" and int(told["maps:hits"]) >= 2 and told["maps:entries"] == "1"
        assert told["rest:on"] == "0"


def test_clients_of_redis_are_told_by_info_near(redis_server, proxima):
    server = redis_server()
    pools = {"cache": {"protocol": "redis", "servers": [server.address]}}
    rules = [{"name": "maps", "ttl": "1m"}]
    made = config(near("cache", rules), pools)
    made["listeners"][0]["protocol"] = "redis"
    proxy = proxima(made)
    server.ask("SET", "a", "one")
    with Connection(proxy.address) as client:
        for _ in range(5):
            assert client.ask("GET", "a") == b"$3\r\none\r\n"
        told = client.ask("INFO", "near").decode()
        assert "# Near\r\nnear_limit_bytes:67108864\r\n" in told
        [rule] = [line for line in told.splitlines() if line.startswith("near_rule_maps:")]
        told = dict(pair.split("=") for pair in rule.partition(":")[2].split(","))
        assert told["ttl"] == "1m" and int(told["hits"]) >= 3 and told["entries"] == "1"
        # What servers tell is asked of the server, as before.
        assert b"redis_version" in client.ask("INFO", "server")
        server.ask("SET", "a", "two")
        assert client.ask("GET", "a") == b"$3\r\none\r\n"
        status, text = proxy.http("/near/drop?rule=maps&key=a", "POST")
        assert (status, json.loads(text)) == (200, {"dropped": 1})
        assert client.ask("GET", "a") == b"$3\r\ntwo\r\n"


def test_metrics_have_rows_by_rule(cached):
    cached.keep("map:a", "one")
    cached.get("map:a")
    with cached.proxy.raw() as client:
        client.set("map:a", "two")
    metric = cached.proxy.metric
    assert metric("near_hits_total", rule="maps") == cached.rule()["hits"] >= 2
    assert metric("near_misses_total", rule="maps") == metric("near_fills_total", rule="maps") == 1
    assert metric("near_dropped_total", rule="maps", reason="changed") == 1
    assert metric("near_rule_on", rule="maps") == 1 and metric("near_rule_on", rule="rest") == 0
    assert metric("near_rule_ttl_seconds", rule="maps") == 600
    assert metric("near_limit_bytes") == 64 << 20
    assert metric("near_refused_fills_total", rule="maps") == 0


def test_explain_without_a_process_shows_the_rule(cached, command):
    told = command("explain", "map:a", "--config", str(cached.proxy.file))
    assert told.returncode == 0 and "near: rule maps: kept for 600s" in told.stdout, told
