"""What a read of a serialized map costs its reader: from the daemon, and through Proxima, off and on.

    python3 measure.py PROXIMA [--reads 300] [--svg FILE] [--json FILE]

The daemon (`origin.py`) and Proxima (`proxima.yaml`) run already. Reads are made one after the other, by one
client with one connection, in rounds that take turns. `received` ends when the last byte is there. `decoded`
ends when Python has read the JSON. `orjson` is a decoder that is not the bound, where it is installed.
"""

import argparse
import http.client
import json
import pathlib
import socket
import statistics
import subprocess
import sys
import threading
import time

ORIGIN, MEMCACHE, ADMIN = 7711, 11711, 9711
SIZES = [10, 100, 1000, 3000]
ROUNDS = 5
SOURCE = 2.8
"""How much faster the source says that its cache made reads of 3,000 entries."""

try:
    import orjson
except ImportError:
    orjson = None


class Origin:
    """A client of the daemon that keeps its connection."""

    def __init__(self):
        self.connection = http.client.HTTPConnection("127.0.0.1", ORIGIN)
        self.connection.connect()
        self.connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def read(self, name):
        self.connection.request("GET", f"/{name}")
        return self.connection.getresponse().read()

    def order(self, path):
        self.connection.request("POST", path)
        return self.connection.getresponse().read()

    def counts(self):
        return json.loads(self.read("counts"))


class Cache:
    """A memcached client."""

    def __init__(self):
        self.socket = socket.create_connection(("127.0.0.1", MEMCACHE))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buffer = bytearray(4 << 20)

    def read(self, name):
        self.socket.sendall(f"get {name}\r\n".encode())
        view, got = memoryview(self.buffer), 0
        while (end := self.buffer.find(b"\r\n", 0, got)) < 0:
            got += self.receive(view[got:])
        line = bytes(view[:end]).split()
        if line[0] != b"VALUE":
            raise ValueError(f"{name}: {line}")
        begin, length = end + 2, int(line[3])
        while got < begin + length + len(b"\r\nEND\r\n"):
            got += self.receive(view[got:])
        return view[begin : begin + length]

    def receive(self, view):
        got = self.socket.recv_into(view)
        if not got:
            raise ConnectionError("the proxy closed the connection")
        return got


