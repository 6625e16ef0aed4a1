//! Executes a chain on packets: those of known flows, the first ones of new flows, and those of no flow.
//!
//! What has to be done first, and cannot be done in the middle of a transaction, is requests for ([`Blocked`]); then the chain is
//! executed again.

use rheostat_base::DropReason;
use rheostat_packet::{FlowKey, Mbuf};
use rheostat_run::{Output, PacketInfo, PacketKind, ShardSet};
use rheostat_state::txn::Abort;
use rheostat_state::{FlowId, Probe, Shard};
use rheostat_steer::Side;

use super::ChainService;
use super::blocked::{Blocked, Head, Room};
use crate::chain::{Chain, Visit};
use crate::chain_shard::split;
use crate::cx::{DEFAULT_LIFETIME, Requests, Scope};
use crate::restored_packet::restore_endpoints;
use crate::verdict::{Ending, Outcome, Verdict};

impl<C: Chain> ChainService<C> {
    /// What a chain decides about a packet whose flow this lane alone works on.
    #[inline(always)]
    pub(super) fn evaluate_owned(
        &mut self,
        packet: &mut Mbuf,
        info: &PacketInfo,
        probe: Probe,
        shards: &mut ShardSet,
        out: &mut Output,
    ) -> Outcome<Verdict> {
        let verdict = match self.execute(packet, info, probe, &Head::default(), shards, out) {
            Ok(verdict) => Ok(verdict),
            Err(blocked) => self.evaluate_again(blocked, packet, info, probe, shards, out),
        };
        if let Some((shard, flow, now)) = self.closing.take() {
            self.end(flow, shard, shards, out, now, Ending::Closed);
        }
        verdict
    }

    #[inline(never)]
    fn evaluate_again(
        &mut self,
        mut blocked: Blocked,
        packet: &mut Mbuf,
        info: &PacketInfo,
        probe: Probe,
        shards: &mut ShardSet,
        out: &mut Output,
    ) -> Outcome<Verdict> {
        let mut head = Head::default();
        loop {
            if let Some(verdict) = self.resolve(blocked, info, &mut head, shards, out) {
                return verdict;
            }
            match self.execute(packet, info, probe, &head, shards, out) {
                Ok(verdict) => return Ok(verdict),
                Err(other) => blocked = other,
            }
        }
    }

    /// Executes the chain on a packet once.
    #[inline(always)]
    pub(super) fn execute(
        &mut self,
        packet: &mut Mbuf,
        info: &PacketInfo,
        probe: Probe,
        head: &Head,
        shards: &mut ShardSet,
        out: &mut Output,
    ) -> Result<Verdict, Blocked> {
        let verdict = match info.kind() {
            PacketKind::Flow | PacketKind::IcmpError => {
                match self.execute_known(packet, info, probe, shards, out)? {
                    Some(verdict) => verdict,
                    None if info.kind() == PacketKind::IcmpError && !head.restarted => {
                        self.execute_non_flow(packet, info, shards, out)?
                    }
                    None => self.execute_first(packet, info, head, shards, out)?,
                }
            }
            PacketKind::NonFlow | PacketKind::Fragment => {
                self.execute_non_flow(packet, info, shards, out)?
            }
        };
        match verdict {
            // Only a packet of a known flow can restart it, and only one from inside is a hairpin.
            Verdict::Restart => Err(Blocked::Abort),
            Verdict::Hairpin if info.side() == Side::Outside => Err(Blocked::Abort),
            verdict => Ok(verdict),
        }
    }

    /// What stands behind an [`Abort`] that a handler has returned.
    #[cold]
    fn reason_for(&mut self, Abort: Abort) -> Blocked {
        match C::SHARED && self.outbox.txn().is_conflicted() {
            true => Blocked::Conflict,
            false => Blocked::Abort,
        }
    }

    fn execute_non_flow(
        &mut self,
        packet: &mut Mbuf,
        info: &PacketInfo,
        shards: &mut ShardSet,
        out: &mut Output,
    ) -> Result<Verdict, Blocked> {
        let ChainService { chain, outbox, journal, .. } = self;
        let id = info.shard;
        let (_, local) = split::<C>(shards.get_mut(id).expect("packets run where their shard is"));
        // There is no flow to ask anything for.
        let (now, requests) = (info.now, &mut Requests::default());
        let scope = &mut Scope { now, shard: id, requests, outbox, pool: out.pool(), flows: None };
        let packet = &mut journal.packet(packet, info);
        let outcome = chain.visit(local, scope, packet, Visit::NonFlow);
        outcome.map_err(|abort| self.reason_for(abort))
    }

