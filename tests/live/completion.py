"""Measures how long TCP flows take through the router over AF_XDP, where two lanes have a queue each or share one, beside one lane:
`python3 tests/live/completion.py --rheo BINARY`, as root.

A client, the router and a server in network namespaces on veth; Linux TCP (cubic) at both ends, which learns nothing from earlier
flows. The client sends; kinds of queues take turns, so that what drifts with time falls on all alike. One line of JSON for each size,
number of flows and kind of queue:

    completion_ms_*   from before `connect` to after `close`, of all flows
    retransmitted     segments that the client sent again (TcpRetransSegs)
    reordering_seen   segments that came to the server before an earlier one (TcpExtTCPOFOQueue), behind lost ones included
    spurious          duplicates that the server reported (TcpExtTCPDSACKRecv): what was sent again without need

After Table 7.3 and Figures 7.7 to 7.9 of the dissertation on the non-blocking driver. docs/shared-queues.md has the figures.
"""

from __future__ import annotations

import argparse
import json
import shutil
import signal
import statistics
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

# The namespaces are those of the comparison with Linux.
sys.path.append(str(Path(__file__).parents[1] / "interop"))

from expect import Failure, expect, expect_success  # noqa: E402
from host import Host  # noqa: E402
from middle import Ground, Service  # noqa: E402
from place import Place  # noqa: E402
from rheo import RheoMiddle  # noqa: E402

#: By name: lanes, those that share a queue, and whether packets leave in the order of claims. What `own` and `own-again` differ by is
#: chance.
QUEUES = {
    "one-lane": (1, 1, False), "own": (2, 1, False), "own-again": (2, 1, False), "shared": (2, 2, False), "ordered": (2, 2, True),
}  # fmt: skip
#: Bytes and flows of a row, and rounds: at least, and at most.
CELLS = (
    (100_000, 64, 1, 30), (100_000, 128, 1, 30), (10_000, 64, 1, 60), (10_000, 128, 1, 60), (1_000, 64, 1, 60), (1_000, 128, 1, 60),
    (1_000_000_000, 1, 3, 3),
)  # fmt: skip
#: Behind these, where the time is left that this takes by the last of them. One flow has one queue, so two of the kinds are alike.
HUGE = (10_000_000_000, 1, 1, 1)
HUGE_QUEUES = ("one-lane", "shared", "ordered")
#: No round begins after this, of all kinds of queues together, if the least number is done. Seconds.
CELL_SECONDS = 11.0
#: How long all may take; later rounds that do not fit are left out. Seconds.
TOTAL_SECONDS = 220.0
#: How long one round may take; then something is wrong, and all ends. Seconds.
PATIENCE = 60.0
#: Rounds go to one port after the other: to a single one, the client runs out of ports of its own, as closed connections keep theirs
#: for a minute, and then each connection takes milliseconds to find one.
FIRST_PORT, PORTS = 7100, 64
FLOWS = Path(__file__).with_name("flows.py")
#: Counters of Linux TCP that are looked at, of the client and of the server.
SENT = ("RetransSegs", "TCPDSACKRecv")
RECEIVED = ("TCPOFOQueue",)


