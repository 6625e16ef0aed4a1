//! Every kind of row can be measured: its run is sound, its chain lets the packets through, and the
//! figures are about packets. How fast they are is not for a test to say.
//!
//! Timed: threads, sleep, clock.

use std::time::Duration;

use rheostat_measure::memory::{FrameSize, SourceKind};
use rheostat_measure::nf::{
    ChainKind, Control, Effort, Measuring, Mode, NfBench, SHARDS, Selection, Spec,
};
use rheostat_traffic::Distribution;

#[test]
fn every_kind_of_row_has_a_sound_run() {
    let plain = Selection {
        chains: ChainKind::ALL.to_vec(),
        flows: vec![1_000],
        distributions: vec![Distribution::Zipf(1.1)],
        sizes: vec![FrameSize::Mix],
        sources: vec![SourceKind::Converse],
        new_flow_shares: vec![0.0],
        lanes: vec![1],
        shards: vec![SHARDS],
        seed: 3,
    };
    let new = Selection {
        chains: vec![ChainKind::Firewall, ChainKind::Nat, ChainKind::Lb],
        sizes: vec![FrameSize::Smallest],
        sources: vec![SourceKind::Converse],
        new_flow_shares: vec![0.1],
        ..plain.clone()
    };
    // Others may have the lane's core for most of the time.
    let (window, remembered) = (Duration::from_millis(30), Duration::from_secs(600));
    let effort = Effort { windows: 1, window, remembered, packets: None, requested: false };
    let bench = NfBench {
        effort,
        allocations: || 0,
        control: Control::Watched,
        stages: true,
        instructions: None,
        processes: None,
        measuring: false,
    };
    let replayed = Selection {
        chains: vec![ChainKind::Harness, ChainKind::Firewall, ChainKind::FirewallNat],
        sources: vec![SourceKind::Replay],
        ..plain.clone()
    };
    let sharded =
        Selection { chains: vec![ChainKind::Nat], shards: vec![1], ..plain.clone() }.specs();
    let firewall = replayed.specs()[1];
    let measured =
        Measuring::ALL.map(|measuring| Spec { measuring: Some(measuring), ..firewall }).to_vec();
    let specs = [plain.specs(), new.specs(), replayed.specs(), sharded, measured].concat();
    let mut shown = 0;
    let rows = bench.run(&specs, |_| shown += 1).expect("sound runs");
    assert_eq!((rows.len(), shown), (specs.len(), specs.len()));
    assert_eq!(rows.len(), ChainKind::ALL.len() + 3 + 3 + 1 + 4);
    assert_eq!(rows[ChainKind::ALL.len() + 6].shards, 1);
    for row in &rows {
        // Their rate is rounded, and so 0 where the lane was kept from its core for long.
        assert!(row.ns_per_packet > 0.0 && row.ns_per_packet.is_finite(), "{row:?}");
        assert!(row.mpps_min <= row.mpps && row.mpps <= row.mpps_max, "{row:?}");
        assert_eq!(row.ns_above_harness == 0.0, row.chain == "harness", "{row:?}");
        assert!(row.mpps_at_full_speed >= Some(row.mpps), "{row:?}");
        assert!(row.ns_per_packet_at_full_speed <= Some(row.ns_per_packet), "{row:?}");
        assert!(row.involuntary_switches >= Some(0.0), "{row:?}");
        assert!(row.mode != Mode::Unknown && (0.0..=1.0).contains(&row.speed), "{row:?}");
        // The harness has no stages.
        assert_eq!(row.stages.is_none(), row.chain == "harness", "{row:?}");
        assert_eq!(row.instructions_per_packet, None, "not requested: {row:?}");
        if let (Some(least), Some(median)) = (row.stages, row.stages_median) {
            assert!(least.source > 0.0 && least.run <= median.run, "{row:?}");
        }
    }
}

#[test]
fn a_row_with_more_lanes_than_cores_is_refused() {
    let selection = Selection {
        chains: vec![ChainKind::Empty],
        flows: vec![1_000],
        distributions: vec![Distribution::Uniform],
        sizes: vec![FrameSize::Smallest],
        sources: vec![SourceKind::Converse],
        new_flow_shares: vec![0.0],
        lanes: vec![10_000],
        shards: vec![SHARDS],
        seed: 3,
    };
    let bench = NfBench {
        effort: Effort::default(),
        allocations: || 0,
        control: Control::Watched,
        stages: false,
        instructions: None,
        processes: None,
        measuring: false,
    };
    let error = bench.run(&selection.specs(), |_| {}).expect_err("no machine has so many cores");
    assert!(error.to_string().starts_with("10000 lanes need 10000 cores"), "{error}");
}
