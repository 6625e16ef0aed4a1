"""Sends the smallest UDP datagrams, from 256 ports, as fast as it can: `flooder.py ADDRESS LEAST`.

Run in a namespace of its own; prints a line when it starts. Ends when its standard input does and it has sent `LEAST`
datagrams, and prints how many it sent; after five minutes in any case."""

from __future__ import annotations

import contextlib
import select
import socket
import sys
import time

PORTS = 256
#: The discard service (RFC 863).
TARGET_PORT = 9


#: Seconds.
LONGEST = 300.0


def is_over() -> bool:
    return bool(select.select([sys.stdin], [], [], 0)[0])


def main() -> None:
    address, least = sys.argv[1], int(sys.argv[2])
    senders = []
    for _ in range(PORTS):
        sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        sender.bind(("", 0))
        senders.append(sender)
    print("started", flush=True)
    sent, target, end = 0, (address, TARGET_PORT), time.monotonic() + LONGEST
    while time.monotonic() < end and not (sent >= least and is_over()):
        for sender in senders:
            # Refusals of earlier ones, and full queues.
            with contextlib.suppress(OSError):
                sender.sendto(b"", target)
                sent += 1
    print(sent)


if __name__ == "__main__":
    main()
