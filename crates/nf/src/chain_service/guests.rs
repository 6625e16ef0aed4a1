//! The fast path on packets of flows that are with this lane while their shards are with others.

use rheostat_packet::Mbuf;
use rheostat_run::{Batch, LaneCounters, OffloadedFlows, PacketInfo};

use crate::packet::Packet;
use crate::steady::SteadyChain;

/// Runs the chain on packets up to one about which it does not decide, and returns how many there were: they are to be forwarded.
#[inline(never)]
pub(super) fn run(
    chain: &impl SteadyChain,
    batch: &mut Batch,
    flows: &mut OffloadedFlows,
    counters: &LaneCounters,
) -> usize {
    let (packets, found, _) = batch.parts();
    let passes =
        |(packet, info): (&mut Mbuf, &mut PacketInfo)| pass(chain, packet, info, flows, counters);
    packets.iter_mut().zip(found).map(passes).take_while(|passes| *passes).count()
}

/// Runs the chain on a packet, if all its functions can away from the shard. If not, nothing has changed.
#[inline(always)]
fn pass(
    chain: &impl SteadyChain,
    packet: &mut Mbuf,
    info: &PacketInfo,
    flows: &mut OffloadedFlows,
    counters: &LaneCounters,
) -> bool {
    let flow = info.offloaded().and_then(|number| flows.get_mut(number));
    let Some(flow) = flow.filter(|_| info.is_usual()) else { return false };
    if flow.is_expired(info.now) {
        return false;
    }
    let Some(mut flow) = flow.open(chain.places()) else { return false };
    let packet = &mut Packet::new(packet, info);
    if !chain.may_leave(&flow.states) {
        return false;
    }
    let Some(step) = chain.decide(packet, &flow.states) else { return false };
    if flow.note_arrival(info.forward(), packet.device(), packet.mbuf().stamp()) {
        counters.reordered.increment();
    }
    if let Some(deadline) = chain.commit(step, info.now, packet, &mut flow.states) {
        flow.set_deadline(deadline);
    }
    true
}
