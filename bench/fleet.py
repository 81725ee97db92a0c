"""Measures a fleet of three nodes: how long clients wait when a node is lost, and what a write costs.

Each node is in a network namespace of its own, so the script needs root. The lease and the other times are
the defaults. A client at every peer writes one key after the other, and another one reads a key that every
copy has. A stop is the longest time between two writes that were acknowledged, or two reads that were hits,
at one peer. A thread that does nothing but sleep tells how long the machine itself stood still; rounds in
which that was more than 100 ms are told apart.

With `long` faults happen in random order for so many minutes, while other clients race on the same keys and
judge what they read. It fails if a read was stale, or two copies differ at rest.

Usage: .venv/bin/python bench/fleet.py [ROUNDS, 5] [stops|costs, both]
       .venv/bin/python bench/fleet.py MINUTES long
"""

import contextlib
import functools
import json
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from harness import ports, until
from harness.fleet import Fleet
from harness.netns import Network
from harness.proxy import Proxy
from harness.racers import check_promise
from harness.raw import Closed
from harness.servers import Memcached

BENCH = ROOT / "target/release/proxima-bench"
"""`cargo build --release -p proxima-bench` makes it."""
TIMES = {"lease": "1s", "suspect": "300ms"}
STALL = 0.1


class Stall:
    """The longest time for which this process itself did not get to run."""

    def __init__(self):
        self.longest = 0.0
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self):
        while True:
            before = time.monotonic()
            time.sleep(0.005)
            self.longest = max(self.longest, time.monotonic() - before - 0.005)


class Client:
    """Asks one thing at one peer again and again; `gap`: the longest time without a good answer."""

    def __init__(self, node, request, is_good):
        self.node, self.request, self.is_good = node, request, is_good
        self.gap, self.last, self.over = 0.0, time.monotonic(), False
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self):
        while not self.over:
            try:
                with self.node.raw() as raw:
                    raw.sock.settimeout(5)
                    number = 0
                    while not self.over:
                        number += 1
                        good = self.is_good(raw, self.request(number))
                        now = time.monotonic()
                        if good:
                            self.gap = max(self.gap, now - self.last)
                            self.last = now
                        time.sleep(0.001)
            except (OSError, Closed, AssertionError):
                # An error in the place of an answer is none.
                time.sleep(0.005)

    def stop(self):
        """The longest gap, the one that goes on included."""
        self.over = True
        self.gap = max(self.gap, time.monotonic() - self.last)
        self.thread.join(10)
        return self.gap


def writer(node):
    def request(number):
        return f"set {node.name}.{number % 100} 0 0 1\r\n1\r\n".encode()

    return Client(node, request, lambda raw, asked: raw.ask(asked) == b"STORED\r\n")


def reader(node):
    return Client(node, lambda _: "kept", lambda raw, key: raw.get(key) == b"1")


def leader_of(nodes):
    return next(node for node in nodes if node.status()["is_leader"])


def followers_of(nodes):
    leader = leader_of(nodes)
    return [node for node in nodes if node is not leader]


class Fault:
    """A fault of one node: how it begins, and how it ends."""

    def __init__(self, begin, end, of_leader=False):
        self.begin, self.end, self.of_leader = begin, end, of_leader


def restart(node):
    node.stop_softly()
    node.start()


FAULTS = {
    "a follower's proxy is frozen for 3 s": Fault(lambda node: node.freeze(), lambda node: node.thaw()),
    "a follower's server is frozen for 3 s": Fault(
        lambda node: node.server.freeze(), lambda node: node.server.thaw()
    ),
    "a follower's cable is pulled for 3 s": Fault(
        lambda node: node.place.plug("down"), lambda node: node.place.plug("up")
    ),
    "a follower's proxy is restarted (SIGTERM)": Fault(restart, lambda _: None),
    "the leader's proxy is frozen for 3 s": Fault(lambda node: node.freeze(), lambda node: node.thaw(), True),
    "the leader's cable is pulled for 3 s": Fault(
        lambda node: node.place.plug("down"), lambda node: node.place.plug("up"), True
    ),
    "the leader's proxy is killed": Fault(
        lambda node: (node.proxy.process.kill(), node.proxy.wait()), lambda node: node.start(), True
    ),
}


