//! Chains that are put together at run time: of the same functions, they come to the same as those that are compiled as a whole,
//! from any number of lanes.

use std::time::Duration;

use rheostat::harness::HarnessReport;
use rheostat::{
    Chain2, DropReason, Firewall, FirewallConfig, Harness, Mix, MixConfig, Objects, Stage,
    StateLayout, Unusual,
};
use rheostat_functions::antiddos::AntiDdosConfig;
use rheostat_functions::firewall::TcpOptions;
use rheostat_functions::monitor::MonitorConfig;
use rheostat_functions::nat::{Mapping, NatConfig};
use rheostat_functions::portscan::{self, PortscanConfig};
use rheostat_functions::{AntiDdos, Monitor, Nat, Policer, Portscan};
use rheostat_nf::{Chain, DynamicChain, Link, link, shared_link};
use rheostat_packet::LinkType;
use rheostat_steer::Whose;
use rheostat_testkit::captures;
use rheostat_testkit::flows::Flows;
use rheostat_testkit::spliced::Spliced;
use rheostat_traffic::Source;

use crate::{policing, translation};

/// Lanes, how many of them share a queue, how many are offloading lanes, and percent of the usual packets that do not take the
/// fast path.
pub(crate) type Way = (usize, usize, usize, u32);

pub(crate) const ONE: Way = (1, 1, 0, 0);
pub(crate) const WAYS: [Way; 6] =
    [ONE, (1, 1, 0, 100), (2, 1, 0, 10), (2, 2, 0, 10), (3, 1, 1, 0), (8, 1, 0, 0)];

/// What a run came to: what left of each flow, in order, all counters, and what the functions have counted.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Digest {
    pub(crate) flows: Flows,
    pub(crate) counters: Vec<(&'static str, u64)>,
    pub(crate) metrics: Vec<(&'static str, u64)>,
}

fn digest(report: &HarnessReport, link: LinkType) -> Digest {
    let counters = &report.counters;
    let mut all = vec![
        ("received", counters.received),
        ("sent", counters.sent),
        ("created", counters.flows_created),
        ("ended", counters.flows_ended),
        ("originated", counters.originated),
        ("panics", counters.panics),
    ];
    all.extend(DropReason::all().map(|reason| (reason.name(), counters.dropped[reason as usize])));
    // How many transactions it takes depends on the chain and on the lanes, and on which lane finds it first whether a flow begins
    // under alarm.
    let depends = |name: &str| name.starts_with("transactions") || name == "antiddos_alarms";
    let metrics = report.metrics.iter().filter(|(name, _)| !depends(name));
    Digest { flows: Flows::of(&report.sent, link), counters: all, metrics: metrics.collect() }
}

pub(crate) fn run<C: Chain>(
    (lanes, claimants, offloading, percent): Way,
    (chain, layout): (C, StateLayout),
    source: impl Source + 'static,
    link: LinkType,
) -> Digest {
    let unusual = Unusual::percent(percent, 3);
    let harness = Harness::new(chain, layout);
    let harness = Harness { lanes, claimants, offloading, flows: 131_072, unusual, ..harness };
    let report = harness.run(source, |_, _| {}).expect("memory and lanes");
    assert_eq!(report.violations, [], "{lanes} lanes");
    digest(&report, link)
}

pub(crate) fn dynamic(links: Vec<Box<dyn Link>>) -> (DynamicChain, StateLayout) {
    let mut layout = StateLayout::new();
    (DynamicChain::new(links, &mut layout).expect("a chain"), layout)
}

/// Runs a source through a chain on one lane and through a dynamic one in all ways. Returns what both come to.
#[track_caller]
fn same<C: Chain, S: Source + 'static>(
    name: &str,
    link: LinkType,
    chain: impl Fn() -> (C, StateLayout),
    links: impl Fn(usize) -> Vec<Box<dyn Link>>,
    source: impl Fn() -> S,
) -> Digest {
    let whole = run(ONE, chain(), source(), link);
    for way in WAYS {
        let parts = run(way, dynamic(links(way.0)), source(), link);
        assert_eq!(whole.counters, parts.counters, "{name}, {way:?}");
        assert_eq!(whole.metrics, parts.metrics, "{name}, {way:?}");
        if let Some(difference) = whole.flows.differs_from(&parts.flows) {
            panic!("{name}, {way:?}: {difference}");
        }
    }
    whole
}

