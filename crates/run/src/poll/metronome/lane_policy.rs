//! What Metronome knows of one lane. Stands in the lane's cell and is written under its lock.

use std::sync::Arc;
use std::time::Duration;

use rheostat_base::Time;
use rheostat_kernel::sleep::SleepProfile;

use super::latency::{LONGEST_DERIVED, LaneService, LatencyGoal, LatencyOf, SHORTEST_DERIVED};
use super::mode::{Mode, ModeMachine, ModeRules};
use super::occupancy::Occupancy;
use super::timeouts::Timeouts;
use super::vacations::VacationHistogram;

/// What vacations are chosen for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Goal {
    /// This mean vacation, V̄.
    Vacation(Duration),
    /// The longest V̄ under which this latency holds.
    Latency(LatencyGoal),
}

impl Goal {
    /// V̄ of the original.
    pub const VACATION: Goal = Goal::Vacation(Duration::from_micros(10));
}

/// One visit of a worker that won the lane's try-lock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Visit {
    /// When it ends, just before the lock is released.
    pub now: Time,
    /// V: from the last release of the lock to its acquisition.
    pub vacation: Duration,
    /// Of V, how long the worker's sleep was over and it waited for a core.
    pub waited: Duration,
    /// B: from the acquisition to the end.
    pub busy: Duration,
    /// Of B, how long the worker waited for a core.
    pub interrupted: Duration,
    /// Packets received, taken from other lanes, and come back from a pool.
    pub packets: u64,
    /// Whether nothing was left; false when the worker's budget ended first.
    pub drained: bool,
}

/// A window of vacations is evaluated when it is as long as this, and has so many of them.
const WINDOW: Duration = Duration::from_millis(10);
const VACATIONS: u32 = 64;
/// A target vacation is missed when the mean of a window is so many times longer. The mean of sleeps lies above the median that
/// is aimed at, and a loaded machine adds to it; twice is what the original measures for 10 µs.
const TOLERANCE: f64 = 2.0;
/// No vacation counts for more than this many targets: one preemption, which strikes a spinning worker as well, is no
/// reason to spin.
const OUTLIER: f64 = 8.0;
/// The aim is at least this share of the target.
const LEAST_AIM: f64 = 0.25;
/// A derived target grows when it could be longer by more than this share, by at most a doubling per window.
const DEAD_BAND: f64 = 0.1;
/// It shrinks when it has to be shorter by more than this share, by at most a halving per window: sooner, since longer than it
/// may be it breaks the promise.
const MISS: f64 = 0.02;
/// The share of a latency that is held back: a target that is too long by [`MISS`] still keeps the promise, and so does one
/// whose vacations were counted in bins of some per cent.
const RESERVE: f64 = 0.03;

/// Occupancy, mode and target vacation of one lane.
///
/// Bounds: a visit costs some 40 ns, and one in a window (10 ms or more) with a latency goal about 20 µs.
#[derive(Clone, Debug)]
pub struct LanePolicy {
    goal: Goal,
    /// V̄: what the goal states, or what is derived from it.
    target: Duration,
    /// The V̄ that T_S is computed from: shorter than the target where vacations turn out longer than the formula has
    /// them.
    aim: Duration,
    follows: bool,
    occupancy: Occupancy,
    modes: ModeMachine,
    vacations: VacationHistogram,
    window: Window,
    /// Moments of the last windows, halved at the end of each.
    moments: Moments,
}

/// The window under way.
#[derive(Clone, Copy, Debug, Default)]
struct Window {
    start: Time,
    vacations: u32,
}

#[derive(Clone, Copy, Debug, Default)]
struct Moments {
    /// Seconds of vacations and busy periods, and of those with packets.
    elapsed: f64,
    busy: f64,
    packets: f64,
}

impl LanePolicy {
    /// A lane of which nothing is known at `now`. A target that is to be derived begins with that of an idle lane that
    /// `crew` workers look after.
    pub fn new(
        goal: Goal,
        rules: ModeRules,
        timeouts: Timeouts,
        profile: &Arc<SleepProfile>,
        crew: f64,
        now: Time,
    ) -> LanePolicy {
        let target = match goal {
            Goal::Vacation(target) => target,
            Goal::Latency(latency) => latency
                .target_vacation(&LaneService::default(), crew, timeouts, profile)
                .unwrap_or(SHORTEST_DERIVED),
        };
        LanePolicy {
            goal,
            target,
            aim: target,
            follows: matches!(timeouts, Timeouts::Adaptive { follows: true, .. }),
            occupancy: Occupancy::default(),
            modes: ModeMachine::new(rules, now),
            vacations: VacationHistogram::default(),
            window: Window { start: now, vacations: 0 },
            moments: Moments::default(),
        }
    }

