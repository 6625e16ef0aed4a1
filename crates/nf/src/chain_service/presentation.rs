//! Presents packets to a chain whose handlers run in transactions. What [`super::flow_life`] does at once,
//! this does so that it can be undone, and what cannot be undone it asks for.

use rheostat_base::DropReason;
use rheostat_packet::Mbuf;
use rheostat_run::{Arrival, ArrivalKind, LaneState};
use rheostat_state::txn::Abort;
use rheostat_state::{FlowId, Probe, Shard};
use rheostat_steer::Side;

use super::ChainService;
use super::flow_life::is_ordered;
use super::transaction::{Head, Room};
use crate::chain::Chain;
use crate::cx::{Asked, DEFAULT_LIFETIME, Scope};
use crate::packet::Packet;
use crate::verdict::Verdict;

/// Why a packet's presentation did not come to an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Need {
    /// The packet's flow has come to its end before the packet came: it is to be ended first.
    Expired(FlowId),
    /// Flows whose time is up are to be ended first.
    Due,
    /// The packet opens a new life of its flow: the old one is to be ended.
    Restart(FlowId),
    /// The table is full: room is to be made in it.
    Room,
    /// The transaction conflicts with another lane's, and is to be run again.
    Conflict,
    /// A handler has given up on the packet.
    Abort,
    /// A handler has panicked.
    Panic,
}

impl Need {
    /// Whether it was known before a handler saw the packet.
    pub(super) fn is_known_before(self) -> bool {
        matches!(self, Need::Expired(_) | Need::Due)
    }
}

impl<C: Chain> ChainService<C> {
    /// Presents the packet that is number `at` of those of the transaction.
    #[inline]
    pub(super) fn present(
        &mut self,
        packet: &mut Mbuf,
        at: usize,
        arrival: &Arrival,
        probe: Probe,
        head: &Head,
        lane: &mut LaneState<'_, C::Local>,
    ) -> Result<Verdict, Need> {
        self.originated.txn().set_now(arrival.now);
        self.transactions.undo.packets.turn_to(at);
        let verdict = match arrival.kind {
            ArrivalKind::Flow | ArrivalKind::IcmpError => {
                match self.present_known(packet, arrival, probe, lane)? {
                    Some(verdict) => verdict,
                    None if arrival.kind == ArrivalKind::IcmpError && !head.restarted => {
                        self.present_orphan(packet, arrival, lane)?
                    }
                    None => self.present_first(packet, arrival, head, lane)?,
                }
            }
            ArrivalKind::Orphan | ArrivalKind::Fragment => {
                self.present_orphan(packet, arrival, lane)?
            }
        };
        match verdict {
            // Only a packet of a known flow can restart it, and only one from inside turns round.
            Verdict::Restart => Err(Need::Abort),
            Verdict::TurnRound if arrival.side == Side::Outside => Err(Need::Abort),
            verdict => Ok(verdict),
        }
    }

    /// What stands behind an [`Abort`] that a handler has returned.
    fn reason_for(&mut self, Abort: Abort) -> Need {
        match self.originated.txn().is_conflicted() {
            true => Need::Conflict,
            false => Need::Abort,
        }
    }

    fn present_orphan(
        &mut self,
        packet: &mut Mbuf,
        arrival: &Arrival,
        lane: &mut LaneState<'_, C::Local>,
    ) -> Result<Verdict, Need> {
        let ChainService { chain, originated, transactions, .. } = self;
        let shard = lane.shards.get_mut(arrival.shard).expect("packets run where their shard is");
        let (now, asked) = (arrival.now, &mut Asked::default());
        let scope =
            &mut Scope { now, shard: shard.id, asked, originated, pool: lane.pool, flows: None };
        let packet = &mut Packet::logged(packet, arrival, &mut transactions.undo.packets);
        let outcome = chain.orphan(&mut shard.local, scope, packet);
        outcome.map_err(|abort| self.reason_for(abort))
    }

