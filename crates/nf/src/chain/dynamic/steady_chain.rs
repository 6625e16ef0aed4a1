//! Packets of known flows on the fast path of a chain that is put together at run time.

use rheostat_base::{Counter, Nanos, Time};
use rheostat_packet::Mbuf;
use rheostat_run::{Batch, LaneCounters, OffloadedFlows, PacketInfo};
use rheostat_state::{EntryColumn, FlowMut, OPEN_FLOWS, StateBits};

use super::DynamicChain;
use super::steady_run::{SteadyRun, Undecided};
use super::visits::Visits;
use crate::chain_service::FastPathCx;

impl DynamicChain {
    /// Runs the chain on the packets from `first` on, up to one of which not all its functions know what to do with it, and returns
    /// its place.
    pub(super) fn run_steady(
        &self,
        set: StateBits,
        batch: &mut Batch,
        first: usize,
        FastPathCx { counts, shards, out, outbox, stopped }: &mut FastPathCx<'_>,
    ) -> usize {
        let (packets, infos, probes) = batch.parts();
        let mut place = first;
        while place < packets.len() {
            let mut flows = shards.open_flows(set);
            let ahead = infos[place..].iter().zip(&probes[place..]);
            let side = infos[place].side();
            for (info, probe) in ahead.take(OPEN_FLOWS) {
                // A function keeps something for its shard, and is to see packets in the order in which they came.
                if self.has_visitors && info.side() != side {
                    break;
                }
                if !info.is_usual() || !flows.push(info.shard, &info.key(), *probe, info.now) {
                    break;
                }
            }
            let (entries, locals) = flows.split();
            let opened = entries.len();
            if opened == 0 {
                break;
            }
            let (packets, infos) =
                (&mut packets[place..place + opened], &infos[place..place + opened]);
            let visits = self.has_visitors.then(|| Visits::new(locals, outbox, out.pool()));
            let run = SteadyRun::new(packets, infos, entries, visits);
            let (deadlines, visits) = self.run_opened(counts, run);
            if let Some(visits) = visits {
                let verdicts = visits.into_verdicts().into_iter();
                stopped.extend(verdicts.map(|(at, verdict)| (place + at, verdict)));
            }
            let passed = flows.entries().len();
            for (at, (packet, info)) in packets[..passed].iter().zip(infos).enumerate() {
                if flows.note_arrival(at, info.forward(), packet.device(), packet.stamp()) {
                    out.counters().reordered.increment();
                }
                if let Some(deadline) = deadlines[at] {
                    flows.set_deadline(at, deadline);
                }
            }
            place += passed;
            if passed < opened {
                break;
            }
        }
        place
    }

    /// Runs the chain on packets whose flows are open, and leaves open those of the packets that it has run on.
    fn run_opened<'r>(
        &self,
        counts: &[Counter],
        mut run: SteadyRun<'r, '_>,
    ) -> ([Option<Time>; OPEN_FLOWS], Option<Visits<'r>>) {
        Undecided { links: &self.links, counts }.decide(&mut run, None);
        if let Some(own) = &self.deadlines {
            for (at, deadline) in run.deadlines[..run.entries.len()].iter_mut().enumerate() {
                *deadline = own.after_run(run.entries, at, *deadline);
            }
        }
        (run.deadlines, run.visits)
    }

    /// As [`SteadyChain::shortest`](crate::steady::SteadyChain::shortest).
    pub(super) fn shortest(&self, counts: &[Counter]) -> Nanos {
        let mut rest = counts;
        let each = self.links.iter().map(|link| {
            let (own, behind) = rest.split_at(link.counts());
            rest = behind;
            link.shortest(own)
        });
        each.min().unwrap_or_default()
    }

    /// As [`SteadyChain::may_leave`](crate::steady::SteadyChain::may_leave).
    fn may_leave(&self, counts: &[Counter], entries: &EntryColumn<'_>) -> bool {
        let mut rest = counts;
        self.links.iter().all(|link| {
            let (own, behind) = rest.split_at(link.counts());
            rest = behind;
            link.may_leave(own, entries)
        })
    }

    /// Whether a flow may leave its lane.
    pub(super) fn lets_leave(&self, set: StateBits, counts: &[Counter], flow: FlowMut<'_>) -> bool {
        EntryColumn::one(flow, set).is_some_and(|entries| self.may_leave(counts, &entries))
    }

    /// Runs the chain on packets of flows of other lanes, up to one about which it does not decide, and returns how many there
    /// were.
    pub(super) fn run_guests(
        &self,
        set: StateBits,
        counts: &[Counter],
        batch: &mut Batch,
        flows: &mut OffloadedFlows,
        counters: &LaneCounters,
    ) -> usize {
        let (packets, infos, _) = batch.parts();
        let passes = |(packet, info): (&mut Mbuf, &mut PacketInfo)| {
            self.pass_guest(set, counts, packet, info, flows, counters)
        };
        packets.iter_mut().zip(infos).map(passes).take_while(|passes| *passes).count()
    }

    fn pass_guest(
        &self,
        set: StateBits,
        counts: &[Counter],
        packet: &mut Mbuf,
        info: &PacketInfo,
        flows: &mut OffloadedFlows,
        counters: &LaneCounters,
    ) -> bool {
        let flow = info.offloaded().and_then(|number| flows.get_mut(number));
        let Some(flow) = flow.filter(|flow| info.is_usual() && !flow.is_expired(info.now)) else {
            return false;
        };
        let Some(mut entries) = EntryColumn::detached(flow, set) else { return false };
        if !self.may_leave(counts, &entries) {
            return false;
        }
        let (packets, infos) = (std::slice::from_mut(packet), std::slice::from_ref(info));
        let run = SteadyRun::new(packets, infos, &mut entries, None);
        let ([deadline, ..], _) = self.run_opened(counts, run);
        if entries.is_empty() {
            return false;
        }
        let Some(mut flow) = flow.open(()) else { return false };
        if flow.note_arrival(info.forward(), packets[0].device(), packets[0].stamp()) {
            counters.reordered.increment();
        }
        if let Some(deadline) = deadline {
            flow.set_deadline(deadline);
        }
        true
    }
}