    /// ρ, between 0 and 1.
    pub fn rho(&self) -> f64 {
        self.occupancy.rho()
    }

    /// V̄: what the goal states, or what was derived from it.
    pub fn target(&self) -> Duration {
        self.target
    }

    /// The vacation to compute T_S from.
    pub fn aim(&self) -> Duration {
        self.aim
    }

    /// The present mode.
    pub fn mode(&self) -> Mode {
        self.modes.mode()
    }

    /// The mode, with the time in each.
    pub fn modes(&self) -> &ModeMachine {
        &self.modes
    }

    /// What the last windows saw of arrivals and service.
    pub fn service(&self) -> LaneService {
        let Moments { elapsed, busy, packets } = self.moments;
        if packets == 0.0 || elapsed == 0.0 {
            return LaneService::default();
        }
        LaneService::exponential(packets / elapsed, busy / packets)
    }

    /// A worker has visited the lane.
    pub(super) fn on_visit(&mut self, visit: Visit) {
        let Visit { now, vacation, packets, drained, .. } = visit;
        // An empty poll is no load, and neither is what other threads do on the worker's core.
        let busy = match packets {
            0 => Duration::ZERO,
            _ => visit.busy.saturating_sub(visit.interrupted),
        };
        if drained {
            self.occupancy.observe(vacation + visit.interrupted, busy);
        } else {
            self.occupancy.observe_backlog();
        }
        self.moments.elapsed += vacation.as_secs_f64() + visit.busy.as_secs_f64();
        self.moments.busy += busy.as_secs_f64();
        self.moments.packets += packets as f64;
        // Only vacations that a timeout ended say what timeouts do. A shorter timeout would not end the wait for a core: it would
        // take more of the core, and with it the claim to it that a thread has which sleeps.
        if self.modes.mode() == Mode::Metronome {
            self.vacations.record(vacation.saturating_sub(visit.waited));
            self.window.vacations += 1;
        }
        let before = self.modes.mode();
        if self.modes.on_visit(now, packets) != before {
            self.window = Window { start: now, vacations: 0 };
        } else if self.window.vacations >= VACATIONS && now.since(self.window.start) >= WINDOW {
            self.end_window(now);
        }
    }

    fn end_window(&mut self, now: Time) {
        let missed = match self.goal {
            Goal::Vacation(target) => self.follow_vacations(target),
            Goal::Latency(goal) => self.follow_latency(goal),
        };
        self.modes.on_window(now, missed);
        self.vacations.forget();
        let Moments { elapsed, busy, packets } = self.moments;
        self.moments = Moments { elapsed: elapsed / 2.0, busy: busy / 2.0, packets: packets / 2.0 };
        self.window = Window { start: now, vacations: 0 };
    }

    /// Moves the aim so that the mean vacation is the target. Returns whether it misses it by far.
    fn follow_vacations(&mut self, target: Duration) -> bool {
        let wanted = target.as_secs_f64();
        let mean = self.vacations.mean(OUTLIER * wanted);
        if self.follows && mean > 0.0 {
            // Half of the way, as a ratio: the histogram remembers vacations from before the last step.
            let step = (wanted / mean).sqrt().clamp(0.5, 2.0);
            self.aim = self.aim.mul_f64(step).clamp(target.mul_f64(LEAST_AIM), target);
        }
        mean > TOLERANCE * wanted
    }

