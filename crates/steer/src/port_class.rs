//! Which ports lead to which shard.
//!
//! The Toeplitz hash is linear over XOR, so a port contributes a fixed XOR, its *class*, to the number
//! of the shard, whatever else is in the key. A function that translates an endpoint places packets of the
//! translated flow in a shard of its choice by taking a port of the right class.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::ops::Range;

use rheostat_base::ShardId;
use rheostat_packet::{Family, FlowKey};

use crate::steering::Steering;

/// The protocol whose keys carry an identifier in place of both ports.
const ICMP: u8 = 1;

/// The end of a key whose port is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyEnd {
    /// The first: what a translator chooses the port of.
    First,
    /// The second: this machine, where all packets come from peers.
    Second,
}

/// The ports of one end of keys by class.
#[derive(Clone, Debug)]
pub struct PortClasses {
    /// Each class's ports: the even ones, ascending, and then the odd ones, ascending.
    members: Vec<Vec<u16>>,
    /// The place of each port among those of its class.
    rank: Vec<u16>,
}

impl PortClasses {
    /// The classes of ports of the inner end of IPv4 keys for `protocol` under `steering`.
    pub fn new(steering: &Steering, protocol: u8) -> PortClasses {
        PortClasses::of_end(steering, protocol, Family::V4, KeyEnd::First)
    }

    /// The classes of ports of one end of keys of this family.
    pub fn of_end(steering: &Steering, protocol: u8, family: Family, end: KeyEnd) -> PortClasses {
        let mut members = vec![Vec::new(); steering.shards()];
        let mut rank = vec![0; 1 << 16];
        for parity in 0..2 {
            for port in (parity..=u16::MAX).step_by(2) {
                let key = key_of_ports(family, ports_of(end, port, protocol), protocol);
                let class: &mut Vec<u16> = &mut members[unfixed(steering, &key).index()];
                rank[usize::from(port)] = class.len() as u16;
                class.push(port);
            }
        }
        PortClasses { members, rank }
    }

    /// The ports that bring a key to `shard`: whichever of them is the port of its end. `key` has zero there;
    /// for ICMP, in both places. Even ports come first, ascending, then odd ones, ascending, so that the
    /// ports of a range and a parity have consecutive ranks.
    pub fn leading_to(&self, shard: ShardId, key: &FlowKey, steering: &Steering) -> &[u16] {
        &self.members[self.class_leading_to(shard, key, steering)]
    }

    /// Which class [`PortClasses::leading_to`] returns the ports of: its place in [`PortClasses::members`].
    #[inline]
    pub fn class_leading_to(&self, shard: ShardId, key: &FlowKey, steering: &Steering) -> usize {
        shard.index() ^ unfixed(steering, key).index()
    }

    /// The ports of each class, in the order that [`PortClasses::leading_to`] describes.
    #[inline]
    pub fn members(&self) -> &[Vec<u16>] {
        &self.members
    }

    /// The place of a port among those of its class.
    pub fn rank(&self, port: u16) -> usize {
        self.rank[usize::from(port)].into()
    }

    /// The number of ports of the largest class.
    pub fn largest(&self) -> usize {
        self.members.iter().map(Vec::len).max().unwrap_or(0)
    }
}

/// Whether, from 1024 on, every class has its share of ports, and of even and odd ones: under a random hash key, three of four
/// times. Otherwise some shards would run out of ports early, and under one key of a thousand some have none.
pub fn ports_are_even(steering: &Steering, protocol: u8, family: Family, end: KeyEnd) -> bool {
    // Where so many bits add something of their own, each class is that of as many ports as another; those below 1024 are taken
    // away from all alike where the same holds of the bits that they have.
    let of_bits = classes_of_bits(steering, protocol, family, end);
    // A port has 15 bits beside the one that makes it even or odd.
    let bits = steering.shards().ilog2().min(15);
    let rank = |bits: Range<usize>| rank(of_bits[bits].iter().copied());
    rank(1..16) == bits && rank(1..10) == bits.min(9)
}

