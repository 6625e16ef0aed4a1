//! A worker that shares lanes with others, as [`Metronome`] decides: it tries a lane's lock, polls the lane until it is
//! empty, gives it back, sleeps, and comes back.
//!
//! Nothing that comes to a lane waits for want of a poll: the worker that had a lane last *attends* it: it comes back within
//! its short timeout, so packets, hand-offs, commands, replies and timers wait for no longer than that. A worker that
//! blocks attends nothing, and *watches* the lanes that no other worker has: a sender of work for one of them wakes it
//! ([`Attendance`]).

mod attended_lanes;
mod core_delays;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use rheostat_base::sync::attendance::Attendance;
use rheostat_base::sync::try_lock::TryGuard;
use rheostat_base::{ClockSource, Time};
use rheostat_io::Rest;
use rheostat_kernel::sleep::{SleepPoint, SleepProfile};
use rheostat_packet::BURST;

use self::attended_lanes::AttendedLanes;
use self::core_delays::CoreDelays;
use super::{NAP, Ready, Worker, block};
use crate::cell::LaneCell;
use crate::load::LoadReporting;
use crate::poll::metronome::{Binding, Goal, Metronome, MetronomeSettings, Mode, Nap, Visit};
use crate::polling::{IsOther, PollingBoard, WorkerPolling};
use crate::sleep::{SAMPLES_AT_START, Sleeper, calibrate};

/// Packets of one visit at most. A lane that has more is given back for a moment, so that its load is measured and the
/// worker sees what else there is to do.
const MOST: usize = 64 * BURST;
/// Polls for packets that a device has taken and not sent, before the worker sleeps in spite of them: an interface that is
/// down may stay so.
const FLUSHES: usize = 32;
/// How often lanes without shards are visited: a device may have placed a packet there late, or want its queues exchanged.
const PATROL: Duration = Duration::from_millis(5);
/// Visits without a pause after which a worker looks at what else there is.
const TURNS: u32 = 1_024;
/// Each worker makes its own random numbers of this.
const SEED: u64 = 0x6d65_7472_6f6e_6f6d;

/// Pieces of the calibration: lanes are polled about once in a millisecond meanwhile.
const PIECES: usize = 20;

/// How long the calibration takes at most, but for its first piece: beside other programs each sleep may take milliseconds.
const CALIBRATION: Duration = Duration::from_millis(100);

/// Sleeps of one duration that were measured in two pieces.
fn joined((first, second): (&SleepPoint, &SleepPoint)) -> Option<SleepPoint> {
    let taken = first.taken().iter().chain(second.taken()).copied().collect();
    let (m, n) = (first.taken().len() as u32, second.taken().len() as u32);
    SleepPoint::new(first.asked(), taken, (first.cpu() * m + second.cpu() * n) / (m + n))
}

/// A worker at work.
pub(super) struct SharingWorker<'a> {
    worker: &'a Worker,
    attendance: &'a Attendance,
    board: &'a PollingBoard,
    settings: MetronomeSettings,
    metronome: Metronome,
    sleeper: Sleeper,
    profile: Arc<SleepProfile>,
    attended: AttendedLanes<'a>,
    /// Lanes with work that no worker attended.
    called: Vec<usize>,
    /// The set of parked lanes that the policy knows.
    generation: u64,
    /// Lanes that are not parked.
    active: usize,
    /// Whether a lane was won since the last sleep.
    won: bool,
    core_delays: CoreDelays,
    /// How long the worker waited for a core behind the last sleep.
    waited: Duration,
    /// The next timer of the lanes visited since the last sleep.
    deadline: Time,
    /// When lanes without shards were last visited.
    patrolled: Time,
    blocks: u64,
}