@contextlib.contextmanager
def fleet():
    """Three nodes in namespaces."""
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as cleanup:
        folder = pathlib.Path(folder)
        folder.chmod(0o777)
        network = Network(3)
        cleanup.callback(network.remove)
        times = {"fleet": {**TIMES, "tls": "none"}}
        nodes = Fleet(3, "auto", folder, cleanup, places=network.places, **times)
        nodes.before = network.switch.command()
        yield nodes


def stops(name, fault):
    """The longest stops of writes and reads at the peers that are not at fault, and of the machine itself."""
    with fleet() as nodes:
        with nodes[0].raw() as client:
            client.set("kept", "1")
        node = leader_of(nodes) if fault.of_leader else followers_of(nodes)[0]
        rest = [other for other in nodes if other is not node]
        stall = Stall()
        writers, readers = [writer(one) for one in rest], [reader(one) for one in rest]
        own_reader = reader(node)
        time.sleep(0.5)
        begun = time.monotonic()
        fault.begin(node)
        time.sleep(3)
        answered = own_reader.last - begun
        fault.end(node)
        back = time.monotonic()
        nodes.until_settled()
        back = time.monotonic() - back
        result = {
            "writes stop": max(one.stop() for one in writers),
            "reads at others": max(one.stop() for one in readers),
            "host": stall.longest,
        }
        own_reader.stop()
        if "cable" in name:
            result["hits when cut off"] = answered
        return result


def to_own_reads():
    """Time from the start of a proxy that had said goodbye until it reads its own copy."""
    with fleet() as nodes:
        with nodes[0].raw() as client:
            client.set("kept", "1")
        node = followers_of(nodes)[0]
        stall = Stall()
        node.stop_softly()
        begun = time.monotonic()
        node.start()
        until(node.reads_own_copy, "it reads its own copy")
        return {"to its own reads": time.monotonic() - begun, "host": stall.longest}


