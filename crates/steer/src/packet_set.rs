//! Packet sets: the header fields that name a flow (NFOS, sections 4.3 and 4.7).

mod fields;
mod names;
mod protocols;

pub use fields::Fields;
pub use protocols::Protocols;

use fields::{EVERYTHING, INNER_ADDRESS, INNER_PORT, OUTER_ADDRESS, OUTER_PORT, PROTOCOL, VLAN};
use rheostat_packet::{FlowKey, KeyParts};

use crate::orientation::Side;

/// A set of header fields, and whose packets have them. Ends are those of the oriented key, the same for
/// both directions: the inner one is the source of packets from inside and the destination of packets
/// from outside. So the fields of a device follow from the side it is on, unless a set states otherwise
/// ([`PacketSet::per_side`]).
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct PacketSet {
    basis: Basis,
    /// Of packets from inside, and of packets from outside.
    fields: [u8; 2],
    address: Option<Address>,
    protocols: Protocols,
}

/// What the fields are fields of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Basis {
    /// Of IP and what is above.
    Network,
    /// Of Ethernet.
    Link,
    /// There are no fields: packets are distinguished only to spread them and to keep their order.
    Nothing,
    /// There are no fields, but fragments and ICMP errors are passed on together with the ports that their own bytes do not have.
    Tuples,
    /// Functions of a chain have nothing in common.
    Discord,
}

/// One address and nothing else.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Address {
    whose: Whose,
    /// Leading bits that count, for IPv4 and IPv6.
    prefix: [u8; 2],
}

/// Whose address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Whose {
    /// The inner end's, in both directions.
    Inner,
    /// The outer end's, in both directions.
    Outer,
    /// The sender's: the two directions of a flow belong to different ones.
    Source,
    /// The receiver's, likewise.
    Destination,
}

impl PacketSet {
    /// No fields: packets belong to no flow, and come to `non_flow`. They are spread evenly by what can be
    /// hashed: addresses and ports; addresses alone, of fragments, ICMP errors and protocols without ports;
    /// MAC addresses, VLAN and Ethertype, without IP. What has all of these in common stays on one shard,
    /// in order.
    pub const NONE: PacketSet = PacketSet::without(Basis::Nothing);

    /// Functions that have nothing in common.
    const DISCORD: PacketSet = PacketSet::without(Basis::Discord);

    const fn of(fields: u8) -> PacketSet {
        PacketSet {
            basis: Basis::Network,
            fields: [fields, fields],
            address: None,
            protocols: Protocols::ALL,
        }
    }

    const fn without(basis: Basis) -> PacketSet {
        PacketSet { basis, ..PacketSet::of(0) }
    }

    /// As [`PacketSet::NONE`], for functions that need ports where packets do not have them: fragments
    /// come once the first of their datagram has told its ports, and an ICMP error with the key of the
    /// packet it is about (see `Packet::arrival_key`).
    pub const fn none_with_ports() -> PacketSet {
        PacketSet::without(Basis::Tuples)
    }

    /// Addresses, ports and protocol, in the zone (VLAN) they were seen in.
    pub const fn five_tuple() -> PacketSet {
        PacketSet::of(EVERYTHING)
    }

    /// Both addresses and both ports: what interfaces call the tuple of four.
    pub(crate) const fn tuple_of_hardware() -> PacketSet {
        PacketSet::of(INNER_ADDRESS | OUTER_ADDRESS | INNER_PORT | OUTER_PORT)
    }

    /// Both addresses.
    pub const fn addresses() -> PacketSet {
        PacketSet::of(INNER_ADDRESS | OUTER_ADDRESS)
    }

    /// Address, port and protocol of the inner end.
    pub const fn inner_endpoint() -> PacketSet {
        PacketSet::of(INNER_ADDRESS | INNER_PORT | PROTOCOL | VLAN)
    }

    /// Address, port and protocol of the outer end.
    pub const fn outer_endpoint() -> PacketSet {
        PacketSet::of(OUTER_ADDRESS | OUTER_PORT | PROTOCOL | VLAN)
    }

