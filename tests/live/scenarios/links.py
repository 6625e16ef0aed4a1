"""Interfaces go down, come up, and go away."""

from __future__ import annotations

import time

from expect import expect
from network import OUTSIDE
from place import Place
from scenarios.fetch import version4


def down_and_up(place: Place) -> None:
    """Connections made afterwards work, on either side's interface."""
    for interface in ("lan", "wan"):
        place.network.middle.ip("link", "set", interface, "down")
        time.sleep(0.3)
        place.network.middle.ip("link", "set", interface, "up")
        place.wait_until_open()
        version4(place)


def vanished(place: Place) -> None:
    """An interface that is deleted is nothing to die of: rheo either goes on and ends when told to, or ends saying
    which interface is gone."""
    middle = place.middle
    place.network.middle.ip("link", "del", "wan")
    expect(place.client.run("ping", "-c", "2", "-W", "1", OUTSIDE[0]).returncode != 0, "packets pass over no wire")
    time.sleep(0.5)
    if middle.is_running():
        middle.stop()
        return
    expect("wan" in middle.diagnosis(), f"rheo does not say which interface is gone: {middle.diagnosis()}")
    expect("panicked" not in middle.diagnosis(), middle.diagnosis())
    middle.check_clean()
