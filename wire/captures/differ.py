#!/usr/bin/env python3
"""Sends the same lines to the oldest and the newest memcached that Proxima serves, and records their answers.

    ./differ.py [CORPUS]            # rewrites differ.tsv beside this file

The lines are random with a fixed seed, so that they are the same each time. Each goes to a fresh connection of
each server, which has the same few items, and is followed by [TAIL]: eight commands of four bytes, answered one by
one. The number of answers tells how many bytes the server took for the line's value.

A record is a line of the file: `request <tab> older <tab> newer`. A verdict is

    12 STORED\\r\\n                   it took 12 bytes behind the line, and answered this
    ? CLIENT_ERROR bad data …        it took bytes that are no whole number of commands
    closed                           it closed the connection
    waits                            it waits for more bytes of the value

and `=` says that the newer server's verdict is the older one's. Bytes are written as in the captures beside it.
"""

import contextlib
import os
import pathlib
import random
import re
import socket
import subprocess
import sys
import tempfile
import time

import newest
from record import encode

CORPUS = pathlib.Path(__file__).with_name("differ.tsv")
SEED = 12
LINES = 3500

#: The commands that follow each line.
TAIL = b"mn\r\n" * 8
NEXT, NEXT_REPLY = b"mg next-request k\r\n", b"EN knext-request\r\n"

#: Keys that lines name. At the start of each line `n` holds a number, `a` a text, and the others nothing.
KEYS = [b"a", b"n", b"Zm9v", b"noreply", b"Zm9", b"z", b"Zm8=", b"\xff\x01", b"a\tb", b"k" * 250]
LONG = b"k" * 251
OTHER_KEYS = [LONG, b"k" * 300, b"k" * 506, b"", b"a\0b", b"a\rb", b"0", b"====", b"Zm9v!"]

#: Lengths of values that end with a line end in TAIL, and words that are no length.
LENGTHS = [b"2", b"6", b"10", b"02", b"0000000002"]
NO_LENGTHS = [
    b"0", b"1", b"-", b"-0", b"-1", b"+2", b"2x", b"2\t", b"\t2", b"x", b"00000000002", b"000000000002", b"2147483645", b"2147483646",
    b"4294967298", b"-4294967294", b"18446744073709551618", b"2.0", b"0x2", b"2e0", b"\xb22", b"2\0", b"2\r", b"noreply", b"S2",
]  # fmt: skip
NUMBERS = [b"0", b"1", b"5", b"60", b"-1", b"10", b"2147483647"]
NO_NUMBERS = [
    b"-", b"+1", b"+", b"--1", b"x", b"1x", b"1\t", b"\t1", b"1\x0b", b"2147483648", b"-2147483649", b"4294967295", b"4294967296",
    b"18446744073709551615", b"18446744073709551616", b"-18446744073709551615", b"00000000001", b"000000000001",
    b"0000000000000000000001", b"00000000000000000000000000001", b"1.5", b"noreply", b"\xff", b"1\0", b"",
]  # fmt: skip
FLAGS = [
    b"v", b"k", b"t", b"c", b"f", b"s", b"h", b"l", b"u", b"b", b"q", b"q", b"T0", b"T60", b"T-1", b"N0", b"N30", b"R30", b"I", b"x",
    b"O1", b"Oabc", b"F5", b"C1", b"C999999", b"E77", b"MS", b"ME", b"MA", b"MP", b"MR", b"MI", b"MD", b"M+", b"M-", b"D2", b"J3",
    b"P", b"Lpath", b"S6",
]  # fmt: skip
ODD_FLAGS = [
    b"!", b"?", b"@", b"[", b"\\", b"]", b"^", b"_", b"`", b"{", b"}", b"~", b"\x7f", b"\x80", b"\xff", b"\xc3\xa9", b"\t", b"\tv",
    b"\x01", b"\x1f", b"-", b"+", b"*", b"/", b":", b";", b"=", b"(", b"\"", b"'", b"#", b"$", b"%", b"&", b",", b".", b"<", b">",
    b"|", b"0", b"9", b"12", b"0 0", b"z", b"Z", b"j", b"a", b"B", b"T", b"N", b"R", b"C", b"E", b"F", b"D", b"J", b"M", b"O",
    b"Tx", b"T+1", b"T1x", b"T-", b"T2147483648", b"T99999999999", b"N4294967296", b"R-", b"R+5", b"C-1", b"C+1", b"Cx",
    b"C18446744073709551616", b"C00000000000000000000000001", b"E-1", b"F4294967295", b"F4294967296", b"F-1", b"F+1", b"Fx",
    b"D-1", b"D+1", b"D18446744073709551615", b"J-", b"Jx", b"MX", b"MSx", b"MAA", b"Ms", b"me", b"M\xff", b"M!", b"b1", b"qq", b"v1",
    b"k k", b"v v", b"q q", b"T1 T2", b"O" + b"o" * 31, b"O" + b"o" * 32, b"O\xff", b"O\t", b"noreply", b"v\0", b"v\r", b"b b",
]  # fmt: skip
STORES = [b"set", b"add", b"replace", b"append", b"prepend", b"cas"]
UNKNOWN = [
    b"x",
    b"xx",
    b"GET",
    b"Get",
    b"mx",
    b"mgg",
    b"m",
    b"bget",
    b"gett",
    b"sets",
    b"deletes",
    b"\xff\xff",
    b"ge",
    b"POST",
    b"PUT",
    b"OPTIONS",
]
#: Storing commands of several words, each correct, or wrong in one place or two.
ENDS = [b"\r\n"] * 6 + [b"\n", b" \r\n", b"  \r\n", b"\r\r\n"]


