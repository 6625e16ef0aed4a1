//! Runs a chain on the packets of a lane: looks flows up in stages, so that the memory a packet needs
//! is on its way while others are worked on, and does what the functions decide.

pub(crate) mod apart;
mod blocked;
mod execution;
mod fast_path;
mod flood;
mod flow_end;
mod following;
mod journal;
mod notes;
mod offloading;
mod routed;
mod shared_burst;
mod transaction;
mod walking;

use std::sync::Arc;
use std::time::Duration;

use rheostat_base::sync::succession::{Follower, Succession};
use rheostat_base::{Counter, DropReason, LaneId, ShardId, Time};
use rheostat_ip::{Admission, Stack};
use rheostat_packet::{BURST, Mbuf};
use rheostat_run::listing::WalkBoard;
use rheostat_run::{
    Batch, BurstStage, Metrics, MetricsPart, OffloadingService, Output, PacketInfo, Routes,
    Service, ServiceSpec, ShardSet,
};
use rheostat_state::{FlowId, Probe, Shard};
use rheostat_steer::Side;

pub(crate) use self::fast_path::{FastPath, FastPathCx};
use self::journal::Journal;
use self::routed::goes_to_chain;
use self::shared_burst::Transactions;
use self::walking::Walking;
use crate::chain::Chain;
use crate::chain_shard::ChainShard;
use crate::cx::Outbox;
use crate::function_spec::FunctionSpec;
use crate::verdict::{Outcome, Verdict};

/// How long it takes to visit every shard once for timers and periodic handlers.
const ROUND: Duration = Duration::from_millis(512);
/// Shards that a lane with next to no packets visits in a row: with 128 shards, it wakes up 16 times a second. Others visit one.
const ROW: u32 = 16;

/// A chain as the service of one lane.
#[derive(Debug)]
pub struct ChainService<C: Chain> {
    chain: Arc<C>,
    /// Whether that is in force.
    follower: Follower<C>,
    /// Turns of shared shards until each has had one by this chain.
    turns_left: usize,
    spec: FunctionSpec,
    is_stateful: bool,
    /// What the chain's fast path counts.
    counts: Box<[Counter]>,
    routes: Routes,
    /// Where devices have addresses: the network layer.
    stack: Option<Box<Stack>>,
    /// Its decision about each packet of the batch.
    admissions: Vec<Admission>,
    outbox: Outbox,
    /// What a chain on shared objects needs besides.
    transactions: Transactions,
    journal: Journal<C>,
    /// The flow that a function has closed, and when: it ends behind the packet, or the transaction.
    closing: Option<(ShardId, FlowId, Time)>,
    /// Packets of the batch that the fast path stops.
    stopped: Vec<(usize, Verdict)>,
    /// Shards from whose tables a flow was removed during this burst.
    dirty: Vec<ShardId>,
    next_shard: ShardId,
    next_tick: Time,
    /// Packets since shards were last visited.
    packets: usize,
    /// The lane's part in lists of what its shards hold.
    walking: Walking,
}

impl<C: Chain> ChainService<C> {
    /// The service of one lane. All lanes share `chain`, and nothing takes its place.
    ///
    /// # Panics
    /// When functions of the chain work on objects of different [`Objects`](rheostat_state::txn::Objects).
    pub fn new(chain: Arc<C>, routes: Routes) -> ChainService<C> {
        ChainService::following(&Arc::new(Succession::new(chain)), LaneId(0), routes)
    }

