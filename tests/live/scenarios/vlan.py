"""Frames with 802.1Q tags keep them. Made by hand, since not every kernel has VLAN interfaces; so no TCP in them."""

from __future__ import annotations

import socket
import struct
import time

from checksum import ones_sum
from expect import expect
from host import INTERFACE, Host
from place import Place

ETH_P_8021Q, ETH_P_IP = 0x8100, 0x0800
SOL_PACKET, PACKET_AUXDATA = 263, 8
PACKET_ADD_MEMBERSHIP, PACKET_MR_PROMISC = 1, 1
TP_STATUS_VLAN_VALID = 1 << 4


def tagged(place: Place) -> None:
    """Echo requests in frames of three VLANs and priorities arrive with their tags, and so do answers."""
    ends = [(place.client, b"\x02\0\0\0\0\x0a"), (place.server, b"\x02\0\0\0\0\x0b")]
    for number, tag in enumerate((0x0001, 0x6FFE, 0x2077)):
        for (sender, source), (receiver, target) in (ends, ends[::-1]):
            packet = echo_request(number)
            with listener(receiver) as socket_there, sender.raw_socket(INTERFACE) as socket_here:
                frame = target + source + struct.pack("!HHH", ETH_P_8021Q, tag, ETH_P_IP) + packet
                socket_here.send(frame)
                got = find(socket_there, packet, place.patience)
            expect(got is not None, f"the frame with tag {tag:#06x} did not arrive")
            expect(got == tag, f"tag {tag:#06x} became {got:#06x}")


def listener(host: Host) -> socket.socket:
    """A socket that also tells tags, which the kernel takes out of frames."""
    raw = host.raw_socket(INTERFACE)
    raw.setsockopt(SOL_PACKET, PACKET_AUXDATA, 1)
    # Frames to addresses that are not ours.
    with host.entered():
        membership = struct.pack("iHH8s", socket.if_nametoindex(INTERFACE), PACKET_MR_PROMISC, 0, b"")
    raw.setsockopt(SOL_PACKET, PACKET_ADD_MEMBERSHIP, membership)
    return raw


def find(raw: socket.socket, packet: bytes, patience: float) -> int | None:
    """The tag that this packet arrived with: 0 if it had none, nothing if it did not arrive."""
    deadline = time.monotonic() + patience
    while (left := deadline - time.monotonic()) > 0:
        raw.settimeout(left)
        try:
            frame, ancillary, _, address = raw.recvmsg(2048, 256)
        except TimeoutError:
            break
        if frame[14:] == packet and address[2] != socket.PACKET_OUTGOING:
            for level, kind, data in ancillary:
                if (level, kind) == (SOL_PACKET, PACKET_AUXDATA):
                    # struct tpacket_auxdata
                    status, _, _, _, _, tag, _ = struct.unpack("=IIIHHHH", data)
                    return tag if status & TP_STATUS_VLAN_VALID else 0
    return None


def echo_request(number: int) -> bytes:
    """An ICMP echo request between hosts that do not exist."""
    data = b"tagged frame %8d" % number
    icmp = struct.pack("!BBHHH", 8, 0, 0, 77, number) + data
    icmp = icmp[:2] + struct.pack("!H", ones_sum(icmp) ^ 0xFFFF) + icmp[4:]
    head = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(icmp), number, 0, 64, 1, 0)
    head += socket.inet_aton("192.0.2.1") + socket.inet_aton("192.0.2.2")
    return head[:10] + struct.pack("!H", ones_sum(head) ^ 0xFFFF) + head[12:] + icmp
