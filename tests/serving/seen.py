"""What a running service shows of its connections, and a bad network of its own making."""

from __future__ import annotations

import json
import subprocess
import time

from cable import SERVER, output_of
from server import PORT, Serving
from transfer import LONG, there_and_back

#: Keys that every connection has.
KEYS = {"local", "remote", "state", "lane", "shard", "cwnd", "ssthresh", "srtt_us", "rto_us", "retransmitted"}
KEYS |= {"out_of_order", "windows", "unread", "unsent", "idle"}
#: Connections held open at once.
MANY = 10_000
#: Holds MANY connections until it is told to end.
HOLDER = """
import resource, socket, sys
count, host, port = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
resource.setrlimit(resource.RLIMIT_NOFILE, (count + 64, count + 64))
held = [socket.create_connection((host, port), timeout=20) for _ in range(count)]
print("held", flush=True)
sys.stdin.read()
"""


def connections(serving: Serving, *words: str) -> list[dict[str, object]]:
    command = [serving.binary, "connections", "--control", str(serving.control), "--json", *words]
    return json.loads(output_of(serving.cable.command(*command, server=True), 30))


def lists(serving: Serving, _: int) -> None:
    """Ten thousand connections are listed once each; filters and bounds hold; a slow reader shows."""
    serving.start("--lanes", "2", "--control", str(serving.control))
    assert connections(serving) == []
    holder = serving.cable.command("/usr/bin/python3", "-c", HOLDER, str(MANY), SERVER[4], str(PORT))
    with subprocess.Popen(holder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout.readline().strip() == "held"
            listed = connections(serving)
            assert len({entry["remote"] for entry in listed}) == len(listed) == MANY, len(listed)
            assert all(KEYS <= entry.keys() for entry in listed), listed[0]
            assert {entry["state"] for entry in listed} == {"established"}
            assert {entry["lane"] for entry in listed} == {0, 1}
            port = listed[7]["remote"].rsplit(":", 1)[1]
            assert [entry["remote"] for entry in connections(serving, "--remote-port", port)] == [listed[7]["remote"]]
            assert len(connections(serving, "--limit", "25")) == 25
            lanes = [len(connections(serving, "--lane", str(lane))) for lane in (0, 1)]
            assert sum(lanes) == MANY, lanes
        finally:
            process.stdin.close()
            process.wait(LONG)
    (serving.root / "down").write_bytes(bytes(64 << 20))
    slow = ("curl", "--silent", "--limit-rate", "10K", "--output", "/dev/null", serving.url(4, "down"))
    with subprocess.Popen(serving.cable.command(*slow)) as process:
        try:
            time.sleep(1)
            (entry,) = connections(serving, "--state", "established")
            assert entry["srtt_us"] > 0 and entry["cwnd"] > 0 and entry["unsent"] + entry["unacknowledged"] > 0, entry
        finally:
            process.terminate()
    summary = serving.stop()
    assert summary["accepted"] == MANY + 1, summary
    assert summary["tcp"]["tcpPassiveOpens"] == MANY + 1, summary


def faults(serving: Serving, _: int) -> None:
    """Files through a network that loses, reorders and delays, which stands before the device."""
    serving.start("--fault", "loss=0.01,duplicate=0.01,reorder=0.01,delay=5ms,seed=7", "--lanes", "2")
    for version in (4, 6):
        there_and_back(serving, version, 4)
    summary = serving.stop()
    assert summary["accepted"] == 4 and summary["reset"] == 0, summary
    assert summary["retransmitted"] > 0, summary
    assert all(summary["faults"][kind] > 5 for kind in ("lost", "duplicated", "reordered")), summary
