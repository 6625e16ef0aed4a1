"""Network namespaces, and raw sockets in them."""

from __future__ import annotations

import ctypes
import os
import socket
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

CLONE_NEWNET = 0x40000000
ETH_P_ALL = 3
PACKET_OUTGOING = 4

_libc = ctypes.CDLL(None, use_errno=True)


class Namespace:
    """A network namespace of our own, deleted with everything in it when closed."""

    def __init__(self, name: str) -> None:
        self.name = name
        run("ip", "netns", "add", name)

    def ip(self, *words: str) -> None:
        run("ip", "-n", self.name, *words)

    def sysctl(self, settings: Iterable[tuple[str, object]]) -> None:
        written = [f"{key}={value}" for key, value in settings]
        run("ip", "netns", "exec", self.name, "sysctl", "-q", "-w", *written)

    def nft(self, ruleset: str) -> None:
        run("ip", "netns", "exec", self.name, "nft", "-f", "-", text=ruleset)

    def output(self, *command: str) -> str:
        """What a command prints in this namespace."""
        inside = ("ip", "netns", "exec", self.name, *command)
        return subprocess.run(inside, text=True, capture_output=True, check=True).stdout

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Has the calling thread in this namespace; sockets that it opens meanwhile stay there."""
        with open("/proc/thread-self/ns/net") as home, open(f"/run/netns/{self.name}") as there:
            _enter(there.fileno())
            try:
                yield
            finally:
                _enter(home.fileno())

    def raw_socket(self, interface: str) -> socket.socket:
        """A socket that sends and receives whole frames of an interface in this namespace."""
        with self.entered():
            raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
            raw.bind((interface, ETH_P_ALL))
        return raw

    def close(self) -> None:
        subprocess.run(["ip", "netns", "del", self.name], check=False, capture_output=True)


def run(*command: str, text: str | None = None) -> None:
    """Runs a command, and says what it said when it fails."""
    done = subprocess.run(command, input=text, text=True, capture_output=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip() or done.stdout.strip()}")


def _enter(descriptor: int) -> None:
    if _libc.setns(descriptor, CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
