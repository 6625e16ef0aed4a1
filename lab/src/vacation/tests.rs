//! The simulation against closed forms.

use std::sync::Arc;
use std::time::Duration;

use rheostat_kernel::sleep::{SleepPoint, SleepProfile};
use rheostat_run::poll::metronome::{
    Binding, Goal, LaneService, LatencyGoal, LatencyOf, MetronomeSettings, ModeRules, Timeouts,
};

use super::*;

const US: fn(u64) -> Duration = Duration::from_micros;

/// Sleeps that take 3 to 5 us more than asked, and 4 us of CPU time.
pub(super) fn profile() -> SleepProfile {
    let point = |asked| {
        let taken = (0..=20).map(|n| US(asked + 3) + Duration::from_nanos(100 * n)).collect();
        SleepPoint::new(US(asked), taken, US(4)).unwrap()
    };
    SleepProfile::new([1, 10, 50, 100, 500].map(point).into())
}

pub(super) fn settings(timeouts: Timeouts) -> MetronomeSettings {
    let rules = ModeRules { idle_after: None, busy_on_miss: false };
    MetronomeSettings { timeouts, rules, ..MetronomeSettings::default() }
}

pub(super) fn simulation(workers: usize, rates: &[f64], policy: Policy) -> Simulation {
    Simulation {
        workers,
        rates: rates.iter().map(|rate| vec![(Duration::ZERO, *rate)]).collect(),
        spacing: Spacing::Poisson,
        service: US(1),
        varied_service: false,
        departure: Departure::Each,
        descriptors: 1_024,
        profile: Arc::new(profile()),
        empty_poll: Duration::from_nanos(100),
        lost_try: Duration::from_nanos(100),
        policy,
        interference: None,
        length: Duration::from_millis(600),
        warm_up: Duration::from_millis(100),
        interval: None,
        seed: 5,
    }
}

fn metronome(timeouts: Timeouts) -> Policy {
    Policy::Metronome(settings(timeouts))
}

fn within(found: f64, expected: f64, share: f64) {
    assert!((found / expected - 1.0).abs() < share, "{found}, not {expected}");
}

/// Sleeps that take 0 to 30 us more than asked.
fn loose() -> SleepProfile {
    let taken = (0..=300).map(|n| US(50) + Duration::from_nanos(100 * n)).collect();
    SleepProfile::new(vec![SleepPoint::new(US(50), taken, US(4)).unwrap()])
}

/// The distance between simulated vacations of equal timeouts and the law of `law_workers` workers.
fn distance(profile: SleepProfile, workers: usize, rho: f64, law_workers: usize) -> f64 {
    let fixed = Timeouts::Fixed { short: US(65), long: US(65) };
    let mut setup = simulation(workers, &[rho * 1e6], metronome(fixed));
    let law = EqualTimeouts::new(law_workers, &profile.durations(US(65), 300));
    setup.profile = Arc::new(profile);
    setup.length = Duration::from_secs(4);
    let lane = &setup.run().lanes[0];
    kolmogorov_smirnov(&lane.vacations, |x| law.survival(x))
}

#[test]
fn vacations_of_equal_timeouts_follow_4_2_5() {
    for workers in [1, 2, 3, 5] {
        let found = distance(loose(), workers, 0.0, workers);
        assert!(found < 0.04, "{workers} workers: {found}");
        let other = distance(loose(), workers, 0.0, workers + 1);
        assert!(other > 0.06, "{workers} workers by the law of one more: {other}");
    }
}

#[test]
fn load_draws_workers_together_unless_sleeps_vary() {
    // The longer a worker's vacation, the longer its busy period, and the later it comes: nearer to the one behind it.
    // With little variation the workers end up together; a high load decorrelates them again.
    for workers in [2, 3, 5] {
        let exact = |rho| distance(profile(), workers, rho, workers);
        let loose = |rho| distance(loose(), workers, rho, workers);
        assert!(exact(0.1) > 0.4 && exact(0.6) < 0.15, "{workers}: {} {}", exact(0.1), exact(0.6));
        assert!(loose(0.02) < 0.03 && loose(0.6) < 0.08, "{workers}: {}", loose(0.6));
    }
}

