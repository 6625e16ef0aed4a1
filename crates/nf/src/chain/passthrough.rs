//! The chain without functions.

use rheostat_run::Metrics;
use rheostat_state::FlowMut;

use super::Chain;
use crate::cx::Scope;
use crate::function::ShardInfo;
use crate::function_spec::FunctionSpec;
use crate::packet::Packet;
use crate::verdict::{Ending, Outcome, Verdict};

/// Forwards every packet and keeps no flows.
#[derive(Clone, Copy, Debug, Default)]
pub struct Passthrough;

impl Chain for Passthrough {
    type Shard = ();
    type States = ();
    type Saved = ();

    const STATEFUL: bool = false;

    fn spec(&self) -> FunctionSpec {
        FunctionSpec { passes_without_entry: true, ..FunctionSpec::five_tuple() }
    }

    fn shard(&self, _: ShardInfo) {}

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

    fn ended(&self, (): &mut (), _: &mut Scope<'_>, _: &mut FlowMut<'_>, _: Ending) {}

    #[inline]
    fn non_flow(&self, (): &mut (), _: &mut Scope<'_>, _: &mut Packet<'_>) -> Outcome<Verdict> {
        Ok(Verdict::Forward)
    }

    fn periodic(&self, (): &mut (), _: &mut Scope<'_>) -> Outcome<()> {
        Ok(())
    }

    fn metrics(&self, _: Option<&()>, _: &mut Metrics) {}
}
