"""Several proxies before one Galera cluster move its writer together, by the orders of one client."""

import contextlib
import json
import signal
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from harness import SOAK, freeze, galera_door, until
from harness.galera import rows
from harness.galera_door import clients
from harness.orders import Orderer

pytestmark = [pytest.mark.either_io, pytest.mark.timeout(300)]

MOVES = 100 if SOAK else 10


@pytest.fixture
def doors(galera, before, proxima, tmp_path):
    """Two proxies before a cluster, with a table for pairs."""
    folder = tmp_path / "beside"
    folder.mkdir()
    doors = [before(galera), galera_door.another(proxima, folder, galera)]
    with doors[0].connect() as client:
        client.query("CREATE TABLE pairs (client INT, turn INT, half INT, server VARCHAR(64))")
    return doors


def writer(door):
    """The name that the proxy knows its writer by."""
    return json.loads(door.proxy.http("/pools/db/orders")[1])["writer"]


def others(door):
    """The names of the members that take no writes."""
    told = json.loads(door.proxy.http("/pools/db/orders")[1])
    return [row["name"] for row in told["members"] if row["role"] == "reader"]


def same_writer(doors):
    """Has both proxies begin with the same writer, and returns its name."""
    until(lambda: all(len(others(door)) == 2 for door in doors), "all serve")
    orderer = Orderer(doors, "begin")
    name = writer(doors[0])
    orderer.move(name)
    orderer.end()
    assert [writer(door) for door in doors] == [name, name]
    # Who was another proxy's writer reads there after the first barrier that it passes.
    until(lambda: all(len(others(door)) == 2 for door in doors), "all others read")
    return name


def test_the_writer_moves_at_all_proxies_together_and_no_client_sees_an_error(doors):
    same_writer(doors)
    orderer = Orderer(doors)

    def inserts(client, number, turn):
        client.begin()
        for half in range(2):
            client.query(f"INSERT INTO pairs VALUES ({number}, {turn}, {half}, @@wsrep_node_name)")
        # All clients change the same row: two writers would be in conflict.
        client.query("UPDATE t SET a = a + 1")
        client.commit()
        return number, turn

    with contextlib.ExitStack() as stack:
        all_done = [stack.enter_context(clients(door, inserts, 3)) for door in doors]
        for _ in range(MOVES):
            already = [len(done) for done in all_done]
            orderer.move(others(doors[0])[-1])
            until(
                lambda already=already: all(
                    len(done) > some for done, some in zip(all_done, already, strict=True)
                ),
                "they go on",
            )
    print(f"held for {sorted(orderer.held)} ms")
    orderer.end()
    with doors[0].connect() as client:
        stored = rows(client, "SELECT client, turn FROM pairs")
        apart = "SELECT COUNT(*) FROM pairs GROUP BY client, turn, half % 2 HAVING COUNT(DISTINCT server) > 2"
        assert rows(client, apart) == ()
        [(count,)] = rows(client, "SELECT a FROM t")
    expected = sorted(one for done in all_done for one in done)
    assert sorted(stored) == sorted(2 * expected), "acknowledged is stored, and nothing twice"
    assert count == len(expected)
    assert all("it serves no longer" not in door.proxy.log() for door in doors)


def test_a_hold_ends_by_itself_however_often_it_is_repeated(doors):
    name = same_writer(doors)
    orderer = Orderer(doors[:1])
    with doors[0].connect() as client, doors[0].connect() as reader, ThreadPoolExecutor(1) as threads:
        until(lambda: doors[0].in_use() == 0, "no session has a connection")
        [told] = orderer.put(hold=True)
        assert told["order"]["hold"] and told["held_ms"] < 1000
        until(lambda: orderer.told()[0]["quiet"], "nothing is under way")
        writing = threads.submit(client.query, "UPDATE t SET a = 7")
        assert rows(reader, "SELECT a FROM t") == ((0,),), "reads go on"
        until(lambda: orderer.told()[0]["waiting"] == 1, "it waits")

        def is_over():
            [told] = orderer.put(hold=True)
            return told["order"]["hold_ended"] == "hold_limit"

        until(is_over, "it has ended")
        writing.result()
        [told] = orderer.told()
        assert 4_900 < told["longest_hold_ms"] < 8_000 and told["held_ms"] is None, told
        assert told["waiting"] == 0 and writer(doors[0]) == name
        # The next one is a new one.
        orderer.put()
        [told] = orderer.put(hold=True)
        assert told["held_ms"] < 1_000 and told["order"]["hold_ended"] is None
        orderer.end()
        client.query("UPDATE t SET a = 8")


