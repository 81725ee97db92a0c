"""What the servers in this process have in common: they accept in one thread, and serve each in another."""

import socket
import threading


def in_thread(serve, *arguments):
    """Calls `serve` in a thread of its own, which ends with the process at the latest."""
    threading.Thread(target=serve, args=arguments, daemon=True).start()


def accepted(listener):
    """The connections that come to a listener, until `close`."""
    while True:
        try:
            sock, _ = listener.accept()
        except OSError:
            return
        yield sock


def close(sock):
    """Closes a socket for which a thread may wait."""
    try:
        # The thread holds the socket open; shutting it down wakes the thread.
        sock.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass
    sock.close()
