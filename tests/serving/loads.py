"""Programs that load web servers, as clients."""

from __future__ import annotations

import re

from cable import output_of
from server import Serving, Sizes

REQUESTS = 2_000


def loads(serving: Serving, _: Sizes) -> None:
    """ab with and without kept connections, h2load and wrk: each request gets its reply, of the right length."""
    (serving.root / "small").write_bytes(bytes(range(100)))
    (serving.root / "large").write_bytes(bytes(40_000))
    serving.start("--lanes", "2")

    def run(*words: str) -> str:
        return output_of(serving.cable.command(*words), 60)

    requests = 0
    for name, length, words in (("small", 100, ()), ("small", 100, ("-k",)), ("large", 40_000, ("-k",))):
        text = run("ab", "-q", "-n", str(REQUESTS), "-c", "20", *words, serving.url(4, name))
        assert field(text, r"Complete requests:\s+(\d+)") == REQUESTS, text
        assert field(text, r"Failed requests:\s+(\d+)") == 0, text
        assert field(text, r"HTML transferred:\s+(\d+)") >= REQUESTS * length, text
        requests += REQUESTS
    for version, name in ((4, "small"), (6, "large")):
        text = run("h2load", "--h1", "-n", str(REQUESTS), "-c", "20", "-t", "1", serving.url(version, name))
        assert field(text, r"(\d+) succeeded") == REQUESTS and field(text, r"(\d+) failed") == 0, text
        requests += REQUESTS
    text = run("wrk", "-t", "1", "-c", "20", "-d", "2", serving.url(4, "large"))
    assert "Socket errors" not in text and "Non-2xx" not in text, text
    done = field(text, r"(\d+) requests in")
    assert done > 100, text
    summary = serving.stop()
    # wrk leaves requests under way when its time is up, and resets their connections.
    assert summary["requests"] >= requests + done and summary["refused"] == summary["panics"] == 0, summary
    assert summary["aborted"] == summary["timed_out"] == 0 and summary["reset"] <= 20, summary


def field(text: str, pattern: str) -> int:
    """The number that a pattern finds."""
    return int(re.search(pattern, text).group(1))