def test_nothing_stays_behind_a_client_that_has_gone(doors):
    name = same_writer(doors)
    to = others(doors[0])[0]
    Orderer(doors, time="700ms").put(hold=True)
    with doors[0].connect() as client:
        client.query("UPDATE t SET a = 1")
    assert writer(doors[0]) == name
    orderer = Orderer(doors, time="1s")
    orderer.put(hold=True)
    until(lambda: all(told["quiet"] for told in orderer.told()), "all are quiet")
    orderer.put(hold=True, writer=to)
    with doors[0].connect() as client:
        client.query("UPDATE t SET a = 2")
    told = json.loads(doors[0].proxy.http("/pools/db/orders")[1])
    assert told["orders"] == [] and told["held_ms"] is None


def test_what_keeps_the_writer_is_counted_and_goes_on(doors):
    name = same_writer(doors)
    orderer = Orderer(doors)

    def left(told):
        [row] = [row for row in told["members"] if row["name"] == name]
        return row["sessions"]

    with doors[0].connect() as client:
        client.begin()
        client.query("INSERT INTO pairs VALUES (0, 0, 0, '')")
        orderer.put(hold=True)
        until(lambda: [told["quiet"] for told in orderer.told()] == [False, True], "one is quiet")
        assert [left(told) for told in orderer.told()] == [1, 0]
        client.query("INSERT INTO pairs VALUES (0, 0, 1, '')")
        client.commit()
        until(lambda: all(told["quiet"] for told in orderer.told()), "both are")
        orderer.end()
        assert len(rows(client, "SELECT * FROM pairs")) == 2


def test_a_reader_that_drains_is_told_as_the_reader_that_it_would_be(doors):
    same_writer(doors)
    name = others(doors[0])[0]
    orderer = Orderer(doors)
    orderer.put(drain=[name])
    for told in orderer.told():
        [row] = [row for row in told["members"] if row["name"] == name]
        assert (row["drains"], row["role"], row["online"], row["why"]) == (True, "reader", True, None)
        assert row["barrier"] == "passed" and row["version"]


def test_a_writer_without_a_hold_is_followed_by_a_move_of_its_own(doors):
    same_writer(doors)
    to = others(doors[0])[0]
    orderer = Orderer(doors)
    orderer.put(writer=to)
    until(lambda: all(writer(door) == to for door in doors), "it takes the writes")
    process = {told["process"] for told in orderer.told()}
    assert len(process) == 2


def test_of_two_clients_one_orders_the_writer_and_a_person_comes_before_both(doors):
    same_writer(doors)
    first, second = others(doors[0])
    [door] = doors[:1]
    Orderer([door], "one").put(writer=first)
    until(lambda: writer(door) == first, "it takes the writes")

    def put(**wish):
        body = json.dumps({"for": "30s", **wish}).encode()
        return door.proxy.http("/pools/db/orders/two", "PUT", body=body)

    status, text = put(writer=second)
    assert status == 409 and "ordered by `one`" in text, text
    assert put(drain=[second])[0] == 200
    Orderer([door], "one").end()
    assert door.proxy.http(f"/orders/writer?pool=db&member={first}", "POST")[0] == 200
    status, text = put(writer=second)
    assert status == 409 and "proxima mysql writer db --end" in text, text
    told = json.loads(door.proxy.http("/pools/db/orders/two")[1])
    assert told["by_hand"] == [{"order": "writer", "member": first}]
    assert told["order"]["writer"] is None, "the former wish stands"
    assert door.proxy.http("/orders/writer?pool=db", "DELETE")[0] == 200
    assert put(writer=second)[0] == 200
    until(lambda: writer(door) == second, "nobody else orders it")


def test_a_proxy_that_was_frozen_for_longer_than_its_order_asks_all_servers_anew(doors):
    first = same_writer(doors)
    to, third = others(doors[0])
    frozen, other = doors
    orderer = Orderer(doors, time="2s")
    orderer.move(to)
    with frozen.connect() as client, ThreadPoolExecutor(1) as threads:
        client.query("UPDATE t SET a = 1")
        until(lambda: frozen.in_use() == 0, "no session has a connection")
        freeze(frozen.proxy.process)
        try:
            writing = threads.submit(client.query, "UPDATE t SET a = 2")
            Orderer([other]).put(writer=third)
            until(lambda: writer(other) == third, "others go on")
            # Its order ends meanwhile.
            time.sleep(4)
        finally:
            frozen.proxy.process.send_signal(signal.SIGCONT)
        writing.result()
    log = frozen.proxy.log()
    assert "stood still for longer than its orders: all servers are asked anew" in log
    assert log.index("stood still") < log.rindex("the writer has changed")
    assert writer(frozen) in (first, to, third)
