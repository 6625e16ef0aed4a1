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
            let first_side = infos[place].side();
            let mut side = Some(first_side);
            let ahead = packets[place..].iter().zip(&infos[place..]).zip(&probes[place..]);
            for ((packet, info), probe) in ahead.take(OPEN_FLOWS) {
                let turns = info.side() != first_side;
                // A function keeps something for its shard, and is to see packets in the order in which they came.
                if !info.is_usual() || self.has_visitors && turns {
                    break;
                }
                let arrival = (info.forward(), packet.device(), packet.stamp());
                if !flows.push(info.shard, &info.key(), *probe, info.now, arrival) {
                    break;
                }
                if turns {
                    side = None;
                }
            }
            let (entries, locals) = flows.split();
            let opened = entries.len();
            if opened == 0 {
                break;
            }
            let (packets, infos) =
                (&mut packets[place..place + opened], &infos[place..place + opened]);
            let deadlines = &mut [UNCHANGED; OPEN_FLOWS];
            if self.has_visitors {
                let mut visits = Visits::new(locals, outbox, out.pool());
                let visited = Some(&mut visits);
                let mut run = SteadyRun::new(packets, infos, entries, deadlines, side, visited);
                self.run_opened(counts, &mut run);
                let verdicts = visits.into_verdicts().into_iter();
                stopped.extend(verdicts.map(|(at, verdict)| (place + at, verdict)));
            } else {
                let mut run = SteadyRun::new(packets, infos, entries, deadlines, side, None);
                self.run_opened(counts, &mut run);
            }
            let passed = flows.entries().len();
            for (at, &deadline) in deadlines[..passed].iter().enumerate() {
                if deadline != UNCHANGED {
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
    #[inline(always)]
    fn run_opened(&self, counts: &[Counter], run: &mut SteadyRun<'_, '_, '_>) {
        Undecided::all(&self.links, counts).decide(run, None);
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
        let mut deadlines = [UNCHANGED; OPEN_FLOWS];
        let (all, side) = (&mut deadlines, Some(info.side()));
        let mut run = SteadyRun::new(packets, infos, &mut entries, all, side, None);
        self.run_opened(counts, &mut run);
        let deadline = deadlines[0];
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
