"""Conversations out of captures: whoever speaks first becomes an inside host, the other a remote.

Addresses are replaced by ones of documentation, so that no two roles mix, and checksums are set right, as captures
taken on a sender do not have them yet."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from scapy.utils import RawPcapNgReader, RawPcapReader

from checksum import ones_sum
from datagram import ICMP, TCP, UDP, Datagram, Endpoint
from reassembly import join
from scenario import Scenario, Script, Side, fragment_of

#: So many packets of a capture, and so many conversations.
MOST_PACKETS, MOST_CONVERSATIONS = 1_000, 100
MTU = 1_500
ETHERNET, RAW_IP, RAW_IPV4, COOKED = 1, 101, 228, 113
IPV4_TYPE = b"\x08\x00"


def scenarios(folder: Path) -> list[Scenario]:
    """One scenario for each capture that has IPv4 conversations."""
    made = (scenario(path) for path in sorted(folder.iterdir()) if path.is_file())
    return [one for one in made if one is not None]


def scenario(path: Path) -> Scenario | None:
    """The conversations of a capture, as far as its first packets go."""
    script = Script(f"capture {path.name}")
    cast = Cast()
    pieces: dict[tuple[str, str, int, int], list[Datagram]] = {}
    try:
        for packet in packets(path):
            if not packet.is_fragment:
                cast.play(script, packet, [])
            else:
                parts = pieces.setdefault(packet.datagram, [])
                parts.append(packet)
                whole = join(parts)
                if whole is not None:
                    del pieces[packet.datagram]
                    cast.play(script, Datagram(whole), parts)
            if len(script.steps) >= MOST_PACKETS:
                break
    except (EOFError, ValueError, struct.error) as error:
        print(f"{path.name}: read up to {len(script.steps)} packets ({error})")
    if not script.steps:
        return None
    return Scenario(script.name, tuple(script.steps), captured=True)


def packets(path: Path) -> Iterator[Datagram]:
    """The IPv4 packets that a capture has in full, and that fit a link: a host may capture what its card will cut."""
    magic = path.read_bytes()[:4]
    reader = RawPcapNgReader(str(path)) if magic == b"\x0a\x0d\x0d\x0a" else RawPcapReader(str(path))
    with closing(reader):
        for frame, about in reader:
            link = getattr(about, "linktype", None) or getattr(reader, "linktype", None)
            raw = network_layer(frame, link)
            if raw is None or len(raw) < 20 or raw[0] >> 4 != 4:
                continue
            length = struct.unpack_from("!H", raw, 2)[0]
            if (raw[0] & 15) >= 5 and (raw[0] & 15) * 4 <= length <= min(len(raw), MTU):
                yield Datagram(raw[:length])


def network_layer(frame: bytes, link: int | None) -> bytes | None:
    """What a frame carries, if that is IPv4."""
    if link == ETHERNET:
        return frame[14:] if frame[12:14] == IPV4_TYPE else None
    if link == COOKED:
        return frame[16:] if frame[14:16] == IPV4_TYPE else None
    return frame if link in (RAW_IP, RAW_IPV4) else None


@dataclass
class Cast:
    """Who plays whom."""

    inside: dict[str, str] = field(default_factory=dict)
    outside: dict[str, str] = field(default_factory=dict)
    #: Conversations, by the flow of the packets of whoever spoke first.
    opened: set[tuple[int, Endpoint, Endpoint]] = field(default_factory=set)

    def play(self, script: Script, packet: Datagram, parts: list[Datagram]) -> None:
        """Adds a packet to the script, in the pieces that it came in."""
        side = self.side(packet)
        if side is None or not self.is_plain(packet):
            return
        inside, outside = self.inside, self.outside
        if side is Side.LAN:
            self.put(packet, inside[packet.source], outside[packet.destination])
        else:
            self.put(packet, outside[packet.source], inside[packet.destination])
        raw = bytes(repaired(packet))
        send = script.lan if side is Side.LAN else script.wan
        for part in parts or [None]:
            send(raw, str(packet.flow()), finish=part and fragment_of(part))

    def side(self, packet: Datagram) -> Side | None:
        """Where a packet comes from; an ICMP error, from where what it quotes went."""
        quote = packet.quote()
        flow = quote.flow() if quote is not None else packet.flow()
        if flow is None:
            return None
        if quote is not None:
            side = self._known(flow)
            if side is None or packet.destination != quote.source:
                return None
            # Whoever complains may be a router that has said nothing yet.
            self._cast(self.outside if side is Side.LAN else self.inside, packet.source)
            return side.other
        side = self._known(flow)
        if side is not None:
            return side
        if len(self.opened) >= MOST_CONVERSATIONS or flow.source == flow.destination:
            return None
        self.opened.add(flow)
        self._cast(self.inside, packet.source)
        self._cast(self.outside, packet.destination)
        return Side.LAN

    def _cast(self, roles: dict[str, str], address: str) -> None:
        network = "10.1" if roles is self.inside else "198.18"
        roles.setdefault(address, f"{network}.{len(roles) // 200}.{len(roles) % 200 + 1}")

    def _known(self, flow: tuple[int, Endpoint, Endpoint]) -> Side | None:
        protocol, source, destination = flow
        if flow in self.opened:
            return Side.LAN
        return Side.WAN if (protocol, destination, source) in self.opened else None

    def is_plain(self, packet: Datagram) -> bool:
        """Whether it is of a protocol whose checksum can be set right, with addresses of single hosts."""
        single = all(1 <= int(address.split(".")[0]) < 224 for address in (packet.source, packet.destination))
        return packet.protocol in (TCP, UDP, ICMP) and single

    def put(self, packet: Datagram, source: str, destination: str) -> None:
        """Replaces the addresses, and those in a quote the other way round."""
        quote = packet.quote()
        if quote is not None:
            quote.replace_source(Endpoint(destination, _port(quote, source=True)))
            other = self.outside if destination.startswith("10.") else self.inside
            quote.replace_destination(Endpoint(other[quote.destination], _port(quote, source=False)))
            packet.replace_quote(quote)
        packet.replace_source(Endpoint(source, _port(packet, source=True)))
        packet.replace_destination(Endpoint(destination, _port(packet, source=False)))


def repaired(packet: Datagram) -> Datagram:
    """The packet with right checksums; a UDP checksum that is not there stays away."""
    struct.pack_into("!H", packet.raw, 10, 0)
    struct.pack_into("!H", packet.raw, 10, ones_sum(packet.raw[: packet.header_len]) ^ 0xFFFF)
    data = packet.payload
    at = {TCP: 16, UDP: 6, ICMP: 2}[packet.protocol]
    if len(data) < at + 2 or (packet.protocol == UDP and data[6:8] == b"\0\0"):
        return packet
    pseudo = (
        b"" if packet.protocol == ICMP else bytes(packet.raw[12:20]) + struct.pack("!HH", packet.protocol, len(data))
    )
    struct.pack_into("!H", packet.raw, packet.header_len + at, 0)
    checksum = ones_sum(pseudo + packet.payload) ^ 0xFFFF
    if checksum == 0 and packet.protocol == UDP:
        checksum = 0xFFFF
    struct.pack_into("!H", packet.raw, packet.header_len + at, checksum)
    return packet


def _port(packet: Datagram, source: bool) -> int:
    flow = packet.flow()
    return (flow.source if source else flow.destination).port if flow else 0
