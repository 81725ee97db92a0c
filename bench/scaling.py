"""Measures reads of a Galera cluster that are shared out over two readers, beside steady writes at the
writer: at one server alone, through HAProxy's two addresses, and through Proxima by each word.

More and more connections read, as fast as they can, and keep their connections or make one for each read. All
ways take turns in each round. Servers, proxies and clients share this machine, so that processor time for a
read tells more than the rate (`three_servers.py` says what runs where). The script needs HAProxy as well.

Usage: .venv/bin/python bench/scaling.py [ROUNDS, 5] [WRITES a second, 300]
"""

import contextlib
import json
import statistics
import subprocess
import sys
from typing import NamedTuple

from three_servers import WORDS, ThreeServers, print_table, processor, spread

from harness import ports, until
from harness.balancer import HAPROXY
from harness.judge import BENCH
from harness.proxy import environment

CONNECTIONS = (4, 16, 64)
"""Connections that read at once, and are kept."""
RECONNECTING = 16
"""Clients that read at once, each time on a new connection."""
SECONDS = 2


class Way(NamedTuple):
    """The addresses of a way to the cluster, and the process between, if there is one."""

    reads: str
    writes: str
    pid: int | None


def haproxy(stack, folder, writer, readers):
    """HAProxy with an address for writes and one for reads, as is usual before such a cluster."""
    way = ports.address(), ports.address()
    file = folder / "haproxy.cfg"
    lists = [f"listen writes\n    bind {way[1]}\n    server one {writer}\n"]
    lists += [f"listen reads\n    bind {way[0]}\n    balance roundrobin\n"]
    lists += [f"    server reader{number} {reader}\n" for number, reader in enumerate(readers)]
    times = "timeout connect 5s\n    timeout client 1h\n    timeout server 1h\n"
    head = f"global\n    nbthread 1\ndefaults\n    mode tcp\n    {times}"
    file.write_text(head + "".join(lists))
    process = subprocess.Popen([HAPROXY, "-db", "-f", str(file)], stderr=subprocess.DEVNULL)
    stack.callback(process.wait)
    stack.callback(process.kill)
    return Way(*way, process.pid)


def command(address, mix, connections, *more):
    words = [BENCH, "load", "--protocol", "mysql", "--address", address, "--quiet", "--json", "-"]
    words += ["--mix", mix, "--connections", str(connections), "--keys", "1000", "--value-size", "100"]
    return [*words, *more]


def load(*words):
    ran = subprocess.run(command(*words), capture_output=True, text=True, env=environment(), check=True)
    return json.loads(ran.stdout)


def measure(way, pids, rate, connections, *more):
    """Reads as fast as they come, beside writes at this rate."""
    steady = command(way.writes, "1:0", 4, "--rate", rate, "--duration", f"{SECONDS}s")
    writing = subprocess.Popen(steady, stdout=subprocess.PIPE, text=True, env=environment())
    proxies = [way.pid] if way.pid else []
    before = processor(pids), processor(proxies)
    read = load(way.reads, "0:1", connections, "--duration", f"{SECONDS}s", *more)
    took = processor(pids) - before[0], processor(proxies) - before[1]
    written = json.loads(writing.communicate()[0])
    for said in (read, written):
        assert not any(said[name] for name in ("refused", "wrong", "lost", "failed_connects")), said
    latency = read["latency_us"]["all"]
    return {
        "reads a second": read["ops_per_second"],
        "servers' CPU, us a read": took[0] / read["replies"] * 1e6,
        "proxy's CPU, us a read": took[1] / read["replies"] * 1e6,
        "read p50, us": latency["p50"],
        "read p99, us": latency["p99"],
        "writes a second": written["ops_per_second"],
        "write p99, us": written["latency_us"]["all"]["p99"],
    }


def report(title, found):
    """Prints the table of one number of connections. `found` has the rounds of each way."""
    print(f"\n{title}")
    names = list(next(iter(found.values()))[0])
    lines = [("", *names)]
    for way, rounds in found.items():
        lines.append((way, *(spread([one[name] for one in rounds], 0) for name in names)))
    print_table(lines)
    first = next(iter(found))
    for way, rounds in list(found.items())[1:]:
        pairs = zip(rounds, found[first])
        times = statistics.median(one["reads a second"] / other["reads a second"] for one, other in pairs)
        print(f"{way}: {times:.2f} times the reads of {first}")


def ways(stack, three):
    """All ways by name, the first of which the others are compared with."""
    nodes, name = three.cluster.nodes, three.door.writer()
    [writer] = [node.address for node in nodes if node.name == name]
    readers = [node.address for node in nodes if node.name != name]
    found = {
        "one server": Way(writer, writer, None),
        "HAProxy, two addresses": haproxy(stack, three.folder, writer, readers),
    }
    for word in WORDS:
        address = three.address(word)
        found[f"Proxima, {word}"] = Way(address, address, three.door.proxy.process.pid)
    return found


def main(rounds="5", rate="300"):
    with contextlib.ExitStack() as stack:
        three = ThreeServers(stack, workers=1)
        by_name, pids = ways(stack, three), three.pids()
        load(by_name["one server"].writes, "1:0", 4, "--duration", "1s", "--fill")
        for node in three.cluster.nodes:
            until(node.barrier, f"{node.name} has the rows")
        steps = [(f"{count} connections", count) for count in CONNECTIONS]
        steps += [(f"{RECONNECTING} clients, each read on a new connection", RECONNECTING, "--reconnect")]
        for title, count, *more in steps:
            found = {way: [] for way in by_name}
            for turn in range(int(rounds)):
                order = list(by_name)
                for way in order[turn % len(order) :] + order[: turn % len(order)]:
                    found[way].append(measure(by_name[way], pids, rate, count, *more))
                print(f"{title}: round {turn + 1} of {rounds}", file=sys.stderr, flush=True)
            report(title, found)


if __name__ == "__main__":
    main(*sys.argv[1:])
