"""The router that rheo makes, run over captures.

rheo reads a whole capture at once, but what is sent to it from outside depends on the ports that it has chosen. So it
is run again and again with the same seed: each time, what came out before tells more of what is to be sent, until
nothing changes any more."""

from __future__ import annotations

import json
import subprocess
import tempfile
from pathlib import Path

import capture_file
from datagram import PROTOCOL_NAMES
from scenario import EXTERNAL, Exchange, Scenario, Side
from translation import Translation

#: Between two steps, in nanoseconds; the time of a packet that leaves tells the step that caused it.
STEP = 1_000_000
START = 1_700_000_000 * 10**9
#: Runs after which a scenario that still changes has no end.
MOST_RUNS = 64
#: How long one run may take. Seconds.
PATIENCE = 120


class RheoRouter:
    """A binary, a mapping behaviour, and a number of lanes."""

    def __init__(self, binary: Path, mapping: str, lanes: int) -> None:
        self._binary = binary
        self._mapping = mapping
        self._lanes = lanes

    def run(self, scenario: Scenario) -> list[Exchange]:
        """Runs a scenario to its end."""
        sent: list[bytes | None] = [None] * len(scenario.steps)
        out: list[list[tuple[Side, bytes]]] = [[] for _ in scenario.steps]
        for _ in range(MOST_RUNS):
            wanted = stimuli(scenario, out)
            if wanted == sent:
                return [Exchange(*parts) for parts in zip(scenario.steps, sent, out, strict=True)]
            sent = wanted
            out = self._pass(scenario, sent)
        raise RuntimeError(f"{scenario.name}: rheo answers differently in every one of {MOST_RUNS} runs")

    def _pass(self, scenario: Scenario, sent: list[bytes | None]) -> list[list[tuple[Side, bytes]]]:
        """One run over what is known of the steps; the packets that left, by step."""
        out: list[list[tuple[Side, bytes]]] = [[] for _ in scenario.steps]
        with tempfile.TemporaryDirectory(prefix="interop-") as name:
            place = Path(name)
            for side in Side:
                steps = enumerate(zip(scenario.steps, sent, strict=True))
                ours = [(START + n * STEP, raw) for n, (step, raw) in steps if step.side is side and raw is not None]
                capture_file.write(place / f"{side.value}.pcap", ours)
            config = place / "nat.toml"
            config.write_text(configuration(scenario, self._mapping, place))
            command = [str(self._binary), "run", str(config), "--lanes", str(self._lanes), "--json"]
            for side in Side:
                command += ["--device", f"{side.value}=pcap:{place / side.value}.pcap"]
            done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
            if done.returncode != 0:
                raise RuntimeError(f"{scenario.name}: rheo failed: {(done.stderr or done.stdout).strip()[:2_000]}")
            json.loads(done.stdout.splitlines()[-1])
            for side in Side:
                for time, packet in capture_file.read(place / f"to-{side.value}.pcap"):
                    out[(time - START) // STEP].append((side, packet))
        return out


def stimuli(scenario: Scenario, out: list[list[tuple[Side, bytes]]]) -> list[bytes | None]:
    """What each step must send, as far as what came out at earlier steps tells."""
    translation = Translation(scenario.forwards)
    wanted = []
    for step, packets in zip(scenario.steps, out, strict=True):
        wanted.append(translation.to_send(step))
        for _, packet in packets:
            translation.learn(step, packet)
    return wanted


def configuration(scenario: Scenario, mapping: str, place: Path) -> str:
    """The same gateway as Linux is told to be."""
    ports = ""
    if scenario.ports is not None:
        ports = f'ports = "{scenario.ports[0]}-{scenario.ports[1]}"\n'
    forwards = "".join(
        f"""
[[function.nat.forward]]
protocol = "{PROTOCOL_NAMES[f.protocol]}"
external = "{EXTERNAL}:{f.external_port}"
internal = "{f.internal}"
"""
        for f in scenario.forwards
    )
    # A few ports are fewer than there are shards, and each port belongs to one.
    shards = 1 if scenario.ports is not None else 128
    return f"""
[run]
seed = 7

[[device]]
name = "lan"
kind = "pcap"
side = "inside"
output = "{place}/to-lan.pcap"
pace = "max"

[[device]]
name = "wan"
kind = "pcap"
side = "outside"
output = "{place}/to-wan.pcap"
pace = "max"

[chain]
functions = ["nat"]

[function.nat]
external = ["{EXTERNAL}"]
mapping = "{mapping}"
filtering = "address-and-port-dependent"
{ports}{forwards}
[state]
flows = "64k"
shards = {shards}
"""
