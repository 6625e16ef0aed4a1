//! A chain that is put together at run time, of any functions: the packets that take the general handlers pass it by one virtual
//! call per packet and function.
//!
//! Functions with state per shard run as in any other chain. Each function on shared objects runs in a transaction of its own per
//! packet ([`transacted`]), which is committed before the next function sees the packet.

mod assembly;
mod deadlines;
mod error;
mod event;
mod link_stage;
mod naming;
mod own_link;
mod steady_chain;
mod steady_run;
mod transacted;
mod visits;

use std::fmt;

use rheostat_base::{Counter, Time};
use rheostat_run::Metrics;
use rheostat_run::listing::ListedFields;
use rheostat_state::txn::Objects;
use rheostat_state::{FlowMut, StateBits};
use rheostat_steer::Side;

use self::deadlines::Deadlines;
pub use self::error::ChainError;
use self::event::Event;
use self::link_stage::{LinkShard, LinkVisit};
pub(crate) use self::link_stage::{LinkStage, PlacedLink};
pub(crate) use self::naming::Naming;
pub(crate) use self::own_link::OwnLink;
use self::steady_chain::DynamicFastPath;
use super::{BytesBeside, Chain, Visit};
use crate::chain_service::FastPath;
use crate::cx::{DEFAULT_LIFETIME, Scope};
use crate::function::{Ahead, ShardInfo};
use crate::function_spec::FunctionSpec;
use crate::listing::{ListedFlow, WantedEntries};
use crate::packet::Packet;
use crate::packet_log::{LogMark, PacketLog};
use crate::verdict::{Ending, Outcome, Verdict};

/// Any functions, one behind the other. Without functions, it forwards every packet and keeps no flows.
#[derive(Default)]
pub struct DynamicChain {
    links: Box<[Box<dyn LinkStage>]>,
    spec: FunctionSpec,
    objects: Option<Objects>,
    /// Where functions have deadlines of their own, if some have.
    deadlines: Option<Deadlines>,
    /// The places of the states of functions with a fast path, if the chain has one.
    steady: Option<StateBits>,
    /// Whether functions without a fast path are among these: packets are presented to their handlers.
    has_visitors: bool,
}

impl fmt::Debug for DynamicChain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DynamicChain").field("functions", &self.links.len()).finish_non_exhaustive()
    }
}

/// What the functions of a [`DynamicChain`] keep for one shard.
pub struct DynamicShard {
    states: Box<[Box<LinkShard>]>,
    /// What a packet was before functions on shared objects changed it.
    log: PacketLog,
    /// How much of that was kept before each of these functions saw the packet.
    starts: Box<[LogMark]>,
    /// The deadlines that functions requested for a new flow, and that of the flow.
    requested: (Box<[Time]>, Time),
}

impl DynamicShard {
    /// What a function keeps for the shard.
    fn of(&mut self, function: usize) -> &mut LinkShard {
        &mut *self.states[function]
    }
}

/// The functions, one bit each, that have seen the first packet of a flow.
#[derive(Clone, Copy, Debug, Default)]
pub struct Seen(u8);

impl DynamicChain {
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
        visit: &mut LinkVisit<'_, '_>,
        seen: &mut Seen,
    ) -> Outcome<Verdict> {
        let DynamicShard { states, log, starts, requested } = shard;
        log.clear();
        let mut onward = Verdict::Forward;
        for at in self.path(packet.side()) {
            let (link, state) = (&*self.links[at], &mut *states[at]);
            seen.0 |= 1 << at;
            let before = (scope.requests.deadline, scope.requests.evictable);
            let own = self.deadlines.as_ref().and_then(|deadlines| deadlines.own(at));
            if own.is_some() {
                scope.requests.deadline = None;
            }
            let verdict = match link.objects() {
                None => link.visit(state, scope, packet, visit)?,
                Some(_) => {
                    starts[at] = log.mark();
                    transacted::visit(link, state, scope, packet, visit, log)?
                }
            };
            if let (Some(own), Some(deadlines)) = (own, &self.deadlines) {
                let (deadline, default) = (scope.requests.deadline, scope.now + DEFAULT_LIFETIME);
                match visit {
                    Visit::First(()) => requested.0[at] = deadline.unwrap_or(default),
                    Visit::Known(flow) => own.note(flow, deadline, default),
                    Visit::NonFlow => {}
                }
                scope.requests.deadline = before.0;
                if deadlines.has_deciding() {
                    scope.requests.evictable = before.1;
                }
            }
            match verdict {
                Verdict::Forward => {}
                Verdict::Send(_) | Verdict::Flood(_) => onward = verdict,
                _ => return Ok(verdict),
            }
        }
        Ok(onward)
    }

    /// Undoes what functions on shared objects before the last that has seen a packet of a live flow have done to it and to the
    /// flow. These objects have counted it.
    #[cold]
    fn undo_before(
        &self,
        seen: Seen,
        shard: &mut DynamicShard,
        packet: &mut Packet<'_>,
        flow: &mut FlowMut<'_>,
    ) {
        let DynamicShard { states, log, starts, .. } = shard;
        let path = self.path(packet.side()).rev();
        for at in path.filter(|at| seen.0 & 1 << at != 0).skip(1) {
            if self.links[at].objects().is_some() {
                packet.go_back_to(log, starts[at]);
                self.links[at].restore(&mut *states[at], flow);
            }
        }
    }
}