    /// The service of one lane, which uses the chain in force.
    pub fn following(chains: &Arc<Succession<C>>, lane: LaneId, routes: Routes) -> ChainService<C> {
        let (follower, chain) = chains.follow(lane);
        // Refuses chains of functions that do not go together.
        const { _ = C::SHARED };
        let _ = chain.objects();
        let (spec, is_stateful) = (chain.spec(), chain.is_stateful());
        let counts = spec.counts.iter().map(|_| Counter::new()).collect();
        ChainService {
            chain,
            follower,
            turns_left: 0,
            spec,
            is_stateful,
            counts,
            routes,
            stack: None,
            admissions: Vec::new(),
            outbox: Outbox::default(),
            transactions: Transactions::default(),
            journal: Journal::default(),
            closing: None,
            stopped: Vec::new(),
            dirty: Vec::new(),
            next_shard: ShardId(0),
            next_tick: Time::ZERO,
            packets: 0,
            walking: Walking::new(Arc::default()),
        }
    }

    /// The same, which takes part in the walks of this board.
    #[must_use]
    pub fn with_walks(self, board: Arc<WalkBoard>) -> ChainService<C> {
        ChainService { walking: Walking::new(board), ..self }
    }

    /// The third stage: runs the chain on each packet and does what it decides. Packets that are to be forwarded stay where they
    /// are, whether the fast path or the general handlers had to do with them, until one is not to be: then all before it leave
    /// at once.
    fn run(&mut self, batch: &mut Batch, shards: &mut ShardSet, out: &mut Output) {
        // How many have left, and how many of the others are to be forwarded.
        let (mut from, mut passed) = (0, 0);
        if !self.chain.fast_path(&self.counts).exists() {
            return self.run_all_general(batch.len(), &mut from, batch, shards, out);
        }
        loop {
            passed = self.run_fast(passed, &mut from, batch, shards, out);
            if passed < batch.len() && shards.has_offloaded() {
                let away = self.count_away(passed, batch, shards);
                if away > 0 {
                    self.forward_by_device(passed, batch, out);
                    batch.drain_first(away, |packet, info, _| out.offload(packet, info));
                    from += passed + away;
                    passed = 0;
                    continue;
                }
            }
            let refused = batch.found().get(passed).map(PacketInfo::is_usual);
            let elsewhere =
                batch.found().get(passed).and_then(|info| self.elsewhere(info, shards, out));
            let verdict = match refused.filter(|_| elsewhere.is_none()) {
                Some(_) => self.run_in_place(passed, from + passed, batch, shards, out),
                None => Ok(Verdict::Forward),
            };
            if elsewhere.is_none() && refused.is_some_and(|is_usual| self.stays(verdict, is_usual))
            {
                passed += 1;
                continue;
            }
            self.depart_passed(passed, &mut from, batch, out);
            passed = 0;
            if refused.is_none() {
                return;
            }
            batch.drain_first(1, |packet, info, _| {
                if let Some(elsewhere) = elsewhere {
                    return elsewhere.leave(packet, info, out);
                }
                out.set_now(info.now);
                self.apply_verdict(packet, info.side(), from, verdict, out);
                self.send_originated(out);
            });
            from += 1;
            // Those behind it that are not for the fast path.
            let others = batch.iter().take_while(|info| !info.is_usual()).count();
            self.run_all_general(others, &mut from, batch, shards, out);
        }
    }

    /// Runs the fast path behind the first `passed` packets of a batch, which are to be forwarded, up to a packet that is not for
    /// it. Returns how many are to be forwarded then; packets that it stopped have left, and all before them.
    #[inline(always)]
    fn run_fast(
        &mut self,
        passed: usize,
        from: &mut usize,
        batch: &mut Batch,
        shards: &mut ShardSet,
        out: &mut Output,
    ) -> usize {
        let ChainService { chain, counts, outbox, stopped, .. } = self;
        let cx = &mut FastPathCx { shards, out, outbox, stopped };
        let passed = chain.fast_path(counts).run(batch, passed, cx);
        match C::STOPS && (!self.stopped.is_empty() || self.has_originated()) {
            true => self.depart_stopped(passed, from, batch, out),
            false => passed,
        }
    }

