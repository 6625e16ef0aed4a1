"""Echo requests of several sizes, fragmented ones among them, and none lost."""

from __future__ import annotations

import itertools
import os
import socket
import struct
import time

from expect import eventually, expect
from place import Place

#: Seconds between requests.
INTERVAL = 0.02
#: RFC 792, RFC 4443.
ECHO_REQUEST, ECHO_REPLY, ECHO_REQUEST_6, ECHO_REPLY_6 = 8, 0, 128, 129

#: So that late answers to one series are not taken for those to the next.
_numbers = itertools.count()


def small_and_large(place: Place) -> None:
    for size in (16, 56, 1472):
        ping(place, place.address, size)


def fragmented(place: Place) -> None:
    ping(place, place.address, 4000, count=10)


def to_the_middle(place: Place) -> None:
    """The middle answers for its own address."""
    ping(place, "203.0.113.1" if place.client is place.network.outside else "192.168.77.1", 56)


def version6(place: Place) -> None:
    # Until neighbours have found each other, few packets wait and others are dropped.
    eventually(lambda: place.is_open(place.address6), place.patience, "nothing passes by IPv6")
    for size in (56, 1452, 4000):
        ping(place, place.address6, size, count=10)


def ping(place: Place, address: str, size: int, count: int = 20) -> None:
    """Sends so many requests with so many bytes, and waits for all answers: `ping` itself waits for the last ones only as
    long as others took, and on a busy machine any may be late."""
    is_v6 = ":" in address
    family, protocol = (socket.AF_INET6, socket.IPPROTO_ICMPV6) if is_v6 else (socket.AF_INET, socket.IPPROTO_ICMP)
    with place.client.socket(family, socket.SOCK_RAW, protocol) as link:
        identifier, data = (os.getpid() + next(_numbers)) & 0xFFFF, bytes(at & 0xFF for at in range(size))
        missing, damaged = set(range(1, count + 1)), set()
        deadline = time.monotonic() + place.patience
        for sequence in range(1, count + 1):
            link.sendto(request(is_v6, identifier, sequence, data), (address, 0))
            missing -= answers(link, is_v6, identifier, data, damaged, time.monotonic() + INTERVAL)
        while missing and time.monotonic() < deadline:
            missing -= answers(link, is_v6, identifier, data, damaged, min(deadline, time.monotonic() + 0.1))
    expect(not damaged, f"{size} bytes to {address}: other bytes came back in {sorted(damaged)}")
    expect(not missing, f"{size} bytes to {address}: {len(missing)} of {count} are not answered: {sorted(missing)}")


def request(is_v6: bool, identifier: int, sequence: int, data: bytes) -> bytes:
    """An echo request. For IPv6 the kernel fills in the checksum."""
    kind = ECHO_REQUEST_6 if is_v6 else ECHO_REQUEST
    header = struct.pack("!BBHHH", kind, 0, 0, identifier, sequence)
    checksum = 0 if is_v6 else internet_checksum(header + data)
    return struct.pack("!BBHHH", kind, 0, checksum, identifier, sequence) + data


def answers(
    link: socket.socket, is_v6: bool, identifier: int, data: bytes, damaged: set[int], until: float
) -> set[int]:
    """The numbers of the answers that come until then."""
    found: set[int] = set()
    while (left := until - time.monotonic()) > 0:
        link.settimeout(left)
        try:
            packet = link.recv(65_535)
        except TimeoutError:
            break
        # With its header, for IPv4 alone.
        message = packet if is_v6 else packet[(packet[0] & 0xF) * 4 :]
        kind, _, _, whose, sequence = struct.unpack_from("!BBHHH", message)
        if (kind, whose) == (ECHO_REPLY_6 if is_v6 else ECHO_REPLY, identifier):
            found.add(sequence)
            if message[8:] != data:
                damaged.add(sequence)
    return found


def internet_checksum(message: bytes) -> int:
    """RFC 1071."""
    padded = message + bytes(len(message) % 2)
    total = sum(struct.unpack(f"!{len(padded) // 2}H", padded))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total ^ 0xFFFF
