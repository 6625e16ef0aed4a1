"""Sends the smallest UDP datagrams, from 256 ports: `flooder.py ADDRESS COUNT`.

First `COUNT` of them as fast as it can, then, once it has printed a line, at most 16 a millisecond until its standard
input ends, or five minutes have passed. Prints how many it sent."""

from __future__ import annotations

import contextlib
import select
import socket
import sys
import time

PORTS = 256
#: The discard service (RFC 863).
TARGET_PORT = 9
#: How many go out between two pauses, and how long a pause is. Seconds.
PACED, PAUSE = 16, 0.001
#: Seconds.
LONGEST = 300.0


def main() -> None:
    address, count = sys.argv[1], int(sys.argv[2])
    senders = []
    for _ in range(PORTS):
        sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        sender.bind(("", 0))
        senders.append(sender)
    sent, target, end = 0, (address, TARGET_PORT), time.monotonic() + LONGEST
    while time.monotonic() < end:
        paced = sent >= count
        if sent == count:
            print("flooded", flush=True)
        for _ in range(PACED):
            # Refusals of earlier ones, and full queues.
            with contextlib.suppress(OSError):
                senders[sent % PORTS].sendto(b"", target)
            sent += 1
        if paced and select.select([sys.stdin], [], [], PAUSE)[0]:
            break
    print(sent)


if __name__ == "__main__":
    main()
