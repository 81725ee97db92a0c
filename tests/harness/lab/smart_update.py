"""The operator in the lab, and its object for the Galera cluster."""

import contextlib
import os
import re
import signal

import yaml

from .. import until
from .galera import NAME, SPACE
from .galera_proxies import EXAMPLE
from .objects import is_ready
from .release import image

PROGRAM = "/usr/local/bin/proxima-operator"

SELECTED = "app.kubernetes.io/instance=proxima,app.kubernetes.io/component=operator"
_ALL = f"/apis/proxima.io/v1alpha1/namespaces/{SPACE}/smartupdates"
_PATH = f"{_ALL}/{NAME}"


class SmartUpdate:
    """The operator, by the chart, with an object that rolls the cluster."""

    def __init__(self, lab, proxies):
        self._lab = lab
        proxies.install(operator={"enabled": True, "image": image(lab, "operator")})
        lab.ready(SELECTED, 1, SPACE)
        until(self._is_known, "the API server knows SmartUpdates", every=0.1)
        lab.apply(self.example())
        self.wait_for("Ready")

    def example(self, name=NAME, **spec):
        """The object of the example, by another name or with more in it."""
        made = yaml.safe_load((EXAMPLE / "smartupdate.yaml").read_text())
        made["metadata"] = {"name": name, "namespace": SPACE}
        made["spec"] |= spec
        return made

    def _is_known(self):
        return (
            self._lab.plane.ask("GET", _PATH)[0] in (200, 404)
            and self._lab.plane.ask("GET", "/apis/proxima.io/v1alpha1")[0] == 200
        )

    def status(self, name=NAME):
        """What the operator says of the object as it is now; an empty map: nothing yet."""
        found = self._lab.get(f"{_ALL}/{name}")
        status = found.get("status", {})
        return status if status.get("observedGeneration") == found["metadata"]["generation"] else {}

    def condition(self, kind, name=NAME):
        """A condition; an empty map: there is none."""
        found = self.status(name).get("conditions", [])
        return next((each for each in found if each["type"] == kind), {})

    def wait_for(self, kind, reason=None, name=NAME):
        """Waits until a condition is true, with this reason, and returns it."""

        def found():
            seen = self.condition(kind, name)
            is_meant = seen.get("status") == "True" and reason in (None, seen["reason"])
            return seen if is_meant else None

        return self._explained(found, f"{kind} {reason or ''}")

    def wait_for_step(self, name):
        """Waits until a step is under way. Some are over after a few milliseconds."""
        for change in self._lab.plane.watch(f"{_ALL}?fieldSelector=metadata.name={NAME}"):
            if change["object"].get("status", {}).get("step", {}).get("name") == name:
                return
        raise AssertionError(f"the API server has ended before step {name}")

    def wait_for_roll(self, revision):
        """Waits until a roll to this revision has ended, and returns what is said of it."""

        def found():
            last = self.status().get("lastRoll", {})
            return last if last.get("revision") == revision else None

        return self._explained(found, f"a roll to {revision} has ended", longest=180)

    def _explained(self, condition, what, **times):
        try:
            return until(condition, what, every=0.05, **times)
        except AssertionError as error:
            with contextlib.suppress(Exception):
                error.add_note(f"{self.status()}\n{self.log()[-5000:]}")
            raise

    def moves(self):
        """For how long writes have waited in each move of the writer, in milliseconds: its events say it."""
        events = self._lab.get(f"/apis/events.k8s.io/v1/namespaces/{SPACE}/events")["items"]
        notes = [each["note"] for each in events if each["reason"] == "WriterMoved"]
        return [int(re.search(r"held (\d+) ms", note)[1]) for note in notes]

    def log(self):
        return self._lab.kubectl("logs", f"--namespace={SPACE}", f"--selector={SELECTED}", "--tail=200")

    def kill(self):
        """Kills the operator; its kubelet starts it again."""
        for node in self._lab.nodes.values():
            for process in node.processes(PROGRAM):
                os.kill(process, signal.SIGKILL)

    def scale(self, count):
        """Ends the operator, or begins it."""
        place = f"--namespace={SPACE}"
        self._lab.kubectl("scale", place, "deployment/proxima-operator", f"--replicas={count}")
        if count == 0:
            until(lambda: not self._pods(), "the operator is not there", every=0.1)

    def is_there(self):
        return any(map(is_ready, self._pods()))

    def _pods(self):
        return self._lab.pods(SELECTED, SPACE)
