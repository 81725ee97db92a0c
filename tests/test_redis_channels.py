"""Channels and patterns over several servers: what a subscriber gets, and sees when something is lost."""

import random
import threading

import pytest

from harness import until
from harness.redis import Closed, Connection, array, config

redis = pytest.importorskip("redis")

pytestmark = pytest.mark.either_io

VERSIONS = pytest.mark.parametrize("version", [2, 3], ids=["resp2", "resp3"])
NONE = {2: b"$-1", 3: b"_"}


@pytest.fixture
def four(redis_server):
    return redis_server.several(4)


@pytest.fixture
def proxy(four, proxima):
    """A proxy of one worker before the four servers."""
    return proxima(config(four, workers=1))


@pytest.fixture
def connect(proxy):
    def connection(version=2):
        client = Connection(proxy.address)
        if version == 3:
            client.ask("HELLO", 3)
        return client

    return connection


def channels(server):
    """The number of channels that this server has."""
    return server.ask("PUBSUB", "CHANNELS").count(b"$")


def subscribers(server):
    """The number of connections with subscriptions that this server has."""
    return server.ask("CLIENT", "LIST", "TYPE", "pubsub").count(b"name=proxima")


def name_of(message):
    """The channel or pattern that a confirmation is about; `None`: there was none."""
    lines = message.split(b"\r\n")
    return lines[4] if len(lines) > 6 else None


def replies(client, count):
    return [client.reply() for _ in range(count)]


@VERSIONS
def test_confirmations_are_those_of_one_server_whatever_is_asked(redis_server, connect, version):
    rng = random.Random(version)
    with redis_server().connect() as direct, connect(version) as through:
        if version == 3:
            direct.ask("HELLO", 3)
        subscribed = {"": set(), "P": set(), "S": set()}
        for _ in range(200):
            kind = rng.choice(["", "", "P", "S"])
            names = {f"{kind}{rng.randrange(12)}" for _ in range(rng.randrange(1, 8))}
            names = [*names, *names] if rng.random() < 0.1 else [*names]
            word, count = f"{kind}SUBSCRIBE", len(names)
            match rng.randrange(10):
                case 0:
                    word, names = f"{kind}UNSUBSCRIBE", []
                    count = max(1, len(subscribed[kind]))
                    subscribed[kind].clear()
                case 1 | 2 | 3:
                    word = f"{kind}UNSUBSCRIBE"
                    subscribed[kind] -= {*names}
                case _:
                    subscribed[kind] |= {*names}
            heard = []
            for client in (direct, through):
                client.send(array(word, *names))
                heard.append(replies(client, count))
            if names:
                assert heard[0] == heard[1], (word, names)
                continue
            # The order in which a server forgets everything is its own; the counts fall by one.
            counts = [[message.split(b"\r\n")[-2] for message in some] for some in heard]
            forgotten = [sorted(map(str, map(name_of, some))) for some in heard]
            assert counts[0] == counts[1] and forgotten[0] == forgotten[1], word
        assert through.is_silent(0.05)


@pytest.mark.parametrize("count", [1, 4])
def test_a_request_of_any_size_subscribes(redis_server, proxima, count):
    proxy = proxima(config(redis_server.several(count), workers=1))
    names = [f"{n}:{'x' * 40}" for n in range(3000)]
    with Connection(proxy.address) as client:
        for word in ("SUBSCRIBE", "UNSUBSCRIBE"):
            client.send(array(word, *names))
            heard = replies(client, 3000)
            assert [name_of(message).decode() for message in heard] == names
        assert heard[-1].endswith(b":0\r\n") and client.ask("PING") == b"+PONG\r\n"


@VERSIONS
def test_messages_meet_their_subscribers_at_the_server_of_the_channel(four, connect, version):
    with connect(version) as client, connect() as publisher:
        names = [f"news:{n}" for n in range(100)]
        client.send(array("SUBSCRIBE", *names) + array("PSUBSCRIBE", "news:*7"))
        replies(client, 101)
        spread = [channels(server) for server in four]
        assert sum(spread) == 100 and min(spread) > 5, spread
        for n, name in enumerate(names):
            assert publisher.ask("PUBLISH", name, f"text {n}") == (b":2\r\n" if n % 10 == 7 else b":1\r\n")
        kind = b">" if version == 3 else b"*"
        expected = []
        for n, name in enumerate(names):
            expected.append(kind + array("message", name, f"text {n}")[1:])
            if n % 10 == 7:
                expected.append(kind + array("pmessage", "news:*7", name, f"text {n}")[1:])
        assert sorted(replies(client, 110)) == sorted(expected)
        assert client.is_silent(0.05)


