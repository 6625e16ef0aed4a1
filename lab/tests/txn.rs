//! Every engine can be measured under every workload, and no write gets lost. How fast that is, is not for
//! a test to say.
//!
//! Timed: threads, clock.

use rheostat_kernel::CoreSet;
use rheostat_lab::BenchError;
use rheostat_lab::txn::{EngineKind, TxnBench, TxnSelection, Workload};

fn cores() -> usize {
    CoreSet::available().expect("an affinity mask").cores().len()
}

fn selection(lanes: Vec<usize>) -> TxnSelection {
    TxnSelection {
        engines: EngineKind::ALL.to_vec(),
        workloads: Workload::ALL.to_vec(),
        lanes,
        batches: vec![1, 32],
    }
}

#[test]
fn every_row_counts_every_write() {
    let lanes: Vec<usize> = [1, 2].into_iter().filter(|lanes| *lanes <= cores()).collect();
    if lanes.len() < 2 {
        println!("rows of two lanes NOT RUN: there is one core");
    }
    let bench = TxnBench { windows: 1, packets: 2_000 };
    let mut shown = 0;
    // It is the bench itself that refuses rows in which a write got lost.
    let rows = bench.run(&selection(lanes.clone()), |_| shown += 1).expect("sound runs");
    assert_eq!((rows.len(), shown), (lanes.len() * 5 * 5 * 2, lanes.len() * 5 * 5 * 2));
    for row in &rows {
        assert!(row.ns_low > 0.0 && (row.ns_low..=row.ns_high).contains(&row.ns), "{row:?}");
        // Rounded, and so 0 where lanes were kept from their cores for long.
        let rate = 1e3 * row.lanes as f64 / row.ns;
        assert!((row.mpps - rate).abs() <= 0.01 + 0.01 * rate, "{row:?}");
        assert!((0.0..1.0).contains(&row.abort_rate), "{row:?}");
        let alone = row.lanes == 1 || row.engine != "txn" || row.workload.starts_with("ro");
        assert!(!alone || row.abort_rate == 0.0, "{row:?}");
        assert_eq!(row.ratio.is_some(), row.engine != "txn", "{row:?}");
    }
}

#[test]
fn more_lanes_than_cores_are_refused() {
    let lanes = cores() + 1;
    let bench = TxnBench { windows: 1, packets: 100 };
    let error = bench.run(&selection(vec![lanes]), |_| {}).unwrap_err();
    assert!(matches!(error, BenchError::TooFewCores { lanes: asked, .. } if asked == lanes));
}