pub(crate) fn firewall() -> Firewall {
    let tcp = TcpOptions { pickup: true, ..TcpOptions::default() };
    Firewall::new(FirewallConfig { tcp, ..FirewallConfig::default() })
}

pub(crate) fn nat(mapping: Mapping) -> Nat {
    let inside = ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"];
    let inside = inside.iter().filter_map(|prefix| prefix.parse().ok()).collect();
    let pool = (1..=4).map(|last| [203, 0, 113, last].into()).collect();
    Nat::new(NatConfig { mapping, inside, ..NatConfig::new(pool) }, None)
        .expect("no blocks to divide")
}

pub(crate) fn firewall_and_nat(mapping: Mapping) -> (impl Chain, StateLayout) {
    let mut layout = StateLayout::new();
    let firewall = Stage::new(firewall(), &mut layout).expect("room for one state");
    let nat = Stage::new(nat(mapping), &mut layout).expect("room for another");
    (Chain2(firewall, nat), layout)
}

pub(crate) fn mix(seed: u64) -> impl Source {
    let config = MixConfig {
        seed,
        flows: 400,
        packets: Some(15_000),
        // Slow enough that flows time out on the way.
        packets_per_second: 100,
        ..MixConfig::default()
    };
    Spliced::new(Mix::new(config).expect("a mix"))
}

const MAPPINGS: [Mapping; 2] = [Mapping::EndpointIndependent, Mapping::AddressAndPortDependent];

fn compare_firewall_and_nat<S: Source + 'static>(
    name: &str,
    link_type: LinkType,
    source: impl Fn() -> S,
) {
    for mapping in MAPPINGS {
        let both_ways = translation::both_ways(mapping, &source);
        let links = |_| vec![link(firewall()), link(nat(mapping))];
        same(name, link_type, || firewall_and_nat(mapping), links, both_ways);
    }
}

#[test]
fn the_firewall_and_the_nat_leave_a_mix_alike() {
    let outcome = || {
        let both_ways = translation::both_ways(MAPPINGS[0], &|| mix(5));
        run(ONE, firewall_and_nat(MAPPINGS[0]), both_ways(), LinkType::Ethernet)
    };
    let counted = |name| outcome().counters.iter().find(|(of, _)| *of == name).map(|(_, n)| *n);
    assert!(
        counted("sent") > Some(5_000) && counted("ended") > Some(100),
        "{:?}",
        outcome().counters
    );
    compare_firewall_and_nat("mix", LinkType::Ethernet, || mix(5));
}

#[test]
fn the_firewall_and_the_nat_leave_captures_alike() {
    captures::for_each(|capture| {
        compare_firewall_and_nat(&capture.name(), capture.link, || capture.open());
    });
}

#[test]
fn a_function_on_shared_objects_leaves_captures_alike() {
    let ever = Duration::from_secs(100 * 365 * 86_400);
    let (one_packet, idle, staleness) = (ever, ever, Duration::ZERO);
    let config = AntiDdosConfig { one_packet, idle, staleness, ..AntiDdosConfig::default() };
    let mut flows = 0;
    let ran = captures::for_each(|capture| {
        let whole = || {
            let (objects, mut layout) = (Objects::new(1), StateLayout::new());
            let function = AntiDdos::new(config.clone(), &objects);
            (
                Stage::on_objects(function, &objects, &mut layout).expect("room for one state"),
                layout,
            )
        };
        let links = |lanes| {
            let objects = Objects::new(lanes);
            vec![shared_link(AntiDdos::new(config.clone(), &objects), &objects)]
        };
        let digest = same(&capture.name(), capture.link, whole, links, || capture.open());
        flows += digest.counters[2].1;
    });
    assert!(!ran || flows > 1_000, "{flows} flows prove little");
}

