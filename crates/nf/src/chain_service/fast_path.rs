//! The fast path: most packets of flows that the chain knows.

use std::fmt;

use rheostat_base::Nanos;
use rheostat_packet::Mbuf;
use rheostat_run::{Batch, LaneCounters, Output, PacketInfo, ShardSet};
use rheostat_state::{DetachedFlow, FlowMut, Probe};

use crate::cx::Outbox;
use crate::packet::Packet;
use crate::steady::SteadyChain;
use crate::verdict::Verdict;

/// The parts of a lane that the fast path of a chain works with, beside the packets.
pub struct FastPathCx<'a> {
    pub(crate) shards: &'a mut ShardSet,
    pub(crate) out: &'a mut Output,
    pub(crate) outbox: &'a mut Outbox,
    /// Packets that are not to be forwarded, by their places in the batch, in order.
    pub(crate) stopped: &'a mut Vec<(usize, Verdict)>,
}

impl fmt::Debug for FastPathCx<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FastPathCx").field("stopped", &self.stopped).finish_non_exhaustive()
    }
}

/// The fast path of a chain on the packets of a lane.
pub trait FastPath {
    /// Whether packets of known flows can take it: all functions have one.
    fn exists(&self) -> bool;

    /// Whether flows can leave their lanes: it needs nothing of the shard.
    #[inline(always)]
    fn can_offload(&self) -> bool {
        self.exists()
    }

    /// Runs the chain on the packets of a batch from `first` on, up to one of which not all functions know what to do with it, and
    /// returns its place: those before it are to be forwarded, but for those that it notes as stopped.
    fn run(&self, batch: &mut Batch, first: usize, cx: &mut FastPathCx<'_>) -> usize;

    /// As [`Steady::shortest`](crate::Steady::shortest), of all functions.
    fn shortest_life(&self) -> Nanos;

    /// As [`Steady::may_leave`](crate::Steady::may_leave), of all functions.
    fn lets_leave(&self, flow: FlowMut<'_>) -> bool;

    /// Runs the chain on a packet of a flow of another lane, if all functions can away from its shard: then it is to be forwarded. If
    /// not, nothing has changed.
    fn pass_guest(
        &self,
        packet: &mut Mbuf,
        info: &PacketInfo,
        flow: &mut DetachedFlow,
        counters: &LaneCounters,
    ) -> bool;
}

impl<C: SteadyChain> FastPath for C {
    #[inline(always)]
    fn exists(&self) -> bool {
        C::EXISTS
    }

    #[inline(always)]
    fn run(&self, batch: &mut Batch, first: usize, cx: &mut FastPathCx<'_>) -> usize {
        run(self, batch, first, cx.shards, cx.out.counters())
    }

    #[inline(always)]
    fn shortest_life(&self) -> Nanos {
        self.shortest()
    }

    #[inline(always)]
    fn lets_leave(&self, flow: FlowMut<'_>) -> bool {
        flow.open(self.places()).is_some_and(|flow| self.may_leave(&flow.states))
    }

    #[inline(always)]
    fn pass_guest(
        &self,
        packet: &mut Mbuf,
        info: &PacketInfo,
        flow: &mut DetachedFlow,
        counters: &LaneCounters,
    ) -> bool {
        let Some(mut flow) = flow.open(self.places()) else { return false };
        let packet = &mut Packet::new(packet, info);
        if !self.may_leave(&flow.states) {
            return false;
        }
        let Some(step) = self.decide(packet, &flow.states) else { return false };
        if flow.note_arrival(info.forward(), packet.device(), packet.mbuf().stamp()) {
            counters.reordered.increment();
        }
        if let Some(deadline) = self.commit(step, info.now, packet, &mut flow.states) {
            flow.set_deadline(deadline);
        }
        true
    }
}

/// Runs the chain on the packets from `first` on, up to one of which not all its functions know what to do with it, and returns
/// its place: those before it are to be forwarded. A function of its own and small, so that what it works with stays in
/// registers.
#[inline(never)]
fn run(
    chain: &impl SteadyChain,
    batch: &mut Batch,
    first: usize,
    shards: &mut ShardSet,
    counters: &LaneCounters,
) -> usize {
    let (packets, found, probes) = batch.parts();
    let mut place = first;
    let (packets, found, probes) = (&mut packets[first..], &found[first..], &probes[first..]);
    for ((packet, info), probe) in packets.iter_mut().zip(found).zip(probes) {
        if !pass(chain, packet, info, *probe, shards, counters) {
            break;
        }
        place += 1;
    }
    place
}

/// Runs the chain on a packet, if all its functions know what to do with it: then it is to be forwarded. If not, nothing has
/// changed.
#[inline(always)]
fn pass(
    chain: &impl SteadyChain,
    packet: &mut Mbuf,
    info: &PacketInfo,
    probe: Probe,
    shards: &mut ShardSet,
    counters: &LaneCounters,
) -> bool {
    if !chain.exists() || !info.is_usual() {
        return false;
    }
    let Some(shard) = shards.get_mut(info.shard) else { return false };
    let Some(flow) = shard.table.probed(&info.key(), probe) else { return false };
    let now = info.now;
    if flow.is_expired(now) {
        return false;
    }
    let Some(mut flow) = flow.open(chain.places()) else { return false };
    let packet = &mut Packet::new(packet, info);
    let Some(step) = chain.decide(packet, &flow.states) else { return false };
    if flow.note_arrival(info.forward(), packet.device(), packet.mbuf().stamp()) {
        counters.reordered.increment();
    }
    if let Some(deadline) = chain.commit(step, now, packet, &mut flow.states) {
        flow.set_deadline(deadline);
    }
    true
}
