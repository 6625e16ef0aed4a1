"""A headless Chromium, driven over a pipe by its DevTools protocol."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

#: How long an answer may take. Seconds.
PATIENCE = 60


def binary() -> str | None:
    """The installed browser, if there is one."""
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if path := shutil.which(name):
            return path
    return None


class Browser:
    """One browser with one page. Errors and requests of the page are kept."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="rpage-")
        (inner_read, self._out), (self._in, inner_write) = os.pipe(), os.pipe()
        # The protocol's descriptors are 3 and 4.
        shell = f"exec 3<&{inner_read} 4>&{inner_write}; exec \"$@\""
        command = [binary(), "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--remote-debugging-pipe"]
        command += ["--hide-scrollbars", "--disable-background-networking", f"--user-data-dir={self._folder.name}", "about:blank"]
        self._process = subprocess.Popen(
            ["bash", "-c", shell, "browser", *command],
            pass_fds=(inner_read, inner_write),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(inner_read)
        os.close(inner_write)
        self._buffer = b""
        self._number = 0
        self._session: str | None = None
        #: Exceptions, and entries of the console at the level of errors.
        self.errors: list[str] = []
        #: URLs that the page requested.
        self.requests: list[str] = []
        targets = self.call("Target.getTargets")["targetInfos"]
        target = next(target["targetId"] for target in targets if target["type"] == "page")
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: object) -> dict:
        """Calls a method and returns its result."""
        self._number += 1
        message: dict[str, object] = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        end = time.monotonic() + PATIENCE
        while True:
            answer = self._next(end)
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self._note(answer)

    def _next(self, end: float) -> dict:
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._in], [], [], max(end - time.monotonic(), 0))
            if not ready:
                raise RuntimeError(f"the browser does not answer within {PATIENCE} s")
            more = os.read(self._in, 1 << 20)
            if not more:
                raise RuntimeError("the browser has ended")
            self._buffer += more
        line, self._buffer = self._buffer.split(b"\0", 1)
        return json.loads(line)

    def _note(self, event: dict) -> None:
        parameters = event.get("params", {})
        if event.get("method") == "Runtime.exceptionThrown":
            details = parameters["exceptionDetails"]
            self.errors.append(details.get("exception", {}).get("description", details["text"]))
        elif event.get("method") == "Log.entryAdded" and parameters["entry"]["level"] == "error":
            self.errors.append(parameters["entry"]["text"])
        elif event.get("method") == "Network.requestWillBeSent":
            self.requests.append(parameters["request"]["url"])

    def show(self, width: int, height: int, theme: str) -> None:
        """Gives the page this size, and the person this preference."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)
        features = [{"name": "prefers-color-scheme", "value": theme}, {"name": "prefers-reduced-motion", "value": "reduce"}]
        self.call("Emulation.setEmulatedMedia", features=features)

    def open(self, url: str) -> None:
        self.call("Page.navigate", url=url)

    def run(self, expression: str) -> object:
        """The value of an expression in the page; None when it throws, as before the page is there."""
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        return result["result"].get("value")

    def wait(self, expression: str) -> bool:
        """Waits until an expression is true, and returns whether it became so."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            if self.run(expression) is True:
                return True
            time.sleep(0.1)
        return False

    def press(self, key: str, code: int) -> None:
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code)

    def picture(self, path: Path) -> None:
        """The whole page as a PNG."""
        data = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True)["data"]
        path.write_bytes(base64.b64decode(data))

    def close(self) -> None:
        self._session = None
        os.close(self._out)
        try:
            self._process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._in)
        self._folder.cleanup()