impl Chain for DynamicChain {
    type Shard = DynamicShard;
    type States = Seen;
    /// Nothing: links on shared objects keep what they undo.
    type Saved = ();

    const TRANSACTIONS: bool = true;
    const STOPS: bool = true;

    fn spec(&self) -> FunctionSpec {
        self.spec.clone()
    }

    fn is_stateful(&self) -> bool {
        !self.links.is_empty()
    }

    fn shard(&self, shard: ShardInfo) -> DynamicShard {
        let states = self.links.iter().map(|link| link.shard(shard.clone())).collect();
        let starts = self.links.iter().map(|_| LogMark::default()).collect();
        let requested = self.links.iter().map(|_| Time::ZERO).collect();
        let requested = (requested, Time::ZERO);
        DynamicShard { states, log: PacketLog::default(), starts, requested }
    }

    fn follow(&self, shard: &mut DynamicShard, info: &ShardInfo) {
        let each = self.links.iter().zip(&mut shard.states);
        each.for_each(|(link, state)| link.follow(&mut **state, info));
    }

    fn has_functions_of(&self, next: &DynamicChain) -> bool {
        let mut each = self.links.iter().zip(&next.links);
        self.links.len() == next.links.len() && each.all(|(link, next)| link.is_like(&**next))
    }

    fn fast_path<'a>(&'a self, counts: &'a [Counter]) -> impl FastPath {
        DynamicFastPath { chain: self, counts }
    }

    fn prefetch(&self, packet: &Packet<'_>, what: Ahead) {
        self.links.iter().for_each(|link| link.prefetch(packet, what));
    }

    fn objects(&self) -> Option<&Objects> {
        self.objects.as_ref()
    }

    fn bytes_beside(&self, flows: usize) -> BytesBeside {
        let each = self.links.iter().map(|link| link.bytes_beside(flows));
        each.fold(BytesBeside::default(), |sum, own| BytesBeside {
            boxed: sum.boxed + own.boxed + size_of::<Box<LinkShard>>(),
            tables: sum.tables.saturating_add(own.tables),
        })
    }

    fn visit(
        &self,
        shard: &mut DynamicShard,
        scope: &mut Scope<'_>,
        packet: &mut Packet<'_>,
        visit: Visit<'_, '_, Seen>,
    ) -> Outcome<Verdict> {
        match visit {
            Visit::First(seen) => self.first(shard, scope, packet, seen),
            Visit::Known(flow) => self.packet(shard, scope, packet, flow),
            Visit::NonFlow => {
                self.pass(shard, scope, packet, &mut Visit::NonFlow, &mut Seen::default())
            }
        }
    }

    fn install(&self, shard: &mut DynamicShard, flow: &mut FlowMut<'_>, seen: Seen) {
        self.each(seen, shard).for_each(|(link, state)| link.install(state, flow));
        if let Some(deadlines) = &self.deadlines {
            deadlines.begin(flow, &shard.requested.0, shard.requested.1);
        }
    }

    fn discarded(&self, shard: &mut DynamicShard, scope: &mut Scope<'_>, seen: Seen) {
        // These do not fail: a function that gives up or panics changes nothing.
        for (link, state) in self.each(seen, shard).rev() {
            let _ = event::handle(link, state, scope, &mut Event::Discarded);
            link.forget(state);
        }
    }

    fn lapsed(
        &self,
        shard: &mut DynamicShard,
        scope: &mut Scope<'_>,
        flow: &mut FlowMut<'_>,
    ) -> bool {
        let Some(deadlines) = &self.deadlines else { return false };
        if deadlines.is_over(flow, scope.now) {
            return false;
        }
        for (at, link) in self.links.iter().enumerate().rev() {
            let own = deadlines.own(at);
            if own.is_some_and(|own| own.take_passed(flow, scope.now)) {
                self.end_for(at, shard, scope, flow, Ending::Expired);
                link.drop_state(flow);
            }
        }
        let next = deadlines.earliest(|place| flow.time(place));
        next.map(|deadline| flow.set_deadline(deadline)).is_some()
    }

    fn prefetch_end(&self, shard: &DynamicShard, flow: &mut FlowMut<'_>) {
        for (link, state) in self.links.iter().zip(&shard.states) {
            link.prefetch_end(&**state, flow);
        }
    }

    fn ended(
        &self,
        shard: &mut DynamicShard,
        scope: &mut Scope<'_>,
        flow: &mut FlowMut<'_>,
        ending: Ending,
    ) {
        (0..self.links.len()).rev().for_each(|at| self.end_for(at, shard, scope, flow, ending));
    }

    fn periodic(&self, shard: &mut DynamicShard, scope: &mut Scope<'_>) -> Outcome<()> {
        let mut each = self.links.iter().zip(&mut shard.states);
        each.try_for_each(|(link, state)| {
            event::handle(&**link, &mut **state, scope, &mut Event::Periodic)
        })
    }

    fn stopped(&self, shard: &mut DynamicShard, scope: &mut Scope<'_>) {
        for (link, state) in self.links.iter().zip(&mut shard.states) {
            let _ = link.handle(&mut **state, scope, &mut Event::Stopped);
        }
    }

    fn list(&self, shard: &DynamicShard, flow: &mut ListedFlow<'_, '_>) {
        let each = self.links.iter().zip(&shard.states);
        each.for_each(|(link, state)| link.list(&**state, flow));
    }

    fn entries(&self, shard: &DynamicShard, wanted: WantedEntries<'_>) -> Option<u32> {
        let WantedEntries { function, now, from, most, into } = wanted;
        let mut each = self.links.iter().zip(&shard.states);
        // Of several functions with one name, the first that has entries lists them.
        each.find_map(|(link, state)| {
            let next = link.entries(&**state, WantedEntries { function, now, from, most, into });
            (next.is_some() || !into.is_empty()).then_some(next)
        })?
    }

    fn fixed_entries(&self, function: &str, into: &mut Vec<ListedFields>) {
        self.links.iter().for_each(|link| link.fixed_entries(function, into));
    }

    fn metrics(&self, shard: Option<&DynamicShard>, metrics: &mut Metrics) {
        for (at, link) in self.links.iter().enumerate() {
            link.metrics(shard.map(|shard| &*shard.states[at]), metrics);
        }
    }
}

