//! From a packet to the shard it belongs to.

mod naming;

use naming::{Naming, Selection};

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use rheostat_base::{DeviceId, ShardId};
use rheostat_packet::{
    Family, FlowKey, HashKind, Headers, KeyMask, KeyParts, LinkType, Mbuf, Tuple, tuple,
};
use thiserror::Error;

use crate::orientation::{Orientation, Oriented, Side};
use crate::packet_set::{Basis, PacketSet, Whose};
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
    /// The same of keys with an external address, where that is something else.
    place_external: Option<[KeyMask; 2]>,
    naming: Naming,
    /// Which packets belong to flows; nothing, where all do whose tuple names one.
    selection: Option<Selection>,
    /// Whether a usual packet has the key that its addresses and ports make, or a part of it.
    names_by_tuples: bool,
    /// Whether the two directions of what functions know are placed apart.
    parts_directions: bool,
    /// Whether what a device hashed may not be what packets are placed by.
    recompute: bool,
    translation: Option<Translation>,
    /// The translation's external addresses; none without.
    external: PrefixList,
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
    /// The shard of packets that name no flow and have nothing else to be placed by.
    pub const UNPLACED: ShardId = ShardId(0);

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
            place_external: None,
            naming: Naming::default(),
            selection: None,
            names_by_tuples: true,
            parts_directions: false,
            recompute: false,
            translation: None,
            external: PrefixList::default(),
        })
    }

    /// Names flows by `flow` and places their packets by `place`. Without this, both are addresses,
    /// ports and protocol. Where flows have no fields, packets may be placed by any, or by none: then by
    /// whatever they have.
    ///
    /// # Errors
    /// [`SteeringError::NothingInCommon`] when flows have fields and `place` has none.
    pub fn with_sets(
        mut self,
        flow: &PacketSet,
        place: &PacketSet,
    ) -> Result<Steering, SteeringError> {
        let discord = [flow, place].iter().any(|set| set.basis() == Basis::Discord);
        if discord || (place.is_empty() && !flow.is_empty()) {
            return Err(SteeringError::NothingInCommon);
        }
        self.place = masks(place, flow.single_address());
        self.naming = Naming::new(flow);
        self.selection = Selection::new(flow);
        self.parts_directions = flow.basis() == Basis::Tuples;
        self.names_by_tuples = flow.basis() != Basis::Link;
        // No device of the kernel hashes fields of Ethernet, or knows which side a packet is from.
        self.recompute = flow.basis() == Basis::Link || flow.is_lopsided();
        Ok(self)
    }

    /// Reckons with translated addresses: protocols whose ports cannot be chosen are placed by their
    /// outer address alone, and endpoints with a fixed translation by what they are translated to.
    #[must_use]
    pub fn with_translation(mut self, translation: Translation) -> Steering {
        let outer = KeyParts { second: [32, 128], ..KeyParts::default() };
        self.place[0] = KeyMask::new(&outer);
        if let Some(place) = translation.place {
            let [_, ported] = masks(&place, None);
            self.place_external = Some([self.place[0], ported]);
            // A device does not know which addresses are external.
            self.recompute = true;
        }
        self.external = translation.external.clone();
        self.recompute |= translation.has_fixed();
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
        self.naming.single_address()
    }

    /// Whether the hash of a flow of this protocol never covers its ports, although it has some: a
    /// translator could not choose them, because they are kept by a checksum.
    pub fn keeps_ports(&self, protocol: u8) -> bool {
        matches!(protocol, 33 | 132) && self.translation.is_some()
    }

    /// Which bits of the hash's input count in packets of this family that arrive on `device` and are hashed over `kind`. The
    /// input is the key's first address, second address, first port and second port, in network order. Packets from a device that
    /// faces the outside count as packets to an external address, if addresses of their family are translated: the others of them are
    /// hashed otherwise than [`Steering::hash`] states, and placed by their keys.
    pub fn input_mask(
        &self,
        device: DeviceId,
        family: Family,
        kind: HashKind,
    ) -> [u8; INPUT_BYTES] {
        let is_outside = self.orientations.get(device.index()) == Some(&Orientation::Outside);
        let is_v4 = family == Family::V4;
        let is_translated =
            is_outside && self.external.iter().any(|prefix| prefix.address().is_ipv4() == is_v4);
        let external = self.place_external.as_ref().filter(|_| is_translated);
        let place = external.unwrap_or(&self.place);
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
        let key = self.naming.of_either_side(ones);
        let key = key.masked(&place[usize::from(kind == HashKind::Ports)]);
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

    /// What a packet of that link states about its flow: the key that names it, where it belongs to one, and
    /// places it in any case. Where ports do not count, every packet of IP has the key of its own addresses,
    /// and where no fields do, every packet has a key of what it has.
    pub fn tuple(&self, data: &[u8], headers: &Headers, link: LinkType) -> Tuple {
        self.naming.tuple(data, headers, link)
    }

    /// What places a packet that belongs to no flow although others of its kind may: its addresses, without
    /// IP its MAC addresses. `None` where such packets are not spread, or have neither: their shard is [`Steering::UNPLACED`].
    pub fn fallback_tuple(
        &self,
        data: &[u8],
        headers: &Headers,
        link: LinkType,
    ) -> Option<FlowKey> {
        self.selection.as_ref()?;
        tuple::addresses(data, headers).or_else(|| tuple::stations(data, headers, link))
    }

    /// Whether the key of a packet with addresses and ports is made of these, or of some of them, and of nothing else.
    #[inline]
    pub fn names_by_tuples(&self) -> bool {
        self.names_by_tuples
    }

    /// The side that all packets of `device` come from, where that is all that has to be known besides: addresses and ports
    /// name flows, as they are or reduced to some of them.
    #[inline]
    pub fn plain_side(&self, device: DeviceId) -> Option<Side> {
        let is_plain = self.names_by_tuples && self.selection.is_none();
        match self.orientations.get(device.index())? {
            Orientation::Inside if is_plain => Some(Side::Inside),
            Orientation::Outside if is_plain => Some(Side::Outside),
            _ => None,
        }
    }

    /// Whether a packet from that side belongs to a flow. `key` has its protocol and version.
    #[inline]
    pub fn admits(&self, key: &FlowKey, side: Side) -> bool {
        self.selection.as_ref().is_none_or(|selection| selection.admits(key, side))
    }

    /// Turns a key whose first endpoint is the source of a packet that arrived on `device`.
    #[inline(always)]
    pub fn orient(&self, device: DeviceId, key: FlowKey) -> Oriented {
        // Not one result passed through both ways: it would have to lie in memory.
        if self.naming.is_reduced() {
            return self.orient_reduced(device, key);
        }
        self.orient_whole(device, key)
    }

    /// Whether packets have flows of the same names, and the same packets have any, as in `other`.
    pub fn names_as(&self, other: &Steering) -> bool {
        self.naming == other.naming && self.selection == other.selection
    }

    /// Whether a device's hash over all fields that name a flow places its packets. If not, [`Steering::place`] computes the shard.
    #[inline]
    pub fn places_by_hashes(&self) -> bool {
        !self.recompute
    }

    /// Whether a key has to be reduced to the fields that name flows.
    #[inline]
    pub fn reduces_keys(&self) -> bool {
        self.naming.is_reduced()
    }

    /// What names a flow of an oriented key of a packet from `side`.
    #[inline(always)]
    pub fn reduced(&self, key: FlowKey, side: Side) -> FlowKey {
        let forward = side == Side::Inside;
        self.naming.reduce(Oriented { key, side, forward }).key
    }

    #[inline(never)]
    fn orient_reduced(&self, device: DeviceId, key: FlowKey) -> Oriented {
        self.naming.reduce(self.orient_whole(device, key))
    }

    /// As [`Steering::orient`], with all that the key has: for fragments, whose datagrams are distinguished
    /// by addresses and protocol, whatever names flows.
    #[inline(always)]
    pub fn orient_whole(&self, device: DeviceId, key: FlowKey) -> Oriented {
        self.orientations[device.index()].orient(key, &self.external)
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

    /// The hash of an oriented key over those of its fields that packets are placed by. `kind` states
    /// which could be seen.
    #[inline]
    pub fn hash(&self, key: &FlowKey, kind: HashKind) -> u32 {
        match &self.place_external {
            Some(place) if self.external.contains(key.first()) => self.hash_by(place, key, kind),
            _ => self.hash_by(&self.place, key, kind),
        }
    }

    /// As [`Steering::hash`], of a key whose first address is external.
    #[inline]
    pub(crate) fn hash_external(&self, key: &FlowKey, kind: HashKind) -> u32 {
        self.hash_by(self.place_external.as_ref().unwrap_or(&self.place), key, kind)
    }

    #[inline]
    fn hash_by(&self, place: &[KeyMask; 2], key: &FlowKey, kind: HashKind) -> u32 {
        let mask = &place[usize::from(kind == HashKind::Ports)];
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
    pub fn place(&self, hash: u32, covers: HashKind, key: &FlowKey) -> ShardId {
        if covers == self.kind_of(key) && !self.recompute {
            self.shard_of_hash(hash)
        } else {
            self.shard_of_key(key)
        }
    }

    /// Whether a packet reaches its shard, or its flow, by way of another lane than the packets that the owner receives itself:
    /// only the lane that receives it finds out where it belongs. True of every packet, with a flow or without, whose shard is
    /// not that of the bucket by which the device placed it.
    pub fn is_misdirected(&self, packet: &Mbuf, headers: &Headers) -> bool {
        let (data, link) = (packet.data(), packet.link());
        let key = match self.tuple(data, headers, link) {
            Tuple::Fragment(..) | Tuple::IcmpError(_) => return true,
            Tuple::Flow(key) => Some(key),
            Tuple::None => self.fallback_tuple(data, headers, link),
        };
        let by_bucket = self.shard_of_hash(packet.hash());
        let Some(key) = key else { return by_bucket != Steering::UNPLACED };
        let Oriented { key, side, .. } = self.orient(packet.device(), key);
        let (covers, needed) = (packet.hash_kind(), self.kind_of(&key));
        if self.place(packet.hash(), covers, &key) != by_bucket {
            // All packets of the flow may take the same way. Those of other flows that its owner receives itself would be ahead
            // in time.
            return true;
        }
        // Without translation, both directions of a flow take the same way.
        let returns = || side == Side::Inside && self.external.contains(key.second());
        self.translation.is_some()
            && (covers != needed || returns() || self.translated(&key).is_some())
    }

    /// The side that a packet comes from, where functions without a packet set translate: what comes from one
    /// side then has to do with what went out to it, wherever either was placed.
    pub fn side_apart(&self, packet: &Mbuf, headers: &Headers) -> Option<Side> {
        if !self.parts_directions || self.translation.is_none() {
            return None;
        }
        Some(match tuple::addresses(packet.data(), headers) {
            Some(key) => self.orient_whole(packet.device(), key).side,
            None => self.side_of_device(packet.device()),
        })
    }

    #[inline]
    fn translated(&self, key: &FlowKey) -> Option<FlowKey> {
        self.translation.as_ref().filter(|translation| translation.has_fixed())?.apply(key)
    }

    /// The shard where the fragments of a datagram meet, given its oriented addresses and protocol.
    pub fn home_of_fragment(&self, key: &FlowKey) -> ShardId {
        let addresses = self.toeplitz.hash_key(key, HashKind::Addresses);
        // Odd multipliers spread the protocols; the result need not match what any device computes.
        self.shard_of_hash(addresses ^ u32::from(key.protocol()).wrapping_mul(0x9e37_79b1) >> 16)
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
mod tests;
