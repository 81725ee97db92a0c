"""A fleet as its operators meet it: what the commands say and do, restarts, and what is ready."""

import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from harness import until
from harness.fleet import SHORT, is_settled, write_and_read

pytestmark = pytest.mark.either_io


def admin(node):
    return ["--admin", node.proxy.admin]


def test_fleet_show_prints_every_peer_with_its_view_leader_voters_and_copies(fleet, command):
    nodes = fleet()

    def show():
        return command("fleet", "show", *admin(nodes[1]))

    # A peer that has joined may have asked once more, on a busy machine.
    until(lambda: "wants to join" not in show().stdout, "every peer has joined")
    shown = show()
    assert shown.returncode == 0, shown
    status = nodes[1].status()
    first, *rest = shown.stdout.splitlines()
    assert first.startswith(f"n1 of fleet {status['fleet']}: view {status['view']} "), first
    assert f"leader {status['leader']}" in first and "lease " in first
    assert f"voters: {', '.join(sorted(status['voters']))}" in rest
    rows = {line.split()[0]: line for line in rest if line.startswith("n")}
    assert sorted(rows) == ["n0", "n1", "n2"]
    for name, row in rows.items():
        assert " yes " in row and " cache " in row, row
        assert row.endswith("this one") if name == "n1" else row.endswith(" ms"), row
    as_json = json.loads(command("fleet", "show", "--json", *admin(nodes[1])).stdout)
    assert as_json.keys() == status.keys()


def test_commands_of_an_operator_fail_with_the_reason(fleet, command):
    nodes = fleet(1)
    wrong = command("fleet", "remove", "nobody", *admin(nodes[0]))
    assert wrong.returncode == 1 and "no peer has the name nobody" in wrong.stderr, wrong
    nodes[0].proxy.kill()
    for words in (["show"], ["remove", "n0"]):
        unheard = command("fleet", *words, *admin(nodes[0]))
        assert unheard.returncode == 1 and "nobody answers at the admin port" in unheard.stderr, unheard


def test_removed_peer_that_lives_joins_again(fleet, command):
    nodes = fleet()
    view = nodes[0].status()["view"]
    removed = command("fleet", "remove", "n2", *admin(nodes[0]))
    assert removed.returncode == 0, removed
    until(
        lambda: dict(nodes[0].status()["removed"]) == {"n2": "an operator has removed it"}, "it is left out"
    )
    nodes.until_settled()
    assert nodes[0].status()["view"] > view + 1
    write_and_read(nodes.nodes, "v")


@pytest.mark.heavy
def test_removal_of_a_dead_peer_ends_the_wait_for_it(fleet, command):
    """A lease of 10 s is longer than a write waits."""
    nodes = fleet(fleet={"lease": "10s", "suspect": "5s"})
    leader = next(node for node in nodes if node.status()["is_leader"])
    dead = next(node for node in nodes if node is not leader)
    rest = [node for node in nodes if node is not dead]
    dead.proxy.kill()
    # Whoever is asked, the leader does it.
    asked = next(node for node in rest if node is not leader)
    removed = command("fleet", "remove", dead.name, *admin(asked))
    assert removed.returncode == 0, removed
    nodes.until_view([node.name for node in rest])
    assert dict(leader.status()["removed"])[dead.name] == "an operator has removed it"
    write_and_read(rest, "v")


def test_init_makes_peers_new_only_when_they_are_stopped_and_it_is_forced(fleet, command):
    nodes = fleet()
    write_and_read(nodes.nodes, "old")
    before = nodes[0].status()["fleet"]
    init = ["fleet", "init", "--config"]
    in_use = command(*init, str(nodes[0].proxy.file), "--force")
    assert in_use.returncode == 2 and "a proxy uses it; stop it first" in in_use.stderr, in_use
    for node in nodes:
        node.proxy.kill()
    unforced = command(*init, str(nodes[0].proxy.file))
    assert unforced.returncode == 1 and "`--force` makes it forget that" in unforced.stderr, unforced
    for node in nodes:
        forced = command(*init, str(node.proxy.file), "--force")
        assert (forced.returncode, forced.stdout) == (0, f"{node.dir} is that of a new peer\n"), forced
        node.start()
    nodes.until_settled()
    assert nodes[0].status()["fleet"] != before
    assert [node.server.get("k") for node in nodes] == [None] * 3
    write_and_read(nodes.nodes, "new")


