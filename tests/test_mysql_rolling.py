"""A restart of all servers in turn, with the script of the example, and no client sees an error."""

import contextlib
import os
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from harness import until
from harness.galera import rows
from harness.proxy import BINARY, ROOT

pytestmark = [pytest.mark.either_io, pytest.mark.timeout(300)]

SCRIPT = ROOT / "examples/galera-causal/rolling.sh"


@contextlib.contextmanager
def restarts(cluster, folder):
    """The command that restarts a server, and the addresses of those that were, in order."""
    asked, done = folder / "asked", folder / "done"
    os.mkfifo(asked)
    os.mkfifo(done)
    restarted = []

    def serve():
        while address := asked.read_text().strip():
            [node] = [node for node in cluster.nodes if node.address == address]
            node.stop()
            restarted.append(address)
            node.start()
            until(node.is_synced, f"{node.name} is back", every=0.1)
            done.write_text("done\n")

    with ThreadPoolExecutor(1) as threads:
        serving = threads.submit(serve)
        try:
            yield ["sh", "-c", f'echo "$0" >{asked} && read _ <{done}'], restarted
        finally:
            asked.write_text("\n")
            serving.result()


def roll(door, command, **settings):
    env = {**os.environ, "PROXIMA": str(BINARY), "ADMIN": door.proxy.admin, **settings}
    return subprocess.run(["bash", SCRIPT, "db", *command], capture_output=True, text=True, env=env)


@pytest.mark.parametrize("donors", ["wait", "serve"])
def test_all_servers_are_restarted_and_no_client_sees_an_error(galera_alone, before, tmp_path, donors):
    door = before(galera_alone, galera={"donors": donors})
    with door.connect() as client:
        client.query("CREATE TABLE pairs (client INT, turn INT, half INT)")
    ended, done = threading.Event(), []

    def inserts(number):
        with door.connect() as client:
            turn = 0
            while not ended.is_set():
                if number % 2:
                    client.begin()
                for half in range(2):
                    client.query(f"INSERT INTO pairs VALUES ({number}, {turn}, {half})")
                if number % 2:
                    client.commit()
                count = f"SELECT COUNT(*) FROM pairs WHERE client = {number} AND turn = {turn}"
                assert rows(client, count) == ((2,),)
                done.append((number, turn))
                turn += 1

    first = door.writer()
    with restarts(galera_alone, tmp_path) as (command, restarted), ThreadPoolExecutor(4) as threads:
        running = [threads.submit(inserts, number) for number in range(4)]
        try:
            rolled = roll(door, command)
        finally:
            ended.set()
        failed = [error for client in running if (error := client.exception())]
    assert not failed, f"{failed}\n{door.proxy.log()[-5_000:]}"
    assert rolled.returncode == 0, rolled.stdout + rolled.stderr
    assert len(set(restarted)) == len(restarted) == 3, restarted
    moves = door.proxy.log().count("the writer moves there")
    if donors == "serve":
        names = [node.name for address in restarted for node in galera_alone.nodes if node.address == address]
        *readers, last = names
        assert (readers, last, moves) == (sorted(readers, reverse=True), first, 1)
        assert door.writer() == readers[-1], door.proxy.log()[-5_000:]
    else:
        # A donor that does not serve hands the writes on.
        assert moves >= 1
    assert door.proxy.http("/orders")[1] == "[]"
    with door.connect() as client:
        stored = rows(client, "SELECT client, turn FROM pairs")
    assert sorted(stored) == sorted(2 * done), "acknowledged is stored, and nothing twice"


def test_a_server_that_does_not_drain_is_not_restarted(galera, before, tmp_path):
    door = before(galera)
    to = sorted(node.address for node in galera.nodes if node.name != door.writer())[-1]
    with door.connect() as client:
        # Only the writer has such a session: the readers drain, and then it is asked to move.
        client.query("CREATE TEMPORARY TABLE own (a INT)")
        rolled = roll(door, ["true"], LEAVING="500ms")
        assert rolled.returncode == 1, rolled
        assert f"rolling: {to} serves again" in rolled.stdout
        assert "still keep connections to the writer" in rolled.stderr
    assert door.proxy.http("/orders")[1] == "[]", "all serve as before"


def test_the_script_says_what_it_needs():
    said = subprocess.run(["bash", SCRIPT], capture_output=True, text=True)
    assert said.returncode == 2
    assert "rolling.sh POOL COMMAND" in said.stderr and "ADMIN" in said.stderr
