"""A machine of the lab: a network namespace and a control group, in which programs run."""

import subprocess

from ..netns import Namespace, ip
from .cgroups import Cgroup


class Machine(Namespace):
    """A machine, whose folder has the logs of its programs."""

    def __init__(self, mark, host, address):
        super().__init__(mark.namespace(host))
        self.host, self.address = host, address
        self.folder = mark.folder / host
        self.cgroup = Cgroup(mark.cgroup(host))
        self._spaces = [f"--net=/run/netns/{self.name}"]
        self._started = []

    def make(self):
        self.folder.mkdir(parents=True, exist_ok=True)
        self.cgroup.make()
        ip("netns", "add", self.name)
        ip("-n", self.name, "link", "set", "lo", "up")

    def inside(self, *words):
        """A command that runs another one on the machine, and becomes it. `ip netns exec` would hide the
        control groups from it."""
        return self.cgroup.command("nsenter", *self._spaces, *map(str, words))

    def start(self, name, *command):
        """Starts a program."""
        with self.log(name).open("ab") as log:
            process = subprocess.Popen(self.inside(*command), stdout=log, stderr=log)
        self._started.append(process)
        return process

    def log(self, name):
        return self.folder / f"{name}.log"

    def run(self, *command):
        """Runs a program to its end, and returns what it has written."""
        done = subprocess.run(self.inside(*command), capture_output=True, text=True)
        assert done.returncode == 0, f"{command} ended with {done.returncode}: {done.stdout}{done.stderr}"
        return done.stdout

    def kill(self):
        """Kills all that runs there, at once."""
        self.cgroup.kill()
        self.bury()

    def bury(self):
        """Waits for the programs, which have been killed."""
        while self._started:
            self._started.pop().wait()
