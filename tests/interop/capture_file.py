"""Captures, as rheo reads and writes them: pcap with nanoseconds, Ethernet."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from pathlib import Path

NANOSECONDS = 0xA1B23C4D
ETHERNET = 1
#: Any two addresses: nobody looks at them.
MACS = bytes.fromhex("020000000001020000000002")


def write(path: Path, packets: Iterable[tuple[int, bytes]]) -> None:
    """Writes IP packets with their times in nanoseconds, each in an Ethernet frame."""
    with path.open("wb") as file:
        file.write(struct.pack("<IHHiIII", NANOSECONDS, 2, 4, 0, 0, 65_535, ETHERNET))
        for time, packet in packets:
            kind = b"\x86\xdd" if packet[0] >> 4 == 6 else b"\x08\x00"
            frame = MACS + kind + packet
            file.write(struct.pack("<IIII", *divmod(time, 10**9), len(frame), len(frame)) + frame)


def read(path: Path) -> Iterator[tuple[int, bytes]]:
    """The IP packets of a capture that rheo wrote, with their times in nanoseconds."""
    data = path.read_bytes()
    if not data:
        return
    magic, *_, link = struct.unpack_from("<IHHiIII", data)
    if magic != NANOSECONDS or link != ETHERNET:
        raise ValueError(f"{path}: not a capture of Ethernet with nanoseconds")
    at = 24
    while at < len(data):
        seconds, nanos, length, _ = struct.unpack_from("<IIII", data, at)
        at += 16
        yield seconds * 10**9 + nanos, data[at + 14 : at + length]
        at += length