    /// Moves the target to where the measured vacations, longer or shorter by the same factor, keep the promise. Returns
    /// whether they break it although the target is as short as it can be.
    fn follow_latency(&mut self, goal: LatencyGoal) -> bool {
        let service = self.service();
        let limit = goal.limit.as_secs_f64() * (1.0 - RESERVE);
        let is_met = |scale: f64| match goal.of {
            LatencyOf::Mean => {
                service.mean + service.wait() + scale * self.vacations.mean_residual() <= limit
            }
            LatencyOf::Share(share) => {
                let residual = |x| self.vacations.residual_survival(x, scale);
                let mean = self.vacations.mean(f64::INFINITY);
                let limit = limit - service.burst_wait(scale * mean);
                service.late_share(limit, residual) <= 1.0 - share
            }
        };
        let (mut low, mut high) = (0.5, 2.0);
        if is_met(high) {
            low = high;
        } else if is_met(low) {
            while high - low > 0.02 {
                let middle = (low + high) / 2.0;
                if is_met(middle) { low = middle } else { high = middle }
            }
        }
        let at_least = self.target <= SHORTEST_DERIVED;
        let missed = at_least && !is_met(1.0);
        if !(1.0 - MISS..=1.0 + DEAD_BAND).contains(&low) {
            self.target = self.target.mul_f64(low).clamp(SHORTEST_DERIVED, LONGEST_DERIVED);
            self.aim = self.target;
        }
        missed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: fn(u64) -> Duration = Duration::from_micros;
    /// A visit that nothing disturbed, and that left nothing behind.
    const DRAINED: Visit = Visit {
        now: Time::ZERO,
        vacation: Duration::ZERO,
        waited: Duration::ZERO,
        busy: Duration::ZERO,
        interrupted: Duration::ZERO,
        packets: 0,
        drained: true,
    };

    fn lane(goal: Goal) -> LanePolicy {
        let profile = Arc::new(SleepProfile::exact());
        let (rules, timeouts) = (ModeRules::default(), Timeouts::default());
        LanePolicy::new(goal, rules, timeouts, &profile, 1.0, Time::ZERO)
    }

    /// Visits until `ms` milliseconds have passed, each after the vacation that `vacation` gives for the aim.
    fn run(
        lane: &mut LanePolicy,
        now: &mut Time,
        ms: u64,
        vacation: impl Fn(Duration) -> Duration,
    ) {
        let end = *now + Duration::from_millis(ms);
        while *now < end {
            let (vacation, busy) = (vacation(lane.aim()), US(2));
            *now += vacation + busy;
            lane.on_visit(Visit { now: *now, vacation, busy, packets: 2, ..DRAINED });
        }
    }

    #[test]
    fn an_empty_poll_is_no_load_and_a_backlog_is_full_load() {
        let mut lane = lane(Goal::VACATION);
        let empty = Visit { vacation: US(1), busy: US(1), ..DRAINED };
        lane.on_visit(empty);
        assert_eq!(lane.rho(), 0.0);
        lane.on_visit(Visit { packets: 9, drained: false, ..empty });
        assert_eq!(lane.rho(), 0.25);
        lane.on_visit(Visit { packets: 9, ..empty });
        assert_eq!(lane.rho(), 0.75 * 0.25 + 0.125);
    }

    #[test]
    fn vacations_of_twice_the_target_are_missed_and_one_preemption_is_not() {
        let (mut late, mut now) = (lane(Goal::VACATION), Time::ZERO);
        run(&mut late, &mut now, 30, |_| US(35));
        assert_eq!(late.mode(), Mode::Busy);
        let (mut preempted, mut now) = (lane(Goal::VACATION), Time::ZERO);
        for _ in 0..20 {
            run(&mut preempted, &mut now, 5, |target| target + US(1));
            run(&mut preempted, &mut now, 1, |_| Duration::from_millis(5));
        }
        assert_eq!(preempted.mode(), Mode::Metronome);
    }

    #[test]
    fn the_aim_follows_what_is_measured_if_it_may() {
        let longer = |aim: Duration| aim + US(6);
        let (mut follows, mut now) = (lane(Goal::VACATION), Time::ZERO);
        for _ in 0..30 {
            run(&mut follows, &mut now, 20, longer);
        }
        assert!(follows.aim() > US(3) && follows.aim() < US(5), "{:?}", follows.aim());
        assert_eq!((follows.target(), follows.mode()), (US(10), Mode::Metronome));
        run(&mut follows, &mut now, 600, |aim| aim);
        assert!(follows.aim() > US(9), "{:?}", follows.aim());
        let profile = Arc::new(SleepProfile::exact());
        let timeouts = Timeouts::Adaptive { long: Timeouts::LONG, follows: false };
        let rules = ModeRules::default();
        let mut fixed = LanePolicy::new(Goal::VACATION, rules, timeouts, &profile, 1.0, Time::ZERO);
        run(&mut fixed, &mut now, 200, longer);
        assert_eq!(fixed.aim(), US(10));
    }

    #[test]
    fn a_target_that_follows_leaves_room_for_bursts_that_leave_together() {
        let goal = LatencyGoal { limit: US(100), of: LatencyOf::Share(0.99) };
        let (mut lane, mut now) = (lane(Goal::Latency(goal)), Time::ZERO);
        // A packet in each 2 us, and half a microsecond of service.
        while now < Time::from_secs(1) {
            let vacation = lane.aim();
            let packets = vacation.as_nanos() as u64 / 2_000;
            let busy = Duration::from_nanos(500) * packets as u32;
            now += vacation + busy;
            lane.on_visit(Visit { now, vacation, busy, packets, ..DRAINED });
        }
        // The rate is 0.4 packets per microsecond, the wait of the queue without vacations some 0.1 us: 0.99 V + 0.2 V
        // = 100 us. Without that room V is 100 us.
        let target = lane.target();
        assert!(target > US(75) && target < US(90), "{target:?}");
        assert_eq!(lane.mode(), Mode::Metronome);
    }

    #[test]
    fn the_target_follows_what_is_measured() {
        let goal = LatencyGoal { limit: US(100), of: LatencyOf::Share(0.99) };
        let (mut lane, mut now) = (lane(Goal::Latency(goal)), Time::ZERO);
        let first = lane.target();
        assert!(first > US(95) && first <= US(102), "{first:?}");
        // Sleeps take 20 us more than the profile said.
        run(&mut lane, &mut now, 300, |target| target + US(20));
        assert!(lane.target() > US(60) && lane.target() < US(85), "{:?}", lane.target());
        assert_eq!(lane.mode(), Mode::Metronome);
        run(&mut lane, &mut now, 300, |target| target);
        assert!(lane.target() > US(80) && lane.target() < US(105), "{:?}", lane.target());
    }

    #[test]
    fn a_promise_that_no_vacation_keeps_is_kept_by_busy_polling() {
        let goal = LatencyGoal { limit: US(30), of: LatencyOf::Share(0.99) };
        let (mut lane, mut now) = (lane(Goal::Latency(goal)), Time::ZERO);
        while lane.mode() != Mode::Busy {
            run(&mut lane, &mut now, 1, |target| target + US(60));
            assert!(now < Time::from_secs(1), "{lane:?}");
        }
        assert_eq!(lane.target(), SHORTEST_DERIVED);
    }

    #[test]
    fn the_service_is_what_was_measured() {
        let (mut lane, mut now) = (lane(Goal::VACATION), Time::ZERO);
        run(&mut lane, &mut now, 50, |_| US(8));
        let LaneService { rate, mean, .. } = lane.service();
        assert!((rate - 200_000.0).abs() < 1.0 && (mean - 1e-6).abs() < 1e-12, "{rate} {mean}");
        assert!((lane.rho() - 0.2).abs() < 1e-6);
    }

    #[test]
    fn vacations_that_no_timeout_ended_do_not_count() {
        let (mut lane, mut now) = (lane(Goal::VACATION), Time::ZERO);
        run(&mut lane, &mut now, 30, |_| US(35));
        assert_eq!(lane.mode(), Mode::Busy);
        let before = lane.vacations.mean(1.0);
        run(&mut lane, &mut now, 50, |_| Duration::ZERO);
        assert_eq!(lane.vacations.mean(1.0), before);
    }

    /// A second on a busy machine: one vacation in four ends 3 ms late, since the worker waits for a core, and one visit in four is
    /// interrupted for as long. The share of the lane's own work is 15 %.
    fn run_beside_others(goal: Goal) -> LanePolicy {
        let (mut lane, mut now) = (lane(goal), Time::ZERO);
        let wait = Duration::from_millis(3);
        for visit in 0.. {
            let (waited, interrupted) = match visit % 4 {
                1 => (wait, Duration::ZERO),
                3 => (Duration::ZERO, wait),
                _ => (Duration::ZERO, Duration::ZERO),
            };
            let vacation = lane.aim() + waited;
            // 100 packets per millisecond, of 1.5 us each.
            let packets = (vacation + interrupted).as_micros() as u64 / 10 + 1;
            let busy = Duration::from_nanos(1_500) * packets as u32 + interrupted;
            now += vacation + busy;
            lane.on_visit(Visit { now, vacation, waited, busy, interrupted, packets, ..DRAINED });
            if now >= Time::from_secs(1) {
                break;
            }
        }
        lane
    }

    #[test]
    fn the_wait_for_a_core_is_not_answered_with_shorter_vacations() {
        let goal = LatencyGoal { limit: US(200), of: LatencyOf::Share(0.99) };
        let lane = run_beside_others(Goal::Latency(goal));
        assert!(lane.target() > US(120), "{:?}", lane.target());
        assert_eq!(lane.mode(), Mode::Metronome);
        assert!(lane.rho() > 0.1 && lane.rho() < 0.2, "{}", lane.rho());
        let lane = run_beside_others(Goal::Vacation(US(50)));
        assert!(lane.aim() > US(45), "{:?}", lane.aim());
        assert_eq!(lane.mode(), Mode::Metronome);
    }
}
