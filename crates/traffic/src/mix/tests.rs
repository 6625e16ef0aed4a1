//! What the mix promises, measured on what it generates.

use super::*;
use crate::statistics::Statistics;

fn mix(seed: u64, packets: u64) -> Mix {
    let config = MixConfig { flows: 2_000, seed, packets: Some(packets), ..MixConfig::default() };
    Mix::new(config).unwrap()
}

fn frames(mut mix: Mix) -> Vec<(Time, Vec<u8>)> {
    let mut frame = Vec::new();
    std::iter::from_fn(|| mix.next(&mut frame).map(|arrival| (arrival.time, frame.clone())))
        .collect()
}

#[test]
fn a_seed_names_one_mix() {
    let first = frames(mix(7, 20_000));
    assert_eq!(first, frames(mix(7, 20_000)));
    assert_ne!(first, frames(mix(8, 20_000)));
}

#[test]
fn proportions_are_as_stated() {
    // Short flows only, so that most of them are over when the mix is measured.
    let config =
        MixConfig { flows: 500, packets: Some(300_000), longest: 1_000, ..MixConfig::default() };
    let mut mix = Mix::new(config).unwrap();
    let mut statistics = Statistics::default();
    let mut frame = Vec::new();
    while let Some(arrival) = mix.next(&mut frame) {
        statistics.count(arrival.time, &frame, arrival.wire_len, arrival.link);
    }
    let summary = statistics.summary();
    let near = |value: f64, wanted: f64, tolerance: f64| {
        assert!((value - wanted).abs() <= tolerance, "{value} is not {wanted}: {summary:?}");
    };
    near(summary.flows_of_one_packet, 0.5, 0.03);
    near(summary.flows_below_10_packets, 0.8, 0.03);
    near(summary.flow_packets_p95 as f64, 30.0, 6.0);
    near(summary.packets_below_74_bytes, 0.2, 0.02);
    near(summary.packets_of_full_size, 0.5, 0.02);
    near(summary.flows_ipv6, 0.1, 0.02);
    assert!(summary.tcp > 0.3 && summary.udp > 0.1 && summary.icmp > 0.01, "{summary:?}");
    assert_eq!(summary.unparsed, 0);
}

#[test]
fn the_rate_is_exact_and_new_flows_keep_coming() {
    let config = MixConfig {
        flows: 100,
        packets_per_second: 333_333,
        duration: Some(std::time::Duration::from_millis(300)),
        ..MixConfig::default()
    };
    let mut mix = Mix::new(config).unwrap();
    let mut frame = Vec::new();
    let mut last = Time::ZERO;
    let mut count = 0_u64;
    while let Some(arrival) = mix.next(&mut frame) {
        assert!(arrival.time >= last);
        last = arrival.time;
        count += 1;
    }
    assert_eq!(count, 100_000);
    assert!(mix.flows_started() > 1_000);
}

#[test]
fn impossible_mixes_are_refused() {
    let with = |change: fn(&mut MixConfig)| {
        let mut config = MixConfig::default();
        change(&mut config);
        Mix::new(config).unwrap_err()
    };
    assert_eq!(with(|c| c.flows = 0), MixError::Flows(0));
    assert_eq!(with(|c| c.flows = 10_000_001), MixError::Flows(10_000_001));
    assert_eq!(with(|c| c.packets_per_second = 0), MixError::Rate);
    assert_eq!(with(|c| c.ipv6_share = 1.5), MixError::Ipv6Share(1.5));
    assert_eq!(with(|c| c.zipf = 0.0), MixError::Zipf(0.0));
    assert_eq!(with(|c| c.longest = 30), MixError::Longest(30));
}
