"""Bytes of which no two parts are alike, so that lost, doubled and swapped ones show in a checksum."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator

BLOCK = 1 << 20
_BASE = random.Random(77).randbytes(BLOCK) * 2


def blocks(length: int) -> Iterator[bytes]:
    """The first `length` bytes, in blocks of up to one MiB, each turned by its number."""
    for number in range(-(-length // BLOCK)):
        turned = number * 4099 % BLOCK
        yield _BASE[turned : turned + min(BLOCK, length - number * BLOCK)]


def digest(length: int) -> str:
    """The SHA-256 of the first `length` bytes."""
    sha = hashlib.sha256()
    for block in blocks(length):
        sha.update(block)
    return sha.hexdigest()
