//! Shards that the claimants of one receive queue own together: each is in a cell, and the lane that has packets for it takes it
//! out, processes them, and puts it back. One lane at a time has it, so nothing else about flow state changes: no function, no
//! table and no timer knows of other lanes.
//!
//! A lane takes all shards of a burst that are free, and waits for no other while it has any, so lanes cannot wait for each other
//! in a circle. A lane that panics puts its shards back, marked: no other lane works on what may be half changed, and their flows
//! are still in the account.
//!
//! Where lanes receive from a queue one at a time, packets enter a shard in the order of their [`Tickets`]. The claimants of a queue
//! that several lanes empty at once have none: packets of a flow may overtake each other there. With tickets, segments that lanes
//! send for a shard leave in the order of the visits, too ([`Outbox`]).

mod outbox;
mod tickets;

use std::sync::Arc;

use rheostat_base::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use rheostat_base::sync::prefetch::prefetch_for_write;
use rheostat_base::sync::take_cell::TakeCell;
use rheostat_base::{LaneId, ShardId};
use rheostat_state::Shard;

pub(crate) use outbox::{Outbox, Unsent};
use tickets::Tickets;

/// The shards of a queue's claimants.
#[derive(Debug)]
pub(crate) struct JointShards {
    /// One per shard of the run; none for those of other queues.
    cells: Vec<Option<TakeCell<Loan>>>,
    /// The order in which packets enter, if there is one.
    tickets: Option<Tickets>,
    /// Where tickets are, one per claimant.
    outboxes: Vec<Outbox>,
    /// Flows in these shards, and the most there ever were.
    flows: AtomicU64,
    flows_peak: AtomicU64,
    /// Whether a lane has taken all of them, at the end of the run.
    has_ended: AtomicBool,
}

/// A shard in its cell.
#[derive(Debug)]
struct Loan {
    shard: Box<Shard>,
    /// Whether a lane panicked while it had the shard.
    is_poisoned: bool,
    /// Which outbox may have segments of the shard.
    unsent: Option<Unsent>,
}

/// What came of a try for a shard.
#[derive(Debug)]
pub(crate) enum Taken {
    /// The lane has it now. Some outbox may have segments of it.
    Shard(Box<Shard>, Option<Unsent>),
    /// Another lane has it.
    Elsewhere,
    /// A lane panicked while it had it.
    Poisoned,
}

impl JointShards {
    /// These shards, of the `count` shards of a run.
    pub(crate) fn new(count: usize, shards: impl IntoIterator<Item = Box<Shard>>) -> JointShards {
        let mut cells: Vec<_> = (0..count).map(|_| None).collect();
        let mut flows = 0;
        for shard in shards {
            flows += shard.table.counts().live;
            let cell = &mut cells[shard.id.index()];
            assert!(cell.is_none(), "{} is already here", shard.id);
            *cell = Some(TakeCell::new(Loan { shard, is_poisoned: false, unsent: None }));
        }
        JointShards {
            cells,
            tickets: None,
            outboxes: Vec::new(),
            flows: AtomicU64::new(flows),
            flows_peak: AtomicU64::new(flows),
            has_ended: AtomicBool::new(false),
        }
    }

    /// Has the packets of so many claimants enter in the order of tickets.
    pub(crate) fn with_tickets(self, claimants: usize) -> JointShards {
        let tickets = Tickets::new(self.cells.len());
        let outboxes = (0..claimants).map(|_| Outbox::new()).collect();
        JointShards { tickets: Some(tickets), outboxes, ..self }
    }

    /// What the claimants have to send, where packets have tickets.
    #[inline]
    pub(crate) fn outboxes(&self) -> &[Outbox] {
        &self.outboxes
    }

    /// Whether no outbox has segments that this mark is about.
    #[inline]
    pub(crate) fn has_left(&self, unsent: &Unsent) -> bool {
        self.outboxes[unsent.claimant].has_left(unsent)
    }

    /// The order in which packets enter, if there is one.
    #[inline]
    pub(crate) fn tickets(&self) -> Option<&Tickets> {
        self.tickets.as_ref()
    }

    /// Whether the shard is one of these.
    #[inline]
    pub(crate) fn contains(&self, id: ShardId) -> bool {
        self.cells.get(id.index()).is_some_and(Option::is_some)
    }

