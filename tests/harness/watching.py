"""One who watches a proxy: the document that it follows, and the changes of state that it is told."""

import http.client
import json
import threading

from . import until


def patched(target, patch):
    """What a JSON Merge Patch (RFC 7396) makes of a document."""
    if not isinstance(patch, dict):
        return patch
    target = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            target.pop(name, None)
        else:
            target[name] = patched(target.get(name), value)
    return target


class Watcher:
    """Follows `/watch` in a thread of its own."""

    def __init__(self, proxy, path="/watch", since=None):
        host, port = proxy.admin.rsplit(":", 1)
        self._connection = http.client.HTTPConnection(host, int(port))
        headers = {} if since is None else {"Last-Event-ID": str(since)}
        self._connection.request("GET", path, headers=headers)
        self._answer = self._connection.getresponse()
        self.status = self._answer.status
        self.document, self.events, self.names, self.end = None, [], [], None
        self.body = "" if self.status == 200 else self._answer.read().decode()
        self._thread = threading.Thread(target=self._follow, daemon=True)
        if self.status == 200:
            self._thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._connection.close()
        self._answer.close()

    def _follow(self):
        name = None
        try:
            for line in self._answer:
                key, _, value = line.decode().rstrip("\n").partition(": ")
                if key == "event":
                    name = value
                elif key == "data":
                    self._take(name, json.loads(value))
        except (OSError, ValueError, AttributeError, http.client.HTTPException):
            pass

    def _take(self, name, data):
        self.names.append(name)
        if name == "log":
            self.events.append(data)
        elif name == "end":
            self.end = data
        else:
            self.document = data if name == "state" else patched(self.document, data)

    def until(self, condition, what):
        """Waits until the document is such."""
        return until(lambda: self.document is not None and condition(self.document), what)
