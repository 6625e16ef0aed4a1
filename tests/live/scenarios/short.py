"""Short connections of several hosts through one external address: none fails."""

from __future__ import annotations

import re
import shutil
import subprocess

from expect import NotRun, expect
from place import Place

#: Of each host. All of them together use up the external address's ports when it is `FULL`.
CONNECTIONS, FULL = 1_000, 20_000
#: Addresses of the client that stand for hosts.
HOSTS = [f"192.168.77.{20 + n}" for n in range(5)]
#: Seconds for each thousand connections of each host.
PATIENCE = 60

#: How many connections each host makes.
connections = CONNECTIONS


def many(place: Place) -> None:
    """`ab` without keep-alive: the server closes, so it is the one that remembers connections."""
    if shutil.which("ab") is None:
        raise NotRun("there is no ab (apache2-utils)")
    for host in HOSTS:
        place.client.ip("addr", "replace", f"{host}/24", "dev", "eth")
    url = f"http://{place.address}:{place.port}/100"
    quiet = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    started = [
        place.client.start("ab", "-q", "-n", str(connections), "-c", "10", "-s", "60", "-B", host, url, **quiet)
        for host in HOSTS
    ]
    for host, process in zip(HOSTS, started, strict=True):
        try:
            told, _ = process.communicate(timeout=PATIENCE * max(1, connections // 1_000))
        except subprocess.TimeoutExpired:
            process.kill()
            told, _ = process.communicate()
        figures = dict(re.findall(r"^(Complete|Failed) requests:\s+(\d+)$", told, re.MULTILINE))
        complete, failed = int(figures.get("Complete", 0)), int(figures.get("Failed", 0))
        expect(complete == connections and failed == 0, f"{host}: {complete} complete, {failed} failed: {told[-300:]}")
