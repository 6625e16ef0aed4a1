"""Opens the live page of a running instance in a headless Chromium and checks it: at the widths of a telephone and of a desktop,
in both themes, by its keys, and while the instance is away."""

from __future__ import annotations

import argparse
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import browser as chromium
from browser import Browser

ROOT = Path(__file__).parents[2]
CONFIG = ROOT / "configs/demo.toml"
WIDTHS = (390, 1280)
THEMES = ("light", "dark")

LIVE = "document.getElementById('connection').dataset.state === 'live'"
LOST = "document.getElementById('connection').dataset.state === 'lost'"
#: What stands where after an update.
SHOWN = {
    "packets arrive": "document.getElementById('received').textContent !== '0'",
    "each lane has a row": "document.getElementById('lanes').rows.length === 2",
    "drops have reasons": "document.getElementById('drops').rows.length > 0",
    "flows are sampled, with names of protocols": "/^(TCP|UDP) /.test(document.getElementById('flows').textContent)",
    "the start is an event": "document.getElementById('events').children.length > 0",
    "the heat map has colours": """(() => {
        const heat = document.getElementById('heat');
        const pixels = heat.getContext('2d').getImageData(0, 0, heat.width, heat.height).data;
        return new Set(new Uint32Array(pixels.buffer)).size > 3;
    })()""",
}
#: What holds in every state of the page.
ALWAYS = {
    "no horizontal scrolling": "document.documentElement.scrollWidth <= document.documentElement.clientWidth",
    "nothing is cut off at the side": """[...document.querySelectorAll('main *')].every((one) => {
        const box = one.getBoundingClientRect();
        return box.width === 0 || one.closest('.unseen') || box.right <= innerWidth + 1;
    })""",
    "landmarks": "['header', 'main', 'nav'].every((name) => document.querySelectorAll(name).length === 1)",
    "every section has a name": """[...document.querySelectorAll('section')].every((one) =>
        one.ariaLabel || document.getElementById(one.getAttribute('aria-labelledby'))?.textContent)""",
    "every table has a caption and heads": """[...document.querySelectorAll('table')].every((one) =>
        one.caption && [...one.tHead.rows[0].cells].every((cell) => cell.scope === 'col'))""",
    "polite live regions": "document.querySelectorAll('[role=status], [aria-live=polite]').length >= 2",
}


class Instance:
    """A run of the simulated NIC with a page."""

    def __init__(self, rheo: Path, port: int) -> None:
        self.address = f"127.0.0.1:{port}"
        self._log = tempfile.TemporaryFile()
        command = [rheo, "run", CONFIG, "--json", "--lanes", "2", "--duration", "1h", "--http", self.address]
        self._process = subprocess.Popen(command, stdout=self._log, stderr=self._log)
        end = time.monotonic() + chromium.PATIENCE
        while socket.socket().connect_ex(("127.0.0.1", port)) != 0:
            if self._process.poll() is not None or time.monotonic() > end:
                self._log.seek(0)
                raise RuntimeError(f"rheo does not serve: {self._log.read().decode(errors='replace')}")
            time.sleep(0.05)

    def stop(self) -> None:
        self._process.send_signal(signal.SIGTERM)
        self._process.wait(chromium.PATIENCE)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def check(page: Browser, name: str, expression: str, faults: list[str]) -> None:
    if not page.wait(expression):
        faults.append(name)


def look(page: Browser, width: int, theme: str, pictures: Path | None, faults: list[str]) -> None:
    page.show(width, 900, theme)
    for name, expression in {**SHOWN, **ALWAYS}.items():
        check(page, f"{width} px, {theme}: {name}", expression, faults)
    wanted = "rgb(15, 19, 26)" if theme == "dark" else "rgb(244, 245, 248)"
    colours = f"getComputedStyle(document.body).backgroundColor === '{wanted}'"
    check(page, f"{width} px, {theme}: the colours of the theme", colours, faults)
    if pictures:
        page.picture(pictures / f"{theme}-{width}.png")


def try_keys(page: Browser, faults: list[str]) -> None:
    page.run("document.getElementById('heat').focus()")
    for key, code in (("ArrowLeft", 37), ("ArrowDown", 40)):
        page.press(key, code)
    reading = "document.getElementById('reading').textContent.startsWith('lane 1, ')"
    check(page, "arrow keys read a value of the heat map", reading, faults)
    page.run("document.querySelector('#config-details summary').focus()")
    page.press("Enter", 13)
    page.run("document.getElementById('config-details').open = true")
    config = "document.getElementById('config').textContent.includes('[function.firewall]')"
    check(page, "the configuration is shown", config, faults)


def run(rheo: Path, pictures: Path | None, seconds: float) -> list[str]:
    faults: list[str] = []
    port = free_port()
    instance, page = Instance(rheo, port), Browser()
    try:
        page.show(1280, 900, "light")
        page.open(f"http://{instance.address}/")
        check(page, "the page is live", LIVE, faults)
        time.sleep(seconds)
        for width in WIDTHS:
            for theme in THEMES:
                look(page, width, theme, pictures, faults)
        try_keys(page, faults)
        faults += [f"the page has an error: {error}" for error in page.errors]
        instance.stop()
        check(page, "the page reports the lost connection", LOST, faults)
        if pictures:
            page.picture(pictures / "lost.png")
        instance = Instance(rheo, port)
        check(page, "the page connects again", LIVE, faults)
        for name, expression in ALWAYS.items():
            check(page, f"connected again: {name}", expression, faults)
        foreign = [url for url in page.requests if not url.startswith((f"http://{instance.address}/", "about:"))]
        faults += [f"the page requests {url}" for url in foreign]
    finally:
        page.close()
        instance.stop()
    return faults


def main() -> int:
    parser = argparse.ArgumentParser(prog="page", description=__doc__)
    parser.add_argument("--rheo", type=Path, default=Path("target/release/rheo"), metavar="BINARY")
    parser.add_argument("--pictures", type=Path, metavar="FOLDER", help="keep pictures of the page")
    parser.add_argument("--after", type=float, default=0, metavar="SECONDS", help="look at the page after this time")
    args = parser.parse_args()
    if chromium.binary() is None:
        print("page: not run (there is no chromium)")
        return 0
    if args.pictures:
        args.pictures.mkdir(parents=True, exist_ok=True)
    faults = run(args.rheo.absolute(), args.pictures, args.after)
    for fault in faults:
        print(f"FAILED  {fault}")
    print(f"page: {'FAILED' if faults else 'ok'}")
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main())
