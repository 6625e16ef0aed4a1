"""Networks behind other routers are reached by the routes that the configuration has."""

from __future__ import annotations

from expect import eventually
from network import INNER, WORLD
from place import Place
from scenarios.ping import ping


def the_world(place: Place) -> None:
    """Over the default routes of both families, whose routers must first be found on the link."""
    for address in WORLD:
        eventually(lambda address=address: place.is_open(address), place.patience, f"nobody answers for {address}")
        ping(place, address, 56)


def a_network_inside(place: Place) -> None:
    """From outside to a network behind another router inside."""
    outside = place.network.outside

    def is_open() -> bool:
        return outside.run("ping", "-c", "1", "-W", "1", INNER).returncode == 0

    eventually(is_open, place.patience, f"nobody answers for {INNER}")
