"""Files that go from one end to the other, and back."""

from __future__ import annotations

import hashlib
import os
import random
from pathlib import Path

from cable import output_of
from server import Serving, Sizes

#: Seconds that a transfer may take.
LONG = 120


def digest(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def curl(serving: Serving, *words: str) -> str:
    return output_of(serving.cable.command("curl", "--silent", "--show-error", "--fail", *words), LONG)


def there_and_back(serving: Serving, version: int, megabytes: float) -> None:
    """A file down and up again: its sums are equal."""
    down, kept, up = serving.root / "down", serving.kept / "down", serving.root / "up"
    down.write_bytes(os.urandom(int(megabytes * (1 << 20))))
    expected = digest(down)
    curl(serving, "--output", str(kept), serving.url(version, "down"))
    assert digest(kept) == expected, "what came down is another file"
    status = curl(serving, "--upload-file", str(kept), "--write-out", "%{http_code}", serving.url(version, "up"))
    assert status in ("200", "201"), status
    assert digest(up) == expected, "what went up is another file"


def long_files(serving: Serving, sizes: Sizes) -> None:
    serving.start()
    for version in (4, 6):
        there_and_back(serving, version, sizes.megabytes)
    summary = serving.stop()
    assert summary["accepted"] == 4 and summary["reset"] == 0, summary
    assert summary["bytes_out"] >= 2 * sizes.megabytes << 20 and summary["bytes_in"] >= 2 * sizes.megabytes << 20, summary


def many_files(serving: Serving, sizes: Sizes) -> None:
    """Short files over one connection, over twenty at a time, and each over its own."""
    serving.start("--lanes", "2")
    numbers = random.Random(1)
    for number in range(sizes.files):
        (serving.root / f"f{number}").write_bytes(numbers.randbytes(numbers.randrange(1, 4_000)))
    for folder, words in (("kept", ()), ("parallel", ("--parallel", "--parallel-max", "20"))):
        place = serving.kept / folder
        place.mkdir()
        curl(serving, *words, "--output", f"{place}/f#1", serving.url(4, f"f[0-{sizes.files - 1}]"))
        for number in range(sizes.files):
            assert (place / f"f{number}").read_bytes() == (serving.root / f"f{number}").read_bytes(), f"f{number}"
    for number in range(50):
        got = serving.kept / "one"
        curl(serving, "--output", str(got), serving.url(6, f"f{number}"))
        assert got.read_bytes() == (serving.root / f"f{number}").read_bytes(), f"f{number}"
    summary = serving.stop()
    assert summary["requests"] == 2 * sizes.files + 50 and summary["reset"] == 0, summary
