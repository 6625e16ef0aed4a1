//! From a latency to the vacation that allows it: the M/G/1 queue with multiple vacations.
//!
//! A packet's latency is the sum of three independent parts (Fuhrmann and Cooper's decomposition): its service S, the
//! wait W of the same queue without vacations, and the residual life of a vacation. So
//! E\[T\] = E\[S\] + λE\[S²\]/(2(1−ρ)) + E\[V²\]/(2E\[V\]), and quantiles follow from the distribution of V alone. It
//! also holds for the packets that arrive during the busy period: with those that arrive x into a vacation V and leave
//! V − x(1−ρ) later, they make the latency of all of them uniform between 0 and V in the fluid limit.

use std::time::Duration;

use rheostat_kernel::sleep::SleepProfile;
use rheostat_packet::BURST;

use super::law::VacationLaw;
use super::timeouts::Timeouts;

/// What is promised about a packet's time between arrival and transmission.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LatencyGoal {
    /// The latency.
    pub limit: Duration,
    /// Of which packets.
    pub of: LatencyOf,
}

/// The packets, or the mean of all, that a latency is promised for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LatencyOf {
    /// All on average.
    Mean,
    /// This share of them, above 0 and below 1.
    Share(f64),
}

/// Arrivals and service of one lane.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LaneService {
    /// λ, packets per second.
    pub rate: f64,
    /// E\[S\] in seconds.
    pub mean: f64,
    /// E\[S²\] in seconds².
    pub mean_square: f64,
}

impl LaneService {
    /// Service of `mean` seconds whose second moment is that of an exponential distribution, for want of a measured one.
    pub fn exponential(rate: f64, mean: f64) -> LaneService {
        LaneService { rate, mean, mean_square: 2.0 * mean * mean }
    }

    /// ρ = λE\[S\], at most 1.
    pub fn rho(&self) -> f64 {
        (self.rate * self.mean).min(1.0)
    }

    /// The mean wait of the queue without vacations, in seconds: λE\[S²\]/(2(1−ρ)); infinite at ρ = 1.
    pub fn wait(&self) -> f64 {
        let work = self.rate * self.mean_square;
        if work == 0.0 { 0.0 } else { work / (2.0 * (1.0 - self.rho())) }
    }

    /// The mean latency in seconds under vacations of these moments.
    pub fn mean_latency(&self, vacation: f64, vacation_square: f64) -> f64 {
        let residual = if vacation > 0.0 { vacation_square / (2.0 * vacation) } else { 0.0 };
        self.mean + self.wait() + residual
    }

    /// What the first packet of a burst waits for the others of it, in seconds, after a vacation of so many: lanes send once
    /// per poll, so the packets of a burst leave together.
    pub fn burst_wait(&self, vacation: f64) -> f64 {
        let burst = (self.rate * vacation).clamp(1.0, BURST as f64);
        (burst - 1.0) * self.mean
    }

    /// The share of packets whose latency exceeds `limit` seconds, when `residual(x)` is the probability that more than
    /// x seconds of a vacation are left.
    ///
    /// The wait is taken to be zero with probability 1 − ρ and exponential otherwise, which is exact for exponential
    /// service; in strata that halve, so that its tail counts.
    pub fn late_share(&self, limit: f64, residual: impl Fn(f64) -> f64) -> f64 {
        let (rho, wait) = (self.rho(), self.wait());
        if !wait.is_finite() {
            return 1.0;
        }
        let late = |waited: f64| {
            let left = limit - self.mean - waited;
            if left < 0.0 { 1.0 } else { residual(left) }
        };
        let mut share = (1.0 - rho) * late(0.0);
        if rho == 0.0 {
            return share;
        }
        let mut rest = 1.0;
        for stratum in 1..=STRATA {
            let weight = if stratum == STRATA { rest } else { rest / 2.0 };
            // The median of the stratum, of an exponential distribution of mean wait/ρ.
            let above = rest - weight / 2.0;
            share += rho * weight * late(-above.ln() * wait / rho);
            rest -= weight;
        }
        share
    }
}

/// Strata of the wait: the last begins at the quantile 1 − 2^-11.
const STRATA: u32 = 12;
/// Quantiles of the sleep that the model uses.
const QUANTILES: usize = 128;
/// The longest vacation that is derived from a latency: a queue of 1,024 descriptors holds what comes at 1 Mpps.
pub const LONGEST_DERIVED: Duration = Duration::from_millis(1);
/// The shortest. Below the shortest sleep a worker spins.
pub const SHORTEST_DERIVED: Duration = Duration::from_nanos(500);

impl LatencyGoal {
    /// Whether a lane keeps the promise under vacations of this law.
    pub fn is_met(&self, service: &LaneService, law: &VacationLaw) -> bool {
        let limit = self.limit.as_secs_f64();
        match self.of {
            LatencyOf::Mean => service.mean_latency(law.mean(), law.mean_square()) <= limit,
            LatencyOf::Share(share) => {
                let limit = limit - service.burst_wait(law.mean());
                service.late_share(limit, |x| law.residual_survival(x)) <= 1.0 - share
            }
        }
    }

