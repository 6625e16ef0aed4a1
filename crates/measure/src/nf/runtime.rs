//! Chains in the runtime, as `rheo run` runs them.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use rheostat_functions::firewall::{FirewallConfig, PortRange, Timeouts};
use rheostat_functions::lb::{
    self, BackendConfig, Health, LbConfig, Mode, OnDown, ServiceConfig, Sides, TunnelConfig,
};
use rheostat_functions::monitor::MonitorConfig;
use rheostat_functions::nat::{Filtering, Mapping, NatConfig, NatTimeouts, Pooling};
use rheostat_functions::policer::{
    Actions, Burst, Classes, Count, Meter, PolicerConfig, Rate, Subject,
};
use rheostat_functions::{Firewall, Lb, Monitor, Nat, Policer, shipped};
use rheostat_ip::Network;
use rheostat_nf::{AnyChain, ChainError, Link, link};
use rheostat_run::Routes;
use rheostat_state::{FragmentConfig, Shard, TableConfig};
use rheostat_steer::Whose;

use super::measurement::Figure;
use super::network::network;
use super::placed::Forwarder;
use super::testbed::{RECLAIMED_AFTER, Testbed};
use super::{FunctionChain, NfBench, Spec};
use crate::error::MeasureError;
use crate::memory::{self, LAN, WAN};

/// New flows per second and lane for which there is room besides the flows that stay, with a share of one.
const FRESH: f64 = 15e6;

/// Measures the empty chain.
pub(super) fn measure_empty(spec: &Spec, bench: &NfBench) -> Result<Figure, MeasureError> {
    run_on(spec, bench, &shipped::empty(), None)
}

/// Measures what every stateful chain pays before its first function.
pub(super) fn measure_placed(spec: &Spec, bench: &NfBench) -> Result<Figure, MeasureError> {
    let chain = shipped::empty();
    let testbed = Testbed::new(spec, |steering| chain.steering_for(steering))?;
    let shards = shards(spec, &testbed, &chain)?;
    testbed.drive(spec, bench, |_| Box::new(Forwarder), shards)
}

/// Measures the router, with `more` routes than a router needs here.
pub(super) fn measure_router(
    spec: &Spec,
    bench: &NfBench,
    more: usize,
) -> Result<Figure, MeasureError> {
    run_on(spec, bench, &shipped::empty(), Some(network(more)))
}

/// How a chain is made of its functions.
#[derive(Clone, Copy, Debug)]
pub(super) enum Assembly {
    /// Compiled as a whole.
    Compiled,
    /// Put together at run time.
    RunTime,
}

impl Assembly {
    fn chain(self, links: Vec<Box<dyn Link>>) -> Result<AnyChain, ChainError> {
        match self {
            Assembly::Compiled => shipped::chain(links),
            Assembly::RunTime => AnyChain::of(links),
        }
    }
}

/// Measures the firewall, which lets everything from inside out and only answers in.
pub(super) fn measure_firewall(
    spec: &Spec,
    bench: &NfBench,
    assembly: Assembly,
) -> Result<Figure, MeasureError> {
    let timeouts = Timeouts { tcp_closed: bench.effort.remembered, ..Timeouts::default() };
    let config = FirewallConfig { timeouts, ..FirewallConfig::default() };
    run_on(spec, bench, &assembly.chain(vec![link(Firewall::new(config))])?, None)
}

/// Measures the NAT alone.
pub(super) fn measure_nat(
    spec: &Spec,
    bench: &NfBench,
    mapping: Mapping,
) -> Result<Figure, MeasureError> {
    run(spec, bench, link(nat(spec, bench, mapping)))
}

/// Measures the NAT behind the firewall.
pub(super) fn measure_firewall_nat(
    spec: &Spec,
    bench: &NfBench,
    assembly: Assembly,
) -> Result<Figure, MeasureError> {
    let timeouts = Timeouts { tcp_closed: bench.effort.remembered, ..Timeouts::default() };
    let config = FirewallConfig { timeouts, ..FirewallConfig::default() };
    let nat = nat(spec, bench, Mapping::EndpointIndependent);
    let chain = assembly.chain(vec![link(Firewall::new(config)), link(nat)])?;
    run_on(spec, bench, &chain, None)
}

fn nat(spec: &Spec, bench: &NfBench, mapping: Mapping) -> Nat {
    Nat::new(nat_config(spec, bench.effort.remembered, mapping), None).expect("no blocks to divide")
}

/// A NAT with twice the ports that the flows need.
pub(super) fn nat_config(spec: &Spec, remembered: Duration, mapping: Mapping) -> NatConfig {
    let first = u32::from_be_bytes([100, 64, 0, 0]);
    let addresses = (flows(spec) / 32_000.0) as u32 + 2;
    let external = (first..first + addresses).map(Ipv4Addr::from_bits).collect();
    let filtering = match mapping {
        Mapping::EndpointIndependent => Filtering::AddressDependent,
        Mapping::AddressAndPortDependent => Filtering::AddressAndPortDependent,
    };
    NatConfig {
        mapping,
        filtering,
        pooling: Pooling::Arbitrary,
        // As many ports are given back as are given out.
        rest: Duration::ZERO,
        timeouts: NatTimeouts { tcp_transitory: remembered, ..NatTimeouts::default() },
        ..NatConfig::new(external)
    }
}