@VERSIONS
def test_shard_channels_are_counted_apart(connect, version):
    with connect(version) as client, connect() as publisher:
        client.send(array("SUBSCRIBE", "a") + array("SSUBSCRIBE", "s1", "s2", "s3", "s4"))
        assert [message[-4:] for message in replies(client, 5)] == [b":%d\r\n" % n for n in (1, 1, 2, 3, 4)]
        for n in (1, 2, 3, 4):
            assert publisher.ask("SPUBLISH", f"s{n}", "x") == b":1\r\n"
            assert client.reply()[1:] == array("smessage", f"s{n}", "x")[1:]
        assert publisher.ask("SPUBLISH", "a", "x") == publisher.ask("PUBLISH", "s1", "x") == b":0\r\n"
        client.ask("UNSUBSCRIBE", "a")
        assert publisher.ask("SPUBLISH", "s2", "still") == b":1\r\n"
        assert client.reply()[1:] == array("smessage", "s2", "still")[1:]


def test_a_hash_tag_keeps_channels_together(four, proxima):
    settings = config(four)
    settings["pools"]["redis"]["hash"] = {"algorithm": "ketama", "tag": "{}"}
    with Connection(proxima(settings).address) as client:
        client.send(array("SUBSCRIBE", *(f"{{t}}{n}" for n in range(20))))
        replies(client, 20)
        assert sorted(channels(server) for server in four) == [0, 0, 0, 20]
        assert sum(subscribers(server) for server in four) == 1
        # A channel is a key in a transaction as well.
        with Connection(client.address) as other:
            other.send(
                array("MULTI") + array("SET", "{t}", "x") + array("PUBLISH", "{t}1", "y") + array("EXEC")
            )
            assert replies(other, 4)[3] == b"*2\r\n+OK\r\n:1\r\n"
            assert client.reply() == array("message", "{t}1", "y")
            other.send(
                array("MULTI") + array("SET", "a", "x") + b"".join(array("PUBLISH", n, "y") for n in range(9))
            )
            other.send(array("EXEC"))
            assert any(b"-CROSSSLOT" in reply for reply in replies(other, 12))


def test_what_is_asked_about_channels_is_asked_of_their_servers(four, connect):
    with connect() as client, connect() as other, connect(3) as third:
        names = [f"c{n}" for n in range(20)]
        client.send(
            array("SUBSCRIBE", *names) + array("PSUBSCRIBE", "x*", "y*") + array("SSUBSCRIBE", "s1", "s2")
        )
        replies(client, 24)
        other.send(array("SUBSCRIBE", "c3", "c4", "z") + array("PSUBSCRIBE", "x*"))
        replies(other, 4)
        listed = third.ask("PUBSUB", "CHANNELS", "c*").split(b"\r\n")
        assert listed[0] == b"*20" and {name.decode() for name in listed[2::2]} == {*names}
        assert third.ask("PUBSUB", "CHANNELS").startswith(b"*21\r\n")
        assert third.ask("PUBSUB", "SHARDCHANNELS").startswith(b"*2\r\n")
        # Others may have subscribed to one channel at two servers.
        with four[0].connect() as one, four[1].connect() as two:
            assert all(direct.ask("SUBSCRIBE", "x1", "x2").startswith(b"*3") for direct in (one, two))
            listed = third.ask("PUBSUB", "CHANNELS", "x*")
            assert sorted(listed.split(b"\r\n")) == [b"", b"$2", b"$2", b"*2", b"x1", b"x2"]
        expected = b"*8\r\n$2\r\nc4\r\n:2\r\n$4\r\nnone\r\n:0\r\n$1\r\nz\r\n:1\r\n$2\r\nc9\r\n:1\r\n"
        assert third.ask("PUBSUB", "NUMSUB", "c4", "none", "z", "c9") == expected
        assert third.ask("PUBSUB", "SHARDNUMSUB", "s2", "c1") == b"*4\r\n$2\r\ns2\r\n:1\r\n$2\r\nc1\r\n:0\r\n"
        assert third.ask("PUBSUB", "NUMSUB") == b"*0\r\n"
        assert third.ask("PUBSUB", "NUMPAT") == b":2\r\n"


