"""Measures mcrouter's door: what a handle costs those who use it and those who do not, and large
configurations.

`cost` starts one router for each configuration below, all at once, and measures them in lockstep, burst by
burst in turn. With `--old PROGRAM` another build of Proxima takes its turns with the same configurations.
Figures are microseconds of processor time for a request, and the ratio to the configuration that the row is
compared with; each is the median of the rounds, with least and greatest.

`large` tells how long a configuration of 1,000 pools and 10,000 servers takes to load, which macros write,
and how late replies are while it is read again, once a second, with other servers in each version.

Usage: .venv/bin/python bench/door.py cost|large [--rounds N, 5] [--old PROGRAM]
"""

import argparse
import contextlib
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from harness import ports
from harness.mcrouter import Router
from harness.servers import Memcached

PROGRAM = ROOT / "target/release/proxima"
BENCH = ROOT / "target/release/proxima-bench"
"""`cargo build --release -p proxima -p proxima-bench` makes both."""

SHAPE = {
    "clients": 100,
    "pipeline": 1,
    "value_size": 400,
    "key_size": 40,
    "keys": 100_000,
    "mix": "1:10",
    "protocol": "memcached",
    "keys_a_request": 1,
    "transaction": False,
    "servers": 4,
    "spread": "hash",
}
QUIET = ["--asynclog-disable", "--stats-logging-interval=0", "--server-timeout=60000"]


def failover(**rules):
    return {"type": "FailoverRoute", "children": ["PoolRoute|A", "PoolRoute|gutter"], **rules}


def shadowed(*share):
    shadow = {"target": "PoolRoute|shadow", "key_fraction_range": share}
    return {"type": "PoolRoute", "pool": "A", "shadows": [shadow]}


CASES = {
    # name: (route, arguments, spread, what it is compared with)
    "pool": ("PoolRoute|A", QUIET, "hash", None),
    "pool, log of deletes on": ("PoolRoute|A", QUIET[1:], "hash", "pool"),
    "pool, statistics written each 100 ms": (
        "PoolRoute|A",
        [QUIET[0], QUIET[2], "--stats-logging-interval=100"],
        "hash",
        "pool",
    ),
    "pool, a shadow of no key": (shadowed(0, 0), QUIET, "hash", "pool"),
    "pool, a shadow of 10 % of keys": (shadowed(0, 0.1), QUIET, "hash", "pool"),
    "all_sync": ("AllSyncRoute|Pool|A", QUIET, "all", None),
    "all_sync, log of deletes on": ("AllSyncRoute|Pool|A", QUIET[1:], "all", "all_sync"),
    "failover": (failover(), QUIET, "hash", None),
    "failover, a tag": (failover(failover_tag=True), QUIET, "hash", "failover"),
    "failover, a limit": (failover(failover_limit={"rate": 0.2}), QUIET, "hash", "failover"),
    "failover, leases paired": (
        failover(enable_lease_pairing=True, name="paired"),
        QUIET,
        "hash",
        "failover",
    ),
}


class Stand(contextlib.ExitStack):
    """The servers that are no part of the lockstep, and the routers."""

    def __init__(self, folder):
        super().__init__()
        self.folder = folder
        self.spare = Memcached()
        self.callback(self.spare.stop)

    def router(self, name, program, io):
        route, arguments, spread, _ = CASES[name]
        backends = [ports.free() for _ in range(SHAPE["servers"])]
        spare = {"servers": [self.spare.address]}
        pools = {
            "A": {"servers": [f"127.0.0.1:{port}" for port in backends]},
            "gutter": spare,
            "shadow": spare,
        }
        text = json.dumps({"pools": pools, "route": route})
        router = Router(text, self.folder, io, *arguments, program=(program, "mcrouter"))
        self.callback(router.stop)
        attach = {"pid": router.process.pid, "address": router.address, "backends": backends}
        return {"subject": {"attach": attach}, "shape": {**SHAPE, "spread": spread}}


def cost(rounds, old):
    programs = {"new": PROGRAM} | ({"old": old} if old else {})
    for io in ("io_uring", "epoll"):
        figures = {}
        for number in range(rounds):
            with tempfile.TemporaryDirectory() as folder, Stand(folder) as stand:
                # The other build may not know what a row compares.
                keys = [
                    (name, build)
                    for name in CASES
                    for build in programs
                    if build == "new" or not CASES[name][3]
                ]
                plan = pathlib.Path(folder) / "plan.json"
                plan.write_text(json.dumps([stand.router(name, programs[build], io) for name, build in keys]))
                report = pathlib.Path(folder) / "report.json"
                command = [BENCH, "lockstep", "--plan", plan, "--json", report]
                subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
                for key, said in zip(keys, json.loads(report.read_text()), strict=True):
                    figures.setdefault(key, []).append(said)
            print(f"{io}: round {number + 1} of {rounds}", file=sys.stderr, flush=True)
        tell(io, figures)