    /// Does with packets what the fast path decided that stopped them, and forwards those before them, of the first `passed` of a
    /// batch. Returns how many of these are left.
    #[inline(never)]
    fn depart_stopped(
        &mut self,
        passed: usize,
        from: &mut usize,
        batch: &mut Batch,
        out: &mut Output,
    ) -> usize {
        let (mut gone, mut stopped) = (0, std::mem::take(&mut self.stopped));
        for (place, verdict) in stopped.drain(..) {
            self.depart_passed(place - gone, from, batch, out);
            batch.drain_first(1, |packet, info, _| {
                out.set_now(info.now);
                self.apply_verdict(packet, info.side(), *from, Ok(verdict), out);
            });
            *from += 1;
            gone = place + 1;
        }
        self.stopped = stopped;
        if !self.has_originated() {
            return passed - gone;
        }
        self.depart_passed(passed - gone, from, batch, out);
        self.send_originated(out);
        0
    }

    /// Forwards the first `count` packets of a batch, which had the places behind `from` when it was admitted.
    fn depart_passed(
        &mut self,
        count: usize,
        from: &mut usize,
        batch: &mut Batch,
        out: &mut Output,
    ) {
        match self.stack {
            None => self.forward_by_device(count, batch, out),
            Some(_) => self.depart_first(count, *from, batch, out),
        }
        *from += count;
    }

    /// Whether functions have made packets that are to be sent, or could not be made.
    fn has_originated(&self) -> bool {
        !self.outbox.packets.is_empty() || self.outbox.alloc_failed > 0
    }

    /// Takes the first `count` packets out of a batch, runs the chain on each, whatever that takes, and does what it decides. They
    /// had the places behind `from` when the batch was admitted.
    fn run_all_general(
        &mut self,
        count: usize,
        from: &mut usize,
        batch: &mut Batch,
        shards: &mut ShardSet,
        out: &mut Output,
    ) {
        batch.drain_first(count, |packet, info, probe| {
            self.run_general(packet, info, *from, probe, shards, out);
            *from += 1;
        });
    }

    /// Runs the chain on the packet that is `at` in the batch, whatever that takes, where it lies: what it decides is yet to be
    /// done. The packet had `place` when the batch was admitted.
    #[inline(never)]
    fn run_in_place(
        &mut self,
        at: usize,
        place: usize,
        batch: &mut Batch,
        shards: &mut ShardSet,
        out: &mut Output,
    ) -> Outcome<Verdict> {
        let (packets, infos, probes) = batch.parts();
        self.evaluate(&mut packets[at], &infos[at], place, probes[at], shards, out)
    }

    /// Whether a packet with this verdict leaves with others before and behind it. On a network, only usual ones do.
    fn stays(&self, verdict: Outcome<Verdict>, is_usual: bool) -> bool {
        let is_forwarded = verdict == Ok(Verdict::Forward) && !self.has_originated();
        is_forwarded && (is_usual || self.stack.is_none())
    }

    /// Forwards the first `count` packets of a batch, all in a row that arrived on one device at once.
    fn forward_by_device(&self, mut count: usize, batch: &mut Batch, out: &mut Output) {
        while count > 0 {
            let packets = &batch.parts().0[..count];
            let device = packets[0].device();
            let run = packets.iter().take_while(|packet| packet.device() == device).count();
            batch.send_first(run, &mut out.sender(self.routes.out_of(device)));
            count -= run;
        }
    }

    /// Runs the chain on the packet at `place`, whatever that takes, and does what it decides.
    #[inline(never)]
    fn run_general(
        &mut self,
        mut packet: Mbuf,
        info: &PacketInfo,
        place: usize,
        probe: Probe,
        shards: &mut ShardSet,
        out: &mut Output,
    ) {
        if let Some(elsewhere) = self.elsewhere(info, shards, out) {
            return elsewhere.leave(packet, info, out);
        }
        let verdict = self.evaluate(&mut packet, info, place, probe, shards, out);
        self.apply_verdict(packet, info.side(), place, verdict, out);
        self.send_originated(out);
    }

