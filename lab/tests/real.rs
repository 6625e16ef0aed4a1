//! Scenarios on real lanes: every packet is accounted for, and shards move. How fast all that is, is not for a
//! test to say.
//!
//! Timed: threads, sleep, clock.

use std::time::Duration;

use rheostat_kernel::CoreSet;
use rheostat_lab::BenchError;
use rheostat_lab::real::{Real, Trial, trials};
use rheostat_lab::record::RecordedRun;
use rheostat_lab::scenario::Scenario;

fn scenario() -> Scenario {
    let text = r#"
title = "a short one"
question = "does it run?"
policies = ["rss", "rsspp"]
lanes = [1, 2]
loads = [0.3]
work = "1us"
warm_up = "200ms"
duration = "500ms"
seeds = [1, 2]
[traffic]
kind = "mix"
flows = 300
"#;
    Scenario::parse("short", text).unwrap()
}

/// Whether there are cores for two lanes.
fn two_cores() -> bool {
    let enough = CoreSet::available().unwrap().cores().len() >= 2;
    if !enough {
        println!("not run: two lanes need two cores");
    }
    enough
}

/// A run of which there is something to look at: where lanes are kept from their cores for as long as they are measured, there
/// is nothing.
fn run(
    scenario: &Scenario,
    trial: &Trial,
    is_measured: impl Fn(&RecordedRun) -> bool,
) -> Option<RecordedRun> {
    let mut late = 0;
    for _ in 0..50 {
        match Real::new(scenario).unwrap().run(trial) {
            Ok(run) if is_measured(&run) => return Some(run),
            // Lanes that did nothing seem to be able to do nothing.
            Ok(_) | Err(BenchError::Mix(_) | BenchError::Traffic(_)) => {}
            // What was drawn for a run was used up before its end.
            Err(BenchError::LateWindow) if late < 3 => late += 1,
            Err(BenchError::LateWindow) => {
                println!("not run: something keeps the process from its cores");
                return None;
            }
            Err(error) => panic!("{error}"),
        }
    }
    panic!("no lane runs")
}

#[test]
fn trials_alternate_between_policies() {
    let trials = trials(&scenario());
    let named: Vec<_> = trials.iter().map(|t| (t.seed, t.lanes, t.policy.as_str())).collect();
    assert_eq!(named[..3], [(1, 1, "rss"), (1, 1, "rsspp"), (1, 2, "rss")]);
    assert_eq!(named.len(), 8);
}

#[test]
fn every_packet_of_a_run_is_accounted_for() {
    if !two_cores() {
        return;
    }
    let scenario = scenario();
    for policy in ["rss", "rsspp"] {
        let trial = Trial { policy: policy.into(), lanes: 2, load: 0.3, seed: 1 };
        let Some(run) = run(&scenario, &trial, |run| {
            run.packets > 0 && run.capacity.is_finite() && !run.latency_us.is_empty()
        }) else {
            return;
        };
        assert_eq!((run.lost, run.duplicated, run.reordered), (0, 0, 0), "{policy}");
        assert!(run.capacity > 0.0, "{policy}: {} packets", run.packets);
        assert_eq!(run.latency_us.len(), RecordedRun::SHARES.len());
        assert!(run.latency_us.is_sorted_by(|a, b| a.1 <= b.1), "{:?}", run.latency_us);
        assert!(run.imbalance >= 1.0 && run.imbalance <= 2.0, "{}", run.imbalance);
        assert_eq!(run.series.load.len(), 2);
        assert_eq!(run.series.offered.len(), 7, "two intervals of warm-up and five more");
        assert_eq!(run.plans.is_some(), policy == "rsspp");
    }
}

#[test]
fn what_does_not_fit_the_queues_is_dropped_and_counted() {
    // Work enough that twenty times what a lane can do is drawn before the run, in the memory there is for that.
    let work = Some(Duration::from_micros(50));
    let scenario = Scenario { queue: 64, work, ..scenario() };
    // So much more than a lane can take that it is too much even if it could do little when that was found out.
    let trial = Trial { policy: "rss".into(), lanes: 1, load: 20.0, seed: 1 };
    let Some(run) = run(&scenario, &trial, |run| run.packets > 0) else { return };
    assert!(run.dropped > 0, "none of {}", run.packets);
    assert_eq!((run.lost, run.duplicated, run.reordered), (0, 0, 0));
}

#[test]
fn what_can_only_be_simulated_is_refused() {
    let policies = vec!["spray".to_owned()];
    let scenario = Scenario { policies, lanes: vec![1], ..scenario() };
    let message = Real::new(&scenario).unwrap_err().to_string();
    assert!(message.contains("`spray`") && message.contains("rheo sim"), "{message}");
}

#[test]
fn flows_leave_a_lane_that_has_too_much_and_every_packet_is_accounted_for() {
    if !two_cores() {
        return;
    }
    let text = r#"
title = "one shard"
question = "do flows leave?"
policies = ["dyssect"]
lanes = [2]
loads = [0.9]
work = "50us"
shards = 1
buckets = 16
min_lanes = 1
warm_up = "1s"
duration = "1s"
seeds = [1]
[offloading]
most = 1
min_working = 1
[traffic]
kind = "exchanges"
flows = 100
zipf = 1.1
"#;
    let scenario = Scenario::parse("one-shard", text).unwrap();
    let trial = &trials(&scenario)[0];
    // Nine tenths of what two lanes can do, for one: until it is seen to be full, and flows leave.
    let Some(run) = run(&scenario, trial, |run| run.offloaded > 0) else { return };
    assert_eq!((run.lost, run.duplicated, run.reordered), (0, 0, 0));
    // Flows may all have left before the measured part began, so only what their packets did in it is asked for.
    assert!(run.offloaded <= run.packets, "{run:?}");
}
