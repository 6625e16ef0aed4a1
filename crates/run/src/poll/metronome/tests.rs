//! Decisions one by one, and workers and lanes in virtual time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::*;

const US: fn(u64) -> Duration = Duration::from_micros;

fn worker(settings: MetronomeSettings, worker: usize, workers: usize, lanes: usize) -> Metronome {
    let profile = Arc::new(SleepProfile::exact());
    let mut metronome = Metronome::new(settings, profile, worker, workers, 1);
    metronome.regroup(0..lanes);
    metronome
}

fn lane(settings: &MetronomeSettings) -> LanePolicy {
    settings.lane(1, 1, &Arc::new(SleepProfile::exact()), Time::ZERO)
}

fn visit(now: u64, vacation: u64, busy: u64, packets: u64) -> Visit {
    let now = Time::ZERO + US(now);
    Visit {
        now,
        vacation: US(vacation),
        busy: US(busy),
        packets,
        drained: true,
        ..Visit::default()
    }
}

#[test]
fn a_won_lane_is_tried_again_and_a_lost_one_left_for_a_random_one() {
    let settings = MetronomeSettings::default();
    let mut metronome = worker(settings, 1, 4, 4);
    let mut policy = lane(&settings);
    assert_eq!(metronome.lane(), Some(1), "its home lane");
    assert_eq!(metronome.won(&mut policy, visit(10, 10, 1, 1), None), Nap::Sleep(US(10)));
    assert_eq!(metronome.lane(), Some(1));
    let mut seen = [0; 4];
    for _ in 0..400 {
        assert_eq!(metronome.lost(), Nap::Sleep(US(500)));
        seen[metronome.lane().unwrap()] += 1;
    }
    assert!(seen.iter().all(|times| *times > 60), "{seen:?}");
    let counts = metronome.counts();
    assert_eq!((counts.tries, counts.lost, counts.sleeps), (401, 400, 401));
}

#[test]
fn a_bound_worker_tries_its_own_lanes_alone() {
    let settings = MetronomeSettings { binding: Binding::Static, ..MetronomeSettings::default() };
    let mut two_of_three = worker(settings, 2, 3, 2);
    assert_eq!((two_of_three.lane(), two_of_three.division().workers_per_lane), (Some(0), 2.0));
    (0..20).for_each(|_| assert_eq!(two_of_three.lost(), Nap::Sleep(US(500))));
    assert_eq!(two_of_three.lane(), Some(0));
    let mut one_of_two = worker(settings, 1, 2, 5);
    let mut policy = lane(&settings);
    let mut tried = Vec::new();
    for now in 1..=4 {
        tried.push(one_of_two.lane().unwrap());
        one_of_two.won(&mut policy, visit(now, 1, 0, 0), None);
    }
    assert_eq!(tried, [1, 3, 1, 3]);
}

#[test]
fn fewer_workers_than_lanes_rotate_by_a_budget() {
    let settings = MetronomeSettings::default();
    let mut metronome = worker(settings, 0, 2, 3);
    let mut policy = lane(&settings);
    assert_eq!(metronome.budget(), Some(256));
    assert_eq!(metronome.won(&mut policy, visit(10, 10, 1, 1), None), Nap::Now);
    assert_eq!(metronome.lane(), Some(1));
    // The second of two lanes was lost: the first decides.
    assert!(matches!(metronome.lost(), Nap::Sleep(ask) if ask > US(10) && ask < US(14)));
    assert_eq!(metronome.lane(), Some(2));
    // Both lost: T_L.
    assert_eq!(metronome.lost(), Nap::Now);
    assert_eq!(metronome.lost(), Nap::Sleep(US(500)));
    // Packets left behind: no sleep.
    let backlog = Visit { drained: false, packets: 256, ..visit(20, 10, 9, 256) };
    assert_eq!(metronome.won(&mut policy, backlog, None), Nap::Now);
    assert_eq!(metronome.won(&mut policy, visit(30, 10, 1, 1), None), Nap::Now);
    assert!(matches!(metronome.won(&mut policy, visit(40, 10, 1, 1), None), Nap::Now));
    assert!(matches!(metronome.won(&mut policy, visit(50, 10, 1, 1), None), Nap::Sleep(_)));
    assert_eq!(worker(settings, 0, 2, 2).budget(), None);
}

