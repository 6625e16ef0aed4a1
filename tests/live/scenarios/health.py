"""Backends that are asked whether they serve, by checks that pass through real neighbours and real servers."""

from __future__ import annotations

import time
from collections import Counter

from expect import eventually, expect
from network import BACKENDS
from place import Place

CONNECTIONS = 20
#: Until checks have found out, several times what the configuration lets them take. Seconds.
PATIENCE = 20.0
#: Until lanes have taken over what checks have found out, at most. Seconds.
TAKE_OVER = 0.6
SECOND = BACKENDS[1][0]


def servers(place: Place) -> Counter[str]:
    """Which backends serve, how many of some connections each."""
    return Counter(place.get(100)[1]["X-Server"] for _ in range(CONNECTIONS))


def found_out(place: Place) -> None:
    """No new connection goes to a backend that has stopped to serve, and some do once it serves again."""
    expect(len(servers(place)) == 3, "not all backends served before")
    place.stop_backend(1)
    eventually(lambda: health(place, SECOND) == "down", PATIENCE, "nobody noticed that a backend was down")
    time.sleep(TAKE_OVER)
    served = servers(place)
    expect("backend1" not in served and len(served) == 2, f"connections went to {dict(served)}")
    place.start_backend(1)
    eventually(lambda: health(place, SECOND) == "up", PATIENCE, "nobody noticed that a backend was up again")
    time.sleep(TAKE_OVER)
    served = servers(place)
    expect("backend1" in served, f"connections went to {dict(served)}")


def health(place: Place, address: str) -> str:
    """What the control socket says of a backend."""
    backends = place.middle.ask({"command": "status"})["backends"]
    return next(backend["health"] for backend in backends if backend["backend"].startswith(address))
