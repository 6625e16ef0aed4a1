"""`rheo run` with the configuration of a service that the project ships."""

from __future__ import annotations

import json
from pathlib import Path

from cable import CLIENT, SERVER
from seen import follow
from server import Serving, Sizes
from transfer import there_and_back

SHIPPED = Path(__file__).parents[2] / "configs" / "serve-live.toml"


def shipped(serving: Serving, _: Sizes) -> None:
    """Files go both ways, and segments are traced. All that differs from what is shipped are the addresses and the directory, into
    which clients write."""
    text = SHIPPED.read_text()
    changes = {
        '"192.168.77.1/24", "fd77::1/64"': f'"{SERVER[4]}/24", "{SERVER[6]}/64"',
        '"192.168.77.254"': f'"{CLIENT[4]}"',
        'root = "/srv/www"': f'root = "{serving.root}"\nwritable = true',
    }
    for old, new in changes.items():
        assert text.count(old) == 1, f"{old} in {SHIPPED}"
        text = text.replace(old, new)
    serving.start_configured(text)
    for version in (4, 6):
        there_and_back(serving, version, 4)
    (serving.root / "small").write_bytes(bytes(100))
    traced = follow(serving, "trace", "--json", "--filter", "tcp and dst port 80", "--count", "12").splitlines()
    points = [point for line in traced for point in json.loads(line)["points"]]
    states = {(point["was"], point["state"]) for point in points if point["stage"] == "decided"}
    assert {("listen", "syn-received"), ("syn-received", "established")} <= states, states
    assert {"handshake", "data"} <= {point["reason"] for point in points if point["stage"] == "answer"}
    summary = serving.stop()
    assert summary["accepted"] == summary["connections"] > 4 and summary["reset"] == 0, summary
