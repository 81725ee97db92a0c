"""Servers that are ejected when a test wants it."""

from . import until


def ejecting(servers):
    """A pool of these servers, which leaves one out at its first failure and for long."""
    addresses = [server.address for server in servers]
    return {"servers": addresses, "eject": {"failures": 1, "probe_initial": "60s", "probe_max": "60s"}}


def until_ejected(proxy, server):
    """Asks for keys until the server that is gone has been asked."""

    def ejected():
        with proxy.raw() as client:
            for number in range(20):
                client.ask(b"get k%d\r\n" % number)
        return proxy.member(server.address)["state"] == "ejected"

    until(ejected, "a server that is gone is ejected")
