"""The Internet checksum (RFC 1071), written out for the comparison alone."""

from __future__ import annotations


def ones_sum(data: bytes, start: int = 0) -> int:
    """The one's complement sum of 16-bit words, an odd last byte padded with zero."""
    if len(data) % 2:
        data = bytes(data) + b"\0"
    total = start
    for at in range(0, len(data), 2):
        total += data[at] << 8 | data[at + 1]
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total


def updated(checksum: int, old: bytes, new: bytes) -> int:
    """The checksum after `old`, at an even place, became `new` (RFC 1624, equation 3). A wrong checksum stays
    wrong by as much."""
    return ones_sum(new, (checksum ^ 0xFFFF) + (ones_sum(old) ^ 0xFFFF)) ^ 0xFFFF