    /// What the chain decides about the packet at `place`, if it gets the packet. It is noted if the packet is traced.
    #[inline(always)]
    fn evaluate(
        &mut self,
        packet: &mut Mbuf,
        info: &PacketInfo,
        place: usize,
        probe: Probe,
        shards: &mut ShardSet,
        out: &mut Output,
    ) -> Outcome<Verdict> {
        out.set_now(info.now);
        if !goes_to_chain(self.admissions.get(place)) {
            return Ok(Verdict::Forward);
        }
        let traced = packet.mark() != 0;
        let known = traced && self.note_lookup(packet, info, shards, out);
        let verdict = self.evaluate_owned(packet, info, probe, shards, out);
        if traced {
            let made = self.outbox.len();
            self.note_decisions(packet, info, known, made, shards, out);
        }
        verdict
    }

    /// Does with the packet at `place` what the chain has decided, or the network layer before it.
    #[inline(always)]
    fn apply_verdict(
        &mut self,
        packet: Mbuf,
        side: Side,
        place: usize,
        verdict: Outcome<Verdict>,
        out: &mut Output,
    ) {
        match self.admissions.get(place) {
            None => self.apply_chain_verdict(packet, side, verdict, out),
            Some(&admission) => self.apply_routed_verdict(packet, side, admission, verdict, out),
        }
    }

    #[inline]
    fn apply_chain_verdict(
        &mut self,
        mut packet: Mbuf,
        side: Side,
        verdict: Outcome<Verdict>,
        out: &mut Output,
    ) {
        match verdict {
            Ok(Verdict::Forward) => {
                let device = self.routes.out_of(packet.device());
                out.send(device, packet);
            }
            Ok(Verdict::Send(device)) => out.send(device, packet),
            Ok(Verdict::Flood(devices)) => flood::send(packet, devices, out),
            Ok(Verdict::Drop(reason)) => out.drop(packet, reason),
            Ok(Verdict::Consume) => out.consume(packet),
            Ok(Verdict::Hairpin) if side == Side::Inside => {
                packet.set_device(self.routes.out_of(packet.device()));
                out.reinject(packet);
            }
            Ok(Verdict::Restart | Verdict::Hairpin) | Err(_) => {
                // In a transaction it is undone; what is there is of flows that have ended.
                if !C::SHARED {
                    for (_, packet) in self.outbox.packets.drain(..) {
                        out.pool().free(packet);
                    }
                    self.outbox.alloc_failed = 0;
                }
                out.drop(packet, DropReason::HandlerAbort);
            }
        }
    }

    /// Sends what functions made, if they made something.
    #[inline]
    fn send_originated(&mut self, out: &mut Output) {
        if self.has_originated() {
            self.send_all_originated(out);
        }
    }

    #[cold]
    fn send_all_originated(&mut self, out: &mut Output) {
        let Outbox { packets, alloc_failed, .. } = &mut self.outbox;
        out.counters().originated.add(*alloc_failed + packets.len() as u64);
        out.counters().dropped.add(DropReason::NoBuffer, std::mem::take(alloc_failed));
        if self.stack.is_none() {
            for (device, packet) in packets.drain(..) {
                out.send(device, packet);
            }
            return;
        }
        for (_, packet) in std::mem::take(packets) {
            self.send_own(packet, out);
        }
    }

    /// Gives the entries of removed flows back, now that no packet of the burst can still find them.
    fn end_tables(&mut self, shards: &mut ShardSet) {
        for shard in self.dirty.drain(..) {
            if let Some(shard) = shards.get_mut(shard) {
                shard.table.end_burst();
            }
        }
    }

    /// Ends a burst, or a turn of timers.
    fn end_burst(&mut self, shards: &mut ShardSet, out: &Output) {
        self.end_tables(shards);
        out.note_flows();
        if C::TRANSACTIONS {
            out.counters().panics.add(std::mem::take(&mut self.outbox.panics));
            self.rest();
        }
    }
}

