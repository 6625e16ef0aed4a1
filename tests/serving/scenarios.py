"""All scenarios, and the grounds on which each is played."""

from __future__ import annotations

from collections.abc import Callable

import beside
import bulk
import configured
import crowded
import dispatched
import faults
import floods
import loads
import moving
import paths
import relay
import seen
import sharing
import store
import transfer
import web
import wire
from server import Serving, Sizes

KINDS = ("tap", "af_packet", "af_xdp")
INLINE = ("inline-cfcfs", "inline-ws")

#: What is played under several schedulers: the scenario, the schedulers, and the grounds.
SCHEDULED = {
    "files": (sharing.files, (*INLINE, "dispatcher-2:2-ws+receive-ws"), ("af_packet", "af_xdp")),
    "pipelines": (sharing.pipelines, (*INLINE, "dispatcher-2:2+receive-cfcfs"), ("af_xdp",)),
    "crowds": (crowded.crowds, (*INLINE, "dispatcher-1:1"), ("af_packet",)),
    "absent clients": (crowded.absences, (*INLINE, "dispatcher-1:1"), ("af_packet",)),
    "floods": (floods.floods, ("inline-dfcfs", *INLINE, "dispatcher-1:1"), ("tap",)),
}


def under(scenario: Callable[[Serving, str], None], scheduler: str) -> Callable[[Serving, Sizes], None]:
    """The scenario under this scheduler."""
    return lambda serving, _: scenario(serving, scheduler)


SCENARIOS = {
    "long files": (transfer.long_files, KINDS),
    "many files": (transfer.many_files, KINDS),
    "the shipped configuration": (configured.shipped, KINDS),
    "a bad wire": (faults.bad_wire, ("spoiled",)),
    "other settings of the kernel": (faults.settings, KINDS),
    "other MTUs": (faults.mtus, KINDS),
    "programs that load": (loads.loads, KINDS),
    "an end in the middle": (faults.ends, KINDS),
    "what the wire shows": (wire.shows, KINDS),
    "what browsers and proxies ask": (web.asks, ("tap",)),
    "keys and values": (store.keeps, KINDS),
    "a dispatcher": (dispatched.answers, KINDS),
    "a relay to IPv4": (relay.relays_v4, KINDS),
    "a relay to IPv6": (relay.relays_v6, ("tap", "af_xdp")),
    "a relay without a target": (relay.refuses, ("af_packet",)),
    "bulk as iperf3 sends it": (bulk.iperf3, KINDS),
    "ssh through a relay": (relay.secure_shell, ("af_packet", "af_xdp")),
    "a list of connections": (seen.lists, ("tap", "af_packet")),
    "what traces and captures show": (seen.traces, ("tap", "af_packet")),
    "faults before a device": (seen.faults, KINDS),
    "shards that move": (moving.moves, KINDS),
    **{
        f"{name} under {scheduler}": (under(scenario, scheduler), grounds)
        for name, (scenario, schedulers, grounds) in SCHEDULED.items()
        for scheduler in schedulers
    },
    "a narrow path": (paths.narrow, ("routed",)),
    "beside the kernel": (beside.shares, ("af_packet", "af_xdp")),
    "a relay beside the kernel": (beside.relays, ("af_xdp",)),
    "a narrow path beside the kernel": (beside.narrow, ("routed",)),
}
