"""Paths that carry less than their first link."""

from __future__ import annotations

import time

from routers import FAR
from server import Serving, Sizes
from transfer import there_and_back


def narrow(serving: Serving, _: Sizes) -> None:
    """A router reports that packets are too big: files pass all the same, and the next connections are not in need of reports."""
    serving.cable.routers.narrow(1_400)
    serving.start("--lanes", "2", *(word for version in (4, 6) for word in ("--gateway", FAR[version])))
    # The addresses of the routers take a moment.
    time.sleep(0.2)
    learns(serving)


def learns(serving: Serving) -> None:
    """The service learns what its paths carry, from reports, and keeps it in mind."""
    routers, reports = serving.cable.routers, []
    for mtu, version in ((1_400, 4), (1_400, 6), (1_400, 4), (1_400, 6), (1_280, 6), (576, 4), (576, 4)):
        routers.narrow(mtu)
        before = routers.reports()
        there_and_back(serving, version, 1)
        reports.append(routers.reports() - before)
    print(f"       reports sent to rheo: {reports}")
    first, again = [reports[at] for at in (0, 1, 4, 5)], [reports[at] for at in (2, 3, 6)]
    assert all(count >= 1 for count in first), "the first packets were too big"
    assert all(count == 0 for count in again), "what the path carries was known"
    summary = serving.stop()
    assert summary["accepted"] == 14 and summary["reset"] == summary["aborted"] == 0, summary
    assert summary["too_big"] >= 4, summary
