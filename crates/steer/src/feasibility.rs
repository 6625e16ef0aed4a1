//! Whether a device can place packets by the fields of a packet set (NFOS, section 4.7).

use std::fmt;

use thiserror::Error;

use crate::orientation::Side;
use crate::packet_set::{Basis, PacketSet};

/// The sets of fields a device can be told to hash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HashCapabilities {
    /// One of these at a time.
    pub choices: Vec<PacketSet>,
    /// Whether every other choice of fields of IP can be hashed, too, and parts of addresses.
    any: bool,
    /// Whether fields of Ethernet can be.
    link: bool,
}

impl HashCapabilities {
    /// What software hashes that sees whole frames, as simulated interfaces and readers of captures do:
    /// anything.
    pub fn software() -> HashCapabilities {
        HashCapabilities { link: true, ..HashCapabilities::program() }
    }

    /// What the programs hash that live interfaces are given: any fields of IP, none of Ethernet.
    pub fn program() -> HashCapabilities {
        let choices = vec![PacketSet::addresses(), PacketSet::tuple_of_hardware()];
        HashCapabilities { choices, any: true, link: false }
    }

    /// What a common interface hashes by itself: both addresses, with or without both ports.
    pub fn common_hardware() -> HashCapabilities {
        HashCapabilities { any: false, ..HashCapabilities::program() }
    }
}

impl PacketSet {
    /// Whether a device with `capabilities` can place packets by these fields: it must be able to hash
    /// at least one of them, and none that is not in the set. Without fields, every device can.
    ///
    /// # Errors
    /// [`Infeasible`] names what the device would have to hash, or to leave out of its hash, and cannot.
    pub fn feasible(&self, capabilities: &HashCapabilities) -> Result<(), Infeasible> {
        let feasible = match self.basis() {
            Basis::Nothing | Basis::Tuples => true,
            Basis::Discord => false,
            Basis::Link => capabilities.link,
            // One side of a set may have no fields: nothing is asked of its packets.
            Basis::Network => {
                capabilities.any
                    || self.single_address().is_none()
                        && capabilities.choices.iter().any(|hash| self.allows(hash))
            }
        };
        if feasible {
            return Ok(());
        }
        Err(Infeasible { wanted: *self, choices: capabilities.choices.clone() })
    }

    /// Whether hashing by `hash` keeps packets of one flow together.
    fn allows(&self, hash: &PacketSet) -> bool {
        [Side::Inside, Side::Outside].into_iter().all(|side| {
            let fields = self.fields_of(side);
            fields == 0 || hash.fields_of(side) & !fields == 0
        })
    }
}

/// A device cannot place packets by the fields of a packet set.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("packets cannot be placed by {wanted}: the device {}", self.reason())]
pub struct Infeasible {
    /// The fields asked for.
    pub wanted: PacketSet,
    /// What the device can hash instead.
    pub choices: Vec<PacketSet>,
}

/// What can be done about a set by which a device cannot place packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alternative {
    /// Placing them in software.
    SoftwareHash,
    /// Naming flows by other fields, which the device can hash.
    Set(PacketSet),
    /// Naming no flows at all.
    NoSet,
}

impl Infeasible {
    /// The fields of the set, where the device can hash none of them.
    pub fn cannot_hash(&self) -> Vec<String> {
        if self.is_one_address() {
            return vec![self.wanted.to_string()];
        }
        let hashed = self.of_choices(|all, fields| all | fields, 0);
        let sides = [Side::Inside, Side::Outside].map(|side| self.wanted.fields_of(side));
        match (sides[0] | sides[1]) & hashed {
            0 => self.wanted.field_names(sides[0] | sides[1]),
            _ => Vec::new(),
        }
    }

    /// Fields that are not in the set and that the device cannot leave out of its hash.
    pub fn cannot_leave_out(&self) -> Vec<String> {
        if self.wanted.basis() == Basis::Link || self.is_one_address() {
            return Vec::new();
        }
        let always = self.of_choices(|all, fields| all & fields, u8::MAX);
        let extra = |side| match self.wanted.fields_of(side) {
            0 => 0,
            fields => always & !fields,
        };
        self.wanted.field_names(extra(Side::Inside) | extra(Side::Outside))
    }

    /// Whether an address of IP is all that was requested: devices hash both, or none.
    fn is_one_address(&self) -> bool {
        self.wanted.single_address().is_some() && self.wanted.basis() == Basis::Network
    }

    fn of_choices(&self, join: impl Fn(u8, u8) -> u8, start: u8) -> u8 {
        if self.wanted.basis() == Basis::Link {
            return 0;
        }
        self.choices.iter().map(|hash| hash.fields_of(Side::Inside)).fold(start, join)
    }

