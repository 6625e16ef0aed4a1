//! A function that counts in each shard, for the mistakes beside it.

use rheostat::{
    Admission, Cx, NetworkFunction, Outcome, Packet, PacketSet, ShardInfo, Verdict,
};

/// Counts flows.
pub struct Quota;

impl NetworkFunction for Quota {
    type Flow = ();
    type Shard = u64;

    fn packet_set(&self) -> PacketSet {
        PacketSet::five_tuple()
    }

    fn local(&self, _: ShardInfo) -> u64 {
        0
    }

    fn first(&self, cx: &mut Cx<'_, u64>, _: &mut Packet<'_>) -> Outcome<Admission<()>> {
        *cx.local() += 1;
        Ok(Admission::Admit((), Verdict::Forward))
    }

    fn packet(&self, _: &mut Cx<'_, u64>, _: &mut Packet<'_>, _: &mut ()) -> Outcome<Verdict> {
        Ok(Verdict::Forward)
    }
}
