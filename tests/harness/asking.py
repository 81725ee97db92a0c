"""A client that asks while a test looks."""

import contextlib
import itertools
import threading

from . import PATIENCE


@contextlib.contextmanager
def asking(proxy, *requests):
    """Meanwhile a client sends these requests one after the other, again and again."""
    is_over = threading.Event()

    def ask():
        with proxy.raw() as client:
            for request in itertools.cycle(requests):
                if is_over.is_set():
                    return
                client.ask(request)

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join(PATIENCE)
