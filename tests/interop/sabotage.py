"""Shows that the comparison can fail: alters one packet of a run, in one way, and expects a complaint."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from checksum import updated
from comparison import compare, pair
from datagram import ICMP, TCP, UDP, Datagram, Endpoint
from reading import read
from scenario import EXTERNAL, Exchange, Scenario, Side, ipv4

Out = tuple[Side, bytes]
#: Takes a packet that left, and what left before it; gives what leaves instead, or `None` where it does not apply.
Alteration = Callable[[Out, list[bytes]], list[Out] | None]
#: Packets of a scenario that are altered in one way, spread over its length.
VICTIMS = 4


@dataclass
class Report:
    """How many alterations were tried, by name, and which went unnoticed."""

    tried: Counter[str]
    unnoticed: list[str]


def sabotage(scenario: Scenario, linux: list[Exchange], rheo: list[Exchange]) -> Report:
    """Alters the second run in every way, at several places each."""
    report = Report(Counter(), [])
    before = set(compare(scenario, linux, rheo).complaints)
    compared = set(compared_packets(scenario, linux, rheo))
    for name, alter in ALTERATIONS.items():
        candidates = list(altered(rheo, compared, alter))
        for step, changed in candidates[:: max(1, len(candidates) // VICTIMS)]:
            report.tried[name] += 1
            if set(compare(scenario, linux, changed).complaints) <= before:
                report.unnoticed.append(f"{scenario.name}, step {step}: {name}")
    return report


def compared_packets(scenario: Scenario, linux: list[Exchange], rheo: list[Exchange]) -> Iterator[int]:
    """The steps at which every packet of both runs has a counterpart: a rule may explain a packet at another."""
    ours, theirs = read(linux, scenario.forwards), read(rheo, scenario.forwards)
    for step, (left, right) in enumerate(zip(ours.seen, theirs.seen, strict=True)):
        pairs, only_linux, only_rheo = pair(left, right)
        if pairs and not only_linux and not only_rheo:
            yield step


def altered(run: list[Exchange], steps: set[int], alter: Alteration) -> Iterator[tuple[int, list[Exchange]]]:
    """The run with each packet that can be altered so, altered."""
    before: list[bytes] = []
    for number, exchange in enumerate(run):
        for at, out in enumerate(exchange.out):
            instead = alter(out, before) if number in steps else None
            if instead is not None:
                packets = exchange.out[:at] + instead + exchange.out[at + 1 :]
                yield number, run[:number] + [replace(exchange, out=packets)] + run[number + 1 :]
            before.append(out[1])


def lost(out: Out, _before: list[bytes]) -> list[Out]:
    return []


def doubled(out: Out, _before: list[bytes]) -> list[Out] | None:
    # A fragment twice is no difference to whoever puts them together.
    packet = ipv4(out[1])
    return None if packet is not None and packet.is_fragment else [out, out]


def other_side(out: Out, _before: list[bytes]) -> list[Out]:
    return [(out[0].other, out[1])]


def on_ipv4(change: Callable[[Datagram, list[bytes]], bool]) -> Alteration:
    """An alteration of an IPv4 packet; `change` says whether it could be made."""

    def alter(out: Out, before: list[bytes]) -> list[Out] | None:
        packet = ipv4(out[1])
        return [(out[0], bytes(packet))] if packet is not None and change(packet, before) else None

    return alter


def header_word(at: int, change: int) -> Alteration:
    """Changes a word of the IP header, and sets its checksum right."""

    def alter(packet: Datagram, _before: list[bytes]) -> bool:
        if packet.is_fragment:
            return False
        _set_word(packet, at, _word(packet, at) ^ change, checksum_at=10)
        return True

    return on_ipv4(alter)


def ip_checksum(packet: Datagram, _before: list[bytes]) -> bool:
    _set_word(packet, 10, (_word(packet, 10) + 1) % 0xFFFF)
    # A later fragment's header is not kept when the datagram is put together.
    return packet.offset == 0


def transport_checksum(protocol: int) -> Alteration:
    """Makes the checksum of a TCP, UDP or ICMP packet wrong by one."""

    def alter(packet: Datagram, _before: list[bytes]) -> bool:
        at = _checksum_at(packet)
        if packet.protocol != protocol or at is None:
            return False
        _set_word(packet, at, (_word(packet, at) + 1) % 0xFFFF or 1)
        return True

    return on_ipv4(alter)


def translated_port(packet: Datagram, before: list[bytes]) -> bool:
    """Another external port in mid-flow, checksum right. The first packet's port is the router's choice."""
    flow = packet.flow()
    earlier = (ipv4(raw) for raw in before)
    if flow is None or flow.source.address != EXTERNAL or packet.is_fragment:
        return False
    whole = [past for past in earlier if past is not None and not past.is_fragment]
    if flow.protocol not in (TCP, UDP, ICMP) or all(past.flow() != flow for past in whole):
        return False
    packet.replace_source(Endpoint(flow.source.address, flow.source.port ^ 2))
    return True


def destination_port(packet: Datagram, _before: list[bytes]) -> bool:
    flow = packet.flow()
    if flow is None or flow.protocol not in (TCP, UDP) or packet.is_fragment:
        return False
    packet.replace_destination(Endpoint(flow.destination.address, flow.destination.port ^ 2))
    return True


def source_address(packet: Datagram, _before: list[bytes]) -> bool:
    if packet.is_fragment:
        return False
    packet.replace_source(Endpoint("203.0.113.77", _port(packet, source=True)))
    return True


def destination_address(packet: Datagram, _before: list[bytes]) -> bool:
    if packet.is_fragment:
        return False
    packet.replace_destination(Endpoint("203.0.113.77", _port(packet, source=False)))
    return True


def quoted_port(packet: Datagram, _before: list[bytes]) -> bool:
    quote = packet.quote()
    flow = quote and quote.flow()
    if quote is None or flow is None or flow.protocol not in (TCP, UDP):
        return False
    quote.replace_source(Endpoint(flow.source.address, flow.source.port ^ 2))
    packet.replace_quote(quote)
    return True


def quoted_address(packet: Datagram, _before: list[bytes]) -> bool:
    quote = packet.quote()
    if quote is None:
        return False
    quote.replace_source(Endpoint("10.0.0.77", _port(quote, source=True)))
    packet.replace_quote(quote)
    return True


def quoted_checksum(packet: Datagram, _before: list[bytes]) -> bool:
    """The quoted IP header's checksum wrong, that of the message right."""
    quote = packet.quote()
    if quote is None:
        return False
    _set_word(quote, 10, (_word(quote, 10) + 1) % 0xFFFF)
    packet.replace_quote(quote)
    return True