class Maker:
    """Random lines."""

    def __init__(self, seed):
        self.chance = random.Random(seed)

    def some(self, usual, odd, share=0.15):
        return self.chance.choice(odd if self.chance.random() < share else usual)

    def key(self):
        return self.some(KEYS, OTHER_KEYS, 0.1)

    def number(self, share=0.15):
        return self.some(NUMBERS, NO_NUMBERS, share)

    def flags(self, most):
        count = self.chance.choice([0, 1, 1, 1, 2, 2, 3, 3, 4, 6, *most])
        return [self.some(FLAGS, ODD_FLAGS, 0.3) for _ in range(count)]

    def words(self):
        kind = self.chance.choices(
            ["store", "get", "gat", "delete", "arithmetic", "touch", "admin", "ms", "meta", "me", "unknown"],
            [14, 6, 5, 7, 8, 6, 6, 24, 20, 4, 6],
        )[0]
        more = self.chance.choices(
            [[], [b"noreply"], [b"x"], [b"0"], [b"x", b"y"], [b"0", b"noreply"], [b"noreply", b"x"]],
            [10, 6, 1, 1, 1, 1, 1],
        )[0]
        match kind:
            case "store":
                name = self.chance.choice(STORES)
                version = [self.number(0.3)] if name == b"cas" else []
                return [
                    name,
                    self.key(),
                    self.number(),
                    self.number(),
                    self.some(LENGTHS, NO_LENGTHS, 0.3),
                    *version,
                    *more,
                ]
            case "get":
                return [
                    self.chance.choice([b"get", b"gets"]),
                    *[self.key() for _ in range(self.chance.choice([0, 1, 1, 1, 2, 3]))],
                ]
            case "gat":
                keys = [self.key() for _ in range(self.chance.choice([0, 1, 1, 1, 2]))]
                return [self.chance.choice([b"gat", b"gats"]), self.number(0.3), *keys]
            case "delete":
                return [b"delete", self.key(), *self.chance.choice([[], [b"0"], [b"1"], [b"x"]]), *more]
            case "arithmetic":
                return [
                    self.chance.choice([b"incr", b"decr"]),
                    self.some([b"n", b"n", b"a"], KEYS + OTHER_KEYS, 0.4),
                    self.number(0.4),
                    *more,
                ]
            case "touch":
                return [b"touch", self.key(), self.number(0.4), *more]
            case "admin":
                return self.chance.choice([
                    [b"flush_all", *self.chance.choice([[], [b"0"], [b"-1"], [b"2147483647"], [self.chance.choice(NO_NUMBERS)]]), *more],
                    [b"verbosity", self.some([b"0", b"1"], NO_NUMBERS, 0.5), *more],
                    [b"version", *more],
                    [b"mn", *self.flags([])],
                    [b"quit", *more],
                ])  # fmt: skip
            case "ms":
                return [
                    b"ms",
                    self.key(),
                    self.some(LENGTHS, NO_LENGTHS, 0.12),
                    *self.flags([15, 16, 17, 18, 19, 20, 21, 22, 25]),
                ]
            case "meta":
                return [
                    self.chance.choice([b"mg", b"md", b"ma"]),
                    self.key(),
                    *self.flags([16, 17, 18, 19, 20, 21, 22, 25]),
                ]
            case "me":
                return [b"me", self.key(), *self.flags([])]
            case _:
                tail = self.chance.choice(
                    [
                        [],
                        [b"a"],
                        [b"/"],
                        [b"/", b"HTTP/1.1"],
                        [b"noreply"],
                        [b"a", b"noreply"],
                        [b"HTTP/"],
                        [b"HTTP/1.1", b"x"],
                    ]
                )
                return [self.chance.choice(UNKNOWN + [b""]), *tail]

    def line(self):
        words = self.words()
        if self.chance.random() < 0.04:
            words = words[: self.chance.randrange(len(words) + 1)]
        if self.chance.random() < 0.02:
            words.insert(self.chance.randrange(len(words) + 1), self.chance.choice(ODD_FLAGS))
        blank = self.chance.choice([b" "] * 9 + [b"  "])
        return (b" " if self.chance.random() < 0.01 else b"") + blank.join(words) + self.chance.choice(ENDS)