    /// The numbers of these shards.
    pub(crate) fn ids(&self) -> impl Iterator<Item = ShardId> {
        (0..).map(ShardId).zip(&self.cells).filter(|(_, cell)| cell.is_some()).map(|(id, _)| id)
    }

    /// Asks for the line in which a shard's cell is, to take the shard soon.
    #[inline]
    pub(crate) fn prefetch(&self, id: ShardId) {
        if let Some(Some(cell)) = self.cells.get(id.index()) {
            prefetch_for_write(cell);
        }
    }

    /// Takes a shard out, unless another lane has it. Never waits.
    ///
    /// # Panics
    /// When the shard is none of these.
    pub(crate) fn take(&self, id: ShardId) -> Taken {
        let Some(Loan { shard, is_poisoned, unsent }) = self.cell(id).take() else {
            return Taken::Elsewhere;
        };
        if is_poisoned {
            self.put(Loan { shard, is_poisoned, unsent });
            return Taken::Poisoned;
        }
        Taken::Shard(shard, unsent)
    }

    /// Whether a lane panicked while it had the shard; `false` while a lane has it.
    pub(crate) fn is_poisoned(&self, id: ShardId) -> bool {
        match self.take(id) {
            Taken::Shard(shard, unsent) => {
                self.decline(shard, unsent);
                false
            }
            taken => matches!(taken, Taken::Poisoned),
        }
    }

    /// Puts a shard back as it was taken.
    pub(crate) fn decline(&self, shard: Box<Shard>, unsent: Option<Unsent>) {
        self.put(Loan { shard, is_poisoned: false, unsent });
    }

    /// Puts a shard back after a visit. A thread that panics poisons it.
    pub(crate) fn put_back(&self, shard: Box<Shard>, visit: Held) {
        let Held { flows: flows_before, due, unsent, .. } = visit;
        let flows = shard.table.counts().live;
        if flows != flows_before {
            // Relaxed: figures for people, which order nothing. The sum wraps around below what was added.
            let change = flows.wrapping_sub(flows_before);
            let all = self.flows.fetch_add(change, Ordering::Relaxed).wrapping_add(change);
            self.flows_peak.fetch_max(all, Ordering::Relaxed);
        }
        let is_poisoned = std::thread::panicking();
        if let Some(tickets) = &self.tickets {
            if is_poisoned {
                tickets.break_off();
            } else if let Some(due) = due {
                tickets.done(shard.id, due);
            }
        }
        self.put(Loan { shard, is_poisoned, unsent });
    }

    /// The most flows that were in these shards at once.
    pub(crate) fn flows_peak(&self) -> u64 {
        // Relaxed: as above.
        self.flows_peak.load(Ordering::Relaxed)
    }

    /// Notes that the run is over. Returns whether the caller is the first to do so: the one that takes all shards.
    pub(crate) fn end(&self) -> bool {
        // Relaxed: lanes are ended one after the other, on one thread.
        !self.has_ended.swap(true, Ordering::Relaxed)
    }

    /// Whether the run is over.
    pub(crate) fn has_ended(&self) -> bool {
        self.has_ended.load(Ordering::Relaxed)
    }

    /// Shows the shards that are in their cells, poisoned or not. No lane may take one meanwhile.
    pub(crate) fn for_each(&self, mut look: impl FnMut(&Shard)) {
        for cell in self.cells.iter().flatten() {
            if let Some(loan) = cell.take() {
                look(&loan.shard);
                self.put(loan);
            }
        }
    }

    fn put(&self, loan: Loan) {
        let back = self.cell(loan.shard.id).put_back(loan);
        debug_assert!(back.is_ok(), "a shard is put back once");
    }

    fn cell(&self, id: ShardId) -> &TakeCell<Loan> {
        self.cells[id.index()].as_ref().expect("a shard of the lane's queue")
    }
}

