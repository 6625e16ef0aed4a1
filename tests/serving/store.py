"""The store of keys and values, with the programs of Redis as clients."""

from __future__ import annotations

from cable import SERVER, output_of
from server import PORT, Serving, Sizes


def keeps(serving: Serving, _: Sizes) -> None:
    serving.start("--lanes", "2", service="resp")
    place = ("-h", SERVER[4], "-p", str(PORT))

    def ask(*words: str) -> str:
        return output_of(serving.cable.command("redis-cli", *place, *words), 20).strip()

    assert ask("SET", "a", "41") == "OK"
    assert ask("INCR", "a") == "42"
    assert ask("MGET", "a", "b") == "42"
    assert ask("SET", "b", "x" * 5_000, "EX", "100") == "OK"
    assert len(ask("GET", "b")) == 5_000
    assert 98 <= int(ask("TTL", "b")) <= 100
    assert ask("DEL", "a", "b", "c") == "2"
    requests = 0
    for pipeline in ("1", "16"):
        words = ("-n", "20000", "-c", "20", "-P", pipeline, "-t", "set,get,incr,mset", "--csv")
        lines = output_of(serving.cable.command("redis-benchmark", *place, *words), 60).splitlines()
        rates = [line for line in lines if line.startswith(('"SET', '"GET', '"INCR', '"MSET'))]
        assert len(rates) == 4, lines
        requests += 80_000
    # Each increment counted.
    assert ask("GET", "counter:__rand_int__") == "40000", ask("GET", "counter:__rand_int__")
    summary = serving.stop()
    assert summary["requests"] >= requests and summary["reset"] == summary["refused"] == 0, summary
