//! What workers report of their polling while a run goes on: tries, sleeps, modes and vacations.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rheostat_base::{Counter, Histogram, Time};

use crate::poll::metronome::{LanePolicy, Mode};

/// What all workers of a run write and any thread may read. A lane's part is written by the worker that has the lane, except
/// for lost tries; a worker's by that worker.
#[derive(Debug)]
pub(crate) struct PollingBoard {
    policy: &'static str,
    lanes: Vec<LaneBoard>,
    workers: Vec<WorkerBoard>,
    /// Changes with the set of lanes that are parked.
    generation: AtomicU64,
    /// When the run ended, in nanoseconds.
    ended: AtomicU64,
    /// What keeps sleeps from being what the policy requests.
    warnings: Mutex<Vec<String>>,
}

#[derive(Debug, Default)]
#[repr(align(128))]
struct LaneBoard {
    mode: AtomicU8,
    is_parked: AtomicBool,
    /// When the lane was last visited, and the figures of modes written, in nanoseconds.
    written: Counter,
    /// Nanoseconds in each mode until then.
    spent_ns: [Counter; Mode::ALL.len()],
    won: Counter,
    /// By workers that do not have the lane, so not a [`Counter`].
    lost: AtomicU64,
    /// V̄ in nanoseconds.
    target_ns: Counter,
    vacations: Histogram,
    vacations_ns: Counter,
    won_by_other: Counter,
}

#[derive(Debug, Default)]
#[repr(align(128))]
struct WorkerBoard {
    tries: Counter,
    lost: Counter,
    sleeps: Counter,
    spins: Counter,
    blocks: Counter,
}

/// Whether another worker ended a vacation than the one that began it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IsOther(pub(crate) bool);

/// How a run polls, at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PollingSample {
    /// The policy's name.
    pub policy: &'static str,
    /// The lanes, in order.
    pub lanes: Vec<LanePolling>,
    /// The workers, in order.
    pub workers: Vec<WorkerPolling>,
    /// What keeps sleeps from being what the policy requests, each told once.
    pub warnings: Vec<String>,
}

/// How one lane is polled.
#[derive(Clone, Debug, PartialEq)]
pub struct LanePolling {
    /// The present mode.
    pub mode: Mode,
    /// How long it has been in each mode, in the order of [`Mode::ALL`].
    pub spent: [Duration; Mode::ALL.len()],
    /// Tries of its lock.
    pub tries: u64,
    /// Tries that found it taken.
    pub lost: u64,
    /// V̄, where vacations have a target.
    pub target: Option<Duration>,
    /// Vacations in metronome mode.
    pub vacations: Vacations,
    /// Of these, those that another worker ended than the one that had released the lock.
    pub won_by_other: u64,
}

/// The vacations of a lane: from the release of its lock to the next time it is taken. All in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Vacations {
    /// How many.
    pub count: u64,
    /// Their mean.
    pub mean: u64,
    /// The median.
    pub p50: u64,
    /// What all but one in a hundred do not exceed.
    pub p99: u64,
    /// The histogram: the largest value of each bin that has any, and how many it has.
    pub bins: Vec<(u64, u64)>,
}

/// What one worker has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorkerPolling {
    /// Tries of lanes' locks.
    pub tries: u64,
    /// Tries that found one taken.
    pub lost: u64,
    /// Sleeps of a chosen length, from each of which it woke up.
    pub sleeps: u64,
    /// Spins in place of a sleep that would have been too short.
    pub spins: u64,
    /// Times that it blocked until it was woken or a timer was due.
    pub blocks: u64,
}

impl PollingBoard {
    /// The board of a run by policy `policy`, whose lanes are all in `mode` and not parked.
    pub(crate) fn new(
        policy: &'static str,
        mode: Mode,
        lanes: usize,
        workers: usize,
    ) -> PollingBoard {
        let lane = || LaneBoard { mode: AtomicU8::new(mode as u8), ..LaneBoard::default() };
        PollingBoard {
            policy,
            lanes: (0..lanes).map(|_| lane()).collect(),
            workers: (0..workers).map(|_| WorkerBoard::default()).collect(),
            generation: AtomicU64::new(0),
            ended: AtomicU64::new(u64::MAX),
            warnings: Mutex::default(),
        }
    }

    /// The lane's mode, as the worker that had it last has written it.
    #[inline]
    pub(crate) fn mode(&self, lane: usize) -> Mode {
        // Relaxed, as all here: figures and hints order nothing.
        Mode::ALL[usize::from(self.lanes[lane].mode.load(Ordering::Relaxed))]
    }

    /// Whether the lane has no shards.
    pub(crate) fn is_parked(&self, lane: usize) -> bool {
        self.lanes[lane].is_parked.load(Ordering::Relaxed)
    }

    /// A number that changes with the set of parked lanes.
    #[inline]
    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Whether the lane is parked is written by the worker that has it.
    #[inline]
    pub(crate) fn set_parked(&self, lane: usize, is_parked: bool) {
        let known = &self.lanes[lane].is_parked;
        if known.load(Ordering::Relaxed) != is_parked {
            known.store(is_parked, Ordering::Relaxed);
            // Release: pairs with the Acquire load in `generation`; the flag is seen with the number.
            self.generation.fetch_add(1, Ordering::Release);
        }
    }

    /// When the lane was last visited.
    pub(crate) fn visited(&self, lane: usize) -> Time {
        Time::from_nanos(self.lanes[lane].written.get())
    }

