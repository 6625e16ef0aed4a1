//! Metronome: workers that sleep between polls, for a CPU time in proportion to the load (DESIGN 6.4).
//!
//! Everything here is values in, decisions out: no clock, no sleep, no lock. Two values decide:
//!
//! - [`LanePolicy`], one per lane, stands in the lane's cell and is written under its try-lock. It knows the lane's
//!   occupancy ρ, its target vacation V̄, and its [`Mode`].
//! - [`Metronome`], one per worker, is the worker's own. It states which lane to try, and what to do after the try.
//!
//! A worker's loop:
//!
//! ```text
//! metronome.regroup(lanes that are not parked)         at the start, and whenever that set changes
//! loop {
//!     let Some(lane) = metronome.lane() else { block until a lane is not parked };
//!     let nap = if cell[lane].try_lock() {
//!         vacation = now − cell.released;
//!         poll until empty, at most metronome.budget() packets if that is some;
//!         flush every transmit queue of the lane;      no packet waits in a buffer across a sleep
//!         let home_age = metronome.patrol().map(|home| now − last visit of home);
//!         let visit = Visit { now, vacation, busy, packets, drained };
//!         let nap = metronome.won(&mut cell.policy, visit, home_age);
//!         cell.released = now; unlock;
//!         nap
//!     } else {
//!         metronome.lost()
//!     };
//!     match nap {
//!         Nap::Now => {}                               try metronome.lane() at once
//!         Nap::Spin(time) => sleeper.spin(time),       too short for a sleep
//!         Nap::Sleep(ask) => sleeper.sleep(ask),       calibrated: ask for exactly this
//!         Nap::Idle(ask) =>                            every lane of this wake-up is in Mode::Interrupt:
//!             if all lanes that the worker may run are, block until a notifier or a device wakes it
//!             else sleeper.sleep(ask),
//!     }
//! }
//! ```
//!
//! A sleep is never longer than T_S after a won try and T_L after a lost one; the caller shortens it to the next timer
//! of the lanes it looks after. After [`Nap::Idle`] and a wake-up, `lane()` is any of the worker's lanes: a worker that
//! knows which one has packets reports it by [`Metronome::go_to`].
//!
//! **Which lane.** After a won try the same one; after a lost one a random one (4.5), or always the same by
//! [`Binding::Static`]. As a worker leaves a lane only when it loses it to another one that comes back, no lane is
//! without a worker once each had one; a change of the lanes can break this, so a worker that is away from its home
//! lane (worker w's is lane w mod N) also looks at that one after 2·T_L, and goes there if no worker has visited it for T_L. It
//! only looks: a worker that took the lane for a moment would make the one that comes back lose it, and then leave it
//! itself. So a lane waits at most about 4·T_L for a try, whatever happened. Where lanes outnumber workers, a wake-up tries ⌈N/M⌉ lanes in turn, each
//! for at most a budget of packets, and a worker that left packets behind does not sleep.
//!
//! **Where this differs from the original.** Sleeps are calibrated; T_S is shortened until the measured mean vacation is the
//! target, which the formula alone misses by up to m times ([`VacationLaw`] states why); modes change with the load; ρ of a
//! lane counts only polls that had packets; the home lane is tried; lanes may outnumber workers (m of [`Division`] in place of
//! M/N).

mod lane_policy;
pub mod latency;
pub mod law;
pub mod mode;
mod occupancy;
mod random;
mod settings;
pub mod timeouts;
mod vacations;

pub use lane_policy::{Goal, LanePolicy, Visit};
pub use latency::{LaneService, LatencyGoal, LatencyOf};
pub use law::VacationLaw;
pub use mode::{Mode, ModeMachine, ModeRules};
pub(super) use settings::REGISTRATION;
pub use timeouts::{Division, Timeouts, short_timeout};
pub use vacations::VacationHistogram;

use std::sync::Arc;
use std::time::Duration;

use rheostat_base::Time;
use rheostat_kernel::sleep::SleepProfile;

use self::random::SplitMix;

/// Which lanes a worker may run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Binding {
    /// Any: a random one after a lost try.
    #[default]
    Random,
    /// Lane n is for the workers w with w ≡ n (mod N), or, where lanes outnumber workers, for worker n mod M.
    Static,
}

/// What the workers of a run agree on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MetronomeSettings {
    /// What vacations are chosen for.
    pub goal: Goal,
    /// The timeouts.
    pub timeouts: Timeouts,
    /// Which lanes a worker may run.
    pub binding: Binding,
    /// When lanes change their mode.
    pub rules: ModeRules,
    /// Packets that a worker takes from a lane before it goes on to the next, where lanes outnumber workers.
    pub budget: usize,
}

impl Default for MetronomeSettings {
    fn default() -> MetronomeSettings {
        MetronomeSettings {
            goal: Goal::VACATION,
            timeouts: Timeouts::default(),
            binding: Binding::default(),
            rules: ModeRules::default(),
            budget: 256,
        }
    }
}