def test_a_subscriber_in_resp2_has_the_servers_words_and_all_commands_again_afterwards(redis_server, connect):
    with redis_server().connect() as direct, connect() as through:
        heard = []
        for client in (direct, through):
            client.send(
                array("SUBSCRIBE", "a", "b", "c", "d")
                + array("GET", "x")
                + array("PING")
                + array("PING", "text")
                + array("PUBLISH", "a", "x")
                + array("UNSUBSCRIBE", "a", "b", "c")
                + array("SET", "x", "1")
                + array("UNSUBSCRIBE", "d")
                + array("SET", "x", "1")
                + array("PING")
                + array("SUBSCRIBE", "a", "b")
                + array("RESET")
                + array("GET", "x")
                + array("SUBSCRIBE", "a", "b")
                + array("QUIT")
            )
            heard.append(client.rest())
        assert heard[0] == heard[1]


def test_a_subscriber_in_resp3_may_ask_as_well(four, connect):
    with connect(3) as client, connect() as publisher:
        names = [f"c{n}" for n in range(8)]
        client.send(array("SUBSCRIBE", *names))
        replies(client, 8)
        for n in range(50):
            publisher.send(b"".join(array("PUBLISH", name, n) for name in names))
            client.send(array("INCR", "n") + array("MGET", *names) + array("PUBLISH", "c1", "own"))
            heard = replies(client, 12)
            assert sorted(message[:1] for message in heard) == [b"*", b":", b":", *[b">"] * 9]
            replies(publisher, 8)
        # Transactions and commands that block have a connection beside those of the subscriptions.
        client.send(array("WATCH", "k") + array("MULTI") + array("SET", "k", "v"))
        assert replies(client, 3) == [b"+OK\r\n", b"+OK\r\n", b"+QUEUED\r\n"]
        publisher.ask("PUBLISH", "c2", "within")
        assert client.reply() == b">" + array("message", "c2", "within")[1:]
        assert client.ask("EXEC") == b"*1\r\n+OK\r\n"
        client.send(array("BLPOP", "list", "0"))
        publisher.ask("PUBLISH", "c3", "meanwhile")
        assert client.reply() == b">" + array("message", "c3", "meanwhile")[1:]
        publisher.ask("RPUSH", "list", "x")
        assert client.reply() == array("list", "x")
        client.ask("RESET")
        until(lambda: sum(map(channels, four)) == 0, "nothing is subscribed")


def test_a_client_that_leaves_ends_all_its_subscriptions(four, proxy, connect):
    for _ in range(3):
        client = connect()
        client.send(array("SUBSCRIBE", *range(40)) + array("PSUBSCRIBE", "x*"))
        replies(client, 41)
        assert all(subscribers(server) == 1 for server in four)
        assert proxy.metric("dedicated_lanes", pool="redis") == 4
        client.close()
        until(lambda: sum(map(subscribers, four)) == 0, "its connections are closed")
    assert proxy.metric("dedicated_lanes", pool="redis") == 0


def test_a_connection_without_subscriptions_is_kept_for_others(four, connect):
    with connect() as client:
        for _ in range(20):
            client.send(array("SUBSCRIBE", *range(40)) + array("UNSUBSCRIBE", *range(40)))
            assert replies(client, 80)[-1].endswith(b":0\r\n")
    assert all(server.ask("CLIENT", "LIST").count(b"name=proxima") <= 2 for server in four)


