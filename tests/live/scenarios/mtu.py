"""The MTU of a wire changes while packets pass: senders are told, what may be cut is, and nothing is lost in silence."""

from __future__ import annotations

import socket
import struct

from expect import eventually, expect
from host import INTERFACE
from place import Place
from scenarios.ping import ping

#: The narrower wire: less than usual, and enough for IPv6.
NARROW = 1300
#: linux/in.h and in6.h: names that Python does not have.
IP_MTU_DISCOVER, IP_PMTUDISC_DO, IP_MTU = 10, 2, 14
IPV6_MTU_DISCOVER, IPV6_PMTUDISC_DO, IPV6_MTU = 23, 2, 24
#: The discard port (RFC 863): nobody listens there.
PORT = 9


def version4(place: Place) -> None:
    """Datagrams that must not be cut: the sender learns the MTU. Others arrive in fragments."""
    option = (socket.IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DO, IP_MTU)
    narrowed_and_widened(place, socket.AF_INET, place.address, option)


def version6(place: Place) -> None:
    option = (socket.IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_DO, IPV6_MTU)
    narrowed_and_widened(place, socket.AF_INET6, place.address6, option)


def narrowed_and_widened(place: Place, family: int, address: str, option: tuple[int, int, int, int]) -> None:
    usual = place.network.mtu
    eventually(lambda: place.is_open(address), place.patience, f"nothing passes to {address}")
    try:
        set_mtu(place, NARROW)
        eventually(
            lambda: path_mtu(place, family, address, option) == NARROW,
            place.patience,
            f"the sender is not told that packets to {address} may have {NARROW} bytes",
        )
        forget(place)
        if family == socket.AF_INET:
            cut = ("ping", "-c", "1", "-W", "1", "-M", "dont", "-s", str(NARROW), address)
            eventually(lambda: place.client.run(*cut).returncode == 0, place.patience, "nothing passes in fragments")
        length = 200_000
        expect(len(place.get(length, address)[0]) == length, "a page does not arrive whole")
    finally:
        set_mtu(place, usual)
        forget(place)
    whole = ("ping", "-c", "1", "-W", "1", "-M", "do", "-s", str(usual - 48), address)
    eventually(lambda: place.client.run(*whole).returncode == 0, place.patience, "the wider wire is not used")


def without_addresses(place: Place) -> None:
    """Where nobody can be told, what is too long is counted, and the rest passes."""
    usual = place.network.mtu
    ping(place, place.address, usual - 28, count=5)
    before = too_big(place)
    try:
        set_mtu(place, NARROW)
        long = ("ping", "-c", "1", "-W", "0.2", "-M", "do", "-s", str(usual - 28), place.address)
        eventually(lambda: place.client.run(*long).returncode != 0, place.patience, "long packets pass a narrow wire")
        if place.middle.is_process:
            eventually(lambda: counts_one(place, long), place.patience, "what is too long is not counted as too_big")
            expect(too_big(place) > before, "too_big has not grown")
        ping(place, place.address, NARROW - 28, count=5)
    finally:
        set_mtu(place, usual)
    ping(place, place.address, usual - 28, count=5)


def counts_one(place: Place, long: tuple[str, ...]) -> bool:
    """Whether one packet that is too long is one drop more."""
    before = too_big(place)
    place.client.run(*long)
    return too_big(place) == before + 1


def too_big(place: Place) -> int:
    if not place.middle.is_process:
        return 0
    return place.middle.ask({"command": "status"})["dropped"].get("too_big", 0)


def set_mtu(place: Place, mtu: int) -> None:
    """Both ends of the wire to the outside: no end takes what the other may not send."""
    place.network.middle.ip("link", "set", "wan", "mtu", str(mtu))
    place.network.outside.ip("link", "set", INTERFACE, "mtu", str(mtu))


def forget(place: Place) -> None:
    """Hosts remember path MTUs for minutes."""
    for host in (place.client, place.network.outside):
        host.ip("route", "flush", "cache")
        host.ip("-6", "route", "flush", "cache")


def path_mtu(place: Place, family: int, address: str, option: tuple[int, int, int, int]) -> int:
    """What the client takes for the MTU towards an address, once it has sent as much as its own wire carries."""
    level, discover, never_cut, mtu = option
    with place.client.socket(family, socket.SOCK_DGRAM) as sender:
        sender.setsockopt(level, discover, never_cut)
        sender.connect((address, PORT))
        headers = 28 if family == socket.AF_INET else 48
        for _ in range(2):
            try:
                sender.send(bytes(place.network.mtu - headers))
            except OSError:
                # What it was told about the one before.
                continue
        sender.settimeout(0.2)
        try:
            sender.recv(1)
        except OSError:
            pass
        return struct.unpack("=i", sender.getsockopt(level, mtu, 4))[0]
