//! From the first packet of a flow to its end.

use rheostat_base::{DropReason, ShardId, Time};
use rheostat_packet::{FlowKey, Mbuf};
use rheostat_run::{Arrival, ArrivalKind, LaneState};
use rheostat_state::{FlowId, Probe, Shard};

use super::ChainService;
use super::apart::{in_transaction, tell_end};
use crate::chain::Chain;
use crate::cx::{Asked, DEFAULT_LIFETIME, Scope};
use crate::packet::Packet;
use crate::verdict::{Ending, Outcome, Verdict};

impl<C: Chain> ChainService<C> {
    /// Runs the chain on a packet of a flow, which may be its first, or on an ICMP error about a
    /// packet of a flow, which may not be known.
    #[inline(always)]
    pub(super) fn run_flow(
        &mut self,
        packet: &mut Mbuf,
        arrival: &Arrival,
        probe: Probe,
        lane: &mut LaneState<'_, C::Local>,
    ) -> Outcome<Verdict> {
        match self.run_known(packet, arrival, probe, lane) {
            Some(verdict) => verdict,
            None if arrival.kind == ArrivalKind::IcmpError => {
                self.run_orphan(packet, arrival, lane)
            }
            None => self.run_first(packet, arrival, lane),
        }
    }

    /// Runs the chain on a packet of a flow in the table; `None` when the flow is not there, or its
    /// time was up: then it ends here, whether or not a timer has come round to it.
    #[inline(always)]
    fn run_known(
        &mut self,
        packet: &mut Mbuf,
        arrival: &Arrival,
        probe: Probe,
        lane: &mut LaneState<'_, C::Local>,
    ) -> Option<Outcome<Verdict>> {
        let ChainService { chain, originated, .. } = self;
        let (now, shard_id) = (arrival.now, arrival.shard);
        let Shard { table, local, .. } = lane.shards.get_mut(shard_id)?;
        let mut flow = table.find_flow(arrival.hash, &arrival.key, probe)?;
        if flow.is_expired(now) {
            let id = flow.id();
            self.end(id, shard_id, lane, now, Ending::Expired);
            return None;
        }
        if is_ordered(arrival)
            && flow.note_arrival(arrival.forward, packet.device(), packet.stamp())
        {
            lane.counters.reordered.increment();
        }
        let mut asked = Asked::default();
        let scope = &mut Scope {
            now,
            shard: shard_id,
            asked: &mut asked,
            originated,
            pool: lane.pool,
            flows: None,
        };
        let outcome = chain.packet(local, scope, &mut Packet::new(packet, arrival), &mut flow);
        let Ok(verdict) = outcome else { return Some(outcome) };
        if let Some(deadline) = asked.deadline {
            flow.set_deadline(deadline);
        }
        if let Some(evictable) = asked.evictable {
            flow.set_evictable(evictable);
        }
        if verdict == Verdict::Restart || asked.close {
            let id = flow.id();
            self.end(id, shard_id, lane, now, Ending::Closed);
        }
        if verdict == Verdict::Restart {
            return Some(self.run_first(packet, arrival, lane));
        }
        Some(Ok(verdict))
    }