    /// `None` when the flow is not in the table.
    #[inline]
    fn present_known(
        &mut self,
        packet: &mut Mbuf,
        arrival: &Arrival,
        probe: Probe,
        lane: &mut LaneState<'_, C::Local>,
    ) -> Result<Option<Verdict>, Need> {
        let ChainService { chain, originated, transactions, .. } = self;
        let (now, shard_id) = (arrival.now, arrival.shard);
        let Some(Shard { table, local, .. }) = lane.shards.get_mut(shard_id) else {
            return Ok(None);
        };
        let Some(mut flow) = table.find_flow(arrival.hash, &arrival.key, probe) else {
            return Ok(None);
        };
        let id = flow.id();
        if flow.is_expired(now) {
            return Err(Need::Expired(id));
        }
        let undo = &mut transactions.undo;
        undo.seen(shard_id, id, flow.marks(), chain.save(&mut flow));
        if is_ordered(arrival)
            && flow.note_arrival(arrival.forward, packet.device(), packet.stamp())
        {
            undo.late();
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
        let packet = &mut Packet::logged(packet, arrival, &mut undo.packets);
        let verdict = match chain.packet(local, scope, packet, &mut flow) {
            Ok(Verdict::Restart) => return Err(Need::Restart(id)),
            Ok(verdict) => verdict,
            Err(abort) => return Err(self.reason_for(abort)),
        };
        if let Some(deadline) = asked.deadline {
            flow.set_deadline(deadline);
        }
        if let Some(evictable) = asked.evictable {
            undo.evictable(shard_id, id, evictable);
        }
        if asked.close {
            transactions.closing = Some((shard_id, id, now));
        }
        Ok(Some(verdict))
    }

    #[inline(never)]
    fn present_first(
        &mut self,
        packet: &mut Mbuf,
        arrival: &Arrival,
        head: &Head,
        lane: &mut LaneState<'_, C::Local>,
    ) -> Result<Verdict, Need> {
        let ChainService { chain, originated, transactions, .. } = self;
        let (now, id) = (arrival.now, arrival.shard);
        let undo = &mut transactions.undo;
        let Shard { table, local, .. } =
            lane.shards.get_mut(id).expect("packets run where their shard is");
        if chain.depends_on_flows() && !head.reclaimed {
            // Elsewhere in the table, or a tick ago.
            if table.next_due().is_some_and(|due| due <= now) {
                return Err(Need::Due);
            }
        }
        let mut asked = Asked::default();
        originated.alias = None;
        let flows = Some(&*table);
        let scope =
            &mut Scope { now, shard: id, asked: &mut asked, originated, pool: lane.pool, flows };
        let logged = &mut Packet::logged(packet, arrival, &mut undo.packets);
        let (states, verdict) = match chain.first(local, scope, logged) {
            Ok(first) => first,
            Err(abort) => return Err(self.reason_for(abort)),
        };
        if matches!(verdict, Verdict::Drop(_)) || !scope.asked.needs_flow {
            chain.discarded(local, scope, states);
            return Ok(verdict);
        }
        let alias = originated.alias.take();
        let flow = match table.insert(arrival.hash, &arrival.key, now) {
            Ok(flow) => Some(flow),
            Err(_) if head.room != Room::Exhausted => return Err(Need::Room),
            Err(_) => None,
        };
        // A flow that cannot have its second key does not exist: none has one direction alone.
        let flow = flow.filter(|flow| match &alias {
            Some(alias) if table.alias(*flow, table.hash_of(alias), alias).is_err() => {
                table.retract(*flow);
                false
            }
            _ => true,
        });
        let Some(flow) = flow else {
            let (flows, pool) = (None, &mut *lane.pool);
            let scope = &mut Scope { now, shard: id, asked: &mut asked, originated, pool, flows };
            chain.discarded(local, scope, states);
            let passes = chain.passes_without_entry();
            return Ok(if passes { verdict } else { Verdict::Drop(DropReason::TableFull) });
        };
        undo.created(id, flow);
        let mut entry = table.flow(flow).expect("inserted a moment ago");
        chain.install(&mut entry, states);
        entry.set_deadline(asked.deadline.unwrap_or(now + DEFAULT_LIFETIME));
        if is_ordered(arrival) {
            entry.note_arrival(arrival.forward, packet.device(), packet.stamp());
        }
        if let Some(evictable) = asked.evictable {
            undo.evictable(id, flow, evictable);
        }
        if asked.close {
            transactions.closing = Some((id, flow, now));
        }
        Ok(verdict)
    }
}
