"""HAProxy and Proxima, which run with the files of this folder. Addresses in them are replaced."""

import contextlib
import json
import pathlib
import re
import subprocess
import sys
import urllib.request

import pymysql

from harness import ports, until

HERE = pathlib.Path(__file__).resolve().parent

SPLIT, WRITES, READS, EVENTUAL, SESSION, CAUSAL = (f"127.0.0.1:{port}" for port in range(3306, 3312))
ADMIN = "127.0.0.1:9150"
HAPROXY_WRITES, HAPROXY_READS = "127.0.0.1:3316", "127.0.0.1:3317"
"""These addresses are in the files, as are those of the servers."""
SERVERS = ("10.0.0.1:3306", "10.0.0.2:3306", "10.0.0.3:3306")


class Proxies:
    """What was started, until the end of the context. `at` has the address here for each one in the files."""

    def __init__(self, folder, servers, account):
        self._folder, self._account = folder, account
        doors = (SPLIT, WRITES, READS, EVENTUAL, SESSION, CAUSAL, ADMIN, HAPROXY_WRITES, HAPROXY_READS)
        self.at = {door: ports.address() for door in doors} | dict(zip(SERVERS, servers))
        self._running = []

    def __enter__(self):
        return self

    def __exit__(self, failed, *_):
        for process, log in self._running:
            process.kill()
            process.wait()
            if failed and issubclass(failed, Exception):
                print(f"{log.name} ends with:\n{log.read_text()[-2000:]}", file=sys.stderr)

    def _write(self, name):
        """Writes a file of the example for this machine and this account."""
        text = re.sub(r"\d+(\.\d+){3}:\d+", lambda found: self.at[found[0]], (HERE / name).read_text())
        file = self._folder / name
        file.write_text(re.sub(r"\bapp\b", self._account.user, text))
        return file

    def _start(self, program, *words):
        """Starts a program. It ends with this one, however that ends."""
        log = self._folder / f"{pathlib.Path(program).name}.log"
        with log.open("w") as out:
            command = ["setpriv", "--pdeathsig", "KILL", program, *words]
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out)
        self._running.append((process, log))
        return process

    def start_proxima(self, program):
        """Starts Proxima, and returns the writer that it has found, and the readers."""
        (self._folder / "password").write_text(self._account.password + "\n")
        self._write("users.yaml")
        process = self._start(program, "run", "--config", self._write("proxima.yaml"))

        def roles():
            assert process.poll() is None, "Proxima has ended"
            with contextlib.suppress(OSError):
                with urllib.request.urlopen(f"http://{self.at[ADMIN]}/members") as answer:
                    members = json.load(answer)
                by_role = {"writer": [], "reader": [], "out": []}
                for member in members:
                    by_role[member["role"]].append(member["address"])
                if len(by_role["writer"]) == 1 and len(by_role["reader"]) == 2:
                    return by_role["writer"][0], by_role["reader"]
            return None

        return until(roles, "Proxima has a writer and two readers", every=0.05)

    def start_haproxy(self, program, writer, readers):
        """Starts HAProxy with this writer: two writers would disturb each other."""
        self.at |= dict(zip(SERVERS, (writer, *readers)))
        process = self._start(program, "-db", "-f", self._write("haproxy.cfg"))

        def serves():
            assert process.poll() is None, "HAProxy has ended"
            with contextlib.suppress(pymysql.err.MySQLError):
                self._account.connect(self.at[HAPROXY_READS]).close()
                return True
            return False

        until(serves, "HAProxy serves", every=0.05)
