//! A chain that is put together at run time, of any functions: the packets that take the general handlers pass it by one virtual
//! call per packet and function.
//!
//! Functions with state per shard run as in any other chain. Each function on shared objects runs in a transaction of its own per
//! packet ([`transacted`]), which is committed before the next function sees the packet.

mod error;
mod link_stage;
mod naming;
mod own_link;
mod steady_chain;
mod steady_run;
mod transacted;
mod visit;

use std::fmt;

use rheostat_base::{Counter, Nanos};
use rheostat_run::{Batch, LaneCounters, Metrics, OffloadedFlows, ShardSet};
use rheostat_state::txn::Objects;
use rheostat_state::{FlowMut, StateBits, StateLayout};
use rheostat_steer::{PacketSet, Side, Translation};

pub use self::error::ChainError;
use self::link_stage::LinkShard;
pub(crate) use self::link_stage::{LinkStage, PlacedLink, SharedParts};
pub(crate) use self::naming::Naming;
use self::naming::{naming, sets};
pub(crate) use self::own_link::OwnLink;
use self::visit::Visit;
use super::Chain;
use crate::chain_service::AtOnce;
use crate::cx::Scope;
use crate::function::{Ahead, ShardInfo};
use crate::link::Link;
use crate::packet::Packet;
use crate::packet_log::{LogMark, PacketLog};
use crate::verdict::{Ending, Outcome, Verdict};

/// Any functions, one behind the other.
pub struct DynamicChain {
    links: Box<[Box<dyn LinkStage>]>,
    packet_set: PacketSet,
    steering: PacketSet,
    translation: Option<Translation>,
    aliases: bool,
    objects: Option<Objects>,
    /// Whether a function with state per shard has its flows in the chain's entries. It then decides how long these live: a
    /// detector on shared objects must not end a connection that a firewall knows.
    owns: bool,
    /// The places of all states, if all functions have a fast path.
    steady: Option<StateBits>,
}

impl fmt::Debug for DynamicChain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DynamicChain").field("functions", &self.links.len()).finish_non_exhaustive()
    }
}

/// What the functions of a [`DynamicChain`] keep for one shard.
pub struct DynamicShard {
    locals: Box<[Box<LinkShard>]>,
    /// What a packet was before functions on shared objects changed it.
    log: PacketLog,
    /// How much of that was kept before each of these functions saw the packet.
    starts: Box<[LogMark]>,
}

/// The functions, one bit each, that have seen the first packet of a flow.
#[derive(Clone, Copy, Debug, Default)]
pub struct Seen(u8);

impl DynamicChain {
    /// Places the functions in this order, with their states in `layout`.
    ///
    /// # Errors
    /// [`ChainError`] when these functions do not make a chain together.
    pub fn new(
        links: Vec<Box<dyn Link>>,
        layout: &mut StateLayout,
    ) -> Result<DynamicChain, ChainError> {
        let objects = common_objects(&links)?;
        check_keys(&links)?;
        let (packet_set, steering) = sets(&links);
        let translation = links.iter().find_map(|link| {
            let own = Some(link.steering()).filter(|own| *own != steering);
            let mut translation = link.translation()?;
            translation.place = own;
            Some(translation)
        });
        let aliases = links.iter().any(|link| link.aliases());
        let namings: Result<Vec<_>, _> =
            links.iter().map(|link| naming(&**link, &packet_set, &links)).collect();
        let namings = namings?;
        let owns = links.iter().zip(&namings).any(|(link, naming)| {
            link.objects().is_none() && matches!(naming, Naming::Chain | Naming::Selected)
        });
        let placed =
            links.into_iter().zip(namings).map(|(link, naming)| link.place(naming, layout));
        let links: Box<[Box<dyn LinkStage>]> = placed.collect::<Result<_, _>>()?;
        let places: Option<Vec<_>> = links.iter().map(|link| link.steady_place()).collect();
        let steady = places.and_then(|places| places.into_iter().reduce(StateBits::and));
        Ok(DynamicChain {
            links,
            packet_set,
            steering,
            translation,
            aliases,
            objects,
            owns,
            steady,
        })
    }

    /// The places of the functions, in the order in which packets from `side` pass them.
    fn path(&self, side: Side) -> impl DoubleEndedIterator<Item = usize> + use<> {
        let count = self.links.len();
        (0..count).map(move |step| match side {
            Side::Inside => step,
            Side::Outside => count - 1 - step,
        })
    }