#[test]
fn latencies_are_those_of_the_queue_with_vacations_and_not_of_the_original_formula() {
    for rho in [0.1, 0.4, 0.7] {
        let mut setup = simulation(1, &[rho * 1e6], metronome(Timeouts::default()));
        setup.varied_service = true;
        let result = setup.run();
        let lane = &result.lanes[0];
        let service = LaneService::exponential(rho * 1e6, 1e-6);
        let (mean, square) = (lane.vacation_mean(), lane.vacation_mean_square());
        within(result.latency_mean, service.mean_latency(mean, square), 0.05);
        let original = mean_latency_of_original(&service, mean);
        assert!(original > 1.3 * result.latency_mean, "{original} {}", result.latency_mean);
    }
}

#[test]
fn busy_polling_is_the_queue_without_vacations_at_the_price_of_the_core() {
    let mut setup = simulation(1, &[500_000.0], Policy::Busy);
    setup.varied_service = true;
    setup.empty_poll = Duration::from_nanos(20);
    let result = setup.run();
    // M/M/1: S/(1 − ρ).
    within(result.latency_mean, 2e-6, 0.05);
    within(result.cpu_share, 1.0, 0.01);
    assert_eq!((result.lost_tries(), result.loss(), result.sleeps), (0.0, 0.0, 0));
}

#[test]
fn an_idle_lane_costs_one_sleep_and_one_empty_poll_per_vacation() {
    for (workers, target) in [(1, 100), (1, 20), (3, 20)] {
        let goal = Goal::Vacation(US(target));
        let policy = MetronomeSettings { goal, ..settings(Timeouts::default()) };
        let result = simulation(workers, &[0.0], Policy::Metronome(policy)).run();
        within(result.lanes[0].vacation_mean(), target as f64 * 1e-6, 0.1);
        within(result.cpu_share, 4.1 / target as f64, 0.1);
        assert_eq!(result.lanes[0].packets + result.lanes[0].lost, 0);
    }
}

#[test]
fn every_packet_is_processed_or_lost_at_a_full_queue() {
    let rate = 400_000.0;
    let arrived = |result: &SimulationResult| {
        result.lanes.iter().map(|lane| (lane.packets + lane.lost) as f64).sum::<f64>()
    };
    let small = {
        let goal = Goal::Vacation(US(500));
        let policy = MetronomeSettings { goal, ..settings(Timeouts::default()) };
        let mut setup = simulation(1, &[rate], Policy::Metronome(policy));
        setup.descriptors = 64;
        setup.run()
    };
    within(arrived(&small), 0.5 * rate, 0.02);
    // Of the 200 packets of a vacation 64 fit.
    assert!(small.loss() > 0.3, "{}", small.loss());
    let large = simulation(1, &[rate], metronome(Timeouts::default())).run();
    within(arrived(&large), 0.5 * rate, 0.02);
    assert_eq!(large.loss(), 0.0);
    within(large.lanes[0].found as f64, rate * large.lanes[0].vacation_sum, 0.02);
}

#[test]
fn constant_arrivals_are_as_many_as_the_rate_says_and_follow_its_changes() {
    let mut setup = simulation(1, &[0.0], metronome(Timeouts::default()));
    setup.spacing = Spacing::Constant;
    let at = Duration::from_millis;
    setup.rates = vec![vec![(at(0), 0.0), (at(200), 100_000.0), (at(300), 500_000.0)]];
    let result = setup.run();
    let packets = result.lanes[0].packets;
    assert!((159_900..=160_100).contains(&packets), "{packets}");
}

