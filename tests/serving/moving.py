"""Connections that move while they transfer."""

from __future__ import annotations

import hashlib
import subprocess
from server import Serving, Sizes
from transfer import LONG


def moves(serving: Serving, sizes: Sizes) -> None:
    """A policy moves shards of four busy connections between two lanes; every file arrives as it is."""
    data = (bytes(range(256)) * 4_096 * max(1, sizes.megabytes // 4))[: sizes.megabytes << 18]
    (serving.root / "down").write_bytes(data)
    expected = hashlib.sha256(data).hexdigest()
    serving.start("--lanes", "2", "--policy", "rsspp")
    url = serving.url(4, "down")
    loop = f"for n in 1 2 3 4; do curl --silent --fail --limit-rate 20M {url} | sha256sum; done"
    clients = [
        subprocess.Popen(serving.cable.command("bash", "-c", loop), stdout=subprocess.PIPE, text=True) for _ in range(6)
    ]
    for client in clients:
        out, _ = client.communicate(timeout=LONG)
        assert [line.split()[0] for line in out.splitlines()] == [expected] * 4, out
    summary = serving.stop()
    assert summary["accepted"] == 24 and summary["reset"] == summary["aborted"] == 0, summary
    assert old_stamps(serving) == 0, "time stamps went back, and the kernel dropped segments for it"
    print(f"       {summary['moved_connections']} connections moved, {summary['retransmitted']} segments sent again")


def old_stamps(serving: Serving) -> int:
    """Segments that the client's kernel has dropped because their time stamps were older than others (RFC 7323, 5)."""
    table = subprocess.run(serving.cable.command("cat", "/proc/net/netstat"), capture_output=True, text=True, check=True)
    names, values = (line.split() for line in table.stdout.splitlines() if line.startswith("TcpExt:"))
    return int(dict(zip(names, values))["PAWSEstab"])
