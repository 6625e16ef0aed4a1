//! Packet sets: the header fields that name a flow (NFOS, sections 4.3 and 4.7), and whether a device
//! can place packets by them.

use std::fmt;

use rheostat_packet::KeyParts;
use thiserror::Error;

/// A set of header fields. Ends are those of the oriented key, the same for both directions: the inner
/// one is the source of packets from inside and the destination of packets from outside.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct PacketSet {
    fields: u8,
    address: Option<Address>,
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

const INNER_ADDRESS: u8 = 1;
const OUTER_ADDRESS: u8 = 2;
const INNER_PORT: u8 = 4;
const OUTER_PORT: u8 = 8;
const PROTOCOL: u8 = 16;
const VLAN: u8 = 32;

const NAMES: [(u8, &str); 6] = [
    (INNER_ADDRESS, "inner address"),
    (OUTER_ADDRESS, "outer address"),
    (INNER_PORT, "inner port"),
    (OUTER_PORT, "outer port"),
    (PROTOCOL, "protocol"),
    (VLAN, "VLAN"),
];

impl PacketSet {
    /// No fields: packets belong to no flow.
    pub const NONE: PacketSet = PacketSet { fields: 0, address: None };

    const fn of(fields: u8) -> PacketSet {
        PacketSet { fields, address: None }
    }

    /// Addresses, ports and protocol, in the zone (VLAN) they were seen in.
    pub const fn five_tuple() -> PacketSet {
        PacketSet::of(63)
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

    /// One address, or the prefix it lies in: `v4` or `v6` leading bits of it. Packets of every
    /// protocol, fragments and ICMP errors included, belong by their own addresses.
    pub const fn address(whose: Whose, v4: u8, v6: u8) -> PacketSet {
        let fields = match whose {
            Whose::Inner => INNER_ADDRESS | VLAN,
            Whose::Outer => OUTER_ADDRESS | VLAN,
            Whose::Source | Whose::Destination => VLAN,
        };
        PacketSet { fields, address: Some(Address { whose, prefix: [v4, v6] }) }
    }

    /// Whose address alone names a flow, and how much of it, if that is so.
    pub(crate) const fn single_address(&self) -> Option<(Whose, [u8; 2])> {
        match self.address {
            Some(Address { whose, prefix }) => Some((whose, prefix)),
            None => None,
        }
    }

    /// The fields that both sets name: what packets can be placed by when both must hold. Nothing,
    /// where one follows the direction of packets and the other does not.
    #[must_use]
    pub fn common(&self, other: &PacketSet) -> PacketSet {
        match (self.address, other.address) {
            (None, None) => PacketSet::of(self.fields & other.fields),
            (Some(a), Some(b)) if a.whose == b.whose => {
                let prefix = [0, 1].map(|family| a.prefix[family].min(b.prefix[family]));
                PacketSet { address: Some(Address { prefix, ..a }), ..*self }
            }
            (Some(_), None) if self.fields & !VLAN & other.fields != 0 => *self,
            (None, Some(_)) if other.fields & !VLAN & self.fields != 0 => *other,
            _ => PacketSet::NONE,
        }
    }

    /// The fields of both sets: what names a flow for which both keep state.
    #[must_use]
    pub fn finest(&self, other: &PacketSet) -> PacketSet {
        if self == other { *self } else { PacketSet::of(self.fields | other.fields) }
    }

    /// Whether there are no fields.
    pub const fn is_empty(&self) -> bool {
        self.fields == 0
    }

    /// Whether a packet and its answer can have the same key.
    pub const fn directions_meet(&self) -> bool {
        !matches!(self.address, Some(Address { whose: Whose::Source | Whose::Destination, .. }))
    }

    /// What placing packets by these fields takes from their keys. Without ports, those do not count.
    pub(crate) fn parts(&self, ported: bool) -> KeyParts {
        let has = |field| self.fields & field != 0;
        let whole = |field| if has(field) { [32, 128] } else { [0, 0] };
        match self.address {
            // The key holds this address alone, as its first.
            Some(Address { prefix, whose: Whose::Source | Whose::Destination }) => {
                KeyParts { first: prefix, ..KeyParts::default() }
            }
            Some(Address { prefix, .. }) => {
                let part = |field| if has(field) { prefix } else { [0, 0] };
                let (first, second) = (part(INNER_ADDRESS), part(OUTER_ADDRESS));
                KeyParts { first, second, ..KeyParts::default() }
            }
            None => KeyParts {
                first: whole(INNER_ADDRESS),
                second: whole(OUTER_ADDRESS),
                first_port: ported && has(INNER_PORT),
                second_port: ported && has(OUTER_PORT),
                ..KeyParts::default()
            },
        }
    }

    /// Whether a device with `capabilities` can place packets by these fields: it must be able to hash
    /// at least one of them, and none that the set lacks.
    ///
    /// # Errors
    /// [`Infeasible`] names what the device would have to leave out of its hash and cannot.
    pub fn feasible(&self, capabilities: &HashCapabilities) -> Result<(), Infeasible> {
        let fits = |hash: &PacketSet| hash.fields & !self.fields == 0;
        let some = |hash: &PacketSet| !hash.is_empty() && fits(hash);
        let unnamed = self.fields == 0 || (capabilities.any && self.address.is_some());
        if unnamed || capabilities.choices.iter().any(some) {
            return Ok(());
        }
        Err(Infeasible { wanted: *self, choices: capabilities.choices.clone() })
    }

    fn names(self) -> impl Iterator<Item = &'static str> {
        NAMES.into_iter().filter(move |(bit, _)| self.fields & bit != 0).map(|(_, name)| name)
    }
}

