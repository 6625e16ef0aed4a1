//! Which external address, and which of its ports, a host may have.

use std::net::{IpAddr, Ipv4Addr};
use std::ops::RangeInclusive;

use rheostat_steer::PrefixList;
use thiserror::Error;

use super::config::{NatConfig, Pooling};

/// What one host may have of one external address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The address, by its place in the pool.
    pub address: u16,
    /// Its ports.
    pub ports: RangeInclusive<u16>,
}

/// The external addresses.
#[derive(Clone, Debug)]
pub struct Pool {
    external: Vec<Ipv4Addr>,
    /// The same, ascending, each with its place; of an address that is named twice, the first place.
    places: Vec<(Ipv4Addr, u16)>,
    ports: RangeInclusive<u16>,
    pooling: Pooling,
    blocks: Option<Blocks>,
}

/// Why a pool cannot be divided among hosts.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum BlockError {
    /// No host is named, or one without an IPv4 address.
    #[error("port blocks need the IPv4 prefixes of the hosts inside")]
    NoHosts,
    /// There are more hosts than ports.
    #[error("{hosts} hosts cannot share the {ports} ports of {addresses} addresses")]
    TooFewPorts {
        /// Hosts inside.
        hosts: u64,
        /// Ports in all.
        ports: u64,
        /// External addresses.
        addresses: usize,
    },
}

impl Pool {
    /// The pool of a NAT.
    ///
    /// # Errors
    /// [`BlockError`] when it is to be divided among hosts and cannot be.
    pub fn new(config: &NatConfig) -> Result<Pool, BlockError> {
        let blocks = match config.deterministic {
            true => Some(Blocks::new(&config.inside, config.external.len(), &config.ports)?),
            false => None,
        };
        let places = config.external.iter().enumerate();
        let mut places: Vec<_> = places.map(|(place, address)| (*address, place as u16)).collect();
        places.sort_unstable();
        places.dedup_by_key(|(address, _)| *address);
        Ok(Pool {
            external: config.external.clone(),
            places,
            ports: config.ports.clone(),
            pooling: config.pooling,
            blocks,
        })
    }

    /// The address at a place.
    #[inline]
    pub fn address(&self, place: u16) -> Ipv4Addr {
        self.external[usize::from(place)]
    }

    /// The place of an address, if it is in the pool. The time grows with the logarithm of the number of addresses.
    pub fn place(&self, address: Ipv4Addr) -> Option<u16> {
        let known = self.places.binary_search_by_key(&address, |(known, _)| *known).ok()?;
        Some(self.places[known].1)
    }

    /// How many addresses there are.
    pub fn len(&self) -> usize {
        self.external.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.external.is_empty()
    }

    /// Whether every host has a block of its own.
    pub fn has_blocks(&self) -> bool {
        self.blocks.is_some()
    }

    /// What `host` may have, in the order in which it is to be tried.
    pub fn parts_of(&self, host: Ipv4Addr) -> impl Iterator<Item = Part> {
        let count = self.external.len();
        let block = self.blocks.as_ref().map(|blocks| blocks.of(host));
        let others = if self.pooling == Pooling::Arbitrary { count } else { 1 };
        let start = spread(host) as usize % count.max(1);
        let part = move |step: usize| {
            let address = ((start + step) % count) as u16;
            Part { address, ports: self.ports.clone() }
        };
        let shared = if block.is_none() { others.min(count) } else { 0 };
        block.flatten().into_iter().chain((0..shared).map(part))
    }

    /// The host that has this external endpoint, where that follows from the configuration alone.
    pub fn host_of(&self, address: Ipv4Addr, port: u16) -> Option<Ipv4Addr> {
        let place = self.place(address)?;
        self.blocks.as_ref()?.host_of(place, port)
    }
}

/// Neighbouring hosts get different addresses (the finaliser of MurmurHash3). Not keyed: which address a
/// host has is no secret.
fn spread(host: Ipv4Addr) -> u32 {
    let mut bits = host.to_bits();
    bits = (bits ^ bits >> 16).wrapping_mul(0x85eb_ca6b);
    bits = (bits ^ bits >> 13).wrapping_mul(0xc2b2_ae35);
    bits ^ bits >> 16
}

/// The division of a pool into blocks of ports, one for each host inside, in the order of the hosts'
/// addresses (RFC 7422). It can be undone without a log.
#[derive(Clone, Debug)]
struct Blocks {
    /// First address of each prefix, and how many it has.
    prefixes: Vec<(u32, u64)>,
    hosts: u64,
    per_address: u64,
    size: u64,
    first_port: u16,
}

