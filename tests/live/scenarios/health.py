"""Backends that are asked whether they serve, by checks that pass through real neighbours and real servers."""

from __future__ import annotations

from collections import Counter

from expect import Failure, eventually, expect
from network import BACKENDS
from place import Place

#: That one of three backends gets none of them by chance happens once in 10^10 runs.
CONNECTIONS = 60
#: Until checks have found out, and lanes have taken over what they found. Seconds.
PATIENCE = 120.0
SECOND = BACKENDS[1][0]


def servers(place: Place) -> Counter[str]:
    """Which backends serve, how many of some connections each."""
    return Counter(place.get(100)[1]["X-Server"] for _ in range(CONNECTIONS))


def serving(place: Place) -> set[str]:
    """The backends that serve; none if a connection is refused, as by a host that lanes take for one still."""
    try:
        return set(servers(place))
    except Failure:
        return set()


def found_out(place: Place) -> None:
    """No new connection goes to a backend that has stopped to serve, and some do once it serves again."""
    expect(len(servers(place)) == 3, "not all backends served before")
    place.stop_backend(1)
    eventually(lambda: health(place, SECOND) == "down", PATIENCE, "nobody noticed that a backend was down")
    eventually(lambda: serving(place) == {"backend0", "backend2"}, PATIENCE, "lanes still send to the backend")
    place.start_backend(1)
    eventually(lambda: health(place, SECOND) == "up", PATIENCE, "nobody noticed that a backend was up again")
    eventually(lambda: "backend1" in serving(place), PATIENCE, "no connection went to the backend again")


def health(place: Place, address: str) -> str:
    """What the control socket says of a backend."""
    backends = place.middle.ask({"command": "status"})["backends"]
    return next(backend["health"] for backend in backends if backend["backend"].startswith(address))
