"""A service at addresses that the kernel has, too: the kernel goes on with all else."""

from __future__ import annotations

import subprocess
import threading
import time
from pathlib import Path

import ssh
from cable import CLIENT, SERVER, output_of
from paths import learns
from program import Program
from server import PORT, Serving, Sizes
from transfer import LONG, curl, digest, there_and_back

ORIGIN = Path(__file__).with_name("origin.py")
#: Where sshd of the server's kernel listens.
SHELL = 22
#: Where the target of a relay listens, and where the relay connects from.
TARGET = 8_000
SOURCES = "20000-20999"


def shares(serving: Serving, sizes: Sizes) -> None:
    """Files over the service, while a session of ssh, pings and the kernel's own connections go on; then the port is the kernel's
    at once when the service is killed."""
    cable = serving.cable
    cable.address_server()
    refuses(serving)
    serving.start("--beside-kernel", "--lanes", "2")
    keys = ssh.Keys(serving.kept)
    data, back = serving.root / "data", serving.kept / "back"
    data.write_bytes(bytes(range(256)) * 4_096 * max(1, sizes.megabytes // 8))
    with Program(serving.cable, keys.daemon(SHELL), SHELL, server=True):
        session = threading.Thread(target=echo, args=(serving, keys, data, back))
        session.start()
        for version in (4, 6):
            there_and_back(serving, version, sizes.megabytes / 4)
            output_of(cable.command("ping", "-c", "2", "-i", "0.2", "-W", "5", SERVER[version]), LONG)
        session.join(LONG)
        assert digest(back) == digest(data), "what came back over ssh is something else"
    fetches(serving)
    forgets(serving)
    resets_elsewhere(serving)
    summary = serving.stop()
    assert summary["accepted"] == 6 and summary["reset"] == 0, summary
    # Nothing is lost on the way; acknowledgements may be late where the machine is busy.
    assert summary["retransmitted"] == 0 or summary["retransmission_timeouts"] > 0, summary
    dies(serving)


def refuses(serving: Serving) -> None:
    """A port at which a program listens is not taken, nor is an address that the kernel does not have."""
    words = [serving.binary, "serve", "echo", "--device", serving.cable.device, "--port", str(PORT), "--beside-kernel"]
    ours, other = f"{SERVER[4]}/24", "10.9.0.77/24"
    with Program(serving.cable, origin(serving), PORT, server=True):
        for address, reason in ((ours, "cannot be taken from the kernel"), (other, "does not have 10.9.0.77")):
            command = serving.cable.command(*words, "--address", address, server=True)
            done = subprocess.run(command, capture_output=True, text=True, timeout=LONG, check=False)
            assert done.returncode == 2 and reason in done.stderr, (done.returncode, done.stderr)


def echo(serving: Serving, keys: ssh.Keys, data: Path, back: Path) -> None:
    """Sends data to the kernel's sshd and back, for about as long as files take."""
    command = serving.cable.command(*keys.session(SERVER[4], SHELL, "cat; sleep 2"))
    with open(data, "rb") as source, open(back, "wb") as sink:
        subprocess.run(command, stdin=source, stdout=sink, check=False, timeout=LONG)


def fetches(serving: Serving) -> None:
    """The kernel is a client of the same port elsewhere: the answers come from it, and are not the service's."""
    (serving.root / "there").write_bytes(b"from the client\n" * 1_000)
    with Program(serving.cable, origin(serving), PORT):
        for version in (4, 6):
            host = CLIENT[version] if version == 4 else f"[{CLIENT[version]}]"
            url = f"http://{host}:{PORT}/there"
            got = output_of(serving.cable.command("curl", "--silent", "--fail", url, server=True), LONG)
            assert got == "from the client\n" * 1_000


def forgets(serving: Serving) -> None:
    """The kernel forgets its neighbours, and the service with it: the next hop is found again."""
    (serving.root / "short").write_bytes(b"short")
    for version in (4, 6):
        # The client keeps the server's link address, so that it does not ask, which would tell its own.
        serving.cable.server.ip("neigh", "flush", "dev", "eth0")
        time.sleep(0.2)
        assert curl(serving, "--max-time", "20", serving.url(version, "short")) == "short"


def resets_elsewhere(serving: Serving) -> None:
    """A port where nobody listens is the kernel's, which says so."""
    url = f"http://{SERVER[4]}:{PORT + 1}/"
    done = subprocess.run(serving.cable.command("curl", "--silent", "--max-time", "5", url), timeout=LONG, check=False)
    assert done.returncode == 7, f"curl ended with {done.returncode}, not for a refused connection"


def dies(serving: Serving) -> None:
    """Killed, the service leaves nothing behind: a program of the kernel's is reached at the port at once."""
    serving.start("--beside-kernel")
    there_and_back(serving, 4, 0.1)
    serving.kill()
    (serving.root / "after").write_bytes(b"the kernel's")
    with Program(serving.cable, origin(serving), PORT, server=True):
        for version in (4, 6):
            assert curl(serving, "--max-time", "10", serving.url(version, "after")) == "the kernel's"


def relays(serving: Serving, sizes: Sizes) -> None:
    """A relay at the kernel's addresses connects from ports of its own."""
    cable = serving.cable
    cable.address_server()
    words = ("--beside-kernel", "--to", f"{CLIENT[4]}:{TARGET}", "--lanes", "2")
    serving.start(*words, "--source-ports", SOURCES, service="relay")
    with Program(serving.cable, origin(serving, TARGET), TARGET):
        for version in (4, 6):
            there_and_back(serving, version, sizes.megabytes / 4)
        summary = serving.stop()
    assert summary["accepted"] == summary["connected"] == 4 and summary["reset"] == 0, summary


def narrow(serving: Serving, _: Sizes) -> None:
    """Routes are the kernel's, and reports that a segment was too big come to the service."""
    serving.cable.address_server()
    serving.cable.routers.narrow(1_400)
    serving.start("--beside-kernel", "--lanes", "2")
    # The addresses of the routers take a moment.
    time.sleep(0.2)
    learns(serving)


def origin(serving: Serving, port: int = PORT) -> list[str]:
    return ["/usr/bin/python3", str(ORIGIN), str(port), str(serving.root)]
