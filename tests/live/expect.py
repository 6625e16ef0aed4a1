"""What a scenario says when something is not as it must be."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable


class Failure(Exception):
    """Something that must hold did not."""


class NotRun(Exception):
    """A scenario that makes no sense here, and why."""


def expect(holds: bool, otherwise: str) -> None:
    if not holds:
        raise Failure(otherwise)


def expect_success(done: subprocess.CompletedProcess[bytes]) -> bytes:
    """What a command printed, provided that it succeeded."""
    said = (done.stderr or done.stdout).decode(errors="replace").strip()
    # Behind "ip netns exec NAMESPACE".
    expect(done.returncode == 0, f"{done.args[4]} failed: {said[-400:]}")
    return done.stdout


def eventually(holds: Callable[[], bool], patience: float, otherwise: str) -> None:
    """Waits until something holds."""
    deadline = time.monotonic() + patience
    while not holds():
        expect(time.monotonic() < deadline, f"{otherwise}, for {patience:g} s")
        time.sleep(0.05)
