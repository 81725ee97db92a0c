"""A DNS server on loopback, by UDP and TCP, whose records a test changes while it runs."""

import random
import socket
import struct
import threading

from dnslib import AAAA, QTYPE, RCODE, RR, SRV, A, DNSRecord

from . import ports

TTL = 3600
"""Longer than any test: whoever keeps to it never sees a change."""


class Names:
    """Answers with `records`, shuffled; a name that has none does not exist.

    An answer that is too large for UDP is truncated, as the client has said what it takes. `trouble` may be a function of
    request, good reply and transport (`udp`, `tcp`) that gives other bytes, or none for silence. With SRV records come so
    many addresses of their targets as `along` says. A TCP connection is answered from the records of when it was made, as
    dnsmasq does.
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
            threading.Thread(target=serve, daemon=True).start()

    def set(self, name, *addresses):
        """From now on `name` has these addresses; without any it exists and has no records."""
        self.records[name] = [RR(name, QTYPE.AAAA, ttl=TTL, rdata=AAAA(each)) if ":" in each
                              else RR(name, QTYPE.A, ttl=TTL, rdata=A(each)) for each in addresses]

    def set_services(self, name, *services):
        """The same with (priority, weight, port, target)."""
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
        targets = [str(record.rdata.target).rstrip(".") for record in known or [] if record.rtype == QTYPE.SRV]
        addresses = [record for target in targets for record in records.get(target, [])]
        reply.add_ar(*addresses[: self.along])
        packed = reply.pack()
        if transport == "udp":
            # The class of an OPT record is how much the client takes.
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
        while True:
            try:
                sock, _ = self._tcp.accept()
            except OSError:
                return
            threading.Thread(target=self._talk, args=(sock,), daemon=True).start()

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
            try:
                # A thread that waits in it holds it open; shutting it down wakes it.
                sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            sock.close()
