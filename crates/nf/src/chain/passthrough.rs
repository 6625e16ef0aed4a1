//! The chain without functions.

use rheostat_run::Metrics;
use rheostat_state::FlowMut;
use rheostat_steer::{PacketSet, Translation};

use super::Chain;
use crate::chain_service::AtOnce;
use crate::cx::Scope;
use crate::function::ShardInfo;
use crate::packet::Packet;
use crate::verdict::{Ending, Outcome, Verdict};

/// Forwards every packet and keeps no flows.
#[derive(Clone, Copy, Debug, Default)]
pub struct Passthrough;

impl Chain for Passthrough {
    type Shard = ();
    type States = ();
    type Saved = ();
    type Journal = AtOnce;

    const STATEFUL: bool = false;

    fn save(&self, _: &mut FlowMut<'_>) {}

    fn restore(&self, _: &mut FlowMut<'_>, (): ()) {}

    fn packet_set(&self) -> PacketSet {
        PacketSet::five_tuple()
    }

    fn steering(&self) -> PacketSet {
        PacketSet::five_tuple()
    }

    fn aliases(&self) -> bool {
        false
    }

    fn depends_on_flows(&self) -> bool {
        false
    }

    fn translation(&self) -> Option<Translation> {
        None
    }

    fn local(&self, _: ShardInfo) {}

    fn passes_without_entry(&self) -> bool {
        true
    }

    #[inline]
    fn first(&self, (): &mut (), _: &mut Scope<'_>, _: &mut Packet<'_>) -> Outcome<((), Verdict)> {
        Ok(((), Verdict::Forward))
    }

    fn install(&self, (): &mut (), _: &mut FlowMut<'_>, (): ()) {}

    fn discarded(&self, (): &mut (), _: &mut Scope<'_>, (): ()) {}

    fn packet(
        &self,
        (): &mut (),
        _: &mut Scope<'_>,
        _: &mut Packet<'_>,
        _: &mut FlowMut<'_>,
    ) -> Outcome<Verdict> {
        Ok(Verdict::Forward)
    }

    fn undo(&self, _: &mut Packet<'_>, _: &mut FlowMut<'_>) {}

    fn ended(&self, (): &mut (), _: &mut Scope<'_>, _: &mut FlowMut<'_>, _: Ending) {}

    fn ends_with_run(&self) -> bool {
        false
    }

    #[inline]
    fn non_flow(&self, (): &mut (), _: &mut Scope<'_>, _: &mut Packet<'_>) -> Outcome<Verdict> {
        Ok(Verdict::Forward)
    }

    fn periodic(&self, (): &mut (), _: &mut Scope<'_>) -> Outcome<()> {
        Ok(())
    }

    fn metrics(&self, (): &(), _: &mut Metrics) {}
}
