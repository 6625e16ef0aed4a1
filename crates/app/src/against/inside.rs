//! The hosts inside, by which the packets of a capture of both directions have a side.

use std::net::Ipv6Addr;

use rheostat_control::Config;
use rheostat_steer::{Orientation, Prefix, PrefixList, Side};
use thiserror::Error;

/// Nothing states which hosts are inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "the configuration does not state which hosts are inside: add --inside PREFIX, or give a capture for each device with \
     --capture DEVICE=FILE"
)]
pub(crate) struct NoInside;

/// The hosts inside: those that are `given`, or those that the configuration names by its device for both sides, its NAT, or the
/// addresses of its device inside. Empty where each capture belongs to a device.
pub(super) fn prefixes(config: &Config, given: &[Prefix]) -> Result<PrefixList, NoInside> {
    if !given.is_empty() {
        return Ok(given.iter().copied().collect());
    }
    if let [device] = &config.devices[..]
        && let Orientation::ByPrefix(inside) = &device.orientation
    {
        return Ok(inside.clone());
    }
    let translated = config.chain.iter().find_map(|function| function.facts().translated);
    if let Some(translated) = translated.filter(|translated| !translated.is_empty()) {
        return Ok(translated.iter().copied().chain(local_v6()).collect());
    }
    let inside = config.devices.iter().filter(|device| device.orientation == Orientation::Inside);
    let own = inside.flat_map(|device| &device.addresses);
    let links: PrefixList = own.map(|own| Prefix::containing(own.address, own.length)).collect();
    if links.is_empty() { Err(NoInside) } else { Ok(links) }
}

/// IPv6 addresses that are inside anywhere: unique local (RFC 4193) and link-local ones (RFC 4291).
fn local_v6() -> [Prefix; 2] {
    let prefix = |first: u16, length| {
        Prefix::containing(Ipv6Addr::from([first, 0, 0, 0, 0, 0, 0, 0]).into(), length)
    };
    [prefix(0xfc00, 7), prefix(0xfe80, 10)]
}

/// The side of the device with this name; none where it has both, or there is no such device.
pub(super) fn side_of(config: &Config, device: &str) -> Option<Side> {
    let device = config.devices.iter().find(|known| known.name == device)?;
    match device.orientation {
        Orientation::Inside => Some(Side::Inside),
        Orientation::Outside => Some(Side::Outside),
        Orientation::ByPrefix(_) => None,
    }
}
