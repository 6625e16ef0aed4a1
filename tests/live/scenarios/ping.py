"""Echo requests of several sizes, fragmented ones among them, and none lost."""

from __future__ import annotations

import re

from expect import eventually, expect, expect_success
from place import Place


def small_and_large(place: Place) -> None:
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
    """Asks until as many answers have come. One in ten may be late, as ping does not wait for it before it asks again."""
    patience = int(place.patience)
    options = ("-q", "-c", str(count), "-w", str(patience), "-i", "0.02", "-s", str(size))
    done = place.client.run("ping", *options, address, patience=patience + 5)
    told = done.stdout.decode()
    figures = re.search(r"(\d+) packets transmitted, (\d+) received", told)
    asked, answered = map(int, figures.groups()) if figures else (0, 0)
    is_whole = answered >= count and asked <= answered + count // 10
    expect(is_whole, f"{size} bytes to {address}: {' '.join(told.split())[-160:]}")
    expect_success(done)
