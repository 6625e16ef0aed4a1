//! Packets of known flows on the fast path of a chain that is put together at run time.

use rheostat_base::{Counter, Nanos};
use rheostat_packet::Mbuf;
use rheostat_run::{Batch, LaneCounters, OffloadedFlows, PacketInfo};
use rheostat_state::{EntryColumn, FlowMut, OPEN_FLOWS, StateBits};

use super::DynamicChain;
use super::steady_run::{SteadyRun, UNCHANGED, Undecided};
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
            let deadlines = if self.has_visitors {
                let mut visits = Visits::new(locals, outbox, out.pool());
                let mut run = SteadyRun::new(packets, infos, entries, Some(&mut visits));
                self.run_opened(counts, &mut run);
                let deadlines = run.deadlines;
                let verdicts = visits.into_verdicts().into_iter();
                stopped.extend(verdicts.map(|(at, verdict)| (place + at, verdict)));
                deadlines
            } else {
                let mut run = SteadyRun::new(packets, infos, entries, None);
                self.run_opened(counts, &mut run);
                run.deadlines
            };
            let passed = flows.entries().len();
            for (at, (packet, info)) in packets[..passed].iter().zip(infos).enumerate() {
                let arrival = (info.forward(), packet.device(), packet.stamp());
                let deadline = Some(deadlines[at]).filter(|deadline| *deadline != UNCHANGED);
                if flows.note_packet(at, arrival, deadline) {
                    out.counters().reordered.increment();
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
    #[inline(always)]
    fn run_opened(&self, counts: &[Counter], run: &mut SteadyRun<'_, '_, '_>) {
        Undecided { links: &self.links, counts }.decide(run, None);
        let Some(own) = &self.deadlines else { return };
        for at in 0..run.entries.len() {
            let requested = Some(run.deadlines[at]).filter(|deadline| *deadline != UNCHANGED);
            let earliest = own.after_run(run.entries, at, requested);
            run.deadlines[at] = earliest.unwrap_or(UNCHANGED);
        }
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
        let mut run = SteadyRun::new(packets, infos, &mut entries, None);
        self.run_opened(counts, &mut run);
        let [deadline, ..] = run.deadlines;
        if entries.is_empty() {
            return false;
        }
        let Some(mut flow) = flow.open(()) else { return false };
        if flow.note_arrival(info.forward(), packets[0].device(), packets[0].stamp()) {
            counters.reordered.increment();
        }
        if deadline != UNCHANGED {
            flow.set_deadline(deadline);
        }
        true
    }
}
