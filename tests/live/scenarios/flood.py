"""A flood of small packets: whatever it costs while it lasts, everybody gets through after it, and beside one that leaves
time for others."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

import content
from expect import expect
from host import Host
from place import Place

SENDER = Path(__file__).parents[1] / "flooder.py"
#: Datagrams as fast as one process sends them, which may be faster than the middle forwards, and then more of them at a
#: pace that the slowest middle keeps up with. A multiple of what goes out at once.
COUNT = 200_000
#: What curl gets after the former, while the latter come.
FETCHES = 2
#: More than 500 packets a second bring in the time that a scenario has on spoiled wires.
LENGTH = 2_000_000


def from_inside(place: Place) -> None:
    """Datagrams of a few hundred flows, to nobody."""
    beside(place, place.client, place.address)


def from_outside(place: Place) -> None:
    """Datagrams that nobody asked for."""
    beside(place, place.server, "203.0.113.1")


def beside(place: Place, sender: Host, target: str) -> None:
    command = (sys.executable, str(SENDER), target, str(COUNT))
    flooder = sender.start(*command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    flooder.stdout.readline()
    for _ in range(FETCHES):
        body, _ = place.get(LENGTH)
        expect(hashlib.sha256(body).hexdigest() == content.digest(LENGTH), "not what was sent")
        expect(flooder.poll() is None, "curl got through only after the flood")
    sent = int(flooder.communicate()[0].split()[-1])
    expect(sent > COUNT, f"only {sent} packets were sent")