/// The part of one claimant in [`JointShards`].
#[derive(Debug)]
pub(crate) struct Claimant {
    pub(crate) shards: Arc<JointShards>,
    /// The place of the lane among the claimants.
    pub(crate) number: usize,
    /// Whether it has taken all shards at the end of the run.
    pub(crate) is_heir: bool,
    /// The shards that the lane has now.
    pub(crate) held: Vec<Held>,
    /// The lane that looks after each shard of the run when it is not about packets.
    pub(crate) homes: Arc<[LaneId]>,
    /// A claimant whose outbox has to be sent before the lane can enter a shard.
    pub(crate) blocked_by: Option<usize>,
    /// Enters shards whatever outboxes have of them, to show that somebody notices.
    #[cfg(all(test, shuttle))]
    pub(crate) ignores_unsent: bool,
}

/// A shard that a lane has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Held {
    pub(crate) id: ShardId,
    /// Flows that were in it when the lane took it.
    pub(crate) flows: u64,
    /// The next ticket whose packet may enter, if packets have entered with tickets.
    pub(crate) due: Option<u32>,
    /// The mark to leave.
    pub(crate) unsent: Option<Unsent>,
}

#[cfg(all(test, shuttle))]
mod exploration;

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    //! Timed: threads.

    use rheostat_base::Time;
    use rheostat_packet::{Family, FlowKey};
    use rheostat_state::FlowHasher;
    use rheostat_testkit::runtime::shard;

    use super::*;

    fn visit(id: u16, flows: u64) -> Held {
        Held { id: ShardId(id), flows, due: None, unsent: None }
    }

    #[test]
    fn a_shard_is_with_one_lane_at_a_time() {
        let shards = JointShards::new(4, [shard(ShardId(1), 8, ()), shard(ShardId(3), 8, ())]);
        assert_eq!(shards.ids().collect::<Vec<_>>(), [ShardId(1), ShardId(3)]);
        assert!(shards.contains(ShardId(3)) && !shards.contains(ShardId(2)));
        let Taken::Shard(taken, _) = shards.take(ShardId(1)) else { panic!("it is free") };
        assert!(matches!(shards.take(ShardId(1)), Taken::Elsewhere));
        assert!(matches!(shards.take(ShardId(3)), Taken::Shard(..)));
        shards.put_back(taken, visit(1, 0));
        assert!(matches!(shards.take(ShardId(1)), Taken::Shard(..)));
    }

    #[test]
    fn flows_are_counted_over_all_shards() {
        let shards = JointShards::new(2, [shard(ShardId(0), 8, ()), shard(ShardId(1), 8, ())]);
        let key = FlowKey::from_raw([1, 2, 0, 0, 0], Family::V4);
        let change = |id: u16, change: fn(&mut Shard, &FlowKey)| {
            let Taken::Shard(mut shard, _) = shards.take(ShardId(id)) else { panic!("it is free") };
            let before = shard.table.counts().live;
            change(&mut shard, &key);
            shards.put_back(shard, visit(id, before));
        };
        let insert: fn(&mut Shard, &FlowKey) = |shard, key| {
            shard.table.insert(FlowHasher::fixed().hash(key), key, Time::ZERO).expect("room");
        };
        change(0, insert);
        change(1, insert);
        assert_eq!(shards.flows_peak(), 2);
        change(0, |shard, key| {
            let flow = shard.table.find_now(FlowHasher::fixed().hash(key), key).expect("inserted");
            shard.table.remove(flow);
        });
        change(0, insert);
        assert_eq!(shards.flows_peak(), 2, "one ended, and another came");
    }

    #[test]
    fn a_lane_that_panics_loses_no_shard_and_no_lane_works_on_it() {
        let shards = Arc::new(JointShards::new(1, [shard(ShardId(0), 8, ())]));
        let taken = shards.clone();
        let lane = std::thread::spawn(move || {
            struct Visit(Arc<JointShards>, Option<Box<Shard>>);
            impl Drop for Visit {
                fn drop(&mut self) {
                    self.0.put_back(self.1.take().unwrap(), visit(0, 0));
                }
            }
            let Taken::Shard(shard, _) = taken.take(ShardId(0)) else { panic!("it is free") };
            let _visit = Visit(taken, Some(shard));
            panic!("half done");
        });
        assert!(lane.join().is_err());
        for _ in 0..2 {
            assert!(matches!(shards.take(ShardId(0)), Taken::Poisoned));
        }
        let mut seen = 0;
        shards.for_each(|_| seen += 1);
        assert_eq!(seen, 1);
    }
}
