"""What a running service shows of its connections, and a bad network of its own making."""

from __future__ import annotations

import json
import subprocess
import time

from cable import SERVER, output_of
from server import PORT, Serving, Sizes
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


def lists(serving: Serving, _: Sizes) -> None:
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


def faults(serving: Serving, _: Sizes) -> None:
    """Files through a network that loses, reorders and delays, which stands before the device."""
    serving.start("--fault", "loss=0.01,duplicate=0.01,reorder=0.01,delay=5ms,seed=7", "--lanes", "2")
    for version in (4, 6):
        there_and_back(serving, version, 4)
    summary = serving.stop()
    assert summary["accepted"] == 4 and summary["reset"] == 0, summary
    assert summary["retransmitted"] > 0, summary
    assert all(summary["faults"][kind] > 5 for kind in ("lost", "duplicated", "reordered")), summary


def follow(serving: Serving, *words: str) -> str:
    """What a client of the control socket prints while files are fetched, one after the other, until it has enough."""
    command = serving.cable.command(serving.binary, *words, "--control", str(serving.control), server=True)
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        while process.poll() is None:
            fetch = ("curl", "--silent", "--output", "/dev/null", serving.url(4, "small"))
            output_of(serving.cable.command(*fetch), LONG)
        return process.stdout.read()


def traces(serving: Serving, _: Sizes) -> None:
    """A trace has what the service did with each segment, and a capture has it as comments."""
    serving.start("--lanes", "2", "--control", str(serving.control))
    (serving.root / "small").write_bytes(bytes(100))
    lines = follow(serving, "trace", "--json", "--filter", "tcp and dst port 80", "--count", "30").splitlines()
    points = [point for line in lines for point in json.loads(line)["points"]]
    assert {"received", "placed", "segment", "decided", "program", "answer"} <= {point["stage"] for point in points}
    decided = [point for point in points if point["stage"] == "decided"]
    changes = {(point["was"], point["state"]) for point in decided}
    assert {("listen", "syn-received"), ("syn-received", "established")} <= changes, changes
    assert any(point["in_order"] > 50 for point in decided), decided
    assert sum(point["requests"] for point in points if point["stage"] == "program") > 0
    assert {"handshake", "data"} <= {point["reason"] for point in points if point["stage"] == "answer"}
    file = serving.root.parent / "capture.pcapng"
    follow(serving, "capture", "--filter", "tcp and port 80", "--count", "60", "--output", str(file))
    shown = output_of(["tshark", "-r", str(file), "-T", "fields", "-e", "frame.interface_name", "-e", "frame.comment"], 60)
    comments = {tuple(line.split("\t")) for line in shown.splitlines()}
    assert ("lan before", "for a listener; accepts the SYN; listen -> syn-received") in comments, comments
    assert {("lan after", "handshake"), ("lan after", "data")} <= comments, comments
    serving.stop()