impl Blocks {
    fn new(
        inside: &PrefixList,
        addresses: usize,
        ports: &RangeInclusive<u16>,
    ) -> Result<Blocks, BlockError> {
        let mut prefixes = Vec::new();
        for prefix in inside.iter() {
            let IpAddr::V4(first) = prefix.address() else { return Err(BlockError::NoHosts) };
            prefixes.push((first.to_bits(), 1 << (32 - u32::from(prefix.length()))));
        }
        let hosts: u64 = prefixes.iter().map(|(_, count)| count).sum();
        if hosts == 0 {
            return Err(BlockError::NoHosts);
        }
        let each = u64::from(*ports.end()) + 1 - u64::from(*ports.start());
        let per_address = hosts.div_ceil((addresses as u64).max(1));
        let size = each / per_address;
        if size == 0 {
            let ports = each * addresses as u64;
            return Err(BlockError::TooFewPorts { hosts, ports, addresses });
        }
        Ok(Blocks { prefixes, hosts, per_address, size, first_port: *ports.start() })
    }

    fn of(&self, host: Ipv4Addr) -> Option<Part> {
        let mut before = 0;
        let bits = host.to_bits();
        for &(first, count) in &self.prefixes {
            let within = u64::from(bits.wrapping_sub(first));
            if bits >= first && within < count {
                let number = before + within;
                let start = u64::from(self.first_port) + number % self.per_address * self.size;
                let ports = start as u16..=(start + self.size - 1) as u16;
                return Some(Part { address: (number / self.per_address) as u16, ports });
            }
            before += count;
        }
        None
    }

    fn host_of(&self, address: u16, port: u16) -> Option<Ipv4Addr> {
        let block = u64::from(port.checked_sub(self.first_port)?) / self.size;
        let number = u64::from(address) * self.per_address + block;
        if block >= self.per_address || number >= self.hosts {
            return None;
        }
        let mut before = 0;
        for &(first, count) in &self.prefixes {
            if number < before + count {
                return Some(Ipv4Addr::from_bits(first + (number - before) as u32));
            }
            before += count;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    fn config(addresses: u8) -> NatConfig {
        NatConfig::new((1..=addresses).map(|last| Ipv4Addr::new(203, 0, 113, last)).collect())
    }

    #[test]
    fn a_host_keeps_its_address_and_hosts_spread_over_all() {
        let pool = Pool::new(&config(4)).unwrap();
        let mut counts = HashMap::new();
        for host in 0..4_000_u32 {
            let host = Ipv4Addr::from_bits(0x0a00_0000 + host);
            let parts: Vec<_> = pool.parts_of(host).collect();
            assert_eq!(parts, pool.parts_of(host).collect::<Vec<_>>());
            assert_eq!(parts.len(), 1);
            *counts.entry(parts[0].address).or_insert(0) += 1;
        }
        assert!(counts.values().all(|count| (850..1_150).contains(count)), "{counts:?}");
        let arbitrary = NatConfig { pooling: Pooling::Arbitrary, ..config(4) };
        let pool = Pool::new(&arbitrary).unwrap();
        let mut places: Vec<_> =
            pool.parts_of(Ipv4Addr::new(10, 0, 0, 9)).map(|part| part.address).collect();
        places.sort_unstable();
        assert_eq!(places, [0, 1, 2, 3]);
    }

    #[test]
    fn every_host_has_a_block_of_its_own_that_names_it() {
        let inside = ["10.0.0.0/26", "10.0.9.0/28"].map(|prefix| prefix.parse().unwrap());
        let inside = inside.into_iter().collect();
        let pool = NatConfig { inside, deterministic: true, ..config(3) };
        let pool = Pool::new(&pool).unwrap();
        let mut owners = HashMap::new();
        let hosts = (0..64).map(|n| [0, n]).chain((0..16).map(|n| [9, n]));
        for [third, last] in hosts {
            let host = Ipv4Addr::new(10, 0, third, last);
            let part = pool.parts_of(host).next().unwrap();
            // 80 hosts on 3 addresses: 27 on each, with 2,389 of 64,512 ports.
            assert_eq!(part.ports.clone().count(), 2_389);
            for port in part.ports {
                assert!(owners.insert((part.address, port), host).is_none(), "shared");
                assert_eq!(pool.host_of(pool.address(part.address), port), Some(host));
            }
        }
        assert_eq!(pool.parts_of(Ipv4Addr::new(10, 0, 1, 0)).next(), None);
        assert_eq!(pool.host_of(Ipv4Addr::new(203, 0, 113, 1), 1_023), None);
        assert_eq!(pool.host_of(Ipv4Addr::new(203, 0, 113, 1), 65_535), None);
        assert_eq!(pool.host_of(Ipv4Addr::new(203, 0, 113, 9), 2_000), None);
    }

    #[test]
    fn pools_that_cannot_be_divided_are_refused() {
        let with = |prefix: &str| {
            let inside = [prefix.parse().unwrap()].into_iter().collect();
            Pool::new(&NatConfig { inside, deterministic: true, ..config(1) }).unwrap_err()
        };
        assert!(matches!(with("10.0.0.0/8"), BlockError::TooFewPorts { hosts: 16_777_216, .. }));
        assert_eq!(with("fd00::/8"), BlockError::NoHosts);
    }
}