    /// Presents a packet to the chain as the first of its flow, and makes the flow if all functions
    /// admit it.
    #[inline(never)]
    fn run_first(
        &mut self,
        packet: &mut Mbuf,
        arrival: &Arrival,
        lane: &mut LaneState<'_, C::Local>,
    ) -> Outcome<Verdict> {
        let (now, id) = (arrival.now, arrival.shard);
        if self.chain.depends_on_flows() {
            self.reclaim(id, lane, now, usize::MAX);
        }
        let ChainService { chain, originated, .. } = self;
        let shard = lane.shards.get_mut(id).expect("packets run where their shard is");
        let mut asked = Asked::default();
        (originated.alias, originated.displaced) = (None, None);
        let flows = Some(&shard.table);
        let scope =
            &mut Scope { now, shard: id, asked: &mut asked, originated, pool: lane.pool, flows };
        let first = chain.first(&mut shard.local, scope, &mut Packet::new(packet, arrival));
        if let Some(displaced) = originated.displaced.take() {
            self.end(displaced, id, lane, now, Ending::Evicted);
        }
        let (states, verdict) = first?;
        let ChainService { chain, originated, .. } = self;
        if matches!(verdict, Verdict::Drop(_)) || !asked.needs_flow {
            let shard = lane.shards.get_mut(id).expect("packets run where their shard is");
            let (asked, flows) = (&mut asked, None);
            let scope = &mut Scope { now, shard: id, asked, originated, pool: lane.pool, flows };
            chain.discarded(&mut shard.local, scope, states);
            return Ok(verdict);
        }
        let alias = originated.alias.take();
        let Some(flow) = self.insert_with(arrival, alias, lane) else {
            let ChainService { chain, originated, .. } = self;
            let shard = lane.shards.get_mut(id).expect("packets run where their shard is");
            let scope = &mut Scope {
                now,
                shard: id,
                asked: &mut asked,
                originated,
                pool: lane.pool,
                flows: None,
            };
            chain.discarded(&mut shard.local, scope, states);
            let passes = chain.passes_without_entry();
            return Ok(if passes { verdict } else { Verdict::Drop(DropReason::TableFull) });
        };
        let shard = lane.shards.get_mut(id).expect("packets run where their shard is");
        let mut entry = shard.table.flow(flow).expect("inserted a moment ago");
        self.chain.install(&mut entry, states);
        entry.set_deadline(asked.deadline.unwrap_or(now + DEFAULT_LIFETIME));
        entry.set_evictable(asked.evictable.unwrap_or(false));
        if is_ordered(arrival) {
            entry.note_arrival(arrival.forward, packet.device(), packet.stamp());
        }
        lane.counters.flows_created.increment();
        if asked.close {
            self.end(flow, id, lane, now, Ending::Closed);
        }
        Ok(verdict)
    }

    /// Inserts the packet's flow under its own key and, if there is one, under `alias`.
    fn insert_with(
        &mut self,
        arrival: &Arrival,
        alias: Option<FlowKey>,
        lane: &mut LaneState<'_, C::Local>,
    ) -> Option<FlowId> {
        let flow = self.insert(arrival, lane)?;
        let Some(alias) = alias else { return Some(flow) };
        let table = &mut lane.shards.get_mut(arrival.shard)?.table;
        if table.alias(flow, table.hash_of(&alias), &alias).is_err() {
            // Another flow has the key, or there is no room: no flow has one direction alone.
            table.remove(flow);
            self.disturbed.push(arrival.shard);
            return None;
        }
        Some(flow)
    }

