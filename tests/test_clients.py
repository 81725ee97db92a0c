"""Client libraries and tools work through the proxy as they do on memcached itself."""

import re
import subprocess

import memcache
import pytest
from pymemcache.client.base import Client, PooledClient
from pymemcache.client.hash import HashClient
from pymemcache.exceptions import MemcacheClientError, MemcacheError

from harness.near_cache import near
from harness.proxy import config

pytestmark = pytest.mark.either_io


@pytest.fixture(params=["pool of four", "near cache", "embedded store"])
def address(request, memcached, proxima, embedded):
    """The address at which the proxy serves."""
    if request.param == "embedded store":
        return embedded().address
    route = "cache"
    if request.param == "near cache":
        route = near("cache", negative="60s")
    return proxima(config(route, {"cache": [server.address for server in memcached.several(4)]})).address


def split(address):
    host, port = address.rsplit(":", 1)
    return host, int(port)


def pymemcache_session(address):
    """Uses pymemcache as a program does, and returns every answer."""
    client = Client(split(address), timeout=60, default_noreply=False)
    keys = {f"k{number}": f"value {number}".encode() for number in range(50)}
    seen = [
        client.set("k", "v", expire=100, flags=3),
        client.get("k"),
        client.get("absent", "default"),
        client.add("k", "w"),
        client.add("new", "w"),
        client.replace("k", "x"),
        client.append("k", "y"),
        client.prepend("k", "w"),
        client.get("k"),
        client.set_many(keys),
        client.get_many([*keys, "absent"]) == keys,
        client.delete_many(list(keys)),
        client.get_many(list(keys)),
        client.set("n", "5"),
        client.incr("n", 3),
        client.decr("n", 100),
        client.incr("absent", 1),
        client.touch("n", 100),
        client.touch("absent", 100),
        client.delete("n"),
        client.delete("n"),
        client.set("empty", b""),
        client.get("empty"),
        client.set("binary", bytes(range(256)) * 1000),
        client.get("binary") == bytes(range(256)) * 1000,
    ]
    value, ticket = client.gets("k")
    seen += [
        value,
        client.cas("k", "changed", ticket),
        client.cas("k", "again", ticket),
        client.cas("absent", "v", b"1"),
        client.gets_many(["k"])["k"][0],
        client.set("quiet", "v", noreply=True),
        client.get("quiet"),
        client.delete("quiet", noreply=True),
        client.get("quiet"),
    ]
    for wrong in (lambda: client.set("n", "text") and client.incr("n", 1), lambda: client.get("k" * 251)):
        with pytest.raises(MemcacheClientError) as error:
            wrong()
        seen.append(str(error.value))
    with pytest.raises(MemcacheError) as error:
        client.set("big", b"b" * ((64 << 20) + 1))
    seen += [type(error.value), client.flush_all(), client.get("k")]
    client.quit()
    return seen


def test_pymemcache_gets_the_answers_of_memcached(memcached, address):
    assert pymemcache_session(address) == pymemcache_session(memcached().address)


def test_pymemcaches_pooled_and_hashing_clients_work(address):
    for client in (PooledClient(split(address), max_pool_size=4), HashClient([split(address)])):
        assert client.set("k", b"v", noreply=False)
        assert client.get("k") == b"v"
        assert client.get_many(["k", "absent"]) == {"k": b"v"}
        client.close()


def python_memcached_session(address):
    """Does the same with python-memcached, which stores types."""
    client = memcache.Client([address], socket_timeout=60, cache_cas=True)
    seen = [
        client.set("k", "v", time=100),
        client.get("k"),
        client.get("absent"),
        client.set("number", 42),
        client.get("number"),
        client.incr("number", 8),
        client.decr("number", 1),
        client.set("object", {"a": [1, 2, None]}),
        client.get("object"),
        client.set("compressed", "z" * 100_000, min_compress_len=1000),
        client.get("compressed") == "z" * 100_000,
        client.set_multi({"a": 1, "b": "two"}, key_prefix="p:"),
        client.get_multi(["a", "b", "c"], key_prefix="p:"),
        client.delete_multi(["a", "b"], key_prefix="p:"),
        client.get_multi(["a", "b"], key_prefix="p:"),
        client.add("k", "no"),
        client.replace("k", "yes"),
        client.append("k", "!"),
        client.prepend("k", "?"),
        client.gets("k"),
        client.cas("k", "changed"),
        client.cas("k", "again"),
        client.touch("k", 100),
        client.delete("k"),
        client.get("k"),
        client.flush_all(),
        client.get("number"),
    ]
    client.disconnect_all()
    return seen


def test_python_memcached_gets_the_answers_of_memcached(memcached, address):
    assert python_memcached_session(address) == python_memcached_session(memcached().address)


def tool(name, *arguments, folder=None):
    """Exit code and output of one of libmemcached's tools."""
    done = subprocess.run([name, *arguments], capture_output=True, timeout=60, cwd=folder)
    return done.returncode, done.stdout + done.stderr


def memccapable(address):
    """The names of memccapable's ASCII tests that passed. The tool prints them on stdout, and failures on
    stderr."""
    host, port = split(address)
    _, text = tool("memccapable", "-h", host, "-p", str(port), "-a")
    return re.findall(r"(ascii \w+(?: \w+)?) +\[pass\]", text.decode())


def test_memccapable_passes_the_tests_that_it_passes_on_memcached(memcached, address):
    expected = memccapable(memcached().address)
    assert len(expected) > 20
    assert memccapable(address) == expected


def test_memccp_and_memccat_carry_files_unchanged(memcached, address, tmp_path):
    contents = {
        "empty": b"",
        "text": b"line\r\nEND\r\n",
        "binary": bytes(range(256)) * 100,
        "big": b"b" * 900_000,
    }
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)

    def session(address):
        seen = [tool("memccp", f"--servers={address}", *contents, folder=tmp_path)]
        for name in [*contents, "absent"]:
            copy = tmp_path / "copy"
            copy.unlink(missing_ok=True)
            code, text = tool("memccat", f"--servers={address}", f"--file={copy}", name)
            seen.append((code, text, copy.read_bytes() if copy.exists() else None))
        seen.append(tool("memcrm", f"--servers={address}", "text"))
        seen.append(tool("memcexist", f"--servers={address}", "text"))
        seen.append(tool("memcexist", f"--servers={address}", "binary"))
        return seen

    seen = session(address)
    assert [copy for _, _, copy in seen[1:5]] == list(contents.values())
    assert seen == session(memcached().address)
