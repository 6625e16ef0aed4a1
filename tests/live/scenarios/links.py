"""Interfaces go down, come up, and go away."""

from __future__ import annotations

import socket
import time

from expect import eventually, expect
from network import OUTSIDE
from place import PATIENCE, Place
from rheo import RheoMiddle
from scenarios.fetch import version4
from servers import ECHO_PORT

#: The exit status of a run whose interface is gone.
LOST = 3


def down_and_up(place: Place) -> None:
    """Connections made afterwards work, on either side's interface."""
    for interface in ("lan", "wan"):
        place.network.middle.ip("link", "set", interface, "down")
        time.sleep(0.3)
        place.network.middle.ip("link", "set", interface, "up")
        place.wait_until_open()
        version4(place)


def vanished(place: Place) -> None:
    """A run whose interface is deleted ends, says which one it was, and has a status that says so, too."""
    middle = place.middle
    place.network.middle.ip("link", "del", "wan")
    summary = middle.ended(status=LOST)
    expect("interface `wan` is gone" in middle.log(), f"rheo does not say which interface is gone: {middle.log()}")
    expect("panicked" not in middle.log(), middle.log())
    expect(state(summary) == "gone", f"the summary does not say so: {summary}")


def returned(place: Place) -> None:
    """A run that waits for its interface takes it up again, and a connection through the NAT goes on."""
    middle = place.middle
    middle.stop()
    middle.on_loss = "wait"
    place.start_middle()
    with place.client.connect(OUTSIDE[0], ECHO_PORT, place.patience) as connection:
        echo(connection, b"before")
        place.network.middle.ip("link", "del", "wan")
        eventually(lambda: link_of(middle) == "gone", place.patience, "the loss is not reported")
        place.network.rewire_outside()
        connection.settimeout(PATIENCE)
        echo(connection, b"after")
    # Packets may pass before that is reported.
    eventually(lambda: link_of(middle) == "up", place.patience, "the return is not reported")
    again = "interface `wan` is back and in use again"
    eventually(lambda: again in middle.log(), place.patience, f"the return is not told: {middle.log()}")
    version4(place)


def link_of(middle: RheoMiddle) -> str:
    """The state of the link of `wan` now."""
    return state(middle.ask({"command": "status"}))


def state(summary: dict) -> str:
    """The state of the link of `wan`."""
    return next(link["state"] for link in summary["links"] if link["device"] == "wan")


def echo(connection: socket.socket, line: bytes) -> None:
    connection.sendall(line)
    answer = b""
    while len(answer) < len(line):
        more = connection.recv(100)
        expect(bool(more), "the connection has ended")
        answer += more
    expect(answer == line, f"{answer!r} came back for {line!r}")
