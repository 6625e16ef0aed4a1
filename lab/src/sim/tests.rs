//! Timed: threads, clock.

use rheostat_base::Clock;

use super::*;

const SCENARIO: &str = r#"
title = "t"
question = "q?"
policies = ["rss"]
lanes = [4]
loads = [0.85]
work = "20us"
warm_up = "500ms"
duration = "1s"
seeds = [1, 2]
[traffic]
kind = "mix"
flows = 500
"#;

fn scenario(changes: &[(&str, &str)]) -> Scenario {
    let mut text = SCENARIO.to_owned();
    for (from, to) in changes {
        assert!(text.contains(from), "{from}");
        text = text.replace(from, to);
    }
    Scenario::parse("s.toml", &text).unwrap_or_else(|error| panic!("{error}"))
}

fn simulate(scenario: &Scenario, threads: usize) -> Vec<RecordedRun> {
    let costs = Costs::built_in();
    let simulator =
        Simulator { scenario, costs: &costs, noisy: false, stopwatch: Clock::new(), threads };
    let mut done = 0;
    let runs = simulator.run(|_| done += 1, |_| {}).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(done, runs.len());
    runs
}

/// Without what is measured in real time.
fn reproducible(mut runs: Vec<RecordedRun>) -> Vec<RecordedRun> {
    for plans in runs.iter_mut().filter_map(|run| run.plans.as_mut()) {
        (plans.solve_us_p50, plans.solve_us_p99) = (0.0, 0.0);
    }
    runs
}

fn assert_sound(runs: &[RecordedRun]) {
    for run in runs {
        let RecordedRun { policy, lanes, lost, duplicated, packets, delivered, dropped, .. } = run;
        assert_eq!((*lost, *duplicated), (0, 0), "{policy} on {lanes}");
        assert_eq!(*packets, delivered + dropped, "{policy} on {lanes}: all come to an end");
        assert!(*packets > 0 && run.simulated);
        for series in [&run.series.delivered, &run.series.dropped, &run.series.migrations] {
            assert_eq!(series.len(), run.series.offered.len());
        }
        assert_eq!(run.series.load.len(), usize::from(*lanes));
    }
}

