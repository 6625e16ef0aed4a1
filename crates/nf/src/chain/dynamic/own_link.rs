//! A function whose flows are named by fewer fields than those of its chain, such as a policer of hosts before a firewall: it keeps
//! its flows in tables of its own, one per shard, and meets each packet by its own key, as the packet is when it comes there.

use std::any::Any;
use std::sync::Arc;

use rheostat_base::{DropReason, Time};
use rheostat_packet::{FlowKey, Tuple};
use rheostat_run::listing::ListedFields;
use rheostat_run::{Metrics, PacketKind, Placement};
use rheostat_state::txn::Abort;
use rheostat_state::{FlowId, FlowTable, Probe, StateLayout, TableConfig};
use rheostat_steer::{Side, Steering};

use super::event::Event;
use super::link_stage::{LinkShard, LinkStage, LinkVisit, by_type, wrong_type};
use super::steady_run::{self, Decided, SteadyRun, Undecided};
use crate::chain::{BytesBeside, Chain, Stage, Visit};
use crate::cx::{DEFAULT_LIFETIME, Requests, Scope};
use crate::function::{NetworkFunction, ShardInfo};
use crate::listing::{ListedFlow, WantedEntries};
use crate::packet::Packet;
use crate::verdict::{Ending, Outcome, Verdict};

/// A function with flows of its own at its place in a chain.
pub(crate) struct OwnLink<F: NetworkFunction> {
    stage: Stage<F>,
    layout: Arc<StateLayout>,
}

/// The value that the link keeps for one shard.
struct Local<F: NetworkFunction> {
    shard: F::Shard,
    /// `None` when there was no memory: then there is no room for any flow.
    table: Option<FlowTable>,
    names: Names,
}

/// What names the function's flows.
struct Names {
    steering: Box<Steering>,
    /// Whether they have the names of the chain's flows.
    are_chains: bool,
}

/// The parts of a shard that a packet needs.
struct Work<'a, F: NetworkFunction> {
    stage: &'a Stage<F>,
    shard: &'a mut F::Shard,
    table: &'a mut FlowTable,
}

impl<F: NetworkFunction> OwnLink<F> {
    /// `layout` is that of the function's own entries.
    pub(crate) fn new(stage: Stage<F>, layout: StateLayout) -> OwnLink<F> {
        OwnLink { stage, layout: Arc::new(layout) }
    }
}

impl Names {
    /// Whether the packet is to the function what the runtime has found out about it.
    #[inline]
    fn are_of(&self, packet: &Packet<'_>) -> bool {
        self.are_chains && packet.info().is_usual() && !packet.is_rewritten()
    }

    /// The key of the packet's flow to the function.
    fn key(&self, packet: &Packet<'_>) -> Option<FlowKey> {
        if self.are_of(packet) {
            return Some(packet.arrival_key());
        }
        let Names { steering, .. } = self;
        let link = packet.mbuf().link();
        let key = match steering.tuple(packet.data(), packet.headers(), link) {
            Tuple::Flow(key) | Tuple::IcmpError(key) | Tuple::Fragment(key, _) => key,
            Tuple::None => return None,
        };
        let key = if packet.is_forward() { key } else { key.reversed() };
        steering.admits(&key, packet.side()).then(|| steering.reduced(key, packet.side()))
    }
}