/// How many of `ports` the class has that has the fewest of them: some shard has no more to choose from.
pub fn fewest_ports(
    steering: &Steering,
    protocol: u8,
    family: Family,
    end: KeyEnd,
    ports: impl Iterator<Item = u16>,
) -> usize {
    let of_bits = classes_of_bits(steering, protocol, family, end);
    let mut counts = vec![0; steering.shards()];
    for port in ports {
        let bits = (0..16).filter(|bit| port >> bit & 1 == 1);
        counts[usize::from(bits.fold(0, |class, bit| class ^ of_bits[bit]))] += 1;
    }
    counts.into_iter().min().unwrap_or(0)
}

/// What each bit of a port adds to its class: the class is their sum, by XOR.
fn classes_of_bits(steering: &Steering, protocol: u8, family: Family, end: KeyEnd) -> [u16; 16] {
    std::array::from_fn(|bit| {
        let key = key_of_ports(family, ports_of(end, 1 << bit, protocol), protocol);
        unfixed(steering, &key).0
    })
}

/// How many of these are no sum, by XOR, of others.
fn rank(words: impl Iterator<Item = u16>) -> u32 {
    let mut basis = [0; 16];
    let mut rank = 0;
    for mut word in words {
        while word != 0 {
            let place = &mut basis[word.ilog2() as usize];
            if *place == 0 {
                *place = word;
                rank += 1;
            }
            word ^= *place;
        }
    }
    rank
}

/// The ports of a key whose `end` has this one.
fn ports_of(end: KeyEnd, port: u16, protocol: u8) -> (u16, u16) {
    match end {
        _ if protocol == ICMP => (port, port),
        KeyEnd::First => (port, 0),
        KeyEnd::Second => (0, port),
    }
}

/// A key that has nothing but ports.
fn key_of_ports(family: Family, (first, second): (u16, u16), protocol: u8) -> FlowKey {
    let (v4, v6) = (Ipv4Addr::UNSPECIFIED, Ipv6Addr::UNSPECIFIED);
    match family {
        Family::V4 => FlowKey::v4((v4, first), (v4, second), protocol, 0),
        Family::V6 => FlowKey::v6((v6, first), (v6, second), protocol, 0),
    }
}

