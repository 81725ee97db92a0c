"""A terminal of a user, with a program on it."""

import contextlib
import fcntl
import os
import pty
import select
import struct
import subprocess
import termios

import pyte

from . import PATIENCE, until
from .proxy import environment


def _control():
    """Makes the terminal that of this process, so that its end is a signal."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


class Terminal:
    """Runs `command` on a terminal of this size."""

    def __init__(self, command, columns=80, rows=24, **env):
        self._user, self._program = pty.openpty()
        self._screen = pyte.Screen(columns, rows)
        self._stream = pyte.ByteStream(self._screen)
        self.written = b""
        """All that the program has sent to the terminal."""
        self.resize(columns, rows)
        self._modes = termios.tcgetattr(self._program)
        self.process = subprocess.Popen(
            command,
            stdin=self._program,
            stdout=self._program,
            stderr=self._program,
            env={**environment(), "TERM": "xterm-256color", **env},
            start_new_session=True,
            preexec_fn=_control,
        )

    def resize(self, columns, rows):
        fcntl.ioctl(self._user, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self._screen.resize(rows, columns)

    def press(self, keys):
        os.write(self._user, keys.encode())

    def _read(self):
        # A terminal that nobody has any more cannot be read.
        with contextlib.suppress(OSError):
            while select.select([self._user], [], [], 0)[0]:
                new = os.read(self._user, 65536)
                self.written += new
                self._stream.feed(new)

    def lines(self):
        """What the screen shows now, without spaces at the ends of lines."""
        self._read()
        cells = self._screen.buffer
        columns, rows = self._screen.columns, self._screen.lines
        return ["".join(cells[row][at].data for at in range(columns)).rstrip() for row in range(rows)]

    def until(self, text):
        """Waits until a line has this text, and returns all."""
        shown = []

        def has_it():
            shown[:] = self.lines()
            return any(text in line for line in shown)

        try:
            until(has_it, f"the screen shows {text!r}", longest=PATIENCE / 3)
        except AssertionError as error:
            raise AssertionError(f"{error}:\n" + "\n".join(shown)) from None
        return shown

    def ended(self):
        """Waits for the end of the program, and returns its exit code."""

        def is_over():
            # A program whose output nobody takes does not end.
            self._read()
            return self.process.poll() is not None

        until(is_over, "the program ends", longest=PATIENCE / 3)
        self._read()
        return self.process.returncode

    def is_restored(self):
        """Whether the terminal is as it was: its modes, its first screen, its cursor."""
        modes = termios.tcgetattr(self._program) == self._modes
        left = self.written.rfind(b"\x1b[?1049l") > self.written.rfind(b"\x1b[?1049h")
        return modes and left and not self._screen.cursor.hidden

    def hang_up(self):
        """The terminal is gone, as with its window."""
        os.close(self._program)
        os.close(self._user)

    def stop(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(PATIENCE)
        for end in (self._program, self._user):
            with contextlib.suppress(OSError):
                os.close(end)
