//! A burst of packets for a chain on shared objects: first all of them are run, in transactions, and then what
//! each has come to is carried out.

use std::collections::VecDeque;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use rheostat_base::DeviceId;
use rheostat_packet::{BURST, Mbuf};
use rheostat_run::{Batch, Output, PacketInfo, ShardSet};
use rheostat_state::Probe;
use rheostat_state::txn::Txn;

use super::ChainService;
use super::routed::goes_to_chain;
use crate::chain::Chain;
use crate::cx::OutboxLen;
use crate::function::Ahead;
use crate::packet::Packet;
use crate::reading::Reading;
use crate::verdict::{Outcome, Verdict};

/// The state of a lane's transactions.
pub(super) struct Transactions {
    /// Packets of the next transaction at most.
    pub(super) size: usize,
    /// What the packets of the burst came to, as far as that is committed.
    pub(super) decisions: Vec<Decision>,
    /// What was originated for them.
    outbox: VecDeque<(DeviceId, Mbuf)>,
}

/// What a packet came to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Decision {
    pub(super) verdict: Outcome<Verdict>,
    /// What had been originated by then in this burst.
    pub(super) made: OutboxLen,
}

/// Packets to be run.
pub(super) struct SubBurst<'a> {
    pub(super) packets: &'a mut [Mbuf],
    pub(super) infos: &'a [PacketInfo],
    pub(super) probes: &'a [Probe],
}

/// What the fast path has found out about the packets of a burst.
struct ReadBurst<C> {
    clues: [Option<C>; BURST],
    len: usize,
}

impl<C: Copy> ReadBurst<C> {
    fn new() -> ReadBurst<C> {
        ReadBurst { clues: [None; BURST], len: 0 }
    }

    /// Finds out about the first packets what will be read for them, and requests that.
    #[inline(never)]
    fn look_ahead(
        &mut self,
        reading: &impl Reading<Clue = C>,
        packets: &mut [Mbuf],
        infos: &[PacketInfo],
        out: &Output,
    ) {
        // Whatever a function that panics here has not found out, the general code does.
        let _ = catch_unwind(AssertUnwindSafe(|| {
            for ((packet, info), clue) in packets.iter_mut().zip(infos).zip(&mut self.clues) {
                if !out.is_unusual(packet) {
                    *clue = reading.clue(&Packet::new(packet, info));
                }
                if let Some(clue) = clue {
                    reading.prefetch(clue, Ahead::Keys);
                }
                self.len += 1;
            }
            for clue in self.clues[..self.len].iter().flatten() {
                reading.prefetch(clue, Ahead::Values);
            }
        }));
    }

    /// The clues of the packets from one on.
    fn from(&self, place: usize) -> &[Option<C>] {
        self.clues[..self.len].get(place..).unwrap_or_default()
    }

    /// How many packets from one on have none.
    fn general(&self, place: usize) -> usize {
        match self.from(place).iter().position(Option::is_some) {
            Some(count) => count,
            None => usize::MAX - place,
        }
    }
}

/// Whether the fast path decides about any packet.
fn exists<R: Reading>(_: &R) -> bool {
    R::EXISTS
}

impl Default for Transactions {
    fn default() -> Transactions {
        Transactions { size: BURST, decisions: Vec::new(), outbox: VecDeque::new() }
    }
}

impl fmt::Debug for Transactions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transactions").field("size", &self.size).finish_non_exhaustive()
    }
}

impl<C: Chain> ChainService<C> {
    /// Makes the lane's transactions, when there are none yet.
    #[inline]
    pub(super) fn open_transactions(&mut self, out: &Output) {
        if C::TRANSACTIONS && self.outbox.txn.is_none() {
            self.outbox.txn = self.chain.objects().map(|objects| Txn::new(objects, out.lane()));
        }
    }

    /// The lane holds on to nothing in the objects until it has work again.
    #[inline]
    pub(super) fn rest(&mut self) {
        if let Some(txn) = &mut self.outbox.txn {
            txn.rest();
        }
    }

