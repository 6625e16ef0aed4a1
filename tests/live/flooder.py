"""Sends the smallest UDP datagrams, from 256 ports, as fast as it can: `flooder.py ADDRESS SECONDS`.

Run in a namespace of its own; prints a line when it starts, and how many it sent when it ends."""

from __future__ import annotations

import contextlib
import socket
import sys
import time

PORTS = 256
#: The discard service (RFC 863).
TARGET_PORT = 9


def main() -> None:
    address, seconds = sys.argv[1], float(sys.argv[2])
    senders = []
    for _ in range(PORTS):
        sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        sender.bind(("", 0))
        senders.append(sender)
    print("started", flush=True)
    sent, target, end = 0, (address, TARGET_PORT), time.monotonic() + seconds
    while time.monotonic() < end:
        for sender in senders:
            # Refusals of earlier ones, and full queues.
            with contextlib.suppress(OSError):
                sender.sendto(b"", target)
                sent += 1
    print(sent)


if __name__ == "__main__":
    main()