    /// These fields of packets from inside, and those of packets from outside. With [`Fields::NONE`],
    /// packets from there belong to no flow. The directions of a flow meet where the fields of one side
    /// are those of the other with source and destination exchanged.
    pub const fn per_side(inside: Fields, outside: Fields) -> PacketSet {
        let fields = [inside.of_inside(), outside.of_outside()];
        let basis = if fields[0] | fields[1] == 0 { Basis::Nothing } else { Basis::Network };
        PacketSet { basis, fields, ..PacketSet::of(0) }
    }

    /// One address, or the prefix it lies in: `v4` or `v6` leading bits of it. Packets of every
    /// protocol, fragments and ICMP errors included, belong by their own addresses.
    pub const fn address(whose: Whose, v4: u8, v6: u8) -> PacketSet {
        let fields = match whose {
            Whose::Inner => INNER_ADDRESS | VLAN,
            Whose::Outer => OUTER_ADDRESS | VLAN,
            Whose::Source | Whose::Destination => VLAN,
        };
        PacketSet { address: Some(Address { whose, prefix: [v4, v6] }), ..PacketSet::of(fields) }
    }

    /// Both MAC addresses, the VLAN and the Ethertype of any frame.
    pub const fn stations() -> PacketSet {
        let fields = INNER_ADDRESS | OUTER_ADDRESS | VLAN | PROTOCOL;
        PacketSet { basis: Basis::Link, ..PacketSet::of(fields) }
    }

    /// One MAC address in its VLAN.
    pub const fn station(whose: Whose) -> PacketSet {
        let bits = FlowKey::LINK_VLAN_BITS;
        PacketSet { basis: Basis::Link, ..PacketSet::address(whose, 0, bits) }
    }

    /// The same fields, of packets of these protocols alone: all others belong to no flow. A set of the
    /// link layer has frames of every protocol and stays as it is.
    #[must_use]
    pub const fn only(self, protocols: Protocols) -> PacketSet {
        match self.basis {
            Basis::Network => PacketSet { protocols, ..self },
            _ => self,
        }
    }

    pub(crate) const fn basis(&self) -> Basis {
        self.basis
    }

    /// The protocols whose packets belong to flows.
    pub const fn protocols(&self) -> Protocols {
        self.protocols
    }

    /// The fields of packets from that side, as fields of oriented keys.
    pub(crate) const fn fields_of(&self, side: Side) -> u8 {
        self.fields[match side {
            Side::Inside => 0,
            Side::Outside => 1,
        }]
    }

    /// Whether other fields count on one side than on the other, both being some.
    pub(crate) const fn is_lopsided(&self) -> bool {
        self.fields[0] != self.fields[1] && self.fields[0] != 0 && self.fields[1] != 0
    }

    /// Whether ports count in packets of either side.
    pub(crate) const fn has_ports(&self) -> bool {
        (self.fields[0] | self.fields[1]) & (INNER_PORT | OUTER_PORT) != 0
    }

    /// Whose address alone names a flow, and how much of it, if that is so.
    pub(crate) const fn single_address(&self) -> Option<(Whose, [u8; 2])> {
        match self.address {
            Some(Address { whose, prefix }) => Some((whose, prefix)),
            None => None,
        }
    }

    /// The fields that both sets name: what packets can be placed by when both must hold. A set without
    /// fields leaves the choice to the other. Where nothing is left, or one set follows the direction of
    /// packets and the other does not, packets cannot be placed ([`Steering::with_sets`] refuses).
    ///
    /// [`Steering::with_sets`]: crate::Steering::with_sets
    #[must_use]
    pub fn common(&self, other: &PacketSet) -> PacketSet {
        match (self.basis, other.basis) {
            (Basis::Discord, _) | (_, Basis::Discord) => PacketSet::DISCORD,
            (Basis::Nothing, _) | (Basis::Tuples, Basis::Network | Basis::Link) => *other,
            (_, Basis::Nothing | Basis::Tuples) => *self,
            (Basis::Network, Basis::Network) | (Basis::Link, Basis::Link) => self.both(other),
            (Basis::Network, Basis::Link) | (Basis::Link, Basis::Network) => PacketSet::DISCORD,
        }
    }

