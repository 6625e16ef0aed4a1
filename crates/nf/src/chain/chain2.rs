//! Two chains, one behind the other.

use rheostat_base::Counter;
use rheostat_run::Metrics;
use rheostat_state::FlowMut;
use rheostat_state::txn::Objects;
use rheostat_steer::Side;

use super::Chain;
use crate::cx::Scope;
use crate::function::{Ahead, ShardInfo};
use crate::function_spec::FunctionSpec;
use crate::packet::Packet;
use crate::steady::SteadyChain;
use crate::verdict::{Ending, Outcome, Verdict};

/// Packets from inside pass `A` and then `B`, packets from outside `B` and then `A`.
#[derive(Debug)]
pub struct Chain2<A, B>(pub A, pub B);

impl<A: Chain, B: Chain> Chain for Chain2<A, B> {
    type Shard = (A::Shard, B::Shard);
    /// `None` for a chain that did not get to see the flow's first packet.
    type States = (Option<A::States>, Option<B::States>);
    type Saved = (A::Saved, B::Saved);

    const STATEFUL: bool = A::STATEFUL || B::STATEFUL;

    const SHARED: bool = {
        let mixed = A::STATEFUL && B::STATEFUL && A::SHARED != B::SHARED;
        assert!(
            !mixed,
            "a function on shared objects (`Stage::on_objects`) and one with state per shard \
             (`Stage::new`) cannot stand in one chain: what the latter does cannot be undone"
        );
        A::SHARED || B::SHARED
    };

    fn objects(&self) -> Option<&Objects> {
        let (a, b) = (self.0.objects(), self.1.objects());
        if let (Some(a), Some(b)) = (a, b) {
            // A lane has one transaction for the whole chain.
            assert!(
                a == b,
                "the functions of a chain share objects that were made from one `Objects`"
            );
        }
        a.or(b)
    }

    fn spec(&self) -> FunctionSpec {
        self.0.spec().and(&self.1.spec())
    }

    fn shard(&self, shard: ShardInfo) -> Self::Shard {
        (self.0.shard(shard.clone()), self.1.shard(shard))
    }

    #[inline(always)]
    fn counts(&self) -> usize {
        self.0.counts() + self.1.counts()
    }

    #[inline(always)]
    fn steady<'a>(&'a self, counts: &'a [Counter]) -> impl SteadyChain {
        let (a, b) = counts.split_at(self.0.counts());
        (self.0.steady(a), self.1.steady(b))
    }

    #[inline]
    fn prefetch(&self, packet: &Packet<'_>, what: Ahead) {
        self.0.prefetch(packet, what);
        self.1.prefetch(packet, what);
    }

    #[inline]
    fn save(&self, flow: &mut FlowMut<'_>) -> Self::Saved {
        (self.0.save(flow), self.1.save(flow))
    }

    fn restore(&self, flow: &mut FlowMut<'_>, (a, b): Self::Saved) {
        self.0.restore(flow, a);
        self.1.restore(flow, b);
    }

    #[inline]
    fn first(
        &self,
        (a, b): &mut Self::Shard,
        scope: &mut Scope<'_>,
        packet: &mut Packet<'_>,
    ) -> Outcome<(Self::States, Verdict)> {
        match packet.side() {
            Side::Inside => {
                let (first, verdict) = self.0.first(a, scope, packet)?;
                if verdict != Verdict::Forward {
                    return Ok(((Some(first), None), verdict));
                }
                let (second, verdict) = self.1.first(b, scope, packet)?;
                Ok(((Some(first), Some(second)), verdict))
            }
            Side::Outside => {
                let (first, verdict) = self.1.first(b, scope, packet)?;
                if verdict != Verdict::Forward {
                    return Ok(((None, Some(first)), verdict));
                }
                let (second, verdict) = self.0.first(a, scope, packet)?;
                Ok(((Some(second), Some(first)), verdict))
            }
        }
    }

    #[inline]
    fn install(
        &self,
        (local_a, local_b): &mut Self::Shard,
        flow: &mut FlowMut<'_>,
        (a, b): Self::States,
    ) {
        if let Some(states) = a {
            self.0.install(local_a, flow, states);
        }
        if let Some(states) = b {
            self.1.install(local_b, flow, states);
        }
    }

    fn discarded(
        &self,
        (local_a, local_b): &mut Self::Shard,
        scope: &mut Scope<'_>,
        (a, b): Self::States,
    ) {
        // Only one of the two orders of initialisation is possible when one side is missing, and
        // when both are there neither depends on the other.
        if let Some(states) = b {
            self.1.discarded(local_b, scope, states);
        }
        if let Some(states) = a {
            self.0.discarded(local_a, scope, states);
        }
    }

    #[inline]
    fn packet(
        &self,
        (a, b): &mut Self::Shard,
        scope: &mut Scope<'_>,
        packet: &mut Packet<'_>,
        flow: &mut FlowMut<'_>,
    ) -> Outcome<Verdict> {
        match packet.side() {
            Side::Inside => match self.0.packet(a, scope, packet, flow)? {
                Verdict::Forward => self.1.packet(b, scope, packet, flow),
                verdict => Ok(verdict),
            },
            Side::Outside => match self.1.packet(b, scope, packet, flow)? {
                Verdict::Forward => self.0.packet(a, scope, packet, flow),
                verdict => Ok(verdict),
            },
        }
    }

    #[inline]
    fn prefetch_end(&self, (a, b): &Self::Shard, flow: &mut FlowMut<'_>) {
        self.0.prefetch_end(a, flow);
        self.1.prefetch_end(b, flow);
    }

    fn ended(
        &self,
        (a, b): &mut Self::Shard,
        scope: &mut Scope<'_>,
        flow: &mut FlowMut<'_>,
        ending: Ending,
    ) {
        self.1.ended(b, scope, flow, ending);
        self.0.ended(a, scope, flow, ending);
    }

    fn non_flow(
        &self,
        (a, b): &mut Self::Shard,
        scope: &mut Scope<'_>,
        packet: &mut Packet<'_>,
    ) -> Outcome<Verdict> {
        match packet.side() {
            Side::Inside => match self.0.non_flow(a, scope, packet)? {
                Verdict::Forward => self.1.non_flow(b, scope, packet),
                verdict => Ok(verdict),
            },
            Side::Outside => match self.1.non_flow(b, scope, packet)? {
                Verdict::Forward => self.0.non_flow(a, scope, packet),
                verdict => Ok(verdict),
            },
        }
    }

    fn periodic(&self, (a, b): &mut Self::Shard, scope: &mut Scope<'_>) -> Outcome<()> {
        self.0.periodic(a, scope)?;
        self.1.periodic(b, scope)
    }

    fn metrics(&self, shard: Option<&Self::Shard>, metrics: &mut Metrics) {
        self.0.metrics(shard.map(|(a, _)| a), metrics);
        self.1.metrics(shard.map(|(_, b)| b), metrics);
    }
}
