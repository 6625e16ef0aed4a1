"""Bulk transfers with iperf3, whose control connection and streams go to one port, through a relay."""

from __future__ import annotations

import json

from cable import SERVER, output_of
from program import Program
from relay import TARGET, start
from server import PORT, Serving, Sizes
from transfer import LONG

STREAMS = 4
#: Ends after one run: between two runs it does not listen for a moment.
LISTENER = ["iperf3", "--server", "--one-off", "--port", str(TARGET), "--logfile", "/dev/null"]


def iperf3(serving: Serving, sizes: Sizes) -> None:
    """Each way, from clients of both versions of IP: all that is asked for is sent, and iperf3 reports no error."""
    start(serving, 4)
    received = 0
    for version in (4, 6):
        for way in ((), ("--reverse",)):
            with Program(serving.cable, LISTENER, TARGET):
                received += transfer(serving, version, max(1, sizes.megabytes // 4) << 20, *way)
    summary = serving.stop()
    # Of each run, besides its streams, one that controls it.
    assert summary["accepted"] == summary["connected"] == 4 * (STREAMS + 1), summary
    assert summary["connect_failed"] == summary["timed_out"] == 0, summary
    assert summary["bytes_in"] >= received and summary["bytes_out"] >= received, summary


def transfer(serving: Serving, version: int, wanted: int, *way: str) -> int:
    """One run of the client: bytes that its receiver counted."""
    words = ("--port", str(PORT), "--bytes", str(wanted), "--parallel", str(STREAMS), "--json", *way)
    told = json.loads(output_of(serving.cable.command("iperf3", "--client", SERVER[version], *words), LONG))
    assert "error" not in told, told["error"]
    sent, received = (told["end"][side]["bytes"] for side in ("sum_sent", "sum_received"))
    # What is under way when the sender has sent everything is not counted by the receiver.
    assert sent >= wanted and received >= wanted // 2, (sent, received)
    rate = told["end"]["sum_received"]["bits_per_second"]
    print(f"       IPv{version}, {'down' if way else 'up'}: {received} bytes, {rate / 1e6:.0f} Mbit/s")
    return received
