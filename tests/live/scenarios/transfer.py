"""Much data, hashed on both ends."""

from __future__ import annotations

import hashlib
import os

import content
from expect import expect
from place import Place

#: What is transferred; more by hand.
LENGTH = int(os.environ.get("RLIVE_TRANSFER", 10**9))


def checksums_equal(place: Place) -> None:
    sha, length = hashlib.sha256(), 0
    with place.client.connect(place.address, place.port, place.patience) as connection:
        connection.sendall(b"GET /%d HTTP/1.0\r\n\r\n" % LENGTH)
        with connection.makefile("rb", buffering=content.BLOCK) as answer:
            while answer.readline() not in (b"\r\n", b""):
                pass
            while block := answer.read(content.BLOCK):
                sha.update(block)
                length += len(block)
    expect(length == LENGTH, f"{length} of {LENGTH} bytes arrived")
    expect(sha.hexdigest() == content.digest(LENGTH), "the checksums differ")
