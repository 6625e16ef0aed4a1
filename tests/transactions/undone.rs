//! A run whose transactions are aborted again and again comes to what a run without conflicts comes to: packet
//! by packet, count by count.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use rheostat::{Chain, Chain2, Harness, Mix, MixConfig, Objects, Stage, StateLayout};
use rheostat_base::{LaneId, Time};
use rheostat_io::Collected;
use rheostat_run::LaneSample;
use rheostat_state::txn::Txn;

use crate::transactions::disturbed::{Disturbance, Disturbed};
use crate::transactions::erratic::Erratic;
use rheostat_testkit::spliced::Spliced;

/// What there is to compare of a run.
#[derive(Debug, PartialEq)]
pub(crate) struct Outcome {
    pub(crate) counters: LaneSample,
    pub(crate) sent: Vec<Collected>,
    /// The elements of the functions' objects.
    seen: Vec<u64>,
}

/// What a run is made of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) seed: u64,
    pub(crate) lanes: usize,
    pub(crate) flows: usize,
    pub(crate) panics: bool,
}

/// Runs two erratic functions, one behind the other, in whose transactions such a share of calls meets a
/// conflict. Returns how many conflicts there were, too, and how many of them were not passed on.
pub(crate) fn run(plan: Plan, share: f64) -> (Outcome, u64, u64) {
    let objects = Objects::new(plan.lanes + 1);
    let disturbance = Arc::new(Disturbance::new(&objects, share, plan.seed));
    let mut seen = Vec::new();
    let mut layout = StateLayout::new();
    let mut stage = |name: &str, seed| {
        let function = Erratic::new(&objects, name, seed, plan.panics);
        seen.push(function.seen.clone());
        let function = Disturbed { function, disturbance: disturbance.clone() };
        Stage::on_objects(function, &objects, &mut layout).expect("room for two states")
    };
    let chain = Chain2(stage("first", plan.seed), stage("second", plan.seed + 7));
    let outcome = try_out(plan, chain, layout);
    let mut txn = Txn::new(&objects, LaneId(0));
    txn.begin(Time::ZERO);
    let element = |at: usize| seen[at / 16].read(&mut txn, at % 16).expect("no lane writes");
    let outcome = Outcome { seen: (0..32).map(element).collect(), ..outcome };
    let count = |count: &std::sync::atomic::AtomicU64| count.load(Ordering::Relaxed);
    (outcome, count(&disturbance.conflicts), count(&disturbance.swallowed))
}

fn try_out<C: Chain>(plan: Plan, chain: C, layout: StateLayout) -> Outcome {
    let mix = MixConfig {
        seed: plan.seed,
        flows: 150,
        packets: Some(1_500),
        // Slow enough that flows time out on the way.
        packets_per_second: 100,
        ..MixConfig::default()
    };
    let source = Spliced::new(Mix::new(mix).expect("a mix"));
    let harness = Harness { lanes: plan.lanes, flows: plan.flows, ..Harness::new(chain, layout) };
    let report = harness.run(source, |_, _| {}).expect("a trial");
    assert_eq!(report.violations, [], "{plan:?}");
    Outcome { counters: report.counters, sent: report.sent, seen: Vec::new() }
}

/// Compares a run with conflicts to one without, and returns the latter.
pub(crate) fn compare(plan: Plan) -> Outcome {
    let (smooth, none, _) = run(plan, 0.0);
    assert_eq!(none, 0);
    for share in [0.02, 0.4] {
        let (rough, conflicts, swallowed) = run(plan, share);
        assert!(conflicts > 50 && swallowed > 20, "{conflicts} {swallowed}");
        assert_eq!(rough.counters, smooth.counters, "{plan:?}, {share}");
        assert_eq!(rough.seen, smooth.seen, "{plan:?}, {share}");
        assert_eq!(rough.sent.len(), smooth.sent.len());
        for (at, (rough, smooth)) in rough.sent.iter().zip(&smooth.sent).enumerate() {
            assert_eq!(rough, smooth, "{plan:?}, {share}, packet {at}");
        }
    }
    smooth
}

#[test]
fn conflicts_leave_no_trace() {
    let mut sum = LaneSample::default();
    for seed in 0..6 {
        // Some tables have room for all flows, in some there is never enough.
        let flows = if seed % 3 == 0 { 128 } else { 4_096 };
        let plan = Plan { seed, lanes: 1 + seed as usize % 3, flows, panics: false };
        sum = LaneSample::sum([&sum, &compare(plan).counters]);
    }
    let dropped = |reason| sum.dropped[reason as usize];
    use rheostat::DropReason::{Denied, HandlerAbort, Policed, TableFull};
    assert!(sum.originated > 100 && sum.consumed > 100, "{sum:?}");
    assert!(sum.flows_created > 1_000 && sum.flows_ended > 1_000, "{sum:?}");
    assert!([HandlerAbort, Denied, Policed].iter().all(|r| dropped(*r) > 100), "{sum:?}");
    assert!(dropped(TableFull) > 10, "{sum:?}");
}

#[test]
#[should_panic(expected = "made from one `Objects`")]
fn functions_on_objects_of_two_runs_make_no_chain() {
    let mut layout = StateLayout::new();
    let mut stage = |name| {
        let objects = Objects::new(1);
        let function = Erratic::new(&objects, name, 1, false);
        Stage::on_objects(function, &objects, &mut layout).expect("room for two states")
    };
    let chain = Chain2(stage("first"), stage("second"));
    try_out(Plan { seed: 1, lanes: 1, flows: 128, panics: false }, chain, layout);
}
