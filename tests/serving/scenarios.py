"""All scenarios, and the grounds on which each is played."""

from __future__ import annotations

import faults
import loads
import moving
import paths
import store
import transfer
import wire

KINDS = ("tap", "af_packet", "af_xdp")

SCENARIOS = {
    "long files": (transfer.long_files, KINDS),
    "many files": (transfer.many_files, KINDS),
    "a bad wire": (faults.bad_wire, ("spoiled",)),
    "other settings of the kernel": (faults.settings, KINDS),
    "other MTUs": (faults.mtus, KINDS),
    "programs that load": (loads.loads, KINDS),
    "an end in the middle": (faults.ends, KINDS),
    "what the wire shows": (wire.shows, KINDS),
    "keys and values": (store.keeps, KINDS),
    "shards that move": (moving.moves, KINDS),
    "a narrow path": (paths.narrow, ("routed",)),
}
