"""IPv4 datagrams as bytes: endpoints, quotes, and changes that keep checksums as right or wrong as they were."""

from __future__ import annotations

import struct
from typing import NamedTuple

from checksum import ones_sum, updated

ICMP, TCP, UDP = 1, 6, 17
PROTOCOL_NAMES = {ICMP: "icmp", TCP: "tcp", UDP: "udp"}
#: ICMP messages that quote a datagram (RFC 792): unreachable, source quench, redirect, time exceeded, bad parameter.
ICMP_ERRORS = frozenset({3, 4, 5, 11, 12})
#: Questions and their answers, which share an identifier: echo, time stamp, information, address mask (RFC 792,
#: RFC 950), extended echo (RFC 8335).
QUERIES = {8: 0, 13: 14, 15: 16, 17: 18, 42: 43}
ANSWERS = frozenset(QUERIES.values())
#: Bytes of an ICMP error before its quote.
QUOTE_AT = 8


class Endpoint(NamedTuple):
    """An address and a port; for ICMP queries, the identifier on the asking side and zero on the other."""

    address: str
    port: int

    def __str__(self) -> str:
        return f"{self.address}:{self.port}"


class Flow(NamedTuple):
    """The protocol and both endpoints of one packet, in its direction."""

    protocol: int
    source: Endpoint
    destination: Endpoint

    def __str__(self) -> str:
        return f"{PROTOCOL_NAMES.get(self.protocol, self.protocol)} {self.source} to {self.destination}"

    def reversed(self) -> Flow:
        """That of the packets that come back."""
        return Flow(self.protocol, self.destination, self.source)


