"""The indirection tables are rewritten again and again under traffic, and no connection notices."""

from __future__ import annotations

import random
import threading

from expect import Failure, expect
from place import Place
from scenarios.throughput import iperf
from servers import ECHO_PORT

REWRITES = 1_000
CONNECTIONS = 8
#: Of iperf3: what two lanes can do that hand over half of what they get. More would fill the rings between them,
#: which lose packets as any queue does.
RATE = "100M"
#: Between two rewrites, so that packets are placed by each table. Seconds.
PAUSE = 0.002


def thousand(place: Place) -> None:
    """1,000 rewrites, of both devices in turn, under eight conversations and iperf3."""
    talkers = [Talker(place, seed) for seed in range(CONNECTIONS)]
    stop = threading.Event()
    streams: list[object] = []
    threads = [threading.Thread(target=talker.talk, args=(stop,), daemon=True) for talker in talkers]
    threads.append(threading.Thread(target=stream, args=(place, stop, streams), daemon=True))
    for thread in threads:
        thread.start()
    try:
        for seed in range(REWRITES):
            place.middle.rewrite_table(("lan", "wan")[seed % 2], seed)
            stop.wait(PAUSE)
    finally:
        stop.set()
        for thread in threads:
            thread.join(30)
    for talker in talkers:
        expect(talker.failed is None, f"a conversation ended after {talker.rounds} rounds: {talker.failed}")
        expect(talker.rounds > 0, "a conversation has not begun")
    for outcome in streams:
        expect(not isinstance(outcome, Exception), f"iperf3: {outcome}")
    expect(bool(streams) and any(outcome > 0 for outcome in streams), "iperf3 sent nothing")


def check(place: Place, summary: dict) -> None:
    """What the run must say afterwards: packets were handed to their owners, and none got lost on the way."""
    handed = summary["handoff"]
    if place.ground.lanes > 1:
        # Each rewrite moves half of the buckets that two lanes have, with packets on their way in all.
        expect(handed > REWRITES, f"only {handed} packets were handed over")
    lost = {reason: count for reason, count in summary["dropped"].items() if reason.startswith(("handoff", "hold"))}
    expect(not lost, f"lost on the way to another lane: {lost}")
    expect(summary["reordered"] == 0 or place.ground.lanes > 1, f"{summary['reordered']} packets overtaken")


class Talker:
    """One connection that sends and gets back the same, all the time."""

    def __init__(self, place: Place, seed: int) -> None:
        self._connection = place.client.connect(place.address, ECHO_PORT, place.patience)
        self._random = random.Random(seed)
        self.rounds = 0
        self.failed: Exception | None = None

    def talk(self, stop: threading.Event) -> None:
        try:
            with self._connection:
                while not stop.is_set():
                    data = self._random.randbytes(self._random.randrange(1, 20_000))
                    self._connection.sendall(data)
                    if receive(self._connection, len(data)) != data:
                        raise Failure("what came back is not what was sent")
                    self.rounds += 1
        except Exception as error:
            self.failed = error


def receive(connection: object, length: int) -> bytes:
    got = bytearray()
    while len(got) < length:
        data = connection.recv(length - len(got))
        if not data:
            raise Failure("closed by the other end")
        got += data
    return bytes(got)


def stream(place: Place, stop: threading.Event, outcomes: list[object]) -> None:
    """iperf3 runs, one after the other: bytes, or what went wrong."""
    try:
        while not stop.is_set():
            outcomes.append(iperf(place, "-t", "2", "-b", RATE)["end"]["sum_received"]["bytes"])
    except Exception as error:
        outcomes.append(error)
