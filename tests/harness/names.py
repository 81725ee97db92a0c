"""A DNS server on loopback, by UDP and TCP, whose records a test changes while it runs, and a system that
asks it."""

import os
import pathlib
import random
import socket
import struct
import subprocess

from dnslib import AAAA, QTYPE, RCODE, RR, SRV, A, DNSRecord

from . import ports
from .listening import accepted, close, in_thread

TTL = 3600
"""Seconds, longer than any test: a resolver that honours this time to live never sees a change."""


class Names:
    """Answers with `records`, shuffled. A name that has none does not exist.

    An answer that is larger than the client takes by UDP is truncated. `trouble` may be a function of
    request, good reply and transport (`udp`, `tcp`) that returns other bytes, or None for silence. `along`
    says how many addresses of their targets come with SRV records. A TCP connection is answered from the
    records as they were when it was made, as dnsmasq does.
    """

    def __init__(self, host="127.0.0.1", port=None):
        self.host, self.port = host, port or ports.free(host)
        self.address = f"{host}:{self.port}"
        self.records = {}
        self.trouble = None
        self.along = 0
        self.asked = []
        """(name, type, transport) of every question."""
        self._udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._udp.bind((self.host, self.port))
        self._tcp = socket.create_server((self.host, self.port))
        for serve in (self._serve_udp, self._serve_tcp):
            in_thread(serve)

    def set(self, name, *addresses):
        """Gives `name` these addresses from now on. Without any, the name exists and has no records."""
        self.records[name] = [
            RR(name, QTYPE.AAAA, ttl=TTL, rdata=AAAA(each))
            if ":" in each
            else RR(name, QTYPE.A, ttl=TTL, rdata=A(each))
            for each in addresses
        ]

    def set_services(self, name, *services):
        """Gives `name` services, each with (priority, weight, port, target)."""
        self.records[name] = [RR(name, QTYPE.SRV, ttl=TTL, rdata=SRV(*service)) for service in services]

    def questions(self, transport):
        return sum(asked[2] == transport for asked in list(self.asked))

    def _reply(self, data, transport, records):
        request = DNSRecord.parse(data)
        name, kind = str(request.q.qname).rstrip("."), request.q.qtype
        self.asked.append((name, QTYPE[kind], transport))
        reply = request.reply()
        known = records.get(name)
        if known is None:
            reply.header.rcode = RCODE.NXDOMAIN
        for record in random.sample(known or [], len(known or [])):
            if record.rtype == kind:
                reply.add_answer(record)
        targets = [
            str(record.rdata.target).rstrip(".") for record in known or [] if record.rtype == QTYPE.SRV
        ]
        addresses = [record for target in targets for record in records.get(target, [])]
        reply.add_ar(*addresses[: self.along])
        packed = reply.pack()
        if transport == "udp":
            # The class of an OPT record says how many bytes the client takes.
            taken = next((extra.rclass for extra in request.ar if extra.rtype == QTYPE.OPT), 512)
            if len(packed) > taken:
                reply.rr = reply.rr[:10]
                reply.header.tc = 1
                packed = reply.pack()
        trouble = self.trouble
        return trouble(request, packed, transport) if trouble else packed

    def _serve_udp(self):
        while True:
            try:
                data, client = self._udp.recvfrom(65536)
            except OSError:
                return
            if not data:
                return
            reply = self._reply(data, "udp", self.records)
            if reply is not None:
                self._udp.sendto(reply, client)

    def _serve_tcp(self):
        for sock in accepted(self._tcp):
            in_thread(self._talk, sock)

    def _talk(self, sock):
        records = dict(self.records)
        with sock, sock.makefile("rb") as stream:
            while head := stream.read(2):
                reply = self._reply(stream.read(struct.unpack("!H", head)[0]), "tcp", records)
                if reply is None:
                    return
                sock.sendall(struct.pack("!H", len(reply)) + reply)

    def stop(self):
        for sock in (self._udp, self._tcp):
            close(sock)


def rcode(code):
    def trouble(request, reply, transport):
        bad = request.reply()
        bad.header.rcode = code
        return bad.pack()

    return trouble


def truncated(request, reply, transport):
    """Answers a part by UDP, and nothing by TCP."""
    if transport == "tcp":
        return None
    part = request.reply()
    part.header.tc = 1
    return part.pack()


TROUBLES = {
    "NXDOMAIN": rcode(RCODE.NXDOMAIN),
    "SERVFAIL": rcode(RCODE.SERVFAIL),
    "REFUSED": rcode(RCODE.REFUSED),
    "empty": rcode(RCODE.NOERROR),
    "silence": lambda request, reply, transport: None,
    "garbage": lambda request, reply, transport: reply[:2] + b"\xff" * 40,
    "half": lambda request, reply, transport: reply[:-20],
    "not a reply": lambda request, reply, transport: request.pack(),
    "another id": lambda request, reply, transport: b"\0\0" + reply[2:],
    "another question": lambda request, reply, transport: reply.replace(b"memcached", b"memcachee"),
    "truncated": truncated,
}


def may_mount():
    """Whether this user may mount files over those of the system and use port 53, as only root may."""
    command = ["unshare", "--mount", "mount", "--bind", "/etc/hostname", "/etc/hosts"]
    return os.geteuid() == 0 and subprocess.run(command, capture_output=True).returncode == 0


class System:
    """Replaces /etc/resolv.conf and /etc/hosts by `resolv` and `hosts` for a program started behind the
    command `before`.

    The files name the DNS server `names`, as in a pod: a search list, ndots:5, the address of the cluster's
    DNS.
    """

    def __init__(self, folder):
        self.names = _on_port_53()
        self.resolv, self.hosts = pathlib.Path(folder) / "resolv.conf", pathlib.Path(folder) / "hosts"
        search = "search cache.svc.cluster.local svc.cluster.local cluster.local\n"
        self.resolv.write_text(f"{search}nameserver {self.names.host}\noptions ndots:5\n")
        self.hosts.write_text("")
        mounts = f"mount --bind {self.resolv} /etc/resolv.conf && mount --bind {self.hosts} /etc/hosts"
        self.before = ["unshare", "--mount", "sh", "-c", f'{mounts} && exec "$@"', "sh"]

    def stop(self):
        self.names.stop()


def _on_port_53():
    """A DNS server on an address that no other program, such as another run of the tests, uses."""
    while True:
        try:
            return Names(f"127.53.{random.randrange(256)}.{random.randrange(1, 255)}", 53)
        except OSError:
            continue
