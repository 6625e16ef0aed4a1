"""SYNs and FINs from addresses that answer nothing, more than there may be handshakes: clients are served all the same."""

from __future__ import annotations

import sys
from pathlib import Path

from cable import SERVER, output_of
from server import PORT, Serving

SENDER = Path(__file__).with_name("flooder.py")
#: Segments of a flood, and clients behind it.
SEGMENTS, CLIENTS = 5_000, 10
#: Seconds that a client may take: without a place it would wait for as long as handshakes last.
PATIENCE = 20
#: The flags of a flood's segments: SYN; FIN and ACK.
KINDS = (2, 17)
#: Where the flood comes from: addresses on the client's link.
SOURCES = {4: "10.9.0.0/24", 6: "fd09::/64"}


def floods(serving: Serving, scheduler: str) -> None:
    """Clients connect behind a flood of each kind, by cookies where places are taken."""
    (serving.root / "small").write_bytes(bytes(100))
    serving.start("--scheduler", scheduler, "--drain-time", "1s")
    for version in (4, 6):
        # Both ends know each other's link addresses.
        fetch(serving, version)
        for flags in KINDS:
            words = (SOURCES[version], SERVER[version], str(PORT), str(flags), str(SEGMENTS))
            output_of(serving.cable.command(sys.executable, str(SENDER), *words), PATIENCE)
            for _ in range(CLIENTS):
                fetch(serving, version)
    summary = serving.stop()
    assert summary["accepted"] == 2 * (1 + 2 * CLIENTS), summary
    assert summary["syn_cookies_sent"] + summary["half_open_evicted"] > 0, summary


def fetch(serving: Serving, version: int) -> None:
    words = ("curl", "--silent", "--show-error", "--max-time", str(PATIENCE), "--output", "/dev/null")
    output_of(serving.cable.command(*words, serving.url(version, "small")), 2 * PATIENCE)