impl<F: NetworkFunction> Work<'_, F> {
    fn pass(
        &mut self,
        key: &FlowKey,
        scope: &mut Scope<'_>,
        packet: &mut Packet<'_>,
    ) -> Outcome<Verdict> {
        match self.known(key, scope, packet)? {
            Some(verdict) => Ok(verdict),
            None => self.first(key, scope, packet),
        }
    }

    /// The verdict on a packet of a flow that is there; `None` on the first packet of a flow. A flow whose time is up, or that
    /// restarts, has been ended then.
    fn known(
        &mut self,
        key: &FlowKey,
        scope: &mut Scope<'_>,
        packet: &mut Packet<'_>,
    ) -> Outcome<Option<Verdict>> {
        let hash = self.table.hash_of(key);
        let Some(mut flow) = self.table.find_flow(hash, key, Probe::NONE) else { return Ok(None) };
        if flow.is_expired(scope.now) {
            let id = flow.id();
            self.end(id, scope, Ending::Expired);
            return Ok(None);
        }
        let mut requests = Requests::default();
        let own = &mut scope.about(&mut requests, None);
        let verdict = self.stage.visit(self.shard, own, packet, Visit::Known(&mut flow))?;
        if let Some(deadline) = requests.deadline {
            flow.set_deadline(deadline);
        }
        if let Some(evictable) = requests.evictable {
            flow.set_evictable(evictable);
        }
        let restarts = verdict == Verdict::Restart;
        if restarts || requests.close || requests.has_deleted && !flow.has_states() {
            let id = flow.id();
            self.end(id, scope, Ending::Closed);
        }
        Ok((!restarts).then_some(verdict))
    }

    fn first(
        &mut self,
        key: &FlowKey,
        scope: &mut Scope<'_>,
        packet: &mut Packet<'_>,
    ) -> Outcome<Verdict> {
        if self.stage.spec.depends_on_flows && self.table.has_due(scope.now) {
            self.expire(scope.now, scope, Ending::Expired);
        }
        let displaced = scope.outbox.displaced.take();
        let mut requests = Requests::default();
        let own = &mut scope.about(&mut requests, Some(&*self.table));
        let mut state = None;
        let outcome = self.stage.visit(self.shard, own, packet, Visit::First(&mut state));
        if let Some(other) = std::mem::replace(&mut scope.outbox.displaced, displaced) {
            self.end(other, scope, Ending::Evicted);
        }
        let verdict = outcome?;
        let is_admitted = !matches!(verdict, Verdict::Drop(_)) && requests.needs_flow;
        let made = if is_admitted { self.insert(key, scope) } else { None };
        let Some(mut flow) = made.and_then(|id| self.table.flow(id)) else {
            let own = &mut scope.about(&mut requests, None);
            self.stage.discarded(self.shard, own, state);
            let passes = !is_admitted || self.stage.spec.passes_without_entry;
            return Ok(if passes { verdict } else { Verdict::Drop(DropReason::TableFull) });
        };
        self.stage.install(self.shard, &mut flow, state);
        flow.set_deadline(requests.deadline.unwrap_or(scope.now + DEFAULT_LIFETIME));
        if let Some(evictable) = requests.evictable {
            flow.set_evictable(evictable);
        }
        let id = flow.id();
        if requests.close {
            self.end(id, scope, Ending::Closed);
        }
        Ok(verdict)
    }

    /// Makes a flow; where the table is full, by ending those whose time is up, or the oldest that has not proved itself.
    fn insert(&mut self, key: &FlowKey, scope: &mut Scope<'_>) -> Option<FlowId> {
        let (hash, now) = (self.table.hash_of(key), scope.now);
        if let Ok(id) = self.table.insert(hash, key, now) {
            return Some(id);
        }
        self.expire(now, scope, Ending::Expired);
        if let Ok(id) = self.table.insert(hash, key, now) {
            return Some(id);
        }
        let oldest = self.table.oldest_evictable()?;
        self.end(oldest, scope, Ending::Evicted);
        self.table.insert(hash, key, now).ok()
    }

    fn end(&mut self, id: FlowId, scope: &mut Scope<'_>, ending: Ending) {
        let Some(mut flow) = self.table.flow(id) else { return };
        // Too late to ask for anything.
        let mut requests = Requests::default();
        let mut own = scope.about(&mut requests, None);
        own.now = own.now.min(flow.deadline());
        self.stage.ended(self.shard, &mut own, &mut flow, ending);
        match ending {
            Ending::Evicted => self.table.evict(id),
            _ => self.table.remove(id),
        };
        // Packets look their flow up when they come here, so that no probe leads to the entry.
        self.table.end_burst();
    }

    /// Ends flows whose deadline is not behind `until`.
    fn expire(&mut self, until: Time, scope: &mut Scope<'_>, ending: Ending) {
        let Work { stage, shard, table } = self;
        let mut requests = Requests::default();
        let mut own = scope.about(&mut requests, None);
        let _ = table.expire(until, usize::MAX, |mut flow| {
            // When its time was up, not when a lane came round to it.
            own.now = if ending == Ending::Expired { flow.deadline() } else { own.now };
            stage.ended(shard, &mut own, &mut flow, ending);
        });
        table.end_burst();
    }
}

impl<F: NetworkFunction> LinkStage for OwnLink<F> {
    fn counts(&self) -> usize {
        self.stage.spec.counts.len()
    }

    fn shard(&self, info: ShardInfo) -> Box<LinkShard> {
        let spec = &self.stage.spec;
        let steering = (*info.steering).clone();
        let steering = steering.with_sets(&spec.packet_set, &spec.steering());
        let steering = Box::new(steering.expect("a function agrees with itself"));
        let are_chains = steering.names_as(&info.steering);
        let names = Names { steering, are_chains };
        let config = TableConfig { capacity: info.flows, aliases: false };
        let table = FlowTable::new(config, self.layout.clone(), info.hasher).ok();
        Box::new(Local::<F> { shard: self.stage.shard(info), table, names })
    }

    fn follow(&self, shard: &mut LinkShard, info: &ShardInfo) {
        let Local::<F> { shard, .. } = shard.downcast_mut().unwrap_or_else(|| wrong_type());
        self.stage.follow(shard, info);
    }