@dataclass
class Row:
    """What one kind of queue did with flows of one size."""

    times: list[float] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    rounds: int = 0

    def json(self, queue: str, size: int, flows: int) -> str:
        ordered = sorted(self.times)
        figures = {
            "queue": queue, "size": size, "flows": flows, "rounds": self.rounds,
            "completion_ms_mean": round(statistics.fmean(ordered), 3),
            "completion_ms_p50": round(percentile(ordered, 0.5), 3),
            "completion_ms_p99": round(percentile(ordered, 0.99), 3),
            "retransmitted": self.counts["RetransSegs"], "reordering_seen": self.counts["TCPOFOQueue"],
            "spurious": self.counts["TCPDSACKRecv"],
        }  # fmt: skip
        return json.dumps(figures)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rheo", type=Path, default=Path("target/release/rheo"), metavar="BINARY")
    parser.add_argument("--seconds", type=float, default=CELL_SECONDS, help="rounds of a row, of all kinds of queues together")
    args = parser.parse_args()
    # As an exception, so that namespaces are deleted on the way out.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by a signal"))
    for command in ("ip", "sysctl", "ethtool", "ping", "iperf3"):
        if shutil.which(command) is None:
            sys.exit(f"there is no {command}")
    end = time.monotonic() + TOTAL_SECONDS
    places: dict[str, Place] = {}
    try:
        for queue, (lanes, sharing, ordered) in QUEUES.items():
            ground = Ground(Service.ROUTER, ("af_xdp", "af_xdp"), lanes=lanes, sharing=sharing, ordered=ordered)
            places[queue] = Place(lambda network, ground: RheoMiddle(args.rheo.absolute(), network, ground), ground)
            prepare(places[queue])
        for cell in CELLS:
            rows = measure(places, cell, min(end, time.monotonic() + args.seconds))
        chosen = {queue: places[queue] for queue in HUGE_QUEUES}
        seconds = sum(statistics.fmean(rows[queue].times) for queue in chosen) / 1e3 * HUGE[0] / CELLS[-1][0]
        if time.monotonic() + seconds < end:
            measure(chosen, HUGE, end)
        else:
            print(f"no flow of {HUGE[0]} bytes: {seconds:.0f} s are not left", file=sys.stderr)
        for queue, place in places.items():
            report(queue, place.middle.stop())
    except (Failure, RuntimeError) as failure:
        sys.exit(f"completion: {failure}")
    except KeyboardInterrupt:
        sys.exit("completion: interrupted")
    finally:
        for place in places.values():
            place.close()
    return 0


def prepare(place: Place) -> None:
    """Both ends forget what earlier flows taught them, and there is a server."""
    for host in (place.client, place.server):
        host.sysctl([("net.ipv4.tcp_no_metrics_save", 1)])
    server = place.server.start(sys.executable, str(FLOWS), "serve", str(FIRST_PORT), str(PORTS), stdout=subprocess.PIPE)
    expect(server.stdout.readline() == b"listening\n", "the server does not start")


def measure(places: dict[str, Place], cell: tuple[int, int, int, int], until: float) -> dict[str, Row]:
    """Rounds of one size and number of flows, and their rows."""
    size, flows, least, most = cell
    rows = {queue: Row() for queue in places}
    for n in range(most):
        if n >= least and time.monotonic() >= until:
            break
        for queue, place in places.items():
            run_round(place, FIRST_PORT + n % PORTS, size, flows, rows[queue])
    for queue, row in rows.items():
        print(row.json(queue, size, flows), flush=True)
    return rows


def run_round(place: Place, port: int, size: int, flows: int, row: Row) -> None:
    before = counters(place)
    command = (sys.executable, str(FLOWS), "send", place.address, str(port), str(size), str(flows))
    times = json.loads(expect_success(place.client.run(*command, patience=PATIENCE)))
    row.times += times
    row.counts += counters(place) - before
    row.rounds += 1


def counters(place: Place) -> Counter[str]:
    """What TCP has counted at both ends."""
    found = Counter({name: value for name, value in tcp(place.client).items() if name in SENT})
    return found + Counter({name: value for name, value in tcp(place.server).items() if name in RECEIVED})


def tcp(host: Host) -> dict[str, int]:
    """All counters of TCP in a namespace, as `nstat -asz` reads them."""
    found: dict[str, int] = {}
    with host.entered():
        for file in ("snmp", "netstat"):
            lines = Path("/proc/thread-self/net", file).read_text().splitlines()
            for names, values in zip(lines[::2], lines[1::2], strict=True):
                if names.startswith(("Tcp:", "TcpExt:")):
                    found.update(zip(names.split()[1:], map(int, values.split()[1:]), strict=True))
    return found


def percentile(ordered: list[float], share: float) -> float:
    """What so many of the values do not exceed."""
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def report(queue: str, summary: dict[str, object]) -> None:
    """What the router said at its end, for people."""
    print(f"{queue}: {summary['received']} packets, dropped by the router: {summary['dropped']}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
