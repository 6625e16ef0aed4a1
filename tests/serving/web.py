"""What browsers, caches and proxies ask of files over HTTP, with curl."""

from __future__ import annotations

import os
import sys

from cable import SERVER, output_of
from server import PORT, Serving, Sizes
from transfer import LONG, digest

#: Sends the start of a header, and prints what comes back.
LATE = """
import socket, sys
with socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=20) as client:
    client.sendall(b"GET / HTTP/1.1\\r\\n")
    print(client.recv(1_000).decode())
"""


def asks(serving: Serving, sizes: Sizes) -> None:
    serving.start("--header-timeout", "2s")
    (serving.root / "a").write_text("0123456789")
    os.utime(serving.root / "a", (1_000_000_000, 1_000_000_000))
    (serving.root / ".hidden").write_text("secret")
    (serving.root / "long").write_bytes(os.urandom(sizes.megabytes << 20))

    def curl(*words: str, path: str = "a", version: int = 4) -> str:
        """The body, and the status behind it."""
        options = ("--silent", "--show-error", "--write-out", "|%{http_code}", *words)
        return output_of(serving.cable.command("curl", *options, serving.url(version, path)), LONG)

    tags, part, kept = serving.kept / "tags", serving.kept / "part", serving.kept / "long"
    assert curl("--etag-save", str(tags)) == "0123456789|200"
    assert curl("--etag-compare", str(tags)) == "|304"
    tag = tags.read_text().strip()
    assert curl("--range", "2-4", "--header", f"If-Range: {tag}") == "234|206"
    assert curl("--range", "2-4", "--header", 'If-Range: "other"') == "0123456789|200"
    assert curl("--time-cond", "Sun, 09 Sep 2001 01:46:40 GMT") == "|304"
    assert curl("--time-cond", "Sun, 09 Sep 2001 01:46:39 GMT") == "0123456789|200"
    assert curl("--request", "GET", "--data", "not wanted") == "0123456789|200"
    assert curl(path=".hidden").endswith("|403")
    # As a proxy is asked.
    proxy = serving.url(4, "").rstrip("/")
    assert curl("--proxy", proxy) == "0123456789|200"
    # The rest of a file.
    part.write_bytes((serving.root / "long").read_bytes()[: sizes.megabytes << 19])
    assert curl("--continue-at", "-", "--output", str(part), path="long") == "|206"
    assert digest(part) == digest(serving.root / "long")
    # In chunks.
    kept.write_bytes((serving.root / "long").read_bytes())
    for version in (4, 6):
        up = f"up{version}"
        words = ("--header", "Transfer-Encoding: chunked", "--upload-file", str(kept))
        assert curl(*words, path=up, version=version) == "|201"
        assert digest(serving.root / up) == digest(kept)
    # A header that does not end.
    late = output_of(serving.cable.command(sys.executable, "-c", LATE, SERVER[4], str(PORT)), LONG)
    assert late.startswith("HTTP/1.1 408 "), late
    summary = serving.stop()
    assert summary["reset"] == summary["panics"] == 0, summary
