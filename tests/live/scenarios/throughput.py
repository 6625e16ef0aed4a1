"""iperf3, both directions: that it gets through; how fast depends on what else the machine does."""

from __future__ import annotations

import json

from expect import expect, expect_success
from place import Place
from servers import IPERF_PORT

#: UDP at a rate that any machine can do, and the share that may be lost all the same: sockets' buffers are short.
UDP_RATE, UDP_LOSS_PERCENT = "10M", 2.0


def tcp(place: Place) -> None:
    for direction in ((), ("-R",)):
        report = iperf(place, "-t", "1", *direction)
        received = report["end"]["sum_received"]["bytes"]
        expect(received > 1 << 20, f"{' '.join(direction) or 'forth'}: only {received} bytes arrived")


def udp(place: Place) -> None:
    for direction in ((), ("-R",)):
        report = iperf(place, "-u", "-b", UDP_RATE, "-l", "1200", "-t", "1", *direction)
        told = report["end"]["sum"]
        expect(told["packets"] > 500, f"{told['packets']} packets")
        lost = told["lost_percent"]
        expect(lost <= UDP_LOSS_PERCENT, f"{' '.join(direction) or 'forth'}: {lost:.1f} % lost")


def iperf(place: Place, *options: str) -> dict:
    command = ("iperf3", "-J", "-c", place.address, "-p", str(IPERF_PORT), *options)
    done = place.client.run(*command, patience=place.patience)
    report = json.loads(done.stdout) if done.stdout else {}
    expect("error" not in report, f"iperf3: {report.get('error')}")
    expect_success(done)
    return report
