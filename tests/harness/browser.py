"""A headless Chromium, which opens pages of the admin port."""

import fcntl
import json
import shutil
import subprocess
import tempfile

import pytest

from . import PATIENCE, until
from .building import CACHE, build
from .proxy import ROOT

PROGRAM = "chromium"
INSTALL = ["npm", "ci", "--no-audit", "--no-fund"]
PICTURES = ROOT / "target/console"
"""Where screenshots are left for whoever wants to see them."""


def _packages():
    """What the driver needs from npm. Processes of a parallel run fetch it one after the other."""
    CACHE.mkdir(exist_ok=True)
    with (CACHE / "console.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return build("console", INSTALL, "node_modules")


class Browser:
    """One browser with one page, driven by `tests/console/main.js`."""

    def __init__(self):
        if not shutil.which(PROGRAM):
            pytest.skip(f"{PROGRAM} is missing: scripts/prepare.sh installs it")
        packages = _packages()
        self._profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        command = ["node", "main.js", shutil.which(PROGRAM), self._profile.name]
        self._process = subprocess.Popen(
            command, cwd=packages.parent, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def do(self, command, **values):
        """Does one thing, and returns what comes of it."""
        self._process.stdin.write(json.dumps({"command": command, **values}) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, "the browser has ended"
        answer = json.loads(line)
        assert "error" not in answer, answer["error"]
        return answer["value"]

    def open(self, admin, view="", **how):
        """Opens a view of the console, and waits for its first facts."""
        self.do("open", url=f"http://{admin}/#/{view}", **how)
        until(lambda: self.do("evaluate", code="!!document.querySelector('main h1')"), "the page has facts")

    def go(self, view):
        """Another view of the same page, as by a click in the menu."""
        self.do("evaluate", code=f"void (location.hash = {json.dumps('#/' + view)})")

    def text(self, selector="main"):
        """The text of the first such element, as a person sees it; empty: there is none."""
        return self.do("evaluate", code=f"document.querySelector({json.dumps(selector)})?.innerText ?? ''")

    def shows(self, *words, within="main"):
        """Waits until all of these words are seen, and returns the text."""

        def shown():
            text = self.text(within)
            return text if all(word in text for word in words) else None

        try:
            return until(shown, f"the page shows {words}")
        except AssertionError as error:
            raise AssertionError(f"{error}; it shows {self.text(within)!r}") from None

    def rows(self, caption):
        """The cells of a table's rows, by its caption."""
        code = f"""[...document.querySelectorAll("table")]
            .filter((table) => table.caption?.textContent === {json.dumps(caption)})
            .flatMap((table) => [...table.tBodies[0].rows])
            .map((row) => [...row.cells].map((cell) => cell.innerText))"""
        return self.do("evaluate", code=code)

    def picture(self, name):
        """Leaves a screenshot."""
        PICTURES.mkdir(parents=True, exist_ok=True)
        self.do("screenshot", path=str(PICTURES / f"{name}.png"))

    def stop(self):
        self._process.stdin.close()
        self._process.wait(PATIENCE)
        self._profile.cleanup()
