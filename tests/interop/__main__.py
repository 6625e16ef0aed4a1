"""Compares rheo's NAT with that of Linux, packet by packet. docs/interop.md says how and modulo what."""

from __future__ import annotations

import argparse
import importlib.util
import itertools
import os
import shutil
import signal
import sys
from collections import Counter
from pathlib import Path

from scenario import Exchange, Scenario

#: What a router did, by scenario.
Runs = dict[str, list[Exchange]]

DOCUMENT = Path(__file__).parents[2] / "docs" / "interop.md"
LANES = (1, 4)
MAPPINGS = ("address-and-port-dependent", "endpoint-independent")


def main() -> int:
    args = arguments()
    # As an exception, so that namespaces are deleted on the way out.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("nftables: ended by a signal"))
    missing = missing_here(needs_linux=args.recorded is None)
    if missing is not None:
        print(f"nftables: not run ({missing})")
        return 0

    # Only now: these need scapy.
    import recording
    import traffic
    from traffic import captured

    scenarios = traffic.generated()
    if args.traces is not None:
        scenarios += captured.scenarios(args.traces)
    else:
        print("nftables: captured traffic not run (RHEO_TRACES is not set)")
    scenarios = [scenario for scenario in scenarios if args.only in scenario.name]
    if args.recorded is not None:
        linux = recording.read(args.recorded, scenarios)
        print(f"nftables: {len(linux)} of {len(scenarios)} scenarios are in {args.recorded}")
        scenarios = [scenario for scenario in scenarios if scenario.name in linux]
    else:
        linux = {scenario.name: run_linux(scenario) for scenario in scenarios}
    if args.record is not None:
        recording.write(args.record, [(scenario, linux[scenario.name]) for scenario in scenarios])
    failed = False
    if args.rheo is None:
        if args.sabotage:
            failed |= not report_sabotage("Linux against itself", scenarios, linux, linux)
        return int(failed)
    from rheo import RheoRouter

    lane_counts = args.lanes or LANES
    for mapping, lanes in itertools.product(args.mapping or MAPPINGS, lane_counts):
        router = RheoRouter(args.rheo, mapping, lanes)
        title = f"{mapping}, {lanes} lanes" if lanes > 1 else f"{mapping}, 1 lane"
        rheo = {scenario.name: router.run(scenario) for scenario in scenarios}
        failed |= not report_comparison(title, scenarios, linux, rheo, whole=not args.only)
        # The lanes make no difference to what the comparison notices.
        if args.sabotage and lanes == lane_counts[0]:
            failed |= not report_sabotage(title, scenarios, linux, rheo)
    return int(failed)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="interop", description=__doc__)
    traces = os.environ.get("RHEO_TRACES")
    parser.add_argument("--rheo", type=Path, metavar="BINARY", help="the rheo to compare; without it only Linux runs")
    parser.add_argument("--mapping", action="append", choices=MAPPINGS, help="one mapping behaviour instead of all")
    parser.add_argument(
        "--lanes", action="append", type=int, metavar="N", help="one number of lanes instead of 1 and 4"
    )
    parser.add_argument("--only", default="", metavar="TEXT", help="only scenarios with this in their names")
    parser.add_argument("--traces", type=Path, default=Path(traces) if traces else None, metavar="FOLDER")
    parser.add_argument("--record", type=Path, metavar="FILE", help="write what Linux did, one exchange per line")
    parser.add_argument("--recorded", type=Path, metavar="FILE", help="take what Linux did from there; needs no root")
    parser.add_argument("--sabotage", action="store_true", help="alter packets and expect complaints")
    return parser.parse_args()


def missing_here(needs_linux: bool) -> str | None:
    """What this machine lacks, if anything."""
    if importlib.util.find_spec("scapy") is None:
        return "python3 has no scapy"
    if not needs_linux:
        return None
    if os.geteuid() != 0:
        return "needs root"
    for command in ("ip", "nft", "sysctl"):
        if shutil.which(command) is None:
            return f"there is no {command}"
    from namespaces import Namespace

    try:
        probe = Namespace(f"interop-{os.getpid()}-probe")
    except RuntimeError as error:
        return f"no network namespaces: {error}"
    try:
        probe.nft("table ip probe { chain c { type nat hook postrouting priority srcnat; masquerade; }; }")
    except RuntimeError as error:
        return f"no nftables: {' '.join(str(error).split())}"
    finally:
        probe.close()
    return None


def run_linux(scenario: Scenario) -> list[Exchange]:
    from linux import LinuxRouter

    with LinuxRouter(scenario) as router:
        return router.run()


def report_comparison(title: str, scenarios: list[Scenario], linux: Runs, rheo: Runs, whole: bool) -> bool:
    """Prints what differs and what explains it; says whether everything is explained."""
    from comparison import Result, compare
    from rules import RULES

    total = Result()
    for scenario in scenarios:
        total.add(compare(scenario, linux[scenario.name], rheo[scenario.name]))
    for complaint in total.complaints:
        print(f"  {complaint}")
    print(f"{title}: {total.steps} packets in, {total.compared} compared, {len(total.complaints)} complaints")
    for rule in RULES:
        print(f"  {total.explained[rule.name]:6} explained by '{rule.name}': {rule.reason}")
    # A rule that explains nothing is out of date; one for captures may have found none.
    idle = [rule.name for rule in RULES if whole and rule.always and not total.explained[rule.name]]
    for name in idle:
        print(f"  the rule '{name}' explained nothing")
    told = DOCUMENT.read_text()
    untold = [rule.name for rule in RULES if f"| {rule.name} |" not in told]
    for name in untold:
        print(f"  the rule '{name}' is not in {DOCUMENT.name}")
    return not total.complaints and not idle and not untold and total.compared > 0


def report_sabotage(title: str, scenarios: list[Scenario], linux: Runs, rheo: Runs) -> bool:
    """Prints how many alterations were noticed; says whether all were."""
    from sabotage import ALTERATIONS, sabotage

    tried: Counter[str] = Counter()
    unnoticed: list[str] = []
    for scenario in (scenario for scenario in scenarios if not scenario.captured):
        report = sabotage(scenario, linux[scenario.name], rheo[scenario.name])
        tried += report.tried
        unnoticed += report.unnoticed
    for text in unnoticed:
        print(f"  unnoticed: {text}")
    untried = [name for name in ALTERATIONS if not tried[name]]
    for name in untried:
        print(f"  never tried: {name}")
    print(f"{title}: {tried.total()} packets altered in {len(tried)} ways, {len(unnoticed)} unnoticed")
    return not unnoticed and not untried


if __name__ == "__main__":
    sys.exit(main())
