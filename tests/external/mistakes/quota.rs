//! A function that counts in each shard, for the mistakes beside it.

use rheostat::{Cx, NetworkFunction, Outcome, Packet, Verdict};

/// Counts packets.
pub struct Quota;

impl NetworkFunction for Quota {
    type Flow = ();
    type Shard = u64;

    fn packet(&self, cx: &mut Cx<'_, u64>, _: &mut Packet<'_>, _: &mut ()) -> Outcome<Verdict> {
        *cx.shard() += 1;
        Ok(Verdict::Forward)
    }
}
