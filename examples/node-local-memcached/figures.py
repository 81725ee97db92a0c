"""How long a transaction of the application on node 1 takes, by where its cache is.

    python3 figures.py PROXIMA [--mcrouter FILE] [--seconds 3]

A transaction is 20 gets and 2 sets, one after the other. Nodes are a millisecond apart in each direction: a
relay holds back what goes to another node, and what comes from there. The set-ups:

* one memcached on node 2, for all nodes;
* a memcached on each node behind mcrouter, with the routes that are usual for it: `AllSyncRoute` for writes
  and `FailoverRoute`, with the own node first, for reads;
* a memcached on each node behind Proxima, with this example's file.

Each is measured anew while all is well, from the moment on in which node 2 is lost (its memcached hangs and
answers nobody), and from the moment on in which a fourth node joins.
"""

import argparse
import collections
import contextlib
import json
import os
import pathlib
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
DELAY = 0.001
"""Seconds between two nodes, in one direction."""
GETS, SETS = 20, 2
KEYS = 200
VALUE = b"v" * 400
TIMEOUT = 2.0
"""Seconds after which the application gives a request up, and its transaction with it."""
SERVER, NEAR, PROXY, ADMIN = 11421, 11431, 11321, 9321
"""Ports: of a node's memcached, of the relay before it, of the proxy on node 1, and of its admin port."""
CENTRAL, MCROUTER, PROXIMA = "cache on node 2", "mcrouter", "Proxima"
WIDTH = 28
WELL, LOST, JOINS = "all is well", "a node is lost", "a node joins"


def host(node):
    return f"127.0.0.{node}"


def far(node):
    """The address at which node 1 reaches a node's memcached."""
    return f"{host(node)}:{SERVER if node == 1 else NEAR}"


def pump(source, target):
    """Passes bytes on, each after the delay."""
    try:
        while data := source.recv(65536):
            time.sleep(DELAY)
            target.sendall(data)
    except OSError:
        pass
    for end in (source, target):
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)


def relay(nodes):
    """Stands before the memcached of each of these nodes, for ever."""

    def serve(listener, node):
        while True:
            near, _ = listener.accept()
            try:
                away = socket.create_connection((host(node), SERVER))
            except OSError:
                near.close()
                continue
            for end in (near, away):
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for pair in ((near, away), (away, near)):
                threading.Thread(target=pump, args=pair, daemon=True).start()

    for node in nodes:
        listener = socket.create_server((host(node), NEAR))
        threading.Thread(target=serve, args=(listener, node), daemon=True).start()
    threading.Event().wait()


class Client:
    """The application: a connection, on which one request at a time is under way."""

    def __init__(self, address):
        self.errors = collections.Counter()
        name, port = address.rsplit(":", 1)
        self._address = (name, int(port))
        self._connect()

    def _connect(self):
        self._sock = socket.create_connection(self._address, timeout=TIMEOUT)
        self._sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._file = self._sock.makefile("rb")

    def get(self, key):
        self._sock.sendall(b"get %b\r\n" % key)
        line = self._line()
        if line.startswith(b"VALUE"):
            self._file.read(int(line.split()[3]) + 2)
            line = self._line()
        if line != b"END\r\n":
            raise OSError(line.decode(errors="replace").strip())

    def set(self, key):
        self._sock.sendall(b"set %b 0 0 %d\r\n%b\r\n" % (key, len(VALUE), VALUE))
        if (line := self._line()) != b"STORED\r\n":
            raise OSError(line.decode(errors="replace").strip())

    def _line(self):
        line = self._file.readline()
        if not line:
            raise OSError("closed")
        return line

    def transaction(self, number):
        """Returns its seconds, or None if a request of it failed."""
        begun = time.perf_counter()
        try:
            for turn in range(GETS + SETS):
                key = b"key:%d" % ((number * 7 + turn) % KEYS)
                self.set(key) if turn % 11 == 10 else self.get(key)
        except OSError as error:
            self.errors[str(error)] += 1
            # What is still under way belongs to nobody.
            self._sock.close()
            with contextlib.suppress(OSError):
                self._connect()
            return None
        return time.perf_counter() - begun

    def write_until(self, condition, otherwise):
        end = time.monotonic() + 30
        while not condition():
            self.transaction(0)
            if time.monotonic() > end:
                sys.exit(otherwise)

    def measure(self, seconds):
        """The seconds of all transactions that begin within these seconds."""
        end, taken = time.monotonic() + seconds, []
        while time.monotonic() < end:
            taken.append(self.transaction(len(taken)))
        return taken


class Machine:
    """All processes of a set-up, which end with it."""

    def __init__(self, place):
        self.place = pathlib.Path(place)
        self.processes = {}

    def start(self, name, *command, listens):
        log = (self.place / f"{name}.log").open("wb")
        self.processes[name] = subprocess.Popen(command, stdout=log, stderr=log)
        for at in listens:
            self._until_listens(name, at)

    def _until_listens(self, name, at):
        for _ in range(500):
            with contextlib.suppress(OSError):
                socket.create_connection(at, timeout=1).close()
                return
            if self.processes[name].poll() is not None:
                break
            time.sleep(0.02)
        sys.exit(f"{name} does not listen on {at}:\n{(self.place / f'{name}.log').read_text()}")

    def start_memcached(self, node):
        user = ["-u", "nobody"] if os.geteuid() == 0 else []
        words = ["-l", host(node), "-p", str(SERVER), "-U", "0", "-m", "16"]
        self.start(f"memcached-{node}", "memcached", *user, *words, listens=[(host(node), SERVER)])

    def send(self, name, number):
        self.processes[name].send_signal(number)

    def stop(self):
        for process in self.processes.values():
            process.kill()
            process.wait()


