//! Two chains, one behind the other.

use rheostat_base::Counter;
use rheostat_run::Metrics;
use rheostat_state::FlowMut;
use rheostat_state::txn::Objects;
use rheostat_steer::{PacketSet, Side, Translation};

use super::Chain;
use crate::chain_service::Journal;
use crate::cx::Scope;
use crate::function::{Ahead, ShardInfo};
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
    type Journal = <A::Journal as Journal>::And<B::Journal, Self::Saved>;

    const STATEFUL: bool = A::STATEFUL || B::STATEFUL;

    const SHARED: bool = {
        let mixed = A::STATEFUL && B::STATEFUL && A::SHARED != B::SHARED;
        assert!(
            !mixed,
            "a function on shared objects (`Shared`) and one with state per shard (`Stage`) cannot \
             stand in one chain: what the latter does cannot be undone"
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

    #[inline(always)]
    fn counts(&self) -> usize {
        self.0.counts() + self.1.counts()
    }

    #[inline(always)]
    fn steady<'a>(&'a self, counts: &'a [Counter]) -> impl SteadyChain {
        let (a, b) = counts.split_at(self.0.counts());
        (self.0.steady(a), self.1.steady(b))
    }

    fn add_counts(&self, counts: &[Counter], metrics: &mut Metrics) {
        let (a, b) = counts.split_at(self.0.counts());
        self.0.add_counts(a, metrics);
        self.1.add_counts(b, metrics);
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

    fn packet_set(&self) -> PacketSet {
        self.0.packet_set().finest(&self.1.packet_set())
    }

    fn steering(&self) -> PacketSet {
        self.0.steering().common(&self.1.steering())
    }

    fn aliases(&self) -> bool {
        self.0.aliases() || self.1.aliases()
    }

    fn depends_on_flows(&self) -> bool {
        self.0.depends_on_flows() || self.1.depends_on_flows()
    }

    /// That of the function that translates: there is one at most.
    fn translation(&self) -> Option<Translation> {
        self.0.translation().or_else(|| self.1.translation())
    }

    fn local(&self, shard: ShardInfo) -> Self::Shard {
        (self.0.local(shard.clone()), self.1.local(shard))
    }

    fn passes_without_entry(&self) -> bool {
        self.0.passes_without_entry() && self.1.passes_without_entry()
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
                Verdict::Forward => {
                    let verdict = self.1.packet(b, scope, packet, flow)?;
                    if verdict == Verdict::Restart {
                        self.0.undo(packet, flow);
                    }
                    Ok(verdict)
                }
                verdict => Ok(verdict),
            },
            Side::Outside => match self.1.packet(b, scope, packet, flow)? {
                Verdict::Forward => {
                    let verdict = self.0.packet(a, scope, packet, flow)?;
                    if verdict == Verdict::Restart {
                        self.1.undo(packet, flow);
                    }
                    Ok(verdict)
                }
                verdict => Ok(verdict),
            },
        }
    }

    fn undo(&self, packet: &mut Packet<'_>, flow: &mut FlowMut<'_>) {
        match packet.side() {
            Side::Inside => {
                self.1.undo(packet, flow);
                self.0.undo(packet, flow);
            }
            Side::Outside => {
                self.0.undo(packet, flow);
                self.1.undo(packet, flow);
            }
        }
    }

    #[inline]
    fn ends_soon(&self, (a, b): &Self::Shard, flow: &mut FlowMut<'_>) {
        self.0.ends_soon(a, flow);
        self.1.ends_soon(b, flow);
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

    fn ends_with_run(&self) -> bool {
        self.0.ends_with_run() || self.1.ends_with_run()
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

    fn metrics(&self, (a, b): &Self::Shard, metrics: &mut Metrics) {
        self.0.metrics(a, metrics);
        self.1.metrics(b, metrics);
    }

    fn shared_metrics(&self, metrics: &mut Metrics) {
        self.0.shared_metrics(metrics);
        self.1.shared_metrics(metrics);
    }
}
