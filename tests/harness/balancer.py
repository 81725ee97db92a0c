"""HAProxy as a load balancer before one proxy."""

import csv
import shutil
import socket
import subprocess

from . import ports

HAPROXY = shutil.which("haproxy", path="/usr/sbin:/usr/bin:/sbin:/bin")


class Balancer:
    """HAProxy in TCP mode before this proxy, which it checks by `options` of its configuration."""

    def __init__(self, folder, backend, check, options):
        self.address = ports.address()
        self._socket = folder / "haproxy.sock"
        file = folder / "haproxy.cfg"
        check_port = check.rsplit(":", 1)[1]
        file.write_text(
            f"global\n    stats socket {self._socket}\n"
            "defaults\n    mode tcp\n    timeout connect 5s\n    timeout client 60s\n    timeout server 60s\n"
            f"listen cache\n    bind {self.address}\n{options}"
            f"    server proxy {backend} check port {check_port} inter 50ms fall 1 rise 1\n"
        )
        self.process = subprocess.Popen([HAPROXY, "-db", "-f", str(file)], stderr=subprocess.DEVNULL)

    def state(self):
        """What it thinks of the proxy: UP or DOWN."""
        try:
            with socket.socket(socket.AF_UNIX) as sock:
                sock.connect(str(self._socket))
                sock.sendall(b"show stat\n")
                text = b"".join(iter(lambda: sock.recv(65536), b"")).decode()
        except OSError:
            return None
        rows = csv.DictReader(text.removeprefix("# ").splitlines())
        [row] = [row for row in rows if row["svname"] == "proxy"]
        return row["status"].split()[0]

    def stop(self):
        self.process.kill()
        self.process.wait()