    /// Lets a packet pass the functions until one decides that it does not go on, and notes in `seen` which have seen it. A
    /// function that names devices decides where it leaves, and the others behind it see it first.
    fn pass(
        &self,
        shard: &mut DynamicShard,
        scope: &mut Scope<'_>,
        packet: &mut Packet<'_>,
        visit: &mut Visit<'_, '_>,
        seen: &mut Seen,
    ) -> Outcome<Verdict> {
        let DynamicShard { locals, log, starts } = shard;
        log.clear();
        let mut onward = Verdict::Forward;
        for at in self.path(packet.side()) {
            let (link, local) = (&*self.links[at], &mut *locals[at]);
            seen.0 |= 1 << at;
            let verdict = match link.objects() {
                None => visit.call(link, local, scope, packet)?,
                Some(_) => {
                    starts[at] = log.mark();
                    let asked = (scope.requests.deadline, scope.requests.evictable);
                    let verdict = transacted::visit(link, local, scope, packet, visit, log)?;
                    if self.owns {
                        (scope.requests.deadline, scope.requests.evictable) = asked;
                    }
                    verdict
                }
            };
            match verdict {
                Verdict::Forward => {}
                Verdict::Send(_) | Verdict::Flood(_) => onward = verdict,
                _ => return Ok(verdict),
            }
        }
        Ok(onward)
    }

    /// Undoes what the functions before the last that has seen a packet of a live flow have done to it and to the flow. Their
    /// shared objects have counted it.
    #[cold]
    fn undo_before(
        &self,
        seen: Seen,
        shard: &mut DynamicShard,
        packet: &mut Packet<'_>,
        flow: &mut FlowMut<'_>,
    ) {
        let DynamicShard { locals, log, starts } = shard;
        let path = self.path(packet.side()).rev();
        for at in path.filter(|at| seen.0 & 1 << at != 0).skip(1) {
            match self.links[at].objects() {
                None => self.links[at].undo(packet, flow),
                Some(_) => {
                    packet.go_back_to(log, starts[at]);
                    self.links[at].restore(&mut *locals[at], flow);
                }
            }
        }
    }
}

/// The objects that the functions share, if any does.
fn common_objects(links: &[Box<dyn Link>]) -> Result<Option<Objects>, ChainError> {
    let mut shared = links.iter().filter_map(|link| Some((link.name(), link.objects()?)));
    let Some((first, objects)) = shared.next() else { return Ok(None) };
    match shared.find(|(_, other)| *other != objects) {
        Some((other, _)) => Err(ChainError::Objects(first, other)),
        None => Ok(Some(objects.clone())),
    }
}

/// Refuses functions that cannot agree on the keys of flows.
fn check_keys(links: &[Box<dyn Link>]) -> Result<(), ChainError> {
    let links = || links.iter().map(|link| &**link);
    let mut translating = links().filter(|link| link.aliases() || link.translation().is_some());
    let Some(first) = translating.next() else { return Ok(()) };
    if let Some(other) = translating.next() {
        return Err(ChainError::Keys(first.name(), other.name()));
    }
    match links().find(|other| !other.packet_set().is_empty()) {
        Some(other) if !first.aliases() && first.packet_set().is_empty() => {
            Err(ChainError::OneKey(first.name(), other.name()))
        }
        _ => Ok(()),
    }
}

impl Chain for DynamicChain {
    type Shard = DynamicShard;
    type States = Seen;
    /// Nothing: links on shared objects keep what they undo.
    type Saved = ();
    type Journal = AtOnce;

    const STATEFUL: bool = true;

    const TRANSACTIONS: bool = true;

    fn counts(&self) -> usize {
        self.links.iter().map(|link| link.counts()).sum()
    }

    fn add_counts(&self, counts: &[Counter], metrics: &mut Metrics) {
        let mut rest = counts;
        for link in &self.links {
            let (own, behind) = rest.split_at(link.counts());
            link.add_counts(own, metrics);
            rest = behind;
        }
    }

    fn has_steady(&self, _: &[Counter]) -> bool {
        self.steady.is_some()
    }

    fn run_steady(
        &self,
        counts: &[Counter],
        batch: &mut Batch,
        first: usize,
        shards: &mut ShardSet,
        counters: &LaneCounters,
    ) -> usize {
        let Some(set) = self.steady else { return first };
        DynamicChain::run_steady(self, set, counts, batch, first, shards, counters)
    }

    fn steady_shortest(&self, counts: &[Counter]) -> Nanos {
        self.shortest(counts)
    }

    fn lets_leave(&self, counts: &[Counter], flow: FlowMut<'_>) -> bool {
        self.steady.is_some_and(|set| DynamicChain::lets_leave(self, set, counts, flow))
    }

    fn run_guests(
        &self,
        counts: &[Counter],
        batch: &mut Batch,
        flows: &mut OffloadedFlows,
        counters: &LaneCounters,
    ) -> usize {
        let Some(set) = self.steady else { return 0 };
        DynamicChain::run_guests(self, set, counts, batch, flows, counters)
    }

    fn prefetch(&self, packet: &Packet<'_>, what: Ahead) {
        self.links.iter().for_each(|link| link.prefetch(packet, what));
    }

    fn objects(&self) -> Option<&Objects> {
        self.objects.as_ref()
    }

