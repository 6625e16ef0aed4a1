"""curl gets what the server sent."""

from __future__ import annotations

import hashlib

import content
from expect import expect
from place import Place


def version4(place: Place) -> None:
    fetch(place, place.address)


def version6(place: Place) -> None:
    fetch(place, place.address6)


def translated(place: Place) -> None:
    """The server sees the external address."""
    _, headers = place.get(1)
    expect(headers["X-Client"] == "203.0.113.1", f"the server saw {headers['X-Client']}")


def fetch(place: Place, address: str) -> None:
    for length in (0, 1, 100_000, 5_000_000):
        body, _ = place.get(length, address)
        expect(len(body) == length, f"{len(body)} of {length} bytes")
        expect(hashlib.sha256(body).hexdigest() == content.digest(length), f"{length} bytes: not what was sent")
