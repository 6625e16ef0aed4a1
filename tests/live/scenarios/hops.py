"""What traceroute shows: the middle is a hop, and says so when the time to live is up."""

from __future__ import annotations

import socket
import struct
import time

from expect import expect
from place import Place

#: linux/errqueue.h and in.h, in6.h: names that Python has not.
IP_RECVERR, IPV6_RECVERR = 11, 25
SO_EE_ORIGIN_ICMP, SO_EE_ORIGIN_ICMP6 = 2, 3
TIME_EXCEEDED = {socket.AF_INET: (11, 0), socket.AF_INET6: (3, 0)}
PORT_UNREACHABLE = {socket.AF_INET: (3, 3), socket.AF_INET6: (1, 4)}
#: Where probes go (traceroute's first port): nobody listens there.
PORT = 33434


def version4(place: Place) -> None:
    trace(place, socket.AF_INET, place.address, "192.168.77.1")


def version6(place: Place) -> None:
    trace(place, socket.AF_INET6, place.address6, "fd77::1")


def trace(place: Place, family: int, target: str, middle: str) -> None:
    first = probe(place, family, target, hops=1)
    expect(first == (middle, TIME_EXCEEDED[family]), f"the first hop is {first}")
    second = probe(place, family, target, hops=2)
    expect(second == (target, PORT_UNREACHABLE[family]), f"the second hop is {second}")


def probe(place: Place, family: int, target: str, hops: int) -> tuple[str, tuple[int, int]] | None:
    """Who answers a datagram that may take so many hops, and with which ICMP error."""
    level, receive = (socket.IPPROTO_IP, IP_RECVERR), (socket.IPPROTO_IPV6, IPV6_RECVERR)
    (protocol, option) = level if family == socket.AF_INET else receive
    limit = socket.IP_TTL if family == socket.AF_INET else socket.IPV6_UNICAST_HOPS
    with place.client.socket(family, socket.SOCK_DGRAM) as sender:
        sender.setsockopt(protocol, option, 1)
        sender.setsockopt(protocol, limit, hops)
        sender.settimeout(0.5)
        sender.connect((target, PORT))
        deadline = time.monotonic() + place.patience
        while time.monotonic() < deadline:
            sender.send(b"hop")
            try:
                sender.recv(64)
            except TimeoutError:
                continue
            except OSError:
                # An error is waiting in the queue.
                return offender(sender, protocol, option)
    return None


def offender(sender: socket.socket, protocol: int, option: int) -> tuple[str, tuple[int, int]] | None:
    _, ancillary, _, _ = sender.recvmsg(64, 512, socket.MSG_ERRQUEUE)
    for level, kind, data in ancillary:
        if (level, kind) == (protocol, option):
            # struct sock_extended_err, then the sender's address.
            _, origin, icmp_type, code = struct.unpack_from("=IBBB", data)
            expect(origin in (SO_EE_ORIGIN_ICMP, SO_EE_ORIGIN_ICMP6), f"an error of origin {origin}")
            if origin == SO_EE_ORIGIN_ICMP:
                return socket.inet_ntop(socket.AF_INET, data[20:24]), (icmp_type, code)
            return socket.inet_ntop(socket.AF_INET6, data[24:40]), (icmp_type, code)
    return None
