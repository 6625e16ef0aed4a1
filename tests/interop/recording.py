"""Runs of a router as text, one exchange per line, so that they can be looked at and compared later."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from scenario import Exchange, Scenario, Side


def write(path: Path, runs: Iterable[tuple[Scenario, list[Exchange]]]) -> None:
    """Writes what went in and out, scenario by scenario."""
    with path.open("w") as file:
        for scenario, exchanges in runs:
            for number, exchange in enumerate(exchanges):
                line = {
                    "scenario": scenario.name,
                    "step": number,
                    "label": exchange.step.label,
                    "packet": exchange.step.untranslated().hex(),
                    "in": [exchange.step.side.value, exchange.sent.hex() if exchange.sent is not None else None],
                    "out": [[side.value, packet.hex()] for side, packet in exchange.out],
                }
                file.write(json.dumps(line) + "\n")


def read(path: Path, scenarios: Iterable[Scenario]) -> dict[str, list[Exchange]]:
    """Reads the runs of these scenarios; one that has other steps now is left out."""
    recorded: dict[str, list[dict]] = {}
    for text in path.read_text().splitlines():
        line = json.loads(text)
        recorded.setdefault(line["scenario"], []).append(line)
    runs = {}
    for scenario in scenarios:
        lines = recorded.get(scenario.name, [])
        if [line["packet"] for line in lines] != [step.untranslated().hex() for step in scenario.steps]:
            continue
        runs[scenario.name] = [
            Exchange(
                step,
                bytes.fromhex(line["in"][1]) if line["in"][1] is not None else None,
                [(Side(side), bytes.fromhex(packet)) for side, packet in line["out"]],
            )
            for step, line in zip(scenario.steps, lines, strict=True)
        ]
    return runs