#[test]
fn sleeps_that_the_machine_cannot_make_are_spun() {
    use rheostat_kernel::sleep::SleepPoint;
    let point = SleepPoint::new(US(1), vec![US(4)], US(3)).unwrap();
    let profile = Arc::new(SleepProfile::new(vec![point]));
    let goal = Goal::Vacation(US(3));
    let settings = MetronomeSettings { goal, ..MetronomeSettings::default() };
    let mut alone = Metronome::new(settings, profile.clone(), 0, 1, 1);
    alone.regroup([0]);
    let mut policy = lane(&settings);
    assert_eq!(alone.won(&mut policy, visit(10, 3, 0, 1), None), Nap::Spin(US(3)));
    // Two workers share the visits: T_S is 6 us, of which 3 are overshoot.
    let mut second = Metronome::new(settings, profile, 1, 2, 1);
    second.regroup([0]);
    assert_eq!(second.won(&mut policy, visit(20, 3, 0, 1), None), Nap::Sleep(US(3)));
    assert_eq!((alone.counts().spins, second.counts().spins), (1, 0));
}

#[test]
fn an_idle_lane_lets_its_worker_block_and_a_busy_one_keeps_it_awake() {
    let settings = MetronomeSettings::default();
    let mut metronome = worker(settings, 0, 1, 1);
    let mut policy = lane(&settings);
    assert!(matches!(metronome.won(&mut policy, visit(99_999, 10, 0, 0), None), Nap::Sleep(_)));
    assert_eq!(metronome.won(&mut policy, visit(100_000, 10, 0, 0), None), Nap::Idle(US(10)));
    assert!(matches!(metronome.won(&mut policy, visit(200_000, 10, 1, 1), None), Nap::Sleep(_)));
    let mut now = 200_000;
    while policy.mode() != Mode::Busy {
        now += 50;
        metronome.won(&mut policy, visit(now, 49, 1, 1), None);
        assert!(now < 300_000, "it misses its target for 0.1 s");
    }
    assert_eq!(metronome.won(&mut policy, visit(now + 50, 49, 1, 1), None), Nap::Now);
}

#[test]
fn one_idle_lane_of_two_is_no_reason_to_block() {
    let settings = MetronomeSettings::default();
    let mut metronome = worker(settings, 0, 1, 2);
    let (mut idle, mut loaded) = (lane(&settings), lane(&settings));
    metronome.won(&mut idle, visit(100_000, 10, 0, 0), None);
    assert!(matches!(metronome.won(&mut loaded, visit(100_001, 10, 1, 1), None), Nap::Sleep(_)));
    metronome.won(&mut idle, visit(100_010, 10, 0, 0), None);
    assert!(matches!(metronome.lost(), Nap::Idle(_)), "the other worker has the other lane");
}

#[test]
fn a_worker_that_is_away_looks_after_2_t_l_whether_a_worker_visits_its_home_lane() {
    let settings = MetronomeSettings::default();
    let mut metronome = worker(settings, 0, 4, 2);
    let (mut here, mut home) = (lane(&settings), lane(&settings));
    while metronome.lane() == Some(0) {
        metronome.lost();
    }
    // Sleeps of more than 10 us and 10 us of work until the look is due.
    let visits = |metronome: &mut Metronome, here: &mut LanePolicy| {
        let mut visits = 0;
        while metronome.patrol().is_none() {
            assert!(matches!(metronome.won(here, visit(10, 10, 10, 1), None), Nap::Sleep(_)));
            assert_eq!(metronome.lane(), Some(1));
            visits += 1;
        }
        assert_eq!(metronome.patrol(), Some(0));
        visits
    };
    visits(&mut metronome, &mut here);
    let nap = metronome.won(&mut here, visit(10, 10, 10, 1), Some(US(499)));
    assert!(matches!(nap, Nap::Sleep(ask) if ask < US(40)), "a worker was there within T_L");
    assert_eq!((metronome.lane(), metronome.counts().patrols), (Some(1), 1));
    let sleeps = visits(&mut metronome, &mut here);
    assert!((25..100).contains(&sleeps), "{sleeps}");
    let nap = metronome.won(&mut here, visit(10, 10, 10, 1), Some(US(500)));
    assert_eq!((nap, metronome.lane()), (Nap::Now, Some(0)));
    assert!(matches!(metronome.lost(), Nap::Sleep(ask) if ask < US(40)), "another worker has it");
    assert_eq!(metronome.lane(), Some(1));
    visits(&mut metronome, &mut here);
    metronome.won(&mut here, visit(10, 10, 10, 1), Some(US(900)));
    metronome.won(&mut home, visit(10, 900, 1, 1), None);
    assert_eq!(metronome.lane(), Some(0), "no worker attends it");
}

