"""A Prometheus scrapes the middle and gives its values back."""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
import tempfile
from pathlib import Path

from expect import Failure, NotRun, eventually, expect, expect_success
from place import Place

#: Addresses in the namespace of the middle.
METRICS, PROMETHEUS = "127.0.0.1:9464", "127.0.0.1:9090"
MONITORING = Path(__file__).parents[3] / "packaging/monitoring"
#: Echo requests that pass between two looks.
PINGS = 20


def by_prometheus(place: Place) -> None:
    """The shipped configuration and rules, with the shortest interval; values come back through the query API."""
    for command in ("prometheus", "promtool"):
        if shutil.which(command) is None:
            raise NotRun(f"there is no {command}")
    middle, namespace = place.middle, place.network.middle
    namespace.ip("link", "set", "lo", "up")
    middle.stop()
    middle.http = METRICS
    place.start_middle()
    check_page(place)
    with tempfile.TemporaryDirectory(prefix="rlive-") as folder, open(Path(folder) / "log", "wb") as log:
        shutil.copytree(MONITORING, folder, dirs_exist_ok=True)
        expect_checked(subprocess.run(["promtool", "check", "config", "prometheus.yml"], cwd=folder, capture_output=True))
        config = Path(folder) / "prometheus.yml"
        config.write_text(config.read_text().replace("scrape_interval: 5s", "scrape_interval: 200ms\n  evaluation_interval: 1s"))
        prometheus = namespace.start(
            "prometheus", f"--config.file={config}", f"--storage.tsdb.path={folder}/data", f"--web.listen-address={PROMETHEUS}",
            stdout=log, stderr=log,
        )  # fmt: skip
        try:
            follow(place)
        except Failure as failure:
            raise Failure(f"{failure} ({(Path(folder) / 'log').read_text(errors='replace')[-400:]})") from None
        finally:
            prometheus.terminate()
            prometheus.wait()


def follow(place: Place) -> None:
    """The counters in Prometheus follow the traffic."""
    eventually(lambda: value(place, 'up{job="rheo"}') == 1, place.patience, "nothing is scraped")
    packets = "sum(rheo_packets_total)"
    eventually(lambda: value(place, packets) is not None, place.patience, "there are no packets")
    before = value(place, packets)
    for _ in range(PINGS):
        expect(place.is_open(), "a packet did not pass")
    # A request and its reply, both received.
    eventually(lambda: value(place, packets) >= before + 2 * PINGS, place.patience, "the counter does not follow")
    received = place.middle.ask({"command": "status"})["received"]
    expect(value(place, packets) <= received, f"more than the {received} packets of the status")
    eventually(lambda: set(rules(place)) == {"ok"}, place.patience, "rules are not evaluated")


def rules(place: Place) -> list[str]:
    """The health of each rule."""
    groups = json.loads(get(place, f"http://{PROMETHEUS}/api/v1/rules"))["data"]["groups"]
    return [rule["health"] for group in groups for rule in group["rules"]]


def check_page(place: Place) -> None:
    """Both formats are accepted by the tools of others."""
    older = get(place, f"http://{METRICS}/metrics")
    done = subprocess.run(["promtool", "check", "metrics"], input=older.encode(), capture_output=True)
    # What it says of names alone is advice.
    expect(b"error while linting" not in done.stderr and b"text format parsing error" not in done.stderr, done.stderr.decode())
    expect(b"rheo_packets_total" in older.encode(), "rheo_packets_total is missing")
    if importlib.util.find_spec("prometheus_client") is None:
        return
    from prometheus_client.openmetrics.parser import text_string_to_metric_families

    page = get(place, f"http://{METRICS}/metrics", "application/openmetrics-text; version=1.0.0")
    families = {family.name: family for family in text_string_to_metric_families(page)}
    expect(families["rheo_packets"].type == "counter", f"{families['rheo_packets']}")
    expect(sum(sample.value for sample in families["rheo_packets"].samples) > 0, "no packets are counted")


def value(place: Place, query: str) -> float | None:
    """The value of an expression, if it has one."""
    done = place.network.middle.run(
        "curl", "-sS", "--noproxy", "*", "--max-time", "10", "-G", f"http://{PROMETHEUS}/api/v1/query", "--data-urlencode",
        f"query={query}",
    )  # fmt: skip
    if done.returncode != 0:
        # It has yet to listen.
        return None
    try:
        result = json.loads(done.stdout)["data"]["result"]
    except (ValueError, KeyError):
        # It has yet to replay its log.
        return None
    return float(result[0]["value"][1]) if result else None


def get(place: Place, url: str, accept: str = "text/plain") -> str:
    done = place.network.middle.run("curl", "-sS", "-f", "--noproxy", "*", "--max-time", "10", "-H", f"Accept: {accept}", url)
    return expect_success(done).decode()


def expect_checked(done: subprocess.CompletedProcess[bytes]) -> None:
    expect(done.returncode == 0, (done.stderr + done.stdout).decode(errors="replace"))
