"""Wires that lose, and kernels that are set otherwise."""

from __future__ import annotations

import socket
import time

from cable import CLIENT, INTERFACE, SERVER
from server import PORT, Serving, Sizes
from spoiler import Faults
from transfer import there_and_back
from wire import OURS, captured, count

#: Settings of a kernel, each of which changes what it offers or how much it takes.
SETTINGS = (
    {"net.ipv4.tcp_sack": "0"},
    {"net.ipv4.tcp_timestamps": "0"},
    {"net.ipv4.tcp_sack": "0", "net.ipv4.tcp_timestamps": "0", "net.ipv4.tcp_window_scaling": "0"},
    {"net.ipv4.tcp_rmem": "4096 4096 4096", "net.ipv4.tcp_wmem": "4096 4096 4096"},
    {"net.ipv4.tcp_rmem": "4096 131072 6291456", "net.ipv4.tcp_wmem": "4096 16384 4194304"},
    {"net.ipv4.tcp_ecn": "1", "net.ipv4.tcp_slow_start_after_idle": "0"},
)


#: What a wire does, one after the other.
WIRES = (
    Faults(loss=0.02, delay=0.002),
    Faults(reorder=0.2, delay=0.001),
    Faults(duplicate=0.05, corrupt=0.01),
    Faults(loss=0.01, reorder=0.05, duplicate=0.01, corrupt=0.01, delay=0.02),
    Faults(loss=0.05, delay=0.001),
    Faults(delay=0.05),
    Faults(loss=0.01, reorder=0.01, delay=0.05),
)


def bad_wire(serving: Serving, _: Sizes) -> None:
    serving.start()
    spoiler = serving.cable.spoiler
    with captured(serving, serving.cable.middle, "w1") as capture:
        for spoiler.faults in WIRES:
            start = time.monotonic()
            there_and_back(serving, 4, 0.5)
            print(f"       {spoiler.faults}: {time.monotonic() - start:.2f} s")
    assert count(capture, f"tcp and {OURS}") > 1_000, "the capture has what was sent"
    assert count(capture, f"_ws.expert.severity == error and {OURS}") == 0, "an error in what rheo sent"
    spoiler.faults = Faults()
    assert all(count > 5 for count in spoiler.met.values()), spoiler.met
    summary = serving.stop()
    assert summary["accepted"] == 2 * len(WIRES) and summary["reset"] == 0, summary
    assert summary["retransmitted"] > 10, summary
    assert summary["dropped"]["tcp_checksum"] > 0, summary


def settings(serving: Serving, _: Sizes) -> None:
    serving.start()
    for chosen in SETTINGS:
        serving.cable.client.sysctl(chosen.items())
        there_and_back(serving, 4, 0.5)
    for algorithm in ("cubic", "bbr"):
        # Of the route: the setting is the whole machine's to permit.
        route = ("10.9.0.0/24", "dev", INTERFACE, "src", CLIENT[4], "congctl", algorithm)
        serving.cable.client.ip("route", "change", *route)
        with serving.cable.client.entered(), socket.create_connection((SERVER[4], PORT), 5) as probe:
            chosen = probe.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16)
        assert chosen.rstrip(b"\0") == algorithm.encode(), chosen
        there_and_back(serving, 4, 2)
    serving.stop()


def mtus(serving: Serving, _: Sizes) -> None:
    """Links that carry little and much, changed while rheo runs."""
    serving.start()
    for mtu in (576, 1_280, 9_000 if serving.cable.ground != "af_xdp" else 3_000, 1_500):
        serving.cable.set_mtu(mtu)
        # rheo follows.
        time.sleep(1)
        there_and_back(serving, 4, 0.5)
    summary = serving.stop()
    assert summary["reset"] == summary["aborted"] == summary["timed_out"] == 0, summary


def ends(serving: Serving, _: Sizes) -> None:
    """Idle connections are closed in good order when the service ends, and a busy one when its reply is complete."""
    (serving.root / "down").write_bytes(bytes(4 << 20))
    serving.start()
    with serving.cable.client.entered():
        idle, busy = (socket.create_connection((SERVER[4], PORT), 5) for _ in range(2))
    busy.sendall(b"GET /down HTTP/1.1\r\nHost: rheo\r\n\r\n")
    got = len(busy.recv(1_000))
    serving.interrupt()
    assert idle.recv(1) == b"", "it was closed in good order"
    while piece := busy.recv(1 << 16):
        got += len(piece)
    assert got > 4 << 20, f"{got} bytes"
    time.sleep(0.1)
    with serving.cable.client.entered(), socket.socket() as late:
        late.settimeout(5)
        assert late.connect_ex((SERVER[4], PORT)) != 0, "it accepts no more"
    idle.close()
    busy.close()
    summary = serving.stop()
    assert summary["reset"] == summary["aborted"] == 0, summary
