"""rheo in the middle."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
from pathlib import Path

import configuration
from expect import Failure, expect
from middle import Ground, Middle
from network import Network

#: How long it may take to end once it is told to. Seconds.
PATIENCE = 120


class RheoMiddle(Middle):
    """A process `rheo run` in the middle's namespace."""

    is_process = True

    def __init__(self, binary: Path, network: Network, ground: Ground) -> None:
        super().__init__(network, ground)
        self._binary = binary
        self._folder = tempfile.TemporaryDirectory(prefix="rlive-")
        self._place = Path(self._folder.name)
        self._process: subprocess.Popen | None = None
        #: What the devices are told to do without their interface; as shipped where it is empty.
        self.on_loss = ""
        #: Where it serves its metrics; nowhere if empty.
        self.http = ""
        #: Whether its configuration is a copy, which may be changed, and it runs in a session of its own, without a terminal.
        self.has_own_file = False
        #: Its configuration, once it has started.
        self.config = Path()
        # The kernel of this namespace must not do the work.
        network.middle.sysctl(
            [("net.ipv4.ip_forward", 0)]
            + [(f"net.ipv6.conf.{interface}.disable_ipv6", 1) for interface in network.ports]
        )  # fmt: skip

    def start(self) -> None:
        config = configuration.path(self.ground, self._place, self.on_loss)
        if self.has_own_file:
            config = Path(shutil.copyfile(config, self._place / "own.toml"))
        self.config = config
        command = [str(self._binary), "run", str(config), "--json", "--lanes", str(self.ground.lanes)]
        command += ["--control", str(self._place / "control")]
        if self.http:
            command += ["--http", self.http]
        devices = configuration.devices(self.ground.service).items()
        # A third device is of the first one's kind.
        for (name, interface), kind in zip(devices, itertools.cycle(self.ground.devices)):
            command += ["--device", f"{name}={kind}:{interface}"]
        with open(self._place / "out", "wb") as out, open(self._place / "log", "wb") as log:
            self._process = self.network.middle.start(
                *command, stdout=out, stderr=log, start_new_session=self.has_own_file
            )

    def stop(self) -> dict[str, object]:
        self._process.send_signal(signal.SIGTERM)
        return self.ended()

    def ended(self, status: int = 0) -> dict[str, object]:
        """Waits for the end with this exit status, and checks it."""
        try:
            ended = self._process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            raise Failure(f"rheo still runs {PATIENCE} s after SIGTERM: {self.diagnosis()}") from None
        expect(ended == status, f"rheo ended with {ended}: {self.diagnosis()}")
        lines = (self._place / "out").read_text().splitlines()
        expect(bool(lines), "rheo printed no summary")
        summary = json.loads(lines[-1])
        check_summary(summary)
        self.check_clean()
        return summary

    def crash(self) -> None:
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()

    def check_clean(self) -> None:
        """Nothing of rheo's is left on the interfaces."""
        middle = self.network.middle.name
        listed = subprocess.run(["ip", "-j", "-n", middle, "link"], capture_output=True, check=True)
        with_program = [link["ifname"] for link in json.loads(listed.stdout) if "xdp" in link]
        expect(not with_program, f"an XDP program is left on {', '.join(with_program)}")
        expect(not (self._place / "control").exists(), "the control socket is left")

    def hang_up(self) -> None:
        self._process.send_signal(signal.SIGHUP)

    def command(self, *arguments: str) -> subprocess.CompletedProcess[bytes]:
        """A command of rheo's about this run."""
        control = ["--control", str(self._place / "control")]
        return subprocess.run([str(self._binary), *arguments, *control], capture_output=True, timeout=PATIENCE, check=False)

    def is_running(self) -> bool:
        return self._process.poll() is None

    def rewrite_table(self, device: str, seed: int) -> None:
        answer = self.ask({"command": "table", "device": device, "shuffle": {"seed": seed}})
        expect(answer.get("rewrites") == 1, f"the table of {device} was not rewritten: {answer}")

    def ask(self, request: dict[str, object]) -> dict[str, object]:
        """One request to the control socket, and the first line of its answer."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as control:
            control.settimeout(PATIENCE)
            # The path may be longer than such an address can be.
            here = os.open(self._place, os.O_PATH)
            try:
                control.connect(f"/proc/self/fd/{here}/control")
            finally:
                os.close(here)
            control.sendall(json.dumps(request).encode() + b"\n")
            with control.makefile("rb") as lines:
                answer = json.loads(lines.readline() or b"null")
        expect(isinstance(answer, dict) and answer.get("reply") != "error", f"{request['command']}: {answer}")
        return answer

    def log(self) -> str:
        log = self._place / "log"
        return log.read_text(errors="replace").strip() if log.exists() else ""

    def diagnosis(self) -> str:
        return " | ".join(self.log().splitlines()[-6:])


def check_summary(summary: dict[str, object]) -> None:
    """The invariants held, and the books balance."""
    expect(summary["invariants"] == "ok", f"invariants: {summary['invariants']}")
    entered = summary["received"] + summary["originated"] + summary["copied"]
    left = summary["sent"] + summary["consumed"] + summary["held"] + sum(summary["dropped"].values())
    expect(entered == left, f"{entered} packets entered, {left} left: {summary}")
