"""What tshark makes of the segments on the wire."""

from __future__ import annotations

import subprocess
import time

from cable import INTERFACE, SERVER, output_of
from server import Serving
from transfer import there_and_back


def shows(serving: Serving, _: int) -> None:
    """On a wire that loses nothing, tshark finds no error in what rheo sends, no wrong checksum, and nothing sent twice."""
    serving.start()
    capture = serving.kept / "capture"
    command = serving.cable.command("tshark", "-q", "-i", INTERFACE, "-w", str(capture), "-s", "200")
    tshark = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_for(lambda: capture.exists() and capture.stat().st_size > 0)
        for version in (4, 6):
            there_and_back(serving, version, 2)
        time.sleep(1)
    finally:
        tshark.terminate()
        tshark.wait(20)
    ours = f"(ip.src == {SERVER[4]} or ipv6.src == {SERVER[6]})"
    assert count(capture, f"tcp and {ours}") > 1_000, "the capture has what was sent"
    for what in ("_ws.expert.severity == error", "tcp.analysis.retransmission", "tcp.analysis.ack_lost_segment"):
        assert count(capture, f"{what} and {ours}") == 0, f"{what} in what rheo sent"
    summary = serving.stop()
    assert summary["retransmitted"] == 0, summary


def count(capture: object, display: str) -> int:
    """Packets of a capture that a display filter lets through."""
    return len(output_of(["tshark", "-r", str(capture), "-Y", display, "-T", "fields", "-e", "frame.number"], 60).split())


def wait_for(holds) -> None:
    end = time.monotonic() + 10
    while not holds():
        assert time.monotonic() < end, "it does not come"
        time.sleep(0.05)
