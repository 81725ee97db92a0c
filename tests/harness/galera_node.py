"""One server of a Galera cluster, as a process."""

import contextlib
import os
import pathlib
import pwd
import re
import signal
import subprocess

import pymysql

from . import PATIENCE, freeze, ports
from .mysql import QUICK

PROVIDER = pathlib.Path("/usr/lib/galera/libgalera_smm.so")

ELSEWHERE = "127.0.1.1"
"""Another address at which clients of this machine reach each server."""

_ACCOUNT = "mysql"
"""Whom a server runs as when we are root. As root it could not take over the state of another server."""


def _as_account():
    """The words that run a server as that account. It ends with the thread that has started it."""
    words = ["setpriv", "--pdeathsig", "KILL"]
    if os.geteuid() == 0:
        words += ["--reuid", _ACCOUNT, "--regid", _ACCOUNT, "--init-groups"]
    return words


class GaleraNode:
    """A server with its ports, in a folder of its own. Its data is to be put there before its start.

    The other servers reach it at `host`, and clients at `serving`. `before` is a command that runs its
    program, and `options` come last.
    """

    def __init__(self, kind, folder, host="127.0.0.1", serving="127.0.0.1", before=(), options=()):
        folder.mkdir()
        self._kind, self._folder, self._host = kind, folder, host
        self._before, self._options = before, options
        self.data, self.socket, self.log = folder / "data", folder / "socket", folder / "log.err"
        self.port, group, increment, self._copy = (ports.free() for _ in range(4))
        self.serving, self.group = serving, f"{host}:{group}"
        provider = [f"gmcast.listen_addr=tcp://{self.group}", f"ist.recv_addr={host}:{increment}"]
        self._provider = ";".join([*provider, f"base_host={host};base_port={group}", "gcache.size=16M"])
        self.process = None

    def _command(self, groups, *options):
        place = [f"--socket={self.socket}", f"--pid-file={self._folder}/pid", f"--log-error={self.log}"]
        place += [f"--bind-address={self.serving},{ELSEWHERE}", f"--port={self.port}"]
        place += [f"--secure-file-priv={self._folder}"]
        galera = [f"--wsrep-provider={PROVIDER}", f"--wsrep-provider-options={self._provider}"]
        galera += ["--wsrep-on=ON", f"--wsrep-cluster-address=gcomm://{','.join(groups)}"]
        galera += ["--wsrep-cluster-name=tests", f"--wsrep-node-name={self._folder.name}"]
        galera += [f"--wsrep-node-address={self._host}", "--wsrep-sst-method=rsync"]
        galera += [f"--wsrep-sst-receive-address={self._host}:{self._copy}"]
        galera += ["--binlog-format=ROW", "--innodb-autoinc-lock-mode=2", *self._options]
        program = self._kind.start(self.data, *place, *QUICK, *galera, *options)
        return [*self._before, *_as_account(), *program]

    def give(self):
        """Gives the folder to the account that the server runs as."""
        if os.geteuid() == 0:
            account = pwd.getpwnam(_ACCOUNT)
            for path in [self._folder, *self._folder.rglob("*")]:
                os.chown(path, account.pw_uid, account.pw_gid)

    def start(self, groups):
        """Starts the server, which joins the others of its cluster by their addresses. The first one of a
        cluster has none."""
        how = self._position(groups) if groups else ["--wsrep-new-cluster"]
        # What it starts to take over another server's state is of its group, and is killed with it.
        self.process = subprocess.Popen(self._command(groups, *how), start_new_session=True)

    def _position(self, groups):
        """Where a server that was killed begins. It then asks for what is missing, and not for all data."""
        state = self.data / "grastate.dat"
        if not state.exists() or not re.search(r"^seqno:\s+-1$", state.read_text(), re.M):
            return []
        log = self._folder / "recovered.err"
        log.unlink(missing_ok=True)
        command = self._command(groups, "--wsrep-recover", f"--log-error={log}")
        subprocess.run(command, check=True, timeout=PATIENCE)
        position = re.findall(r"Recovered position: *(\S+)", log.read_text())[-1]
        return [f"--wsrep-start-position={position}"]

    def is_synced(self):
        """Whether it serves, as a member of its cluster."""
        assert self.is_running(), f"the server ended: {self.log.read_text()[-3000:]}"
        try:
            with pymysql.connect(unix_socket=str(self.socket), user="root") as direct:
                cursor = direct.cursor()
                cursor.execute("SHOW STATUS LIKE 'wsrep_local_state_comment'")
                return cursor.fetchone()[1] == "Synced"
        except pymysql.err.MySQLError:
            return False

    def is_running(self):
        return self.process is not None and self.process.poll() is None

    def freeze(self):
        freeze(self.process)

    def thaw(self):
        self.process.send_signal(signal.SIGCONT)

    def terminate(self):
        """Asks it to end well."""
        self.process.terminate()

    def forget(self):
        """Forgets its place in the history of its cluster while it is stopped. It then takes over all data of
        another server, or is the first one of a new cluster."""
        for name in ("grastate.dat", "gvwstate.dat"):
            (self.data / name).unlink(missing_ok=True)

    def kill(self):
        if self.process is not None:
            # The group outlives its first process if that has ended before.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait(PATIENCE)
