"""One difference between two runs, with all that a rule may look at."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from canonical import Fields
from datagram import Datagram, Flow
from reading import Seen
from scenario import Scenario, Step, ipv4


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
    #: The field that differs.
    field: str
    scenario: Scenario
    number: int | None
    step: Step | None
    #: The fields of what was sent in, in the inside view.
    asked: Fields
    #: What only the other router sent at this step.
    instead: tuple[Seen, ...] = ()
    #: How many packets both routers sent at this step.
    paired: int = 0
    #: The router that could not be sent the packet of this step, as it had never chosen a port.
    unsent: str = ""

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
        return f"{where}: {self.kind.value} {self.linux or self.rheo or self.unsent}"

    def answered_instead(self, kind: int, code: int) -> bool:
        """Whether Linux answered with this ICMP error what rheo passed as it came."""
        if self.step is None or len(self.instead) != 1:
            return False
        answer, passed = (self.linux, self.instead[0]) if self.rheo is None else (self.instead[0], self.rheo)
        if answer is None or passed is None:
            return False
        answered = answer.is_error(kind, code) and answer.side is self.step.side
        return answered and passed.side is self.step.side.other and passed.fields == self.asked

    def only_passed(self) -> bool:
        """Whether rheo passed as it came what Linux dropped without a word."""
        if self.kind is not Kind.ONLY_RHEO or self.rheo is None or self.step is None:
            return False
        if self.instead or self.paired or self.unsent:
            return False
        return self.rheo.side is self.step.side.other and self.rheo.fields == self.asked

    def earlier(self, flow: Flow) -> Iterator[bytes]:
        """What was sent of a flow before this step."""
        for step in self.scenario.steps[: self.number or 0]:
            packet = ipv4(step.packet)
            if packet is not None and packet.flow() == flow:
                yield step.packet

    def pieces(self) -> list[Datagram]:
        """The fragments sent of the datagram that this step's belongs to, up to this step."""
        if self.number is None:
            return []
        sent = (ipv4(step.untranslated()) for step in self.scenario.steps[: self.number + 1])
        ours = tuple(self.asked.get(f"ip.{name}") for name in ("source", "destination", "protocol", "id"))
        return [packet for packet in sent if packet is not None and packet.is_fragment and packet.datagram == ours]
