"""Echo requests of several sizes, fragmented ones among them, and none lost."""

from __future__ import annotations

from expect import eventually, expect, expect_success
from place import Place


def small_and_large(place: Place) -> None:
    # ping waits for the last answers as long as others took, which it does not know of smaller ones.
    for size in (16, 56, 1472):
        ping(place, place.address, size)


def fragmented(place: Place) -> None:
    ping(place, place.address, 4000, count=10)


def to_the_middle(place: Place) -> None:
    """The middle answers for its own address."""
    ping(place, "203.0.113.1" if place.client is place.network.outside else "192.168.77.1", 56)


def version6(place: Place) -> None:
    # Until neighbours have found each other, few packets wait and others are dropped.
    eventually(lambda: place.is_open(place.address6), place.patience, "nothing passes by IPv6")
    for size in (56, 1452, 4000):
        ping(place, place.address6, size, count=10)


def ping(place: Place, address: str, size: int, count: int = 20) -> None:
    done = place.client.run("ping", "-q", "-c", str(count), "-i", "0.02", "-W", "2", "-s", str(size), address)
    told = done.stdout.decode()
    expect(f"{count} received" in told, f"{size} bytes to {address}: {' '.join(told.split())[-160:]}")
    expect_success(done)