impl DynamicChain {
    /// Lets a first packet pass the functions, and notes in `seen` which have seen it.
    fn first(
        &self,
        shard: &mut DynamicShard,
        scope: &mut Scope<'_>,
        packet: &mut Packet<'_>,
        seen: &mut Seen,
    ) -> Outcome<Verdict> {
        let outcome = self.pass(shard, scope, packet, &mut Visit::First(&mut ()), seen);
        if outcome.is_err() {
            self.each(*seen, shard).for_each(|(link, state)| link.forget(state));
        }
        if let Some(deadlines) = &self.deadlines {
            let (own, of_flow) = &mut shard.requested;
            *of_flow = scope.requests.deadline.unwrap_or(scope.now + DEFAULT_LIFETIME);
            scope.requests.deadline = deadlines.requested(own, *of_flow, *seen);
        }
        outcome
    }

    /// Lets a packet of a live flow pass the functions.
    fn packet(
        &self,
        shard: &mut DynamicShard,
        scope: &mut Scope<'_>,
        packet: &mut Packet<'_>,
        flow: &mut FlowMut<'_>,
    ) -> Outcome<Verdict> {
        let mut seen = Seen::default();
        let visit = &mut Visit::Known(&mut *flow);
        let verdict = self.pass(shard, scope, packet, visit, &mut seen)?;
        if verdict == Verdict::Restart {
            self.undo_before(seen, shard, packet, flow);
        }
        if let Some(deadlines) = &self.deadlines {
            let requests = &mut *scope.requests;
            requests.deadline = deadlines.after_packet(flow, requests.deadline);
        }
        Ok(verdict)
    }

    /// Notifies the function at a place that a flow ends.
    fn end_for(
        &self,
        at: usize,
        shard: &mut DynamicShard,
        scope: &mut Scope<'_>,
        flow: &mut FlowMut<'_>,
        ending: Ending,
    ) {
        let event = &mut Event::Ended(flow, ending);
        let _ = event::handle(&*self.links[at], shard.of(at), scope, event);
    }

    /// The functions that have seen a first packet, in order, each with its value for the shard.
    fn each<'a>(
        &'a self,
        seen: Seen,
        shard: &'a mut DynamicShard,
    ) -> impl DoubleEndedIterator<Item = (&'a dyn LinkStage, &'a mut LinkShard)> {
        let all = self.links.iter().zip(&mut shard.states).enumerate();
        let have = all.filter(move |(at, _)| seen.0 & 1 << at != 0);
        have.map(|(_, (link, state))| (&**link, &mut **state))
    }
}
