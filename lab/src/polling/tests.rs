//! Timed: threads, sleep, clock.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::*;

/// One trial at a time: all pin their workers to the same cores, and count workers of the whole process.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn bench(policies: &[PolicyUnderTest], loads: &[f64]) -> PollingBench {
    PollingBench {
        policies: policies.to_vec(),
        loads: loads.to_vec(),
        target: Duration::from_micros(50),
        latency: Duration::from_millis(1),
        workers: 2,
        lanes: 1,
        chain: PollingChain::BusyMicrosecond,
        beside: Vec::new(),
        warm_up: Duration::from_millis(60),
        window: Duration::from_millis(120),
        seed: 3,
    }
}

#[test]
fn every_policy_has_a_row_at_every_load_and_busy_polling_two() {
    let _alone = alone();
    let bench = bench(&PolicyUnderTest::ALL, &[0.0, 0.1]);
    let mut told = Vec::new();
    let rows = bench.prepare().unwrap().run(|row| told.push(row.clone())).unwrap();
    assert_eq!(rows, told);
    let at = |load: f64| {
        let rows = rows.iter().filter(move |row| row.load == load);
        rows.map(|row| row.policy.as_str()).collect::<Vec<_>>()
    };
    let names = PolicyUnderTest::ALL.map(PolicyUnderTest::name);
    assert_eq!(at(0.1), [&names[..], &["busy-again"]].concat());
    // Metronome between polls, and once it waits for an interrupt.
    assert_eq!(at(0.0).iter().filter(|name| **name == "metronome").count(), 2);
    for row in &rows {
        assert_eq!(row.p99_us.is_some(), row.load > 0.0, "{row:?}");
        assert!(row.rate_pps > 0.0 || row.load == 0.0, "{row:?}");
        assert!((0.0..=1.0).contains(&row.loss), "{row:?}");
        let workers = if row.policy.starts_with("metronome") { 2 } else { 1 };
        assert_eq!(row.workers, workers);
        assert!(row.cpu_share <= 1.05 * workers as f64, "{row:?}");
    }
}

#[test]
fn processor_time_is_that_of_workers_and_shows_whether_they_sleep() {
    let _alone = alone();
    // Long enough that a worker beside busy loops has its turns.
    let window = Duration::from_millis(800);
    let bench = bench(&[PolicyUnderTest::Busy, PolicyUnderTest::Interrupt], &[0.0]);
    let bench = PollingBench { window, ..bench };
    let rows = bench.prepare().unwrap().run(|_| {}).unwrap();
    let share = |name: &str| rows.iter().find(|row| row.policy == name).unwrap().cpu_share;
    // However much of the core others take: a worker that spins takes many times what one takes that blocks.
    assert!(share("busy") > 5.0 * share("interrupt"), "{rows:?}");
    assert_eq!(rows[1].mode, "interrupt");
}

#[test]
fn more_lanes_than_cores_are_refused() {
    let cores = Cores::available().unwrap().count();
    let bench = PollingBench { lanes: cores + 1, ..bench(&[PolicyUnderTest::Busy], &[0.0]) };
    let error = bench.prepare().err().unwrap();
    assert!(matches!(error, BenchError::TooFewCores { .. }), "{error}");
}

#[test]
fn a_row_is_per_second_and_lane_with_the_source_taken_off() {
    let bench = PollingBench { lanes: 2, ..bench(&[PolicyUnderTest::Metronome], &[0.5]) };
    let costs = Costs {
        capacity_pps: 2e6,
        source_ns: 50.0,
        sleep_cycle_us: 2.0,
        step_sleep_period_us: 60.0,
        empty_poll_us: 0.1,
        shortest_sleep_us: 5.0,
        noise_p99_us: 1.0,
    };
    let testbed = PollingTestbed::new(bench.chain, 1, 1).unwrap();
    let prepared = Prepared { bench: &bench, testbed, costs, repeats: Cell::new(0) };
    let mut latencies = stopwatch::latencies();
    (1..=100).for_each(|us| latencies.record(1_000 * us).unwrap());
    let sum = slices::Slice {
        seconds: 2.0,
        cpu: 1.2,
        arrived: 2_000_000,
        delivered: 1_990_000,
        lost: 10_000,
        vacations: 1_000,
        vacation_ns: 40_000_000,
        tries: 4_000,
        lost_tries: 300,
        wake_ups: 5_000,
        ..slices::Slice::default()
    };
    let seen = slices::SliceObservation { sum, latencies, quiet: 0.9 };
    let policy = PolicyUnderTest::Metronome;
    let contender = Contender { policy, name: "metronome".into(), is_awake: false };
    let row = prepared.row_of((&contender, Goal::Vacation(Duration::ZERO)), 0.5, &seen);
    assert_eq!((row.lanes, row.workers, row.load, row.seconds), (2, 2, 0.5, 2.0));
    assert_eq!((row.rate_pps, row.loss, row.wake_ups_per_s), (1_000_000.0, 0.005, 2_500.0));
    // 50 ns for each packet delivered, of 1.2 s on two lanes in two seconds.
    assert_eq!((row.source_cpu_share, row.cpu_share), (0.024_88, 0.275_13));
    assert_eq!((row.lost_tries, row.vacation_mean_us), (Some(0.075), Some(40.0)));
    // Latencies are kept to a hundredth.
    let within = |found: Option<f64>, us: f64| (found.unwrap() / us - 1.0).abs() < 0.011;
    assert!(within(row.p50_us, 50.0) && within(row.p99_us, 99.0), "{row:?}");
    assert_eq!((row.target_us, row.quiet), (50.0, 0.9));
}
