"""Frames of 9,000 bytes."""

from __future__ import annotations

import hashlib
import socket

import content
from expect import expect
from place import Place
from scenarios.ping import ping



def whole(place: Place) -> None:
    """Echo requests that fill a frame, and a connection whose segments do."""
    # 9,000 less the headers of IPv4 and ICMP.
    ping(place, place.address, 8_972)
    with place.client.connect(place.address, place.port, place.patience) as connection:
        connection.sendall(b"GET /20000000 HTTP/1.0\r\n\r\n")
        with connection.makefile("rb") as answer:
            while answer.readline() not in (b"\r\n", b""):
                pass
            body = answer.read()
        segment = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG)
    expect(hashlib.sha256(body).hexdigest() == content.digest(20_000_000), "not what was sent")
    expect(segment > 8_000, f"segments of {segment} bytes")
