"""A daemon that serializes a cluster map for everybody who asks.

    python3 origin.py PORT

`GET /osd_map.N` answers with a map of N entries as JSON, which is made anew for each request, as Ceph's
manager did for each of its modules. `ETag` is the epoch of the map: who names it in `If-None-Match` gets a
304 and costs next to nothing. `POST /change` makes the next epoch. `GET /counts` says how many maps were
made, how many answers were 304, and the CPU time of this process in seconds. `POST /etag/off` leaves the
ETag out.
"""

import http.server
import json
import sys
import threading
import time


class Map:
    """A cluster map whose entries change with its epoch."""

    def __init__(self):
        self.epoch = 1
        self.names_epoch = True
        self.made = 0
        self.unchanged = 0
        self.lock = threading.Lock()

    def entries(self, number):
        return [
            {
                "osd": osd,
                "uuid": f"{osd:08x}-5bd1-4e44-9d38-2f3ab4bd4b1f",
                "up": 1,
                "in": 1,
                "weight": 1.0,
                "primary_affinity": 1.0,
                "last_clean_begin": self.epoch - 1,
                "last_clean_end": self.epoch,
                "up_from": osd * 7,
                "up_thru": self.epoch,
                "down_at": 0,
                "lost_at": 0,
                "public_addrs": {"addrvec": [{"type": "v2", "addr": f"10.0.{osd >> 8}.{osd & 255}:6800"}]},
                "cluster_addrs": {"addrvec": [{"type": "v2", "addr": f"10.1.{osd >> 8}.{osd & 255}:6801"}]},
                "state": ["exists", "up"],
            }
            for osd in range(number)
        ]

    def serialize(self, number):
        with self.lock:
            self.made += 1
        return json.dumps({"epoch": self.epoch, "osds": self.entries(number)}).encode()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1
    disable_nagle_algorithm = True
    map = Map()

    def answer(self, status, body=b"", headers=()):
        self.send_response_only(status)
        for name, value in headers:
            self.send_header(name, value)
        if status != 304:
            self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()

    def do_GET(self):
        cluster, name = self.map, self.path[1:]
        if name == "counts":
            counts = {"made": cluster.made, "unchanged": cluster.unchanged, "cpu": time.process_time()}
            return self.answer(200, json.dumps(counts).encode())
        kind, _, number = name.partition(".")
        if kind != "osd_map" or not number.isdecimal():
            return self.answer(404)
        tag = f'"{cluster.epoch}"'
        if cluster.names_epoch and self.headers["if-none-match"] == tag:
            with cluster.lock:
                cluster.unchanged += 1
            return self.answer(304, headers=[("etag", tag)])
        headers = [("content-type", "application/json")]
        if cluster.names_epoch:
            headers.append(("etag", tag))
        return self.answer(200, cluster.serialize(int(number)), headers)

    def do_POST(self):
        if self.path == "/change":
            self.map.epoch += 1
        elif self.path.startswith("/etag/"):
            self.map.names_epoch = self.path == "/etag/on"
        else:
            return self.answer(404)
        return self.answer(200)

    def log_message(self, *_):
        """Says nothing: the requests are counted."""


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128


if __name__ == "__main__":
    Server(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