#[test]
fn parked_lanes_do_not_count() {
    let settings = MetronomeSettings::default();
    let mut metronome = worker(settings, 1, 2, 4);
    assert_eq!(metronome.division().lanes_per_wake, 2);
    metronome.regroup([3]);
    assert_eq!((metronome.lane(), metronome.division().workers_per_lane), (Some(3), 2.0));
    metronome.go_to(1);
    assert_eq!(metronome.lane(), Some(3), "it may not run a parked lane");
    metronome.regroup([]);
    assert_eq!(metronome.lane(), None);
    metronome.lost();
    metronome.regroup([0, 2]);
    assert_eq!(metronome.lane(), Some(2));
    metronome.go_to(0);
    assert_eq!(metronome.lane(), Some(0));
}

/// What a run of workers and lanes in virtual time came to.
#[derive(Debug)]
struct Outcome {
    /// The mean vacation of each lane in microseconds, and the longest of all.
    means: Vec<f64>,
    longest: f64,
    lost_share: f64,
}

/// Runs `workers` workers over lanes with these occupancies for half a second: fluid arrivals, so that a vacation V makes a
/// busy period V·ρ/(1−ρ). `scatter(worker)` is where each worker begins.
fn simulate(
    settings: MetronomeSettings,
    workers: usize,
    rhos: &[f64],
    scatter: impl Fn(usize) -> usize,
) -> Outcome {
    const END: u64 = 500_000_000;
    let profile = Arc::new(SleepProfile::exact());
    let mut metronomes: Vec<_> =
        (0..workers).map(|n| Metronome::new(settings, profile.clone(), n, workers, 9)).collect();
    let mut policies: Vec<_> =
        rhos.iter().map(|_| settings.lane(workers, rhos.len(), &profile, Time::ZERO)).collect();
    let (mut released, mut taken) = (vec![0_u64; rhos.len()], vec![false; rhos.len()]);
    let (mut sums, mut counts) = (vec![0_u64; rhos.len()], vec![0_u64; rhos.len()]);
    let mut longest = 0;
    // What happens next: when, to which worker, and the visit that ends then.
    let mut events = BinaryHeap::new();
    let mut phase = SplitMix::new(3);
    for (worker, metronome) in metronomes.iter_mut().enumerate() {
        metronome.regroup(0..rhos.len());
        metronome.go_to(scatter(worker));
        events.push(Reverse((phase.below(100_000) as u64, worker, None)));
    }
    while let Some(Reverse((now, worker, visited))) = events.pop().filter(|event| event.0.0 < END) {
        let metronome = &mut metronomes[worker];
        let lane = metronome.lane().unwrap();
        let nap = match visited {
            None if taken[lane] => metronome.lost(),
            None => {
                let vacation = now - released[lane];
                let busy = vacation as f64 * rhos[lane] / (1.0 - rhos[lane]);
                // From 100 ms on: the estimates have settled.
                if now > END / 5 {
                    sums[lane] += vacation;
                    counts[lane] += 1;
                    longest = longest.max(vacation);
                }
                taken[lane] = true;
                // Some jitter, without which the phases of idle workers never change.
                let end = now + busy as u64 + phase.below(200) as u64;
                events.push(Reverse((end, worker, Some((now, vacation)))));
                continue;
            }
            Some((start, vacation)) => {
                taken[lane] = false;
                released[lane] = now;
                let visit = Visit {
                    now: Time::from_nanos(now),
                    vacation: Duration::from_nanos(vacation),
                    busy: Duration::from_nanos(now - start),
                    packets: u64::from(rhos[lane] > 0.0),
                    drained: true,
                    ..Visit::default()
                };
                let home = metronome.patrol();
                let home_age = home.map(|home| Duration::from_nanos(now - released[home]));
                metronome.won(&mut policies[lane], visit, home_age)
            }
        };
        let sleep = match nap {
            Nap::Now => Duration::ZERO,
            Nap::Spin(time) | Nap::Sleep(time) | Nap::Idle(time) => time,
        };
        let next = now + sleep.as_nanos() as u64 + 100;
        events.push(Reverse((next, worker, None)));
    }
    let mean = |(sum, count): (&u64, &u64)| *sum as f64 / *count as f64 / 1e3;
    let tries: u64 = metronomes.iter().map(|metronome| metronome.counts().tries).sum();
    let lost: u64 = metronomes.iter().map(|metronome| metronome.counts().lost).sum();
    Outcome {
        means: sums.iter().zip(&counts).map(mean).collect(),
        longest: longest as f64 / 1e3,
        lost_share: lost as f64 / tries as f64,
    }
}