impl fmt::Display for PacketSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(Address { whose, prefix: [v4, v6] }) = self.address {
            let whose = match whose {
                Whose::Inner => "inner",
                Whose::Outer => "outer",
                Whose::Source => "source",
                Whose::Destination => "destination",
            };
            return write!(f, "{whose} address /{v4} and /{v6}");
        }
        let names: Vec<_> = self.names().collect();
        f.write_str(if names.is_empty() { "no fields" } else { "" })?;
        f.write_str(&names.join(", "))
    }
}

impl fmt::Debug for PacketSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PacketSet({self})")
    }
}

/// The sets of fields a device can be told to hash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HashCapabilities {
    /// One of these at a time.
    pub choices: Vec<PacketSet>,
    /// Whether anything else can be hashed, too: parts of addresses, for one.
    any: bool,
}

impl HashCapabilities {
    /// What software can hash: anything.
    pub fn software() -> HashCapabilities {
        HashCapabilities { choices: (1..16).map(PacketSet::of).collect(), any: true }
    }

    /// What a common interface hashes: both addresses, with or without both ports.
    pub fn common_hardware() -> HashCapabilities {
        HashCapabilities { choices: vec![PacketSet::of(3), PacketSet::of(15)], any: false }
    }
}

/// A device cannot place packets by the fields of a packet set.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("packets cannot be placed by {wanted}: the device hashes {}", list(choices))]
pub struct Infeasible {
    /// The fields asked for.
    pub wanted: PacketSet,
    /// What the device can hash instead.
    pub choices: Vec<PacketSet>,
}

fn list(choices: &[PacketSet]) -> String {
    let choices: Vec<_> = choices.iter().map(PacketSet::to_string).collect();
    if choices.is_empty() { "nothing".into() } else { choices.join("; or ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_meet_and_fit_devices() {
        let subscriber = PacketSet::address(Whose::Inner, 32, 64);
        let destination = PacketSet::address(Whose::Destination, 32, 64);
        assert!(PacketSet::five_tuple().directions_meet() && subscriber.directions_meet());
        assert!(!destination.directions_meet());
        let (hardware, software) =
            (HashCapabilities::common_hardware(), HashCapabilities::software());
        assert_eq!(PacketSet::five_tuple().feasible(&hardware), Ok(()));
        assert_eq!(PacketSet::NONE.feasible(&hardware), Ok(()));
        for set in [PacketSet::inner_endpoint(), subscriber, destination] {
            assert_eq!(set.feasible(&software), Ok(()), "{set}");
            assert!(set.feasible(&hardware).is_err(), "{set}");
        }
        let error = PacketSet::inner_endpoint().feasible(&hardware).unwrap_err().to_string();
        assert!(error.starts_with("packets cannot be placed by inner address, inner port"));
        assert!(error.ends_with("inner address, outer address, inner port, outer port"));
    }

    #[test]
    fn sets_compose() {
        let tuple = PacketSet::five_tuple();
        let (inner, outer) = (PacketSet::inner_endpoint(), PacketSet::outer_endpoint());
        assert_eq!(tuple.common(&PacketSet::addresses()), PacketSet::addresses());
        assert_eq!((tuple.common(&inner), tuple.finest(&inner)), (inner, tuple));
        let subscriber = PacketSet::address(Whose::Inner, 32, 64);
        let network = PacketSet::address(Whose::Inner, 24, 128);
        assert_eq!(subscriber.common(&tuple), subscriber);
        assert_eq!(inner.common(&subscriber), subscriber);
        assert_eq!(subscriber.common(&network), PacketSet::address(Whose::Inner, 24, 64));
        let destination = PacketSet::address(Whose::Destination, 32, 128);
        for other in [tuple, outer, subscriber] {
            assert!(other.common(&destination).is_empty());
        }
        assert!(outer.common(&subscriber).is_empty());
    }
}
