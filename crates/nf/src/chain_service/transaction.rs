//! Runs a chain on shared objects: a burst is cut into sub-bursts, and each of them is one transaction
//! (NFOS, section 4.6). What packets come to is carried out only when it is committed.
//!
//! A transaction that conflicts is undone and run again with half of its packets; it grows by one packet
//! with each that is committed. A packet that conflicts again and again on its own runs alone in the
//! end, while other lanes wait. Whatever cannot be undone, such as the end of a flow, has a transaction of
//! its own, between those of packets.

use std::panic::{AssertUnwindSafe, catch_unwind};

use rheostat_base::DropReason;
use rheostat_packet::BURST;
use rheostat_run::{Arrival, LaneState};
use rheostat_state::FlowTable;
use rheostat_state::txn::Abort;

use super::presentation::Need;
use super::shared_burst::{Batch, Settled};
use super::{ChainService, has_key};
use crate::chain::Chain;
use crate::verdict::{Ending, Outcome, Verdict};

/// How often a transaction of one packet is tried before it runs while no other does.
pub(super) const PATIENCE: u32 = 8;

/// What is known about the first packet of the next transaction, once there was one that failed.
#[derive(Debug, Default)]
pub(super) struct Head {
    /// Packets of the next transaction at most: behind them comes one that needs something.
    most: Option<usize>,
    /// How often the packet conflicted on its own.
    aborts: u32,
    /// Whether flows whose time was up have been ended for it.
    pub(super) reclaimed: bool,
    /// Whether its flow has been ended at its wish.
    pub(super) restarted: bool,
    /// What has been done to make room for its flow.
    pub(super) room: Room,
}

/// What has been done to make room in a full table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Room {
    /// Nothing.
    #[default]
    Unknown,
    /// Flows whose time was up were ended.
    Reclaimed,
    /// The flow to be evicted, if there was one, was evicted.
    Exhausted,
}

/// What a transaction came to.
enum Attempt {
    Committed,
    /// It conflicted with another, and is undone.
    Conflict,
    /// It is undone, because the packet at this place in the batch needs something.
    Stopped(usize, Need),
}

impl<C: Chain> ChainService<C> {
    /// Runs all packets of a batch.
    pub(super) fn transact(&mut self, mut batch: Batch<'_>, lane: &mut LaneState<'_, C::Local>) {
        let base = self.transactions.settled.len();
        let mut head = Head::default();
        loop {
            let start = self.transactions.settled.len() - base;
            if start == batch.packets.len() {
                break;
            }
            let most = head.most.unwrap_or(self.transactions.size);
            let end = batch.packets.len().min(start + most);
            match self.attempt(&mut batch, start, end, &head, lane) {
                Attempt::Committed => {
                    head = Head::default();
                    let committed = self.transactions.settled.len() - base - start;
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
                Attempt::Stopped(at, need) => self.meet(need, &batch.arrivals[at], &mut head, lane),
            }
        }
    }

    /// Runs the packets from `start` to `end`, or fewer, in one transaction.
    fn attempt(
        &mut self,
        batch: &mut Batch<'_>,
        start: usize,
        end: usize,
        head: &Head,
        lane: &mut LaneState<'_, C::Local>,
    ) -> Attempt {
        let before = self.transactions.settled.len();
        self.transactions.undo.start(self.originated.made());
        let txn = self.originated.txn();
        if head.aborts >= PATIENCE {
            txn.make_serial();
        }
        txn.begin(batch.arrivals[start].now);
        // Whatever a handler has left half done is undone below.
        let ran = catch_unwind(AssertUnwindSafe(|| self.run_some(batch, start, end, head, lane)));
        let need = match ran {
            Ok(None) if self.originated.txn().commit().is_ok() => {
                self.transactions.undo.keep(lane);
                if let Some((shard, flow, now)) = self.transactions.closing.take() {
                    self.end(flow, shard, lane, now, Ending::Closed);
                }
                return Attempt::Committed;
            }
            Ok(None) => Need::Conflict,
            // A handler may have missed that there was a conflict: then nothing else counts.
            _ if self.originated.txn().is_conflicted() => Need::Conflict,
            Ok(Some(need)) => need,
            Err(_) => Need::Panic,
        };
        self.originated.txn().roll_back();
        let at = start + self.transactions.settled.len() - before;
        let ChainService { chain, originated, transactions, .. } = self;
        transactions.settled.truncate(before);
        transactions.closing = None;
        transactions.undo.roll_back(&**chain, batch.packets, originated, lane);
        match need {
            Need::Conflict => Attempt::Conflict,
            need => Attempt::Stopped(at, need),
        }
    }

    /// Presents packets until one needs something. Where that was known before any handler saw it, those
    /// before it can be committed; so it is when a flow is to be ended behind them.
    fn run_some(
        &mut self,
        batch: &mut Batch<'_>,
        start: usize,
        end: usize,
        head: &Head,
        lane: &mut LaneState<'_, C::Local>,
    ) -> Option<Need> {
        for at in start..end {
            let (arrival, probe) = (&batch.arrivals[at], batch.probes[at]);
            let fresh = Head::default();
            let about = if at == start { head } else { &fresh };
            match self.present(&mut batch.packets[at], at, arrival, probe, about, lane) {
                Ok(verdict) => self.settle(Ok(verdict)),
                Err(need) if need.is_known_before() && at > start => return None,
                Err(need) => return Some(need),
            }
            if self.transactions.closing.is_some() {
                return None;
            }
        }
        None
    }

    fn settle(&mut self, verdict: Outcome<Verdict>) {
        let made = self.originated.made();
        self.transactions.settled.push(Settled { verdict, made });
    }

    /// Does what a packet needs before it can be presented again, or gives it up.
    #[inline(never)]
    fn meet(
        &mut self,
        need: Need,
        arrival: &Arrival,
        head: &mut Head,
        lane: &mut LaneState<'_, C::Local>,
    ) {
        let (now, shard) = (arrival.now, arrival.shard);
        match need {
            Need::Expired(flow) => self.end(flow, shard, lane, now, Ending::Expired),
            Need::Due => {
                self.reclaim(shard, lane, now, usize::MAX);
                head.reclaimed = true;
            }
            Need::Restart(flow) => {
                self.end(flow, shard, lane, now, Ending::Closed);
                head.restarted = true;
            }
            Need::Room if head.room == Room::Unknown => {
                self.visit(shard, lane, now, usize::MAX);
                head.room = Room::Reclaimed;
            }
            Need::Room => {
                let table = lane.shards.get(shard).map(|shard| &shard.table);
                if let Some(oldest) = table.and_then(FlowTable::oldest_evictable) {
                    self.end(oldest, shard, lane, now, Ending::Evicted);
                }
                head.room = Room::Exhausted;
            }
            Need::Abort => {
                self.settle(Err(Abort));
                *head = Head::default();
            }
            Need::Panic => {
                self.originated.panics += 1;
                let table = lane.shards.get(shard).map(|shard| &shard.table);
                let table = table.filter(|_| has_key(arrival));
                let flow = table.and_then(|table| table.find_now(arrival.hash, &arrival.key));
                if let Some(flow) = flow {
                    self.end(flow, shard, lane, now, Ending::Closed);
                }
                self.settle(Ok(Verdict::Drop(DropReason::HandlerPanic)));
                *head = Head::default();
            }
            Need::Conflict => {}
        }
    }
}
