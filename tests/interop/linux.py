"""The router that Linux makes: one namespace between two others, translating with nftables."""

from __future__ import annotations

import os
import select
import socket
import struct
import time
from types import TracebackType

from datagram import PROTOCOL_NAMES, UDP
from namespaces import PACKET_OUTGOING, Namespace
from scenario import EXTERNAL, Exchange, Scenario, Side
from translation import Translation

IPV4, IPV6 = b"\x08\x00", b"\x86\xdd"
#: The router's interfaces, and the hosts on their other ends.
ROUTER_MAC = {Side.LAN: "02:00:00:00:01:01", Side.WAN: "02:00:00:00:02:01"}
HOST_MAC = {Side.LAN: "02:00:00:00:01:02", Side.WAN: "02:00:00:00:02:02"}
#: A packet that passes untranslated and tells that everything before it is through (RFC 5737 addresses).
MARKER_SOURCE, MARKER_DESTINATION = "192.0.2.1", "192.0.2.2"
#: How long a marker may take before the router counts as broken. Seconds.
PATIENCE = 120.0


class LinuxRouter:
    """Client namespace, router, server namespace. Nothing but raw sockets lives in the outer two, so that every
    packet is one of ours."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        self._namespaces: list[Namespace] = []
        self._sockets: dict[Side, socket.socket] = {}
        self._marker = 0

    def __enter__(self) -> LinuxRouter:
        try:
            self._build()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        for raw in self._sockets.values():
            raw.close()
        for namespace in self._namespaces:
            namespace.close()

    def run(self) -> list[Exchange]:
        """Sends the steps one by one, each when everything before it is through."""
        translation = Translation(self._scenario.forwards)
        exchanges = []
        for step in self._scenario.steps:
            sent = translation.to_send(step)
            out = [] if sent is None else self._exchange(step.side, sent)
            for _, packet in out:
                translation.learn(step, packet)
            exchanges.append(Exchange(step, sent, out))
        return exchanges

    def _exchange(self, side: Side, packet: bytes) -> list[tuple[Side, bytes]]:
        self._send(side, packet)
        self._marker += 1
        marker = marker_packet(self._marker)
        self._send(Side.LAN, marker)
        out: list[tuple[Side, bytes]] = []
        deadline = time.monotonic() + PATIENCE
        passed = False
        while not passed:
            ready, _, _ = select.select(self._sockets.values(), [], [], deadline - time.monotonic())
            if not ready:
                raise RuntimeError(f"{self._scenario.name}: the router passes nothing any more")
            passed = self._drain(out, marker)
        # All frames went over one processor's queue, the marker last, so the other side has had its own.
        self._drain(out, marker)
        return out

    def _drain(self, out: list[tuple[Side, bytes]], marker: bytes) -> bool:
        """Takes what has arrived on both sides; says whether the marker was among it."""
        passed = False
        for side, raw in self._sockets.items():
            while True:
                try:
                    frame, address = raw.recvfrom(65_535, socket.MSG_DONTWAIT)
                except BlockingIOError:
                    break
                if address[2] == PACKET_OUTGOING or frame[12:14] not in (IPV4, IPV6):
                    continue
                packet = frame[14:]
                if packet[20:] == marker[20:]:
                    passed = True
                elif not is_own_chatter(packet):
                    out.append((side, packet))
        return passed

    def _send(self, side: Side, packet: bytes) -> None:
        kind = IPV6 if packet[0] >> 4 == 6 else IPV4
        self._sockets[side].send(mac(ROUTER_MAC[side]) + mac(HOST_MAC[side]) + kind + packet)

    def _build(self) -> None:
        # One processor, so that the markers cannot overtake.
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        stem = f"interop-{os.getpid()}"
        hosts = {}
        for name in ("client", "router", "server"):
            self._namespaces.append(Namespace(f"{stem}-{name}"))
        hosts[Side.LAN], router, hosts[Side.WAN] = self._namespaces
        router.sysctl(ROUTER_SYSCTLS)
        for side, host in hosts.items():
            host.sysctl([("net.ipv6.conf.default.disable_ipv6", 1), ("net.ipv6.conf.all.disable_ipv6", 1)])
            link = ("link", "add", side.value, "address", ROUTER_MAC[side], "type", "veth")
            router.ip(*link, "peer", "name", "host", "address", HOST_MAC[side], "netns", host.name)
            router.ip("link", "set", side.value, "addrgenmode", "none", "up")
            host.ip("link", "set", "host", "arp", "off", "up")
            self._sockets[side] = host.raw_socket("host")
        addresses(router)
        router.nft(ruleset(self._scenario))


ROUTER_SYSCTLS = [
    ("net.ipv4.ip_forward", 1),
    ("net.ipv6.conf.all.forwarding", 1),
    ("net.ipv6.conf.default.accept_dad", 0),
    # As a gateway should: nothing from a side that its source is not on (RFC 3704).
    ("net.ipv4.conf.all.rp_filter", 1),
    ("net.ipv4.conf.default.rp_filter", 1),
    ("net.ipv4.conf.all.send_redirects", 0),
    ("net.ipv4.conf.default.send_redirects", 0),
    # Every error that is due is sent.
    ("net.ipv4.icmp_ratelimit", 0),
    ("net.ipv4.icmp_msgs_per_sec", 1_000_000),
    # Sequence numbers are the hosts' affair; a translator needs none.
    ("net.netfilter.nf_conntrack_tcp_be_liberal", 1),
]


def addresses(router: Namespace) -> None:
    """Gives the router its addresses, routes and, as nobody answers, neighbours."""
    router.ip("addr", "add", "10.255.0.1/30", "dev", "lan")
    router.ip("addr", "add", f"{EXTERNAL}/24", "dev", "wan")
    router.ip("-6", "addr", "add", "fd00:ffff::1/64", "dev", "lan", "nodad")
    router.ip("-6", "addr", "add", "2001:db8:ffff::1/64", "dev", "wan", "nodad")
    for side, via in ((Side.LAN, "10.255.0.2"), (Side.WAN, "203.0.113.254")):
        router.ip("neigh", "add", via, "lladdr", HOST_MAC[side], "dev", side.value, "nud", "permanent")
    for side, via in ((Side.LAN, "fd00:ffff::2"), (Side.WAN, "2001:db8:ffff::2")):
        router.ip("-6", "neigh", "add", via, "lladdr", HOST_MAC[side], "dev", side.value, "nud", "permanent")
    router.ip("route", "add", "10.0.0.0/8", "via", "10.255.0.2")
    router.ip("route", "add", f"{MARKER_SOURCE}/32", "via", "10.255.0.2")
    router.ip("route", "add", "default", "via", "203.0.113.254")
    router.ip("-6", "route", "add", "fd00::/16", "via", "fd00:ffff::2")
    router.ip("-6", "route", "add", "default", "via", "2001:db8:ffff::2")


def ruleset(scenario: Scenario) -> str:
    """A gateway as the nftables wiki has it: masquerade, forwards with hairpin, nothing uninvited."""
    destinations = "\n".join(
        f"ip daddr {EXTERNAL} {PROTOCOL_NAMES[f.protocol]} dport {f.external_port} dnat to {f.internal}"
        for f in scenario.forwards
    )
    masquerade = "masquerade"
    if scenario.ports is not None:
        first, last = scenario.ports
        masquerade = f"meta l4proto {{ tcp, udp, icmp }} masquerade to :{first}-{last}"
    return f"""