def switch(proxima, ttl):
    """Sets the time for which the rule keeps, as an operator does."""
    command = [proxima, "near", "set", "manager", "ttl", ttl, "--admin", f"127.0.0.1:{ADMIN}"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def timed(read, name, decode, reads):
    """The microseconds of one read, over so many."""
    begun = time.perf_counter()
    for _ in range(reads):
        bytes_ = read(name)
        if decode:
            decode(bytes_)
    return (time.perf_counter() - begun) / reads * 1e6


def plain(bytes_):
    return json.loads(bytes(bytes_))


def rounds(proxima, number, decode, reads):
    """The microseconds of a read in each round: from the daemon, through Proxima off, and on."""
    name, origin, cache = f"osd_map.{number}", Origin(), Cache()
    each = max(1, reads // ROUNDS)
    rows = []
    for _ in range(ROUNDS):
        straight = timed(origin.read, name, decode, each)
        switch(proxima, "0s")
        off = timed(cache.read, name, decode, each)
        switch(proxima, "10s")
        cache.read(name)
        on = timed(cache.read, name, decode, max(each, 50))
        rows.append((straight, off, on))
    return [(statistics.median(column), min(column), max(column)) for column in zip(*rows, strict=True)]


def table(proxima, reads):
    decoders = {"received": None, "decoded (json)": plain}
    if orjson:
        decoders["decoded (orjson)"] = lambda bytes_: orjson.loads(bytes_)
    found = {}
    print("microseconds of a read: median (least to greatest) of", ROUNDS, "rounds in turn\n")
    header = f"{'entries':>7}  {'':<17}{'from the daemon':>24}{'near off':>24}{'near on':>24}  faster"
    print(header)
    for number in SIZES:
        for what, decode in decoders.items():
            straight, off, on = rounds(proxima, number, decode, reads)
            cells = "".join(f"{m:>9.0f} ({a:.0f} to {b:.0f})".rjust(24) for m, a, b in (straight, off, on))
            faster = straight[0] / on[0]
            print(f"{number:>7}  {what:<17}{cells}  {faster:>5.1f} ×", flush=True)
            found[f"{number} {what}"] = {"straight": straight, "off": off, "on": on, "faster": faster}
    return found


def together(proxima, modules=50):
    """So many modules ask for one map at once. Returns how many maps the daemon has made."""
    origin = Origin()
    switch(proxima, "0s")
    switch(proxima, "10s")
    before, caches = origin.counts()["made"], [Cache() for _ in range(modules)]
    lengths = []
    threads = [
        threading.Thread(target=lambda cache=cache: lengths.append(len(cache.read("osd_map.3000"))))
        for cache in caches
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if len(lengths) != modules or len(set(lengths)) != 1:
        raise ValueError(f"replies of {lengths}")
    return origin.counts()["made"] - before


def changed(proxima):
    """The map changes, and the daemon has its old one dropped. Returns the epochs before and after."""
    origin, cache = Origin(), Cache()
    before = plain(cache.read("osd_map.1000"))["epoch"]
    origin.order("/change")
    command = [proxima, "near", "drop", "manager", "osd_map.1000", "--admin", f"127.0.0.1:{ADMIN}"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return before, plain(cache.read("osd_map.1000"))["epoch"]


def renewals(proxima, seconds=4):
    """The daemon's CPU in seconds while an unchanged map is read all the time, with ETag and without."""
    cpu = {}
    for tag in ("on", "off"):
        origin, cache = Origin(), Cache()
        origin.order(f"/etag/{tag}")
        switch(proxima, "0s")
        switch(proxima, "1s")
        cache.read("osd_map.3000")
        before, end = origin.counts()["cpu"], time.monotonic() + seconds
        while time.monotonic() < end:
            cache.read("osd_map.3000")
            time.sleep(0.01)
        cpu[tag] = origin.counts()["cpu"] - before
    Origin().order("/etag/on")
    return cpu


def draw(found, file):
    """The source's chart: time of a read by the number of entries, without and with the cache."""
    width, height, left, bottom = 640, 360, 70, 50
    most = max(row["straight"][0] for row in found.values())
    bars, wide = [], (width - left - 20) / len(SIZES)
    for at, number in enumerate(SIZES):
        row = found[f"{number} decoded (json)"]
        for side, (key, colour) in enumerate([("straight", "#c0504d"), ("on", "#4f81bd")]):
            tall = row[key][0] / most * (height - bottom - 60)
            x, y = left + at * wide + 12 + side * wide * 0.36, height - bottom - tall
            bars.append(
                f'<rect x="{x:.0f}" y="{y:.1f}" width="{wide * 0.34:.0f}" height="{tall:.1f}" '
                f'fill="{colour}"/>'
                f'<text x="{x + wide * 0.17:.0f}" y="{y - 4:.1f}" text-anchor="middle">'
                f"{row[key][0] / 1000:.2f}</text>"
            )
        bars.append(
            f'<text x="{left + at * wide + wide / 2:.0f}" y="{height - bottom + 18}" text-anchor="middle">'
            f"{number} entries: {row['faster']:.1f} ×</text>"
        )
    last = found[f"{SIZES[-1]} decoded (json)"]["faster"]
    received = found[f"{SIZES[-1]} received"]["faster"]
    title = "A read of a serialized map, received and decoded: ms"
    below = (
        f"{SIZES[-1]} entries: {SOURCE} × in the source; here {last:.1f} × decoded, {received:.0f} × received"
    )
    file.write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        'font-family="sans-serif" font-size="12">\n'
        f'<rect width="{width}" height="{height}" fill="white"/>\n'
        f'<text x="{width // 2}" y="20" text-anchor="middle" font-size="15">{title}</text>\n'
        f'<text x="{width // 2}" y="40" text-anchor="middle"><tspan fill="#c0504d">from the daemon</tspan>, '
        '<tspan fill="#4f81bd">through Proxima, near on</tspan></text>\n'
        + "\n".join(bars)
        + f'\n<text x="{width // 2}" y="{height - 12}" text-anchor="middle">{below}</text>\n</svg>\n'
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("proxima")
    parser.add_argument("--reads", type=int, default=300)
    parser.add_argument("--svg", type=pathlib.Path)
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    found = table(options.proxima, options.reads)
    made = together(options.proxima)
    print(f"\n50 modules ask at once: the daemon makes {made} map")
    before, after = changed(options.proxima)
    print(f"the map changes from epoch {before}, and is dropped: the next read has epoch {after}")
    cpu = renewals(options.proxima)
    print(
        "3,000 entries, unchanged, ttl 1s, read all the time for 4 s: the daemon's CPU is "
        f"{cpu['on'] * 1000:.0f} ms with ETag and {cpu['off'] * 1000:.0f} ms without"
    )
    if made != 1 or after != before + 1:
        sys.exit("this is not what the example promises")
    if options.svg:
        draw(found, options.svg)
        print(f"drawn: {options.svg}")
    if options.json:
        options.json.write_text(json.dumps({"reads": found, "cpu": cpu}, indent=1) + "\n")


if __name__ == "__main__":
    main()
