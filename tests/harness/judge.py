"""`proxima-bench stale`, which reports whether reads are stale and for how long writes fail."""

import json
import os
import pathlib
import signal
import subprocess

from . import PATIENCE, number
from .proxy import BINARY, environment

BENCH = os.environ.get("PROXIMA_BENCH", str(pathlib.Path(BINARY).with_name("proxima-bench")))


class Judge:
    """Writes and reads through `address` with this many clients, until `report` is called. `before` is a
    command that runs it, and `options` are further ones of the program."""

    def __init__(self, address, folder, writers=20, readers=40, before=(), options=()):
        self._report = pathlib.Path(folder) / f"stale-{number()}.json"
        command = [
            *before,
            BENCH,
            "stale",
            "--quiet",
            "--write",
            address,
            "--json",
            str(self._report),
            "--duration",
            "1h",
        ]
        command += ["--writers", str(writers), "--keys", str(writers), "--readers", str(readers)]
        command += ["--pause", "40ms", "--timeout", "5s", *options]
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment()
        )

    def report(self):
        """Ends the run and returns its report, as in its JSON."""
        self.process.send_signal(signal.SIGINT)
        said, _ = self.process.communicate(timeout=PATIENCE)
        assert self._report.exists(), said.decode()
        return json.loads(self._report.read_text())

    def stop(self):
        self.process.kill()
        self.process.communicate()
