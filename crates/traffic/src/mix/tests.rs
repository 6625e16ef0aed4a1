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
    for (flows, packets) in [(500, 300_000), (20_000, 1_500_000)] {
        check_proportions(flows, packets);
    }
}

/// Short flows only, so that most of them are over when the mix is measured.
fn check_proportions(flows: u32, packets: u64) {
    let config =
        MixConfig { flows, packets: Some(packets), longest: 1_000, ..MixConfig::default() };
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
    near(summary.flow_packets.p95, 30.0, 6.0);
    near(summary.packets_below_74_bytes, 0.2, 0.02);
    near(summary.packets_of_full_size, 0.5, 0.02);
    near(summary.flows_ipv6, 0.1, 0.02);
    assert!(summary.tcp > 0.3 && summary.udp > 0.1 && summary.icmp > 0.01, "{summary:?}");
    assert_eq!(summary.unparsed, 0);
}

/// A Poisson process: 100,000 packets are expected, with a standard deviation of 316; gaps have an
/// exponential distribution, of which 63.2 % is below the mean.
#[test]
fn packets_arrive_in_an_open_loop_at_the_stated_rate() {
    let config = MixConfig {
        flows: 100,
        packets_per_second: 333_333,
        duration: Some(std::time::Duration::from_millis(300)),
        ..MixConfig::default()
    };
    let mut mix = Mix::new(config).unwrap();
    let mut frame = Vec::new();
    let mut last = Time::ZERO;
    let (mut count, mut short) = (0_u64, 0_u64);
    while let Some(arrival) = mix.next(&mut frame) {
        assert!(arrival.time >= last);
        short += u64::from(arrival.time.since(last).as_nanos() < 3_000);
        last = arrival.time;
        count += 1;
    }
    assert!(count.abs_diff(100_000) < 5 * 316, "{count}");
    assert!((short as f64 / count as f64 - 0.632).abs() < 0.01, "{short} of {count}");
    assert!(mix.flows_started() > 1_000);
}

#[test]
fn few_flows_carry_much_of_the_load_at_any_moment() {
    let mut mix = mix(3, 200_000);
    let mut frame = Vec::new();
    // Past the start.
    (0..100_000).for_each(|_| assert!(mix.next(&mut frame).is_some()));
    let mut counts = std::collections::HashMap::new();
    for _ in 0..20_000 {
        let arrival = mix.next(&mut frame).unwrap();
        let headers =
            rheostat_packet::Headers::parse_bytes(&frame, frame.len(), arrival.link).unwrap();
        let rheostat_packet::Tuple::Flow(key) = rheostat_packet::Tuple::of_bytes(&frame, &headers)
        else {
            panic!("every packet of the mix belongs to a flow")
        };
        let key = if key.is_sorted() { key } else { key.reversed() };
        *counts.entry(key).or_insert(0_u32) += 1;
    }
    let mut counts: Vec<u32> = counts.into_values().collect();
    counts.sort_unstable_by_key(|count| std::cmp::Reverse(*count));
    let top: u32 = counts[..20].iter().sum();
    // 20 of the 2,000 flows under way at a time: one in a hundred.
    assert!(top > 20_000 / 10, "the top 1 % of flows sent {top} of 20,000 packets");
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
