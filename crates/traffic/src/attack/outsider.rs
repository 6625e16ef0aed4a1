//! Addresses of hosts elsewhere on the internet.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use rand::Rng;

/// Any public address: of IPv4 none that is private, shared, local, reserved or of the networks for
/// documentation and benchmarks (RFC 6890); of IPv6 one of 2000::/3.
pub(crate) fn draw(ipv6: bool, rng: &mut impl Rng) -> IpAddr {
    if ipv6 {
        return Ipv6Addr::from_bits(rng.random::<u128>() >> 3 | 1 << 125).into();
    }
    loop {
        let address = Ipv4Addr::from_bits(rng.random());
        if is_public(address) {
            return address.into();
        }
    }
}

fn is_public(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let shared = a == 100 && b & 0xc0 == 64;
    let special = matches!((a, b, c), (192, 0, 0) | (192, 88, 99) | (198, 18 | 19, _));
    let usable = a != 0 && a < 224 && !address.is_loopback() && !address.is_link_local();
    usable && !address.is_private() && !address.is_documentation() && !shared && !special
}

/// The scanner: an address for documentation (RFC 5737, RFC 3849).
pub(super) fn scanner(ipv6: bool) -> IpAddr {
    match ipv6 {
        true => Ipv6Addr::new(0x2001, 0xdb8, 0xbad, 0, 0, 0, 0, 7).into(),
        false => Ipv4Addr::new(203, 0, 113, 7).into(),
    }
}
