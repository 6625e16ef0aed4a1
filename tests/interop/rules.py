"""The differences there may be, each by name and with its reason. What no rule explains fails the comparison.

docs/interop.md lists the same rules."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from canonical import Fields
from reading import Seen
from scenario import Scenario, Side, Step


class Kind(Enum):
    """How two runs differ."""

    FIELD = "a field"
    ONLY_LINUX = "only Linux sent"
    ONLY_RHEO = "only rheo sent"
    LEFT_LINUX = "only Linux sent a fragment of an incomplete datagram"
    LEFT_RHEO = "only rheo sent a fragment of an incomplete datagram"
    NOT_SENT = "a step waits for a port that was never chosen"


@dataclass(frozen=True)
class Difference:
    """One difference, with all that a rule may look at."""

    kind: Kind
    linux: Seen | None
    rheo: Seen | None
    #: The field that differs, or the router that never chose a port.
    field: str
    scenario: Scenario
    number: int | None
    step: Step | None
    #: The fields of what was sent in, in the inside view.
    asked: Fields

    @property
    def values(self) -> tuple[object, object]:
        """The field in both outputs."""
        return (self.linux and self.linux.fields.get(self.field), self.rheo and self.rheo.fields.get(self.field))

    def __str__(self) -> str:
        where = self.scenario.name
        if self.step is not None:
            where += f", step {self.number} from {self.step.side.value} ({self.step.label})"
        if self.kind is Kind.FIELD:
            linux, rheo = (str(value)[:80] for value in self.values)
            return f"{where}: {self.field} is {linux} from Linux and {rheo} from rheo"
        return f"{where}: {self.kind.value} {self.linux or self.rheo or self.field}"


@dataclass(frozen=True)
class Rule:
    """A difference that is meant."""

    name: str
    reason: str
    explains: Callable[[Difference], bool]
    #: Whether generated traffic shows it, so that a rule that explains nothing is out of date.
    always: bool = True


def _decremented(d: Difference) -> bool:
    if d.kind is not Kind.FIELD or d.field not in ("ip.ttl", "ip6.hop_limit"):
        return False
    arrived = d.asked.get(d.field)
    return isinstance(arrived, int) and d.values == (arrived - 1, arrived)


def _expired(d: Difference) -> bool:
    """Linux answers a packet at its last hop with ICMP 11 0 about it; rheo passes it."""
    ttl = d.asked.get("ip.ttl", 9)
    if d.step is None or not isinstance(ttl, int) or ttl > 1:
        return False
    if d.kind is Kind.ONLY_LINUX and d.linux is not None:
        told = d.linux.fields
        return (told.get("icmp.type"), told.get("icmp.code")) == (11, 0) and d.linux.side is d.step.side
    return d.kind is Kind.ONLY_RHEO and d.rheo is not None and d.rheo.side is not d.step.side


def _held(d: Difference) -> bool:
    """A fragment that rheo sent on and Linux kept, of a datagram that never was complete."""
    return d.kind is Kind.LEFT_RHEO


RULES: tuple[Rule, ...] = (
    Rule(
        "time to live",
        "Linux is a router and takes one off; rheo stands in the wire and leaves it",
        _decremented,
    ),
    Rule(
        "last hop",
        "so a packet with a time to live of 0 or 1 ends in Linux, with ICMP time exceeded, and passes rheo",
        _expired,
    ),
    Rule(
        "incomplete datagram",
        "Linux puts a datagram together before it sends anything of it; rheo sends fragments on as they come",
        _held,
    ),
)
