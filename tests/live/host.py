"""A host: a namespace with processes and sockets in it."""

from __future__ import annotations

import socket
import subprocess
from pathlib import Path

from namespaces import Namespace

#: The one interface of every host but the middle.
INTERFACE = "eth"


class Host(Namespace):
    """What ends with it: its interfaces, and the processes that were started in it."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._processes: list[subprocess.Popen] = []

    def start(self, *command: str, **options: object) -> subprocess.Popen:
        """Starts a process here; it is killed, if it still runs, when the host is closed."""
        process = subprocess.Popen(self._here(command), **options)
        self._processes.append(process)
        return process

    def run(self, *command: str, patience: float = 30) -> subprocess.CompletedProcess[bytes]:
        """Runs a command here to its end. After `patience` seconds it is killed and counts as failed."""
        try:
            return subprocess.run(self._here(command), capture_output=True, timeout=patience, check=False)
        except subprocess.TimeoutExpired as expired:
            error = (expired.stderr or b"") + f"{command[0]}: not done after {patience} s".encode()
            return subprocess.CompletedProcess(self._here(command), 124, expired.stdout or b"", error)

    def socket(self, family: int, kind: int, protocol: int = 0) -> socket.socket:
        with self.entered():
            return socket.socket(family, kind, protocol)

    def connect(self, address: str, port: int, patience: float = 10) -> socket.socket:
        """A TCP connection from here."""
        connection = self.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM)
        connection.settimeout(patience)
        try:
            connection.connect((address, port))
        except OSError:
            connection.close()
            raise
        return connection

    def interfaces(self) -> list[str]:
        """The names of the interfaces here, other than loopback."""
        # By way of the namespace's own view, since /sys shows the one that it was mounted in.
        listed = subprocess.run(["ip", "-n", self.name, "-br", "link"], capture_output=True, text=True, check=True)
        return [line.split()[0].partition("@")[0] for line in listed.stdout.splitlines() if line.split()[0] != "lo"]

    def close(self) -> None:
        for process in self._processes:
            if process.poll() is None:
                process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout, process.stderr):
                if stream is not None:
                    stream.close()
        super().close()

    def _here(self, command: tuple[str, ...]) -> list[str]:
        return ["ip", "netns", "exec", self.name, *command]


def is_open(name: str) -> bool:
    """Whether a namespace of this name is still there."""
    return Path("/run/netns", name).exists()