    /// The longest target vacation V̄ with which a lane keeps the promise, between [`SHORTEST_DERIVED`] and
    /// [`LONGEST_DERIVED`]; `None` if even the shortest breaks it, and only busy polling is left.
    ///
    /// Bounds: about a millisecond of computation. For the start, `rheo doctor` and models; lanes that run follow what
    /// they measure.
    pub fn target_vacation(
        &self,
        service: &LaneService,
        crew: f64,
        timeouts: Timeouts,
        profile: &SleepProfile,
    ) -> Option<Duration> {
        let is_met = |target: Duration| {
            let short = timeouts.short(target, crew, service.rho());
            let long = timeouts.long(short);
            // Below the shortest sleep the worker spins, which is exact.
            let sleeps = match profile.ask_for(short) {
                Some(_) => profile.durations(short, QUANTILES),
                None => vec![short],
            };
            self.is_met(service, &VacationLaw::new(crew, service.rho(), short, long, &sleeps))
        };
        let (mut met, mut missed) = (SHORTEST_DERIVED, LONGEST_DERIVED);
        if is_met(missed) {
            return Some(missed);
        }
        if !is_met(met) {
            return None;
        }
        while missed - met > met / 100 {
            let middle = (met + missed) / 2;
            if is_met(middle) { met = middle } else { missed = middle }
        }
        Some(met)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: fn(u64) -> Duration = Duration::from_micros;

    fn goal(limit: u64, of: LatencyOf) -> LatencyGoal {
        LatencyGoal { limit: US(limit), of }
    }

    fn derived(goal: LatencyGoal, service: LaneService, crew: f64) -> Option<f64> {
        let profile = SleepProfile::exact();
        let target = goal.target_vacation(&service, crew, Timeouts::default(), &profile);
        target.map(|target| target.as_secs_f64() * 1e6)
    }

    #[test]
    fn an_idle_lane_of_one_worker_waits_for_half_a_vacation_on_average() {
        let idle = LaneService::default();
        let mean = derived(goal(10, LatencyOf::Mean), idle, 1.0).unwrap();
        assert!((19.7..=20.0).contains(&mean), "{mean}");
        // And 99 % wait for no more than 0.99 of it.
        let p99 = derived(goal(99, LatencyOf::Share(0.99)), idle, 1.0).unwrap();
        assert!((98.9..=100.0).contains(&p99), "{p99}");
    }

    #[test]
    fn queueing_and_service_are_subtracted_first() {
        // M/M/1 at ρ = 0.5 with S = 2 us: wait 2, service 2, so 16 of 20 us are left for the residual.
        let half = LaneService::exponential(250_000.0, 2e-6);
        assert!((half.wait() - 2e-6).abs() < 1e-12);
        let target = derived(goal(20, LatencyOf::Mean), half, 1.0).unwrap();
        assert!((31.6..=32.0).contains(&target), "{target}");
        assert_eq!(derived(goal(4, LatencyOf::Mean), half, 1.0), None, "nothing is left");
        let full = LaneService::exponential(600_000.0, 2e-6);
        assert_eq!(derived(goal(100_000, LatencyOf::Share(0.5)), full, 1.0), None);
    }

    #[test]
    fn late_shares_are_those_of_the_queue_alone_without_vacations() {
        // M/M/1: P(W > t) = ρ·exp(−t(1−ρ)/S); service is taken as its mean.
        let lane = LaneService::exponential(400_000.0, 2e-6);
        for t in [4e-6, 10e-6, 30e-6_f64] {
            let late = lane.late_share(t, |_| 0.0);
            let exact = 0.8 * (-(t - 2e-6) * 0.2 / 2e-6).exp();
            assert!(late / exact > 0.6 && late / exact < 1.6, "{t}: {late} {exact}");
        }
    }

    #[test]
    fn vacations_that_mates_cut_short_may_have_a_longer_target_for_the_mean_not_for_the_tail() {
        let idle = LaneService::default();
        let target = |of, crew| derived(goal(50, of), idle, crew).unwrap();
        // Two workers at random phases: E[V²]/(2E[V]) = T_S/3 = 2V̄/3.
        let mean = target(LatencyOf::Mean, 2.0);
        assert!((74.0..=75.1).contains(&mean), "{mean}");
        assert!(target(LatencyOf::Share(0.999), 3.0) < target(LatencyOf::Share(0.999), 1.0));
    }

    #[test]
    fn a_burst_that_leaves_together_delays_its_first_packet() {
        // Half a microsecond of service; 10, and 100 packets in 100 us, of which 32 leave together.
        let waits = |rate| LaneService::exponential(rate, 0.5e-6).burst_wait(100e-6);
        assert!((waits(100_000.0) - 4.5e-6).abs() < 1e-12);
        assert!((waits(1e6) - 15.5e-6).abs() < 1e-12);
        assert_eq!(waits(1_000.0), 0.0);
        let target = |rate| {
            let service = LaneService { rate, mean: 0.5e-6, mean_square: 0.0 };
            derived(goal(100, LatencyOf::Share(0.999)), service, 1.0).unwrap()
        };
        let (few, many) = (target(20_000.0), target(1e6));
        assert!(few - many > 12.0 && few - many < 18.0, "{few} {many}");
    }

    #[test]
    fn service_wait_and_residual_vacation_add_up() {
        let lane = LaneService::exponential(450_000.0, 2e-6);
        let mean = lane.mean_latency(10e-6, 100e-12);
        assert!((mean - (2e-6 + 18e-6 + 5e-6)).abs() < 1e-12, "{mean}");
    }

    #[test]
    fn late_sleeps_shorten_the_target() {
        use rheostat_kernel::sleep::SleepPoint;
        let taken = (0..100).map(|n| US(if n < 98 { 54 } else { 154 })).collect();
        let late = SleepProfile::new(vec![SleepPoint::new(US(50), taken, US(4)).unwrap()]);
        let goal = goal(100, LatencyOf::Share(0.95));
        let target = |profile: &SleepProfile| {
            let idle = LaneService::default();
            goal.target_vacation(&idle, 1.0, Timeouts::default(), profile).unwrap()
        };
        let (exact, late) = (target(&SleepProfile::exact()), target(&late));
        assert!(late < exact - US(2), "{late:?} {exact:?}");
    }
}
