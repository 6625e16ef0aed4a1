"""What tshark makes of the segments on the wire."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cable import INTERFACE, SERVER, output_of
from moving import old_stamps
from namespaces import Namespace
from server import Serving, Sizes
from transfer import there_and_back

#: What rheo sends, as a filter.
OURS = f"(ip.src == {SERVER[4]} or ipv6.src == {SERVER[6]})"


def shows(serving: Serving, _: Sizes) -> None:
    """On a wire that loses nothing, tshark finds no error in what rheo sends, no wrong checksum, and nothing sent twice, but for
    what a busy machine has left unacknowledged for a whole timeout."""
    serving.start()
    with captured(serving, serving.cable.client, INTERFACE) as capture:
        for version in (4, 6):
            there_and_back(serving, version, 2)
    assert count(capture, f"tcp and {OURS}") > 1_000, "the capture has what was sent"
    early = "tcp.analysis.retransmission and not tcp.analysis.rto >= 0.2"
    for what in ("_ws.expert.severity == error", early, "tcp.analysis.ack_lost_segment"):
        assert count(capture, f"{what} and {OURS}") == 0, f"{what} in what rheo sent"
    summary = serving.stop()
    assert summary["retransmitted"] == count(capture, f"tcp.analysis.retransmission and {OURS}"), summary
    assert old_stamps(serving) == 0, "time stamps went back, and the kernel dropped segments for it"


@contextmanager
def captured(serving: Serving, namespace: Namespace, interface: str) -> Iterator[Path]:
    """A file with what passes an interface meanwhile."""
    capture = serving.kept / "capture"
    words = ("tshark", "-q", "-i", interface, "-w", str(capture), "-s", "200", "-B", "64", "-f", "tcp")
    command = ["ip", "netns", "exec", namespace.name, *words]
    tshark = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_for(lambda: capture.exists() and capture.stat().st_size > 0)
        yield capture
        time.sleep(1)
    finally:
        tshark.terminate()
        tshark.wait(20)


def count(capture: object, display: str) -> int:
    """Packets of a capture that a display filter lets through. Payload is cut short there, and not judged."""
    only_tcp = ["--disable-protocol", "http", "-o", "tcp.try_heuristic_first:FALSE", "-d", "tcp.port==80,data"]
    words = ["tshark", "-r", str(capture), *only_tcp, "-Y", display, "-T", "fields", "-e", "frame.number"]
    return len(output_of(words, 60).split())


def wait_for(holds) -> None:
    end = time.monotonic() + 10
    while not holds():
        assert time.monotonic() < end, "it does not come"
        time.sleep(0.05)
