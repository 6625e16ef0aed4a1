"""A relay, with programs of this machine at both ends."""

from __future__ import annotations

import subprocess
from pathlib import Path

import ssh
from cable import CLIENT, SERVER
from program import Program
from server import PORT, Serving, Sizes
from transfer import LONG, digest, there_and_back

#: Where the target listens.
TARGET = 8_000
ORIGIN = Path(__file__).with_name("origin.py")


def relays_v4(serving: Serving, sizes: Sizes) -> None:
    relays(serving, max(1, sizes.megabytes // 4), 4)


def relays_v6(serving: Serving, sizes: Sizes) -> None:
    relays(serving, max(1, sizes.megabytes // 4), 6)


def relays(serving: Serving, megabytes: int, version: int) -> None:
    """Files down and up through the relay, from clients of both versions of IP to a target of one."""
    origin = ["/usr/bin/python3", str(ORIGIN), str(TARGET), str(serving.root)]
    start(serving, version)
    with Program(serving.cable, origin, TARGET):
        for client in (4, 6):
            there_and_back(serving, client, megabytes)
        # A client that gives up in the middle takes the other side with it, and nothing else.
        url = serving.url(4, "down")
        words = ("curl", "--silent", "--limit-rate", "1M", "--max-time", "1", "--output", "/dev/null", url)
        subprocess.run(serving.cable.command(*words), check=False, timeout=LONG)
        there_and_back(serving, 4, 1)
        summary = serving.stop()
    # One each way of each file, and the one given up.
    assert summary["accepted"] == summary["connected"] == 7, summary
    assert summary["connect_failed"] == 0 and summary["bytes_in"] >= 4 * megabytes << 20, summary


def refuses(serving: Serving, _: Sizes) -> None:
    """Without a target, clients are reset, and each is counted."""
    serving.start("--to", f"{CLIENT[4]}:{TARGET}", service="relay")
    words = ("curl", "--silent", "--show-error", serving.url(4, "down"))
    done = subprocess.run(serving.cable.command(*words), capture_output=True, text=True, timeout=LONG, check=False)
    # By when the reset comes: while curl looks whether it is connected, or later.
    assert done.returncode in (7, 52, 56), (done.returncode, done.stderr)
    summary = serving.stop()
    assert summary["accepted"] == summary["connect_failed"] == 1, summary


def secure_shell(serving: Serving, sizes: Sizes) -> None:
    """A session of ssh through the relay: what it carries both ways is whole, and ends when its input does."""
    if not ssh.is_there():
        print("       not played: there is no sshd")
        return
    keys = ssh.Keys(serving.kept)
    start(serving, 4)
    with Program(serving.cable, keys.daemon(TARGET), TARGET):
        data = serving.root / "data"
        data.write_bytes(bytes(range(256)) * 4_096 * max(1, sizes.megabytes // 4))
        command = serving.cable.command(*keys.session(SERVER[4], PORT, "cat"))
        back = serving.kept / "back"
        with open(data, "rb") as source, open(back, "wb") as sink:
            subprocess.run(command, stdin=source, stdout=sink, check=True, timeout=LONG)
        assert digest(back) == digest(data), "what came back is something else"
        summary = serving.stop()
    assert summary["accepted"] == summary["connected"] == 1 and summary["reset"] == 0, summary


def start(serving: Serving, version: int) -> None:
    """Starts a relay to TARGET in the client's namespace."""
    host = CLIENT[version] if version == 4 else f"[{CLIENT[version]}]"
    serving.start("--to", f"{host}:{TARGET}", "--lanes", "2", service="relay")
