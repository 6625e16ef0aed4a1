"""A flood of small packets, while others must still get through."""

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
#: Datagrams at least, and what curl gets meanwhile.
LEAST = 10_000
FETCHES = 2
#: More than 500 packets a second bring in the time that a scenario has on spoiled wires.
LENGTH = 2_000_000


def from_inside(place: Place) -> None:
    """Datagrams of a few hundred flows, to nobody, as fast as one process can send them."""
    during(place, place.client, place.address)


def from_outside(place: Place) -> None:
    """Datagrams that nobody asked for."""
    during(place, place.server, "203.0.113.1")


def during(place: Place, sender: Host, target: str) -> None:
    command = (sys.executable, str(SENDER), target, str(LEAST))
    flooder = sender.start(*command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    # Once it says that it is at it.
    flooder.stdout.readline()
    for _ in range(FETCHES):
        body, _ = place.get(LENGTH)
        expect(hashlib.sha256(body).hexdigest() == content.digest(LENGTH), "not what was sent")
        expect(flooder.poll() is None, "curl got through only after the flood")
    sent = int(flooder.communicate()[0].split()[-1])
    expect(sent >= LEAST, f"only {sent} packets were sent")
