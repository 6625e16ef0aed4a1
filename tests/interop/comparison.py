"""Two runs of a scenario held against each other, packet by packet."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import canonical
from canonical import Fields
from difference import Difference, Kind
from reading import Reading, Seen, read
from rules import RULES
from scenario import Exchange, Scenario


@dataclass
class Result:
    """What a comparison found."""

    steps: int = 0
    compared: int = 0
    explained: Counter[str] = field(default_factory=Counter)
    complaints: list[str] = field(default_factory=list)

    def add(self, other: Result) -> None:
        self.steps += other.steps
        self.compared += other.compared
        self.explained += other.explained
        self.complaints += other.complaints


def compare(scenario: Scenario, linux: list[Exchange], rheo: list[Exchange]) -> Result:
    """Compares what both routers did with the steps of a scenario. Each difference is explained by exactly one rule,
    the first that fits, or is a complaint."""
    result = Result(steps=len(scenario.steps))
    readings = read(linux, scenario.forwards), read(rheo, scenario.forwards)
    for name, reading in zip(("linux", "rheo"), readings, strict=True):
        result.complaints += [f"{scenario.name}: {name} changed a mapping: {text}" for text in reading.complaints]
    for difference in differences(scenario, (linux, rheo), readings, result):
        rule = next((rule for rule in RULES if rule.explains(difference)), None)
        if rule is None:
            result.complaints.append(str(difference))
        else:
            result.explained[rule.name] += 1
    return result


def differences(
    scenario: Scenario,
    runs: tuple[list[Exchange], list[Exchange]],
    readings: tuple[Reading, Reading],
    result: Result,
) -> Iterator[Difference]:
    """Every way in which the two runs differ; counts the packets that were held against each other."""
    for number, (step, linux, rheo) in enumerate(zip(scenario.steps, *runs, strict=True)):
        asked = canonical.fields(step.untranslated())
        where = {"scenario": scenario, "number": number, "step": step, "asked": asked}
        if (linux.sent is None) != (rheo.sent is None):
            where["unsent"] = "Linux" if linux.sent is None else "rheo"
            yield Difference(Kind.NOT_SENT, None, None, "", **where)
        pairs, only_linux, only_rheo = pair(readings[0].seen[number], readings[1].seen[number])
        result.compared += len(pairs)
        where["paired"] = len(pairs)
        for ours, theirs in pairs:
            for name in differing(ours.fields, theirs.fields):
                yield Difference(Kind.FIELD, ours, theirs, name, **where)
        for seen in only_linux:
            yield Difference(Kind.ONLY_LINUX, seen, None, "", **where, instead=tuple(only_rheo))
        for seen in only_rheo:
            yield Difference(Kind.ONLY_RHEO, None, seen, "", **where, instead=tuple(only_linux))
    _, only_linux, only_rheo = pair(readings[0].left, readings[1].left)
    where = {"scenario": scenario, "number": None, "step": None, "asked": {}}
    yield from (Difference(Kind.LEFT_LINUX, seen, None, "", **where) for seen in only_linux)
    yield from (Difference(Kind.LEFT_RHEO, None, seen, "", **where) for seen in only_rheo)


def pair(linux: list[Seen], rheo: list[Seen]) -> tuple[list[tuple[Seen, Seen]], list[Seen], list[Seen]]:
    """Pairs packets that are about the same thing, each with the first that is not taken yet."""
    pairs, lonely, rest = [], [], list(rheo)
    for ours in linux:
        match = next((theirs for theirs in rest if about(theirs) == about(ours)), None)
        if match is None:
            lonely.append(ours)
        else:
            rest.remove(match)
            pairs.append((ours, match))
    return pairs, lonely, rest


def about(seen: Seen) -> tuple[object, ...]:
    """What two packets must have in common to be worth comparing: the side, the protocol, the kind of message."""
    told = seen.fields
    return (seen.side, told.get("ip.protocol"), told.get("ip.offset"), told.get("icmp.type"), "ip6.next" in told)


def differing(linux: Fields, rheo: Fields) -> Iterator[str]:
    """The names of fields that are not the same in both."""
    for name in {**linux, **rheo}:
        if linux.get(name) != rheo.get(name):
            yield name
