"""An API server of Kubernetes that knows EndpointSlices and Leases, and lies when it is told to."""

import json
import queue
import socket
import ssl
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

from .pod import Pod
from .tls import Authority

PATH = "/apis/discovery.k8s.io/v1/namespaces/{}/endpointslices"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/{}/leases"
STATUSES = {"unauthorized": 401, "forbidden": 403, "too many requests": 429, "broken": 500, "away": 503}


def endpoint(address, pod=None, uid=None, node="n1", zone="z1", serving=True, terminating=False):
    """An endpoint as a slice has it."""
    pod = pod or f"pod-{address}"
    return {
        "addresses": [address],
        "conditions": {"ready": serving and not terminating, "serving": serving, "terminating": terminating},
        "nodeName": node,
        "zone": zone,
        "targetRef": {"kind": "Pod", "name": pod, "uid": uid or f"uid-{pod}"},
    }


class ApiServer:
    """The server. `trouble` says what is wrong with its answers from now on; None: nothing."""

    def __init__(self, folder, namespace="cache", service="mc"):
        self.service, self.namespace = service, namespace
        self.slices, self.leases, self.version, self.trouble = {}, {}, 100, None
        self.allows_leases, self.loses_answers = True, 0
        self.listed, self.watched = 0, 0
        self._lock, self._watchers = threading.Lock(), []
        self.token = "first"
        authority = Authority(folder, "kubernetes")
        pair = authority.certificate("apiserver")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(pair.crt, pair.key)
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self._server.socket = context.wrap_socket(
            self._server.socket, server_side=True, do_handshake_on_connect=False
        )
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self._pod = Pod(folder, authority, self._server.server_address[1], namespace, self.token)
        self.before = self._pod.before

    def stop(self):
        self.cut()
        self._server.shutdown()
        self._server.server_close()

    def give_token(self, token):
        """The token of the pod is this one now."""
        self._pod.give(token)
        self.token = token

    def set(self, name, *endpoints, port=11211, service=None, family="IPv4"):
        """A slice has these endpoints now."""
        with self._lock:
            kind = "MODIFIED" if name in self.slices else "ADDED"
            self.version += 1
            self.slices[name] = {
                "metadata": {
                    "name": name,
                    "resourceVersion": str(self.version),
                    "labels": {"kubernetes.io/service-name": service or self.service},
                },
                "addressType": family,
                "endpoints": list(endpoints),
                "ports": [{"name": "mc", "port": port, "protocol": "TCP"}],
            }
            self._tell(kind, self.slices[name])

    def delete(self, name):
        with self._lock:
            self.version += 1
            gone = self.slices.pop(name)
            gone["metadata"]["resourceVersion"] = str(self.version)
            self._tell("DELETED", gone)

    def write(self, name, lease, is_new):
        """Makes or replaces a Lease. Returns the status."""
        with self._lock:
            if is_new == (name in self.leases):
                return 409 if is_new else 404
            known = self.leases.get(name, {"metadata": {}})["metadata"].get("resourceVersion")
            if not is_new and lease["metadata"].get("resourceVersion") != known:
                return 409
            self.version += 1
            lease["metadata"]["resourceVersion"] = str(self.version)
            self.leases[name] = lease
            return 201 if is_new else 200

    def holder(self):
        """The fleet of the Service, as its Lease says."""
        return self.leases[self.service]["spec"]["holderIdentity"]

    def say(self, line):
        """Sends these bytes to all who watch."""
        for watcher in self._watchers:
            watcher.put(line)

    def cut(self):
        """Ends all watches."""
        self.say(None)

    def _tell(self, kind, slice):
        self.say(json.dumps({"type": kind, "object": slice}).encode() + b"\n")

    def page(self, more):
        """A page of the list, with two slices."""
        names = sorted(self.slices)
        begin = int(more or 0)
        rest = str(begin + 2) if begin + 2 < len(names) else ""
        return {
            "kind": "EndpointSliceList",
            "metadata": {"resourceVersion": str(self.version), "continue": rest},
            "items": [self.slices[name] for name in names[begin : begin + 2]],
        }

    def watch(self):
        """What happens from now on."""
        told = queue.Queue()
        with self._lock:
            self._watchers.append(told)
            self.watched += 1
        return told

    def forget(self, told):
        with self._lock:
            self._watchers.remove(told)


def _handler(server):
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_):
            pass

        def do_POST(self):
            self._write(True)

        def do_PUT(self):
            self._write(False)

        def _write(self, is_new):
            lease = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if self._is_refused():
                return
            status = server.write(lease["metadata"]["name"], lease, is_new)
            if server.loses_answers and status < 300:
                server.loses_answers -= 1
                self._cut()
                return
            self._answer(status, lease)

        def do_GET(self):
            if self._is_refused():
                return None
            asked = urlsplit(self.path)
            words = {name: values[-1] for name, values in parse_qs(asked.query).items()}
            trouble = server.trouble
            leases = LEASES.format(server.namespace)
            if asked.path.startswith(leases):
                lease = server.leases.get(asked.path.removeprefix(leases + "/"))
                return self._answer(200 if lease else 404, lease or {"kind": "Status"})
            expected = f"kubernetes.io/service-name={server.service}"
            if asked.path != PATH.format(server.namespace) or words.get("labelSelector") != expected:
                return self._answer(404, {"kind": "Status"})
            if "watch" in words:
                return self._watch(words)
            server.listed += 1
            page = server.page(words.get("continue"))
            if trouble == "no list":
                page = {"kind": "PodList", "metadata": {}, "items": []}
            if trouble == "older":
                page["metadata"]["resourceVersion"], page["items"] = "1", []
            if trouble == "put back":
                page["metadata"]["resourceVersion"] = "2"
            if trouble == "another service":
                for item in page["items"]:
                    item["metadata"] = {**item["metadata"], "labels": {"kubernetes.io/service-name": "other"}}
            if trouble == "no JSON":
                return self._answer(200, None, b"{")
            return self._answer(200, page)

        def _is_refused(self):
            """Whether the request is not answered as it should be, which has happened then."""
            trouble = server.trouble
            if trouble == "silent":
                # It has taken the question, and says nothing.
                self.rfile.read(1)
            elif trouble == "cut":
                self._cut()
            elif trouble in STATUSES:
                self._answer(STATUSES[trouble], {"kind": "Status", "message": trouble})
            elif self.headers["Authorization"] != f"Bearer {server.token}":
                self._answer(401, {"kind": "Status"})
            elif "/leases" in self.path and not server.allows_leases:
                self._answer(403, {"kind": "Status"})
            else:
                return False
            return True

        def _cut(self):
            self.connection.shutdown(socket.SHUT_RDWR)
            self.close_connection = True

        def _answer(self, code, body, raw=None):
            raw = raw or json.dumps(body).encode()
            self.send_response(code)
            self.send_header("Content-Length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)

        def _watch(self, words):
            told = server.watch()
            try:
                self.send_response(200)
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                if int(words["resourceVersion"]) < server.version:
                    # What has happened in between.
                    for slice in list(server.slices.values()):
                        self._line(json.dumps({"type": "MODIFIED", "object": slice}).encode() + b"\n")
                while (line := told.get()) is not None:
                    self._line(line)
                self.wfile.write(b"0\r\n\r\n")
            except OSError:
                pass
            finally:
                server.forget(told)
                self.close_connection = True

        def _line(self, line):
            self.wfile.write(b"%x\r\n%b\r\n" % (len(line), line))
            self.wfile.flush()

    return Handler
