//! Settings of a NAT that cannot change while it runs.

use rheostat_nf::registry::FixedKey;

use super::NatFunction;
use crate::fixed_keys::{SIZED, fixed_keys};

const MAPPED: &str = "mappings would lose their external endpoints";
const PLACED: &str = "packets are placed in shards by it";
const COUNTED: &str = "what hosts have now was not counted by it";

/// The keys that are different in `next` and have to stay.
pub(in crate::nat) fn keys(running: &NatFunction, next: &NatFunction) -> Vec<FixedKey> {
    let (a, b) = (&running.nat, &next.nat);
    let has_blocks = a.deterministic || b.deterministic;
    let is_shared = running.sharing.is_some();
    let flows = |function: &NatFunction| function.sharing.map(|sharing| sharing.flows);
    fixed_keys([
        ("external", a.external != b.external, MAPPED),
        ("ports", a.ports != b.ports, MAPPED),
        ("mapping", a.mapping != b.mapping, PLACED),
        ("pooling", a.pooling != b.pooling, MAPPED),
        ("deterministic", a.deterministic != b.deterministic, MAPPED),
        ("inside", has_blocks && a.inside != b.inside, MAPPED),
        ("forward", a.forwards != b.forwards, PLACED),
        // Who has sent where is counted by it.
        ("filtering", a.filtering != b.filtering, COUNTED),
        ("quota", a.quota.is_none() && b.quota.is_some(), COUNTED),
        ("rest", is_shared && a.rest != b.rest, SIZED),
        ("answer_unsolicited", is_shared && a.silence.is_some() != b.silence.is_some(), SIZED),
        ("objects", flows(running) != flows(next), SIZED),
    ])
}
