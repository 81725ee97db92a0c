"""Fixtures: the reactor back end, and everything that a test starts and that ends with it."""

import collections
import contextlib
import fcntl
import functools
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import time
import zlib

import pytest

from harness import galera_door, helm, image, number, ports, split
from harness.api_server import ApiServer
from harness.browser import Browser
from harness.fleet import Fleet, Node
from harness.galera import Cluster, why_not
from harness.galera_verdict import Figures
from harness.lab import requirements
from harness.lab.cluster import Cluster as Lab
from harness.lab.control_plane import PROGRAM, ControlPlane
from harness.lab.galera import Galera
from harness.lab.galera_proxies import Proxies
from harness.lab.images import OPERATOR
from harness.lab.mcrouter_chart import McrouterChart
from harness.lab.release import Release
from harness.lab.smart_update import SmartUpdate
from harness.mcrouter import Router, written
from harness.members import HOSTS
from harness.mysql import Database, databases
from harness.netns import Network, forbidden
from harness.nutcracker import Door, Twemproxy
from harness.proxy import BINARY, Program, Proxy, environment
from harness.redis import REDIS, Redis
from harness.servers import Memcached, Scripted
from harness.slices import Namespace

pytest_plugins = ["harness.second_look"]

BACK_ENDS = ["epoll", "io_uring"]


@pytest.fixture(scope="session", params=BACK_ENDS)
def io(request):
    """The back end. A test that starts a proxy runs on both of them, unless it is marked `either_io`."""
    if request.param == "io_uring":
        reason = _io_uring_forbidden()
        if reason:
            pytest.skip(f"this kernel does not allow io_uring: {reason}")
    return request.param


def pytest_addoption(parser):
    parser.addoption(
        "--every-back-end", action="store_true", help="run tests marked either_io on both back ends, too"
    )


def pytest_collection_modifyitems(config, items):
    """A test marked `either_io` runs on one back end, which alternates among its parameters. A second look
    has only some of them, on the back ends on which they have failed. The lab's tests are the last ones, so
    that it loads the machine for no other."""
    items.sort(key=lambda item: "lab" in item.fixturenames)
    if config.getoption("every_back_end") or config.getoption("second_look"):
        return
    seen = {}
    kept, left_out = [], []
    for item in items:
        parameters = dict(item.callspec.params) if hasattr(item, "callspec") else {}
        back_end = parameters.pop("io", None)
        if back_end is None or not item.get_closest_marker("either_io"):
            kept.append(item)
            continue
        test = item.nodeid.partition("[")[0]
        variants = seen.setdefault(test, [])
        if (variant := repr(parameters)) not in variants:
            variants.append(variant)
        # The hash chooses the back end of the first parameter, the same in every process and every run.
        turn = zlib.crc32(test.encode()) + variants.index(variant)
        (kept if back_end == BACK_ENDS[turn % 2] else left_out).append(item)
    config.hook.pytest_deselected(items=left_out)
    items[:] = kept


def _io_uring_forbidden():
    """The reason why the kernel does not allow io_uring, or None. It says nothing about the proxy's own
    faults."""
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    parameters = ctypes.create_string_buffer(120)
    io_uring_setup = 425
    descriptor = libc.syscall(io_uring_setup, 8, parameters)
    if descriptor < 0:
        return os.strerror(ctypes.get_errno())
    os.close(descriptor)
    return None


@pytest.fixture
def cleanup():
    """Ends what a test has started, last first. A proxy that ended by itself or panicked fails the test."""
    with contextlib.ExitStack() as stack:
        yield stack


@pytest.fixture
def folder():
    """A folder that servers of another user may use."""
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder).chmod(0o777)
        yield pathlib.Path(folder)


@pytest.fixture
def fixed_ports(cleanup):
    """A context in which ports that are written in a file or a script are nobody else's: a network of its own
    or, where none may be made, this machine's while no other test has it."""
    if not forbidden():
        network = Network(1)
        cleanup.callback(network.remove)
        return network.places[0].entered()
    lock = cleanup.enter_context((pathlib.Path(tempfile.gettempdir()) / "proxima-fixed-ports").open("w"))
    fcntl.flock(lock, fcntl.LOCK_EX)
    return contextlib.nullcontext()


