"""What is sent: steps, one packet each, and the translation that both routers are asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import Enum

from datagram import Datagram, Endpoint, fragment

#: Where inside hosts live, and the address they share outside.
INSIDE = "10."
EXTERNAL = "203.0.113.1"


class Side(Enum):
    """Where a packet enters or leaves the router."""

    LAN = "lan"
    WAN = "wan"

    @property
    def other(self) -> Side:
        return Side.WAN if self is Side.LAN else Side.LAN


@dataclass(frozen=True)
class Step:
    """One packet into the router.

    `packet` is written as if nothing were translated: what a remote sends to an inside host has that host's own
    address. The driver puts in the external endpoint that the router under test has chosen, unless the packet is
    `literal`. `finish` makes the last changes: cuts a fragment out, breaks a checksum."""

    side: Side
    packet: bytes
    label: str = ""
    literal: bool = False
    finish: Callable[[bytes], bytes] | None = None

    def untranslated(self) -> bytes:
        """What would be sent if nothing were translated."""
        return self.finish(self.packet) if self.finish is not None else self.packet


@dataclass(frozen=True)
class Forward:
    """A port of the external address that leads to an inside host."""

    protocol: int
    external_port: int
    internal: Endpoint


@dataclass(frozen=True)
class Scenario:
    """Steps that one router takes one after the other, starting with nothing known."""

    name: str
    steps: tuple[Step, ...]
    forwards: tuple[Forward, ...] = ()
    #: The ports to translate to, if they are to be few.
    ports: tuple[int, int] | None = None
    #: Whether it is made from captures that not every machine has.
    captured: bool = False


@dataclass
class Script:
    """Collects the steps of a scenario."""

    name: str
    forwards: tuple[Forward, ...] = ()
    ports: tuple[int, int] | None = None
    steps: list[Step] = field(default_factory=list)

    def lan(self, packet: object, label: str = "", **how: object) -> None:
        """A packet from inside."""
        self._add(Side.LAN, packet, label, **how)

    def wan(self, packet: object, label: str = "", **how: object) -> None:
        """A packet from outside."""
        self._add(Side.WAN, packet, label, **how)

    def fragments(self, side: Side, packet: object, cuts: Iterable[tuple[int, int]], label: str = "") -> None:
        """A datagram in fragments, in the order of `cuts`: the first and the last byte of each's data."""
        for start, end in cuts:
            cut = lambda raw, start=start, end=end: fragment(raw, start, end)  # noqa: E731
            self._add(side, packet, f"{label} bytes {start} to {end}", finish=cut)

    def done(self) -> Scenario:
        return Scenario(self.name, tuple(self.steps), self.forwards, self.ports)

    def _add(self, side: Side, packet: object, label: str, **how: object) -> None:
        self.steps.append(Step(side, bytes(packet), label, **how))


def fragment_of(piece: Datagram) -> Callable[[bytes], bytes]:
    """Cuts out of a datagram the fragment that `piece` is of it."""
    start, end = piece.offset, piece.offset + len(piece.payload)
    return lambda raw: fragment(raw, start, end)


@dataclass
class Exchange:
    """What went in at one step, and what came out because of it."""

    step: Step
    #: `None` when the step needs a port that the router never chose.
    sent: bytes | None
    out: list[tuple[Side, bytes]]


def is_inside(address: str) -> bool:
    return address.startswith(INSIDE)


def ipv4(raw: bytes) -> Datagram | None:
    """The packet as IPv4, if that is what it is."""
    try:
        return Datagram(raw)
    except ValueError:
        return None
