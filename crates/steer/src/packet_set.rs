//! Packet sets: the header fields that name a flow (NFOS, sections 4.3 and 4.7), and whether a device
//! can place packets by them.

use std::fmt;

use thiserror::Error;

/// A set of header fields.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct PacketSet(u8);

const NAMES: [(u8, &str); 6] = [
    (1, "source address"),
    (2, "destination address"),
    (4, "source port"),
    (8, "destination port"),
    (16, "protocol"),
    (32, "VLAN"),
];

impl PacketSet {
    /// No fields: packets belong to no flow.
    pub const NONE: PacketSet = PacketSet(0);

    /// Addresses, ports and protocol, in the zone (VLAN) they were seen in.
    pub const fn five_tuple() -> PacketSet {
        PacketSet(63)
    }

    /// Both addresses.
    pub const fn addresses() -> PacketSet {
        PacketSet(3)
    }

    /// The fields that both sets name: what packets can be placed by when both must hold.
    #[must_use]
    pub const fn common(&self, other: &PacketSet) -> PacketSet {
        PacketSet(self.0 & other.0)
    }

    /// Whether a packet and its answer can have the same key: every field that names one end has its
    /// counterpart at the other.
    pub const fn directions_meet(&self) -> bool {
        (self.0 & 1 != 0) == (self.0 & 2 != 0) && (self.0 & 4 != 0) == (self.0 & 8 != 0)
    }

    /// Whether a device with `capabilities` can place packets by these fields: it must be able to hash
    /// at least one of them, and none that the set lacks.
    ///
    /// # Errors
    /// [`Infeasible`] names what the device would have to leave out of its hash and cannot.
    pub fn feasible(&self, capabilities: &HashCapabilities) -> Result<(), Infeasible> {
        let fits = |hash: &PacketSet| hash.0 & !self.0 == 0;
        if self.0 == 0 || capabilities.choices.iter().any(|hash| hash.0 != 0 && fits(hash)) {
            return Ok(());
        }
        Err(Infeasible { wanted: *self, choices: capabilities.choices.clone() })
    }

    fn names(self) -> impl Iterator<Item = &'static str> {
        NAMES.into_iter().filter(move |(bit, _)| self.0 & bit != 0).map(|(_, name)| name)
    }
}

impl fmt::Display for PacketSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
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
}

impl HashCapabilities {
    /// What software can hash: anything.
    pub fn software() -> HashCapabilities {
        HashCapabilities { choices: (1..16).map(PacketSet).collect() }
    }

    /// What a common interface hashes: both addresses, with or without both ports.
    pub fn common_hardware() -> HashCapabilities {
        HashCapabilities { choices: vec![PacketSet(3), PacketSet(15)] }
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
    fn sets_meet_compose_and_fit_devices() {
        let source_only = PacketSet(5);
        assert!(PacketSet::five_tuple().directions_meet());
        assert!(!source_only.directions_meet());
        assert_eq!(PacketSet::five_tuple().common(&PacketSet::addresses()), PacketSet::addresses());
        let hardware = HashCapabilities::common_hardware();
        assert_eq!(PacketSet::five_tuple().feasible(&hardware), Ok(()));
        assert_eq!(PacketSet::NONE.feasible(&hardware), Ok(()));
        assert_eq!(source_only.feasible(&HashCapabilities::software()), Ok(()));
        let error = source_only.feasible(&hardware).unwrap_err().to_string();
        assert!(error.starts_with("packets cannot be placed by source address, source port"));
        assert!(
            error.ends_with("source address, destination address, source port, destination port")
        );
    }
}
