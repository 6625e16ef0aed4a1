//! From a packet to the shard it belongs to.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use rheostat_base::{DeviceId, ShardId};
use rheostat_packet::{Family, FlowKey, HashKind, Headers, KeyMask, KeyParts, Meta, Tuple, tuple};
use thiserror::Error;

use crate::orientation::{Orientation, Oriented, Side};
use crate::packet_set::{PacketSet, Whose};
use crate::prefix::PrefixList;
use crate::toeplitz::{HashKey, INPUT_BYTES, Toeplitz};
use crate::translation::Translation;

/// Everything that decides where a packet belongs, the same for all lanes and devices of a run.
#[derive(Clone, Debug)]
pub struct Steering {
    toeplitz: Toeplitz,
    buckets: usize,
    shards: usize,
    orientations: Vec<Orientation>,
    /// What placing takes from keys without ports, and from keys with.
    place: [KeyMask; 2],
    reduction: Option<Reduction>,
    translation: Option<Translation>,
    /// Whether some endpoints have a fixed translation.
    has_fixed: bool,
    /// The translation's external addresses; none without.
    external: PrefixList,
}

/// Makes a key of a single address.
#[derive(Clone, Copy, Debug)]
struct Reduction {
    whose: Whose,
    mask: KeyMask,
}

/// Why packets cannot be steered so.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SteeringError {
    /// The indirection table has a size that a hash cannot index.
    #[error("an indirection table of {0} entries is not a power of two between 1 and 65536")]
    Buckets(usize),
    /// The shards do not divide the table.
    #[error(
        "{shards} shards are not a power of two of at most {buckets}, the entries of the table"
    )]
    Shards {
        /// The shards asked for.
        shards: usize,
        /// The entries of the table.
        buckets: usize,
    },
    /// There is no field by which packets could be placed.
    #[error("the functions of the chain have no field in common by which packets could be placed")]
    NothingInCommon,
}

/// Whether packets of a protocol carry ports, or an identifier that serves as one, in their key.
#[inline]
pub const fn has_ports(protocol: u8, family: Family) -> bool {
    match protocol {
        // TCP, UDP, DCCP, SCTP, UDP-Lite.
        6 | 17 | 33 | 132 | 136 => true,
        1 => matches!(family, Family::V4),
        58 => matches!(family, Family::V6),
        _ => false,
    }
}

impl Steering {
    /// Steers over `buckets` table entries into `shards` shards. `orientations` has one entry per
    /// device.
    ///
    /// # Errors
    /// [`SteeringError`] when the sizes are not powers of two or do not fit each other.
    pub fn new(
        key: &HashKey,
        buckets: usize,
        shards: usize,
        orientations: Vec<Orientation>,
    ) -> Result<Steering, SteeringError> {
        if !buckets.is_power_of_two() || buckets > 65_536 {
            return Err(SteeringError::Buckets(buckets));
        }
        if !shards.is_power_of_two() || shards > buckets {
            return Err(SteeringError::Shards { shards, buckets });
        }
        Ok(Steering {
            toeplitz: Toeplitz::new(key),
            buckets,
            shards,
            orientations,
            place: masks(&PacketSet::five_tuple(), None),
            reduction: None,
            translation: None,
            has_fixed: false,
            external: PrefixList::default(),
        })
    }

    /// Names flows by `flow` and places their packets by `place`. Without this, both are addresses,
    /// ports and protocol.
    ///
    /// # Errors
    /// [`SteeringError::NothingInCommon`] when `place` is empty.
    pub fn with_sets(
        mut self,
        flow: &PacketSet,
        place: &PacketSet,
    ) -> Result<Steering, SteeringError> {
        if place.is_empty() {
            return Err(SteeringError::NothingInCommon);
        }
        let single = flow.single_address();
        self.place = masks(place, single);
        self.reduction = single.map(|(whose, prefix)| {
            let parts = KeyParts { first: prefix, zone: true, ..KeyParts::default() };
            Reduction { whose, mask: KeyMask::new(&parts) }
        });
        Ok(self)
    }