impl<'a> SharingWorker<'a> {
    /// A worker whose sleep is not calibrated.
    pub(super) fn new(
        worker: &'a Worker,
        attendance: &'a Attendance,
        settings: MetronomeSettings,
    ) -> SharingWorker<'a> {
        let profile = Arc::new(SleepProfile::exact());
        SharingWorker {
            worker,
            attendance,
            board: &worker.board,
            settings,
            metronome: SharingWorker::metronome(worker, settings, profile.clone()),
            sleeper: Sleeper::new(worker.clock.clone()),
            profile,
            attended: AttendedLanes::new(attendance),
            called: Vec::new(),
            generation: 0,
            active: 0,
            won: false,
            core_delays: CoreDelays::new(worker.clock.now()),
            waited: Duration::ZERO,
            deadline: Time::NEVER,
            patrolled: Time::ZERO,
            blocks: 0,
        }
    }

    fn metronome(
        worker: &Worker,
        settings: MetronomeSettings,
        profile: Arc<SleepProfile>,
    ) -> Metronome {
        Metronome::new(settings, profile, worker.index, worker.crew.len(), SEED)
    }

    /// Finds out how long sleeps of this thread take: some 30 ms where nothing disturbs, in pieces, between which its lanes
    /// are polled.
    fn calibrate(&mut self) {
        let mut points: Vec<SleepPoint> = Vec::new();
        let end = self.worker.clock.now() + CALIBRATION;
        for _ in 0..PIECES {
            let (sleeper, clock) = (Sleeper::new(self.worker.clock.clone()), &self.worker.clock);
            let samples = SAMPLES_AT_START / PIECES;
            let piece = calibrate(&sleeper, clock, samples, || self.drain_own());
            points = match points.is_empty() {
                true => piece.points().to_vec(),
                false => points.iter().zip(piece.points()).filter_map(joined).collect(),
            };
            if self.stops() || self.worker.clock.now() > end {
                break;
            }
        }
        self.profile = Arc::new(SleepProfile::new(points));
        self.metronome = SharingWorker::metronome(self.worker, self.settings, self.profile.clone());
        self.warn();
    }

    /// Polls the lanes that are this worker's at the start.
    fn drain_own(&mut self) {
        let (lanes, workers) = (self.worker.lanes.len(), self.worker.crew.len());
        for lane in (0..lanes).filter(|lane| lane % workers == self.worker.index) {
            if let Some(mut cell) = self.worker.lanes[lane].try_lock() {
                let start = self.worker.clock.now();
                self.drain(&mut cell, start, MOST);
            }
        }
    }

    /// Reports what keeps vacations from being as long as they are meant to be.
    fn warn(&self) {
        self.worker.warn_of_slack(&self.sleeper);
        if let Goal::Vacation(target) = self.settings.goal
            && self.profile.ask_for(target).is_none()
        {
            // The calibrated figure differs from worker to worker, and the warning is to be given once.
            self.board.warn(format!(
                "a target vacation of {} us is shorter than sleeps of this machine can be: workers spin where they cannot \
                 sleep; `rheo doctor` prints what is possible",
                target.as_nanos() as f64 / 1e3
            ));
        }
    }

    /// Works until the stop flag is set.
    pub(super) fn run(mut self, ready: Ready) {
        self.calibrate();
        self.regroup();
        drop(ready);
        let mut turns = 0;
        while !self.stops() {
            if self.board.generation() != self.generation {
                self.regroup();
            }
            if self.attendance.has_calls() {
                self.answer_calls();
            }
            let Some(lane) = self.metronome.lane() else {
                self.block();
                continue;
            };
            match self.try_lane(lane) {
                Nap::Now => turns += 1,
                nap => self.take(nap),
            }
            // A lane that is polled without pause leaves no other time for this.
            if turns == TURNS {
                turns = 0;
                self.patrol();
                self.report();
            }
        }
        self.attended.leave_all_but(None);
        self.report();
    }

    fn stops(&self) -> bool {
        // Relaxed: the flag publishes nothing; lanes go back through their cells.
        self.worker.stop.load(Ordering::Relaxed)
    }

    /// Takes note of which lanes are parked.
    fn regroup(&mut self) {
        self.generation = self.board.generation();
        let lanes = 0..self.worker.lanes.len();
        let active: Vec<_> = lanes.filter(|lane| !self.board.is_parked(*lane)).collect();
        self.active = active.len();
        self.metronome.regroup(active);
        self.attended.leave_all_but(None);
        self.choose_lanes(true);
    }

    /// Whether this worker may run a lane that is parked or called.
    fn may(&self, lane: usize) -> bool {
        match self.settings.binding {
            Binding::Random => true,
            Binding::Static if self.board.is_parked(lane) => {
                lane % self.worker.crew.len() == self.worker.index
            }
            Binding::Static => self.metronome.lanes().contains(&lane),
        }
    }

    /// Tries a lane's lock, and visits the lane if it is free.
    fn try_lane(&mut self, lane: usize) -> Nap {
        match self.worker.lanes[lane].try_lock() {
            Some(mut cell) => self.visit(lane, &mut cell),
            None => {
                self.board.note_lost(lane);
                self.metronome.lost()
            }
        }
    }

    /// Polls a lane that the policy named until it is empty, and returns what the policy decides to do next.
    fn visit(&mut self, lane: usize, cell: &mut LaneCell) -> Nap {
        let start = self.worker.clock.now();
        let budget = self.metronome.budget().unwrap_or(MOST).min(MOST);
        let (packets, drained, now) = self.drain(cell, start, budget);
        let crew = (self.worker.crew.len(), self.active.max(1));
        let interrupted = self.core_delays.within(now.since(start));
        let shared = cell.shared(&self.settings, crew, &self.profile, start);
        let (policy, vacation) = (&mut shared.policy, start.since(shared.released));
        // Of a lane that was given back with packets in it, it was no vacation.
        let is_timed = policy.mode() == Mode::Metronome && shared.is_vacation;
        let busy = now.since(start);
        // Of a lane that was given back since the sleep, the wait is not in the vacation.
        let waited = Some(self.waited).filter(|waited| *waited <= vacation).unwrap_or_default();
        let packets = packets as u64;
        let visit = Visit { now, vacation, waited, busy, interrupted, packets, drained };
        let home_age = self.metronome.patrol().map(|home| now.since(self.board.visited(home)));
        let nap = self.metronome.won(policy, visit, home_age);
        let holder = shared.holder.replace(self.worker.index);
        let is_other = IsOther(holder != Some(self.worker.index));
        (shared.released, shared.is_vacation) = (now, drained);
        self.board.note_visit(lane, policy, is_timed.then_some((vacation, is_other)), now);
        self.board.set_parked(lane, cell.lane.is_parked());
        self.won = true;
        // Before the lock is released, so that the lane is attended all the while.
        self.attended.attend(lane);
        nap
    }

    /// Polls a lane until nothing is left in it, or until it has brought so many packets. Returns how many there were,
    /// whether nothing is left, and when it ended. What a device has taken and not sent is flushed, too: no packet
    /// waits in a transmit queue while the worker sleeps, if the device takes it in `FLUSHES` polls.
    fn drain(&mut self, cell: &mut LaneCell, start: Time, budget: usize) -> (usize, bool, Time) {
        let reports = self.worker.reporting >= LoadReporting::Lanes;
        let (mut now, mut packets, mut flushes) = (start, 0, 0);
        loop {
            let outcome = cell.lane.poll(now);
            let end = self.worker.clock.now();
            if reports {
                cell.lane.note_time(now, end, outcome.packets > 0);
            }
            now = end;
            if outcome.packets == 0 {
                if cell.lane.unsent() == 0 || flushes == FLUSHES {
                    let next = cell.lane.next_wake().unwrap_or(Time::NEVER);
                    self.deadline = self.deadline.min(next);
                    return (packets, true, now);
                }
                flushes += 1;
                continue;
            }
            packets += outcome.packets;
            if packets >= budget || self.attendance.has_calls() || self.stops() {
                return (packets, false, now);
            }
        }
    }

    /// Visits lanes that were called, and goes on where it was.
    fn answer_calls(&mut self) {
        let mut called = std::mem::take(&mut self.called);
        self.collect_calls(&mut called);
        let before = self.metronome.lane();
        for lane in called.drain(..) {
            self.visit_aside(lane);
        }
        self.called = called;
        if let Some(lane) = before {
            self.metronome.go_to(lane);
        }
    }

    fn collect_calls(&self, called: &mut Vec<usize>) {
        self.attendance.take_calls(|lane| self.may(lane), |lane| called.push(lane));
    }

    /// Visits a lane that the policy did not name.
    fn visit_aside(&mut self, lane: usize) {
        // A worker that has it sees the work, or comes back and does.
        let Some(mut cell) = self.worker.lanes[lane].try_lock() else { return };
        self.visit_held(lane, &mut cell);
    }

    fn visit_held(&mut self, lane: usize, cell: &mut LaneCell) {
        if self.metronome.lanes().contains(&lane) {
            self.metronome.go_to(lane);
            // What comes next is up to what the worker was about.
            let _ = self.visit(lane, cell);
            return;
        }
        let start = self.worker.clock.now();
        self.drain(cell, start, MOST);
        self.board.set_parked(lane, cell.lane.is_parked());
    }

    /// Looks at lanes without shards now and then.
    fn patrol(&mut self) {
        let now = self.worker.clock.now();
        if self.active == self.worker.lanes.len() || now.since(self.patrolled) < PATROL {
            return;
        }
        self.patrolled = now;
        let (workers, index) = (self.worker.crew.len(), self.worker.index);
        for lane in (0..self.worker.lanes.len()).filter(|lane| lane % workers == index) {
            if self.board.is_parked(lane) {
                self.visit_aside(lane);
            }
        }
    }

    /// Does between two tries what the policy decided.
    fn take(&mut self, nap: Nap) {
        self.patrol();
        let won = std::mem::take(&mut self.won);
        self.choose_lanes(won);
        self.report();
        let deadline = std::mem::replace(&mut self.deadline, Time::NEVER);
        self.waited = Duration::ZERO;
        match nap {
            Nap::Now => {}
            Nap::Spin(time) => self.pass(time, Sleeper::spin),
            // A lane that is lost while all are idle is watched by a worker that blocks.
            Nap::Idle(_) | Nap::Sleep(_)
                if (!won || matches!(nap, Nap::Idle(_))) && self.is_idle() =>
            {
                self.block();
            }
            Nap::Idle(ask) | Nap::Sleep(ask) => {
                let now = self.worker.clock.now();
                let due = if deadline > now { deadline.since(now) } else { ask };
                self.pass(ask.min(due), Sleeper::sleep);
            }
        }
        self.warn_of_delay();
    }

    /// Lets time pass until the next try, and notes how long the worker then waited for a core.
    fn pass(&mut self, time: Duration, how: fn(&Sleeper, Duration)) {
        let end = self.worker.clock.now() + time;
        how(&self.sleeper, time);
        let late = self.worker.clock.now().since(end);
        self.waited = self.core_delays.within(late);
    }

    /// Reports that packets wait for other threads on the worker's core.
    fn warn_of_delay(&mut self) {
        if self.core_delays.are_long(self.worker.clock.now()) {
            self.board.warn(
                "workers wait for their cores more than 5 % of the time, since other threads run there; packets wait as long \
                 beside the target, which shorter sleeps would not change: set `[workers] priority = \"fifo:10\"`, or keep \
                 other programs off these cores"
                    .to_owned(),
            );
        }
    }

    /// Whether all lanes that this worker may run wait for an interrupt.
    fn is_idle(&self) -> bool {
        self.metronome.lanes().iter().all(|lane| self.board.mode(*lane) == Mode::Interrupt)
    }

    /// Attends from now on the lanes to which the worker comes back after a short timeout: where lanes outnumber workers,
    /// all; after a lost try, none.
    fn choose_lanes(&mut self, won: bool) {
        if self.metronome.division().lanes_per_wake > 1 {
            self.metronome.lanes().iter().for_each(|lane| self.attended.attend(*lane));
            return;
        }
        let lane = self.metronome.lane().filter(|_| won);
        lane.into_iter().for_each(|lane| self.attended.attend(lane));
        self.attended.leave_all_but(lane);
    }

    /// Blocks until work comes to a lane that no other worker has, and visits these lanes. It keeps their locks meanwhile: it
    /// is the one to be woken for them.
    fn block(&mut self) {
        let (worker, before) = (self.worker, self.metronome.lane());
        let lanes = (0..worker.lanes.len()).filter(|lane| self.may(*lane));
        let take = |lane: usize| Some((lane, worker.lanes[lane].try_lock()?));
        let mut held: Vec<(usize, TryGuard<'_, LaneCell>)> = lanes.filter_map(take).collect();
        for (lane, _) in &held {
            self.attendance.watch(*lane, worker.index);
        }
        self.attended.leave_all_but(None);
        let notifier = worker.crew.notifier(worker.index);
        notifier.prepare_park();
        match self.rest(&mut held) {
            Rest::Awake => {}
            Rest::Nap => {
                self.blocks += 1;
                self.sleeper.sleep(NAP);
            }
            rest => {
                self.blocks += 1;
                let cells = || held.iter().map(|(_, cell)| &cell.lane);
                block(cells, notifier, rest, &worker.clock);
            }
        }
        notifier.unpark();
        for (lane, mut cell) in held {
            self.attendance.unwatch(lane);
            self.visit_held(lane, &mut cell);
        }
        if let Some(lane) = before {
            self.metronome.go_to(lane);
        }
        // What was visited is attended until the next sleep. The others go back to their lanes.
        if self.metronome.lane().is_some() && !self.is_idle() {
            worker.crew.wake_all();
        }
        self.report();
    }

    /// What the lanes that a worker has permit, after a last look. Each is checked twice, as by a worker that lanes are
    /// bound to.
    fn rest(&mut self, held: &mut [(usize, TryGuard<'_, LaneCell>)]) -> Rest {
        let mut called = std::mem::take(&mut self.called);
        self.collect_calls(&mut called);
        let is_called = !called.is_empty();
        for lane in called.drain(..) {
            // Lanes that this worker has are visited as soon as it is awake; others are left to the workers that have them.
            if !held.iter().any(|(own, _)| *own == lane) {
                self.visit_aside(lane);
            }
        }
        self.called = called;
        // Modes are looked at again: a worker that has found a packet meanwhile has woken all that slept.
        if is_called || self.stops() || !self.is_idle() {
            return Rest::Awake;
        }
        let now = self.worker.clock.now();
        let mut rest = Rest::Sleep;
        for _ in 0..2 {
            for (_, cell) in held.iter_mut() {
                rest = rest.min(cell.lane.rest(now));
                if rest == Rest::Awake || self.stops() {
                    return Rest::Awake;
                }
            }
        }
        rest
    }

    fn report(&self) {
        let counts = self.metronome.counts();
        let counts = WorkerPolling {
            tries: counts.tries,
            lost: counts.lost,
            sleeps: counts.sleeps,
            spins: counts.spins,
            blocks: self.blocks,
        };
        self.board.note_worker(self.worker.index, counts);
    }
}