    /// Runs a burst, and then carries out what its packets came to, in order.
    pub(super) fn run_shared(
        &mut self,
        batch: &mut Batch,
        shards: &mut ShardSet,
        out: &mut Output,
    ) {
        // They come back behind the burst.
        let (chain, counts) = (self.chain.clone(), std::mem::take(&mut self.counts));
        let reading = chain.reading(&counts);
        let (packets, found, probes) = batch.parts();
        let mut read = ReadBurst::new();
        let is_read = exists(&reading) && self.stack.is_none();
        match is_read {
            true => read.look_ahead(&reading, packets, found, out),
            false => self.prefetch(packets, found),
        }
        let (mut from, mut missed) = (0, 0);
        while from < packets.len() {
            let passed = match is_read {
                true => self.read_some(&reading, read.from(from), &found[from..]),
                false => 0,
            };
            from += passed;
            if from == packets.len() {
                break;
            }
            if !goes_to_chain(self.admissions.get(from)) {
                from += 1;
                continue;
            }
            // When one packet after the other needs the general code, several share a transaction again.
            missed = if passed > 0 { 1 } else { 2 * missed + 1 };
            let most = if is_read { read.general(from).max(missed) } else { packets.len() };
            // A packet that is traced has a transaction of its own, so that what is noted is about it.
            let traced = packets[from].mark() != 0;
            let is_apart = |&at: &usize| {
                traced || packets[at].mark() != 0 || !goes_to_chain(self.admissions.get(at))
            };
            let end = packets.len().min(from + most);
            let to = (from + 1..end).find(is_apart).unwrap_or(end);
            let known = traced && self.note_lookup(&packets[from], &found[from], shards, out);
            let before = self.outbox.len();
            self.transact(
                SubBurst {
                    packets: &mut packets[from..to],
                    infos: &found[from..to],
                    probes: &probes[from..to],
                },
                shards,
                out,
            );
            if traced {
                let made = self.outbox.len().since(before);
                self.note_decisions(&packets[from], &found[from], known, made, shards, out);
            }
            from = to;
        }
        drop(reading);
        self.counts = counts;
        self.commit_decisions(batch, out);
    }

    /// Lets the fast path decide about packets with these clues, up to the first about which it does not, and returns how many
    /// those are. They are in one transaction, which only reads: it takes effect when it began, or not at all.
    #[inline(never)]
    fn read_some<R: Reading>(
        &mut self,
        reading: &R,
        clues: &[Option<R::Clue>],
        infos: &[PacketInfo],
    ) -> usize {
        let (Some(Some(_)), Some(first)) = (clues.first(), infos.first()) else { return 0 };
        let made = self.outbox.len();
        let ChainService { outbox, transactions, .. } = self;
        let (txn, decisions) = (outbox.txn(), &mut transactions.decisions);
        let before = decisions.len();
        txn.begin(first.now);
        // A function that panics here has changed nothing. The general code sees the packet next.
        let ran = catch_unwind(AssertUnwindSafe(|| {
            for (clue, info) in clues.iter().zip(infos) {
                let Some(clue) = clue else { break };
                txn.set_now(info.now);
                let Ok(Some(device)) = reading.decide(txn, clue) else { break };
                decisions.push(Decision { verdict: Ok(Verdict::Send(device)), made });
            }
        }));
        if ran.is_err() || txn.commit().is_err() {
            txn.roll_back();
            decisions.truncate(before);
        }
        decisions.len() - before
    }

    /// Lets functions ask for what the packets of a burst will need.
    fn prefetch(&self, packets: &mut [Mbuf], infos: &[PacketInfo]) {
        let ask = |packets: &mut [Mbuf], what| {
            for (packet, info) in packets.iter_mut().zip(infos) {
                self.chain.prefetch(&Packet::new(packet, info), what);
            }
        };
        // A function that panics here has been given nothing yet. It goes without.
        let _ = catch_unwind(AssertUnwindSafe(|| {
            ask(packets, Ahead::Keys);
            ask(packets, Ahead::Values);
        }));
    }

    /// Applies what was decided about the packets of a burst, in order.
    fn commit_decisions(&mut self, batch: &mut Batch, out: &mut Output) {
        let mut decisions = std::mem::take(&mut self.transactions.decisions);
        let mut in_order = decisions.drain(..);
        self.transactions.outbox.extend(self.outbox.packets.drain(..));
        self.outbox.alloc_failed = 0;
        let mut done = OutboxLen::default();
        for ((packet, info), place) in batch.drain().zip(0..) {
            out.set_now(info.now);
            if !goes_to_chain(self.admissions.get(place)) {
                self.apply_verdict(packet, info.side(), place, Ok(Verdict::Forward), out);
                continue;
            }
            let Decision { verdict, made } =
                in_order.next().expect("every packet comes to something");
            if made != done {
                let ChainService { outbox, transactions, .. } = self;
                let own = transactions.outbox.drain(..made.packets - done.packets);
                outbox.packets.extend(own);
                outbox.alloc_failed = made.alloc_failed - done.alloc_failed;
                done = made;
            }
            self.apply_verdict(packet, info.side(), place, verdict, out);
            self.send_originated(out);
        }
        drop(in_order);
        self.transactions.decisions = decisions;
    }
}