table ip translate {{
  chain untracked {{ type filter hook prerouting priority raw; ip saddr {MARKER_SOURCE} notrack; }}
  chain in {{ type nat hook prerouting priority dstnat;
    {destinations}
  }}
  chain out {{ type nat hook postrouting priority srcnat;
    oifname "wan" {masquerade}
    oifname "lan" ip saddr 10.0.0.0/8 snat to {EXTERNAL}
  }}
  chain through {{ type filter hook forward priority filter; policy drop;
    ip saddr {MARKER_SOURCE} accept
    ct state established,related accept
    ct state invalid drop
    iifname "lan" accept
    ct status dnat accept
  }}
  chain here {{ type filter hook input priority filter; policy drop; }}
}}
"""


def marker_packet(number: int) -> bytes:
    """A UDP datagram without a checksum whose data no other packet has."""
    data = b"interop marker %12d" % number
    head = bytes([0x45, 0]) + struct.pack("!HHHBB", 28 + len(data), 0, 0, 64, UDP) + b"\0\0"
    head += socket.inet_aton(MARKER_SOURCE) + socket.inet_aton(MARKER_DESTINATION)
    checksum = sum(struct.unpack("!10H", head))
    checksum = 0xFFFF - (checksum % 0xFFFF)
    head = head[:10] + struct.pack("!H", checksum) + head[12:]
    return head + struct.pack("!HHHH", 1, 1, 8 + len(data), 0) + data


def is_own_chatter(packet: bytes) -> bool:
    """Neighbour discovery and multicast listening of the router's own interfaces (RFC 4861, RFC 3810): they go to
    multicast addresses, unasked, and are not forwarded by anyone."""
    return packet[0] >> 4 == 6 and packet[24] == 0xFF and (packet[6] in (0, 58))


def mac(text: str) -> bytes:
    return bytes.fromhex(text.replace(":", ""))
