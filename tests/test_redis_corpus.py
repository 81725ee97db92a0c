"""Every command for a key of every type: direct, and through the proxy."""

import pytest

from harness import corpus
from harness.redis import Connection, array, config

pytestmark = pytest.mark.either_io

PORTION = 40


@pytest.fixture(params=["redis", "valkey"])
def server(request, redis_server):
    """A function that starts a server of one kind."""
    if request.param == "redis":
        return redis_server
    words = corpus.valkey()
    if not words:
        pytest.skip("no Valkey here: scripts/prepare.sh unpacks it")
    return lambda: redis_server(program=words)


def answers(connection, commands):
    """The replies to these commands, asked in portions."""
    heard = []
    for begin in range(0, len(commands), PORTION):
        portion = commands[begin : begin + PORTION]
        connection.send(b"".join(array(*words) for words in portion))
        heard += [connection.reply() for _ in portion]
    return heard


def different(commands, ours, theirs):
    return [
        (b" ".join(word.encode() for word in words), our, their)
        for words, our, their in zip(commands, ours, theirs, strict=True)
        if our != their
    ]


@pytest.mark.parametrize("version", [2, 3], ids=["resp2", "resp3"])
def test_the_only_servers_replies_are_passed_on_byte_for_byte(server, proxima, version):
    behind, beside = server(), server()
    commands = list(corpus.commands(beside))
    assert len(commands) >= 800
    proxy = proxima(config([behind]))
    with Connection(proxy.address) as through, beside.connect() as direct:
        for connection in (through, direct):
            connection.ask("HELLO", version)
        found = different(commands, answers(through, commands), answers(direct, commands))
        assert not found, (len(found), found[:20])


@pytest.mark.parametrize("version", [2, 3], ids=["resp2", "resp3"])
def test_four_servers_answer_with_the_same_data(redis_server, proxima, version):
    beside = redis_server()
    commands = [*corpus.commands(beside), *corpus.split()]
    settings = config(redis_server.several(4))
    settings["pools"]["redis"]["hash"] = {"algorithm": "ketama", "tag": "{}"}
    with Connection(proxima(settings).address) as through, beside.connect() as direct:
        for connection in (through, direct):
            connection.ask("HELLO", version)
        found = different(commands, answers(through, commands), answers(direct, commands))
        assert not found, (len(found), found[:20])