def tell(io, figures):
    print(f"\n{io}, {SHAPE['clients']} clients at once")
    for (name, build), reports in figures.items():
        base = CASES[name][3]
        micros = [micros_of(report) for report in reports]
        line = f"{name:<40}{build:<5}{spread(micros, 2)} us"
        if build == "old":
            line += f"   new: {spread(ratios(figures[name, 'new'], reports), 3)} x old"
        elif base:
            line += f"   {spread(ratios(reports, figures[base, build]), 3)} x {base}"
        print(line, flush=True)


def micros_of(report):
    assert not report["failure"], report["failure"]
    return report["figures"]["cpu_us"]["p10"]


def ratios(these, those):
    return [micros_of(one) / micros_of(other) for one, other in zip(these, those, strict=True)]


def spread(values, digits):
    middle = statistics.median(values)
    return f"{middle:.{digits}f} ({min(values):.{digits}f} to {max(values):.{digits}f})"


def large_text(version, server, pools=1000, servers=10):
    """A configuration that macros write; the first server of each pool is a real one."""

    def joined(*parts):
        return {"type": "macroDef", "params": ["n"], "result": {"type": "merge", "params": list(parts)}}

    numbers = f"@range(@int(0),@int({pools - 1}))"
    return json.dumps(
        {
            "macros": {
                "server": {
                    "type": "macroDef",
                    "params": ["pool", "n"],
                    "result": {
                        "type": "merge",
                        "params": [
                            "127.",
                            f"@str(@add(@int(%n%),@int({version % 100})))",
                            ".",
                            "@str(@div(@int(%pool%),@int(250)))",
                            ".",
                            "@str(@add(@int(1),@mod(@int(%pool%),@int(250))))",
                            ":11211",
                        ],
                    },
                },
                "pool": {
                    "type": "macroDef",
                    "params": ["pool"],
                    "result": {
                        "servers": {
                            "type": "merge",
                            "params": [
                                [server],
                                {
                                    "type": "transform",
                                    "dictionary": f"@range(@int(1),@int({servers - 1}))",
                                    "itemTransform": "@server(%pool%,%item%)",
                                },
                            ],
                        },
                        "weights": [1] + [0] * (servers - 1),
                    },
                },
                "name": joined("pool", "@str(%n%)"),
                "prefix": joined("p", "@str(%n%)", ":"),
                "policy": joined("PoolRoute|pool", "@str(%n%)"),
                "pools": {
                    "type": "constDef",
                    "result": {
                        "type": "process",
                        "initialValue": {},
                        "dictionary": numbers,
                        "transform": {
                            "type": "merge",
                            "params": ["%value%", {"@name(%item%)": "@pool(%item%)"}],
                        },
                    },
                },
            },
            "pools": "%pools%",
            "route": {
                "type": "PrefixSelectorRoute",
                "wildcard": "PoolRoute|pool0",
                "policies": {
                    "type": "process",
                    "initialValue": {},
                    "dictionary": numbers,
                    "transform": {
                        "type": "merge",
                        "params": ["%value%", {"@prefix(%item%)": "@policy(%item%)"}],
                    },
                },
            },
        }
    )


def large(seconds=20):
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        server = Memcached()
        stack.callback(server.stop)
        times = []
        for _ in range(5):
            file = pathlib.Path(folder) / "large.json"
            file.write_text(large_text(0, server.address))
            check = [PROGRAM, "mcrouter", "--validate-config", "--port=1", f"--config=file:{file}"]
            before = time.monotonic()
            subprocess.run(check, check=True)
            times.append(time.monotonic() - before)
        print(f"1,000 pools, 10,000 servers are read and checked in {spread(times, 2)} s", flush=True)
        for io in ("io_uring", "epoll"):
            before = time.monotonic()
            arguments = [*QUIET, "--reconfiguration-delay-ms=100"]
            router = Router(
                large_text(0, server.address), folder, io, *arguments, program=(PROGRAM, "mcrouter")
            )
            stack.callback(router.stop)
            print(f"{io}: serves after {time.monotonic() - before:.2f} s", flush=True)
            for changes in (False, True):
                changing = threading.Event()

                def change(changing=changing, router=router):
                    for version in range(1, 1000):
                        if changing.wait(1):
                            return
                        router.write(large_text(version, server.address))

                changer = threading.Thread(target=change)
                if changes:
                    changer.start()
                said = pathlib.Path(folder) / "load.json"
                command = [
                    BENCH,
                    "load",
                    "--address",
                    router.address,
                    "--rate",
                    "5000",
                    "--connections",
                    "50",
                ]
                command += ["--duration", f"{seconds}s", "--quiet", "--json", said]
                subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
                changing.set()
                if changes:
                    changer.join()
                latency = json.loads(said.read_text())["latency_us"]["all"]
                columns = "  ".join(
                    f"{name} {latency[name] / 1000:6.2f} ms" for name in ("p50", "p99", "p999", "max")
                )
                how = "a new version each second" if changes else "nothing changes"
                print(f"{io}, {how:<28}{columns}", flush=True)
            print(
                f"    {router.log().count('configuration in effect')} configurations took effect", flush=True
            )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["cost", "large"])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--old", type=pathlib.Path)
    options = parser.parse_args()
    if options.what == "cost":
        cost(options.rounds, options.old)
    else:
        large()


if __name__ == "__main__":
    main()