@VERSIONS
def test_a_lost_server_closes_its_subscribers_and_no_other(four, connect, version):
    lost, *others = four
    with connect(version) as client, connect(version) as other, connect() as publisher:
        client.send(array("SUBSCRIBE", *range(40)))
        replies(client, 40)
        # This one has nothing at the server that is lost.
        name = next(str(n) for n in range(40) if lost.ask("PUBSUB", "NUMSUB", n).endswith(b":0\r\n"))
        assert b"subscribe" in other.ask("SUBSCRIBE", name)
        lost.kill()
        assert client.rest() == b""
        until(lambda: sum(map(subscribers, others)) == 1, "its other connections are closed")
        assert publisher.ask("PUBLISH", name, "x") == b":1\r\n"
        assert other.reply()[1:] == array("message", name, "x")[1:]


def test_a_frozen_server_ends_a_subscription_with_an_error(four, proxima):
    settings = config(four, workers=1)
    settings["pools"]["redis"] |= {"timeout": "500ms", "eject": {"failures": 0}}
    proxy = proxima(settings)
    with Connection(proxy.address) as client:
        client.ask("SUBSCRIBE", "a")
        four[0].freeze()
        client.send(array("PSUBSCRIBE", "x*"))
        heard = client.rest()
        assert heard.startswith(b"-ERR ") and four[0].address.encode() in heard, heard
        until(lambda: sum(map(subscribers, four[1:])) == 0, "its other connections are closed")
        four[0].thaw()


def test_a_subscriber_is_closed_when_its_channels_may_have_moved(four, proxima):
    settings = config(four, workers=1)
    settings["pools"]["redis"]["hash"] = {"algorithm": "ketama", "eject": True}
    proxy = proxima(settings)
    with Connection(proxy.address) as client, Connection(proxy.address) as other:
        four[0].kill()

        def is_ejected():
            other.ask("DBSIZE")
            return proxy.member(four[0].address)["state"] == "ejected"

        until(is_ejected, "the server is ejected")
        for one in (client, other):
            one.send(array("SUBSCRIBE", *range(40)))
            replies(one, 40)
        other.ask("UNSUBSCRIBE")
        four[0].start()
        assert client.rest() == b""


def test_many_clients_that_want_each_others_connections_all_get_an_answer(four, proxima):
    settings = config(four, workers=1)
    settings["pools"]["redis"]["dedicated"] = {"max": 3, "wait": "30s"}
    settings["pools"]["redis"] |= {"timeout": "30s", "connect_timeout": "30s"}
    proxy = proxima(settings)
    done, failed = [], []

    def run(seed):
        rng = random.Random(seed)
        try:
            for _ in range(15):
                with Connection(proxy.address) as client:
                    for _ in range(3):
                        names = rng.sample(range(40), rng.randrange(1, 6))
                        client.send(array("SUBSCRIBE", *names))
                        first = client.reply()
                        if first.startswith(b"-ERR"):
                            assert b"all 3 connections" in first, first
                            break
                        replies(client, len(names) - 1)
                    done.append(1)
        except (Closed, OSError, AssertionError) as error:
            failed.append(error)

    threads = [threading.Thread(target=run, args=(seed,)) for seed in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed and len(done) == 12 * 15, failed
    until(lambda: proxy.metric("dedicated_lanes", pool="redis") == 0, "all connections are free")


@VERSIONS
def test_redis_py_hears_every_channel_and_pattern(proxy, version):
    host, port = proxy.address.split(":")
    with redis.Redis(host=host, port=int(port), protocol=version, decode_responses=True) as client:
        heard = []
        with client.pubsub() as subscriber:
            names = [f"c{n}" for n in range(30)]
            subscriber.subscribe(**{name: heard.append for name in names})
            subscriber.psubscribe(**{"c1*": heard.append})
            for _ in range(31):
                until(lambda: subscriber.get_message(timeout=1) is not None, "a confirmation")
            for name in names:
                client.publish(name, f"to {name}")

            def all_are_there():
                subscriber.get_message(timeout=0.1)
                return len(heard) == 41

            until(all_are_there, "30 messages, 11 of them twice")
            direct = {message["data"] for message in heard if message["type"] == "message"}
            assert direct == {f"to {name}" for name in names}
            subscriber.unsubscribe()
            subscriber.punsubscribe()

            def is_over():
                subscriber.get_message(timeout=0.1)
                return not subscriber.subscribed

            until(is_over, "nothing is subscribed")
        assert client.pubsub_channels() == [] and client.pubsub_numpat() == 0