    /// Reckons with translated addresses: protocols whose ports cannot be chosen are placed by their
    /// outer address alone, and endpoints with a fixed translation by what they are translated to.
    #[must_use]
    pub fn with_translation(mut self, translation: Translation) -> Steering {
        let outer = KeyParts { second: [32, 128], ..KeyParts::default() };
        self.place[0] = KeyMask::new(&outer);
        self.external = translation.external.clone();
        self.has_fixed = translation.has_fixed();
        self.translation = Some(translation);
        self
    }

    /// The translation that was given.
    pub fn translation(&self) -> Option<&Translation> {
        self.translation.as_ref()
    }

    /// Entries of the indirection table.
    pub fn buckets(&self) -> usize {
        self.buckets
    }

    /// How many shards there are.
    pub fn shards(&self) -> usize {
        self.shards
    }

    /// The hash.
    pub fn toeplitz(&self) -> &Toeplitz {
        &self.toeplitz
    }

    /// How keys of packets that arrive on `device` are turned.
    pub fn orientation(&self, device: DeviceId) -> &Orientation {
        &self.orientations[device.index()]
    }

    /// The addresses that stand for inside ones.
    pub fn external(&self) -> &PrefixList {
        &self.external
    }

    /// Whose address alone names flows, where one does.
    pub fn single_address(&self) -> Option<Whose> {
        self.reduction.map(|reduction| reduction.whose)
    }

    /// Whether the hash of a flow of this protocol never covers its ports, although it has some: a
    /// translator could not choose them, because they are kept by a checksum.
    pub fn keeps_ports(&self, protocol: u8) -> bool {
        matches!(protocol, 33 | 132) && self.translation.is_some()
    }

    /// Which bits of the hash's input count in packets of this family that are hashed over `kind`. The
    /// input is the key's first address, second address, first port and second port, in network order.
    pub fn input_mask(&self, family: Family, kind: HashKind) -> [u8; INPUT_BYTES] {
        let ones = match family {
            Family::V4 => {
                let end = (Ipv4Addr::BROADCAST, u16::MAX);
                FlowKey::v4(end, end, u8::MAX, u32::MAX)
            }
            Family::V6 => {
                let end = (Ipv6Addr::from_bits(u128::MAX), u16::MAX);
                FlowKey::v6(end, end, u8::MAX, u32::MAX)
            }
        };
        let key = self.reduction.map_or(ones, |reduction| ones.masked(&reduction.mask));
        let key = key.masked(&self.place[usize::from(kind == HashKind::Ports)]);
        let mut mask = [0; INPUT_BYTES];
        let mut at = 0;
        let mut put = |bytes: &[u8]| {
            mask[at..at + bytes.len()].copy_from_slice(bytes);
            at += bytes.len();
        };
        for address in [key.first(), key.second()] {
            match address {
                IpAddr::V4(address) => put(&address.octets()),
                IpAddr::V6(address) => put(&address.octets()),
            }
        }
        put(&key.first_port().to_be_bytes());
        put(&key.second_port().to_be_bytes());
        mask
    }

    /// What a packet's headers say about its flow. Where a single address names flows, every packet of
    /// IP has the key of its own addresses.
    pub fn tuple(&self, data: &[u8], headers: &Headers) -> Tuple {
        match self.reduction {
            None => Tuple::of_bytes(data, headers),
            Some(_) => tuple::addresses(data, headers).map_or(Tuple::None, Tuple::Flow),
        }
    }

    /// Turns a key whose first endpoint is the source of a packet that arrived on `device`.
    #[inline(always)]
    pub fn orient(&self, device: DeviceId, key: FlowKey) -> Oriented {
        // Not one result passed through both ways: it would have to lie in memory.
        if self.reduction.is_some() {
            return self.orient_reduced(device, key);
        }
        self.orientations[device.index()].orient(key, &self.external)
    }

    #[inline(never)]
    fn orient_reduced(&self, device: DeviceId, key: FlowKey) -> Oriented {
        let oriented = self.orientations[device.index()].orient(key, &self.external);
        match &self.reduction {
            None => oriented,
            Some(reduction) => reduction.apply(oriented),
        }
    }

    /// The side of a packet without addresses that arrived on `device`.
    pub fn side_of_device(&self, device: DeviceId) -> Side {
        self.orientations[device.index()].default_side()
    }

