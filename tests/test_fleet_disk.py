"""The directory of a peer: its disk is full or read-only, power is lost, or another one is in its place."""

import random
import shutil
import subprocess
import threading

import pytest

from harness import TRIES, ports, until
from harness.disk import Disk
from harness.fleet import SHORT, is_settled, write_and_read
from harness.proxy import BINARY, environment

pytestmark = pytest.mark.either_io


def start_in_vain(node):
    """Starts a proxy that ends by itself, and returns what it said."""
    command = [BINARY, "run", "--config", node.proxy.file]
    return subprocess.run(command, capture_output=True, text=True, env=environment(), timeout=60)


@pytest.fixture
def disk(folder, cleanup):
    try:
        small = Disk(folder / "image", folder / "disk")
    except OSError as error:
        pytest.skip(f"nothing may be mounted here: {error}")
    cleanup.callback(small.remove)
    return small


@pytest.fixture
def nodes(disk, node):
    """Three nodes, the first of which has its directory on the small disk."""
    listens = [ports.address() for _ in range(3)]
    keys = [{"dir": str(disk.folder / "fleet")}, {}, {}]
    nodes = [
        node(f"n{number}", listens, listens[number], fleet={**SHORT, "expect": 3, **keys[number]})
        for number in range(3)
    ]
    until(lambda: is_settled(nodes), "all three are peers")
    return nodes


@pytest.mark.alone
@pytest.mark.parametrize("how", ["full", "read-only"])
def test_voter_whose_disk_takes_nothing_votes_no_more_and_says_so_while_the_fleet_goes_on(disk, nodes, how):
    """Mounting changes the machine, so that nothing may run beside it."""
    spoiled, *others = nodes
    if how == "full":
        disk.fill()
    else:
        disk.fail()
    write_and_read(nodes, how)

    def says_so():
        # Each removal and each return are records of the log, for which the disk has no room for long.
        others[0].proxy.kill()
        others[0].start()
        until(lambda: all(node.reads_own_copy() for node in others), "the others have leases")
        return "votes no more; mend its directory" in spoiled.proxy.log()

    until(says_so, "it says so")
    write_and_read(others, "after")
    spoiled.proxy.kill()
    ended = start_in_vain(spoiled)
    assert ended.returncode == 2 and f"the fleet cannot be joined: {disk.folder}" in ended.stderr, ended
    disk.mend()
    spoiled.start()
    until(lambda: is_settled(nodes), "it is a peer again")
    write_and_read(nodes, "mended")


def test_views_that_were_agreed_on_outlive_the_kill_of_all_voters_at_any_moment(fleet, command):
    nodes = fleet()
    chance = random.Random(15)
    identity = nodes[0].status()["fleet"]
    for _ in range(TRIES // 10):
        removal = []

        def remove(removal=removal):
            removal.append(command("fleet", "remove", "n2", "--admin", nodes[0].proxy.admin))

        asked = threading.Thread(target=remove)
        view = nodes[0].status()["view"]
        asked.start()
        # From before the proposal until after the answer.
        threading.Event().wait(chance.uniform(0, 0.05))
        for node in nodes:
            node.proxy.kill()
        asked.join()
        for node in nodes:
            node.start()
        nodes.until_settled()
        status = nodes[0].status()
        assert status["fleet"] == identity
        assert status["view"] > view
        if removal[0].returncode == 0:
            assert ["n2", "an operator has removed it"] in status["removed"], status
        write_and_read(nodes.nodes, str(view))


def test_directory_of_another_peer_is_refused_with_its_remedy(fleet):
    nodes = fleet()
    one, other = nodes[1], nodes[2]
    for node in (one, other):
        node.stop_softly()
    shutil.rmtree(other.dir)
    shutil.copytree(one.dir, other.dir)
    ended = start_in_vain(other)
    assert ended.returncode == 2, ended
    assert f"{other.dir}: it is the directory of the peer n1, and this one is n2" in ended.stderr, ended
    assert "`proxima fleet init --force`" in ended.stderr


def test_old_copy_of_a_peers_directory_costs_what_its_server_holds_and_nothing_else(fleet):
    nodes = fleet()
    restored = nodes[2]
    saved = restored.folder / "saved"
    shutil.copytree(restored.dir, saved)
    write_and_read(nodes.nodes, "old")
    restored.stop_softly()
    write_and_read(nodes.nodes[:2], "new")
    shutil.rmtree(restored.dir)
    saved.rename(restored.dir)
    restored.start()
    nodes.until_settled()
    assert restored.proxy.metric("fleet_repairs_total", how="flush") == 1
    with restored.raw() as client:
        assert client.get("k") in (None, b"new")
    write_and_read(nodes.nodes, "newer")


def test_damaged_journal_is_refused_with_its_remedy_and_an_empty_directory_is_a_new_peer(fleet, tmp_path):
    nodes = fleet()
    damaged = nodes[2]
    damaged.stop_softly()
    journal = damaged.dir / "journal"
    text = bytearray(journal.read_bytes())
    text[20] ^= 1
    journal.write_bytes(text)
    ended = start_in_vain(damaged)
    assert ended.returncode == 2 and "is damaged at byte 0: move the directory away" in ended.stderr, ended
    damaged.dir.rename(tmp_path / "away")
    damaged.start()
    nodes.until_settled()
    write_and_read(nodes.nodes, "v")
