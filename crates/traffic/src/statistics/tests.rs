//! Every source against its own description.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Duration;

use rheostat_packet::{FlowKey, Headers, Tuple};

use super::*;
use crate::{
    Attack, AttackConfig, AttackKind, Elephant, ElephantConfig, FlashCrowd, FlashCrowdConfig, Imix,
    ImixConfig, Limited, Mix, MixConfig, RateStep, Source, Stepped, Usual,
};

fn described(source: impl Source, packets: u64) -> Summary {
    let mut source = Limited::new(source, Some(packets), None);
    let mut statistics = Statistics::default();
    let mut frame = Vec::new();
    while let Some(arrival) = source.next(&mut frame) {
        statistics.count(arrival.time, &frame, arrival.wire_len, arrival.link);
    }
    statistics.summary()
}

fn frames(source: impl Source, packets: u64) -> Vec<(Time, Vec<u8>)> {
    let mut source = Limited::new(source, Some(packets), None);
    let mut frame = Vec::new();
    std::iter::from_fn(|| source.next(&mut frame).map(|a| (a.time, frame.clone()))).collect()
}

/// The key of a generated frame's flow, source first.
fn key(frame: &[u8]) -> FlowKey {
    let headers = Headers::parse_bytes(frame, frame.len(), LinkType::Ethernet).unwrap();
    match Tuple::of_bytes(frame, &headers) {
        Tuple::Flow(key) => key,
        other => panic!("{other:?} is no flow"),
    }
}

fn usual() -> Usual {
    Usual { flows: 2_000, ..Usual::default() }
}

fn elephant(seed: u64) -> Elephant {
    let config = ElephantConfig { share: 0.3, usual: usual(), seed, ..ElephantConfig::default() };
    Elephant::new(&config).unwrap()
}

fn attack(kind: AttackKind, seed: u64) -> Attack {
    let config = AttackConfig { kind, share: 0.4, usual: usual(), seed, ..AttackConfig::default() };
    Attack::new(&config).unwrap()
}

fn crowd(seed: u64) -> FlashCrowd {
    let config = FlashCrowdConfig {
        packets_per_second: 10_000,
        factor: 200.0,
        at: Duration::from_millis(300),
        lasting: Duration::from_millis(100),
        visitors: 500,
        usual: usual(),
        seed,
        ..FlashCrowdConfig::default()
    };
    FlashCrowd::new(&config).unwrap()
}

fn imix(seed: u64) -> Imix {
    Imix::new(ImixConfig { ipv6_share: 0.25, seed, ..ImixConfig::default() }).unwrap()
}

/// The index of dispersion of `n` windows of a Poisson process has a deviation of √(2 ÷ (n - 1)) (it is a
/// χ² divided by its degrees of freedom). The rate of n packets has one of 1 ÷ √n.
fn is_poisson(summary: &Summary, rate: f64) {
    let packets = summary.packets as f64;
    let measured = packets / summary.seconds;
    assert!((measured / rate - 1.0).abs() < 5.0 / packets.sqrt(), "{measured} packets per second");
    assert!(summary.burstiness.len() >= 2, "{summary}");
    for figures in &summary.burstiness {
        let deviation = (2.0 / (figures.windows - 1) as f64).sqrt();
        assert!((figures.dispersion - 1.0).abs() < 5.0 * deviation, "{figures:?}");
    }
}

#[test]
fn sources_of_a_constant_load_are_poisson_processes() {
    let mix = Mix::new(MixConfig { flows: 2_000, ..MixConfig::default() }).unwrap();
    let sources: [(&str, Box<dyn Source>); 5] = [
        ("mix", Box::new(mix)),
        ("imix", Box::new(imix(1))),
        ("elephant", Box::new(elephant(1))),
        ("flood", Box::new(attack(AttackKind::SynFlood, 1))),
        ("service", Box::new(attack(AttackKind::Service, 1))),
    ];
    for (name, source) in sources {
        println!("{name}");
        is_poisson(&described(source, 120_000), 1e6);
    }
}