    /// A worker that has the lane has visited it after `vacation`, if that counts, which it or another one had begun.
    pub(crate) fn note_visit(
        &self,
        lane: usize,
        policy: &LanePolicy,
        vacation: Option<(Duration, IsOther)>,
        now: Time,
    ) {
        let board = &self.lanes[lane];
        board.won.increment();
        if let Some((vacation, IsOther(is_other))) = vacation {
            let nanos = vacation.as_nanos() as u64;
            board.vacations.record(nanos);
            board.vacations_ns.add(nanos);
            board.won_by_other.add(is_other.into());
        }
        board.target_ns.set(policy.target().as_nanos() as u64);
        board.mode.store(policy.mode() as u8, Ordering::Relaxed);
        for (mode, spent) in Mode::ALL.iter().zip(&board.spent_ns) {
            spent.set(policy.modes().spent(*mode, now).as_nanos() as u64);
        }
        board.written.set(now.as_nanos());
    }

    /// A try found the lane taken.
    pub(crate) fn note_lost(&self, lane: usize) {
        self.lanes[lane].lost.fetch_add(1, Ordering::Relaxed);
    }

    /// What a worker has done so far.
    pub(crate) fn note_worker(&self, worker: usize, counts: WorkerPolling) {
        let board = &self.workers[worker];
        board.tries.set(counts.tries);
        board.lost.set(counts.lost);
        board.sleeps.set(counts.sleeps);
        board.spins.set(counts.spins);
        board.blocks.set(counts.blocks);
    }

    /// Adds a warning of a worker. Several workers may have the same: it is reported once.
    pub(crate) fn warn(&self, warning: String) {
        let mut warnings = self.warnings.lock().unwrap_or_else(PoisonError::into_inner);
        if !warnings.contains(&warning) {
            warnings.push(warning);
        }
    }

    /// The warnings of workers.
    pub(crate) fn warnings(&self) -> Vec<String> {
        self.warnings.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The run is over: time in modes goes on no more.
    pub(crate) fn end(&self, now: Time) {
        self.ended.fetch_min(now.as_nanos(), Ordering::Relaxed);
    }

    /// The figures now, of a run that began at `started`.
    pub(crate) fn sample(&self, started: Time, now: Time) -> PollingSample {
        let now = now.as_nanos().min(self.ended.load(Ordering::Relaxed));
        let lane = |number| self.sample_lane(number, started.as_nanos(), now);
        PollingSample {
            policy: self.policy,
            lanes: (0..self.lanes.len()).map(lane).collect(),
            workers: self.workers.iter().map(WorkerBoard::sample).collect(),
            warnings: self.warnings(),
        }
    }

    fn sample_lane(&self, lane: usize, started: u64, now: u64) -> LanePolling {
        let board = &self.lanes[lane];
        let mode = self.mode(lane);
        let mut spent = board.spent_ns.each_ref().map(Counter::get);
        // A lane that is not visited stays in the mode that it was in.
        spent[mode as usize] += now.saturating_sub(board.written.get().max(started));
        let (won, lost) = (board.won.get(), board.lost.load(Ordering::Relaxed));
        let target = board.target_ns.get();
        LanePolling {
            mode,
            spent: spent.map(Duration::from_nanos),
            tries: won + lost,
            lost,
            target: (target > 0).then(|| Duration::from_nanos(target)),
            vacations: Vacations::of(&board.vacations, board.vacations_ns.get()),
            won_by_other: board.won_by_other.get(),
        }
    }
}

impl WorkerBoard {
    fn sample(&self) -> WorkerPolling {
        WorkerPolling {
            tries: self.tries.get(),
            lost: self.lost.get(),
            sleeps: self.sleeps.get(),
            spins: self.spins.get(),
            blocks: self.blocks.get(),
        }
    }
}

impl Vacations {
    fn of(histogram: &Histogram, sum: u64) -> Vacations {
        // The histogram is long, and looked through only if there is something in it.
        let count = if sum == 0 { 0 } else { histogram.count() };
        if count == 0 {
            return Vacations::default();
        }
        let quantile = |q| histogram.quantile(q).unwrap_or(0);
        Vacations {
            count,
            mean: sum / count,
            p50: quantile(0.5),
            p99: quantile(0.99),
            bins: histogram.bins().collect(),
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn time_in_a_mode_goes_on_without_visits_and_ends_with_the_run() {
        let board = PollingBoard::new("interrupt", Mode::Interrupt, 1, 1);
        let at = Time::from_secs;
        let spent = |now| board.sample(at(1), now).lanes[0].spent;
        assert_eq!(spent(at(4)), [Duration::ZERO, Duration::ZERO, Duration::from_secs(3)]);
        board.end(at(5));
        assert_eq!(spent(at(9))[2], Duration::from_secs(4));
    }

    #[test]
    fn lost_tries_count_for_lane_and_worker() {
        let board = PollingBoard::new("metronome", Mode::Metronome, 2, 1);
        board.note_lost(1);
        let counts = WorkerPolling { tries: 3, lost: 1, ..WorkerPolling::default() };
        board.note_worker(0, counts);
        let sample = board.sample(Time::ZERO, Time::ZERO);
        assert_eq!((sample.lanes[1].tries, sample.lanes[1].lost), (1, 1));
        assert_eq!(sample.workers, [counts]);
        assert_eq!(sample.lanes[0].vacations, Vacations::default());
    }

    #[test]
    fn parking_a_lane_changes_the_generation_once() {
        let board = PollingBoard::new("metronome", Mode::Metronome, 1, 1);
        let before = board.generation();
        board.set_parked(0, true);
        board.set_parked(0, true);
        assert_eq!((board.generation() - before, board.is_parked(0)), (1, true));
    }

    #[test]
    fn what_several_workers_tell_is_told_once() {
        let board = PollingBoard::new("metronome", Mode::Metronome, 1, 2);
        ["slack", "slack", "target"].iter().for_each(|text| board.warn((*text).to_owned()));
        assert_eq!(board.warnings(), ["slack", "target"]);
    }
}
