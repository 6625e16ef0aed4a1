//! Lanes that take turns on one thread, in virtual time.
//!
//! Each lane has a transaction of its own on the pattern's real objects, and several of them are under way at a time:
//! one after the other does its next packet, or commits, in the order of a virtual clock that measured [`Cost`]s move.
//! So what conflicts with what is found out by the engine that lanes use, by its own rules, and noted as in a run.
//!
//! Not modelled: that a commit takes time, with its locks held (here it is a moment); lines that travel between cores,
//! which make contended packets slower than they are here; caches, memory and hyperthreads.

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use rheostat_state::txn::{Profile, Txn};

use super::real::{QUEUE, warmed_up};
use super::sub_burst::{BURST, SubBurst};
use super::{Cost, Pattern};
use crate::event_queue::EventQueue;

/// A packet takes between a half and three halves of the mean: equal times would keep lanes in step.
const SPREAD: std::ops::Range<f64> = 0.5..1.5;

/// A pattern on simulated lanes.
#[derive(Debug)]
pub struct SimulatedLanes<'a> {
    pattern: &'a dyn Pattern,
    lanes: Vec<ContendingCore>,
    cost: Cost,
    /// The lanes' next steps, by time in picoseconds.
    due: EventQueue,
    /// The lane that runs alone.
    alone: Option<usize>,
    random: SmallRng,
}

/// What simulated lanes did.
#[derive(Clone, Debug)]
pub struct Simulated {
    /// Packets of all lanes.
    pub packets: u64,
    /// How long they took, in virtual nanoseconds.
    pub nanos: f64,
    /// What became of their transactions.
    pub profile: Profile,
}

impl Simulated {
    /// Packets per second of all lanes, in millions.
    pub fn mpps(&self) -> f64 {
        1e3 * self.packets as f64 / self.nanos.max(1e-3)
    }
}

#[derive(Debug)]
struct ContendingCore {
    txn: Txn,
    sub_burst: SubBurst,
    /// The next packet that has not taken effect.
    number: u64,
    step: TransactionStep,
    /// Turned away by a lane that ran alone: waits until it has done so.
    waits: bool,
}

/// What a lane does next.
#[derive(Clone, Copy, Debug)]
enum TransactionStep {
    Begin,
    /// The packets of the attempt, and how many of them are done.
    Packet {
        packets: u64,
        done: u64,
    },
    Commit {
        packets: u64,
    },
}

impl<'a> SimulatedLanes<'a> {
    /// All lanes that the pattern's objects have, things being as they stay; a transaction has up to `batch` packets.
    pub fn new(pattern: &'a dyn Pattern, batch: u64, cost: Cost) -> SimulatedLanes<'a> {
        let count = pattern.objects().lanes();
        let lane = |mut txn: Txn| {
            txn.sample_every(1);
            let sub_burst = SubBurst::new(batch.clamp(1, BURST));
            ContendingCore {
                txn,
                sub_burst,
                number: pattern.warm_up(),
                step: TransactionStep::Begin,
                waits: false,
            }
        };
        let lanes = warmed_up(pattern, count).into_iter().map(lane).collect();
        let mut random = SmallRng::seed_from_u64(1);
        let first = (cost.packet_ns * 1e3) as u64 + 1;
        let mut due = EventQueue::new(count);
        (0..count).for_each(|lane| due.set(lane, random.random_range(0..first)));
        SimulatedLanes { pattern, lanes, cost, due, alone: None, random }
    }

    /// Lets as many packets pass as if each lane had `packets`.
    pub fn run(mut self, packets: u64) -> Simulated {
        let before = self.pattern.objects().profile();
        let wanted = packets * self.lanes.len() as u64;
        let mut passed = 0;
        let mut now = 0;
        while passed < wanted {
            let (at, lane) = self.due.pop(u64::MAX).expect("every lane has something to do");
            now = at;
            let (done, wait) = match self.lanes[lane].step {
                TransactionStep::Begin => (0, self.begin(lane)),
                TransactionStep::Packet { packets, done } => (0, self.packet(lane, packets, done)),
                TransactionStep::Commit { packets } => self.commit(lane, packets),
            };
            passed += done;
            self.due.set(lane, at + (1e3 * wait).max(1.0) as u64);
        }
        let profile = self.pattern.objects().profile().since(&before);
        Simulated { packets: passed, nanos: now as f64 / 1e3, profile }
    }

    /// A packet's time, by chance.
    fn packet_ns(&mut self) -> f64 {
        self.cost.packet_ns * self.random.random_range(SPREAD)
    }

    /// Begins an attempt, if the lane may; when it goes on.
    fn begin(&mut self, index: usize) -> f64 {
        let last = self.lanes.iter().map(|lane| lane.number).min().expect("there are lanes");
        let wait = self.packet_ns();
        let others_turn = self.alone.is_some_and(|alone| alone != index);
        let lane = &mut self.lanes[index];
        let wants_alone = lane.sub_burst.runs_alone();
        // Packets come to all lanes alike, and queues are only so long.
        let is_ahead = lane.number >= last + u64::from(QUEUE);
        if is_ahead || others_turn && (lane.waits || wants_alone) {
            return wait;
        }
        lane.waits = false;
        if wants_alone {
            lane.txn.make_serial();
            self.alone = Some(index);
        }
        lane.txn.begin(self.pattern.time(lane.number));
        // Bursts end at the same numbers whatever sub-bursts they came in.
        let rest = BURST - (lane.number - self.pattern.warm_up()) % BURST;
        let packets = lane.sub_burst.size().min(rest);
        lane.step = TransactionStep::Packet { packets, done: 0 };
        self.cost.attempt_ns / 2.0 + wait / 2.0
    }

    /// Does a packet; when the lane goes on.
    fn packet(&mut self, index: usize, packets: u64, done: u64) -> f64 {
        let between = self.packet_ns();
        let lane = &mut self.lanes[index];
        if self.pattern.packet(&mut lane.txn, lane.number + done).is_err() {
            lane.txn.roll_back();
            lane.sub_burst.aborted(packets);
            self.end(index);
            return self.cost.attempt_ns / 2.0;
        }
        let done = done + 1;
        if done < packets {
            lane.step = TransactionStep::Packet { packets, done };
            between
        } else {
            lane.step = TransactionStep::Commit { packets };
            between / 2.0 + self.cost.attempt_ns / 2.0
        }
    }

    /// Commits; how many packets took effect, and when the lane goes on.
    fn commit(&mut self, index: usize, packets: u64) -> (u64, f64) {
        let others_turn = self.alone.is_some_and(|alone| alone != index);
        let lane = &mut self.lanes[index];
        let committed = lane.txn.commit().is_ok();
        if committed {
            lane.number += packets;
            lane.sub_burst.committed(packets);
            lane.txn.rest();
        } else if others_turn {
            lane.waits = true;
        } else {
            lane.sub_burst.aborted(packets);
        }
        self.end(index);
        (if committed { packets } else { 0 }, 0.0)
    }

    fn end(&mut self, index: usize) {
        self.lanes[index].step = TransactionStep::Begin;
        if self.alone == Some(index) {
            self.alone = None;
        }
    }
}
