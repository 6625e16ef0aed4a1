"""A wire that loses, doubles, corrupts, reorders and delays, by seed: frames pass through this process."""

from __future__ import annotations

import heapq
import itertools
import random
import select
import socket
import threading
import time
from dataclasses import dataclass

from namespaces import PACKET_OUTGOING, Namespace


@dataclass(frozen=True)
class Faults:
    """What happens to a frame, each with a probability; seconds."""

    loss: float = 0
    duplicate: float = 0
    corrupt: float = 0
    reorder: float = 0
    delay: float = 0


class Spoiler:
    """Carries frames between two interfaces of a namespace until it is closed."""

    def __init__(self, namespace: Namespace, first: str, second: str) -> None:
        self._sockets = [namespace.raw_socket(interface) for interface in (first, second)]
        self._random = random.Random(7)
        self._late: list[tuple[float, int, socket.socket, bytes]] = []
        self._numbers = itertools.count()
        self._ends = False
        #: What happens from now on.
        self.faults = Faults()
        #: Frames that met a fault, by its name.
        self.met = {"loss": 0, "duplicate": 0, "corrupt": 0, "reorder": 0}
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        others = {self._sockets[0]: self._sockets[1], self._sockets[1]: self._sockets[0]}
        while not self._ends:
            due = self._late[0][0] - time.monotonic() if self._late else 0.1
            ready, _, _ = select.select(self._sockets, [], [], min(max(due, 0), 0.1))
            for source in ready:
                frame, address = source.recvfrom(65_536)
                if address[2] != PACKET_OUTGOING:
                    self._carry(frame, others[source])
            while self._late and self._late[0][0] <= time.monotonic():
                _, _, target, frame = heapq.heappop(self._late)
                target.send(frame)

    def _carry(self, frame: bytes, target: socket.socket) -> None:
        faults, draw = self.faults, self._random.random
        if self._meets("loss", faults.loss):
            return
        copies = 2 if self._meets("duplicate", faults.duplicate) else 1
        if self._meets("corrupt", faults.corrupt):
            at = 14 + int(draw() * (len(frame) - 14))
            frame = frame[:at] + bytes([frame[at] ^ 1 << int(draw() * 8)]) + frame[at + 1 :]
        delay = faults.delay
        if self._meets("reorder", faults.reorder):
            delay += 0.002
        for _ in range(copies):
            heapq.heappush(self._late, (time.monotonic() + delay, next(self._numbers), target, frame))

    def _meets(self, name: str, probability: float) -> bool:
        meets = self._random.random() < probability
        self.met[name] += meets
        return meets

    def close(self) -> None:
        self._ends = True
        self._thread.join()
        for open_socket in self._sockets:
            open_socket.close()
