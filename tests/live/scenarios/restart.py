"""The middle dies without a chance to clean up, and is started again."""

from __future__ import annotations

import contextlib

from expect import expect
from place import Place
from scenarios.fetch import version4
from servers import ECHO_PORT


def after_a_crash(place: Place) -> None:
    """New connections work at once. What was translated before is forgotten with the process, and nobody is sent
    another one's packets: the old connection gets an error or nothing."""
    with place.client.connect(place.address, ECHO_PORT, place.patience) as old:
        old.sendall(b"before")
        expect(old.recv(64) == b"before", "no echo before the crash")
        place.middle.crash()
        place.start_middle()
        version4(place)
        old.settimeout(1)
        with contextlib.suppress(OSError):
            old.sendall(b"after")
            got = old.recv(64)
            expect(got in (b"", b"after"), f"the old connection got {got!r}")


def twice(place: Place) -> None:
    """Stopped in good order and started again."""
    for _ in range(2):
        place.middle.stop()
        place.start_middle()
        version4(place)