/// What left, and what was dropped why.
fn fate(digest: &Digest) -> (&Flows, Vec<(&'static str, u64)>) {
    let is_kept = |(name, _): &&(&'static str, u64)| !matches!(*name, "created" | "ended");
    (&digest.flows, digest.counters.iter().filter(is_kept).copied().collect())
}

#[test]
fn functions_that_only_watch_change_nothing_about_others() {
    let watching = AntiDdosConfig::default();
    let action = portscan::Action::Count;
    let counting = PortscanConfig { action, ..PortscanConfig::default() };
    let mut watched = 0;
    let ran = captures::for_each(|capture| {
        let mapping = MAPPINGS[1];
        let source = || capture.open();
        let both_ways = translation::both_ways(mapping, &source);
        let plain = run(ONE, firewall_and_nat(mapping), both_ways(), capture.link);
        for way in [WAYS[1], WAYS[3], WAYS[5]] {
            let name = format!("{}, {way:?}", capture.name());
            let objects = Objects::new(way.0);
            let links = vec![
                link(Monitor::new(MonitorConfig::default(), None)),
                shared_link(AntiDdos::new(watching.clone(), &objects), &objects),
                link(firewall()),
                shared_link(Portscan::new(counting.clone(), &objects), &objects),
                link(nat(mapping)),
            ];
            let all = run(way, dynamic(links), both_ways(), capture.link);
            assert_eq!(fate(&plain).1, fate(&all).1, "{name}");
            if let Some(difference) = plain.flows.differs_from(&all.flows) {
                panic!("{name}: {difference}");
            }
            watched +=
                all.metrics.iter().find(|(of, _)| *of == "antiddos_opened").map_or(0, |(_, n)| *n);
        }
    });
    assert!(!ran || watched > 1_000, "{watched} flows watched prove little");
}

fn policer() -> Policer {
    Policer::new(policing::config(Whose::Outer, policing::meters()[0]))
}

#[test]
fn a_policer_of_hosts_polices_hosts_before_functions_that_know_flows() {
    let mix = || {
        let config = MixConfig { flows: 300, packets: Some(30_000), ..MixConfig::default() };
        Mix::new(MixConfig { packets_per_second: 500, ..config }).expect("a mix")
    };
    let alone = || {
        let mut layout = StateLayout::new();
        (Stage::new(policer(), &mut layout).expect("room for one state"), layout)
    };
    let alone = run(ONE, alone(), mix(), LinkType::Ethernet);
    let policed = alone.counters.iter().find(|(of, _)| *of == "policed").map_or(0, |(_, n)| *n);
    assert!(policed > 1_000 && policed < 20_000, "{policed} of 30,000 packets policed");
    for way in WAYS {
        let links = vec![link(policer()), link(Monitor::new(MonitorConfig::default(), None))];
        let both = run(way, dynamic(links), mix(), LinkType::Ethernet);
        assert_eq!(fate(&alone).1, fate(&both).1, "{way:?}");
        if let Some(difference) = alone.flows.differs_from(&both.flows) {
            panic!("{way:?}: {difference}");
        }
    }
}

#[test]
fn four_functions_leave_captures_the_same_from_any_number_of_lanes() {
    let mut policed = 0;
    let ran = captures::for_each(|capture| {
        if policing::goes_back(capture.open()) {
            return;
        }
        let mut one: Option<Digest> = None;
        for way in WAYS {
            let name = format!("{}, {way:?}", capture.name());
            let many = run(way, dynamic(four()), capture.open(), capture.link);
            let one =
                one.get_or_insert_with(|| run(ONE, dynamic(four()), capture.open(), capture.link));
            assert_eq!(one.counters, many.counters, "{name}");
            assert_eq!(one.metrics, many.metrics, "{name}");
            if let Some(difference) = one.flows.differs_from(&many.flows) {
                panic!("{name}: {difference}");
            }
        }
        let count = |digest: &Digest| {
            digest.counters.iter().find(|(of, _)| *of == "policed").map(|(_, n)| *n)
        };
        policed += one.as_ref().and_then(count).unwrap_or(0);
    });
    assert!(!ran || policed > 100, "{policed} packets policed prove little");
}

fn four() -> Vec<Box<dyn Link>> {
    vec![
        link(Monitor::new(MonitorConfig::default(), None)),
        link(policer()),
        link(firewall()),
        link(nat(MAPPINGS[1])),
    ]
}
