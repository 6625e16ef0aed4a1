"""Hosts, and packets of scapy between them."""

from __future__ import annotations

import itertools
import logging

logging.getLogger("scapy.runtime").setLevel(logging.ERROR)

from scapy.layers.inet import ICMP, IP, TCP, UDP  # noqa: E402
from scapy.packet import Packet, Raw  # noqa: E402

from datagram import Datagram, Endpoint  # noqa: E402

HOST_A, HOST_B, HOST_C = "10.0.0.2", "10.0.0.3", "10.0.7.4"
#: An inside host that static forwards lead to.
SERVED = "10.0.0.5"
REMOTE, REMOTE_2 = "198.51.100.7", "198.51.100.8"
#: A router on the way, outside and inside.
ROUTER_OUT, ROUTER_IN = "198.51.100.254", "10.0.0.254"

TEXT = b"The quick brown fox jumps over the lazy dog. "


_identifications = itertools.count(1)


def ip(source: str, destination: str, **how: object) -> Packet:
    """A header with an identification of its own, so that fragments of two datagrams never mix."""
    how.setdefault("id", next(_identifications) & 0xFFFF)
    return IP(src=source, dst=destination, **how)


def tcp(source: Endpoint, destination: Endpoint, flags: str, data: bytes = b"", **how: object) -> Packet:
    header = TCP(sport=source.port, dport=destination.port, flags=flags, **how)
    return ip(source.address, destination.address) / header / Raw(data)


def udp(source: Endpoint, destination: Endpoint, data: bytes = TEXT, **how: object) -> Packet:
    header = UDP(sport=source.port, dport=destination.port, **how)
    return ip(source.address, destination.address) / header / Raw(data)


def echo(source: str, destination: str, identifier: int, seq: int = 1, data: bytes = TEXT) -> Packet:
    return ip(source, destination) / ICMP(type=8, code=0, id=identifier, seq=seq) / Raw(data)


def echo_reply(source: str, destination: str, identifier: int, seq: int = 1, data: bytes = TEXT) -> Packet:
    return ip(source, destination) / ICMP(type=0, code=0, id=identifier, seq=seq) / Raw(data)


def icmp_error(source: str, kind: int, code: int, about: Packet, quoted: int | None = None, **how: object) -> Packet:
    """An error to whoever sent `about`, quoting so many bytes of what its header carries, or all. The quote has the
    time to live that it had on the way."""
    raw = bytearray(bytes(about))
    header = (raw[0] & 15) * 4
    quote = bytes(raw) if quoted is None else bytes(raw[: header + quoted])
    return ip(source, Datagram(bytes(about)).source) / ICMP(type=kind, code=code, **how) / Raw(quote)
