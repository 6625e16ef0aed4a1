"""sshd and ssh with keys of their own."""

from __future__ import annotations

import shutil
from pathlib import Path

from cable import output_of

#: Seconds that making a key may take.
PATIENCE = 60


def is_there() -> bool:
    return Path(_sshd()).exists()


class Keys:
    """The keys of a host and of a user, in files of a directory."""

    def __init__(self, place: Path) -> None:
        self._place = place
        # Where sshd gives up its privileges.
        Path("/run/sshd").mkdir(exist_ok=True)
        for name in ("host", "user"):
            output_of(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(place / name)], PATIENCE)
        (place / "allowed").write_text((place / "user.pub").read_text())

    def daemon(self, port: int) -> list[str]:
        """The command that accepts the user."""
        options = {
            "Port": port,
            "HostKey": self._place / "host",
            "AuthorizedKeysFile": self._place / "allowed",
            "StrictModes": "no",
            "PermitRootLogin": "prohibit-password",
            "UsePAM": "no",
            "PidFile": "none",
        }
        words = [word for name, value in options.items() for word in ("-o", f"{name}={value}")]
        return [_sshd(), "-D", "-e", "-f", "/dev/null", *words]

    def session(self, host: str, port: int, command: str) -> list[str]:
        """The command that has the user run something there."""
        flags = ("UserKnownHostsFile=/dev/null", "StrictHostKeyChecking=no", "LogLevel=ERROR")
        words = [word for flag in flags for word in ("-o", flag)]
        return ["ssh", "-p", str(port), "-i", str(self._place / "user"), *words, f"root@{host}", command]


def _sshd() -> str:
    return shutil.which("sshd") or "/usr/sbin/sshd"