@pytest.fixture
def memcached(cleanup):
    """Starts one real memcached. `memcached.several(n)` starts a list of them, `memcached.on(hosts)` one on
    each host, all on one port."""

    def start(**options):
        server = Memcached(**options)
        cleanup.callback(server.stop)
        return server

    def on(hosts):
        port = ports.free_on(hosts)
        return [start(host=host, port=port) for host in hosts]

    start.several = lambda count, **options: [start(**options) for _ in range(count)]
    start.on = on
    return start


@pytest.fixture
def redis_server(cleanup):
    """Starts one real redis-server. `redis_server.several(n)` starts a list of them."""
    if not shutil.which(REDIS):
        pytest.skip("redis-server is missing: scripts/prepare.sh installs it")

    def start(**options):
        server = Redis(**options)
        cleanup.callback(server.stop)
        return server

    start.several = lambda count, **options: [start(**options) for _ in range(count)]
    return start


@pytest.fixture
def api(tmp_path, cleanup):
    """An API server of Kubernetes that lies when it is told to."""
    server = ApiServer(tmp_path)
    cleanup.callback(server.stop)
    return server


@pytest.fixture(scope="session")
def lab():
    """A Kubernetes cluster of two nodes, which all tests share that take it. They are marked `alone`, as one
    process has it."""
    if reason := requirements.why_not():
        pytest.skip(reason)
    cluster = Lab()
    yield cluster
    cluster.stop()


@pytest.fixture
def mcrouter_chart(lab):
    """The mcrouter chart, on no node yet."""
    if reason := image.why_not():
        pytest.skip(reason)
    try:
        made = McrouterChart(lab)
    except image.Unavailable as error:
        pytest.skip(str(error))
    yield made
    made.remove()


@pytest.fixture(scope="session")
def release(lab):
    """The chart in the lab, which all tests share that take it. Each of them leaves it coherent."""
    if not helm.PROGRAM.exists():
        pytest.skip("scripts/helm.sh has not built helm")
    made = Release(lab)
    begun = time.monotonic()
    made.install()
    made.wait_until_coherent()
    print(f"helm install → every node reads what another one wrote: {time.monotonic() - begun:.1f} s")
    return made


@pytest.fixture(scope="session")
def galera_pods(lab):
    """A Galera cluster of pods in the lab, which all tests share that take it. Each of them leaves all pods
    ready."""
    if reason := why_not():
        pytest.skip(reason)
    return Galera(lab)


@pytest.fixture(scope="session")
def galera_proxies(lab, galera_pods):
    """Two proxies before it, by the chart."""
    if not helm.PROGRAM.exists():
        pytest.skip("scripts/helm.sh has not built helm")
    return Proxies(lab)


@pytest.fixture(scope="session")
def smart_update(lab, galera_proxies):
    """The operator, which rolls it."""
    if not OPERATOR.exists():
        pytest.skip("there is no operator: `make -C operator build` makes it")
    return SmartUpdate(lab, galera_proxies)


@pytest.fixture(scope="session")
def plane(tmp_path_factory):
    """A real API server of Kubernetes with its store and nothing behind it, which all tests of a process
    share."""
    if not PROGRAM.exists():
        pytest.skip("scripts/control-plane.sh has not built an API server")
    made = ControlPlane(tmp_path_factory.mktemp("control-plane"))
    yield made
    made.stop()


@pytest.fixture
def namespace(plane, tmp_path):
    """A namespace of its own at the API server."""
    return Namespace(plane, tmp_path, f"cache-{number()}-{os.getpid()}")


@pytest.fixture(scope="session")
def browser():
    """A headless browser with one page, which all tests of a process share."""
    started = Browser()
    yield started
    started.stop()


