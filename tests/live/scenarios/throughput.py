"""iperf3, both directions: that it gets through; how fast depends on what else the machine does."""

from __future__ import annotations

import json
import time

from expect import expect, expect_success
from place import Place
from servers import IPERF_PORT

#: What is sent over TCP, however long it takes: more than the buffers of both sockets hold, which iperf3 does not wait for.
TCP_BYTES = 16 << 20
#: UDP so slowly that a socket's buffer holds what comes in a third of a second in which nobody reads it; and the share
#: that may be lost all the same.
UDP_RATE, UDP_PACKETS, UDP_LENGTH, UDP_LOSS_PERCENT = "2M", 400, 1200, 2.0
#: How often a server is asked that closes its socket between two tests.
ATTEMPTS = 10


def tcp(place: Place) -> None:
    for direction in ((), ("-R",)):
        report = iperf(place, "-n", str(TCP_BYTES), *direction)
        received = report["end"]["sum_received"]["bytes"]
        expect(received > 1 << 20, f"{' '.join(direction) or 'forth'}: only {received} bytes arrived")


def udp(place: Place) -> None:
    for direction in ((), ("-R",)):
        report = iperf(
            place, "-u", "-b", UDP_RATE, "-l", str(UDP_LENGTH), "-n", str(UDP_PACKETS * UDP_LENGTH), *direction
        )
        told = report["end"]["sum"]
        expect(told["packets"] >= UDP_PACKETS // 2, f"{told['packets']} packets")
        lost = told["lost_percent"]
        expect(lost <= UDP_LOSS_PERCENT, f"{' '.join(direction) or 'forth'}: {lost:.1f} % lost")


def iperf(place: Place, *options: str) -> dict:
    command = ("iperf3", "-J", "-c", place.address, "-p", str(IPERF_PORT), *options)
    for _ in range(ATTEMPTS):
        done = place.client.run(*command, patience=place.patience)
        report = json.loads(done.stdout) if done.stdout else {}
        # Its server listens anew after each test, and resets or turns away who has connected meanwhile.
        if not any(reason in report.get("error", "") for reason in ("reset by peer", "refused", "busy running a test")):
            break
        time.sleep(0.2)
    expect("error" not in report, f"iperf3: {report.get('error')}")
    expect_success(done)
    return report