def spoken(line):
    """The line as a proxy sends it: with one key, and so that it is answered."""
    words = [word for word in line.rstrip(b"\r\n").split(b" ") if word]
    name = words[0] if words else b""
    if name in (b"get", b"gets"):
        yield from (name + b" " + key + b"\r\n" for key in words[1:])
    elif name in (b"gat", b"gats"):
        yield from (b" ".join([name, words[1], key]) + b"\r\n" for key in words[2:])
    elif name in (b"mg", b"ms", b"md", b"ma"):
        at = next((match for match in re.finditer(rb" +q[^ \r\n]*", line)), None)
        if at:
            yield line[: at.start()] + line[at.end() :]
    elif len(words) > 1 and words[-1] == b"noreply":
        at = line.rindex(b" noreply")
        yield line[:at].rstrip(b" ") + line[at + 8 :]


def lines():
    """All lines, each once."""
    made, maker = {}, Maker(SEED)

    def add(line):
        if line not in made:
            made[line] = None
            for other in spoken(line):
                add(other)

    # One odd flag stands alone, in front of and behind others. Servers disagreed about the value of such
    # lines.
    for flag in ODD_FLAGS:
        for command in (b"ms z 10", b"mg a", b"md a", b"ma n", b"me a"):
            add(b" ".join([command, flag]) + b"\r\n")
        add(b"ms z 10 k " + flag + b"\r\n")
        add(b"ms z 10 " + flag + b" T0\r\n")
    while len(made) < LINES:
        line = maker.line()
        # The server must read the connection as text.
        if line[0] not in (0x80, 0x16):
            add(line)
    return list(made)


class Server:
    """A memcached on a Unix socket of its own."""

    def __init__(self, words):
        self.words = words

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = os.path.join(self.folder.name, "memcached")
        self.process = subprocess.Popen(
            [*self.words, "-u", "root", "-s", self.path, "-t", "1"], stderr=subprocess.DEVNULL
        )
        for _ in range(200):
            with contextlib.suppress(FileNotFoundError, ConnectionRefusedError):
                self.control = self.connect()
                return self
            time.sleep(0.05)
        raise SystemExit(f"{self.words[0]} does not answer")

    def connect(self):
        client = socket.socket(socket.AF_UNIX)
        client.settimeout(PATIENCE)
        client.connect(self.path)
        return client

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()
        self.folder.cleanup()


#: The items that exist before each line.
FIRST = (
    b"flush_all\r\n"
    + b"".join(b"md %s\r\n" % key for key in [*KEYS, b"Zm9v b", b"foo", b"0", b"====", b"Zm9v!"])
    + b"set a 5 0 3\r\nabc\r\nset n 0 0 2\r\n41\r\n"
)


#: The verdict of a server that waits for the rest of a value.
WAITS = object()
PATIENCE = 3


def ask(client, request):
    """The reply to `request`. None: the connection was closed without one."""
    reply = b""
    try:
        client.sendall(request + NEXT)
        while not reply.endswith(NEXT_REPLY):
            part = client.recv(65536)
            if not part:
                return None
            reply += part
    except (BrokenPipeError, ConnectionResetError):
        return None
    except TimeoutError:
        return WAITS
    return reply[: -len(NEXT_REPLY)]


def verdict(reply):
    """The number of bytes of TAIL that were taken for the line's value, and the reply to the line."""
    if reply is WAITS:
        return "waits"
    if reply is None:
        return "closed"
    count = 0
    while reply.endswith(b"MN\r\n") and count < len(TAIL) // 4:
        reply, count = reply[:-4], count + 1
    # Versions and times differ between servers.
    reply = re.sub(rb"^VERSION .*?\r\n", b"VERSION 0\r\n", reply)
    reply = re.sub(rb"(?m)^(VALUE \S+ \d+ \d+) \d+\r\n", rb"\1 0\r\n", reply)
    reply = re.sub(rb"^(ME \S+) .*?\r\n", rb"\1 0\r\n", reply)
    if reply[:2] in (b"HD", b"VA"):
        head, end, rest = reply.partition(b"\r\n")
        reply = re.sub(rb" ([clth])-?\d+", rb" \g<1>0", head) + end + rest
    # After a value that is no whole number of commands, half a command remains, which is answered with an
    # error.
    halves = (b"ERROR\r\n", b"CLIENT_ERROR bad command line format\r\n")
    taken = len(TAIL) - 4 * count
    if (
        taken > 0
        and reply.startswith(b"CLIENT_ERROR bad data chunk")
        or reply.count(b"\r\n") > 1
        and reply.endswith(halves)
    ):
        return f"? {encode(reply)}"
    return f"{taken} {encode(reply)}".rstrip()


def record(server, line):
    """The verdict of this server on the line."""
    ask(server.control, FIRST)
    with server.connect() as client:
        return verdict(ask(client, line + TAIL))


def main(path):
    words = newest.command()
    versions = [newest.version(words) for words in (["memcached"], words)]
    with Server(["memcached"]) as older, Server(words) as newer:
        out = [f"# memcached {versions[0]} and {versions[1]}: differ.py made this, and describes it."]
        for line in lines():
            old, new = record(older, line), record(newer, line)
            out.append("\t".join([encode(line), old, "=" if new == old else new]))
    path.write_text("\n".join(out) + "\n", "ascii")
    print(f"{len(out) - 1} lines, memcached {versions[0]} and {versions[1]}")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else CORPUS)
