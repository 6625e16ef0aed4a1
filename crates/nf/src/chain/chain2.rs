//! Two chains, one behind the other.

use rheostat_base::Counter;
use rheostat_run::Metrics;
use rheostat_run::listing::ListedFields;
use rheostat_state::FlowMut;
use rheostat_state::txn::Objects;
use rheostat_steer::Side;

use super::visit::Visit;
use super::{Chain, CompiledChain};
use crate::chain_service::FastPath;
use crate::cx::Scope;
use crate::function::{Ahead, ShardInfo};
use crate::function_spec::FunctionSpec;
use crate::listing::{ListedFlow, WantedEntries};
use crate::packet::Packet;
use crate::steady::SteadyChain;
use crate::verdict::{Ending, Outcome, Verdict};

/// Packets from inside pass `A` and then `B`, packets from outside `B` and then `A`.
#[derive(Debug)]
pub struct Chain2<A, B>(pub A, pub B);

impl<A: CompiledChain, B: CompiledChain> Chain for Chain2<A, B> {
    type Shard = (A::Shard, B::Shard);
    type States = (A::States, B::States);
    type Saved = (A::Saved, B::Saved);

    const SHARED: bool = {
        assert!(
            A::SHARED == B::SHARED,
            "a function on shared objects (`Stage::on_objects`) and one with state per shard \
             (`Stage::new`) cannot stand in one chain: what the latter does cannot be undone"
        );
        A::SHARED
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

    fn follow(&self, (a, b): &mut Self::Shard, info: &ShardInfo) {
        self.0.follow(a, info);
        self.1.follow(b, info);
    }

    fn has_functions_of(&self, next: &Chain2<A, B>) -> bool {
        self.0.has_functions_of(&next.0) && self.1.has_functions_of(&next.1)
    }

    #[inline(always)]
    fn fast_path<'a>(&'a self, counts: &'a [Counter]) -> impl FastPath {
        self.steady(counts)
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

    #[inline(always)]
    fn visit(
        &self,
        (a, b): &mut Self::Shard,
        scope: &mut Scope<'_>,
        packet: &mut Packet<'_>,
        mut visit: Visit<'_, '_, Self::States>,
    ) -> Outcome<Verdict> {
        match packet.side() {
            Side::Inside => match self.0.visit(a, scope, packet, visit.of_first())? {
                Verdict::Forward => self.1.visit(b, scope, packet, visit.of_second()),
                verdict => Ok(verdict),
            },
            Side::Outside => match self.1.visit(b, scope, packet, visit.of_second())? {
                Verdict::Forward => self.0.visit(a, scope, packet, visit.of_first()),
                verdict => Ok(verdict),
            },
        }
    }

    #[inline]
    fn install(
        &self,
        (a, b): &mut Self::Shard,
        flow: &mut FlowMut<'_>,
        (of_a, of_b): Self::States,
    ) {
        self.0.install(a, flow, of_a);
        self.1.install(b, flow, of_b);
    }

    fn discarded(
        &self,
        (a, b): &mut Self::Shard,
        scope: &mut Scope<'_>,
        (of_a, of_b): Self::States,
    ) {
        self.1.discarded(b, scope, of_b);
        self.0.discarded(a, scope, of_a);
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

    fn periodic(&self, (a, b): &mut Self::Shard, scope: &mut Scope<'_>) -> Outcome<()> {
        self.0.periodic(a, scope)?;
        self.1.periodic(b, scope)
    }

    fn list(&self, (a, b): &Self::Shard, flow: &mut ListedFlow<'_, '_>) {
        self.0.list(a, flow);
        self.1.list(b, flow);
    }

    fn entries(&self, (a, b): &Self::Shard, wanted: WantedEntries<'_>) -> Option<u32> {
        let WantedEntries { function, now, from, most, into } = wanted;
        let next = self.0.entries(a, WantedEntries { function, now, from, most, into });
        // Of two functions with one name, the first lists.
        let is_first = next.is_some() || !into.is_empty();
        if is_first {
            next
        } else {
            self.1.entries(b, WantedEntries { function, now, from, most, into })
        }
    }

    fn fixed_entries(&self, function: &str, into: &mut Vec<ListedFields>) {
        self.0.fixed_entries(function, into);
        self.1.fixed_entries(function, into);
    }

    fn metrics(&self, shard: Option<&Self::Shard>, metrics: &mut Metrics) {
        self.0.metrics(shard.map(|(a, _)| a), metrics);
        self.1.metrics(shard.map(|(_, b)| b), metrics);
    }
}

impl<A: CompiledChain, B: CompiledChain> CompiledChain for Chain2<A, B> {
    #[inline(always)]
    fn counts(&self) -> usize {
        self.0.counts() + self.1.counts()
    }

    #[inline(always)]
    fn steady<'a>(&'a self, counts: &'a [Counter]) -> impl SteadyChain {
        let (a, b) = counts.split_at(self.0.counts());
        (self.0.steady(a), self.1.steady(b))
    }
}
