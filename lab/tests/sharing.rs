//! Every way to share flows can be measured, and what is measured is sound: every packet counted
//! once, order kept where flows keep their lane, and lost where packets of few flows are sprayed. How
//! fast it is, is not for a test to say.
//!
//! Timed: threads, clock.

use rheostat_kernel::CoreSet;
use rheostat_lab::BenchError;
use rheostat_lab::sharing::{SharingAction, SharingBench, SharingSelection, System};

fn cores() -> usize {
    CoreSet::available().expect("an affinity mask").cores().len()
}

#[test]
fn every_row_counts_every_packet_and_order_is_lost_by_spraying_alone() {
    let lanes: Vec<usize> = [1, 2].into_iter().filter(|lanes| *lanes <= cores()).collect();
    if lanes.len() < 2 {
        println!("rows of two lanes NOT RUN: there is one core");
    }
    let selection = SharingSelection {
        systems: System::ALL.to_vec(),
        actions: SharingAction::ALL.to_vec(),
        flows: vec![4, 1_000],
        lanes: lanes.clone(),
    };
    let bench = SharingBench { windows: 2, packets: 50_000, work: 10, queue: 64 };
    let mut shown = 0;
    // It is the bench itself that refuses rows whose packets were not counted exactly once.
    let rows = bench.run(&selection, |_| shown += 1).expect("sound runs");
    // With one lane there is nothing to spray.
    let expected = if lanes.len() == 2 { 2 * 4 * (2 + 3) } else { 2 * 4 * 2 };
    assert_eq!((rows.len(), shown), (expected, expected));
    for row in &rows {
        let range = row.ns_min..=row.ns_max;
        assert!(row.ns_min > 0.0 && range.contains(&row.ns_per_packet), "{row:?}");
        assert!(row.mpps > 0.0 && row.cycles_per_packet > 0.0, "{row:?}");
        if row.system == "per-shard" || row.system == "shared" {
            assert_eq!(row.reordered, 0.0, "{row:?}");
        } else if row.flows == 4 {
            // In so few flows, packets of both lanes could only by chance keep their order.
            assert!(row.reordered > 0.0, "{row:?}");
        }
        let compared = row.system != "per-shard";
        assert_eq!((row.time_ratio.is_some(), row.rate_ratio.is_some()), (compared, compared));
    }
}

#[test]
fn more_lanes_than_cores_are_refused() {
    let lanes = cores() + 1;
    let selection = SharingSelection {
        systems: vec![System::PerShard],
        actions: vec![SharingAction::Write],
        flows: vec![100],
        lanes: vec![lanes],
    };
    let bench = SharingBench { windows: 1, packets: 1_000, work: 1, queue: 64 };
    let error = bench.run(&selection, |_| {}).unwrap_err();
    assert!(matches!(error, BenchError::TooFewCores { lanes: asked, .. } if asked == lanes));
}
