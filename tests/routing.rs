//! Chains on the network layer in whole runs: a router decides the same about every packet, whatever the number of
//! lanes, alone and with a function on shared objects behind it.

use std::sync::Arc;
use std::time::Duration;

use rheostat::harness::HarnessReport;
use rheostat::{
    DropReason, DynamicChain, Firewall, FirewallConfig, Harness, Mix, MixConfig, Objects, Stage,
    StateLayout,
};
use rheostat_base::DeviceId;
use rheostat_functions::AntiDdos;
use rheostat_functions::antiddos::{Action, AntiDdosConfig};
use rheostat_ip::{Interface, Network, Policy, Route};
use rheostat_nf::Chain;
use rheostat_packet::LinkType;
use rheostat_run::Unusual;
use rheostat_testkit::captures;
use rheostat_testkit::flows::Flows;
use rheostat_testkit::spliced::Spliced;
use rheostat_traffic::Source;

const LANES: [usize; 3] = [1, 2, 8];
/// The destination of clients' frames, in a mix.
const MAC: [u8; 6] = [2, 0, 0, 0, 0, 2];

/// A router whose link is a capture, with a gateway to everywhere. It sends every ICMP error: with a limit, the result would
/// depend on which sender comes first.
fn network() -> Arc<Network> {
    let interface = Interface {
        addresses: vec!["203.0.113.1/24".parse().unwrap(), "2001:db8:113::1/64".parse().unwrap()],
        is_played: true,
        ..Interface::new(DeviceId(0), "trial", MAC)
    };
    let via =
        |prefix: &str, gateway: &str| Route::via(prefix.parse().unwrap(), gateway.parse().unwrap());
    let routes = [via("0.0.0.0/0", "203.0.113.254"), via("::/0", "2001:db8:113::fe")];
    let policy = Policy {
        errors_per_second: 1_000_000_000,
        errors_at_once: 1_000_000_000,
        announce: false,
        ..Policy::default()
    };
    let network = Network::new(vec![interface], &routes, policy).unwrap();
    for gateway in ["203.0.113.254", "2001:db8:113::fe"] {
        network.set_neighbour(DeviceId(0), gateway.parse().unwrap(), [2, 0, 0, 0, 0, 9]);
    }
    Arc::new(network)
}

fn run<C: Chain>(
    lanes: usize,
    source: impl Source + 'static,
    chain: C,
    layout: StateLayout,
) -> HarnessReport {
    // On one lane, all packets take the general code, on two the fast path if they can.
    let unusual = match lanes {
        1 => Unusual::ALL,
        2 => Unusual::default(),
        _ => Unusual::percent(10, 1),
    };
    let harness =
        Harness { lanes, unusual, network: Some(network()), ..Harness::new(chain, layout) };
    let report = harness.run(source, |_, _| {}).unwrap();
    assert_eq!(report.violations, [], "{lanes} lanes");
    report
}

fn routed(lanes: usize, source: impl Source + 'static) -> HarnessReport {
    run(lanes, source, DynamicChain::default(), StateLayout::new())
}

fn watched(lanes: usize, source: impl Source + 'static) -> HarnessReport {
    let (objects, mut layout) = (Objects::new(lanes), StateLayout::new());
    let config = AntiDdosConfig {
        action: Action::Count,
        staleness: Duration::ZERO,
        ..AntiDdosConfig::default()
    };
    let chain = Stage::on_objects(AntiDdos::new(config, &objects), &objects, &mut layout).unwrap();
    run(lanes, source, chain, layout)
}

/// Where the chain keeps some packets back, and the network layer others.
fn guarded(lanes: usize, source: impl Source + 'static) -> HarnessReport {
    let mut layout = StateLayout::new();
    let chain = Stage::new(Firewall::new(FirewallConfig::default()), &mut layout).unwrap();
    run(lanes, source, chain, layout)
}

/// What there is to compare of a run.
fn outcome(report: &HarnessReport, link: LinkType) -> ([u64; 2], Vec<u64>, Flows) {
    let dropped = DropReason::all().map(|r| report.counters.dropped[r as usize]).collect();
    let metrics = ["antiddos_flows", "antiddos_one_packet_flows"].map(|f| report.metrics.get(f));
    (metrics, dropped, Flows::of(&report.sent, link))
}

/// Holds runs on several lanes against one, and returns that.
fn compare<S: Source + 'static>(
    name: &str,
    link: LinkType,
    run: fn(usize, S) -> HarnessReport,
    source: impl Fn() -> S,
) -> HarnessReport {
    let one = run(1, source());
    let expected = outcome(&one, link);
    for lanes in &LANES[1..] {
        let many = outcome(&run(*lanes, source()), link);
        assert_eq!((expected.0, &expected.1), (many.0, &many.1), "{name}, {lanes} lanes");
        let difference = expected.2.differs_from(&many.2);
        assert_eq!(difference, None, "{name}, {lanes} lanes");
    }
    one
}

#[test]
fn a_mix_leaves_the_same_from_any_number_of_lanes() {
    let mix = || {
        let config = MixConfig { flows: 300, packets: Some(20_000), ..MixConfig::default() };
        Spliced::new(Mix::new(config).expect("a mix"))
    };
    let ethernet = LinkType::Ethernet;
    let [one, watched, guarded] =
        [routed, watched, guarded].map(|run| compare("mix", ethernet, run, mix));
    assert!(guarded.counters.sent > 10_000, "{:?}", guarded.counters);
    assert!(guarded.counters.dropped_total() > 100, "{:?}", guarded.counters);
    assert!(one.counters.sent > 10_000, "{:?}", one.counters);
    assert!(watched.metrics.get("antiddos_flows") >= 300, "{:?}", watched.metrics);
    // Behind addresses, too, a transaction is of many packets.
    let (transactions, received) = (watched.metrics.get("transactions"), watched.counters.received);
    assert!(transactions * 4 < received, "{transactions} transactions for {received} packets");
    // Towards the gateway, from the interface.
    for packet in &one.sent {
        assert_eq!(packet.bytes[6..12], MAC);
    }
}

#[test]
fn captures_leave_the_same_from_any_number_of_lanes() {
    let mut sent = 0;
    let ran = captures::for_each(|capture| {
        let name = capture.name();
        sent += compare(&name, capture.link, routed, || capture.open()).counters.sent;
        compare(&name, capture.link, watched, || capture.open());
        compare(&name, capture.link, guarded, || capture.open());
    });
    assert!(!ran || sent > 1_000, "{sent} packets prove little");
}