    fn both(&self, other: &PacketSet) -> PacketSet {
        let fields = [0, 1].map(|side| self.fields[side] & other.fields[side]);
        let all = PacketSet { protocols: Protocols::ALL, ..*self };
        let meets = fields.iter().all(|fields| fields & !VLAN != 0);
        match (self.address, other.address) {
            (None, None) if fields != [0, 0] => PacketSet { fields, ..all },
            (Some(a), Some(b)) if a.whose == b.whose => {
                let prefix = [0, 1].map(|family| a.prefix[family].min(b.prefix[family]));
                PacketSet { address: Some(Address { prefix, ..a }), ..all }
            }
            (Some(_), None) if meets => all,
            (None, Some(_)) if meets => PacketSet { protocols: Protocols::ALL, ..*other },
            _ => PacketSet::DISCORD,
        }
    }

    /// The fields of both sets: what names a flow for which both keep state. Packets belong to it that
    /// belong to one of them; a function then meets flows that its own set would not have, and may let
    /// them pass.
    #[must_use]
    pub fn finest(&self, other: &PacketSet) -> PacketSet {
        match (self.basis, other.basis) {
            _ if self == other => *self,
            (Basis::Discord, _) | (_, Basis::Discord) => PacketSet::DISCORD,
            (Basis::Nothing, _) | (Basis::Tuples, Basis::Network | Basis::Link) => *other,
            (_, Basis::Nothing | Basis::Tuples) => *self,
            (a, b) if a != b => PacketSet::DISCORD,
            (basis, _) => PacketSet {
                basis,
                fields: [0, 1].map(|side| self.fields[side] | other.fields[side]),
                address: None,
                protocols: self.protocols.union(&other.protocols),
            },
        }
    }

    /// Whether packets can be placed by the set: functions have some field in common, or none needs one.
    pub const fn can_place(&self) -> bool {
        match self.basis {
            Basis::Nothing | Basis::Tuples => true,
            Basis::Discord => false,
            Basis::Network | Basis::Link => !self.is_empty(),
        }
    }

    /// Whether there are no fields.
    pub const fn is_empty(&self) -> bool {
        self.fields[0] | self.fields[1] == 0
    }

    /// Whether a packet and its answer can have the same key.
    pub const fn directions_meet(&self) -> bool {
        let directed =
            matches!(self.address, Some(Address { whose: Whose::Source | Whose::Destination, .. }));
        !directed && self.fields[0] == self.fields[1]
    }

    /// What placing packets by these fields, of either side, takes from their keys. Without ports,
    /// those do not count.
    pub(crate) fn parts(&self, ported: bool) -> KeyParts {
        let parts = match (self.basis, self.address) {
            // The key holds this address alone, as its first.
            (_, Some(Address { prefix, whose: Whose::Source | Whose::Destination })) => {
                KeyParts { first: prefix, ..KeyParts::default() }
            }
            (Basis::Nothing | Basis::Tuples, _) => PacketSet::of(EVERYTHING).parts_of(EVERYTHING),
            _ => self.parts_of(self.fields[0] | self.fields[1]),
        };
        KeyParts {
            first_port: ported && parts.first_port,
            second_port: ported && parts.second_port,
            protocol: false,
            zone: false,
            ..parts
        }
    }

    /// The parts of oriented keys that `fields` are.
    pub(crate) fn parts_of(&self, fields: u8) -> KeyParts {
        let has = |field| fields & field != 0;
        let bits = match (self.basis, self.address) {
            (_, Some(Address { prefix, .. })) => prefix,
            (Basis::Link, None) if has(PROTOCOL) => [0, FlowKey::LINK_BITS],
            (Basis::Link, None) if has(VLAN) => [0, FlowKey::LINK_VLAN_BITS],
            (Basis::Link, None) => [0, FlowKey::LINK_ADDRESS_BITS],
            _ => [32, 128],
        };
        let address = |field| if has(field) { bits } else { [0, 0] };
        KeyParts {
            first: address(INNER_ADDRESS),
            second: address(OUTER_ADDRESS),
            first_port: has(INNER_PORT),
            second_port: has(OUTER_PORT),
            protocol: has(PROTOCOL),
            zone: has(VLAN),
        }
    }
}

#[cfg(test)]
mod tests;