    fn save(&self, _: &mut FlowMut<'_>) {}

    fn restore(&self, _: &mut FlowMut<'_>, (): ()) {}

    fn packet_set(&self) -> PacketSet {
        self.packet_set
    }

    fn steering(&self) -> PacketSet {
        self.steering
    }

    fn aliases(&self) -> bool {
        self.aliases
    }

    fn depends_on_flows(&self) -> bool {
        self.links.iter().any(|link| link.depends_on_flows())
    }

    fn translation(&self) -> Option<Translation> {
        self.translation.clone()
    }

    fn local(&self, shard: ShardInfo) -> DynamicShard {
        let locals = self.links.iter().map(|link| link.local(shard.clone())).collect();
        let starts = self.links.iter().map(|_| LogMark::default()).collect();
        DynamicShard { locals, log: PacketLog::default(), starts }
    }

    fn boxed_bytes(&self) -> usize {
        self.links.iter().map(|link| link.local_bytes() + size_of::<Box<LinkShard>>()).sum()
    }

    fn passes_without_entry(&self) -> bool {
        self.links.iter().all(|link| link.passes_without_entry())
    }

    fn first(
        &self,
        shard: &mut DynamicShard,
        scope: &mut Scope<'_>,
        packet: &mut Packet<'_>,
    ) -> Outcome<(Seen, Verdict)> {
        let mut seen = Seen::default();
        let outcome = self.pass(shard, scope, packet, &mut Visit::First, &mut seen);
        if outcome.is_err() {
            self.each(seen, shard).for_each(|(link, local)| link.forget(local));
        }
        outcome.map(|verdict| (seen, verdict))
    }

    fn install(&self, shard: &mut DynamicShard, flow: &mut FlowMut<'_>, seen: Seen) {
        self.each(seen, shard).for_each(|(link, local)| link.install(local, flow));
    }

    fn discarded(&self, shard: &mut DynamicShard, scope: &mut Scope<'_>, seen: Seen) {
        for (link, local) in self.each(seen, shard).rev() {
            match link.objects() {
                None => link.discarded(local, scope),
                Some(_) => transacted::discarded(link, local, scope),
            }
            link.forget(local);
        }
    }

    fn packet(
        &self,
        shard: &mut DynamicShard,
        scope: &mut Scope<'_>,
        packet: &mut Packet<'_>,
        flow: &mut FlowMut<'_>,
    ) -> Outcome<Verdict> {
        let mut seen = Seen::default();
        let verdict = self.pass(shard, scope, packet, &mut Visit::Known(flow), &mut seen)?;
        if verdict == Verdict::Restart {
            self.undo_before(seen, shard, packet, flow);
        }
        Ok(verdict)
    }

    fn undo(&self, packet: &mut Packet<'_>, flow: &mut FlowMut<'_>) {
        self.path(packet.side()).rev().for_each(|at| self.links[at].undo(packet, flow));
    }

    fn ends_soon(&self, shard: &DynamicShard, flow: &mut FlowMut<'_>) {
        for (link, local) in self.links.iter().zip(&shard.locals) {
            link.ends_soon(&**local, flow);
        }
    }

    fn ended(
        &self,
        shard: &mut DynamicShard,
        scope: &mut Scope<'_>,
        flow: &mut FlowMut<'_>,
        ending: Ending,
    ) {
        for (link, local) in self.links.iter().zip(&mut shard.locals).rev() {
            match link.objects() {
                None => link.ended(&mut **local, scope, flow, ending),
                Some(_) => transacted::ended(&**link, &mut **local, scope, flow, ending),
            }
        }
    }

    fn ends_with_run(&self) -> bool {
        self.links.iter().any(|link| link.ends_with_run())
    }

    fn non_flow(
        &self,
        shard: &mut DynamicShard,
        scope: &mut Scope<'_>,
        packet: &mut Packet<'_>,
    ) -> Outcome<Verdict> {
        self.pass(shard, scope, packet, &mut Visit::NonFlow, &mut Seen::default())
    }

    fn periodic(&self, shard: &mut DynamicShard, scope: &mut Scope<'_>) -> Outcome<()> {
        for (link, local) in self.links.iter().zip(&mut shard.locals) {
            match link.objects() {
                None => link.periodic(&mut **local, scope)?,
                Some(_) => transacted::periodic(&**link, &mut **local, scope),
            }
        }
        Ok(())
    }

    fn stopped(&self, shard: &mut DynamicShard, scope: &mut Scope<'_>) {
        for (link, local) in self.links.iter().zip(&mut shard.locals) {
            link.stopped(&mut **local, scope);
        }
    }

    fn metrics(&self, shard: &DynamicShard, metrics: &mut Metrics) {
        for (link, local) in self.links.iter().zip(&shard.locals) {
            link.metrics(&**local, metrics);
        }
    }

    fn shared_metrics(&self, metrics: &mut Metrics) {
        self.links.iter().for_each(|link| link.shared_metrics(metrics));
    }
}

impl DynamicChain {
    /// The functions that have seen a first packet, in order, each with its value for the shard.
    fn each<'a>(
        &'a self,
        seen: Seen,
        shard: &'a mut DynamicShard,
    ) -> impl DoubleEndedIterator<Item = (&'a dyn LinkStage, &'a mut LinkShard)> {
        let all = self.links.iter().zip(&mut shard.locals).enumerate();
        let have = all.filter(move |(at, _)| seen.0 & 1 << at != 0);
        have.map(|(_, (link, local))| (&**link, &mut **local))
    }
}