def test_fleet_that_has_lost_the_majority_of_its_voters_begins_anew_with_init(fleet, command):
    nodes = fleet(fleet=SHORT)
    write_and_read(nodes.nodes, "old")
    survivor, *lost = nodes
    for node in lost:
        node.proxy.kill()
    until(lambda: not survivor.is_ready(), "it has no lease")
    assert "no majority of the voters is in reach" in survivor.ready()
    survivor.stop_softly()
    for node in nodes:
        assert command("fleet", "init", "--force", "--config", str(node.proxy.file)).returncode == 0
        node.start()
    nodes.until_settled()
    assert [node.server.get("k") for node in nodes] == [None] * 3
    write_and_read(nodes.nodes, "new")


class Load:
    """A client of each node that writes and reads keys of all, until it is stopped. It sees no failure and no
    old value: a node is out of service before it is restarted."""

    def __init__(self, nodes):
        self._newest = {}
        self._over = threading.Event()
        self._pool = ThreadPoolExecutor(len(nodes))
        self.rounds = {node.name: 0 for node in nodes}
        self._in_service = {node.name: threading.Lock() for node in nodes}
        self._all = [self._pool.submit(self._use, node) for node in nodes]

    def _use(self, node):
        while not self._over.is_set():
            with self._in_service[node.name], node.raw() as client:
                for _ in range(20):
                    self._round(node.name, client)
            time.sleep(0.01)

    def _round(self, name, client):
        number = self.rounds[name] + 1
        client.set(name, str(number))
        self._newest[name] = self.rounds[name] = number
        for key, least in dict(self._newest).items():
            read = client.get(key)
            assert read is None or int(read) >= least, f"{key}: {read} after {least}"

    def without(self, node):
        """The node is out of service until the result is left."""
        return self._in_service[node.name]

    def until_all_go_on(self):
        before = dict(self.rounds)
        until(lambda: all(self.rounds[name] > before[name] + 20 for name in before), "all clients go on")

    def stop(self):
        self._over.set()
        for one in self._all:
            one.result()
        self._pool.shutdown()


def test_rolling_restart_of_all_peers_fails_no_request_and_reads_nothing_old(fleet):
    nodes = fleet()
    load = Load(nodes.nodes)
    try:
        for node in nodes:
            with load.without(node):
                node.stop_softly()
                node.start()
                nodes.until_settled()
            load.until_all_go_on()
    finally:
        load.stop()
    removed = nodes[0].status()["removed"]
    assert [why for _, why in removed] == ["goodbye"] * 3, removed
    # Nothing but what changed meanwhile was missed: no copy was flushed.
    assert [node.proxy.metric("fleet_repairs_total", how="flush") for node in nodes] == [0] * 3


def test_terminated_proxy_keeps_its_copy_until_its_clients_are_served_and_then_says_goodbye(fleet):
    nodes = fleet()
    leaving, *rest = nodes
    with leaving.raw() as client, rest[0].raw() as writer:
        # Half a request: its client is still to be served.
        client.send(b"set slow 0 0 4\r\nab")
        until(lambda: leaving.proxy.metric("clients") >= 1, "it has begun")
        leaving.proxy.signal(15)
        until(lambda: not leaving.is_ready(), "it is not ready")
        assert leaving.view() == ["n0", "n1", "n2"]
        writer.set("meanwhile", "v")
        assert leaving.server.get("meanwhile") == b"v"
        client.send(b"cd\r\n")
        assert client.line() == b"STORED\r\n"
        assert client.rest() == b""
    assert leaving.proxy.wait() == 0, leaving.proxy.log()
    assert [one.server.get("slow") for one in nodes] == [b"abcd"] * 3
    nodes.until_view([one.name for one in rest])
    assert rest[0].status()["removed"] == [["n0", "goodbye"]]


def test_peer_is_ready_while_it_has_a_lease_and_a_copy_of_its_own_or_a_neighbours_may_be_read(fleet):
    nodes = fleet(2)
    one, other = nodes
    one.server.kill()
    write_and_read([other], "it misses")
    until(lambda: one.is_ready() and not one.reads_own_copy(), "it is ready without a copy of its own")
    write_and_read([other, one], "a neighbour's")
    other.server.kill()
    with other.raw() as client:
        client.ask(b"set k 0 0 4\r\nlost\r\n")
    until(lambda: not one.is_ready() and not other.is_ready(), "no copy is left")
    assert "pool cache: 0 of " in one.ready()
    other.server.start()
    one.server.start()
    until(lambda: is_settled(nodes.nodes), "both are back")