def last_byte(packet: Datagram, _before: list[bytes]) -> bool:
    """Another last byte, the checksum right where it is in sight."""
    at = packet.total_len - 1
    if at < packet.header_len + 8 or at >= len(packet.raw):
        return False
    checksum_at = _checksum_at(packet) if packet.protocol in (TCP, UDP, ICMP) else None
    # In an option or a field of the header it may say something else than data do.
    if packet.protocol == TCP and len(packet.payload) <= max(20, (packet.payload[12:13] or b"\0")[0] >> 4 << 2):
        return False
    even = at - (at - packet.header_len) % 2
    old = bytes(packet.raw[even : at + 1])
    packet.raw[at] ^= 0x20
    if checksum_at is not None and not packet.is_fragment:
        new = bytes(packet.raw[even : at + 1])
        _set_word(packet, checksum_at, updated(_word(packet, checksum_at), old, new))
    return True


def tcp_flags(packet: Datagram, _before: list[bytes]) -> bool:
    if packet.protocol != TCP or packet.is_fragment or len(packet.payload) < 20:
        return False
    _set_word(packet, packet.header_len + 12, _word(packet, packet.header_len + 12) ^ 8, packet.header_len + 16)
    return True


def shared_port(packet: Datagram, before: list[bytes]) -> bool:
    """The external endpoint of another flow to the same remote."""
    flow = packet.flow()
    if flow is None or flow.source.address != EXTERNAL or flow.protocol not in (TCP, UDP) or packet.is_fragment:
        return False
    for raw in before:
        past = ipv4(raw)
        other = past and past.flow()
        if other and other._replace(source=flow.source) == flow and other.source not in (flow.source, flow.destination):
            packet.replace_source(other.source)
            return True
    return False


ALTERATIONS: dict[str, Alteration] = {
    "lost": lost,
    "doubled": doubled,
    "on the other side": other_side,
    "IP checksum": on_ipv4(ip_checksum),
    "TCP checksum": transport_checksum(TCP),
    "UDP checksum": transport_checksum(UDP),
    "ICMP checksum": transport_checksum(ICMP),
    "translated port in mid-flow": on_ipv4(translated_port),
    "port of another flow": on_ipv4(shared_port),
    "destination port": on_ipv4(destination_port),
    "source address": on_ipv4(source_address),
    "destination address": on_ipv4(destination_address),
    "quoted port": on_ipv4(quoted_port),
    "quoted address": on_ipv4(quoted_address),
    "quoted IP checksum": on_ipv4(quoted_checksum),
    "last byte": on_ipv4(last_byte),
    "TCP flags": on_ipv4(tcp_flags),
    "type of service": header_word(0, 0x04),
    "identification": header_word(4, 0x0100),
    "don't fragment": header_word(6, 0x4000),
    "time to live": header_word(8, 0x1000),
}


def _word(packet: Datagram, at: int) -> int:
    return struct.unpack_from("!H", packet.raw, at)[0]


def _set_word(packet: Datagram, at: int, value: int, checksum_at: int | None = None) -> None:
    """Writes a word; with `checksum_at` keeps the checksum there as right or wrong as it was."""
    old = bytes(packet.raw[at : at + 2])
    struct.pack_into("!H", packet.raw, at, value)
    if checksum_at is not None:
        struct.pack_into("!H", packet.raw, checksum_at, updated(_word(packet, checksum_at), old, value.to_bytes(2)))


def _port(packet: Datagram, source: bool) -> int:
    flow = packet.flow()
    return (flow.source if source else flow.destination).port if flow else 0


def _checksum_at(packet: Datagram) -> int | None:
    at = {TCP: 16, UDP: 6, ICMP: 2}.get(packet.protocol)
    if at is None or packet.offset > 0 or len(packet.payload) < at + 2:
        return None
    at += packet.header_len
    return None if packet.protocol == UDP and _word(packet, at) == 0 else at
