"""Fragments put together again, as a host would (RFC 791), except that pieces may not overlap. The same piece twice
counts once."""

from __future__ import annotations

import struct

from checksum import ones_sum
from datagram import Datagram


class Reassembler:
    """Takes what leaves on one side and gives back whole datagrams."""

    def __init__(self) -> None:
        self._pieces: dict[tuple[str, str, int, int], list[Datagram]] = {}

    def take(self, raw: bytes) -> bytes | None:
        """A whole datagram as it is; a fragment only once it completes its datagram, then that datagram. `None`
        while parts are missing."""
        piece = Datagram(raw)
        if not piece.is_fragment:
            return raw
        pieces = self._pieces.setdefault(piece.datagram, [])
        pieces.append(piece)
        whole = join(pieces)
        if whole is not None:
            del self._pieces[piece.datagram]
        return whole

    def left(self) -> list[list[Datagram]]:
        """Fragments whose datagrams were not completed, by datagram."""
        return list(self._pieces.values())


def join(pieces: list[Datagram]) -> bytes | None:
    """The datagram that these fragments make, if none is missing and none overlaps."""
    pieces = sorted(pieces, key=lambda piece: piece.offset)
    data = b""
    for piece in pieces:
        if piece.end <= len(data) and data[piece.offset : piece.end] == piece.payload:
            continue
        if piece.offset != len(data):
            return None
        data += piece.payload
    if pieces[-1].more_fragments:
        return None
    header = bytearray(pieces[0].raw[: pieces[0].header_len])
    struct.pack_into("!H", header, 2, len(header) + len(data))
    # Don't-fragment and the reserved bit stay; a wrong checksum stays wrong by as much.
    error = pieces[0].header_checksum_error()
    flags = struct.unpack_from("!H", header, 6)[0] & 0xC000
    struct.pack_into("!H", header, 6, flags)
    struct.pack_into("!H", header, 10, 0)
    struct.pack_into("!H", header, 10, ones_sum(header, error) ^ 0xFFFF)
    return bytes(header) + data
