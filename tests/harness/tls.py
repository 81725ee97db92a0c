"""An authority with certificates, and clients and servers that speak TLS."""

import pathlib
import shutil
import socket
import ssl
import subprocess

from . import PATIENCE, ports
from .listening import accepted, close, in_thread
from .raw import Raw, connect

OPENSSL = shutil.which("openssl") or "/usr/bin/openssl"

VERSIONS = {"1.2": ssl.TLSVersion.TLSv1_2, "1.3": ssl.TLSVersion.TLSv1_3}


def _openssl(*arguments):
    subprocess.run([OPENSSL, *map(str, arguments)], check=True, capture_output=True, timeout=PATIENCE)


class Authority:
    """An authority of its own, in `folder`."""

    _ec = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")

    def __init__(self, folder, name="ca"):
        self.folder = pathlib.Path(folder)
        self.file = self.folder / f"{name}.crt"
        self._key = self.folder / f"{name}.key"
        files = ("-keyout", self._key, "-out", self.file)
        _openssl("req", "-x509", *self._ec, *files, "-subj", f"/CN={name}", "-days", "100")

    def certificate(self, name, *names, days=30):
        """Certificate and key, files, of a server with these names; the default is this machine's."""
        names = names or ("DNS:localhost", "IP:127.0.0.1")
        crt, key, request, more = (self.folder / f"{name}.{end}" for end in ("crt", "key", "csr", "ext"))
        _openssl("req", *self._ec, "-keyout", key, "-out", request, "-subj", f"/CN={name}")
        more.write_text("subjectAltName=" + ",".join(names))
        signed = ("-CA", self.file, "-CAkey", self._key, "-CAcreateserial")
        _openssl("x509", "-req", "-in", request, *signed, "-out", crt, "-days", days, "-extfile", more)
        # The servers may have another user.
        key.chmod(0o644)
        return Pair(crt, key)

    def context(self, version=None, pair=None):
        """What a client needs that trusts this authority, and speaks `version` alone."""
        context = ssl.create_default_context(cafile=self.file)
        if version:
            context.minimum_version = context.maximum_version = VERSIONS[version]
        if pair:
            context.load_cert_chain(pair.crt, pair.key)
        return context


class Pair:
    """A certificate and its key."""

    def __init__(self, crt, key):
        self.crt, self.key = crt, key

    def listener(self):
        """What a listener has in a configuration."""
        return {"certificate": str(self.crt), "key": str(self.key)}


class Secure(Raw):
    """A client that speaks TLS. Only a goodbye is an end: a cut is an error."""

    def __init__(self, address, context, name="localhost", session=None):
        sock = connect(address)
        self.sock = context.wrap_socket(
            sock, server_hostname=name, session=session, suppress_ragged_eofs=False
        )
        self.pending = b""

    def shown(self):
        """The number of the certificate that the other end has shown."""
        return self.sock.getpeercert()["serialNumber"]


class Naming:
    """A server of Redis in this process that speaks TLS, answers everything with `+OK`, and notes by which
    name it is asked, and what went wrong."""

    def __init__(self, pair, context=None):
        self._context = context or ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(pair.crt, pair.key)
        self._context.sni_callback = lambda _, name, __: self.names.append(name)
        self.names, self.errors = [], []
        self._listener = socket.create_server(("127.0.0.1", ports.free()))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        in_thread(self._accept)

    def _accept(self):
        for sock in accepted(self._listener):
            in_thread(self._serve, sock)

    def _serve(self, sock):
        try:
            with self._context.wrap_socket(sock, server_side=True) as secure:
                while secure.recv(65536):
                    secure.sendall(b"+OK\r\n")
        except OSError as error:
            self.errors.append(str(error))
            sock.close()

    def stop(self):
        close(self._listener)
