//! One device in place of one inside and one outside.

use std::net::Ipv6Addr;

use rheostat_base::DeviceId;
use rheostat_steer::{Orientation, Prefix};

use crate::config::device::{LinkAddress, PcapConfig};
use crate::config::{DeviceConfig, DeviceKind, NetworkConfig, Sections};

/// Makes one device of one inside and one outside, where the prefixes inside are known: a capture of the link inside then stands
/// for both. A chain without NAT that has addresses becomes a router on that one link. Returns whether it has.
pub(super) fn join_devices(config: &mut Sections) -> bool {
    let [first, second] = &config.devices[..] else { return false };
    let sides = [&first.orientation, &second.orientation];
    if !sides.contains(&&Orientation::Inside) || !sides.contains(&&Orientation::Outside) {
        return false;
    }
    let translated = config.chain.iter().find_map(|function| function.facts().translated);
    let (inside, addresses): (Vec<Prefix>, Vec<LinkAddress>) = match &translated {
        Some(inside) => (inside.iter().copied().chain(local_v6()).collect(), Vec::new()),
        None => {
            let is_inside = |device: &&DeviceConfig| device.orientation == Orientation::Inside;
            let links =
                config.devices.iter().filter(is_inside).flat_map(|device| &device.addresses);
            let inside = links.map(|own| Prefix::containing(own.address, own.length)).collect();
            (inside, config.devices.iter().flat_map(|device| device.addresses.clone()).collect())
        }
    };
    if translated.map_or(inside.is_empty(), |known| known.is_empty()) {
        return false;
    }
    let one = DeviceConfig {
        name: "link".into(),
        kind: DeviceKind::Pcap(PcapConfig::default()),
        orientation: Orientation::ByPrefix(inside.into_iter().collect()),
        hashing: first.hashing,
        mac: first.mac,
        mtu: first.mtu.into_iter().chain(second.mtu).min(),
        addresses,
    };
    match one.addresses.is_empty() {
        true => config.network = NetworkConfig::default(),
        false => config.network.join(DeviceId(0)),
    }
    config.devices = vec![one];
    true
}

/// The IPv6 addresses that are inside anywhere: unique local (RFC 4193) and link-local ones (RFC 4291).
fn local_v6() -> [Prefix; 2] {
    let prefix = |first: u16, length| {
        Prefix::containing(Ipv6Addr::from([first, 0, 0, 0, 0, 0, 0, 0]).into(), length)
    };
    [prefix(0xfc00, 7), prefix(0xfe80, 10)]
}
