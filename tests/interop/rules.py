"""The differences there may be, each by name and with its reason. What no rule explains fails the comparison.

docs/interop.md lists the same rules."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from canonical import Fields
from reading import Seen
from scenario import Scenario, Step


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
    #: What only the other router sent at this step.
    instead: tuple[Seen, ...] = ()

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
    """Linux answers a packet at its last hop with ICMP 11 0; rheo passes it as it came."""
    if d.step is None or d.asked.get("ip.ttl") not in (0, 1) or len(d.instead) != 1:
        return False
    answer, passed = (d.linux, d.instead[0]) if d.kind is Kind.ONLY_LINUX else (d.instead[0], d.rheo)
    if answer is None or passed is None:
        return False
    answered = answer.is_error(11, 0) and answer.side is d.step.side
    return answered and passed.side is d.step.side.other and passed.fields == d.asked


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
