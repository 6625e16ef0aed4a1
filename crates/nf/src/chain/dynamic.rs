//! A chain that is put together at run time, of any functions: the packets that take the general handlers pass it by one virtual
//! call per packet and function.
//!
//! Functions with state per shard run as in any other chain. Each function on shared objects runs in a transaction of its own per
//! packet ([`transacted`]), which is committed before the next function sees the packet.

mod assembly;
mod deadlines;
mod error;
mod link_stage;
mod naming;
mod own_link;
mod steady_chain;
mod steady_run;
mod transacted;
mod visit;
mod visits;

use std::fmt;

use rheostat_base::{Counter, Time};
use rheostat_run::Metrics;
use rheostat_state::txn::Objects;
use rheostat_state::{FlowMut, StateBits};
use rheostat_steer::Side;

use self::deadlines::Deadlines;
pub use self::error::ChainError;
use self::link_stage::LinkShard;
pub(crate) use self::link_stage::{LinkStage, PlacedLink};
pub(crate) use self::naming::Naming;

pub(crate) use self::own_link::OwnLink;
use self::steady_chain::DynamicFastPath;
use self::visit::Visit;
use super::Chain;
use crate::chain_service::FastPath;
use crate::cx::{DEFAULT_LIFETIME, Scope};
use crate::function::{Ahead, ShardInfo};
use crate::function_spec::FunctionSpec;
use crate::packet::Packet;
use crate::packet_log::{LogMark, PacketLog};
use crate::verdict::{Ending, Outcome, Verdict};

/// Any functions, one behind the other.
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
    locals: Box<[Box<LinkShard>]>,
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
        &mut *self.locals[function]
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
        visit: &mut Visit<'_, '_>,
        seen: &mut Seen,
    ) -> Outcome<Verdict> {
        let DynamicShard { locals, log, starts, requested } = shard;
        log.clear();
        let mut onward = Verdict::Forward;
        for at in self.path(packet.side()) {
            let (link, local) = (&*self.links[at], &mut *locals[at]);
            seen.0 |= 1 << at;
            let before = (scope.requests.deadline, scope.requests.evictable);
            let own = self.deadlines.as_ref().and_then(|deadlines| deadlines.own(at));
            if own.is_some() {
                scope.requests.deadline = None;
            }
            let verdict = match link.objects() {
                None => link.visit(local, scope, packet, visit)?,
                Some(_) => {
                    starts[at] = log.mark();
                    transacted::visit(link, local, scope, packet, visit, log)?
                }
            };
            if let (Some(own), Some(deadlines)) = (own, &self.deadlines) {
                let (deadline, default) = (scope.requests.deadline, scope.now + DEFAULT_LIFETIME);
                match visit {
                    Visit::First => requested.0[at] = deadline.unwrap_or(default),
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
        let DynamicShard { locals, log, starts, .. } = shard;
        let path = self.path(packet.side()).rev();
        for at in path.filter(|at| seen.0 & 1 << at != 0).skip(1) {
            if self.links[at].objects().is_some() {
                packet.go_back_to(log, starts[at]);
                self.links[at].restore(&mut *locals[at], flow);
            }
        }
    }
}

/// Notifies a function that a flow ends.
fn end(
    link: &dyn LinkStage,
    local: &mut LinkShard,
    scope: &mut Scope<'_>,
    flow: &mut FlowMut<'_>,
    ending: Ending,
) {
    match link.objects() {
        None => link.ended(local, scope, flow, ending),
        Some(_) => transacted::ended(link, local, scope, flow, ending),
    }
}

impl Chain for DynamicChain {
    type Shard = DynamicShard;
    type States = Seen;
    /// Nothing: links on shared objects keep what they undo.
    type Saved = ();

    const STATEFUL: bool = true;

    const TRANSACTIONS: bool = true;

    const STOPS: bool = true;

    fn spec(&self) -> FunctionSpec {
        self.spec.clone()
    }

    fn counts(&self) -> usize {
        self.spec.counts.len()
    }

    fn shard(&self, shard: ShardInfo) -> DynamicShard {
        let locals = self.links.iter().map(|link| link.shard(shard.clone())).collect();
        let starts = self.links.iter().map(|_| LogMark::default()).collect();
        let requested = self.links.iter().map(|_| Time::ZERO).collect();
        let requested = (requested, Time::ZERO);
        DynamicShard { locals, log: PacketLog::default(), starts, requested }
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

    fn boxed_bytes(&self) -> usize {
        self.links.iter().map(|link| link.local_bytes() + size_of::<Box<LinkShard>>()).sum()
    }

    fn own_table_bytes(&self, flows: usize) -> usize {
        let each = self.links.iter().map(|link| link.table_bytes(flows));
        each.fold(0, usize::saturating_add)
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
        if let Some(deadlines) = &self.deadlines {
            let (own, of_flow) = &mut shard.requested;
            *of_flow = scope.requests.deadline.unwrap_or(scope.now + DEFAULT_LIFETIME);
            scope.requests.deadline = deadlines.requested(own, *of_flow, seen);
        }
        outcome.map(|verdict| (seen, verdict))
    }

    fn install(&self, shard: &mut DynamicShard, flow: &mut FlowMut<'_>, seen: Seen) {
        self.each(seen, shard).for_each(|(link, local)| link.install(local, flow));
        if let Some(deadlines) = &self.deadlines {
            deadlines.begin(flow, &shard.requested.0, shard.requested.1);
        }
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
                end(&**link, &mut *shard.locals[at], scope, flow, Ending::Expired);
                link.drop_state(flow);
            }
        }
        let next = deadlines.earliest(|place| flow.time(place));
        next.map(|deadline| flow.set_deadline(deadline)).is_some()
    }

    fn prefetch_end(&self, shard: &DynamicShard, flow: &mut FlowMut<'_>) {
        for (link, local) in self.links.iter().zip(&shard.locals) {
            link.prefetch_end(&**local, flow);
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
            end(&**link, &mut **local, scope, flow, ending);
        }
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

    fn metrics(&self, shard: Option<&DynamicShard>, metrics: &mut Metrics) {
        for (at, link) in self.links.iter().enumerate() {
            link.metrics(shard.map(|shard| &*shard.locals[at]), metrics);
        }
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
