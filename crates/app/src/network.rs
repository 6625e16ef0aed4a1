//! From the addresses and routes of a configuration to the network layer of a run.

mod cable_end;

use std::io;
use std::net::IpAddr;
use std::sync::Arc;

use rand::Rng;
use rheostat_base::DeviceId;
use rheostat_control::config::NetworkConfig;
use rheostat_control::config::device::{DeviceConfig, MacAddress};
use rheostat_control::config::network::RouteConfig;
use rheostat_control::{Config, KernelFollower, KernelResolver};
use rheostat_functions::lb::LbConfig;
use rheostat_functions::lb::check::{HealthChecks, NoSource};
use rheostat_io::DeviceFacts;
use rheostat_ip::{
    Hop, Interface, InterfaceAddress, Network, NetworkError, NetworkUpdate, Policy, Route, RunLimit,
};
use rheostat_ip::{KnownNeighbours, LocalService};
use rheostat_kernel::InterfaceLink;
use rheostat_steer::{Orientation, Prefix, PrefixList};
use thiserror::Error;

use crate::assemble::randomness;

/// Why there is no network layer as configured.
#[derive(Debug, Error)]
pub(crate) enum WiringError {
    #[error("interface `{interface}`: {source}; `ip -brief link` lists those there are")]
    Link { interface: String, source: io::Error },
    #[error("device `{device}` is no Ethernet interface: give it no `address`, or take another")]
    NotEthernet { device: String },
    #[error("{0}")]
    Network(#[from] NetworkError),
    #[error("{0}")]
    Checks(#[from] NoSource),
    /// The kernel's routes and neighbours cannot be read.
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// A service without an address, where the flags or the configuration give none.
#[derive(Debug, Error)]
#[error("a service needs an address: pass --address ADDRESS/LENGTH")]
pub(crate) struct NoAddress;

/// The longest packet of a simulated device or a capture, where its configuration does not say.
const USUAL_MTU: u16 = 1_500;

/// The network layer of a run, and what is looked after through it.
pub(crate) struct Wiring {
    pub(crate) network: Arc<Network>,
    pub(crate) checks: Option<Arc<HealthChecks>>,
    /// Keeps the routes as the kernel has them, where it is followed.
    pub(crate) follower: Option<KernelFollower>,
}

/// The network that a configuration describes; `None` where devices have no addresses. Its devices must be
/// open: mirrors are made by that. Errors are sent under `errors`, and `seed` spreads health checks.
///
/// # Errors
/// As [`plan`], and when the kernel's routes and neighbours cannot be read.
pub(crate) fn of(
    config: &Config,
    errors: RunLimit,
    seed: u64,
) -> Result<Option<Wiring>, WiringError> {
    note_unchecked(config);
    let planned = plan(config, seed, &link_of_kernel)?;
    let Some((network, checks)) = planned else { return Ok(None) };
    let mut network = network.with_error_limit(errors);
    let beside_kernel = is_beside_kernel(config);
    if beside_kernel {
        network = network.with_resolver(Arc::new(KernelResolver::new(live_devices(config))?));
    }
    let network = Arc::new(network);
    let neighbours = match beside_kernel {
        true => KnownNeighbours::All,
        false => KnownNeighbours::Permanent,
    };
    let follower = match config.network.follow_kernel || beside_kernel {
        true => Some(follow(config, network.clone(), routes(config), neighbours)?),
        false => None,
    };
    Ok(Some(Wiring { network, checks, follower }))
}

fn is_beside_kernel(config: &Config) -> bool {
    config.serve.as_ref().is_some_and(|serve| serve.beside_kernel)
}

/// The routes of the configuration.
fn routes(config: &Config) -> Vec<Route> {
    let route = |route: &RouteConfig| Route {
        prefix: route.to,
        gateway: route.via,
        device: Some(route.device),
    };
    config.network.routes.iter().map(route).collect()
}

/// The device on which no backend answers, as its link is a capture: the configuration alone states which ones are up.
fn unanswered(config: &Config) -> Option<&DeviceConfig> {
    let is_played = |device: &&DeviceConfig| !device.facts().is_live;
    config.devices.iter().find(is_played)
}

/// A network, and the health checks among its local services.
type Planned = (Network, Option<Arc<HealthChecks>>);

/// The link of an interface; `None` where it is not known.
type LinkOf = dyn Fn(&DeviceFacts) -> Result<Option<InterfaceLink>, WiringError>;

/// The link as the kernel has it. A tap interface may be made only when its device opens.
pub(crate) fn link_of_kernel(device: &DeviceFacts) -> Result<Option<InterfaceLink>, WiringError> {
    let interface = device.interface.clone().unwrap_or_default();
    match InterfaceLink::of(&interface) {
        Ok(link) => Ok(Some(link)),
        Err(_) if device.makes_interface => Ok(None),
        Err(source) => Err(WiringError::Link { interface, source }),
    }
}

/// The network before the kernel is asked for more than links.
///
/// # Errors
/// [`WiringError`] when an interface has no link address, addresses and routes contradict each other, or there
/// is no address to check backends from.
pub(crate) fn plan(
    config: &Config,
    seed: u64,
    link: &LinkOf,
) -> Result<Option<Planned>, WiringError> {
    let checks = |source: &dyn Fn(IpAddr) -> Option<IpAddr>| health_checks(config, source, seed);
    if config.devices.iter().all(|device| device.addresses.is_empty()) {
        // Reports what is missing if backends are to be checked.
        checks(&|_| None)?;
        return Ok(None);
    }
    let interfaces = interfaces(config, link)?;
    let NetworkConfig { neighbours, .. } = &config.network;
    let policy = policy_of(config);
    let mut network = Network::new(interfaces, &routes(config), policy)?;
    for neighbour in neighbours {
        network.set_neighbour(neighbour.device, neighbour.address, neighbour.mac.0);
    }
    let checks = checks(&|peer| speaker(&network, peer)?.address_towards(peer))?;
    if let Some(checks) = &checks {
        network = network.with_local_service(checks.clone());
    }
    Ok(Some((network, checks)))
}

fn policy_of(config: &Config) -> Policy {
    let policy = config.network.policy;
    // The kernel announces its addresses itself.
    Policy { announce: policy.announce && !is_beside_kernel(config), ..policy }
}

/// The health checks of a load balancer, if it has any; `source` is the address from which a backend is asked.
fn health_checks(
    config: &Config,
    source: &dyn Fn(IpAddr) -> Option<IpAddr>,
    seed: u64,
) -> Result<Option<Arc<HealthChecks>>, WiringError> {
    if unanswered(config).is_some() {
        return Ok(None);
    }
    let lb: Option<&LbConfig> = config.function();
    let checks = lb.map(|lb| HealthChecks::new(lb, source, seed)).transpose()?.flatten();
    Ok(checks.map(Arc::new))
}

/// What changes in the running `network` of `config` when it becomes that of `next`, and the health checks in place of those before,
/// where the load balancer is another one.
///
/// # Errors
/// [`WiringError`] when there is no address to check backends from.
pub(crate) fn update_of(
    network: &Network,
    config: &Config,
    next: &Config,
) -> Result<(NetworkUpdate, Option<Arc<HealthChecks>>), WiringError> {
    let is_other = config.function::<LbConfig>() != next.function::<LbConfig>();
    let source = |peer: IpAddr| speaker(network, peer)?.address_towards(peer);
    let checks = match is_other {
        true => health_checks(next, &source, randomness(next.run.seed).random())?,
        false => None,
    };
    let service = |checks: &Arc<HealthChecks>| checks.clone() as Arc<dyn LocalService>;
    let local_services = is_other.then(|| checks.iter().map(service).collect());
    let (routes, policy) = (routes(next), policy_of(next));
    let proxied = proxied(network.interfaces(), next);
    Ok((NetworkUpdate { routes, proxied, policy, local_services }, checks))
}

/// Notes that backends are not checked, if they should be.
fn note_unchecked(config: &Config) {
    let Some(device) = unanswered(config) else { return };
    let is_checked = |lb: &LbConfig| lb.services.iter().any(|service| service.check.is_some());
    if config.function().is_some_and(is_checked) {
        let name = &device.name;
        tracing::info!(
            target: "network",
            "backends are not checked: on device `{name}`, which is none of this machine's interfaces, no backend answers"
        );
    }
}

fn follow(
    config: &Config,
    network: Arc<Network>,
    given: Vec<Route>,
    neighbours: KnownNeighbours,
) -> Result<KernelFollower, WiringError> {
    let devices = live_devices(config).collect();
    let report = |message: &str| tracing::warn!(target: "network", "{message}");
    Ok(KernelFollower::start(network, devices, given, neighbours, report)?)
}

/// The devices on interfaces of this machine, and the names of these.
fn live_devices(config: &Config) -> impl Iterator<Item = (String, DeviceId)> + '_ {
    config
        .devices
        .iter()
        .enumerate()
        .filter_map(|(number, device)| Some((device.facts().interface?, DeviceId(number as u8))))
}

/// The interface that speaks to a host: the one on its link, or that towards it.
fn speaker(network: &Network, peer: IpAddr) -> Option<&Interface> {
    let on_link = network.interfaces().iter().find(|interface| interface.is_on_link(peer));
    on_link.or_else(|| {
        let routes = network.routes();
        match routes.hop(routes.lookup(peer)) {
            Hop::OnLink(device) | Hop::Gateway(device, _) => network.interface(device),
            _ => None,
        }
    })
}

fn interfaces(config: &Config, link: &LinkOf) -> Result<Vec<Interface>, WiringError> {
    let mut interfaces = Vec::new();
    for (number, device) in config.devices.iter().enumerate() {
        let id = DeviceId(number as u8);
        interfaces.push(interface(id, device, config.serve.is_some(), link)?);
    }
    let proxied = proxied(&interfaces, config);
    for (interface, proxied) in interfaces.iter_mut().zip(proxied) {
        interface.proxied = proxied;
    }
    Ok(interfaces)
}

/// What each interface answers for besides its own addresses: what functions serve, on the link it is on or outside.
fn proxied(interfaces: &[Interface], config: &Config) -> Vec<PrefixList> {
    let served: Vec<_> = config.chain.iter().flat_map(|function| function.facts().served).collect();
    let of_one = |(interface, device): (&Interface, &DeviceConfig)| {
        let outside = device.orientation == Orientation::Outside;
        let theirs = |address: &&IpAddr| interface.is_on_link(**address) || outside;
        let host = |address: &IpAddr| {
            Prefix::containing(*address, if address.is_ipv4() { 32 } else { 128 })
        };
        served.iter().filter(theirs).map(host).collect()
    };
    interfaces.iter().zip(&config.devices).map(of_one).collect()
}

/// The interface of a device. A service at a tap interface is the host at the other end of its cable.
fn interface(
    id: DeviceId,
    config: &DeviceConfig,
    is_service: bool,
    link: &LinkOf,
) -> Result<Interface, WiringError> {
    let facts = config.facts();
    let own = if facts.is_live { link(&facts)? } else { None };
    let mac = match (config.mac, own) {
        (Some(MacAddress(mac)), _) => mac,
        (None, _) if is_service && facts.makes_interface => cable_end::link_address(config),
        (None, Some(InterfaceLink { mac: Some(mac), .. })) => mac,
        (None, Some(_)) => return Err(WiringError::NotEthernet { device: config.name.clone() }),
        // Administered locally (IEEE 802), and different for each device.
        (None, None) => [2, 0, 0, 0, 0, id.0 + 1],
    };
    let carried = own.map(|link| u16::try_from(link.mtu).unwrap_or(u16::MAX));
    let mtu = match (config.mtu, carried) {
        (Some(given), Some(carried)) => given.min(carried),
        (given, carried) => given.or(carried).unwrap_or(USUAL_MTU),
    };
    let addresses = config.addresses.iter();
    Ok(Interface {
        mtu,
        addresses: addresses
            .map(|own| InterfaceAddress { address: own.address, length: own.length })
            .collect(),
        is_played: !facts.is_live,
        ..Interface::new(id, &config.name, mac)
    })
}

/// Warnings about devices that are to carry longer packets than their interfaces do.
pub(crate) fn mtu_warnings(config: &Config) -> Vec<String> {
    let warning = |device: &DeviceConfig| {
        let given = device.mtu.filter(|_| !device.addresses.is_empty())?;
        let carried = InterfaceLink::of(&device.facts().interface?).ok()?.mtu;
        (u32::from(given) > carried).then(|| {
            let name = &device.name;
            format!(
                "device `{name}` has `mtu = {given}`, but its interface carries {carried}: packets have {carried} bytes \
                 at most"
            )
        })
    };
    config.devices.iter().filter_map(warning).collect()
}