@pytest.fixture(scope="session")
def mariadb():
    """A real MariaDB, which all tests of a process share. A test that needs tables makes them anew."""
    try:
        kind = databases.installed()
    except databases.Unavailable as error:
        pytest.skip(str(error))
    server = Database(kind)
    yield server
    server.stop()


@pytest.fixture(scope="session")
def mysql_pair():
    """Two MariaDBs that know nothing of each other, which all tests of a process share. They have the users
    of `harness.split`; a test makes a schema of its own."""
    try:
        kind = databases.installed()
    except databases.Unavailable as error:
        pytest.skip(str(error))
    with contextlib.ExitStack() as stack:
        pair = []
        for _ in range(2):
            pair.append(Database(kind, ["--max-allowed-packet=64M"]))
            stack.callback(pair[-1].stop)
            split.prepare(pair[-1])
        yield pair


@pytest.fixture(scope="module")
def splitting(io, mysql_pair, tmp_path_factory):
    """A proxy over the two servers of `mysql_pair`, which all tests of a file share."""
    folder = tmp_path_factory.mktemp("split")
    proxy = Proxy(split.made(folder, *mysql_pair, split.Split.LISTENERS), io, folder)
    yield split.Split(proxy, *mysql_pair)
    proxy.stop()


@pytest.fixture(scope="module")
def twins(io, mysql_pair, tmp_path_factory):
    """A proxy over the first server of `mysql_pair`, of which reads and all else are at connections of their
    own, beside the second server. One worker has all sessions, which share as few connections as can be."""
    folder = tmp_path_factory.mktemp("twins")
    first, second = mysql_pair
    proxy = Proxy(split.made(folder, first, first, workers=1), io, folder)
    yield split.Beside(proxy, first, second)
    proxy.stop()


def _other_database(name):
    if not databases.is_here(name):
        pytest.skip(f"{name} was not fetched: scripts/prepare.sh does so, and says why it could not")
    server = Database(databases.other(name))
    yield server
    server.stop()


@pytest.fixture(scope="session")
def mariadb118():
    """A MariaDB 11.8, as `mariadb`."""
    yield from _other_database("mariadb118")


@pytest.fixture(scope="session")
def mysql97():
    """A MySQL 9.7, as `mariadb`."""
    yield from _other_database("mysql97")


@pytest.fixture(scope="session")
def galera_cluster(tmp_path_factory):
    """A Galera cluster of three servers, which all processes of this run share. A test takes `galera` or
    `galera_alone`."""
    reason = why_not()
    if reason:
        pytest.skip(reason)
    folder = tmp_path_factory.getbasetemp()
    # Each process of a parallel run has a folder below the one of the run.
    cluster = Cluster(folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder)
    yield cluster
    cluster.leave()


@pytest.fixture
def galera(galera_cluster):
    """The cluster, beside other tests, with a schema and a user of this test: `galera.account`."""
    with galera_cluster.used() as cluster:
        yield cluster


@pytest.fixture
def galera_alone(galera_cluster):
    """The same, while no other test has the cluster. What the test breaks is repaired behind it."""
    with galera_cluster.used(alone=True) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def all_figures():
    """What clients saw of faults, by the module of the tests. One module may run in several parts."""
    seen = collections.defaultdict(Figures)
    yield seen
    for module, each in seen.items():
        each.write(module)


@pytest.fixture
def figures(all_figures, request):
    """What clients saw of the faults of this module."""
    return all_figures[request.path.stem.removeprefix("test_mysql_")]


@pytest.fixture
def before(proxima, tmp_path):
    """Starts a proxy before a cluster."""
    return functools.partial(galera_door.begin, proxima, tmp_path)


@pytest.fixture(params=[1, 4], ids=["one-thread", "four-threads"])
def servers(request, memcached):
    """Three memcacheds, the first of which is read. They have one thread each, and then four."""
    return memcached.several(3, threads=request.param)


@pytest.fixture
def nodes(memcached):
    """A memcached on each host, all on one port, as the pods of a Service are."""
    return memcached.on(HOSTS)


