"""What a router sent, read: whole datagrams in the inside view, by the step that caused them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import canonical
from canonical import Fields
from reassembly import Reassembler
from scenario import Exchange, Forward, Side, ipv4
from translation import Translation


@dataclass(frozen=True)
class Seen:
    """A packet that left the router."""

    side: Side
    raw: bytes
    fields: Fields

    def is_error(self, kind: int, code: int) -> bool:
        """Whether it is this ICMP error."""
        return (self.fields.get("icmp.type"), self.fields.get("icmp.code")) == (kind, code)

    def __str__(self) -> str:
        return f"{self.side.value}: {summary(self.fields)}"


@dataclass
class Reading:
    """All that came out of one run of a scenario."""

    #: By step, in the order it left.
    seen: list[list[Seen]] = field(default_factory=list)
    #: Fragments that make no whole datagram.
    left: list[Seen] = field(default_factory=list)
    #: What was wrong with the translation as such.
    complaints: list[str] = field(default_factory=list)


def read(exchanges: Iterable[Exchange], forwards: Iterable[Forward]) -> Reading:
    """Puts fragments together and takes the translation back out."""
    translation = Translation(forwards)
    reassemblers = {side: Reassembler() for side in Side}
    reading = Reading()
    for exchange in exchanges:
        seen = []
        for side, raw in exchange.out:
            translation.learn(exchange.step, raw)
            whole = reassemblers[side].take(raw) if ipv4(raw) else raw
            if whole is not None:
                seen.append(_seen(side, translation.inside_view(whole)))
        reading.seen.append(seen)
    for side, reassembler in reassemblers.items():
        for pieces in reassembler.left():
            reading.left += [_seen(side, raw) for raw in translation.inside_view_of_fragments(pieces)]
    reading.complaints = translation.complaints
    return reading


def _seen(side: Side, raw: bytes) -> Seen:
    return Seen(side, raw, canonical.fields(raw))


def summary(told: Fields) -> str:
    """The fields that tell packets apart at a glance."""
    names = (
        "ip.source",
        "ip.destination",
        "ip.protocol",
        "ip.offset",
        "icmp.type",
        "icmp.code",
        "tcp.offset_and_flags",
    )
    names += ("tcp.source", "tcp.destination", "udp.source", "udp.destination", "ip.length", "ip6.source", "ip6.next")
    return " ".join(f"{name}={told[name]}" for name in names if name in told)