#[test]
fn lost_tries_stay_below_a_tenth_for_up_to_two_workers_per_lane() {
    for (workers, lanes) in [(2, 2), (4, 2), (6, 3), (16, 8)] {
        let setup = simulation(workers, &vec![500_000.0; lanes], metronome(Timeouts::default()));
        let lost = setup.run().lost_tries();
        assert!(lost < 0.1, "{workers} {lanes}: {lost}");
    }
    let many = simulation(8, &[500_000.0], metronome(Timeouts::default())).run().lost_tries();
    assert!(many > 0.15, "eight workers for one lane: {many}");
}

#[test]
fn backups_win_at_least_as_often_as_4_2_7_says() {
    // The equation has all mates in their long timeout. At ρ = 0.9 one in ten of their tries puts one into the short.
    let fixed = Timeouts::Fixed { short: US(20), long: US(200) };
    for workers in [2, 4] {
        let mut setup = simulation(workers, &[900_000.0], metronome(fixed));
        setup.profile = Arc::new(SleepProfile::exact());
        setup.varied_service = true;
        setup.length = Duration::from_secs(2);
        let lane = &setup.run().lanes[0];
        let won = lane.won_by_other as f64 / lane.vacation_count as f64;
        let model = (workers - 1) as f64 * backup_wins(workers, US(20), US(200));
        assert!(won > 0.9 * model && won < 1.7 * model, "{workers}: {won}, not {model}");
    }
}

#[test]
fn few_workers_reach_all_of_many_lanes() {
    for binding in [Binding::Random, Binding::Static] {
        let policy = MetronomeSettings { binding, ..settings(Timeouts::default()) };
        let result = simulation(2, &[20_000.0; 16], Policy::Metronome(policy)).run();
        for lane in &result.lanes {
            assert!(lane.packets > 9_000 && lane.lost == 0, "{}", lane.packets);
            assert!(lane.vacation_mean() < 60e-6, "{}", lane.vacation_mean());
        }
    }
}

#[test]
fn steps_of_sleep_cost_less_the_longer_they_may_be_and_delay_packets_more() {
    let run = |most| simulation(1, &[10_000.0], Policy::StepSleep(US(most))).run();
    let (short, long) = (run(10), run(500));
    assert!(short.cpu_share > 3.0 * long.cpu_share, "{} {}", short.cpu_share, long.cpu_share);
    assert!(long.latency_mean > 5.0 * short.latency_mean);
}

#[test]
fn the_99th_percentile_keeps_its_promise_up_to_a_load_of_four_fifths() {
    let limit = US(100);
    let goal = Goal::Latency(LatencyGoal { limit, of: LatencyOf::Share(0.99) });
    let policy = MetronomeSettings { goal, ..settings(Timeouts::default()) };
    for rho in [0.02, 0.05, 0.2, 0.5, 0.8] {
        let mut setup = simulation(1, &[rho * 4e6], Policy::Metronome(policy));
        setup.service = Duration::from_nanos(250);
        setup.departure = Departure::Burst;
        setup.warm_up = Duration::from_millis(300);
        let found = setup.run().latencies.quantile(0.99).unwrap() as f64 / 1e3;
        assert!((80.0..=100.0).contains(&found), "p99 at a load of {rho}: {found} us");
    }
}

#[test]
fn no_vacation_is_longer_than_the_short_timeouts_of_workers_that_choose_lanes_at_random() {
    let goal = Goal::Vacation(US(15));
    let policy = MetronomeSettings { goal, ..settings(Timeouts::default()) };
    for (workers, lanes, rho) in
        [(3, 2, 0.7), (4, 2, 0.7), (4, 3, 0.47), (5, 4, 0.35), (8, 4, 0.35)]
    {
        let loads = vec![rho * 1e6; lanes];
        let result = simulation(workers, &loads, Policy::Metronome(policy)).run();
        for lane in &result.lanes {
            let longest = lane.vacations.iter().copied().fold(0.0, f64::max);
            // T_L, for which a lane without a worker waits, is 500 us.
            assert!(longest < 40e-6, "{workers} {lanes}: {longest}");
        }
    }
}
