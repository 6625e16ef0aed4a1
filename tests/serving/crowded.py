"""Services whose load changes while thousands come and go, and services with clients that do not read, or that vanish."""

from __future__ import annotations

import json
import socket
import struct
import subprocess
from contextlib import ExitStack

from cable import INTERFACE, SERVER
from server import PORT, Serving
from visitors import ASK, REPLY, Visitors

#: Connections that are opened and closed while the load changes, and how many of them at a time.
VISITS, AT_A_TIME = 10_000, 40
#: Connections of each load, and its requests a second and their distribution over the queues, one after the other.
CONNECTIONS = 16
LOADS = ((500, "even"), (2_000, "skew"))
#: Clients that vanish in each way, half of them within a request, and half with replies that they have not read.
VANISHING = 20
#: The address of those that nobody answers for any more.
GONE = "10.9.0.3"
#: Bytes of the value that is asked for and not read, and how often each client asks.
VALUE, ASKED = 100_000, 500
#: Seconds that a reply may take.
LONG = 60


def start(serving: Serving, scheduler: str) -> int:
    """Starts a service, and returns how many receive queues it has."""
    lanes = 1 if scheduler.startswith("dispatcher") else 2
    words = ("--lanes", str(lanes)) if lanes > 1 else ()
    serving.start("--scheduler", scheduler, "--hash-key", "microsoft", "--drain-time", "2s", *words, service="resp")
    return lanes


def crowds(serving: Serving, scheduler: str) -> None:
    """Connections are opened and closed by the thousand while one load takes the place of another. Each is answered or refused, and
    the service has counted each."""
    queues = start(serving, scheduler)
    first = load(serving, *LOADS[0], queues)
    visitors = Visitors(serving.cable, VISITS, AT_A_TIME)
    visitors.reached.wait()
    # The first ends by itself. Visitors come and go meanwhile.
    second = load(serving, *LOADS[1], queues)
    outcomes = visitors.join()
    reports = [json.loads(one.communicate(timeout=2 * LONG)[0]) for one in (first, second)]
    summary = serving.stop()
    assert outcomes["answered"] + outcomes["refused"] == VISITS, outcomes
    for report in reports:
        assert report["achieved"] > 0, report
        wrong = ("unanswered", "lost", "failed", "closed", "reset", "refused", "garbage")
        assert all(report[name] == 0 for name in wrong), report
    check_books(summary)
    assert summary["accepted"] == outcomes["answered"] + 2 * CONNECTIONS, (summary, outcomes)
    assert summary["requests"] >= outcomes["answered"], summary
    wrong = ("panics", "unanswered", "aborted", "timed_out", "handshake_failed")
    assert all(summary[name] == 0 for name in wrong), summary


def load(serving: Serving, rate: int, spread: str, queues: int) -> subprocess.Popen:
    """`rheo load`, which runs."""
    spreading = ("--spread", spread, "--queues", str(queues), "--hash-key", "microsoft") if queues > 1 else ()
    words = ("--protocol", "resp", "--rate", str(rate), "--connections", str(CONNECTIONS), *spreading)
    times = ("--runs", "1", "--duration", "2s", "--warm-up", "0s", "--wait", f"{LONG}s", "--no-self-check", "--json")
    command = serving.cable.command(serving.binary, "load", "--address", f"{SERVER[4]}:{PORT}", *words, *times)
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)


def absences(serving: Serving, scheduler: str) -> None:
    """Clients that do not read, that reset their connection, and that are there no more: others are answered meanwhile, and the
    service has counted each."""
    start(serving, scheduler)
    with ExitStack() as held, serving.cable.client.entered():
        with connect() as setting:
            setting.sendall(b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$%d\r\n%b\r\n" % (VALUE, b"x" * VALUE))
            assert setting.recv(100) == b"+OK\r\n"
        deaf = held.enter_context(connect())
        send_unread(deaf)
        answered()
        leave_off([connect() for _ in range(VANISHING)], is_reset=True)
        answered()
        serving.cable.client.ip("addr", "add", f"{GONE}/24", "dev", INTERFACE)
        leaving = [connect(GONE) for _ in range(VANISHING)]
        leave_off(leaving, is_reset=False)
        serving.cable.client.ip("addr", "del", f"{GONE}/24", "dev", INTERFACE)
        [one.close() for one in leaving]
        answered()
        summary = serving.stop()
    check_books(summary)
    assert summary["accepted"] == 2 + 2 * VANISHING + 3, summary
    assert summary["reset"] == VANISHING, summary
    # One that does not read, and those that are gone.
    assert summary["aborted"] == 1 + VANISHING and summary["timed_out"] == 0, summary
    assert summary["panics"] == summary["refused"] == summary["unanswered"] == 0, summary


def connect(source: str | None = None) -> socket.socket:
    """A connection of the namespace that the thread is in."""
    own = (source, 0) if source else None
    return socket.create_connection((SERVER[4], PORT), LONG, source_address=own)


def send_unread(one: socket.socket) -> None:
    """Asks for more than fits between the two ends, or for as much as the service takes."""
    one.setblocking(False)
    try:
        for _ in range(ASKED):
            one.send(b"*2\r\n$3\r\nGET\r\n$1\r\na\r\n")
    except BlockingIOError:
        pass


def leave_off(clients: list[socket.socket], is_reset: bool) -> None:
    """Clients send a part of a request, or requests whose replies they do not read; and reset their connections."""
    for number, one in enumerate(clients):
        if number % 2 == 0:
            one.sendall(ASK[:-3])
        else:
            send_unread(one)
        if is_reset:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            one.close()


def answered() -> None:
    """Another client is answered."""
    with connect() as one:
        one.sendall(ASK)
        got = one.recv(100)
        assert got == REPLY, got


def check_books(summary: dict[str, object]) -> None:
    """Each connection has ended, in one way."""
    ends = ("finished", "reset", "aborted", "timed_out", "idle_closed")
    assert summary["accepted"] == sum(summary[name] for name in ends), summary