    /// The table entry that a hash names.
    #[inline]
    pub fn bucket_of_hash(&self, hash: u32) -> usize {
        hash as usize & (self.buckets - 1)
    }

    /// The shard that a hash names: bucket mod shards.
    #[inline]
    pub fn shard_of_hash(&self, hash: u32) -> ShardId {
        ShardId((hash as usize & (self.shards - 1)) as u16)
    }

    /// The hash of an oriented key over those of its fields that packets are placed by. `kind` says
    /// which could be seen.
    #[inline]
    pub fn hash(&self, key: &FlowKey, kind: HashKind) -> u32 {
        let mask = &self.place[usize::from(kind == HashKind::Ports)];
        self.toeplitz.hash_key(&key.masked(mask), kind)
    }

    /// What the hash of a key must cover.
    #[inline]
    pub fn kind_of(&self, key: &FlowKey) -> HashKind {
        let protocol = key.protocol();
        if has_ports(protocol, key.family()) && !self.keeps_ports(protocol) {
            HashKind::Ports
        } else {
            HashKind::Addresses
        }
    }

    /// The shard of an oriented key.
    #[inline]
    pub fn shard_of_key(&self, key: &FlowKey) -> ShardId {
        self.shard_of_hash(self.hash_of_key(key))
    }

    /// The table entry of an oriented key.
    pub fn bucket_of_key(&self, key: &FlowKey) -> usize {
        self.bucket_of_hash(self.hash_of_key(key))
    }

    #[inline]
    fn hash_of_key(&self, key: &FlowKey) -> u32 {
        match self.translated(key) {
            None => self.hash(key, self.kind_of(key)),
            Some(key) => self.hash(&key, self.kind_of(&key)),
        }
    }

    /// The shard of a packet with an oriented key: by the device's hash where it covers the fields of
    /// the key, computed here where the device could not see them.
    #[inline(always)]
    pub fn place(&self, meta: &Meta, key: &FlowKey) -> ShardId {
        if meta.hash_kind() == self.kind_of(key) && !self.has_fixed {
            self.shard_of_hash(meta.hash)
        } else {
            self.shard_of_key(key)
        }
    }

    /// Whether a packet reaches its flow by way of another lane than other packets of the flow do: only
    /// the lane that receives it finds out where it belongs.
    pub fn takes_detour(&self, meta: &Meta, data: &[u8], headers: &Headers) -> bool {
        let key = match self.tuple(data, headers) {
            Tuple::Fragment(..) | Tuple::IcmpError(_) => return true,
            Tuple::None => return false,
            Tuple::Flow(key) => key,
        };
        // Without translation, both directions of a flow take the same way.
        if self.translation.is_none() {
            return false;
        }
        let Oriented { key, side, .. } = self.orient(meta.device, key);
        let returns = side == Side::Inside && self.external.contains(key.second());
        returns || meta.hash_kind() != self.kind_of(&key) || self.translated(&key).is_some()
    }

    #[inline]
    fn translated(&self, key: &FlowKey) -> Option<FlowKey> {
        self.translation.as_ref().filter(|_| self.has_fixed)?.apply(key)
    }

    /// The shard where the fragments of a datagram meet, given its oriented addresses and protocol.
    pub fn home_of_fragment(&self, key: &FlowKey) -> ShardId {
        let addresses = self.toeplitz.hash_key(key, HashKind::Addresses);
        // Odd multipliers spread the protocols; the result need not match what any device computes.
        self.shard_of_hash(addresses ^ u32::from(key.protocol()).wrapping_mul(0x9e37_79b1) >> 16)
    }
}

impl Reduction {
    fn apply(&self, oriented: Oriented) -> Oriented {
        let Oriented { key, side, forward } = oriented;
        let turned = match self.whose {
            Whose::Inner => false,
            Whose::Outer => true,
            Whose::Source => !forward,
            Whose::Destination => forward,
        };
        let key = if turned { key.reversed() } else { key };
        Oriented { key: key.masked(&self.mask), side, forward }
    }
}

