"""Packets that no well-behaved host sends, and some that few do."""

from __future__ import annotations

import struct

from scapy.layers.inet import ICMP, IP, TCP, UDP, IPOption
from scapy.layers.inet6 import (
    IPv6,
    IPv6ExtHdrDestOpt,
    IPv6ExtHdrFragment,
    IPv6ExtHdrHopByHop,
    IPv6ExtHdrRouting,
    PadN,
)
from scapy.packet import Packet, Raw

from checksum import ones_sum
from datagram import Endpoint
from scenario import Scenario, Script, Side
from traffic.packets import HOST_A, HOST_B, REMOTE, TEXT, echo, echo_reply, ip, tcp, udp
from traffic.sessions import SYN_OPTIONS, handshake

CLIENT, SERVER = Endpoint(HOST_A, 20_000), Endpoint(REMOTE, 7)


def scenarios() -> list[Scenario]:
    return [
        ip_options(),
        wrong_checksums(),
        no_udp_checksum(),
        overlapping_fragments(),
        teardrop(),
        tiny_fragments(),
        land(),
        bad_flags(),
        time_to_live(),
        wrong_side(),
        broadcast_and_multicast(),
        bad_lengths(),
        other_protocols(),
        header_bits(),
        ipv6(),
    ]


def ip_options() -> Scenario:
    script = Script("IP options")
    record_route = IPOption(b"\x07\x07\x04\x00\x00\x00\x00\x00")
    router_alert = IPOption(b"\x94\x04\x00\x00")
    timestamp = IPOption(b"\x44\x08\x05\x00\x00\x00\x00\x00")
    source_route = IPOption(b"\x83\x07\x04\xc6\x33\x64\x08\x00")
    unknown = IPOption(b"\x9e\x04\x12\x34")
    no_operations = IPOption(b"\x01\x01\x01\x00")
    for name, option in (
        ("no operations", no_operations),
        ("router alert", router_alert),
        ("unknown", unknown),
        ("record route", record_route),
        ("time stamp", timestamp),
        ("loose source route", source_route),
    ):
        header = UDP(sport=CLIENT.port, dport=SERVER.port)
        script.lan(ip(HOST_A, REMOTE, options=[option]) / header / Raw(TEXT), name)
        header = UDP(sport=SERVER.port, dport=CLIENT.port)
        script.wan(ip(REMOTE, HOST_A, options=[option]) / header / Raw(TEXT), f"{name}, answer")
    # An option that says it is longer than the header.
    header = UDP(sport=CLIENT.port, dport=SERVER.port)
    script.lan(ip(HOST_A, REMOTE, options=[IPOption(b"\x9e\x09\x12\x34")]) / header / Raw(TEXT), "cut short")
    return script.done()


def off_by_one(at: int):
    """Makes a checksum at a place of the packet wrong."""

    def spoil(raw: bytes) -> bytes:
        spoilt = bytearray(raw)
        word = struct.unpack_from("!H", spoilt, at)[0]
        struct.pack_into("!H", spoilt, at, (word + 1) % 0xFFFF or 1)
        return bytes(spoilt)

    return spoil


def wrong_checksums() -> Scenario:
    script = Script("wrong checksums")
    connection = (Endpoint(HOST_A, 20_001), Endpoint(REMOTE, 80))
    handshake(script, *connection)
    script.lan(udp(CLIENT, SERVER), "question")
    script.lan(echo(HOST_A, REMOTE, 5), "echo")
    there, back = Side.LAN, Side.WAN
    for side, packet, at, name in (
        (there, tcp(*connection, "PA", TEXT, seq=101, ack=901), 36, "TCP"),
        (back, tcp(*reversed(connection), "PA", TEXT, seq=901, ack=101), 36, "TCP"),
        (there, udp(CLIENT, SERVER), 26, "UDP"),
        (back, udp(SERVER, CLIENT), 26, "UDP"),
        (there, echo(HOST_A, REMOTE, 5), 22, "ICMP"),
        (back, echo_reply(REMOTE, HOST_A, 5), 22, "ICMP"),
        (there, udp(CLIENT, SERVER), 10, "IP"),
        (back, udp(SERVER, CLIENT), 10, "IP"),
        # A new flow cannot start with one either.
        (there, udp(Endpoint(HOST_B, 20_000), SERVER), 26, "first packet, UDP"),
    ):
        send = script.lan if side is there else script.wan
        send(packet, f"{name} checksum", finish=off_by_one(at))
    return script.done()


