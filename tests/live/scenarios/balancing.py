"""Three backends behind one address."""

from __future__ import annotations

from collections import Counter

from expect import expect
from place import Place

CONNECTIONS = 40


def all_backends_serve(place: Place) -> None:
    """Each gets a part of the connections; that one of three gets none of forty by chance happens once in 10^6 runs."""
    served = Counter(place.get(100)[1]["X-Server"] for _ in range(CONNECTIONS))
    expect(len(served) == 3, f"connections went to {dict(served)}")


def backends_see_clients(place: Place) -> None:
    """Addresses of clients are kept, and so the way back leads through the middle."""
    _, headers = place.get(1)
    expect(headers["X-Client"] == "203.0.113.10", f"the backend saw {headers['X-Client']}")
