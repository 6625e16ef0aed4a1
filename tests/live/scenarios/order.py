"""Numbered datagrams of one flow, as fast as they arrive: each comes once, and in order unless lanes share queues without it."""

from __future__ import annotations

import socket
import time

from expect import expect
from place import Place

COUNT, PORT = 20_000, 7_010
#: Datagrams under way at most: fewer than the ring of a virtual interface holds, which drops without a word.
WINDOW = 96
#: What a machine that does other things loses on its wires and in its sockets all the same. Percent.
LOSS = 2.0
#: What has not come after this counts as lost. Seconds.
TIMEOUT = 1.0


def version4(place: Place) -> None:
    numbered(place, place.address)


def version6(place: Place) -> None:
    numbered(place, place.address6)


def numbered(place: Place, address: str) -> None:
    arrived = exchange(place, address)
    expect(len(set(arrived)) == len(arrived), f"{len(arrived) - len(set(arrived))} datagrams came twice")
    lost = 100 * (COUNT - len(arrived)) / COUNT
    expect(lost <= LOSS, f"{lost:.1f} % lost")
    if place.ground.sharing == 1 or place.ground.ordered:
        late = reordered(arrived)
        expect(late == 0, f"{late} of {len(arrived)} datagrams were overtaken")


def reordered(arrived: list[int]) -> int:
    """Datagrams that came behind a later one (RFC 4737, type P-Reordered)."""
    next_expected, late = 0, 0
    for number in arrived:
        if number >= next_expected:
            next_expected = number + 1
        else:
            late += 1
    return late


def exchange(place: Place, address: str) -> list[int]:
    """The numbers of the datagrams that arrive, in that order."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    arrived: list[int] = []
    with place.server.socket(family, socket.SOCK_DGRAM) as receiver, place.client.socket(family, socket.SOCK_DGRAM) as sender:
        receiver.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        receiver.bind((address, PORT))
        receiver.setblocking(False)
        sender.connect((address, PORT))
        sent, lost, last = 0, 0, time.monotonic()
        while len(arrived) + lost < COUNT:
            before = len(arrived)
            while sent < COUNT and sent - lost - len(arrived) < WINDOW:
                sender.send(sent.to_bytes(4))
                sent += 1
            try:
                while True:
                    arrived.append(int.from_bytes(receiver.recv(64)))
            except BlockingIOError:
                pass
            if len(arrived) > before:
                last = time.monotonic()
            elif time.monotonic() > last + TIMEOUT:
                lost, last = sent - len(arrived), time.monotonic()
    return arrived
