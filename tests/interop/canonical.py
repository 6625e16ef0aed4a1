"""A packet as named fields, so that a difference can be told by name.

A checksum is told as what matters of it, by how much it is wrong: a translator that updates it right keeps that,
whatever ports it chose."""

from __future__ import annotations

import struct

from checksum import ones_sum
from datagram import ICMP, QUOTE_AT, TCP, UDP, Datagram
from scenario import ipv4

Fields = dict[str, int | str]


def fields(raw: bytes) -> Fields:
    """The fields of a whole datagram in the inside view."""
    packet = ipv4(raw)
    if packet is None:
        return _ipv6(raw)
    return _ipv4(packet, "", cut_short=False)


def _ipv6(raw: bytes) -> Fields:
    if len(raw) < 40:
        return {"bytes": raw.hex()}
    return {
        "ip6.class_and_label": raw[:4].hex(),
        "ip6.length": struct.unpack_from("!H", raw, 4)[0],
        "ip6.next": raw[6],
        "ip6.hop_limit": raw[7],
        "ip6.source": raw[8:24].hex(),
        "ip6.destination": raw[24:40].hex(),
        "ip6.rest": raw[40 : 40 + struct.unpack_from("!H", raw, 4)[0]].hex(),
    }


def _ipv4(packet: Datagram, prefix: str, cut_short: bool) -> Fields:
    raw = packet.raw
    told: Fields = {
        "ip.tos": raw[1],
        "ip.length": packet.total_len,
        "ip.id": packet.identification,
        "ip.flags": struct.unpack_from("!H", raw, 6)[0] & 0xE000,
        "ip.offset": packet.offset,
        "ip.ttl": packet.ttl,
        "ip.protocol": packet.protocol,
        "ip.checksum_error": packet.header_checksum_error(),
        "ip.source": packet.source,
        "ip.destination": packet.destination,
        "ip.options": packet.options.hex(),
    }
    data = packet.payload
    whole = len(data) == packet.total_len - packet.header_len and not cut_short and not packet.is_fragment
    if packet.offset > 0:
        told["data"] = data.hex()
    elif packet.protocol == TCP and len(data) >= 8:
        told |= _tcp(packet, data, whole)
    elif packet.protocol == UDP and len(data) >= 8:
        told |= _udp(packet, data, whole)
    elif packet.protocol == ICMP and len(data) >= 8:
        told |= _icmp(packet, data, whole)
    else:
        told["data"] = data.hex()
    return {prefix + name: value for name, value in told.items()}


def _tcp(packet: Datagram, data: bytes, whole: bool) -> Fields:
    source, destination, seq = struct.unpack_from("!HHI", data)
    told: Fields = {"tcp.source": source, "tcp.destination": destination, "tcp.seq": seq}
    if len(data) < 20:
        return told | {"tcp.rest": data[8:].hex()}
    ack, offset_flags, window, checksum, urgent = struct.unpack_from("!IHHHH", data, 8)
    return told | {
        "tcp.ack": ack,
        "tcp.offset_and_flags": offset_flags,
        "tcp.window": window,
        "tcp.checksum_error": _transport_error(packet, data, checksum, whole),
        "tcp.urgent": urgent,
        "tcp.options_and_data": data[20:].hex(),
    }


def _udp(packet: Datagram, data: bytes, whole: bool) -> Fields:
    source, destination, length, checksum = struct.unpack_from("!HHHH", data)
    error = "none" if checksum == 0 else _transport_error(packet, data, checksum, whole)
    return {
        "udp.source": source,
        "udp.destination": destination,
        "udp.length": length,
        "udp.checksum_error": error,
        "udp.data": data[8:].hex(),
    }


def _icmp(packet: Datagram, data: bytes, whole: bool) -> Fields:
    checksum, rest = struct.unpack_from("!HI", data, 2)
    told: Fields = {
        "icmp.type": data[0],
        "icmp.code": data[1],
        "icmp.checksum_error": ones_sum(data) ^ 0xFFFF if whole else checksum,
        "icmp.rest_of_header": rest,
    }
    quote = packet.quote() if whole else None
    if quote is None:
        return told | {"icmp.data": data[QUOTE_AT:].hex()}
    cut_short = len(quote.raw) < quote.total_len
    # What lies behind the quote: extensions (RFC 4884), or padding.
    behind = bytes(quote.raw[max(quote.total_len, quote.header_len) :])
    return told | _ipv4(quote, "quote.", cut_short) | {"icmp.behind_quote": behind.hex()}


def _transport_error(packet: Datagram, data: bytes, checksum: int, whole: bool) -> int | str:
    """By how much the checksum is wrong, or, where not all that it covers is there, what it says."""
    if not whole:
        # Zero and its complement are one number; which of the two stands there is no matter of translation.
        return f"says {checksum % 0xFFFF:04x}"
    pseudo = bytes(packet.raw[12:20]) + struct.pack("!HH", packet.protocol, len(data))
    return ones_sum(pseudo + data) ^ 0xFFFF
