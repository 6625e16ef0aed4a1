"""Measures what workers cost while no packet comes, on real devices: `python3 tests/live/idle.py --rheo BINARY`.

A veth pair, or a TAP device, in a network namespace; one worker, one lane. Processor time is that of the workers'
threads by their own clocks, in nanoseconds (`/proc/PID/task/TID/schedstat`); `others` is that of all other threads of the
process; `wake_ups_per_s` is how often workers gave up the core and got it back. One line of JSON for each device and policy. docs/polling.md has the figures.
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

# The namespaces are those of the comparison with Linux.
sys.path.append(str(Path(__file__).parents[1] / "interop"))

from namespaces import Namespace  # noqa: E402

#: By name, the table [polling] of the configuration.
POLICIES = {
    "busy": 'policy = "busy"',
    "metronome-100us": 'policy = "metronome"\ntarget_vacation = "100us"\nidle_after = "never"',
    "metronome": 'policy = "metronome"\ntarget_vacation = "100us"',
    "interrupt": 'policy = "interrupt"',
}
#: The kinds of both devices.
DEVICES = ("af_xdp", "af_packet", "tap")
#: What is not measured: opening, calibrating, and the time after which lanes count as idle. Seconds.
WARM_UP = 2.0
#: How long the process may take to start and to end. Seconds.
PATIENCE = 60.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rheo", type=Path, default=Path("target/release/rheo"), metavar="BINARY")
    parser.add_argument("--seconds", type=float, default=5.0, help="what is measured of each row")
    args = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by a signal"))
    for device in DEVICES:
        for policy in POLICIES:
            print(json.dumps(measure(args.rheo, device, policy, args.seconds)), flush=True)
    return 0


def measure(rheo: Path, device: str, policy: str, seconds: float) -> dict[str, object]:
    """The row of one device and policy."""
    middle = Namespace("rheo-idle-middle")
    try:
        # Neither router solicitations nor reports of groups: they are packets.
        middle.sysctl([("net.ipv6.conf.default.disable_ipv6", 1)])
        if device != "tap":
            for near, far in (("lan", "lan-far"), ("wan", "wan-far")):
                middle.ip("link", "add", near, "type", "veth", "peer", "name", far)
                for end in (near, far):
                    middle.ip("link", "set", end, "up")
        with tempfile.TemporaryDirectory(prefix="rheo-idle-") as folder:
            return observe(rheo, middle, Path(folder), device, policy, seconds)
    finally:
        middle.close()


def observe(
    rheo: Path, middle: Namespace, folder: Path, device: str, policy: str, seconds: float
) -> dict[str, object]:
    config = folder / "config.toml"
    config.write_text(configuration(device, policy))
    command = ["ip", "netns", "exec", middle.name, str(rheo.resolve()), "run", str(config), "--json"]
    with open(folder / "out", "wb") as out, open(folder / "log", "wb") as log:
        process = subprocess.Popen(command, stdout=out, stderr=log)
    try:
        await_worker(process, folder)
        time.sleep(WARM_UP)
        start, before = time.monotonic(), observed(process.pid)
        time.sleep(seconds)
        passed, after = time.monotonic() - start, observed(process.pid)
    finally:
        process.send_signal(signal.SIGTERM)
        status = process.wait(PATIENCE)
    said = (folder / "out").read_text().splitlines()
    if status != 0 or not said:
        raise RuntimeError(f"{device}, {policy}: status {status}: {(folder / 'log').read_text()}")
    summary = json.loads(said[-1])
    spent = {group: (after[group] - before[group]) / passed for group in after}
    return {
        "device": device, "policy": policy, "workers": 1, "seconds": round(passed, 3),
        "cpu_share": round(spent["workers"] / 1e9, 6), "others": round(spent["others"] / 1e9, 6),
        "wake_ups_per_s": round(spent["wake_ups"], 1), "received": summary["received"],
    }  # fmt: skip


def configuration(kind: str, policy: str) -> str:
    devices = "".join(
        f'[[device]]\nname = "{name}"\nkind = "{kind}"\ninterface = "{name}"\nside = "{side}"\n\n'
        for name, side in (("lan", "inside"), ("wan", "outside"))
    )
    return f"{devices}[chain]\nfunctions = []\n\n[workers]\ncount = 1\nlanes = 1\n\n[polling]\n{POLICIES[policy]}\n"


def await_worker(process: subprocess.Popen, folder: Path) -> None:
    """Waits until the worker works: its thread is there."""
    end = time.monotonic() + PATIENCE
    while observed(process.pid)["workers"] == 0:
        if process.poll() is not None or time.monotonic() > end:
            raise RuntimeError(f"it does not start: {(folder / 'log').read_text()}")
        time.sleep(0.05)


def observed(pid: int) -> Counter[str]:
    """Nanoseconds that workers have run, and all other threads, and how often workers have given up the core."""
    found = Counter(workers=0, others=0, wake_ups=0)
    for task in Path(f"/proc/{pid}/task").iterdir():
        try:
            name, schedule, status = ((task / file).read_text() for file in ("comm", "schedstat", "status"))
        except OSError:
            # It has ended.
            continue
        is_worker = name.startswith("rheo-worker-")
        found["workers" if is_worker else "others"] += int(schedule.split()[0])
        if is_worker:
            found["wake_ups"] += int(status.partition("\nvoluntary_ctxt_switches:")[2].split()[0])
    return found


if __name__ == "__main__":
    sys.exit(main())