#[test]
fn a_seed_gives_the_same_runs_on_any_number_of_threads() {
    let scenario = scenario(&[(r#"["rss"]"#, r#"["rsspp", "local-search", "spray"]"#)]);
    let one = reproducible(simulate(&scenario, 1));
    assert_eq!(one.len(), 6);
    assert_eq!(one, reproducible(simulate(&scenario, 3)));
    assert_ne!(one[0].packets, one[1].packets, "seeds differ");
    assert_sound(&one);
}

#[test]
fn rsspp_evens_out_what_rss_leaves_uneven_and_keeps_flows_in_order() {
    let runs = simulate(&scenario(&[(r#"["rss"]"#, r#"["rss", "rsspp"]"#)]), 2);
    assert_sound(&runs);
    let [rss, rsspp] = [&runs[..2], &runs[2..]];
    assert!(rss.iter().all(|run| run.policy == "rss" && run.migrations == 0));
    for (rss, rsspp) in rss.iter().zip(rsspp) {
        assert!(rsspp.imbalance < rss.imbalance, "{} {}", rsspp.imbalance, rss.imbalance);
        assert!(rsspp.series.migrations.iter().sum::<u64>() > 0);
        assert_eq!((rss.reordered, rsspp.reordered), (0, 0));
        let plans = rsspp.plans.as_ref().unwrap();
        assert!(plans.count >= 10 && plans.moving > 0, "{plans:?}");
        assert!(plans.first_attempt <= plans.searched && plans.searched.is_some());
    }
}

#[test]
fn lanes_are_as_busy_as_the_load_says_and_work_grows_with_them_at_a_fixed_rate() {
    for changes in [
        &[("[0.85]", "[0.5]"), (r#"["rss"]"#, r#"["round-robin"]"#)][..],
        &[
            ("[0.85]", "[0.5]"),
            (r#"["rss"]"#, r#"["round-robin"]"#),
            (r#"work = "20us""#, r#"rate = "100kpps""#),
            ("[4]", "[4, 8]"),
        ],
    ] {
        for run in simulate(&scenario(changes), 2) {
            let busy: f64 = run.series.load.iter().flatten().map(|load| f64::from(*load)).sum();
            let mean = busy / run.series.load.iter().map(Vec::len).sum::<usize>() as f64;
            // Polls find fewer packets than a burst, and dispatched packets change cores: above a load of a half, but
            // not by much. The rate is random, too: of at least 100,000 packets, within 1 %.
            assert!((0.49..0.56).contains(&mean), "{} lanes: {mean}", run.lanes);
        }
    }
}

#[test]
fn lanes_are_parked_and_woken_as_the_load_falls_and_rises() {
    let steps = "[[step]]\nat = \"1s\"\nfactor = 3.0\n[traffic]";
    let scenario = scenario(&[
        ("[traffic]", steps),
        (r#"["rss"]"#, r#"["rsspp"]"#),
        ("[4]", "[8]"),
        ("[0.85]", "[0.15]"),
        ("\"1s\"\nseeds", "\"3s\"\nseeds"),
        ("seeds", "min_lanes = 1\nseeds"),
    ]);
    for run in simulate(&scenario, 2) {
        let active = &run.series.active;
        // 1.2 lanes' worth until 1.5 s, 3.6 from then on.
        assert!(active[14] <= 3, "{active:?}");
        assert!((4..=7).contains(active.last().unwrap()), "{active:?}");
        let offered = &run.series.offered;
        let ratio = offered[30] / offered[10];
        assert!((2.8..3.2).contains(&ratio), "{ratio}");
        assert_sound(&[run]);
    }
}

#[test]
fn dispatchers_are_fair_and_those_that_keep_no_flows_reorder() {
    let four = r#"["spray", "round-robin", "shared-queue", "stateful-queue"]"#;
    let runs = simulate(&scenario(&[(r#"["rss"]"#, four)]), 2);
    assert_sound(&runs);
    for run in &runs {
        assert!(run.plans.is_none() && run.active == 4.0);
        assert_eq!(run.reordered == 0, run.policy == "stateful-queue", "{}", run.policy);
    }
    assert!(runs.iter().filter(|run| run.policy == "round-robin").all(|run| run.imbalance < 1.01));
}

#[test]
fn pauses_of_the_machine_make_latencies_longer() {
    let scenario = scenario(&[("[0.85]", "[0.3]")]);
    let mut costs = Costs::built_in();
    // A pause of a millisecond in every hundred.
    costs.noise = crate::noise::Noise::of_gaps(&[1_000_000; 100], 10_000_000_000, 0);
    let p999 = |noisy| {
        let simulator = Simulator {
            scenario: &scenario,
            costs: &costs,
            noisy,
            stopwatch: Clock::new(),
            threads: 2,
        };
        let runs = simulator.run(|_| {}, |_| {}).unwrap_or_else(|error| panic!("{error}"));
        runs.iter().map(|run| run.latency(0.999).unwrap()).fold(f64::INFINITY, f64::min)
    };
    let (quiet, noisy) = (p999(false), p999(true));
    assert!(noisy > quiet + 300.0, "{quiet} us, and {noisy} us with pauses");
}

#[test]
fn a_chain_that_was_not_measured_is_an_error() {
    let scenario = scenario(&[]);
    let costs = Costs { chains: Vec::new(), ..Costs::built_in() };
    let simulator = Simulator {
        scenario: &scenario,
        costs: &costs,
        noisy: false,
        stopwatch: Clock::new(),
        threads: 1,
    };
    let error = simulator.run(|_| {}, |_| {}).unwrap_err().to_string();
    assert!(error.contains("`firewall`") && error.contains("rheo bench costs"), "{error}");
}
