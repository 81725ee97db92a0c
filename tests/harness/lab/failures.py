"""Failures of a test in the lab: none hides another one, and what pods and events say stands beside them."""

import contextlib
import datetime

LINES = {"proxima": 80, "": 15}
"""How many of the last lines of a log are told, by the first word of the pod's name."""


class Failures:
    """What has failed until now."""

    def __init__(self, lab, space):
        self._lab, self._space, self._found = lab, space, []

    @contextlib.contextmanager
    def noted(self):
        """The test goes on behind what fails here."""
        try:
            yield
        except Exception as error:
            error.add_note(f"at {datetime.datetime.now(datetime.UTC):%H:%M:%S.%f}")
            self._found.append(error)

    def check(self):
        """Raises all of them together."""
        if self._found:
            together = ExceptionGroup("the test has failed", self._found)
            together.add_note(told(self._lab, self._space))
            raise together


def told(lab, space):
    """The pods of a namespace, the end of each of their logs, and the last events."""
    place = f"--namespace={space}"
    seen = [_run(lab, place, "get", "pods", "--output=wide")]
    for pod in lab.pods("", space):
        name = pod["metadata"]["name"]
        tail = LINES.get(name.split("-")[0], LINES[""])
        logs = ("logs", "--timestamps", f"--tail={tail}", name)
        restarts = sum(each["restartCount"] for each in pod["status"].get("containerStatuses", ()))
        seen.append(f"{name}\n{_run(lab, place, *logs)}")
        if restarts:
            seen.append(f"{name}, before its restart\n{_run(lab, place, *logs, '--previous')}")
    events = _run(lab, place, "get", "events", "--sort-by=.lastTimestamp")
    seen.append("\n".join(events.splitlines()[-60:]))
    return "\n\n".join(seen)


def _run(lab, *words):
    """What `kubectl` writes, or why it does not."""
    try:
        return lab.kubectl(*words)
    except Exception as error:
        return repr(error)
