"""The program without a configuration, as `make run` starts it, on its own ports in a network of its own."""

import contextlib
import socket

import pytest

from harness import until
from harness.netns import Network, forbidden
from harness.proxy import BINARY, Program
from harness.redis import Connection

MEMCACHED, REDIS = "127.0.0.1:11211", "127.0.0.1:6379"

pytestmark = pytest.mark.skipif(bool(forbidden()), reason=f"a network of its own is refused: {forbidden()}")


@pytest.fixture
def place():
    """A network in which no port is taken."""
    network = Network(1)
    yield network.places[0]
    network.remove()


@contextlib.contextmanager
def running(place, folder):
    program = Program(place.command(BINARY, "run"), folder, [MEMCACHED, REDIS])
    try:
        until(lambda: program.process.poll() is not None or program.connects(), "the program serves")
        until(lambda: "Stop with Ctrl-C" in program.log(), "the program says what to try")
        yield program
    finally:
        program.stop()


def test_a_start_without_a_configuration_serves_memcached_and_redis(place, tmp_path):
    with place.entered(), running(place, tmp_path) as program:
        client = program.raw()
        client.set("k", "memcached")
        with Connection(REDIS) as redis:
            assert redis.ask("SET", "k", "redis") == b"+OK\r\n"
            assert redis.ask("GET", "k") == b"$5\r\nredis\r\n"
        assert client.get("k") == b"memcached"
        for line in ("exec 3<>/dev/tcp/127.0.0.1/11211", "exec 3<>/dev/tcp/127.0.0.1/6379"):
            assert line in program.log()


def test_the_line_to_try_redis_does_what_it_says(place, tmp_path):
    with place.entered(), running(place, tmp_path) as program:
        [line] = [line for line in program.log().splitlines() if "SET hello" in line]
        sent = line.split("'")[1].encode().decode("unicode_escape").encode()
        with Connection(REDIS) as redis:
            redis.send(sent)
            assert redis.rest() == b"+OK\r\n$5\r\nworld\r\n+OK\r\n"


def test_a_taken_port_of_redis_is_told_and_memcached_is_served(place, tmp_path):
    with place.entered(), socket.create_server(("127.0.0.1", 6379)):
        with running(place, tmp_path) as program:
            assert "Redis is not served: cannot listen on 127.0.0.1:6379" in program.log()
            assert "/dev/tcp/127.0.0.1/6379" not in program.log()
            program.raw().set("k", "v")


def test_a_reload_keeps_redis(place, tmp_path):
    with place.entered(), running(place, tmp_path) as program:
        with Connection(REDIS) as redis:
            redis.ask("SET", "k", "v")
            program.signal(1)
            until(lambda: program.log().count("SIGHUP") == 1, "the signal has come")
            until(lambda: redis.ask("GET", "k") == b"$1\r\nv\r\n", "the reload is over")
            with Connection(REDIS) as another:
                assert another.ask("GET", "k") == b"$1\r\nv\r\n"
