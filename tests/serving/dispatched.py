"""A service whose requests have workers of their own."""

from __future__ import annotations

import json
import sys

from cable import SERVER, output_of
from server import PORT, Serving, Sizes

#: What the client at the other end of the cable does: requests that follow each other without waiting, on several connections.
CLIENT = """
import json, socket, sys, threading
host, port, connections, requests = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
wrong = []
def converse(number):
    key = f"key{number}"
    ask = f"*2\\r\\n$4\\r\\nINCR\\r\\n${len(key)}\\r\\n{key}\\r\\n".encode()
    with socket.create_connection((host, port), 20) as one:
        sender = threading.Thread(target=one.sendall, args=(ask * requests,))
        sender.start()
        replies = one.makefile("rb")
        for count in range(1, requests + 1):
            line = replies.readline()
            if line != f":{count}\\r\\n".encode():
                wrong.append((number, count, line.decode()))
                break
        sender.join()
threads = [threading.Thread(target=converse, args=(number,)) for number in range(connections)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print(json.dumps(wrong))
"""
#: The queues on each ground.
SCHEDULERS = {"tap": "dispatcher-1:1", "af_packet": "dispatcher-1:1-ws", "af_xdp": "dispatcher-1:1-dfcfs"}
CONNECTIONS, REQUESTS = 8, 2_000


def answers(serving: Serving, _: Sizes) -> None:
    """Replies to pipelined requests are in order and complete, kept connections go on, and the end is in good order."""
    serving.start("--scheduler", SCHEDULERS[serving.cable.ground], service="resp")
    words = (sys.executable, "-c", CLIENT, SERVER[4], str(PORT), str(CONNECTIONS), str(REQUESTS))
    wrong = json.loads(output_of(serving.cable.command(*words), 60))
    assert wrong == [], wrong
    place = ("-h", SERVER[4], "-p", str(PORT))
    benchmark = ("-n", "4800", "-c", "20", "-P", "16", "-t", "set,incr", "--csv")
    lines = output_of(serving.cable.command("redis-benchmark", *place, *benchmark), 60)
    assert '"INCR' in lines and '"SET' in lines, lines
    count = output_of(serving.cable.command("redis-cli", *place, "GET", "counter:__rand_int__"), 20).strip()
    assert count == "4800", f"each increment counts once: {count}"
    summary = serving.stop()
    assert summary["requests"] >= CONNECTIONS * REQUESTS + 9_600, summary
    assert summary["unanswered"] == summary["panics"] == summary["refused"] == 0, summary
    # The benchmark leaves connections without reading what is sent last.
    assert summary["aborted"] == summary["timed_out"] == 0 and summary["reset"] <= 20, summary