    /// Executes the chain on a packet of a flow in the table; `None` when the flow is not there.
    #[inline(always)]
    fn execute_known(
        &mut self,
        packet: &mut Mbuf,
        info: &PacketInfo,
        probe: Probe,
        shards: &mut ShardSet,
        out: &mut Output,
    ) -> Result<Option<Verdict>, Blocked> {
        let ChainService { chain, spec, outbox, journal, closing, .. } = self;
        let (now, shard_id) = (info.now, info.shard);
        let Some((table, local)) = shards.get_mut(shard_id).map(split::<C>) else {
            return Ok(None);
        };
        let Some(mut flow) = table.find_flow(info.hash, &info.key(), probe) else {
            return Ok(None);
        };
        if flow.is_expired(now) {
            // Its time was up, whether or not a timer has come round to it.
            return Err(Blocked::Expired(flow.id()));
        }
        journal.seen(&**chain, shard_id, &mut flow);
        if is_ordered(info) && flow.note_arrival(info.forward(), packet.device(), packet.stamp()) {
            journal.late(out.counters());
        }
        let mut requests = Requests::default();
        let scope = &mut Scope {
            now,
            shard: shard_id,
            requests: &mut requests,
            outbox,
            pool: out.pool(),
            flows: None,
        };
        let mut seen = journal.packet(packet, info);
        let verdict = match chain.visit(local, scope, &mut seen, Visit::Known(&mut flow)) {
            Ok(Verdict::Restart) => {
                // In a transaction, all changes of the packet are undone with it.
                if !C::SHARED && spec.translation.is_some() {
                    restore_endpoints(&mut seen);
                }
                return Err(Blocked::Restart(flow.id()));
            }
            Ok(verdict) => verdict,
            Err(abort) => return Err(self.reason_for(abort)),
        };
        if let Some(deadline) = requests.deadline {
            flow.set_deadline(deadline);
        }
        if let Some(evictable) = requests.evictable {
            journal.evictable(shard_id, &mut flow, evictable);
        }
        // The entry ends with the last state.
        if requests.close || requests.has_deleted && !flow.has_states() {
            *closing = Some((shard_id, flow.id(), now));
        }
        Ok(Some(verdict))
    }

    /// Executes the chain on a packet as the first of its flow, and makes the flow if all functions admit it.
    #[inline(never)]
    fn execute_first(
        &mut self,
        packet: &mut Mbuf,
        info: &PacketInfo,
        head: &Head,
        shards: &mut ShardSet,
        out: &mut Output,
    ) -> Result<Verdict, Blocked> {
        let ChainService { chain, spec, outbox, journal, .. } = self;
        let (now, id) = (info.now, info.shard);
        let (table, local) =
            split::<C>(shards.get_mut(id).expect("packets run where their shard is"));
        if spec.depends_on_flows && !head.reclaimed {
            // Elsewhere in the table, or a tick ago.
            if table.has_due(now) {
                return Err(Blocked::Due);
            }
        }
        let mut requests = Requests::default();
        (outbox.alias, outbox.displaced) = (None, None);
        let (flows, pool) = (Some(&*table), out.pool());
        let scope = &mut Scope { now, shard: id, requests: &mut requests, outbox, pool, flows };
        let mut states = C::States::default();
        let first = Visit::First(&mut states);
        let outcome = chain.visit(local, scope, &mut journal.packet(packet, info), first);
        let alias = outbox.alias.take();
        if !C::SHARED
            && let Some(displaced) = outbox.displaced.take()
        {
            self.end(displaced, id, shards, out, now, Ending::Evicted);
        }
        let verdict = match outcome {
            Ok(verdict) => verdict,
            Err(abort) => return Err(self.reason_for(abort)),
        };
        let is_admitted = !matches!(verdict, Verdict::Drop(_)) && requests.needs_flow;
        let made = match is_admitted {
            true => self.insert(info, alias, head, shards, out)?,
            false => None,
        };
        let ChainService { chain, spec, outbox, journal, closing, .. } = self;
        let (table, local) =
            split::<C>(shards.get_mut(id).expect("packets run where their shard is"));
        let Some(mut entry) = made.and_then(|flow| table.flow(flow)) else {
            let (requests, pool) = (&mut requests, out.pool());
            let scope = &mut Scope { now, shard: id, requests, outbox, pool, flows: None };
            chain.discarded(local, scope, states);
            let passes = !is_admitted || spec.passes_without_entry;
            return Ok(if passes { verdict } else { Verdict::Drop(DropReason::TableFull) });
        };
        journal.created(id, entry.id(), out.counters());
        chain.install(local, &mut entry, states);
        entry.set_deadline(requests.deadline.unwrap_or(now + DEFAULT_LIFETIME));
        if is_ordered(info) {
            entry.note_arrival(info.forward(), packet.device(), packet.stamp());
        }
        if let Some(evictable) = requests.evictable {
            journal.evictable(id, &mut entry, evictable);
        }
        if requests.close {
            *closing = Some((id, entry.id(), now));
        }
        Ok(verdict)
    }

    /// Inserts the packet's flow under its own key and, if there is one, under `alias`. `None` when it is refused: there is no
    /// room, or another flow has the second key.
    fn insert(
        &mut self,
        info: &PacketInfo,
        alias: Option<FlowKey>,
        head: &Head,
        shards: &mut ShardSet,
        out: &mut Output,
    ) -> Result<Option<FlowId>, Blocked> {
        let mut room = head.room;
        let flow = loop {
            let Some(Shard { table, .. }) = shards.get_mut(info.shard) else { return Ok(None) };
            match table.insert(info.hash, &info.key(), info.now) {
                Ok(flow) => break flow,
                Err(_) if room == Room::Exhausted => return Ok(None),
                // Handlers are run again behind it.
                Err(_) if C::SHARED => return Err(Blocked::Room),
                Err(_) => self.make_room(&mut room, info, shards, out),
            }
        };
        let Some(alias) = alias else { return Ok(Some(flow)) };
        let Some(Shard { table, .. }) = shards.get_mut(info.shard) else { return Ok(None) };
        if table.alias(flow, table.hash_of(&alias), &alias).is_err() {
            // No flow has one direction alone.
            table.retract(flow);
            return Ok(None);
        }
        Ok(Some(flow))
    }
}

/// Whether the packet takes part in the order of its flow: fragments may move against whole packets,
/// and ICMP errors are packets of another flow.
#[inline]
fn is_ordered(info: &PacketInfo) -> bool {
    info.kind() == PacketKind::Flow && info.headers.fragment.is_none()
}