def cpu(process):
    """Processor time of a process, in seconds."""
    tasks = pathlib.Path(f"/proc/{process.pid}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9


def load(address, connections, pipeline, seconds):
    command = [BENCH, "load", "--address", address, "-c", connections, "-P", pipeline, "--mix", "1:0", "-q"]
    command += ["-d", 100, "--duration", f"{seconds}s", "--json", "-"]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


@contextlib.contextmanager
def local(with_fleet):
    """Three nodes on the loopback interface, or one proxy that writes to three copies alone."""
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as cleanup:
        folder = pathlib.Path(folder)
        folder.chmod(0o777)
        if with_fleet:
            yield Fleet(3, "auto", folder, cleanup, workers=1, fleet=TIMES)
            return
        servers = []
        for number in range(3):
            server = Memcached(socket=str(folder / f"{number}.sock"))
            cleanup.callback(server.stop)
            servers.append(server.address)
        pools = {"cache": {"servers": servers, "replicated": True}}
        listeners = [{"address": ports.address(), "route": "cache"}]
        config = {"workers": 1, "listeners": listeners, "pools": pools, "admin": ports.address()}
        proxy = Proxy(config, "auto", folder)
        cleanup.callback(proxy.stop)
        yield [proxy.wait_ready()]


def spread(values):
    low, middle, high = min(values), statistics.median(values), max(values)
    return f"{middle:.3g} ({low:.3g} to {high:.3g})"


def row(name, results):
    calm = [result for result in results if result["host"] <= STALL]
    for what in results[0]:
        if what == "host":
            continue
        values = [result[what] * 1000 for result in calm]
        stalled = [round(result[what] * 1000) for result in results if result not in calm]
        apart = f"; the machine stood still in {len(stalled)} more: {stalled}" if stalled else ""
        print(
            f"{name}: {what}, ms: {spread(values) if values else '-'} in {len(values)} rounds{apart}",
            flush=True,
        )


def measure_stops(rounds):
    for name, fault in FAULTS.items():
        row(name, [stops(name, fault) for _ in range(rounds)])
    row("a proxy is restarted (SIGTERM)", [to_own_reads() for _ in range(rounds)])


def measure_costs(rounds):
    latencies = {True: [], False: []}
    kept = []
    with local(True) as nodes, local(False) as alone:
        for _ in range(rounds):
            for with_fleet, proxies in ((True, nodes), (False, alone)):
                report = load(proxies[0].address, 1, 1, 3)
                latencies[with_fleet].append(report["latency_us"]["sets"]["p50"])
            before = cpu(nodes[1].proxy.process)
            report = load(nodes[0].address, 1, 64, 3)
            kept.append((cpu(nodes[1].proxy.process) - before) / report["stored"] * 1e6)
    print(
        f"one client's set, p50, µs: fleet of three {spread(latencies[True])}, "
        f"three copies of one proxy {spread(latencies[False])}"
    )
    print(f"a keeper's processor time for each change, of 64 in a frame, µs: {spread(kept)}")


LONG = 2.0
"""A longer stop is told with what the peers say of it."""


def happens(nodes, name, worst):
    """A fault of a random node, or of the leader. The stops of writes at the others go to `worst`."""
    fault = FAULTS[name]
    node = leader_of(nodes) if fault.of_leader else random.choice(list(nodes))
    rest = [other for other in nodes if other is not node]
    stall = Stall()
    writers = [writer(one) for one in rest]
    time.sleep(0.2)
    fault.begin(node)
    time.sleep(3)
    fault.end(node)
    nodes.until_settled()
    stop = max(one.stop() for one in writers)
    worst.append((stop, stall.longest))
    if stop > LONG:
        stops = f"writes stopped {stop * 1000:.0f} ms, the machine {stall.longest * 1000:.0f} ms"
        print(f"{name} ({node.name}): {stops}")
        for one in nodes:
            print(f"--- {one.name}\n{one.proxy.log()[-4000:]}", flush=True)


def measure_long(minutes):
    seed = random.randrange(1 << 32)
    random.seed(seed)
    print(f"seed {seed}", flush=True)
    end = time.monotonic() + minutes * 60
    faults, worst = [], []
    writes = reads = 0
    while time.monotonic() < end:
        names = random.choices(list(FAULTS), k=5)
        with fleet() as nodes, contextlib.ExitStack() as cleanup, tempfile.TemporaryDirectory() as folder:
            asked = [functools.partial(happens, nodes, name, worst) for name in names]
            try:
                report = check_promise(nodes, folder, cleanup, asked, before=nodes.before)
            except AssertionError:
                print(names)
                for node in nodes:
                    print(f"--- {node.name}: {node.status()}\n{node.proxy.log()[-6000:]}", flush=True)
                raise
        faults += names
        writes += report["acknowledged_writes"]
        reads += report["hits"]
        calm = [stop for stop, stall in worst if stall <= STALL]
        judged = f"{len(faults)} faults, {writes} judged writes, {reads} judged reads, none stale"
        ran = f"{max(calm, default=0) * 1000:.0f} ms at most in {len(calm)} faults while the machine ran"
        longest = max(stop for stop, _ in worst) * 1000
        print(f"{judged}; writes stopped {ran}, {longest:.0f} ms in all", flush=True)


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    what = sys.argv[2:] or ["stops", "costs"]
    if what == ["long"]:
        return measure_long(rounds)
    print("Median (least to greatest) of the rounds.\n", flush=True)
    if "stops" in what:
        measure_stops(rounds)
    if "costs" in what:
        measure_costs(rounds)


if __name__ == "__main__":
    main()