def replace(file, text):
    """Writes a file as a careful script does, so that it is whole whenever somebody reads it."""
    new = file.with_suffix(".new")
    new.write_text(text)
    new.rename(file)


def write_servers(machine, nodes):
    """Tells both proxies that these nodes have a memcached."""
    servers = [far(node) for node in nodes]
    replace(machine.place / "servers", "".join(f"{server}\n" for server in servers))
    all_of_them = "AllSyncRoute|Pool|A"
    policies = {"get": "FailoverRoute|Pool|A", "set": all_of_them, "add": all_of_them, "delete": all_of_them}
    route = {"type": "OperationSelectorRoute", "operation_policies": policies}
    text = json.dumps({"pools": {"A": {"servers": servers}}, "route": route})
    replace(machine.place / "mcrouter.json", text)


def start_proxy(kind, machine, options):
    """Starts what the application asks, and returns its address."""
    if kind == CENTRAL:
        return far(2)
    at = (host(1), PROXY)
    if kind == MCROUTER:
        words = [f"--listen-addresses={at[0]}", f"--port={PROXY}"]
        words += [f"--config-file={machine.place}/mcrouter.json", f"--stats-root={machine.place}"]
        command = [options.mcrouter, *words]
    else:
        shutil.copy(HERE / "proxima.yaml", machine.place)
        words = ["--config", f"{machine.place}/proxima.yaml", "--node-address", host(1), "--workers", "1"]
        words += ["--listen", f"{at[0]}:{PROXY}", "--admin", f"{at[0]}:{ADMIN}"]
        command = [options.proxima, "run", *words]
    machine.start(kind, *command, listens=[at])
    return f"{at[0]}:{PROXY}"


def run(kind, situation, options):
    """The seconds of all transactions of this set-up in this situation, and what the application was told."""
    with tempfile.TemporaryDirectory() as place, contextlib.ExitStack() as stack:
        machine = Machine(place)
        stack.callback(machine.stop)
        # memcached may run as another user.
        pathlib.Path(place).chmod(0o755)
        for node in (1, 2, 3):
            machine.start_memcached(node)
        others = [(host(node), NEAR) for node in (2, 3, 4)]
        machine.start("relay", sys.executable, __file__, "relay", listens=others)
        write_servers(machine, (1, 2, 3))
        client = Client(start_proxy(kind, machine, options))
        for key in range(KEYS):
            client.set(b"key:%d" % key)
        if situation == LOST:
            machine.send("memcached-2", signal.SIGSTOP)
        if situation == JOINS:
            machine.start_memcached(4)
            write_servers(machine, (1, 2, 3, 4))
        taken = client.measure(options.seconds)
        if situation == JOINS and kind != CENTRAL:
            client.write_until(lambda: is_written(4), f"{kind} does not write to the node that joined")
        return taken, client.errors


def is_written(node):
    """Whether a node's memcached has been written to."""
    with socket.create_connection((host(node), SERVER), timeout=TIMEOUT) as asked:
        asked.sendall(b"stats\r\nquit\r\n")
        return b"STAT cmd_set 0\r\n" not in asked.makefile("rb").read()


def cell(taken):
    done = [seconds * 1000 for seconds in taken if seconds is not None]
    failed = len(taken) - len(done)
    if not done:
        return f"all {failed} failed"
    p99 = statistics.quantiles(done, n=100, method="inclusive")[98] if len(done) > 1 else done[0]
    text = f"{statistics.mean(done):.1f} ms, {p99:.1f} ms"
    return f"{text}, {failed} failed" if failed else text


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("proxima")
    parser.add_argument("--mcrouter", default=None)
    parser.add_argument("--seconds", type=float, default=3.0)
    options = parser.parse_args()
    # Every process ends with this one, however it is asked to end.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    kinds = [CENTRAL, *([MCROUTER] if options.mcrouter else []), PROXIMA]
    print(f"{'':18}" + "".join(f"{kind:{WIDTH}}" for kind in kinds).rstrip())
    told = collections.Counter()
    for situation in (WELL, LOST, JOINS):
        row = f"{situation:18}"
        for kind in kinds:
            taken, errors = run(kind, situation, options)
            row += f"{cell(taken):{WIDTH}}"
            told.update({f"{kind}, {situation}: {error}": count for error, count in errors.items()})
        print(row.rstrip(), flush=True)
    print(f"\na transaction: {GETS} gets and {SETS} sets; its mean and p99, and how many failed")
    for what, count in told.items():
        print(f"{what} ({count} times)")


if __name__ == "__main__":
    if sys.argv[1:] == ["relay"]:
        relay((2, 3, 4))
    else:
        main()
