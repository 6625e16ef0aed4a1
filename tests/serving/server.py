"""A process `rheo serve`."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from cable import SERVER, Cable

PORT = 80
#: How long it may take to start, and to end. Seconds.
PATIENCE = 20


@dataclass(frozen=True)
class Sizes:
    """How much scenarios transfer: the length of long files, and how many short ones there are."""

    megabytes: int
    files: int


class Serving:
    """rheo, which serves a directory to the client at the other end of a cable. When left, it must end in good order."""

    def __init__(self, binary: Path, ground: str) -> None:
        self.binary = str(binary.resolve())
        self.cable = Cable(ground)
        self._folder = Path(tempfile.mkdtemp(prefix="rserve-"))
        #: What is served, and where the client keeps what it gets.
        self.root, self.kept = self._folder / "root", self._folder / "kept"
        #: Where a control socket may be.
        self.control = self._folder / "control"
        self.root.mkdir()
        self.kept.mkdir()
        self._process: subprocess.Popen | None = None
        self._is_interrupted = False
        #: What the service printed at its end.
        self.summary: dict[str, object] = {}

    def __enter__(self) -> Serving:
        return self

    def start(self, *words: str, service: str = "http") -> None:
        """Starts `rheo serve`, and waits until it listens."""
        flags = ["--root", str(self.root), "--writable"] if service == "http" else []
        flags += ["--device", self.cable.device, "--port", str(PORT)]
        flags += ["--address", f"{SERVER[4]}/24", "--address", f"{SERVER[6]}/64", "--json", *words]
        self._launch("serve", service, *flags)

    def start_configured(self, text: str) -> None:
        """Starts `rheo run` with a configuration, and waits until it listens."""
        file = self._folder / "config.toml"
        file.write_text(text)
        checked = subprocess.run([self.binary, "check", "--offline", str(file)], capture_output=True, text=True)
        assert checked.returncode == 0, checked.stderr
        self._launch("run", str(file), "--device", self.cable.device, "--control", str(self.control), "--json")

    def _launch(self, *words: str) -> None:
        command = self.cable.command(self.binary, *words, server=True)
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        lines = [self._process.stdout.readline().strip() for _ in SERVER]
        expected = [f"listening {SERVER[4]}:{PORT}", f"listening [{SERVER[6]}]:{PORT}"]
        if lines != expected:
            self._process.kill()
            raise AssertionError(f"it printed {lines}: {self._process.stderr.read()}")
        self.cable.address()

    def url(self, version: int, path: str) -> str:
        host = SERVER[version] if version == 4 else f"[{SERVER[version]}]"
        return f"http://{host}:{PORT}/{path}"

    def kill(self) -> None:
        """Ends it so that it can do nothing any more."""
        process, self._process = self._process, None
        process.kill()
        process.communicate(timeout=PATIENCE)

    def interrupt(self) -> None:
        """Tells it to end, once: a second signal would end it at once."""
        if not self._is_interrupted:
            self._is_interrupted = True
            self._process.send_signal(signal.SIGINT)

    def stop(self) -> dict[str, object]:
        """Ends it as Ctrl-C would, and returns its summary, which is sound."""
        self.interrupt()
        process, self._process = self._process, None
        try:
            out, err = process.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            raise AssertionError("it does not end") from None
        self.summary = json.loads(out.splitlines()[-1])
        assert process.returncode == 0, f"status {process.returncode}: {err}"
        assert self.summary["violations"] == [], self.summary
        return self.summary

    def __exit__(self, *_: object) -> None:
        try:
            if self._process is not None:
                self.stop()
        finally:
            if self._process is not None:
                self._process.kill()
                self._process.communicate()
            self.cable.close()
            shutil.rmtree(self._folder, ignore_errors=True)
