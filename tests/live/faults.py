"""What is done to the wires to see that scenarios can fail.

Rules stand at interfaces, before the kernel looks at a packet."""

from __future__ import annotations

from dataclasses import dataclass

from host import INTERFACE
from network import MIDDLE, THIRD
from place import Place


@dataclass(frozen=True)
class Fault:
    """Rules for packets that arrive at the client or at either side of the middle, or a server at fault itself."""

    name: str
    rules: str = ""
    at: str = "client"
    #: Which byte of its answers the server sends wrongly.
    damage: int | None = None

    def inflict(self, place: Place) -> None:
        if not self.rules:
            return
        host, interfaces = (place.client, (INTERFACE,)) if self.at == "client" else (place.network.middle, MIDDLE)
        for interface in interfaces:
            hook = f'type filter hook ingress device "{interface}" priority 0'
            host.nft(f"table netdev fault-{interface} {{\nchain wire {{\n{hook};\n{self.rules}\n}}\n}}")


#: Every fifth echo reply lost.
LOST_ECHOES = Fault("every fifth answer lost", "icmp type echo-reply numgen inc mod 5 == 0 drop")
LOST_ECHOES6 = Fault("every fifth answer lost", "icmpv6 type echo-reply numgen inc mod 5 == 0 drop")
NO_ECHOES = Fault("no echo requests arrive", "icmp type echo-request drop")
LOST_FRAGMENTS = Fault("every tenth fragment lost", "ip frag-off & 0x3fff != 0 numgen inc mod 10 == 0 drop")
#: Segments with data arrive with checksums that are wrong, so TCP takes none of them.
WRONG_TCP = Fault(
    "wrong checksums of long TCP segments", "tcp flags & (syn|rst) == 0 meta length > 200 tcp checksum set 0xbeef"
)
WRONG_DATA = Fault("one byte sent wrongly", damage=777)
WRONG_DATA_LATE = Fault("one byte of a gigabyte sent wrongly", damage=900_000_000)
LOST_DATAGRAMS = Fault("a tenth of datagrams lost", "meta l4proto udp numgen inc mod 10 == 9 drop")
#: So that one in a hundred of a flood gets through, and of everything else as well.
FEW = Fault("all but 500 packets a second dropped", "limit rate over 500/second burst 5 packets drop", at="middle")
SILENT_HOP = Fault("no ICMP errors arrive", "icmp type time-exceeded drop")
SILENT_HOP6 = Fault("no ICMP errors arrive", "icmpv6 type time-exceeded drop")
NOT_TOLD = Fault("nobody says what is too long", "icmp type destination-unreachable drop")
NOT_TOLD6 = Fault("nobody says what is too long", "icmpv6 type packet-too-big drop")
CUT_OFF = Fault("nothing arrives after a megabyte", "quota over 1 mbytes drop")
SHORT = Fault("frames over 1,500 bytes lost", "meta length > 1500 drop")
#: Not at the hosts, where raw sockets come before rules.
NO_VLANS = Fault("tagged frames lost", "vlan id 2-4095 drop", at="middle")
#: A bridge that has not learned.
FLOODED = Fault("every frame copied to the third port", f'dup to "{THIRD}"', at="middle")
NO_BROADCASTS = Fault("broadcasts lost", "ether type 0x88b5 ether daddr ff:ff:ff:ff:ff:ff drop", at="middle")
NO_TCP = Fault("no TCP arrives", "meta l4proto tcp drop")