/// The shard of a key as it stands; its first address, if it is translated, is an external one.
fn unfixed(steering: &Steering, key: &FlowKey) -> ShardId {
    steering.shard_of_hash(steering.hash_external(key, steering.kind_of(key)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{HashKey, PacketSet};
    use proptest::prelude::*;

    fn steering(key: [u8; 40], shards: usize, by_endpoint: bool) -> Steering {
        let steering = Steering::new(&HashKey::new(key), 512, shards, vec![]).unwrap();
        let tuple = PacketSet::five_tuple();
        let place = if by_endpoint { PacketSet::inner_endpoint() } else { tuple };
        steering.with_sets(&tuple, &place).unwrap()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn every_port_of_the_right_class_leads_to_the_shard(
            key: [u8; 40],
            shards in prop::sample::select(vec![1_usize, 16, 128, 512]),
            by_endpoint: bool,
            (inner, outer, port) in any::<(u32, u32, u16)>(),
            protocol in prop::sample::select(vec![6_u8, 17, 1]),
            target: u16,
        ) {
            let steering = steering(key, shards, by_endpoint);
            let classes = PortClasses::new(&steering, protocol);
            let target = ShardId(target % shards as u16);
            let with = |inner_port, outer_port| {
                FlowKey::v4((inner.into(), inner_port), (outer.into(), outer_port), protocol, 0)
            };
            let at = |candidate| match protocol {
                1 => with(candidate, candidate),
                _ => with(candidate, port),
            };
            let empty = if protocol == 1 { with(0, 0) } else { with(0, port) };
            let ports = classes.leading_to(target, &empty, &steering);
            let class = classes.class_leading_to(target, &empty, &steering);
            prop_assert_eq!(&classes.members()[class], ports);
            prop_assert!(ports.is_sorted_by_key(|port| (port % 2, *port)));
            for (rank, candidate) in ports.iter().enumerate() {
                prop_assert_eq!(steering.shard_of_key(&at(*candidate)), target);
                prop_assert_eq!(classes.rank(*candidate), rank);
            }
            // And no other does.
            let all = (0..=u16::MAX).filter(|candidate| steering.shard_of_key(&at(*candidate)) == target);
            prop_assert_eq!(all.count(), ports.len());
        }

        #[test]
        fn ports_are_even_if_each_class_has_as_many(
            key: [u8; 40],
            shards in prop::sample::select(vec![1_usize, 16, 128, 256, 512]),
            protocol in prop::sample::select(vec![6_u8, 17, 1]),
            is_v4: bool,
            first: bool,
        ) {
            let steering = steering(key, shards, false);
            let family = if is_v4 { Family::V4 } else { Family::V6 };
            let end = if first { KeyEnd::First } else { KeyEnd::Second };
            let classes = PortClasses::of_end(&steering, protocol, family, end);
            let share = (65_536 - 1_024) / 2 / shards;
            let has_share = |ports: &Vec<u16>| {
                let high = ports.iter().filter(|port| **port >= 1_024);
                let odd = high.clone().filter(|port| **port % 2 == 1).count();
                odd >= share && high.count() - odd >= share
            };
            let even = classes.members().iter().all(has_share);
            prop_assert_eq!(ports_are_even(&steering, protocol, family, end), even);
        }

        #[test]
        fn the_fewest_ports_are_those_of_the_class_that_has_fewest(
            key: [u8; 40],
            shards in prop::sample::select(vec![1_usize, 16, 128, 512]),
            protocol in prop::sample::select(vec![6_u8, 17, 1]),
            (first, length) in (any::<u16>(), 0..2_000_u16),
            is_v4: bool,
        ) {
            let steering = steering(key, shards, false);
            let family = if is_v4 { Family::V4 } else { Family::V6 };
            let ports = first..=first.saturating_add(length);
            let classes = PortClasses::of_end(&steering, protocol, family, KeyEnd::Second);
            let of_class = |class: &Vec<u16>| class.iter().filter(|port| ports.contains(port)).count();
            let fewest = classes.members().iter().map(of_class).min().unwrap();
            let found = fewest_ports(&steering, protocol, family, KeyEnd::Second, ports.clone());
            prop_assert_eq!(found, fewest);
        }

        #[test]
        fn every_port_of_the_other_end_leads_to_the_shard(
            key: [u8; 40],
            shards in prop::sample::select(vec![1_usize, 16, 128, 512]),
            (peer, own, port) in any::<(u128, u128, u16)>(),
            zone in 0..4_096_u32,
            is_v4: bool,
            target: u16,
        ) {
            let steering = steering(key, shards, false);
            let target = ShardId(target % shards as u16);
            let family = if is_v4 { Family::V4 } else { Family::V6 };
            let classes = PortClasses::of_end(&steering, 6, family, KeyEnd::Second);
            let with = |own_port| match is_v4 {
                true => {
                    let (peer, own) = (Ipv4Addr::from(peer as u32), Ipv4Addr::from(own as u32));
                    FlowKey::v4((peer, port), (own, own_port), 6, zone)
                }
                false => FlowKey::v6((peer.into(), port), (own.into(), own_port), 6, zone),
            };
            let ports = classes.leading_to(target, &with(0), &steering);
            for candidate in ports {
                prop_assert_eq!(steering.shard_of_key(&with(*candidate)), target);
            }
            let all = (0..=u16::MAX).filter(|port| steering.shard_of_key(&with(*port)) == target);
            prop_assert_eq!(all.count(), ports.len());
        }
    }
}
