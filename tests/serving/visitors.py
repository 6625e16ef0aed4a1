"""Connections that are opened, asked one thing and closed again, many at a time, by one thread."""

from __future__ import annotations

import errno
import selectors
import socket
import threading
import time
from collections import Counter

from cable import SERVER, Cable
from server import PORT

ASK, REPLY = b"*1\r\n$4\r\nPING\r\n", b"+PONG\r\n"
#: Seconds after which a visit is given up, and its outcome is `silent`.
PATIENCE = 60


class Visitors:
    """Visits of a service, on a thread of their own, until so many have ended: `outcomes` counts how. `reached` says that the first
    third has ended."""

    def __init__(self, cable: Cable, visits: int, at_a_time: int) -> None:
        self.outcomes: Counter[str] = Counter()
        self.reached = threading.Event()
        self._cable, self._visits, self._at_a_time = cable, visits, at_a_time
        self._selector = selectors.DefaultSelector()
        self._began = 0
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def join(self) -> Counter[str]:
        self._thread.join()
        if self._failure is not None:
            raise self._failure
        return self.outcomes

    def _run(self) -> None:
        try:
            with self._cable.client.entered():
                self._visit_all()
        except BaseException as failure:
            self._failure = failure
        finally:
            self.reached.set()

    def _visit_all(self) -> None:
        while self.outcomes.total() < self._visits:
            while self._began < self._visits and len(self._selector.get_map()) < self._at_a_time:
                self._began += 1
                self._begin()
            for key, _ in self._selector.select(1):
                self._go_on(key)
            now = time.monotonic()
            for key in [key for key in self._selector.get_map().values() if key.data[0] < now]:
                self._end(key.fileobj, "silent")
            if 3 * self.outcomes.total() >= self._visits:
                self.reached.set()

    def _begin(self) -> None:
        visit = socket.socket()
        visit.setblocking(False)
        found = visit.connect_ex((SERVER[4], PORT))
        assert found in (0, errno.EINPROGRESS), errno.errorcode[found]
        self._selector.register(visit, selectors.EVENT_WRITE, (time.monotonic() + PATIENCE, b""))

    def _go_on(self, key: selectors.SelectorKey) -> None:
        visit, (end, got) = key.fileobj, key.data
        try:
            if key.events == selectors.EVENT_WRITE:
                # A connection that was refused says so here. There is room for this much.
                visit.send(ASK)
                self._selector.modify(visit, selectors.EVENT_READ, (end, got))
                return
            piece = visit.recv(100)
        except ConnectionRefusedError:
            return self._end(visit, "refused")
        except (ConnectionResetError, BrokenPipeError):
            return self._end(visit, "reset")
        got += piece
        if got == REPLY:
            self._end(visit, "answered")
        elif piece == b"":
            self._end(visit, "closed")
        elif REPLY.startswith(got):
            self._selector.modify(visit, selectors.EVENT_READ, (end, got))
        else:
            self._end(visit, "wrong")

    def _end(self, visit: socket.socket, outcome: str) -> None:
        self._selector.unregister(visit)
        visit.close()
        self.outcomes[outcome] += 1