impl<C: Chain> Service for ChainService<C> {
    fn spec(&self) -> ServiceSpec {
        ServiceSpec { is_stateful: self.is_stateful, ..ServiceSpec::default() }
    }

    fn process(&mut self, batch: &mut Batch, shards: &mut ShardSet, out: &mut Output) {
        self.keep_up(shards);
        if !self.is_stateful {
            return self.relay(batch, out);
        }
        self.packets += batch.len();
        self.admit(batch, out);
        batch.probe(shards);
        out.end_stage(BurstStage::Probe);
        self.open_transactions(out);
        match C::SHARED {
            true => self.run_shared(batch, shards, out),
            false => self.run(batch, shards, out),
        }
        self.end_burst(shards, out);
    }

    fn shard_arrived(&mut self, shard: &mut Shard) {
        self.adapt(shard);
    }

    fn offloading(&mut self) -> Option<&mut dyn OffloadingService> {
        self.lets_flows_leave().then_some(self as &mut dyn OffloadingService)
    }

    fn tick(&mut self, shards: &mut ShardSet, out: &mut Output, now: Time) {
        self.keep_up(shards);
        out.set_now(now);
        let walks = self.walking.is_due(now);
        if walks {
            self.open_transactions(out);
            self.walk(shards, out, now);
            self.send_originated(out);
            self.end_burst(shards, out);
        }
        if let Some(stack) = &mut self.stack {
            stack.tick(out);
        }
        if (walks || self.stack.is_some()) && self.next_tick > now {
            return;
        }
        let owned = shards.owned().count() as u32;
        if owned == 0 {
            // A lane without shards has no timers but those of the network layer.
            self.next_tick = now + ROUND;
            return;
        }
        let row = if self.packets < BURST { ROW.min(owned) } else { 1 };
        self.open_transactions(out);
        if self.visit_row(row, shards, out, now) {
            self.next_tick = now + ROUND * row / owned;
            self.packets = 0;
            self.walking.recount();
        }
        self.send_originated(out);
        self.end_burst(shards, out);
    }

    fn finish(&mut self, shards: &mut ShardSet, out: &mut Output, now: Time) {
        // Shards that lanes shared are with the lane that took them all.
        self.follow(shards);
        out.set_now(now);
        self.open_transactions(out);
        let owned: Vec<_> = shards.owned().collect();
        for id in owned {
            while self.visit(id, shards, out, now, usize::MAX).is_none() {}
            if self.spec.ends_with_run {
                self.end_all(id, shards, out, now);
            }
            self.send_originated(out);
        }
        if let Some(stack) = &mut self.stack {
            stack.finish(out);
        }
        self.end_burst(shards, out);
    }

    fn next_deadline(&self) -> Option<Time> {
        let of_stack = self.stack.as_ref().map(|stack| stack.next_deadline());
        let own = of_stack.map_or(self.next_tick, |deadline| deadline.min(self.next_tick));
        Some(self.walking.next_deadline().map_or(own, |deadline| deadline.min(own)))
    }

    fn metrics(&self, part: MetricsPart<'_>, metrics: &mut Metrics) {
        match part {
            MetricsPart::Lane => {
                let counts = self.spec.counts.iter().zip(&self.counts);
                counts.for_each(|(name, count)| metrics.add(name, count.get()));
            }
            MetricsPart::Shard(shard) => {
                let local: &ChainShard<C::Shard> = shard.local();
                self.chain.metrics(Some(&local.state), metrics);
            }
            MetricsPart::Shared => {
                self.chain.metrics(None, metrics);
                let Some(objects) = self.chain.objects() else { return };
                let total = objects.profile().total();
                metrics.add("transactions", total.commits);
                metrics.add("transactions_aborted", total.aborts);
                metrics.add("transactions_alone", total.alone);
            }
        }
    }
}
