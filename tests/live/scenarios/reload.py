"""The configuration changes under connections that go on."""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path

import content
from expect import eventually, expect
from place import Place
from rheo import RheoMiddle
from scenarios.links import echo
from servers import ECHO_PORT

#: Of what curl fetches: far more than a pipe holds.
LENGTH = 6_000_000
#: New connections to the echo server are refused.
RULE = f"""
[[function.firewall.rule]]
action = "reject"
from = "inside"
protocol = "tcp"
destination_port = "{ECHO_PORT}"
"""


def rule_changes(place: Place) -> None:
    """A rule is added by SIGHUP and removed by `rheo reload` while curl fetches a file, which comes whole."""
    middle = place.middle
    middle.stop()
    middle.has_own_file = True
    place.start_middle()
    with tempfile.TemporaryDirectory(prefix="rlive-") as folder:
        # curl waits at a pipe for as long as nobody reads there.
        fetched = Path(folder, "fetched")
        os.mkfifo(fetched)
        pipe = os.open(fetched, os.O_RDONLY | os.O_NONBLOCK)
        url = f"http://{place.address}:{place.port}/{LENGTH}"
        curl = place.client.start("curl", "-s", "-o", str(fetched), url)
        begun = bytearray()
        eventually(lambda: begin(pipe, begun), place.patience, "curl gets nothing")
        expect(reaches_echo(place), "no echo before the rule")
        text = middle.config.read_text()
        middle.config.write_text(text + RULE)
        middle.hang_up()
        eventually(lambda: generation(middle) == 1, place.patience, f"SIGHUP changes nothing: {middle.log()}")
        expect(not reaches_echo(place), "the rule is not in force")
        middle.config.write_text(text + RULE.replace("reject", "regect"))
        expect(middle.command("reload").returncode == 2, "a wrong configuration is taken")
        middle.config.write_text(text)
        reloaded = middle.command("reload")
        expect(reloaded.returncode == 0, f"rheo reload: {reloaded.stderr.decode()}")
        expect(b"firewall: 1 rule removed" in reloaded.stdout, f"rheo reload: {reloaded.stdout.decode()}")
        expect(reaches_echo(place), "the rule is still in force")
        expect(curl.poll() is None, "curl was done before the end of the reloads")
        os.set_blocking(pipe, True)
        with open(pipe, "rb") as stream:
            digest = hashlib.sha256(begun + stream.read()).hexdigest()
        expect(curl.wait(place.patience) == 0, f"curl ended with {curl.returncode}")
    expect(digest == content.digest(LENGTH), "what curl fetched is not what was sent")


def begin(pipe: int, begun: bytearray) -> bool:
    """Reads what lies in a pipe, if something does."""
    try:
        begun += os.read(pipe, 1_000)
    except BlockingIOError:
        pass
    return bool(begun)


def reaches_echo(place: Place) -> bool:
    """Whether a new connection to the echo server is admitted."""
    try:
        with place.client.connect(place.address, ECHO_PORT, place.patience) as connection:
            echo(connection, b"hello")
    except ConnectionRefusedError:
        return False
    return True


def generation(middle: RheoMiddle) -> int:
    """How many times the configuration has changed."""
    return middle.ask({"command": "status"})["config"]["generation"]
