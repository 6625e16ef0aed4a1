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
        if C::SHARED && self.outbox.txn.is_none() {
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
        probes: &[Probe],
        shards: &mut ShardSet,
        out: &mut Output,
    ) {
        let (packets, found) = batch.parts();
        self.prefetch(packets, found);
        let mut from = 0;
        while from < packets.len() {
            if !goes_to_chain(self.admissions.get(from)) {
                from += 1;
                continue;
            }
            // A packet that is followed has a transaction of its own, so that what is noted is about it.
            let followed = packets[from].mark() != 0;
            let is_apart = |&at: &usize| {
                followed || packets[at].mark() != 0 || !goes_to_chain(self.admissions.get(at))
            };
            let to = (from + 1..packets.len()).find(is_apart).unwrap_or(packets.len());
            let known = followed && self.note_lookup(&packets[from], &found[from], shards, out);
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
            if followed {
                let made = self.outbox.len().since(before);
                self.note_decisions(&packets[from], &found[from], known, made, shards, out);
            }
            from = to;
        }
        self.commit_decisions(batch, out);
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
                self.apply_verdict(packet, info.side, place, Ok(Verdict::Forward), out);
                continue;
            }
            let Decision { verdict, made } =
                in_order.next().expect("every packet comes to something");
            let ChainService { outbox, transactions, .. } = self;
            let own = transactions.outbox.drain(..made.packets - done.packets);
            outbox.packets.extend(own);
            outbox.alloc_failed = made.alloc_failed - done.alloc_failed;
            done = made;
            self.apply_verdict(packet, info.side, place, verdict, out);
            self.send_originated(out);
        }
        drop(in_order);
        self.transactions.decisions = decisions;
    }
}
