"""Shows that the checks of how a rheo ends can fail."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from expect import Failure
from middle import Ground, Service
from namespaces import run
from network import Network
from rheo import RheoMiddle, check_summary

#: A program to be left behind, and how it is called in there.
OBJECT, SECTION = Path(__file__).parents[2] / "lab" / "bpf" / "traffic.o", "xdp"
SOUND = {
    "invariants": "ok",
    "received": 5,
    "originated": 1,
    "copied": 0,
    "sent": 4,
    "consumed": 1,
    "held": 0,
    "dropped": {"denied": 1},
}


def checks() -> Iterator[tuple[str, str | None]]:
    """What was spoiled, and what was said about it; nothing if it went unnoticed."""
    check_summary(SOUND)
    for name, change in (("a broken invariant", {"invariants": "order"}), ("a lost packet", {"sent": 3})):
        yield name, complaint(lambda change=change: check_summary({**SOUND, **change}))
    with Network() as network:
        ended = RheoMiddle(Path("rheo"), network, Ground(Service.NAT, ("af_xdp", "af_xdp")))
        ended.check_clean()
        command = ("link", "set", "dev", "lan", "xdp", "obj", str(OBJECT), "sec", SECTION)
        run("ip", "netns", "exec", network.middle.name, "ip", *command)
        yield "a program left on an interface", complaint(ended.check_clean)


def complaint(check: Callable[[], None]) -> str | None:
    try:
        check()
    except Failure as failure:
        return str(failure)
    return None