fn steady(timeouts: Timeouts) -> MetronomeSettings {
    let rules = ModeRules { idle_after: None, busy_on_miss: false };
    MetronomeSettings { timeouts, rules, ..MetronomeSettings::default() }
}

#[test]
fn vacations_keep_their_target_whatever_the_load() {
    for (workers, lanes) in [(1, 1), (2, 1), (3, 1), (4, 2), (5, 4), (1, 4), (2, 3), (2, 8)] {
        for rho in [0.0, 0.3, 0.6, 0.85] {
            let rhos = vec![rho; lanes];
            // One worker cannot keep up with four lanes.
            if rho * lanes as f64 > 0.9 * workers as f64 {
                continue;
            }
            let outcome = simulate(steady(Timeouts::default()), workers, &rhos, |n| n % lanes);
            let mean = outcome.means.iter().sum::<f64>() / lanes as f64;
            // Where a worker has several lanes, the others' busy periods are part of a lane's vacation.
            let others = 1.0 - rho * (lanes as f64 / workers as f64 - 1.0).max(0.0);
            let target = 10.0 / others.max(0.2);
            assert!(
                mean > 0.8 * target && mean < 1.25 * target,
                "{workers} workers, {lanes} lanes, rho {rho}: {mean}, not {target}; {outcome:?}"
            );
        }
    }
}

#[test]
fn equal_timeouts_lose_more_tries_under_load() {
    let lost = |timeouts| simulate(steady(timeouts), 3, &[0.7], |_| 0).lost_share;
    let (adaptive, equal) = (lost(Timeouts::default()), lost(Timeouts::Equal));
    assert!(equal > 4.0 * adaptive, "{equal} and {adaptive}");
}

#[test]
fn no_lane_is_left_alone_even_if_all_workers_begin_at_the_same_one() {
    for binding in [Binding::Random, Binding::Static] {
        for (workers, lanes) in [(2, 2), (4, 4), (5, 3), (2, 5), (8, 8)] {
            let settings = MetronomeSettings { binding, ..steady(Timeouts::default()) };
            let outcome = simulate(settings, workers, &vec![0.2; lanes], |_| 0);
            let most = 2_000.0 + 3.0 * 10.0 * workers as f64;
            assert!(outcome.longest < most, "{binding:?} {workers} {lanes}: {outcome:?}");
        }
    }
}

#[test]
fn unbalanced_lanes_keep_their_targets_and_the_busiest_loses_most_tries() {
    let outcome = simulate(steady(Timeouts::default()), 5, &[0.32, 0.73, 0.36], |n| n % 3);
    assert!(outcome.means.iter().all(|mean| *mean > 6.0 && *mean < 16.0), "{outcome:?}");
    assert!(outcome.lost_share < 0.1, "{outcome:?}");
}

#[test]
fn a_suspended_machine_and_a_clock_that_steps_back_leave_sleeps_as_they_were() {
    const HOURS: Duration = Duration::from_secs(8 * 3_600);
    let rules = ModeRules { idle_after: None, ..ModeRules::default() };
    let settings = MetronomeSettings { rules, ..MetronomeSettings::default() };
    let mut metronome = worker(settings, 0, 1, 1);
    let mut policy = lane(&settings);
    let mut now = Time::ZERO + HOURS;
    // A second under a load of 0.1, at whose end sleeps are what they were before.
    let mut settle = |now: &mut Time, first: Duration| {
        let (mut vacation, end) = (first, *now + Duration::from_secs(1));
        let mut last = Duration::ZERO;
        while *now < end {
            *now += US(1);
            let visit = Visit { now: *now, vacation, busy: US(1), ..visit(0, 0, 0, 1) };
            vacation = match metronome.won(&mut policy, visit, None) {
                // Also the first sleep after the jump: it was measured, and is not to be made up for.
                Nap::Sleep(ask) => {
                    assert!(ask <= US(500), "{ask:?} after a vacation of {vacation:?}");
                    last = ask;
                    ask
                }
                Nap::Now => Duration::ZERO,
                nap => panic!("{nap:?}"),
            };
            *now += vacation;
        }
        (last, policy.mode())
    };
    let mut expect = |now: &mut Time, first: Duration, what: &str| {
        let (last, mode) = settle(now, first);
        assert!(
            last.abs_diff(US(10)) < US(1) && mode == Mode::Metronome,
            "{what}: {last:?} {mode}"
        );
    };
    expect(&mut now, US(10), "at first");
    now += HOURS;
    expect(&mut now, HOURS, "the machine was suspended");
    // A vacation that ended before it began counts as none.
    now = Time::ZERO;
    expect(&mut now, Duration::ZERO, "the clock stepped back");
}
