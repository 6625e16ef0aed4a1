//! Lanes that are threads.

use std::hint::black_box;
use std::sync::Barrier;
use std::thread;

use rheostat_base::clock::Cycles;
use rheostat_base::{Clock, LaneId};
use rheostat_kernel::core_set::pin_current_thread;
use rheostat_state::txn::{Profile, Txn};

use super::Pattern;
use super::sub_burst::{BURST, SubBurst};
use crate::error::BenchError;
use crate::pace::LoadPace;
use crate::testbed::Cores;

/// Packets by which a lane may be ahead of the others, as many as lie in a queue.
pub(super) const QUEUE: u32 = 512;

/// A pattern on lanes that are threads; each has a core of its own, if there are enough.
#[derive(Debug)]
pub struct RealLanes<'a> {
    pattern: &'a dyn Pattern,
    txns: Vec<Txn>,
    /// The next packet of every lane.
    next: u64,
    batch: u64,
    work: u32,
    cores: Cores,
    clock: Clock,
}

/// What lanes did.
#[derive(Clone, Debug)]
pub struct ContentionMeasurement {
    /// Packets of all lanes.
    pub packets: u64,
    /// How long they took, in nanoseconds.
    pub nanos: u64,
    /// What became of their transactions.
    pub profile: Profile,
}

impl ContentionMeasurement {
    /// Nanoseconds of a lane's time for a packet.
    pub fn ns_per_packet(&self, lanes: usize) -> f64 {
        self.nanos as f64 * lanes as f64 / self.packets as f64
    }

    /// Packets per second of all lanes, in millions.
    pub fn mpps(&self) -> f64 {
        1e3 * self.packets as f64 / self.nanos.max(1) as f64
    }
}

impl<'a> RealLanes<'a> {
    /// The first `lanes` of the lanes that the pattern's objects have, things being as they stay. A transaction has up
    /// to `batch` packets of a burst; the rest of a packet's processing is stood for by `work` pseudo-random numbers, of
    /// which one takes a nanosecond or two.
    ///
    /// # Errors
    /// [`BenchError`] when it cannot be found out which cores there are.
    pub fn new(
        pattern: &'a dyn Pattern,
        lanes: usize,
        batch: u64,
        work: u32,
    ) -> Result<RealLanes<'a>, BenchError> {
        let cores = Cores::available()?;
        let txns = warmed_up(pattern, lanes);
        let batch = batch.clamp(1, BURST);
        let next = pattern.warm_up();
        Ok(RealLanes { pattern, txns, next, batch, work, cores, clock: Clock::new() })
    }

    /// Whether every lane has a core of its own. Otherwise rates are those of the scheduler.
    pub fn have_cores(&self) -> bool {
        self.cores.count() >= self.txns.len()
    }

    /// Refuses to share cores.
    ///
    /// # Errors
    /// [`BenchError::TooFewCores`].
    pub fn require_cores(&self) -> Result<(), BenchError> {
        self.cores.require(self.txns.len())
    }

    /// Lets `packets` pass each lane. The cause of one in `sample` aborts is noted.
    ///
    /// # Errors
    /// [`BenchError`] when a thread cannot be given its core.
    pub fn run(&mut self, packets: u64, sample: u32) -> Result<ContentionMeasurement, BenchError> {
        let before = self.pattern.objects().profile();
        let (first, count) = (self.next, self.txns.len());
        let (pace, start) = (LoadPace::new(count, QUEUE), Barrier::new(count));
        let pins = self.have_cores();
        let Self { pattern, txns, batch, work, cores, clock, .. } = self;
        let passed = thread::scope(|scope| {
            let lanes = txns.iter_mut().zip(cores.in_turn(count)).map(|(txn, core)| {
                txn.sample_every(sample);
                let core = pins.then_some(core);
                let lane = ContendingLane { pattern: *pattern, batch: *batch, work: *work, clock };
                let (pace, start) = (&pace, &start);
                scope.spawn(move || {
                    // Before the others wait for this one.
                    let pinned = core.map_or(Ok(()), pin_current_thread);
                    start.wait();
                    pinned?;
                    Ok::<_, BenchError>(lane.run(txn, first, first + packets, pace))
                })
            });
            let lanes: Vec<_> = lanes.collect();
            let ends = lanes.into_iter().map(|lane| lane.join().expect("a lane ends"));
            ends.collect::<Result<Vec<_>, _>>()
        })?;
        self.next += packets;
        let started = passed.iter().map(|(started, _)| *started).min().expect("there are lanes");
        let ended = passed.iter().map(|(_, ended)| *ended).max().expect("there are lanes");
        Ok(ContentionMeasurement {
            packets: packets * count as u64,
            nanos: self.clock.nanos_between(started, ended),
            profile: self.pattern.objects().profile().since(&before),
        })
    }
}

/// The transactions of `lanes` lanes after the packets of the warm-up, which pass the lanes in turn.
pub(super) fn warmed_up(pattern: &dyn Pattern, lanes: usize) -> Vec<Txn> {
    let objects = pattern.objects();
    let mut txns: Vec<_> = (0..lanes).map(|lane| Txn::new(objects, LaneId(lane as u16))).collect();
    for number in 0..pattern.warm_up() {
        for txn in &mut txns {
            txn.begin(pattern.time(number));
            let done = pattern.packet(txn, number).and_then(|()| txn.commit());
            assert!(done.is_ok(), "no other lane runs");
            txn.rest();
        }
    }
    txns
}

/// What a lane needs beside its transactions.
#[derive(Clone, Copy)]
struct ContendingLane<'a> {
    pattern: &'a dyn Pattern,
    batch: u64,
    work: u32,
    clock: &'a Clock,
}

impl ContendingLane<'_> {
    /// Processes the packets from `first` to before `end`; when it began and when it had done so.
    fn run(self, txn: &mut Txn, first: u64, end: u64, pace: &LoadPace) -> (Cycles, Cycles) {
        let turn = pace.of(txn.lane().index());
        let mut sub_burst = SubBurst::new(self.batch);
        let started = self.clock.cycles();
        let mut number = first;
        while number < end {
            turn.wait(number * pace.lanes());
            // The rest of a burst comes in as many attempts as it takes.
            let burst = end.min(number + BURST);
            while number < burst {
                let packets = sub_burst.size().min(burst - number);
                if sub_burst.runs_alone() {
                    txn.make_serial();
                }
                if self.attempt(txn, number, packets) {
                    sub_burst.committed(packets);
                    number += packets;
                } else {
                    sub_burst.aborted(packets);
                }
            }
            txn.rest();
        }
        (started, self.clock.cycles())
    }

    /// Whether these packets, in one transaction, took effect.
    fn attempt(self, txn: &mut Txn, first: u64, packets: u64) -> bool {
        txn.begin(self.pattern.time(first));
        for number in first..first + packets {
            process(self.work, number);
            if self.pattern.packet(txn, number).is_err() {
                txn.roll_back();
                return false;
            }
        }
        txn.commit().is_ok()
    }
}

/// The rest of a packet's processing.
fn process(work: u32, seed: u64) {
    // The generator of Knuth's MMIX; its numbers are of no interest.
    let step = |x: u64, _| x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
    black_box((0..work).fold(black_box(seed), step));
}
