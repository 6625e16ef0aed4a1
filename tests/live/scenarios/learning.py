"""A bridge between three ports: frames made by hand, from stations that do not exist."""

from __future__ import annotations

import socket
import struct
import time
from contextlib import ExitStack

from expect import expect
from host import INTERFACE, Host
from place import Place
from scenarios.vlan import listener

#: For experiments (IEEE 802): no kernel sends such frames by itself.
ETHERTYPE = 0x88B5
BROADCAST = b"\xff" * 6
ROUNDS = 20


def frames_go_where_their_station_is(place: Place) -> None:
    """A frame to a station that has sent leaves through its port alone."""
    network = place.network
    with Ears(place, network.outside, network.bystander, place.client) as ears:
        for number in range(ROUNDS):
            left, right = station(1, number), station(2, number)
            ears.send(place.client, frame(BROADCAST, left, b"hello %d" % number))
            ears.expect_at((network.outside, network.bystander), b"hello %d" % number)
            ears.send(network.outside, frame(left, right, b"answer %d" % number))
            ears.expect_at((place.client,), b"answer %d" % number)
            # Behind the answer, so that there is something to wait for.
            ears.send(network.outside, frame(BROADCAST, right, b"behind %d" % number))
            ears.expect_at((network.bystander,), b"behind %d" % number)
        seen = [data for data in ears.heard[network.bystander] if data.startswith(b"answer")]
        expect(not seen, f"{len(seen)} of {ROUNDS} frames for one station reached another port, too")


def broadcasts_and_unknown_stations_reach_all(place: Place) -> None:
    """Broadcasts, and frames to stations that nobody has heard of, leave through every other port."""
    network = place.network
    ends = (place.client, network.outside, network.bystander)
    with Ears(place, *ends) as ears:
        for number, sender in enumerate(ends):
            others = tuple(host for host in ends if host is not sender)
            for name, target in ((b"broadcast", BROADCAST), (b"unknown", station(9, number))):
                data = b"%s %d" % (name, number)
                ears.send(sender, frame(target, station(3, number), data))
                ears.expect_at(others, data)


def station(group: int, number: int) -> bytes:
    """A link address that is administered locally."""
    return bytes((2, 0x77, group, 0, 0, number))


def frame(target: bytes, source: bytes, data: bytes) -> bytes:
    return target + source + struct.pack("!H", ETHERTYPE) + data.ljust(46, b"\0")


class Ears:
    """What arrives at hosts, of the frames made here."""

    def __init__(self, place: Place, *hosts: Host) -> None:
        self.heard: dict[Host, list[bytes]] = {host: [] for host in hosts}
        self._patience = place.patience
        self._sockets = {}
        self._stack = ExitStack()

    def __enter__(self) -> Ears:
        for host in self.heard:
            self._sockets[host] = self._stack.enter_context(listener(host))
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def send(self, host: Host, data: bytes) -> None:
        with host.raw_socket(INTERFACE) as raw:
            raw.send(data)

    def expect_at(self, hosts: tuple[Host, ...], data: bytes) -> None:
        for host in hosts:
            deadline = time.monotonic() + self._patience
            while data not in self.heard[host]:
                self._listen(host, deadline, data)

    def _listen(self, host: Host, deadline: float, awaited: bytes) -> None:
        left = deadline - time.monotonic()
        expect(left > 0, f"{awaited.decode()!r} did not arrive")
        raw = self._sockets[host]
        raw.settimeout(left)
        try:
            got, address = raw.recvfrom(2048)
        except TimeoutError:
            return
        # What the host sent itself is heard as well.
        if got[12:14] == struct.pack("!H", ETHERTYPE) and address[2] != socket.PACKET_OUTGOING:
            self.heard[host].append(got[14:].rstrip(b"\0"))
