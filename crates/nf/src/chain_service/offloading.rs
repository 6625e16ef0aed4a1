//! Flows that are with another lane: at their home, where none of their packets is run, and at the lane that they are with, which
//! runs those that the chain's fast path decides about.

use rheostat_base::{ShardId, Time};
use rheostat_packet::{FlowKey, Mbuf};
use rheostat_run::{
    Batch, FlowNumber, HandoffPacket, LaneCounters, OffloadedFlows, OffloadingService, Output,
    PacketInfo, ShardSet,
};
use rheostat_state::{DetachedFlow, FlowHash, Probe, Shard};

use super::ChainService;
use super::FastPath;
use crate::chain::Chain;

/// Why a packet is not run now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Elsewhere {
    /// Its flow is with another lane.
    Flow(FlowNumber),
    /// Its shard waits for flows to come home.
    Shard,
}

impl Elsewhere {
    /// Leaves the packet to the lane.
    pub(super) fn leave(self, packet: Mbuf, info: &PacketInfo, out: &mut Output) {
        let mut info = *info;
        match self {
            Elsewhere::Flow(number) => {
                info.set_offloaded(Some(number));
                out.offload(packet, &info);
            }
            Elsewhere::Shard => out.wait_for_shard(HandoffPacket { packet, info }),
        }
    }
}

impl<C: Chain> ChainService<C> {
    /// How many packets in a row, from `first` on, are of flows that are away, as their probes say; notes the numbers of the flows
    /// where the packets lie. They are to leave for the offloading lane.
    pub(super) fn count_away(
        &self,
        first: usize,
        batch: &mut Batch,
        shards: &mut ShardSet,
    ) -> usize {
        let shortest = self.chain.fast_path(&self.counts).shortest_life();
        let (_, found, probes) = batch.parts();
        let packets = found[first..].iter_mut().zip(&probes[first..]);
        let is_away = |(info, probe): (&mut PacketInfo, &Probe)| {
            let shard = shards.get_mut(info.shard).filter(|_| info.is_usual());
            let (key, now) = (info.key(), info.now);
            let number =
                shard.and_then(|of| of.table.send_probed(&key, *probe, now, now + shortest));
            if number.is_some() {
                info.set_offloaded(number.map(FlowNumber::from_bits));
            }
            number.is_some()
        };
        packets.map(is_away).take_while(|is_away| *is_away).count()
    }

    /// Whether a packet that the fast path does not decide about is not to be run now.
    #[inline(always)]
    pub(super) fn elsewhere(
        &self,
        info: &PacketInfo,
        shards: &mut ShardSet,
        out: &mut Output,
    ) -> Option<Elsewhere> {
        match shards.has_offloaded() {
            true => self.find_elsewhere(info, shards, out),
            false => None,
        }
    }

    #[cold]
    fn find_elsewhere(
        &self,
        info: &PacketInfo,
        shards: &mut ShardSet,
        out: &mut Output,
    ) -> Option<Elsewhere> {
        let Some(shard) = shards.get_mut(info.shard) else { return Some(Elsewhere::Shard) };
        let table = &mut shard.table;
        if !info.has_key() || table.detached_len() == 0 {
            return None;
        }
        if let Some(detached) = table.detached(info.hash, &info.key()) {
            if info.now >= detached.bound {
                // It may be over, and the packet open a new one. The shard waits, so that no time passes in it meanwhile.
                out.recall(FlowNumber::from_bits(detached.number));
                shards.stall(info.shard);
                return Some(Elsewhere::Shard);
            }
            table
                .note_sent(detached, info.now + self.chain.fast_path(&self.counts).shortest_life());
            return Some(Elsewhere::Flow(FlowNumber::from_bits(detached.number)));
        }
        // What becomes of the packet may depend on a flow that is away: on whether it is over, or on whether it makes room.
        let is_full = table.counts().live >= table.capacity() as u64;
        let is_first = || table.find_now(info.hash, &info.key()).is_none();
        let oldest = (is_full && is_first()).then(|| table.oldest_evictable_detached()).flatten();
        let depends = is_full || self.spec.depends_on_flows;
        let awaited = depends.then(|| table.overdue(info.now)).flatten().or(oldest)?;
        out.recall(FlowNumber::from_bits(awaited.number));
        shards.stall(info.shard);
        Some(Elsewhere::Shard)
    }

    /// Takes a flow home that may be over.
    #[inline]
    pub(super) fn recall_overdue(
        &self,
        id: ShardId,
        shards: &mut ShardSet,
        out: &mut Output,
        now: Time,
    ) {
        if shards.has_offloaded()
            && let Some(shard) = shards.get_mut(id)
            && let Some(overdue) = shard.table.overdue(now)
        {
            out.recall(FlowNumber::from_bits(overdue.number));
        }
    }

    /// Runs the chain on packets of flows that are here as guests, up to one about which the fast path decides nothing, and returns how
    /// many there were: they are to be forwarded.
    #[inline(never)]
    fn run_guests(
        &self,
        batch: &mut Batch,
        flows: &mut OffloadedFlows,
        counters: &LaneCounters,
    ) -> usize {
        let chain = self.chain.fast_path(&self.counts);
        let (packets, infos, _) = batch.parts();
        let passes = |(packet, info): (&mut Mbuf, &mut PacketInfo)| {
            let flow = info.offloaded().and_then(|number| flows.get_mut(number));
            match flow.filter(|flow| info.is_usual() && !flow.is_expired(info.now)) {
                Some(flow) => chain.pass_guest(packet, info, flow, counters),
                None => false,
            }
        };
        packets.iter_mut().zip(infos).map(passes).take_while(|passes| *passes).count()
    }

    /// Whether all functions have a fast path, and nothing but the shard keeps anything about flows. On a network, packets wait in
    /// a lane for their next hop, where others of their flow would pass them.
    pub(super) fn lets_flows_leave(&self) -> bool {
        let can_offload = self.chain.fast_path(&self.counts).can_offload();
        self.is_stateful && !C::SHARED && can_offload && self.stack.is_none()
    }
}

impl<C: Chain> OffloadingService for ChainService<C> {
    /// Detaches a flow from its shard if all functions let it leave now.
    fn detach(
        &mut self,
        shard: &mut Shard,
        (hash, key): (FlowHash, &FlowKey),
        number: FlowNumber,
        now: Time,
    ) -> Option<DetachedFlow> {
        let id = shard.table.find_now(hash, key)?;
        let flow = shard.table.flow(id).filter(|flow| !flow.is_expired(now))?;
        self.chain.fast_path(&self.counts).lets_leave(flow).then_some(())?;
        shard.table.detach(id, number.bits())
    }

    /// Runs the chain on packets of flows that are here as guests. The first of a flow about which the fast path decides nothing is
    /// refused, untouched, and so are all behind it.
    fn process_offloaded(
        &mut self,
        batch: &mut Batch,
        flows: &mut OffloadedFlows,
        out: &mut Output,
    ) {
        self.keep_up_with_guests();
        while !batch.is_empty() {
            let passed = self.run_guests(batch, flows, out.counters());
            self.forward_by_device(passed, batch, out);
            if batch.is_empty() {
                return;
            }
            batch.drain_first(1, |packet, &info, _| {
                info.offloaded().into_iter().for_each(|number| flows.refuse(number));
                out.refuse(HandoffPacket { packet, info });
            });
        }
    }
}