/// What placing takes from keys without ports, and from keys with. A key of a single address has that
/// first.
fn masks(place: &PacketSet, single: Option<(Whose, [u8; 2])>) -> [KeyMask; 2] {
    [false, true].map(|ported| {
        let parts = match single {
            Some((_, prefix)) => KeyParts { first: prefix, ..KeyParts::default() },
            None => place.parts(ported),
        };
        KeyMask::new(&parts)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{HashOptions, Prefix, PrefixList, hash_packet};
    use proptest::prelude::*;

    fn steering() -> Steering {
        let inside: PrefixList =
            ["10.0.0.0/8".parse().unwrap(), "fd00::/8".parse().unwrap()].into_iter().collect();
        let orientations =
            vec![Orientation::Inside, Orientation::Outside, Orientation::ByPrefix(inside)];
        Steering::new(&HashKey::MICROSOFT, 512, 128, orientations).unwrap()
    }

    #[test]
    fn sizes_that_do_not_fit_are_refused() {
        let new =
            |buckets, shards| Steering::new(&HashKey::MICROSOFT, buckets, shards, vec![]).err();
        assert_eq!(new(100, 4), Some(SteeringError::Buckets(100)));
        assert_eq!(new(128, 256), Some(SteeringError::Shards { shards: 256, buckets: 128 }));
        assert_eq!(new(128, 3), Some(SteeringError::Shards { shards: 3, buckets: 128 }));
        assert_eq!(new(128, 128), None);
    }

    fn any_key() -> impl Strategy<Value = FlowKey> {
        let v4 = (any::<u32>(), any::<u32>(), any::<u16>(), any::<u16>(), any::<u8>()).prop_map(
            |(a, b, pa, pb, protocol)| {
                FlowKey::v4((Ipv4Addr::from_bits(a), pa), (Ipv4Addr::from_bits(b), pb), protocol, 7)
            },
        );
        let v6 = (any::<u128>(), any::<u128>(), any::<u16>(), any::<u16>(), any::<u8>()).prop_map(
            |(a, b, pa, pb, protocol)| {
                FlowKey::v6((Ipv6Addr::from_bits(a), pa), (Ipv6Addr::from_bits(b), pb), protocol, 7)
            },
        );
        prop_oneof![v4, v6]
    }

    proptest! {
        #[test]
        fn both_directions_meet(key in any_key()) {
            let steering = steering();
            let (lan, wan, both) = (DeviceId(0), DeviceId(1), DeviceId(2));
            let there = steering.orient(lan, key);
            let back = steering.orient(wan, key.reversed());
            prop_assert_eq!(there.key, back.key);
            prop_assert!(there.forward && !back.forward);
            let there = steering.orient(both, key);
            let back = steering.orient(both, key.reversed());
            prop_assert_eq!(there.key, back.key);
            if key.first() != key.second() || key.first_port() != key.second_port() {
                prop_assert_ne!(there.forward, back.forward);
            }
        }

        #[test]
        fn the_device_and_software_agree(key in any_key()) {
            let inner = PacketSet::inner_endpoint();
            let by_endpoint = steering().with_sets(&PacketSet::five_tuple(), &inner).unwrap();
            let mut fixed = Translation::default();
            let (inside, outside) = (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(192, 0, 2, 1));
            fixed.fix(17, (inside, 80), (outside, 8_080));
            let translating = by_endpoint.clone().with_translation(fixed);
            for steering in [steering(), by_endpoint, translating] {
                for kind in [HashKind::Ports, HashKind::Addresses, HashKind::None] {
                    let mut meta = Meta::default();
                    meta.set_hash(steering.hash(&key, kind), kind);
                    prop_assert_eq!(steering.place(&meta, &key), steering.shard_of_key(&key));
                }
            }
        }

        #[test]
        fn what_the_input_mask_leaves_out_does_not_count(key in any_key()) {
            let mut input = [0; 36];
            let at = match (key.first(), key.second()) {
                (IpAddr::V4(a), IpAddr::V4(b)) => {
                    input[..4].copy_from_slice(&a.octets());
                    input[4..8].copy_from_slice(&b.octets());
                    8
                }
                (IpAddr::V6(a), IpAddr::V6(b)) => {
                    input[..16].copy_from_slice(&a.octets());
                    input[16..32].copy_from_slice(&b.octets());
                    32
                }
                _ => unreachable!("of one family"),
            };
            input[at..at + 2].copy_from_slice(&key.first_port().to_be_bytes());
            input[at + 2..at + 4].copy_from_slice(&key.second_port().to_be_bytes());
            let inner = PacketSet::inner_endpoint();
            let by_endpoint = steering().with_sets(&PacketSet::five_tuple(), &inner).unwrap();
            for steering in [steering(), by_endpoint.clone(),
                by_endpoint.with_translation(Translation::default())] {
                for kind in [HashKind::Addresses, HashKind::Ports] {
                    let mask = steering.input_mask(key.family(), kind);
                    let read = at + if kind == HashKind::Ports { 4 } else { 0 };
                    let seen: Vec<u8> = (0..read).map(|i| input[i] & mask[i]).collect();
                    let hash = steering.toeplitz().hash_bytes(&seen);
                    prop_assert_eq!(hash, steering.hash(&key, kind));
                }
            }
        }

        #[test]
        fn an_endpoint_decides_alone(key in any_key(), other in any_key()) {
            let tuple = PacketSet::five_tuple();
            let inner = steering().with_sets(&tuple, &PacketSet::inner_endpoint()).unwrap();
            let outer = steering().with_sets(&tuple, &PacketSet::outer_endpoint()).unwrap();
            prop_assume!(key.family() == other.family());
            let ported = steering().kind_of(&key);
            let with_end_of = |turned: bool| {
                let (a, b) = if turned { (other, key) } else { (key, other) };
                match (a.first(), b.second()) {
                    (IpAddr::V4(x), IpAddr::V4(y)) => FlowKey::v4(
                        (x, a.first_port()), (y, b.second_port()), key.protocol(), 7),
                    (IpAddr::V6(x), IpAddr::V6(y)) => FlowKey::v6(
                        (x, a.first_port()), (y, b.second_port()), key.protocol(), 7),
                    _ => unreachable!("of one family"),
                }
            };
            prop_assert_eq!(inner.hash(&key, ported), inner.hash(&with_end_of(false), ported));
            prop_assert_eq!(outer.hash(&key, ported), outer.hash(&with_end_of(true), ported));
        }

        #[test]
        fn an_address_names_flows_alone(key in any_key()) {
            let (lan, wan) = (DeviceId(0), DeviceId(1));
            for whose in [Whose::Inner, Whose::Outer, Whose::Source, Whose::Destination] {
                let set = PacketSet::address(whose, 24, 64);
                let steering = steering().with_sets(&set, &set).unwrap();
                let there = steering.orient(lan, key);
                let back = steering.orient(wan, key.reversed());
                let meets = set.directions_meet();
                prop_assert!(!meets || there.key == back.key);
                let address = match whose {
                    Whose::Inner | Whose::Source => key.first(),
                    Whose::Outer | Whose::Destination => key.second(),
                };
                let bits = if address.is_ipv4() { 24 } else { 64 };
                prop_assert_eq!(there.key.first(), Prefix::containing(address, bits).address());
                prop_assert_eq!((there.key.protocol(), there.key.zone()), (0, 7));
                let tuple = Tuple::Flow(key);
                let (hash, kind) = hash_packet(&steering, HashOptions::Full, lan, &tuple, None);
                prop_assert_eq!(kind, steering.kind_of(&there.key));
                prop_assert_eq!(steering.shard_of_key(&there.key), steering.shard_of_hash(hash));
            }
        }
    }

    /// 64 k random flows over 128 shards: chi-square with 127 degrees of freedom stays below its
    /// 99.9 % quantile, 181.
    #[test]
    fn flows_spread_evenly() {
        let steering = steering();
        let mut counts = [0_f64; 128];
        let mut state = 1_u64;
        for _ in 0..65_536 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let mixed = state ^ state >> 29;
            let a = (Ipv4Addr::from_bits((mixed >> 8) as u32), (mixed >> 40) as u16);
            let key = FlowKey::v4(a, (Ipv4Addr::new(192, 0, 2, 1), 443), 6, 0);
            counts[steering.shard_of_key(&key).index()] += 1.0;
        }
        let chi: f64 = counts.iter().map(|count| (count - 512.0).powi(2) / 512.0).sum();
        assert!(chi < 181.0, "chi-square {chi}");
    }
}
