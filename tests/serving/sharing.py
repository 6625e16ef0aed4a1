"""Lanes that share connections: a central queue, and stealing."""

from __future__ import annotations

import hashlib
import random
import subprocess

from cable import INTERFACE, SERVER, output_of
from server import PORT, Serving
from transfer import LONG, curl

#: Short files, fetched over twenty connections at a time.
FILES = 300
#: Commands that redis-benchmark sends of each kind, so many at a time on a connection.
COMMANDS, PIPELINE = 20_000, 16
#: Why packets are lost on a wire that loses none.
LOST = ("queue_full", "no_buffer", "fill_empty", "transmit_refused")
#: Packets by which the service announces itself while the client's interface is down; that one refuses them.
ANNOUNCEMENTS = 3


def files(serving: Serving, scheduler: str) -> None:
    """Short files and a long one each way. Nothing is lost on the way, so nothing is sent again and nothing comes early."""
    start(serving, scheduler)
    numbers = random.Random(1)
    for number in range(FILES):
        (serving.root / f"f{number}").write_bytes(numbers.randbytes(numbers.randrange(1, 4_000)))
    curl(
        serving, "--parallel", "--parallel-max", "20", "--output", f"{serving.kept}/f#1",
        serving.url(4, f"f[0-{FILES - 1}]"),
    )  # fmt: skip
    for number in range(FILES):
        assert (serving.kept / f"f{number}").read_bytes() == (serving.root / f"f{number}").read_bytes(), f"f{number}"
    data = numbers.randbytes(2 << 20)
    (serving.root / "long").write_bytes(data)
    curl(serving, "--output", f"{serving.kept}/long", serving.url(6, "long"))
    curl(serving, "--upload-file", f"{serving.kept}/long", serving.url(6, "back"))
    assert hashlib.sha256((serving.root / "back").read_bytes()).digest() == hashlib.sha256(data).digest()
    summary = serving.stop()
    # Each piece of an upload counts as a request, too.
    assert summary["requests"] >= FILES + 2 and summary["reset"] == summary["panics"] == 0, summary
    check_order(serving, summary)


def pipelines(serving: Serving, scheduler: str) -> None:
    """Commands of twenty connections, many at a time on each: every increment counts once, and every reply is the next one's."""
    start(serving, scheduler, "resp")
    place = ("-h", SERVER[4], "-p", str(PORT))
    words = ("-n", str(COMMANDS), "-c", "20", "-P", str(PIPELINE), "-t", "set,get,incr", "--csv")
    lines = output_of(serving.cable.command("redis-benchmark", *place, *words), LONG).splitlines()
    assert len([line for line in lines if line.startswith(('"SET', '"GET', '"INCR'))]) == 3, lines
    count = output_of(serving.cable.command("redis-cli", *place, "GET", "counter:__rand_int__"), 20).strip()
    assert count == str(COMMANDS), count
    summary = serving.stop()
    # The benchmark may reset a connection at the end of each kind, with replies under way.
    assert summary["requests"] >= 3 * COMMANDS and summary["refused"] == 0 and summary["reset"] <= 3 * 20, summary
    check_order(serving, summary)


def start(serving: Serving, scheduler: str, service: str = "http") -> None:
    """Starts the service. The client's kernel then sends nothing again because an acknowledgement is late: the machine may be busy,
    and the wire loses nothing. What it would send again is what it was told to be missing."""
    shared = ["--share-cores"] if scheduler.startswith("dispatcher-") else []
    serving.start("--lanes", "2", "--scheduler", scheduler, *shared, service=service)
    client = serving.cable.client
    client.sysctl([("net.ipv4.tcp_early_retrans", 0)])
    for version in (4, 6):
        client.ip(f"-{version}", "route", "replace", SERVER[version], "dev", INTERFACE, "rto_min", f"{2 * LONG}s")


def check_order(serving: Serving, summary: dict[str, object]) -> None:
    """Each request has its reply; neither end has missed a segment, and none came to the client before an earlier one."""
    assert summary["unanswered"] == 0, summary
    lost = {reason: count for reason, count in summary["dropped"].items() if reason in LOST}
    if lost.get("transmit_refused") == ANNOUNCEMENTS:
        del lost["transmit_refused"]
    if lost:
        # The machine was so busy that the kernel dropped packets; what was lost is sent again.
        print(f"       {lost}: the order of segments was not looked at")
        return
    # A late acknowledgement shows no wrong order. `TCPOFOQueue` tells of what rheo sends in one.
    assert summary["retransmitted"] == 0 or summary["retransmission_timeouts"] > 0, summary
    found = {name: counter(serving, file, group, name) for file, group, name in (
        ("snmp", "Tcp:", "RetransSegs"), ("netstat", "TcpExt:", "TCPSynRetrans"), ("netstat", "TcpExt:", "TCPOFOQueue"),
        ("netstat", "TcpExt:", "TCPSACKReorder"),
    )}  # fmt: skip
    # The first segment of a connection is sent again after a second, whatever the route says.
    assert found["RetransSegs"] == found["TCPSynRetrans"], (found, summary)
    assert found["TCPOFOQueue"] == found["TCPSACKReorder"] == 0, (found, summary)


def counter(serving: Serving, file: str, group: str, name: str) -> int:
    """A counter of the client's kernel."""
    table = subprocess.run(serving.cable.command("cat", f"/proc/net/{file}"), capture_output=True, text=True, check=True)
    names, values = (line.split() for line in table.stdout.splitlines() if line.startswith(group))
    return int(dict(zip(names, values))[name])