impl MetronomeSettings {
    /// The policy of one lane among `lanes` that are not parked, for `workers` workers.
    pub fn lane(
        &self,
        workers: usize,
        lanes: usize,
        profile: &Arc<SleepProfile>,
        now: Time,
    ) -> LanePolicy {
        let crew = Division::shared(workers, lanes.max(1)).workers_per_lane;
        LanePolicy::new(self.goal, self.rules, self.timeouts, profile, crew, now)
    }
}

/// What a worker does after a try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nap {
    /// Tries [`Metronome::lane`] at once.
    Now,
    /// Spins for so long, then tries: a sleep could not end in time, or would cost more than it saves.
    Spin(Duration),
    /// Asks the sleep for this, then tries. The measured overshoot is subtracted already.
    Sleep(Duration),
    /// Every lane tried since the last sleep waits for an interrupt: blocks if all lanes that the worker may run do, and
    /// otherwise asks the sleep for this.
    Idle(Duration),
}

/// What a worker has done. The worker is the only writer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MetronomeCounts {
    /// Tries of a lane's lock.
    pub tries: u64,
    /// Tries that found it taken ("busy tries").
    pub lost: u64,
    /// Sleeps, from which the worker woke up.
    pub sleeps: u64,
    /// Spins in place of a sleep.
    pub spins: u64,
    /// Looks of a worker that was away at whether another worker visits its home lane.
    pub patrols: u64,
}

/// T_L that a worker stays away from its home lane.
const AWAY: u32 = 2;

/// What one wake-up has come to so far.
#[derive(Clone, Copy, Debug)]
struct WakeUp {
    /// Lanes still to try before the next sleep.
    left: usize,
    /// The shortest T_S of the lanes won; none while all were lost.
    short: Option<Duration>,
    /// A lane had more packets than the budget, or is in busy mode.
    again: bool,
    /// All lanes won wait for an interrupt.
    idle: bool,
    /// The position of the lane to come back to, while the home lane is tried.
    patrol_from: Option<usize>,
}

impl WakeUp {
    fn new(left: usize) -> WakeUp {
        WakeUp { left, short: None, again: false, idle: true, patrol_from: None }
    }
}

/// The decisions of one worker.
///
/// Bounds: each call takes some tens of nanoseconds and allocates nothing, except [`Metronome::regroup`] when the number
/// of lanes grows.
#[derive(Clone, Debug)]
pub struct Metronome {
    settings: MetronomeSettings,
    profile: Arc<SleepProfile>,
    worker: usize,
    workers: usize,
    /// The lanes that this worker may try.
    lanes: Vec<usize>,
    division: Division,
    /// Positions in `lanes`.
    current: usize,
    home: usize,
    wake_up: WakeUp,
    /// The last T_S, in place of that of a lane that was lost.
    short: Duration,
    /// Time slept and worked since the worker was last at home.
    away: Duration,
    random: SplitMix,
    counts: MetronomeCounts,
}

impl Metronome {
    /// The decisions of worker `worker` of `workers`, which has no lane until [`Metronome::regroup`]. `seed` is the
    /// run's: each worker makes its own of it.
    ///
    /// # Panics
    /// If `worker` is not below `workers`.
    pub fn new(
        settings: MetronomeSettings,
        profile: Arc<SleepProfile>,
        worker: usize,
        workers: usize,
        seed: u64,
    ) -> Metronome {
        assert!(worker < workers, "worker {worker} of {workers}");
        Metronome {
            settings,
            profile,
            worker,
            workers,
            lanes: Vec::new(),
            division: Division::shared(workers, 1),
            current: 0,
            home: 0,
            wake_up: WakeUp::new(1),
            short: match settings.goal {
                Goal::Vacation(target) => target,
                Goal::Latency(goal) => goal.limit,
            },
            away: Duration::ZERO,
            random: SplitMix::new(seed ^ (worker as u64).wrapping_mul(0xd6e8_feb8_6659_fd93)),
            counts: MetronomeCounts::default(),
        }
    }

    /// The lanes that are not parked are now these, ascending. The worker goes to its home lane and begins a wake-up.
    pub fn regroup(&mut self, active: impl IntoIterator<Item = usize>) {
        self.lanes.clear();
        self.lanes.extend(active);
        let (worker, workers, all) = (self.worker, self.workers, self.lanes.len());
        if all == 0 {
            return;
        }
        self.division = match self.settings.binding {
            Binding::Random => Division::shared(workers, all),
            Binding::Static => {
                let mut position = 0;
                self.lanes.retain(|_| {
                    let own = position % workers == worker || position == worker % all;
                    position += 1;
                    own
                });
                Division::bound(worker, workers, all)
            }
        };
        self.home = match self.settings.binding {
            Binding::Random => worker % all,
            Binding::Static => 0,
        };
        self.current = self.home;
        self.away = Duration::ZERO;
        self.wake_up = WakeUp::new(self.division.lanes_per_wake);
    }