@pytest.fixture
def scripted(cleanup):
    """Starts a server that answers as a function decides."""

    def start(talk, **options):
        server = Scripted(talk, **options)
        cleanup.callback(server.stop)
        return server

    return start


@pytest.fixture
def proxima(cleanup, io, tmp_path):
    """Starts the proxy with a configuration."""

    def start(config, *arguments, before=()):
        proxy = Proxy(config, io, tmp_path, arguments, before)
        cleanup.callback(proxy.stop)
        return proxy

    return start


@pytest.fixture
def embedded(cleanup, io, tmp_path):
    """Starts the proxy without a configuration, as a new user does. It serves the embedded store."""

    def start(*arguments):
        address, admin = ports.address(), ports.address()
        command = [BINARY, "run", "--listen", address, "--admin", admin, "--io", io, *arguments]
        program = Program(command, tmp_path, [address], admin)
        cleanup.callback(program.stop)
        return program.wait_ready()

    return start


@pytest.fixture
def node(folder, io, cleanup):
    """Starts a node of a fleet that does not wait for others. Its folder outlives it."""

    def start(name, peers, listen, within=folder, **keys):
        one = Node(name, io, within, peers, listen, **keys)
        cleanup.callback(one.stop)
        return one

    return start


@pytest.fixture
def fleet(folder, io, cleanup):
    """Starts a fleet of so many nodes, and waits until they have found each other."""

    def start(count=3, **keys):
        return Fleet(count, io, folder, cleanup, **keys)

    return start


@pytest.fixture
def command():
    """Runs the program to its end."""

    def run(*arguments, name=BINARY):
        return subprocess.run(
            [name, *arguments], capture_output=True, text=True, timeout=60, env=environment()
        )

    return run


@pytest.fixture
def mcrouter(cleanup, io, tmp_path):
    """Starts a router over this route and the pool `A` of these servers."""

    def start(route, servers=(), *arguments, **pools):
        pools = {"A": {"servers": [server.address for server in servers]}, **pools}
        router = Router(json.dumps({"pools": pools, "route": route}), tmp_path, io, *arguments)
        cleanup.callback(router.stop)
        return router

    return start


@pytest.fixture
def routed(cleanup, io, tmp_path):
    """Starts mcrouter's front door with this route over these pools (`harness.mcrouter.written`). Servers
    have much time, as on a busy machine they need it, unless `arguments` say otherwise."""

    def start(route, pools=None, *arguments, **more):
        patient = "--server-timeout=20000"
        router = Router(written(route, pools, **more), tmp_path, io, patient, *arguments)
        cleanup.callback(router.stop)
        return router

    return start


@pytest.fixture
def door(cleanup, io, tmp_path):
    """Starts twemproxy's front door with these pools."""

    def start(pools, *arguments, **options):
        proxy = Door(pools, tmp_path, io, *arguments, **options)
        cleanup.callback(proxy.stop)
        return proxy

    return start


@pytest.fixture
def router(cleanup, io, tmp_path):
    """Starts mcrouter's door with this configuration: an object, or a text. Servers have 20 s to answer, as
    the machine may be busy, unless the arguments say otherwise."""

    def start(config, *arguments):
        text = config if isinstance(config, str) else json.dumps(config)
        started = Router(text, tmp_path, io, "--server-timeout=20000", *arguments)
        cleanup.callback(started.stop)
        return started

    return start


@pytest.fixture
def twemproxy(cleanup, tmp_path):
    """Starts the real `nutcracker` with these pools."""

    def start(pools, *arguments):
        proxy = Twemproxy(pools, tmp_path, *arguments)
        cleanup.callback(proxy.stop)
        return proxy

    return start


@pytest.fixture
def both(door, twemproxy):
    """Starts the real `nutcracker` and ours, with the same pools on ports of their own."""

    def start(pools, **options):
        def own():
            return {name: {"listen": ports.address(), **keys} for name, keys in pools.items()}

        return twemproxy(own()), door(own(), **options)

    return start
