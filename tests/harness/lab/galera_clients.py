"""Sixteen clients of the lab's Galera cluster, which write through one proxy and read through another."""

import contextlib
import http.client
import itertools
import re
import threading
import time

import pymysql

from .. import until
from ..galera_witnesses import Witnesses
from ..judge import Judge
from .galera import PASSWORD, PODS, USER
from .objects import is_ready

PAUSE = 0.02
"""Seconds before each statement: the machine has other work in a roll."""

CHECKERS = 3
"""How many clients of `proxima-bench stale` write, and how many read."""

AWAY = (OSError, http.client.HTTPException, AssertionError)
"""What asking has whose server is not there, or has just begun."""

EVICTED = re.compile(r"\b(1047|1180|1213|2013)\b")
"""Errors of what was under way at a server whose pod others evict."""

ASLEEP = 5
"""Seconds without an answer after which a proxy was frozen."""


class Doors:
    """The proxies before the cluster, each of which gets every second connection."""

    def __init__(self, lab, addresses, schema):
        self._lab, self.account = lab, schema
        self._next = itertools.cycle(addresses)

    def connect(self):
        host, port = next(self._next).split(":")
        where = {"host": host, "port": int(port), "user": USER, "password": PASSWORD}
        with self._lab.switch.entered():
            return pymysql.connect(**where, database=self.account.name, charset="utf8mb4", autocommit=True)


class Watch:
    """Looks again and again how many servers each proxy has, and how many pods are not there."""

    def __init__(self, galera, proxies):
        self._galera, self._proxies, self._ended = galera, proxies, threading.Event()
        self.fewest_online, self.most_away = len(PODS), 0
        # A proxy that has just begun, or was frozen, has not asked all servers yet.
        self._knowing = set()
        self._has_looked = False
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._ended.set()
        self._thread.join()
        assert self._has_looked, "no proxy was looked at"

    def _run(self):
        while not self._ended.wait(0.2):
            # A proxy that was killed does not answer, and neither does an API server that is away.
            with contextlib.suppress(*AWAY):
                self._look_at_pods()
                self._look_at_proxies()

    def _look_at_proxies(self):
        knew, self._knowing = self._knowing, set()
        for pod in self._proxies.serving():
            with contextlib.suppress(*AWAY):
                begun = time.monotonic()
                online = [each for each in self._proxies.members(pod) if each["role"] != "out"]
                process = pod["metadata"]["uid"], self._proxies.began(pod)
                was_awake = time.monotonic() - begun < ASLEEP
                if process in knew and was_awake:
                    self.fewest_online = min(self.fewest_online, len(online))
                if len(online) > 1 or process in knew and was_awake:
                    self._knowing.add(process)
                    self._has_looked = True

    def _look_at_pods(self):
        pods = self._galera.pods().values()
        there = [pod for pod in pods if is_ready(pod) and "deletionTimestamp" not in pod["metadata"]]
        self.most_away = max(self.most_away, len(PODS) - len(there))


class Clients:
    """Two clients that write, two that write in transactions of two statements, four that read, two that
    connect for each read, and six of `proxima-bench stale`, until it is left."""

    def __init__(self, lab, galera, proxies, folder):
        self._galera = galera
        addresses = proxies.addresses()
        doors = Doors(lab, addresses, galera.new_schema())
        self.connect = doors.connect
        # Each writer's rows are read through both proxies, as connections go to them in turn.
        self._witnesses = Witnesses(doors, words=("strict", "strict"), newcomers=2, pause=PAUSE)
        self._judge = Judge(
            ",".join(addresses),
            folder,
            writers=CHECKERS,
            readers=CHECKERS,
            before=lab.switch.inside(),
            options=("--protocol", "mysql", "--timeout", "20s", "--pause", "20ms"),
        )
        self._watch = Watch(galera, proxies)

    def __enter__(self):
        self._witnesses.__enter__()
        self._watch.__enter__()
        self._begun = time.monotonic()
        self.more()
        return self

    def __exit__(self, *_):
        self.seconds = time.monotonic() - self._begun
        self._watch.__exit__()
        self._witnesses.__exit__()
        self._report = self._judge.report()

    def more(self):
        """All kinds of clients do more."""
        already = dict(self._witnesses.done)
        kinds = (*self._witnesses.pauses, "arrival")
        until(
            lambda: all(self._witnesses.done[kind] > already.get(kind, 0) + 10 for kind in kinds),
            "all of them go on",
        )

    def verdict(self):
        """What they have seen, once they have ended."""
        self._witnesses.compare(self._galera.servers())
        return Verdict(self._witnesses, self._report, self._watch)


def under_load(lab, galera, proxies, folder, roll):
    """What clients saw of a roll, and how many seconds it took."""
    with Clients(lab, galera, proxies, folder) as clients:
        begun = time.monotonic()
        roll()
        took = time.monotonic() - begun
        clients.more()
    return clients.verdict(), took


class Verdict:
    """What clients have seen of a roll."""

    REFUSED = ("refused_writes", "lost_writes", "refused_reads", "lost_reads")
    WRONG = (
        "stale_reads",
        "backward_reads",
        "foreign_replies",
        "lost_acknowledged_writes",
        "writes_applied_twice",
        "wrong",
    )

    def __init__(self, witnesses, report, watch):
        words = [report[key] for key in ("first_write_failure", "first_read_failure") if report[key]]
        self.errors = sum(witnesses.errors.values()) + sum(report[key] for key in self.REFUSED)
        self.texts = [*witnesses.texts, *words]
        # Of its own clients the bench tells the sum, and the first text.
        sums = [sum(report[key] for key in keys) / CHECKERS for keys in (self.REFUSED[:2], self.REFUSED[2:])]
        self.most_of_a_client = max(*witnesses.errors_of.values(), *sums, 0)
        self.wrong = [*witnesses.wrong, *(f"{key}: {report[key]}" for key in self.WRONG if report[key])]
        self.requests = sum(witnesses.done.values()) + report["acknowledged_writes"] + report["hits"]
        self.no_write_for = witnesses.pauses["write"].longest
        self.fewest_online, self.most_away = watch.fewest_online, watch.most_away

    def check(self, errors=True):
        """Nothing was stale, lost, doubled or another's; two servers were there at any time."""
        assert self.wrong == []
        assert self.most_away <= 1
        if errors:
            assert self.errors == 0, self.texts[:20]
            assert self.fewest_online >= 2

    def check_beside_evictions(self):
        """The same, where others evict a pod that nobody was led away from: what is under way there fails,
        once for a client at most. A proxy may have one server alone, as a budget counts one that drains."""
        self.check(errors=False)
        assert [text for text in self.texts if not EVICTED.search(text)] == []
        assert self.most_of_a_client <= 1, self.texts[:20]
        assert self.fewest_online >= 1

    def __str__(self):
        return (
            f"{self.errors} errors in {self.requests} requests, no write for "
            f"{1000 * self.no_write_for:.0f} ms at most, {self.fewest_online} servers online at least"
        )
