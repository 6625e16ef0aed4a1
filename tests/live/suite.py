"""Runs what is planned, and keeps what came of it."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

import configuration
import plan
import spoiled_ends
from expect import Failure, NotRun
from faults import Fault
from kernel import KernelMiddle
from middle import Ground, Service
from network import left_behind
from place import Place
from plan import Scenario
from rheo import RheoMiddle

OK, FAILED, NOT_RUN = "ok", "FAILED", "not run"
#: For what a sound kernel does in a fraction of a second. Seconds.
SPOILED_PATIENCE = 4.0


@dataclass(frozen=True)
class Outcome:
    """What came of one scenario."""

    ground: str
    name: str
    verdict: str
    seconds: float
    reason: str = ""

    def __str__(self) -> str:
        reason = f": {self.reason}" if self.reason else ""
        return f"{self.verdict:8}{self.ground:46}{self.name:26}{self.seconds:6.1f} s{reason}"


class Suite:
    """Outcomes are printed as they come, and once more as a table."""

    def __init__(self, binary: Path, only: str, ground: str) -> None:
        self._binary = binary.absolute()
        self._only = only
        self._ground = ground
        self._outcomes: list[Outcome] = []

    def rheo(self) -> None:
        """All grounds with rheo in the middle; and every configuration for interfaces has one."""
        missing = configuration.not_tried({ground.service for ground in plan.GROUNDS})
        complaint = f"no ground runs {', '.join(missing)}: add it to configuration.py and plan.py" if missing else ""
        self._note(plan.GROUNDS[0], "configurations", FAILED if missing else OK, time.monotonic(), complaint)
        for ground in plan.GROUNDS:
            if self._ground in str(ground):
                self._on(ground, lambda network, ground: RheoMiddle(self._binary, network, ground))

    def kernel(self) -> None:
        """All services with the kernel in the middle, which shows that it is not the scenarios that fail."""
        for service in Service:
            if self._ground in service.value:
                self._on(Ground(service), KernelMiddle)

    def sabotage(self) -> None:
        """Each scenario once with its fault, between which and a sound kernel it must tell; and ends that are not
        as they should be."""
        for scenario in plan.SCENARIOS:
            if self._only in scenario.name and scenario.fault is not None:
                self._spoiled(Ground(scenario.services[0]), scenario, scenario.fault)
        if self._only:
            return
        for name, complaint in spoiled_ends.checks():
            verdict = OK if complaint else FAILED
            self._note(Ground(Service.NAT), name, verdict, time.monotonic(), complaint or "nothing was noticed")

    def has_failed(self) -> bool:
        return not self._outcomes or any(outcome.verdict == FAILED for outcome in self._outcomes)

    def table(self) -> str:
        counts = {verdict: sum(o.verdict == verdict for o in self._outcomes) for verdict in (OK, FAILED, NOT_RUN)}
        lines = ["", *map(str, self._outcomes), ", ".join(f"{count} {verdict}" for verdict, count in counts.items())]
        return "\n".join(lines)

    def _on(self, ground: Ground, make: object) -> None:
        """One middle for what can share it, and one for each scenario that cannot."""
        chosen = [scenario for scenario in plan.scenarios_on(ground) if self._only in scenario.name]
        shared = [scenario for scenario in chosen if not scenario.alone]
        if shared:
            self._visit(ground, make, shared)
        for scenario in chosen:
            if scenario.alone:
                self._visit(ground, make, [scenario])

    def _visit(self, ground: Ground, make: object, scenarios: list[Scenario]) -> None:
        """Starts a middle, tries scenarios on it, stops it."""
        start = time.monotonic()
        try:
            place = Place(make, ground)
        except (Failure, RuntimeError, OSError) as error:
            self._note(ground, "start", FAILED, start, str(error))
            return
        try:
            ended = False
            for scenario in scenarios:
                if scenario.process and not place.middle.is_process:
                    self._note(ground, scenario.name, NOT_RUN, time.monotonic(), "there is no process")
                    continue
                self._try(place, scenario)
                ended = scenario.ends_middle
            if not ended:
                self._stop(place, scenarios[-1])
        finally:
            place.close()
        remains = left_behind()
        if remains:
            self._note(ground, "clean-up", FAILED, start, f"left behind: {', '.join(remains)}")

    def _try(self, place: Place, scenario: Scenario) -> None:
        start = time.monotonic()
        try:
            scenario.run(place)
        except NotRun as reason:
            self._note(place.ground, scenario.name, NOT_RUN, start, str(reason))
        except (Failure, RuntimeError, OSError, ValueError) as error:
            said = place.middle.diagnosis()
            self._note(place.ground, scenario.name, FAILED, start, f"{error}{f' ({said})' if said else ''}")
        else:
            self._note(place.ground, scenario.name, OK, start)

    def _stop(self, place: Place, last: Scenario) -> None:
        """A row of its own: the middle ends well, and what it says is sound."""
        start = time.monotonic()
        try:
            summary = place.middle.stop()
            if last.check is not None and place.middle.is_process:
                last.check(place, summary)
        except (Failure, RuntimeError, OSError, ValueError) as error:
            self._note(place.ground, f"end of {last.name}", FAILED, start, str(error))
        else:
            self._note(place.ground, f"end of {last.name}", OK, start, told(summary))

    def _spoiled(self, ground: Ground, scenario: Scenario, fault: Fault) -> None:
        start = time.monotonic()
        place = Place(KernelMiddle, ground, damage=fault.damage)
        try:
            fault.inflict(place)
            place.patience = SPOILED_PATIENCE
            scenario.run(place)
        except (Failure, OSError) as failure:
            self._note(ground, scenario.name, OK, start, f"{fault.name}: {failure}")
        else:
            self._note(ground, scenario.name, FAILED, start, f"{fault.name}, and nothing was noticed")
        finally:
            place.close()

    def _note(self, ground: Ground, name: str, verdict: str, start: float, reason: str = "") -> None:
        outcome = Outcome(str(ground), name, verdict, time.monotonic() - start, " ".join(reason.split())[:500])
        self._outcomes.append(outcome)
        print(outcome, flush=True)


def told(summary: dict) -> str:
    """The figures of a summary that say what kind of a run it was."""
    names = ("received", "sent", "handoff", "reordered")
    if not summary:
        return ""
    dropped = [f"dropped {count} {reason}" for reason, count in summary["dropped"].items()]
    return ", ".join([f"{name} {summary[name]}" for name in names] + dropped)