def no_udp_checksum() -> Scenario:
    script = Script("UDP without a checksum, and with one that is almost zero")
    script.lan(udp(CLIENT, SERVER, chksum=0), "question")
    script.wan(udp(SERVER, CLIENT, chksum=0), "answer")
    # Data chosen so that the right checksum is 0xffff, the form zero takes.
    for there in (True, False):
        ends = (CLIENT, SERVER) if there else (SERVER, CLIENT)
        blank = udp(*ends, b"\0\0" + TEXT)
        checksum = struct.unpack_from("!H", bytes(blank), 26)[0]
        packet = udp(*ends, struct.pack("!H", checksum) + TEXT)
        (script.lan if there else script.wan)(packet, "checksum that comes to zero")
    return script.done()


def overlapping_fragments() -> Scenario:
    script = Script("overlapping fragments")
    whole = bytes(udp(CLIENT, SERVER, TEXT * 4))[20:]
    changed = bytes(byte ^ 1 for byte in whole)
    orders = {
        "second over the first's end": [(0, whole[:64], True), (56, changed[56:], False)],
        "second inside the first": [(0, whole[:96], True), (32, changed[32:64], True), (96, whole[96:], False)],
        "first twice, changed": [(0, whole[:64], True), (0, whole[:8] + changed[8:64], True), (64, whole[64:], False)],
        "another end": [(64, whole[64:], False), (64, whole[64:104], False), (0, whole[:64], True)],
    }
    for number, (name, pieces) in enumerate(orders.items()):
        for offset, data, more in pieces:
            header = IP(src=HOST_A, dst=REMOTE, id=1_000 + number, frag=offset // 8, proto=17)
            header.flags = "MF" if more else 0
            script.lan(header / Raw(data), f"{name}, at {offset}")
    script.lan(udp(CLIENT, SERVER, b"fine"), "a whole datagram behind them")
    return script.done()


def teardrop() -> Scenario:
    script = Script("teardrop")
    header = IP(src=HOST_A, dst=REMOTE, id=242, proto=17)
    whole = bytes(udp(CLIENT, SERVER, b"x" * 28))[20:]
    first, second = header.copy(), header.copy()
    first.flags = "MF"
    second.frag = 3
    script.lan(first / Raw(whole), "first, 36 bytes")
    # Lies within the first: naive arithmetic makes its length negative.
    script.lan(second / Raw(b"\0" * 4), "second, at 24, 4 bytes")
    return script.done()


def tiny_fragments() -> Scenario:
    script = Script("tiny fragments")
    segment = tcp(Endpoint(HOST_A, 20_002), Endpoint(REMOTE, 80), "S", seq=100)
    # The flags in the second fragment (RFC 1858).
    script.fragments(Side.LAN, segment, ((0, 8), (8, 99)), "a SYN cut behind the ports")
    segment = tcp(Endpoint(HOST_A, 20_003), Endpoint(REMOTE, 80), "S", seq=100)
    script.fragments(Side.LAN, segment, ((0, 16), (16, 99)), "a SYN cut before the checksum")
    segment = tcp(Endpoint(HOST_A, 20_004), Endpoint(REMOTE, 80), "S", TEXT, seq=100, options=SYN_OPTIONS)
    script.fragments(Side.LAN, segment, ((0, 32), (32, 199)), "a SYN cut within its options")
    segment = tcp(Endpoint(HOST_A, 20_005), Endpoint(REMOTE, 80), "S", TEXT, seq=100, options=SYN_OPTIONS)
    script.fragments(Side.LAN, segment, ((0, 40), (40, 199)), "a SYN cut behind them")
    datagram = udp(CLIENT, SERVER, TEXT)
    script.fragments(Side.LAN, datagram, [(at, at + 8) for at in range(0, 53, 8)], "eight bytes each")
    # A first fragment without ports.
    header = IP(src=HOST_A, dst=REMOTE, id=77, proto=17, flags="MF")
    script.lan(header, "a first fragment without data")
    # The last byte beyond the longest datagram: ping of death.
    header = IP(src=HOST_A, dst=REMOTE, id=78, proto=1, frag=8_189)
    script.lan(header / Raw(b"x" * 600), "ends beyond 65,535")
    return script.done()


def land() -> Scenario:
    script = Script("land: source and destination are one")
    external = Endpoint("203.0.113.1", 139)
    script.wan(tcp(external, external, "S", seq=1), "external address, from outside", literal=True)
    script.lan(tcp(external, external, "S", seq=1), "external address, from inside", literal=True)
    inside = Endpoint(HOST_A, 139)
    script.lan(tcp(inside, inside, "S", seq=1), "inside address, from inside", literal=True)
    script.wan(tcp(inside, inside, "S", seq=1), "inside address, from outside", literal=True)
    return script.done()


def bad_flags() -> Scenario:
    script = Script("TCP flags that say nothing, or too much")
    for number, flags in enumerate(("", "F", "FPU", "SF", "SR", "SRFAPU", "UP", "SAEC", "A", "FA", "R")):
        client = Endpoint(HOST_A, 21_000 + number)
        script.lan(tcp(client, Endpoint(REMOTE, 80), flags, seq=100, ack=5), f"new flow with flags '{flags}'")
    connection = (Endpoint(HOST_A, 21_100), Endpoint(REMOTE, 80))
    handshake(script, *connection)
    for flags in ("", "SF", "SRFAPU", "FPU"):
        script.lan(tcp(*connection, flags, seq=101, ack=901), f"open flow, flags '{flags}'")
    script.lan(tcp(*connection, "A", seq=101, ack=901), "open flow, plain")
    short = bytearray(bytes(tcp(*connection, "A", TEXT, seq=101, ack=901)))
    short[32] = 0x10
    script.lan(bytes(short), "a header of 4 bytes")
    long = bytearray(bytes(tcp(*connection, "A", seq=101, ack=901)))
    long[32] = 0xF0
    script.lan(bytes(long), "a header longer than the segment")
    return script.done()


def time_to_live() -> Scenario:
    script = Script("time to live")
    script.lan(udp(CLIENT, SERVER), "question")
    for ttl in (0, 1, 2, 255):
        packet = ip(HOST_A, REMOTE, ttl=ttl) / UDP(sport=CLIENT.port, dport=SERVER.port) / Raw(TEXT)
        script.lan(packet, f"{ttl}, from inside")
        packet = ip(REMOTE, HOST_A, ttl=ttl) / UDP(sport=SERVER.port, dport=CLIENT.port) / Raw(TEXT)
        script.wan(packet, f"{ttl}, from outside")
    return script.done()


def wrong_side() -> Scenario:
    script = Script("sources that belong to the other side, or to nobody")
    remote = Endpoint(REMOTE, 53)
    script.wan(udp(CLIENT, Endpoint("203.0.113.1", 53)), "an inside source from outside", literal=True)
    script.lan(udp(remote, Endpoint("198.51.100.9", 53)), "an outside source from inside", literal=True)
    script.lan(udp(Endpoint("203.0.113.1", 4_000), remote), "the external address from inside", literal=True)
    script.lan(udp(CLIENT, remote), "a question, whose port others try to use")
    for source in ("127.0.0.1", "0.0.0.0", "255.255.255.255", "224.0.0.5", "240.0.0.1"):
        script.lan(udp(Endpoint(source, 4_000), remote), f"{source} from inside", literal=True)
        script.wan(udp(Endpoint(source, 4_000), Endpoint("203.0.113.1", 53)), f"{source} from outside", literal=True)
    script.lan(udp(CLIENT, Endpoint("127.0.0.1", 53)), "to 127.0.0.1", literal=True)
    script.lan(udp(CLIENT, Endpoint("0.0.0.0", 53)), "to 0.0.0.0", literal=True)
    return script.done()


def broadcast_and_multicast() -> Scenario:
    script = Script("broadcast and multicast")
    for group in ("255.255.255.255", "224.0.0.1", "224.0.0.251", "239.1.2.3", "203.0.113.255"):
        script.lan(udp(Endpoint(HOST_A, 5_353), Endpoint(group, 5_353)), f"to {group}", literal=True)
        script.wan(udp(Endpoint(REMOTE, 5_353), Endpoint(group, 5_353)), f"to {group}, from outside", literal=True)
    return script.done()


def bad_lengths() -> Scenario:
    script = Script("lengths that do not agree")

    def with_header(packet: Packet, at: int, value: int, width: str = "!H") -> bytes:
        raw = bytearray(bytes(packet))
        struct.pack_into(width, raw, at, value)
        struct.pack_into("!H", raw, 10, 0)
        struct.pack_into("!H", raw, 10, ones_sum(raw[: (raw[0] & 15) * 4]) ^ 0xFFFF)
        return bytes(raw)

    # Without a checksum, so that only the lengths are wrong.
    packet = udp(CLIENT, SERVER, chksum=0)
    script.lan(with_header(packet, 2, len(packet) + 8), "IP says more than there is", literal=True)
    script.lan(bytes(packet) + b"padding", "bytes behind the datagram")
    script.lan(with_header(packet, 2, 24), "IP ends within the UDP header", literal=True)
    script.lan(with_header(packet, 2, 12), "IP ends within its own header", literal=True)
    script.lan(with_header(packet, 24, 4), "UDP length below its header")
    script.lan(with_header(packet, 24, len(TEXT) + 9), "UDP says one byte more than there is")
    script.lan(with_header(packet, 24, len(TEXT)), "UDP says less than there is")
    script.lan(ip(HOST_A, REMOTE, proto=17) / Raw(b"\x4e\x20\x00"), "three bytes of UDP")
    script.lan(ip(HOST_A, REMOTE, proto=6) / Raw(b"\x4e\x20\x00\x50\x00\x00\x00\x01"), "eight bytes of TCP")
    script.lan(ip(HOST_A, REMOTE, proto=1) / Raw(b"\x08\x00\xf7\xff"), "four bytes of ICMP")
    return script.done()


def other_protocols() -> Scenario:
    script = Script("protocols without ports, and other ICMP messages")
    for protocol in (47, 50, 4, 253):
        script.lan(ip(HOST_A, REMOTE, proto=protocol) / Raw(TEXT), f"protocol {protocol}")
    timestamp = ICMP(type=13, code=0, id=3, seq=4, ts_ori=5, ts_rx=0, ts_tx=0)
    script.lan(ip(HOST_A, REMOTE) / timestamp, "ICMP time stamp")
    for kind in (9, 10, 15, 17, 42):
        script.lan(ip(HOST_A, REMOTE) / ICMP(type=kind, code=0), f"ICMP {kind}")
    return script.done()


def header_bits() -> Scenario:
    script = Script("header bits that pass untouched")
    for name, how in (
        ("don't fragment", {"flags": "DF"}),
        ("the reserved bit", {"flags": 4}),
        ("DSCP and ECN", {"tos": 0xBB}),
        ("identification zero", {"id": 0}),
    ):
        header = UDP(sport=CLIENT.port, dport=SERVER.port)
        script.lan(ip(HOST_A, REMOTE, **how) / header / Raw(TEXT), name)
    urgent = TCP(sport=20_003, dport=80, flags="S", seq=1, urgptr=9, reserved=5, window=0)
    script.lan(ip(HOST_A, REMOTE) / urgent, "reserved bits, urgent pointer, window zero")
    long = TCP(sport=20_004, dport=80, flags="S", options=[("NOP", None)] * 39 + [("EOL", None)])
    script.lan(ip(HOST_A, REMOTE) / long, "forty bytes of TCP options")
    unknown = TCP(sport=20_005, dport=80, flags="S", options=[(253, b"\xf9\x89\x01")])
    script.lan(ip(HOST_A, REMOTE) / unknown, "a TCP option for experiments")
    return script.done()


def ipv6() -> Scenario:
    script = Script("IPv6, which is not translated")
    inside, outside = "fd00::2", "2001:db8::7"
    there, back = IPv6(src=inside, dst=outside), IPv6(src=outside, dst=inside)
    datagram = UDP(sport=1_000, dport=2_000)
    headers = {
        "plain": [],
        "hop by hop": [IPv6ExtHdrHopByHop(options=[PadN(optdata=b"\0" * 4)])],
        "destination options": [IPv6ExtHdrDestOpt(options=[PadN(optdata=b"\0" * 4)])],
        "routing, none left": [IPv6ExtHdrRouting(type=4, segleft=0)],
        "atomic fragment": [IPv6ExtHdrFragment(id=9, m=0, offset=0)],
        "three of them": [
            IPv6ExtHdrHopByHop(options=[PadN(optdata=b"\0" * 4)]),
            IPv6ExtHdrRouting(type=4, segleft=0),
            IPv6ExtHdrDestOpt(options=[PadN(optdata=b"\0" * 4)]),
        ],
    }
    for name, chain in headers.items():
        for base, send, way in ((there, script.lan, "out"), (back, script.wan, "in")):
            packet = base.copy()
            for header in chain:
                packet = packet / header.copy()
            send(packet / datagram / Raw(TEXT), f"{name}, {way}")
    script.lan(there / TCP(sport=1_001, dport=80, flags="S"), "a SYN")
    return script.done()
