//! Runs a chain on shared objects: a burst is cut into sub-bursts, and each of them is one transaction
//! (NFOS, section 4.6). What packets come to is carried out only when it is committed.
//!
//! A transaction that conflicts is undone and run again with half of its packets; it grows by one packet
//! with each that is committed. A packet that conflicts again and again on its own runs alone in the
//! end, while other lanes wait. Whatever cannot be undone, such as the end of a flow, has a transaction of
//! its own, between those of packets.

use std::panic::{AssertUnwindSafe, catch_unwind};

use rheostat_packet::BURST;
use rheostat_run::{Output, ShardSet};

use super::ChainService;
use super::blocked::{Blocked, Head};
use super::shared_burst::{Decision, SubBurst};
use crate::chain::Chain;
use crate::verdict::{Ending, Outcome, Verdict};

/// How often a transaction of one packet is tried before it runs while no other does.
pub(super) const TIMEOUT: u32 = 8;

/// What a transaction came to.
enum Attempt {
    Committed,
    /// It conflicted with another, and is undone.
    Conflict,
    /// It is undone, because the packet at this place in the batch needs something.
    Stopped(usize, Blocked),
}

impl<C: Chain> ChainService<C> {
    /// Runs all packets of a batch.
    pub(super) fn transact(
        &mut self,
        mut sub_burst: SubBurst<'_>,
        shards: &mut ShardSet,
        out: &mut Output,
    ) {
        let base = self.transactions.decisions.len();
        let mut head = Head::default();
        loop {
            let start = self.transactions.decisions.len() - base;
            if start == sub_burst.packets.len() {
                break;
            }
            let most = head.most.unwrap_or(self.transactions.size);
            let end = sub_burst.packets.len().min(start + most);
            match self.attempt(&mut sub_burst, start, end, &head, shards, out) {
                Attempt::Committed => {
                    head = Head::default();
                    let committed = self.transactions.decisions.len() - base - start;
                    let size = &mut self.transactions.size;
                    *size = (*size + usize::from(committed >= *size)).min(BURST);
                }
                Attempt::Conflict => {
                    head.aborts += u32::from(end - start == 1);
                    head.most = None;
                    self.transactions.size = ((end - start) / 2).max(1);
                }
                // Those before it first, without it: then it is the head.
                Attempt::Stopped(at, _) if at > start => head.most = Some(at - start),
                Attempt::Stopped(at, blocked) => {
                    let decided =
                        self.resolve(blocked, &sub_burst.infos[at], &mut head, shards, out);
                    if let Some(verdict) = decided {
                        self.decide(verdict);
                        head = Head::default();
                    }
                }
            }
        }
    }

    /// Runs the packets from `start` to `end`, or fewer, in one transaction.
    fn attempt(
        &mut self,
        sub_burst: &mut SubBurst<'_>,
        start: usize,
        end: usize,
        head: &Head,
        shards: &mut ShardSet,
        out: &mut Output,
    ) -> Attempt {
        let before = self.transactions.decisions.len();
        self.journal.start(self.outbox.mark());
        let txn = self.outbox.txn();
        if head.aborts >= TIMEOUT {
            txn.make_serial();
        }
        txn.begin(sub_burst.infos[start].now);
        // Whatever a handler has left half done is undone below.
        let ran = catch_unwind(AssertUnwindSafe(|| {
            self.run_some(sub_burst, start, end, head, shards, out)
        }));
        let blocked = match ran {
            Ok(None) if self.outbox.txn().commit().is_ok() => {
                self.journal.keep(shards, out.counters());
                if let Some((shard, flow, now)) = self.closing.take() {
                    self.end(flow, shard, shards, out, now, Ending::Closed);
                }
                return Attempt::Committed;
            }
            Ok(None) => Blocked::Conflict,
            // A handler may have missed that there was a conflict: then nothing else counts.
            _ if self.outbox.txn().is_conflicted() => Blocked::Conflict,
            Ok(Some(blocked)) => blocked,
            Err(_) => Blocked::Panic,
        };
        self.outbox.txn().roll_back();
        let at = start + self.transactions.decisions.len() - before;
        let ChainService { chain, outbox, transactions, journal, closing, .. } = self;
        transactions.decisions.truncate(before);
        *closing = None;
        journal.roll_back(&**chain, sub_burst.packets, outbox, shards, out);
        match blocked {
            Blocked::Conflict => Attempt::Conflict,
            blocked => Attempt::Stopped(at, blocked),
        }
    }

    /// Executes the chain on packets until one needs something. Where that was known before any handler saw it, those
    /// before it can be committed; so it is when a flow is to be ended behind them.
    fn run_some(
        &mut self,
        sub_burst: &mut SubBurst<'_>,
        start: usize,
        end: usize,
        head: &Head,
        shards: &mut ShardSet,
        out: &mut Output,
    ) -> Option<Blocked> {
        for at in start..end {
            let (info, probe) = (&sub_burst.infos[at], sub_burst.probes[at]);
            let fresh = Head::default();
            let about = if at == start { head } else { &fresh };
            self.outbox.txn().set_now(info.now);
            self.journal.turn_to(at);
            match self.execute(&mut sub_burst.packets[at], info, probe, about, shards, out) {
                Ok(verdict) => self.decide(Ok(verdict)),
                Err(blocked) if blocked.is_known_before() && at > start => return None,
                Err(blocked) => return Some(blocked),
            }
            if self.closing.is_some() {
                return None;
            }
        }
        None
    }

    fn decide(&mut self, verdict: Outcome<Verdict>) {
        let made = self.outbox.len();
        self.transactions.decisions.push(Decision { verdict, made });
    }
}
