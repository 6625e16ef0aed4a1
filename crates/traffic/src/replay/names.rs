//! Other addresses for the same hosts.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Bits of an address that may change: what lies above, and with it whether the address is private, local or
/// public, and which network of that size it is in, stays.
const V4_BITS: u32 = 16;
const V6_BITS: u32 = 64;

/// A bijection on addresses. Each number gives another one; number 0 changes nothing.
///
/// The low bits of an address (16 of IPv4, 64 of IPv6) are scattered over all values in a way that depends on
/// the bits above and the seed, the number is added, and the scattering undone. So a host has a different
/// name under each of 65,536 numbers, and a flow never meets itself again under another number before. Two
/// different flows can meet by chance, if they have the same ports and their ends are in the same /16: of two
/// such flows, over all numbers, with a probability of about one in 65,536. Names of neighbouring numbers
/// have nothing in common: were it otherwise (had numbers been mixed in by exclusive or, say), the Toeplitz
/// hash would put flows that share a bucket in one loop into one bucket in every loop.
///
/// Addresses that are no single host's stay: of IPv4 0.0.0.0/8 and from 224.0.0.0 on (multicast, broadcast),
/// of IPv6 ::/64 (unspecified, loopback) and ff00::/8.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Names {
    seed: u64,
    number: u64,
}

impl Names {
    /// The names of this number.
    pub fn new(seed: u64, number: u64) -> Names {
        Names { seed, number }
    }

    /// What the host with this address is called.
    pub fn of(&self, address: IpAddr) -> IpAddr {
        match address {
            IpAddr::V4(v4) => self.of_v4(v4).into(),
            IpAddr::V6(v6) => self.of_v6(v6).into(),
        }
    }

    fn of_v4(&self, address: Ipv4Addr) -> Ipv4Addr {
        if address.octets()[0] == 0 || address.octets()[0] >= 224 {
            return address;
        }
        let (network, host) = (address.to_bits() >> V4_BITS, address.to_bits() & 0xffff);
        let host = self.advance::<V4_BITS>(network.into(), host.into()) as u32;
        Ipv4Addr::from_bits(network << V4_BITS | host)
    }

    fn of_v6(&self, address: Ipv6Addr) -> Ipv6Addr {
        let (network, host) = ((address.to_bits() >> V6_BITS) as u64, address.to_bits() as u64);
        if network == 0 || address.is_multicast() {
            return address;
        }
        let host = self.advance::<V6_BITS>(network, host);
        Ipv6Addr::from_bits(u128::from(network) << V6_BITS | u128::from(host))
    }

    fn advance<const BITS: u32>(&self, network: u64, host: u64) -> u64 {
        let key = scatter::<64>(network ^ self.seed.wrapping_mul(ODD), self.seed);
        gather::<BITS>(scatter::<BITS>(host, key).wrapping_add(self.number), key)
    }
}

/// 2^64 divided by the golden ratio, as in Fibonacci hashing; and the odd number by which it makes 1.
const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
const INVERSE: u64 = {
    // Each step doubles the number of right bits (Newton); an odd number is its own inverse in three.
    let mut inverse = ODD;
    let mut step = 0;
    while step < 5 {
        inverse = inverse.wrapping_mul(2_u64.wrapping_sub(ODD.wrapping_mul(inverse)));
        step += 1;
    }
    inverse
};

const fn low(bits: u32) -> u64 {
    u64::MAX >> (64 - bits)
}

/// A permutation of the numbers of `BITS` bits: multiplying by an odd number carries upwards, folding the upper
/// half in carries back down.
fn scatter<const BITS: u32>(value: u64, key: u64) -> u64 {
    let mut value = (value ^ key) & low(BITS);
    for round in 1..=3 {
        value = value.wrapping_mul(ODD).wrapping_add(key >> (8 * round)) & low(BITS);
        value ^= value >> (BITS / 2);
    }
    value
}

/// Undoes [`scatter`].
fn gather<const BITS: u32>(value: u64, key: u64) -> u64 {
    let mut value = value & low(BITS);
    for round in (1..=3).rev() {
        value ^= value >> (BITS / 2);
        value = value.wrapping_sub(key >> (8 * round)).wrapping_mul(INVERSE) & low(BITS);
    }
    (value ^ key) & low(BITS)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn each_number_renames_every_host_of_a_network_once() {
        for network in [0x0a00_0000_u32, 0xc0a8_0000, 0x0808_0000] {
            let names = Names::new(7, 3);
            let hosts = (0..=0xffff).map(|host| names.of_v4(Ipv4Addr::from_bits(network | host)));
            assert_eq!(hosts.collect::<HashSet<_>>().len(), 65_536);
        }
    }

    #[test]
    fn a_host_has_another_name_under_each_number() {
        let host = Ipv4Addr::new(192, 168, 1, 20);
        let names: HashSet<_> = (0..65_536).map(|n| Names::new(7, n).of_v4(host)).collect();
        assert_eq!(names.len(), 65_536);
    }

    /// Neighbouring hosts do not stay neighbours by the same distance, as they would if something were only
    /// added or mixed in.
    #[test]
    fn hosts_move_apart() {
        let names = Names::new(7, 1);
        let of = |host: u32| names.of_v4(Ipv4Addr::from_bits(0x0a00_0000 | host)).to_bits();
        let xor: HashSet<_> = (0..1_000).map(|host| of(host) ^ of(host + 1)).collect();
        assert!(xor.len() > 300, "{} differences among 1,000", xor.len());
    }

    #[test]
    fn addresses_of_many_and_of_none_stay() {
        let names = Names::new(1, 1);
        for address in ["0.0.0.0", "224.0.0.251", "255.255.255.255", "::", "::1", "ff02::1"] {
            let address: IpAddr = address.parse().unwrap();
            assert_eq!(names.of(address), address);
        }
    }

    proptest! {
        #[test]
        fn the_network_stays_and_the_way_back_is_known(
            seed: u64, number: u64, v4: u32, v6: u128,
        ) {
            let (there, back) = (Names::new(seed, number), Names::new(seed, number.wrapping_neg()));
            let v4 = Ipv4Addr::from_bits(v4);
            prop_assert_eq!(back.of_v4(there.of_v4(v4)), v4);
            prop_assert_eq!(there.of_v4(v4).to_bits() >> 16, v4.to_bits() >> 16);
            let v6 = Ipv6Addr::from_bits(v6);
            prop_assert_eq!(back.of_v6(there.of_v6(v6)), v6);
            prop_assert_eq!(there.of_v6(v6).to_bits() >> 64, v6.to_bits() >> 64);
            prop_assert_eq!(Names::new(seed, 0).of(v4.into()), IpAddr::from(v4));
        }
    }
}