#[test]
fn a_seed_names_the_packets_of_every_source() {
    let sources: [fn(u64) -> Box<dyn Source>; 6] = [
        |seed| Box::new(imix(seed)),
        |seed| Box::new(elephant(seed)),
        |seed| Box::new(crowd(seed)),
        |seed| Box::new(attack(AttackKind::SynFlood, seed)),
        |seed| Box::new(attack(AttackKind::UdpFlood, seed)),
        |seed| Box::new(attack(AttackKind::Service, seed)),
    ];
    for source in sources {
        assert_eq!(frames(source(5), 10_000), frames(source(5), 10_000));
        assert_ne!(frames(source(5), 10_000), frames(source(6), 10_000));
    }
}

#[test]
fn imix_is_seven_to_four_to_one() {
    let mut sizes: HashMap<usize, u32> = HashMap::new();
    let config = ImixConfig { flows: 100, ..ImixConfig::default() };
    for (_, frame) in frames(Imix::new(config).unwrap(), 120_000) {
        *sizes.entry(frame.len()).or_default() += 1;
    }
    // 40 bytes of IP are padded to the shortest frame.
    assert_eq!(sizes, HashMap::from([(60, 70_000), (590, 40_000), (1_514, 10_000)]));
    let summary = described(imix(1), 150_000);
    assert_eq!(summary.flows, 10_000);
    assert!((summary.flows_ipv6 - 0.25).abs() < 1e-9);
    assert_eq!((summary.udp, summary.unparsed), (1.0, 0));
}

#[test]
fn the_elephant_has_its_share() {
    let summary = described(elephant(1), 200_000);
    // A binomial share: a deviation of √(0.3 · 0.7 ÷ 200,000).
    let share = summary.flow_packets.most / summary.packets as f64;
    assert!((share - 0.3).abs() < 5.0 * 0.001_02, "{share}");
    assert!(summary.flows > 10_000 && summary.flow_packets.p99 < 1_000.0, "{summary}");
}

#[test]
fn a_crowd_multiplies_the_load_and_comes_as_new_flows_to_one_service() {
    let packets = frames(crowd(1), 250_000);
    let within = |from: u64, to: u64| {
        let range = Time::from_millis(from)..Time::from_millis(to);
        packets.iter().filter(move |(time, _)| range.contains(time))
    };
    let (before, surge) = (within(0, 300).count(), within(300, 400).count());
    assert!(before.abs_diff(3_000) < 5 * 55, "{before} before the surge");
    assert!(surge.abs_diff(200_000) < 5 * 447, "{surge} in the surge");
    let after = within(400, 600).count();
    assert!(after.abs_diff(2_000) < 5 * 45, "{after} after the surge");
    let service = FlashCrowdConfig::default().service.ip();
    let mut visitors: HashMap<IpAddr, u32> = HashMap::new();
    for (_, frame) in within(300, 400) {
        let key = key(frame);
        match (key.first() == service, key.second() == service) {
            (true, _) => *visitors.entry(key.second()).or_default() += 1,
            (_, true) => *visitors.entry(key.first()).or_default() += 1,
            _ => {}
        }
    }
    let visits: u32 = visitors.values().sum();
    // All but what the mix goes on to send; a visit has eight packets.
    assert!((f64::from(visits) / 199_000.0 - 1.0).abs() < 0.02, "{visits} packets of visits");
    assert!(visitors.values().all(|packets| *packets <= 8));
    // 500 under way at the end have sent some of theirs.
    let whole = f64::from(visits) / 8.0;
    assert!(
        (whole..whole + 500.0).contains(&(visitors.len() as f64)),
        "{} visitors",
        visitors.len()
    );
}

