"""A server's program, which a test starts, freezes and kills."""

import signal
import subprocess

from . import PATIENCE, freeze, until


class Program:
    """Runs `command`, a server at `address`. A subclass says in `answers` how one asks whether it is up."""

    def __init__(self, command, address):
        self._command = command
        self.address = address
        self.process = None
        self.start()

    def start(self):
        """Starts the server, empty, at its address."""
        self.process = subprocess.Popen(self._command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

        def is_up():
            assert self.process.poll() is None, f"{self._command} ended with {self.process.returncode}"
            try:
                return self.answers()
            except OSError:
                return False

        until(is_up, f"{self._command} answers")

    def answers(self):
        """Whether the server answers; an `OSError` counts as no."""
        raise NotImplementedError

    def freeze(self):
        """Stops the server until `thaw`. It answers nothing, though its kernel still takes connections."""
        freeze(self.process)

    def thaw(self):
        self.process.send_signal(signal.SIGCONT)

    def kill(self):
        self.process.kill()
        self.process.wait(PATIENCE)

    def stop(self):
        if self.process.poll() is None:
            self.thaw()
            self.kill()