    /// The lanes that this worker may try, in the order of their numbers.
    pub fn lanes(&self) -> &[usize] {
        &self.lanes
    }

    /// The lane to try next; `None` while all are parked.
    pub fn lane(&self) -> Option<usize> {
        self.lanes.get(self.current).copied()
    }

    /// The worker knows that `lane` has work: it tries that one next, if it may.
    pub fn go_to(&mut self, lane: usize) {
        if let Some(position) = self.lanes.iter().position(|own| *own == lane) {
            self.current = position;
            self.wake_up = WakeUp::new(self.division.lanes_per_wake);
        }
    }

    /// How many packets to take from the lane at most; `None`: until it is empty. A caller with other duties sets a limit of
    /// its own, and passes `drained: false` when it was reached.
    pub fn budget(&self) -> Option<usize> {
        (self.division.lanes_per_wake > 1).then_some(self.settings.budget)
    }

    /// How lanes are divided among workers at present.
    pub fn division(&self) -> Division {
        self.division
    }

    /// What the worker has done.
    pub fn counts(&self) -> MetronomeCounts {
        self.counts
    }

    /// The home lane, if the worker has been away for so long that it looks whether a worker visits that lane.
    pub fn patrol(&self) -> Option<usize> {
        let long = self.settings.timeouts.long(self.short);
        let is_due = self.away >= AWAY * long && self.current != self.home;
        let rotates = self.division.lanes_per_wake > 1;
        self.lanes.get(self.home).copied().filter(|_| is_due && !rotates)
    }

    /// The worker won [`Metronome::lane`], and is about to release it. `home_age`: how long ago the lane that
    /// [`Metronome::patrol`] named was last visited.
    ///
    /// The worker tries that lane only if no worker has visited it for T_L. It does not take it on suspicion: the worker that
    /// comes back to the lane would find it taken, and leave it for T_L and a random lane, while this one returns to its own.
    pub fn won(&mut self, lane: &mut LanePolicy, visit: Visit, home_age: Option<Duration>) -> Nap {
        self.counts.tries += 1;
        lane.on_visit(visit);
        self.away += visit.busy;
        let crew = self.division.workers_per_lane;
        let short = self.settings.timeouts.short(lane.aim(), crew, lane.rho());
        let wake_up = &mut self.wake_up;
        wake_up.short = Some(wake_up.short.map_or(short, |least| least.min(short)));
        wake_up.again |= !visit.drained || lane.mode() == Mode::Busy;
        wake_up.idle &= lane.mode() == Mode::Interrupt;
        if let Some(from) = wake_up.patrol_from.take() {
            // The home lane is attended if it was visited within T_L.
            if visit.vacation < self.settings.timeouts.long(short) {
                self.current = from;
            }
            return self.end_wake_up();
        }
        self.next_of_wake_up(home_age)
    }

    /// Another worker has [`Metronome::lane`].
    pub fn lost(&mut self) -> Nap {
        self.counts.tries += 1;
        self.counts.lost += 1;
        if let Some(from) = self.wake_up.patrol_from.take() {
            self.current = from;
            return self.end_wake_up();
        }
        self.next_of_wake_up(None)
    }

    fn next_of_wake_up(&mut self, home_age: Option<Duration>) -> Nap {
        let several = self.division.lanes_per_wake > 1;
        if several {
            self.current = (self.current + 1) % self.lanes.len();
            self.wake_up.left = self.wake_up.left.saturating_sub(1);
            if self.wake_up.left > 0 {
                return Nap::Now;
            }
        }
        if let Some(age) = home_age {
            self.counts.patrols += 1;
            self.away = Duration::ZERO;
            if age >= self.settings.timeouts.long(self.short) {
                self.wake_up.patrol_from = Some(std::mem::replace(&mut self.current, self.home));
                return Nap::Now;
            }
        }
        self.end_wake_up()
    }

    fn end_wake_up(&mut self) -> Nap {
        let next = WakeUp::new(self.division.lanes_per_wake);
        let WakeUp { short, again, idle, .. } = std::mem::replace(&mut self.wake_up, next);
        if again {
            return Nap::Now;
        }
        let timeout = match short {
            Some(short) => {
                self.short = short;
                short
            }
            None => {
                let long = self.settings.timeouts.long(self.short);
                self.current = match self.lanes.len() {
                    0 => 0,
                    _ if self.away >= AWAY * long => self.home,
                    lanes => self.random.below(lanes),
                };
                long
            }
        };
        self.away = if self.current == self.home { Duration::ZERO } else { self.away + timeout };
        match self.profile.ask_for(timeout) {
            Some(ask) if idle && short.is_some() => Nap::Idle(ask),
            Some(ask) => {
                self.counts.sleeps += 1;
                Nap::Sleep(ask)
            }
            // An idle lane is worth blocking for, however short its timeout.
            None if idle && short.is_some() => Nap::Idle(timeout),
            None => {
                self.counts.spins += 1;
                Nap::Spin(timeout)
            }
        }
    }
}

#[cfg(test)]
mod tests;
