"""The Internet checksum (RFC 1071), written out for the comparison alone."""

from __future__ import annotations


def ones_sum(data: bytes, start: int = 0) -> int:
    """The one's complement sum of 16-bit words, an odd last byte padded with zero."""
    # A number and the sum of its digits to the base 65,536 leave the same rest; only all zeros sum to zero.
    number = int.from_bytes(data) << 8 * (len(data) % 2)
    return (number + start) % 0xFFFF or (0xFFFF if number + start else 0)


def updated(checksum: int, old: bytes, new: bytes) -> int:
    """The checksum after `old`, at an even place, became `new` (RFC 1624, equation 3). A wrong checksum stays
    wrong by as much."""
    return ones_sum(new, (checksum ^ 0xFFFF) + (ones_sum(old) ^ 0xFFFF)) ^ 0xFFFF