/// Flows at a time: those that stay, and those that come and go.
pub(super) fn flows(spec: &Spec) -> f64 {
    let fresh = spec.load.new_flow_share * FRESH * RECLAIMED_AFTER * spec.lanes as f64;
    f64::from(spec.load.flows) + fresh
}

/// Measures the policer, which holds each inner address to two rates (RFC 2698) in both directions
/// together. Popular addresses exceed the lower rate; nothing reaches the higher, so that nothing is dropped.
pub(super) fn measure_policer(spec: &Spec, bench: &NfBench) -> Result<Figure, MeasureError> {
    let rate = |bits| Rate::new(bits).expect("a rate in range");
    let burst = Burst::new(Burst::MOST).expect("a burst in range");
    let meter = Meter::two_rate(rate(100_000_000), burst, rate(Rate::MOST), burst);
    let config = PolicerConfig {
        subject: Subject { whose: Whose::Inner, v4: 32, v6: 128 },
        from: None,
        count: Count::Ip,
        classes: Classes::new(Some(meter.expect("a meter that lets something pass"))),
        colours: None,
        actions: Actions::default(),
        pass_when_full: false,
        pass_non_ip: true,
        subscribers: 65_536,
    };
    run(spec, bench, link(Policer::new(config)))
}

/// Measures the monitor as it is by default, without a log: records are made and counted.
pub(super) fn measure_monitor(spec: &Spec, bench: &NfBench) -> Result<Figure, MeasureError> {
    run(spec, bench, link(Monitor::new(MonitorConfig::default(), None)))
}

/// Measures the load balancer with sixteen backends, for the one server as a service. The path to the
/// backends is wide enough for full frames with an outer header.
pub(super) fn measure_lb(spec: &Spec, bench: &NfBench) -> Result<Figure, MeasureError> {
    let service = |vip: IpAddr, protocol: u8| ServiceConfig {
        name: format!("{vip}"),
        vip,
        protocol,
        ports: vec![PortRange { low: 443, high: 443 }],
        mode: Mode::DsrIpip,
        on_down: OnDown::Move,
        quic: None,
        check: None,
        backends: (0..16).map(|number| backend(vip, number)).collect(),
    };
    let (v4, v6) = (memory::SERVICE.into(), memory::widened(memory::SERVICE).into());
    let sources = ["172.16.0.0/16", "fd00:7::/64"].map(|prefix| prefix.parse().expect("a prefix"));
    let config = LbConfig {
        seed: spec.load.seed,
        services: [(v4, 6), (v4, 17), (v6, 6), (v6, 17)].map(|(vip, p)| service(vip, p)).to_vec(),
        tunnel: TunnelConfig { mtu: 9_000, sources: sources.to_vec(), ..TunnelConfig::default() },
        timeouts: lb::Timeouts { tcp_closed: bench.effort.remembered, ..lb::Timeouts::default() },
        sides: Sides { inside: WAN, outside: LAN },
        ..LbConfig::default()
    };
    run(spec, bench, link(Lb::new(config)))
}

fn backend(vip: IpAddr, number: u8) -> BackendConfig {
    let address = match vip {
        IpAddr::V4(_) => IpAddr::from([192, 168, 0, number]),
        IpAddr::V6(_) => IpAddr::from([0xfd00, 0, 0, 0, 0, 0, 0, u16::from(number)]),
    };
    BackendConfig { address, port: None, weight: 1, health: Health::Up, server_id: None }
}

/// Measures registered functions.
pub(super) fn measure_functions(
    spec: &Spec,
    bench: &NfBench,
    chain: &FunctionChain,
) -> Result<Figure, MeasureError> {
    run_on(spec, bench, &(chain.make)(spec.lanes).map_err(MeasureError::Function)?, None)
}

/// Runs a function alone between two devices.
pub(super) fn run(
    spec: &Spec,
    bench: &NfBench,
    function: Box<dyn Link>,
) -> Result<Figure, MeasureError> {
    run_on(spec, bench, &shipped::chain(vec![function])?, None)
}

/// Runs a chain on a network, if there is one, and between two devices otherwise.
fn run_on(
    spec: &Spec,
    bench: &NfBench,
    chain: &AnyChain,
    network: Option<Arc<Network>>,
) -> Result<Figure, MeasureError> {
    let testbed = Testbed::new(spec, |steering| chain.steering_for(steering))?;
    let shards = shards(spec, &testbed, chain)?;
    let routes = Routes(vec![WAN, LAN]);
    let service = |lane| chain.service(lane, &routes, network.as_ref());
    testbed.drive(spec, bench, service, shards)
}

/// Shards with room for the row's flows.
fn shards(
    spec: &Spec,
    testbed: &Testbed,
    chain: &AnyChain,
) -> Result<Vec<Box<Shard>>, MeasureError> {
    // Flows fall into shards by chance: six standard deviations above the mean.
    let mean = flows(spec) / spec.shards as f64;
    let capacity = mean + 6.0 * mean.sqrt() + 64.0;
    let table = TableConfig { capacity: capacity as usize, aliases: false };
    let (fragments, seed) = (FragmentConfig::default(), spec.load.seed);
    Ok(chain.make_shards(&testbed.steering, table, testbed.hasher, fragments, seed)?)
}