#[test]
fn attacks_are_what_they_are_called() {
    let victim = AttackConfig::default().target;
    for kind in [AttackKind::SynFlood, AttackKind::UdpFlood, AttackKind::Scan, AttackKind::Service]
    {
        let packets = frames(attack(kind, 1), 100_000);
        let keys: Vec<FlowKey> = packets.iter().map(|(_, frame)| key(frame)).collect();
        let hits: Vec<&FlowKey> = match kind {
            AttackKind::Scan => {
                let scanner: IpAddr = [203, 0, 113, 7].into();
                keys.iter().filter(|key| key.first() == scanner).collect()
            }
            _ => keys
                .iter()
                .filter(|k| k.first() == victim.ip() || k.second() == victim.ip())
                .collect(),
        };
        // A deviation of √(0.4 · 0.6 · 100,000).
        assert!(hits.len().abs_diff(40_000) < 5 * 155, "{kind:?}: {} packets", hits.len());
        let sources = hits.iter().map(|key| key.first()).collect::<std::collections::HashSet<_>>();
        let targets = hits.iter().map(|key| key.second()).collect::<std::collections::HashSet<_>>();
        let (least, most) = match kind {
            AttackKind::SynFlood | AttackKind::UdpFlood => (hits.len() - 10, hits.len()),
            AttackKind::Scan => (1, 1),
            // The bots, and the service that answers.
            AttackKind::Service => (257, 257),
        };
        assert!((least..=most).contains(&sources.len()), "{kind:?}: {} sources", sources.len());
        if kind == AttackKind::Scan {
            assert_eq!(targets.len(), hits.len().div_ceil(8));
        }
        let to_service = hits.iter().all(|key| key.second_port() == 443 || key.first_port() == 443);
        let aimed = matches!(kind, AttackKind::SynFlood | AttackKind::Service);
        assert_eq!(to_service, aimed, "{kind:?}");
    }
}

#[test]
fn steps_change_the_rate_and_leave_a_poisson_process() {
    let steps = vec![RateStep { at: Duration::from_millis(200), factor: 3.0 }];
    let stepped = Stepped::new(imix(1), steps).unwrap();
    let mut stepped = Limited::new(stepped, None, Some(Duration::from_millis(400)));
    let mut parts = [Statistics::default(), Statistics::default()];
    let mut frame = Vec::new();
    while let Some(arrival) = stepped.next(&mut frame) {
        let part = usize::from(arrival.time >= Time::from_millis(200));
        parts[part].count(arrival.time, &frame, arrival.wire_len, arrival.link);
    }
    is_poisson(&parts[0].summary(), 1e6);
    is_poisson(&parts[1].summary(), 3e6);
}

#[test]
fn broken_stamps_are_told_and_do_no_harm() {
    let mut statistics = Statistics::default();
    let frame = frames(imix(1), 1).remove(0).1;
    for seconds in [1_000, 1_001, 5, 1_002, u64::MAX / 1_000_000_000, 1_003, 1_004] {
        statistics.count(Time::from_secs(seconds), &frame, 60, LinkType::Ethernet);
    }
    let summary = statistics.summary();
    // 1 s; back; 997 s; cut to an hour; back; 1 s.
    assert!((summary.seconds - (1.0 + 997.0 + 3_600.0 + 1.0)).abs() < 1e-6, "{}", summary.seconds);
    assert_eq!((summary.stamps_backward, summary.gaps_cut), (2, 1));
    assert!(
        summary.to_string().ends_with("2 lay before the one before, 1 gaps were cut"),
        "{summary}"
    );
    assert_eq!((summary.flows, summary.flows_at_once), (1, 1));
    assert_eq!(Statistics::default().summary().packets, 0);
}

#[test]
fn active_flows_are_counted_by_the_second() {
    let mut statistics = Statistics::default();
    let flows: Vec<_> = frames(imix(1), 3).into_iter().map(|(_, frame)| frame).collect();
    for (ms, flow) in [(0, 0), (100, 1), (200, 0), (1_500, 0), (1_600, 2), (3_100, 1)] {
        let frame = &flows[flow];
        statistics.count(Time::from_millis(ms), frame, frame.len() as u32, LinkType::Ethernet);
    }
    let summary = statistics.summary();
    // Two, two, none and one.
    assert_eq!((summary.flows_active_per_second, summary.flows_active_most), (1.25, 2));
    assert_eq!(summary.flows_new_among_active, 3.0 / 5.0);
    assert_eq!(summary.flow_seconds.most, 3.0);
}
