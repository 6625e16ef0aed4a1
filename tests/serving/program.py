"""Programs of this machine that listen."""

from __future__ import annotations

import subprocess
import time

from cable import Cable, output_of

#: Seconds until a program listens, and until it has ended.
PATIENCE = 20


class Program:
    """A program that listens at a port, in the client's namespace or the server's. It is ended when left."""

    def __init__(self, cable: Cable, command: list[str], port: int, server: bool = False) -> None:
        inside = cable.command(*command, server=server)
        self._process = subprocess.Popen(inside, stderr=subprocess.PIPE, text=True)
        until = time.monotonic() + PATIENCE
        while f":{port} " not in output_of(cable.command("ss", "-Hltn", server=server), PATIENCE):
            if time.monotonic() > until or self._process.poll() is not None:
                self._process.kill()
                raise AssertionError(f"{command[0]} does not listen: {self._process.communicate()[1]}")
            time.sleep(0.05)

    def __enter__(self) -> Program:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.communicate(timeout=PATIENCE)
