//! From a packet to the shard it belongs to.

use rheostat_base::{DeviceId, ShardId};
use rheostat_packet::{Family, FlowKey, HashKind, Meta};
use thiserror::Error;

use crate::orientation::{Orientation, Oriented, Side};
use crate::toeplitz::{HashKey, Toeplitz};

/// Everything that decides where a packet belongs, the same for all lanes and devices of a run.
#[derive(Clone, Debug)]
pub struct Steering {
    toeplitz: Toeplitz,
    buckets: usize,
    shards: usize,
    orientations: Vec<Orientation>,
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
        Ok(Steering { toeplitz: Toeplitz::new(key), buckets, shards, orientations })
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

    /// Turns a key whose first endpoint is the source of a packet that arrived on `device`.
    #[inline(always)]
    pub fn orient(&self, device: DeviceId, key: FlowKey) -> Oriented {
        self.orientations[device.index()].orient(key)
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

    /// The shard of an oriented key.
    #[inline]
    pub fn shard_of_key(&self, key: &FlowKey) -> ShardId {
        self.shard_of_hash(self.toeplitz.hash_key(key, fields_of(key)))
    }

    /// The shard of a packet with an oriented key: by the device's hash where it covers the fields of
    /// the key, computed here where the device could not see them.
    #[inline(always)]
    pub fn place(&self, meta: &Meta, key: &FlowKey) -> ShardId {
        if meta.hash_kind() == fields_of(key) {
            self.shard_of_hash(meta.hash)
        } else {
            self.shard_of_key(key)
        }
    }

    /// The shard where the fragments of a datagram meet, given its oriented addresses and protocol.
    pub fn home_of_fragment(&self, key: &FlowKey) -> ShardId {
        let addresses = self.toeplitz.hash_key(key, HashKind::Addresses);
        // Odd multipliers spread the protocols; the result need not match what any device computes.
        self.shard_of_hash(addresses ^ u32::from(key.protocol()).wrapping_mul(0x9e37_79b1) >> 16)
    }
}

/// What the hash of a key must cover.
#[inline]
fn fields_of(key: &FlowKey) -> HashKind {
    if has_ports(key.protocol(), key.family()) { HashKind::Ports } else { HashKind::Addresses }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PrefixList;
    use proptest::prelude::*;
    use std::net::{Ipv4Addr, Ipv6Addr};

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
            let steering = steering();
            for kind in [HashKind::Ports, HashKind::Addresses, HashKind::None] {
                let hash = steering.toeplitz().hash_key(&key, kind);
                let mut meta = Meta::default();
                meta.set_hash(hash, kind);
                prop_assert_eq!(steering.place(&meta, &key), steering.shard_of_key(&key));
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