    fn is_like(&self, next: &dyn LinkStage) -> bool {
        let next = (next as &dyn Any).downcast_ref::<OwnLink<F>>();
        next.is_some_and(|next| self.layout.is_continued_by(&next.layout))
    }

    fn own_layout(&self) -> Option<&StateLayout> {
        Some(&self.layout)
    }

    fn bytes_beside(&self, flows: usize) -> BytesBeside {
        let config = TableConfig { capacity: flows, aliases: false };
        BytesBeside {
            boxed: size_of::<Local<F>>() + size_of::<Steering>(),
            tables: config.bytes(&self.layout).unwrap_or(usize::MAX),
        }
    }

    /// Presents a packet to the function, whatever it is to the chain.
    fn visit(
        &self,
        shard: &mut LinkShard,
        scope: &mut Scope<'_>,
        packet: &mut Packet<'_>,
        _: &mut LinkVisit<'_, '_>,
    ) -> Outcome<Verdict> {
        let Local::<F> { shard, table, names } =
            shard.downcast_mut().unwrap_or_else(|| wrong_type());
        let Some(key) = names.key(packet) else {
            return self.stage.visit(shard, scope, packet, Visit::NonFlow);
        };
        let Some(table) = table else {
            let passes = self.stage.spec.passes_without_entry;
            return Ok(if passes {
                Verdict::Forward
            } else {
                Verdict::Drop(DropReason::TableFull)
            });
        };
        let mut work = Work { stage: &self.stage, shard, table };
        let verdict = if names.are_of(packet) {
            work.pass(&key, scope, packet)?
        } else {
            let (hash, kind) = (work.table.hash_of(&key), PacketKind::Flow);
            let mut info = *packet.info();
            info.place(&Placement { key, hash, kind, is_usual: false, ..info.placement() });
            packet.with_info(&info, |packet| work.pass(&key, scope, packet))?
        };
        // The flows of the chain are not the function's.
        if verdict == Verdict::Restart { Err(Abort) } else { Ok(verdict) }
    }

    fn handle(
        &self,
        shard: &mut LinkShard,
        scope: &mut Scope<'_>,
        event: &mut Event<'_, '_>,
    ) -> Outcome<()> {
        let Local::<F> { shard, table, .. } = shard.downcast_mut().unwrap_or_else(|| wrong_type());
        let (stage, now) = (&self.stage, scope.now);
        match (event, &mut *table) {
            (Event::Stopped, Some(table)) if stage.spec.ends_with_run => {
                Work { stage, shard, table }.expire(Time::NEVER, scope, Ending::Stopped);
            }
            (Event::Periodic, _) => {
                if let Some(table) = table {
                    Work { stage, shard, table }.expire(now, scope, Ending::Expired);
                }
                let mut requests = Requests::default();
                stage.periodic(shard, &mut scope.about(&mut requests, table.as_ref()))?;
            }
            // The flows of the chain are not the function's.
            (Event::Discarded | Event::Ended(..) | Event::Stopped, _) => {}
        }
        Ok(())
    }

    fn metrics(&self, shard: Option<&LinkShard>, metrics: &mut Metrics) {
        let shard = shard.map(|shard| &by_type::<Local<F>>(shard).shard);
        self.stage.metrics(shard, metrics);
    }

    /// What the function knows of the flow of its own that has the key of the chain's flow, on either side of a translation.
    fn list(&self, shard: &LinkShard, listed: &mut ListedFlow<'_, '_>) {
        let Local::<F> { shard, table, names } = by_type(shard);
        let Some(table) = table else { return };
        let keys = [Some(*listed.key), listed.flow.alias()];
        let own = |key: FlowKey| names.steering.reduced(key, Side::Inside);
        let state = keys.into_iter().flatten().map(own).find_map(|key| {
            let (_, state, _) = table.look_at(table.hash_of(&key), &key, self.stage.handle)?;
            Some(state)
        });
        state.into_iter().for_each(|state| self.stage.list_state(shard, listed, state));
    }

    fn entries(&self, shard: &LinkShard, wanted: WantedEntries<'_>) -> Option<u32> {
        self.stage.entries(&by_type::<Local<F>>(shard).shard, wanted)
    }

    fn fixed_entries(&self, function: &str, into: &mut Vec<ListedFields>) {
        self.stage.fixed_entries(function, into);
    }

    fn is_visitor(&self) -> bool {
        true
    }

    fn decide(
        &self,
        others: Undecided<'_>,
        run: &mut SteadyRun<'_, '_, '_>,
        behind: Option<&mut dyn Decided>,
    ) {
        let (_, others) = others.split_counts(self.stage.spec.counts.len(), run);
        steady_run::visit(self, others, run, behind);
    }
}
