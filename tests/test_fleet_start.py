"""A fleet begins: who waits for whom, who begins it, and who is kept out, with what reason and remedy."""

import pytest
import yaml

from harness import ports, until
from harness.fleet import is_settled, write_and_read

pytestmark = pytest.mark.either_io

BEGINS = "fleet: the first start: all expected peers are there"


def addresses(count):
    return [ports.address() for _ in range(count)]


def files(folder, name):
    return {
        "certificate": str(folder / f"{name}.pem"),
        "key": str(folder / f"{name}.key"),
        "ca": str(folder / "ca.pem"),
    }


def test_peers_with_keys_of_one_authority_form_a_fleet_and_one_of_another_authority_never_joins(
    node, command, tmp_path
):
    ours, others = tmp_path / "ours", tmp_path / "others"
    assert command("fleet", "keys", str(ours), "n0", "n1", "n2").returncode == 0
    assert command("fleet", "keys", str(others), "n3").returncode == 0
    listens = addresses(4)
    nodes = [
        node(f"n{number}", listens, listens[number], fleet={"tls": files(ours, f"n{number}"), "expect": 3})
        for number in range(3)
    ]
    until(lambda: is_settled(nodes), "the three are a fleet")
    stranger = node("n3", listens, listens[3], fleet={"tls": files(others, "n3"), "expect": 3})
    until(lambda: "a connection was refused" in nodes[0].proxy.log(), "the stranger is refused")
    write_and_read(nodes, "v")
    assert stranger.status()["fleet"] is None and not stranger.is_ready()
    assert [len(peer.view()) for peer in nodes] == [3] * 3


def test_listen_address_beyond_loopback_without_tls_is_refused_with_its_remedy(command, tmp_path):
    file = tmp_path / "proxima.yaml"
    fleet = {"listen": "0.0.0.0:11400", "peers": ["10.77.0.1:11400"], "name": "n0", "dir": str(tmp_path)}
    config = {
        "listeners": [{"address": "127.0.0.1:11211", "route": "cache"}],
        "pools": {"cache": {"replicated": True, "own": "127.0.0.1:11212"}},
        "fleet": fleet,
    }
    file.write_text(yaml.safe_dump(config))
    refused = command("check", str(file))
    said = refused.stdout + refused.stderr
    assert refused.returncode != 0 and "`tls` is missing" in said and "tls: none" in said, said
    fleet["tls"] = "none"
    file.write_text(yaml.safe_dump(config))
    good = command("check", str(file))
    assert good.returncode == 0, good.stdout + good.stderr


def check_waiting(nodes, why):
    """No fleet has begun: they say why, miss, and refuse writes."""
    for one in nodes:
        until(lambda one=one: why in one.ready(), f"{one.name} says that {why}")
        assert one.status()["fleet"] is None and one.view() == []
        with one.raw() as client:
            assert client.get("k") is None
            assert client.ask(b"set k 0 0 1\r\nv\r\n").startswith(b"SERVER_ERROR this proxy has no lease")


def test_first_start_waits_for_as_many_peers_as_expected_and_the_lowest_begins(node):
    listens = addresses(3)
    nodes = [node(f"n{number}", listens, listens[number], fleet={"expect": 3}) for number in (1, 2)]
    check_waiting(nodes, "waits for 3 peers, and 2 are there: n1, n2")
    nodes.append(node("n0", listens, listens[0], fleet={"expect": 3}))
    until(lambda: is_settled(nodes), "all three begin")
    assert len({one.status()["fleet"] for one in nodes}) == 1
    assert [BEGINS in one.proxy.log() for one in nodes] == [False, False, True]
    write_and_read(nodes, "v")


def test_first_start_waits_for_a_majority_of_the_listed_peers_though_fewer_are_expected(node):
    listens = addresses(4)
    nodes = [node(f"n{number}", listens, listens[number], fleet={"expect": 2}) for number in range(2)]
    check_waiting(nodes, "waits for 3 peers, and 2 are there: n0, n1")
    nodes.append(node("n2", listens, listens[2], fleet={"expect": 2}))
    until(lambda: is_settled(nodes), "three of four begin")


def test_proxy_of_another_fleet_among_the_peers_is_an_alert_with_its_remedy(node, command):
    listens = addresses(2)
    foreign = node("n9", [listens[1]], listens[1], fleet={"expect": 1})
    # It begins apart, and is told of the other one after that.
    ours = node("n0", [listens[0]], listens[0], fleet={"expect": 1})
    until(lambda: is_settled([foreign]) and is_settled([ours]), "two fleets of one")
    ours.stop_softly()
    ours.configure(peers=listens)
    ours.start()
    alert = (
        "n9: it belongs to another fleet. Stop it, remove its `dir`, and start it again: it joins this one"
    )
    until(lambda: ours.status()["alerts"] == [alert], "the alert is among what it says of the fleet")
    until(lambda: alert in ours.proxy.log(), "it is logged")
    assert alert in command("fleet", "show", "--admin", ours.proxy.admin).stdout
    until(lambda: is_settled([ours]), "it goes on alone")
    assert ours.status()["fleet"] != foreign.status()["fleet"]
    with ours.raw() as client, foreign.raw() as other:
        client.set("k", "ours")
        assert other.get("k") is None
    foreign.proxy.kill()
    until(lambda: ours.status()["alerts"] == [], "the alert ends with its cause")


def test_second_peer_of_a_name_is_refused_with_the_remedy(node, fleet, folder):
    nodes = fleet()
    elsewhere = folder / "elsewhere"
    elsewhere.mkdir()
    elsewhere.chmod(0o777)
    listens = [one.listen for one in nodes]
    second = node("n1", listens, ports.address(), within=elsewhere, fleet={"expect": 3})
    until(lambda: "give this one a name of its own" in second.ready(), "it says what to do")
    assert not second.is_ready()
    write_and_read(nodes.nodes, "v")
    assert nodes[0].view() == ["n0", "n1", "n2"]


def test_peer_with_other_pools_is_an_alert_at_all_peers_until_they_are_equal(fleet, node, command):
    nodes = fleet(2)
    listens = [one.listen for one in nodes]
    none = {"replicated": True, "own": "none"}
    third = node("n2", listens, ports.address(), pools={"cache": none, "more": none}, fleet={"expect": 2})
    until(lambda: len(nodes[0].view()) == 3, "it joins")
    for one in (nodes[0], third):
        until(lambda one=one: one.status()["alerts"], f"{one.name} tells of the difference")
    [alert] = nodes[0].status()["alerts"]
    assert alert == "n2: its pools differ: cache, more there, cache here. Make the configurations equal"
    assert alert in nodes[0].proxy.log()
    assert alert in command("fleet", "show", "--admin", nodes[0].proxy.admin).stdout
    third.stop_softly()
    until(lambda: nodes[0].status()["alerts"] == [], "the alert ends with its cause")