    /// Why the device cannot, to follow "the device".
    fn reason(&self) -> String {
        let (cannot, always) = (self.cannot_hash(), self.cannot_leave_out());
        let mut reasons = Vec::new();
        if !cannot.is_empty() {
            reasons.push(format!("cannot hash {}", cannot.join(", ")));
        }
        if !always.is_empty() {
            reasons.push(format!("cannot leave {} out", always.join(", ")));
        }
        let choices: Vec<_> = self.choices.iter().map(PacketSet::to_string).collect();
        let choices = if choices.is_empty() { "nothing".into() } else { choices.join("; or ") };
        reasons.push(format!("hashes {choices}"));
        reasons.join("; it ")
    }

    /// What can be done, the least change first.
    pub fn alternatives(&self) -> Vec<Alternative> {
        let sets = self.choices.iter().rev().map(|set| Alternative::Set(*set));
        let software = std::iter::once(Alternative::SoftwareHash);
        software.chain(sets).chain([Alternative::NoSet]).collect()
    }
}

impl fmt::Display for Alternative {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Alternative::SoftwareHash => f.write_str(
                "place packets in software: lanes hand on what belongs elsewhere, at the cost of a hand-off",
            ),
            Alternative::Set(set) => {
                write!(f, "name flows by {set}, if their state can be kept so")
            }
            Alternative::NoSet => f.write_str(
                "name no flows: packets are spread evenly, and all state is in shared objects",
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet_set::{Fields, Protocols, Whose};

    #[test]
    fn sets_meet_and_fit_devices() {
        let subscriber = PacketSet::address(Whose::Inner, 32, 64);
        let destination = PacketSet::address(Whose::Destination, 32, 64);
        assert!(PacketSet::five_tuple().directions_meet() && subscriber.directions_meet());
        assert!(!destination.directions_meet());
        let hardware = HashCapabilities::common_hardware();
        let software = HashCapabilities::software();
        let tcp = PacketSet::five_tuple().only(Protocols::TCP);
        let received = PacketSet::per_side(Fields::NONE, Fields::SOURCE | Fields::DESTINATION);
        for set in [PacketSet::five_tuple(), tcp, received, PacketSet::addresses()] {
            assert_eq!(set.feasible(&hardware), Ok(()), "{set}");
        }
        for set in [PacketSet::NONE, PacketSet::none_with_ports()] {
            assert_eq!(set.feasible(&hardware), Ok(()), "{set}");
        }
        for set in [PacketSet::inner_endpoint(), subscriber, destination] {
            assert_eq!(set.feasible(&software), Ok(()), "{set}");
            assert_eq!(set.feasible(&HashCapabilities::program()), Ok(()), "{set}");
            assert!(set.feasible(&hardware).is_err(), "{set}");
        }
        for set in [PacketSet::stations(), PacketSet::station(Whose::Source)] {
            assert_eq!(set.feasible(&software), Ok(()), "{set}");
            assert!(set.feasible(&HashCapabilities::program()).is_err(), "{set}");
        }
    }

    #[test]
    fn what_cannot_be_done_is_named_with_what_can() {
        let hardware = HashCapabilities::common_hardware();
        let error = PacketSet::inner_endpoint().feasible(&hardware).unwrap_err();
        assert_eq!(error.cannot_leave_out(), ["outer address"]);
        assert_eq!(error.cannot_hash(), Vec::<String>::new());
        let text = error.to_string();
        assert!(
            text.starts_with("packets cannot be placed by inner address, inner port"),
            "{text}"
        );
        assert!(text.contains("the device cannot leave outer address out; it hashes "), "{text}");
        assert!(text.ends_with("inner address, outer address, inner port, outer port"), "{text}");
        let tuple = PacketSet::tuple_of_hardware();
        let alternatives = error.alternatives();
        assert_eq!(alternatives.first(), Some(&Alternative::SoftwareHash));
        assert_eq!(alternatives.last(), Some(&Alternative::NoSet));
        assert!(alternatives.contains(&Alternative::Set(tuple)));
        // Every set that is named as an alternative is one.
        for alternative in alternatives {
            if let Alternative::Set(set) = alternative {
                assert_eq!(set.feasible(&hardware), Ok(()), "{set}");
            }
        }
        let error = PacketSet::stations().feasible(&HashCapabilities::program()).unwrap_err();
        let fields = ["inner MAC address", "outer MAC address", "Ethertype", "VLAN"];
        assert_eq!(
            (error.cannot_hash(), error.cannot_leave_out()),
            (fields.map(Into::into).to_vec(), vec![])
        );
    }
}