    /// Inserts the packet's flow. A full table first gives up flows whose time is up, then the oldest
    /// that has not proved itself; when there is none, the new flow is refused.
    fn insert(&mut self, arrival: &Arrival, lane: &mut LaneState<'_, C::Local>) -> Option<FlowId> {
        let (id, now) = (arrival.shard, arrival.now);
        let table = |lane: &mut LaneState<'_, C::Local>| {
            let shard = lane.shards.get_mut(id)?;
            shard.table.insert(arrival.hash, &arrival.key, now).ok()
        };
        if let Some(flow) = table(lane) {
            return Some(flow);
        }
        // All of them: what is left then depends on nothing but deadlines, so neither does the victim.
        self.visit(id, lane, now, usize::MAX);
        if let Some(flow) = table(lane) {
            return Some(flow);
        }
        let oldest = lane.shards.get_mut(id)?.table.oldest_evictable()?;
        self.end(oldest, id, lane, now, Ending::Evicted);
        table(lane)
    }

    /// Ends a flow: the functions are told, and its entry leaves the table.
    #[inline(never)]
    pub(super) fn end(
        &mut self,
        flow: FlowId,
        id: ShardId,
        lane: &mut LaneState<'_, C::Local>,
        now: Time,
        ending: Ending,
    ) {
        let ChainService { chain, originated, disturbed, .. } = self;
        let Some(Shard { table, local, .. }) = lane.shards.get_mut(id) else { return };
        let Some(mut entry) = table.flow(flow) else { return };
        let now = now.min(entry.deadline());
        // Too late to ask for anything.
        let asked = &mut Asked::default();
        let scope = &mut Scope { now, shard: id, asked, originated, pool: lane.pool, flows: None };
        tell_end(&**chain, local, scope, &mut entry, ending);
        match ending {
            Ending::Evicted => table.evict(flow),
            _ => table.remove(flow),
        };
        lane.counters.flows_ended.increment();
        disturbed.push(id);
    }

    /// Gives a shard its regular turn: reclaims up to `budget` flows whose time is up and calls the
    /// periodic handlers. Returns whether nothing due is left.
    pub(super) fn visit(
        &mut self,
        id: ShardId,
        lane: &mut LaneState<'_, C::Local>,
        now: Time,
        budget: usize,
    ) -> bool {
        if !self.reclaim(id, lane, now, budget) {
            return false;
        }
        let ChainService { chain, originated, .. } = self;
        let Some(Shard { table, local, .. }) = lane.shards.get_mut(id) else { return true };
        let asked = &mut Asked::default();
        let flows = Some(&*table);
        let scope = &mut Scope { now, shard: id, asked, originated, pool: lane.pool, flows };
        if C::SHARED {
            in_transaction(scope, |scope| chain.periodic(local, scope));
        } else {
            // An aborted turn comes again.
            let _ = chain.periodic(local, scope);
        }
        true
    }

    /// Ends up to `budget` flows of a shard whose time is up. Returns whether none is left.
    pub(super) fn reclaim(
        &mut self,
        id: ShardId,
        lane: &mut LaneState<'_, C::Local>,
        now: Time,
        budget: usize,
    ) -> bool {
        let ChainService { chain, originated, disturbed, .. } = self;
        let Some(Shard { table, local, .. }) = lane.shards.get_mut(id) else { return true };
        let asked = &mut Asked::default();
        let scope = &mut Scope { now, shard: id, asked, originated, pool: lane.pool, flows: None };
        let reclaimed = table.expire(now, budget, |mut flow| {
            // When its time was up, not when a lane came round to it.
            scope.now = flow.deadline();
            tell_end(&**chain, local, scope, &mut flow, Ending::Expired);
        });
        lane.counters.flows_ended.add(reclaimed.flows as u64);
        if reclaimed.flows > 0 {
            disturbed.push(id);
        }
        reclaimed.complete
    }

    /// Ends every flow of a shard, as the run is over at `now`.
    pub(super) fn end_all(&mut self, id: ShardId, lane: &mut LaneState<'_, C::Local>, now: Time) {
        let ChainService { chain, originated, disturbed, .. } = self;
        let Some(Shard { table, local, .. }) = lane.shards.get_mut(id) else { return };
        let asked = &mut Asked::default();
        let scope = &mut Scope { now, shard: id, asked, originated, pool: lane.pool, flows: None };
        let ended = table.expire(Time::NEVER, usize::MAX, |mut flow| {
            tell_end(&**chain, local, scope, &mut flow, Ending::Stopped);
        });
        lane.counters.flows_ended.add(ended.flows as u64);
        disturbed.push(id);
    }
}

/// Whether the packet takes part in the order of its flow: fragments may move against whole packets,
/// and ICMP errors are packets of another flow.
#[inline]
pub(super) fn is_ordered(arrival: &Arrival) -> bool {
    arrival.kind == ArrivalKind::Flow && arrival.headers.fragment.is_none()
}
