//! Packets of known flows on the fast path of a chain that is put together at run time.

use rheostat_base::{Counter, Nanos};
use rheostat_packet::Mbuf;
use rheostat_run::{Batch, LaneCounters, PacketInfo};
use rheostat_state::{DetachedFlow, EntryColumn, FlowMut, OPEN_FLOWS};

use super::steady_run::{SteadyRun, UNCHANGED, Undecided};
use super::visits::Visits;
use super::{DynamicChain, LinkStage};
use crate::chain_service::{FastPath, FastPathCx};

/// The fast path of the chain.
pub(super) struct DynamicFastPath<'a> {
    pub(super) chain: &'a DynamicChain,
    pub(super) counts: &'a [Counter],
}

impl FastPath for DynamicFastPath<'_> {
    fn exists(&self) -> bool {
        self.chain.steady.is_some()
    }

    fn can_offload(&self) -> bool {
        self.exists() && !self.chain.has_visitors
    }

    fn run(
        &self,
        batch: &mut Batch,
        first: usize,
        FastPathCx { shards, out, outbox, stopped }: &mut FastPathCx<'_>,
    ) -> usize {
        let Some(set) = self.chain.steady else { return first };
        let has_visitors = self.chain.has_visitors;
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
                if !info.is_usual() || has_visitors && turns {
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
            if has_visitors {
                let mut visits = Visits::new(locals, outbox, out.pool());
                let visited = Some(&mut visits);
                let mut run = SteadyRun::new(packets, infos, entries, deadlines, side, visited);
                self.run_opened(&mut run);
                let verdicts = visits.into_verdicts().into_iter();
                stopped.extend(verdicts.map(|(at, verdict)| (place + at, verdict)));
            } else {
                let mut run = SteadyRun::new(packets, infos, entries, deadlines, side, None);
                self.run_opened(&mut run);
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

    fn shortest_life(&self) -> Nanos {
        self.each().map(|(link, counts)| link.shortest(counts)).min().unwrap_or_default()
    }

    fn lets_leave(&self, flow: FlowMut<'_>) -> bool {
        let entries = self.chain.steady.and_then(|set| EntryColumn::one(flow, set));
        self.can_offload() && entries.is_some_and(|entries| self.may_leave(&entries))
    }

    fn pass_guest(
        &self,
        packet: &mut Mbuf,
        info: &PacketInfo,
        flow: &mut DetachedFlow,
        counters: &LaneCounters,
    ) -> bool {
        let Some(set) = self.chain.steady else { return false };
        let Some(mut entries) = EntryColumn::detached(flow, set) else { return false };
        if !self.may_leave(&entries) {
            return false;
        }
        let (packets, infos) = (std::slice::from_mut(packet), std::slice::from_ref(info));
        let mut deadlines = [UNCHANGED; OPEN_FLOWS];
        let (all, side) = (&mut deadlines, Some(info.side()));
        let mut run = SteadyRun::new(packets, infos, &mut entries, all, side, None);
        self.run_opened(&mut run);
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

impl DynamicFastPath<'_> {
    /// The functions, each with its counts.
    fn each(&self) -> impl Iterator<Item = (&dyn LinkStage, &[Counter])> {
        let mut rest = self.counts;
        self.chain.links.iter().map(move |link| {
            let (own, behind) = rest.split_at(link.counts());
            rest = behind;
            (&**link, own)
        })
    }

    fn may_leave(&self, entries: &EntryColumn<'_>) -> bool {
        self.each().all(|(link, counts)| link.may_leave(counts, entries))
    }

    /// Runs the chain on packets whose flows are open, and leaves open those of the packets that it has run on.
    #[inline(always)]
    fn run_opened(&self, run: &mut SteadyRun<'_, '_, '_>) {
        Undecided::all(&self.chain.links, self.counts).decide(run, None);
        let Some(own) = &self.chain.deadlines else { return };
        for at in 0..run.entries.len() {
            let requested = Some(run.deadlines[at]).filter(|deadline| *deadline != UNCHANGED);
            let earliest = own.after_run(run.entries, at, requested);
            run.deadlines[at] = earliest.unwrap_or(UNCHANGED);
        }
    }
}