class Datagram:
    """An IPv4 datagram, or a fragment of one, or what an ICMP error quotes of one; it may be cut short anywhere
    behind its first 20 bytes."""

    def __init__(self, raw: bytes) -> None:
        if len(raw) < 20 or raw[0] >> 4 != 4 or (raw[0] & 15) < 5 or len(raw) < (raw[0] & 15) * 4:
            raise ValueError(f"no IPv4 header: {raw[:24].hex()}")
        self.raw = bytearray(raw)

    def __bytes__(self) -> bytes:
        return bytes(self.raw)

    @property
    def header_len(self) -> int:
        return (self.raw[0] & 15) * 4

    @property
    def total_len(self) -> int:
        return self._word(2)

    @property
    def identification(self) -> int:
        return self._word(4)

    @property
    def more_fragments(self) -> bool:
        return bool(self._word(6) & 0x2000)

    @property
    def offset(self) -> int:
        """Where a fragment's data lie in the datagram, in bytes."""
        return (self._word(6) & 0x1FFF) * 8

    @property
    def is_fragment(self) -> bool:
        return self.more_fragments or self.offset > 0

    @property
    def end(self) -> int:
        """Where a fragment's data end in the datagram, in bytes."""
        return self.offset + len(self.payload)

    @property
    def datagram(self) -> tuple[str, str, int, int]:
        """What fragments of one datagram have in common (RFC 791)."""
        return self.source, self.destination, self.protocol, self.identification

    @property
    def ttl(self) -> int:
        return self.raw[8]

    @property
    def protocol(self) -> int:
        return self.raw[9]

    @property
    def source(self) -> str:
        return dotted(self.raw[12:16])

    @property
    def destination(self) -> str:
        return dotted(self.raw[16:20])

    @property
    def options(self) -> bytes:
        return bytes(self.raw[20 : self.header_len])

    @property
    def payload(self) -> bytes:
        """What follows the header, without the padding of a short Ethernet frame."""
        return bytes(self.raw[self.header_len : max(self.total_len, self.header_len)])

    @property
    def is_icmp_error(self) -> bool:
        return self.protocol == ICMP and self.offset == 0 and self.payload[:1] and self.payload[0] in ICMP_ERRORS

    def quote(self) -> Datagram | None:
        """The datagram that this ICMP error is about, as far as it is quoted."""
        if not self.is_icmp_error:
            return None
        try:
            return Datagram(self.payload[QUOTE_AT:])
        except ValueError:
            return None

    def flow(self) -> Flow | None:
        """The flow of a packet: with ports, with an ICMP query identifier, or of a protocol that has neither. `None`
        where it cannot be seen."""
        data = self.raw[self.header_len :]
        source, destination = self.source, self.destination
        if self.offset > 0:
            return None
        if self.protocol in (TCP, UDP) and len(data) >= 4:
            ports = struct.unpack_from("!HH", data)
            return Flow(self.protocol, Endpoint(source, ports[0]), Endpoint(destination, ports[1]))
        if self.protocol == ICMP and len(data) >= 6:
            identifier = struct.unpack_from("!H", data, 4)[0]
            if data[0] in QUERIES:
                return Flow(ICMP, Endpoint(source, identifier), Endpoint(destination, 0))
            if data[0] in ANSWERS:
                return Flow(ICMP, Endpoint(source, 0), Endpoint(destination, identifier))
        if self.protocol in (TCP, UDP, ICMP):
            return None
        return Flow(self.protocol, Endpoint(source, 0), Endpoint(destination, 0))

    def replace_source(self, new: Endpoint) -> None:
        """Sets the source address, and the port where there is one to see."""
        self._replace(12, new, self._port_at(source=True))

    def replace_destination(self, new: Endpoint) -> None:
        """Sets the destination address, and the port where there is one to see."""
        self._replace(16, new, self._port_at(source=False))

    def replace_quote(self, quote: Datagram) -> None:
        """Puts a changed quote, of the same length, back into this ICMP error, and updates its checksum."""
        at = self.header_len + QUOTE_AT
        old, new = bytes(self.raw[at : at + len(quote.raw)]), bytes(quote)
        self.raw[at : at + len(new)] = new
        self._update(self.header_len + 2, old, new)

    def _port_at(self, source: bool) -> int | None:
        flow = self.flow()
        if flow is None or flow.protocol not in (TCP, UDP, ICMP):
            return None
        if flow.protocol != ICMP:
            return self.header_len + (0 if source else 2)
        asks = self.raw[self.header_len] in QUERIES
        return self.header_len + 4 if asks == source else None

    def _replace(self, address_at: int, new: Endpoint, port_at: int | None) -> None:
        old_address = bytes(self.raw[address_at : address_at + 4])
        new_address = bytes(int(part) for part in new.address.split("."))
        self.raw[address_at : address_at + 4] = new_address
        self._update(10, old_address, new_address)
        checksum_at = self._transport_checksum_at()
        if checksum_at is not None and self.protocol != ICMP:
            self._update(checksum_at, old_address, new_address)
        if port_at is not None:
            old_port, new_port = bytes(self.raw[port_at : port_at + 2]), struct.pack("!H", new.port)
            self.raw[port_at : port_at + 2] = new_port
            if checksum_at is not None:
                self._update(checksum_at, old_port, new_port)

    def _transport_checksum_at(self) -> int | None:
        """Where the checksum of the transport lies, if this datagram has one and shows it."""
        if self.offset > 0:
            return None
        at = {ICMP: 2, TCP: 16, UDP: 6}.get(self.protocol)
        if at is None or self.header_len + at + 2 > len(self.raw):
            return None
        at += self.header_len
        return None if self.protocol == UDP and self._word(at) == 0 else at

    def _update(self, at: int, old: bytes, new: bytes) -> None:
        checksum = updated(self._word(at), old, new)
        if self.protocol == UDP and at != 10 and checksum == 0:
            checksum = 0xFFFF
        struct.pack_into("!H", self.raw, at, checksum)

    def _word(self, at: int) -> int:
        return struct.unpack_from("!H", self.raw, at)[0]

    def header_checksum_error(self) -> int:
        """By how much the header's checksum is wrong; zero when it is right."""
        return ones_sum(self.raw[: self.header_len]) ^ 0xFFFF


def fragment(datagram: bytes, start: int, end: int) -> bytes:
    """The fragment of a datagram that has its data from `start`, a multiple of 8, to `end`."""
    whole = Datagram(datagram)
    data = whole.payload
    end = min(end, len(data))
    piece = bytearray(datagram[: whole.header_len]) + data[start:end]
    more = 0x2000 if end < len(data) else 0
    struct.pack_into("!H", piece, 2, len(piece))
    struct.pack_into("!H", piece, 6, more | start // 8)
    struct.pack_into("!H", piece, 10, 0)
    struct.pack_into("!H", piece, 10, ones_sum(piece[: whole.header_len]) ^ 0xFFFF)
    return bytes(piece)


def dotted(address: bytes) -> str:
    """Four bytes as an address is written."""
    return ".".join(str(byte) for byte in address)
