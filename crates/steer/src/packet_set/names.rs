//! Packet sets for people.

use std::fmt;

use super::fields::{INNER_ADDRESS, INNER_PORT, OUTER_ADDRESS, OUTER_PORT, PROTOCOL, VLAN};
use super::{Address, Basis, PacketSet, Protocols, Whose};
use crate::orientation::{Orientation, Side};

/// Fields with what they are called: in an oriented key, in a packet from inside, in one from outside.
const NAMES: [(u8, [&str; 3]); 6] = [
    (INNER_ADDRESS, ["inner address", "source address", "destination address"]),
    (OUTER_ADDRESS, ["outer address", "destination address", "source address"]),
    (INNER_PORT, ["inner port", "source port", "destination port"]),
    (OUTER_PORT, ["outer port", "destination port", "source port"]),
    (PROTOCOL, ["protocol"; 3]),
    (VLAN, ["VLAN"; 3]),
];

impl PacketSet {
    /// The set in the words of a device that stands so: which fields of its packets count.
    pub fn seen_by(&self, orientation: &Orientation) -> String {
        let directed =
            matches!(self.address, Some(Address { whose: Whose::Source | Whose::Destination, .. }));
        match orientation {
            _ if self.fields == [0, 0] || directed => self.to_string(),
            Orientation::Inside => self.on_side(Side::Inside, 1),
            Orientation::Outside => self.on_side(Side::Outside, 2),
            Orientation::ByPrefix(_) => self.to_string(),
        }
    }

    /// The names of these fields of oriented keys.
    pub(crate) fn field_names(&self, fields: u8) -> Vec<String> {
        self.names(fields, 0).collect()
    }

    /// The names of `fields`, by the words in that column of [`NAMES`].
    pub(super) fn names(&self, fields: u8, words: usize) -> impl Iterator<Item = String> {
        let link = self.basis == Basis::Link;
        NAMES.iter().filter(move |(bit, _)| fields & bit != 0).map(move |(bit, names)| match *bit {
            PROTOCOL if link => "Ethertype".to_owned(),
            INNER_ADDRESS | OUTER_ADDRESS if link => names[words].replace("address", "MAC address"),
            _ => names[words].to_owned(),
        })
    }

    fn on_side(&self, side: Side, words: usize) -> String {
        let fields = self.fields_of(side);
        if fields == 0 {
            return "no fields".into();
        }
        let mut names: Vec<_> = self.names(fields, words).collect();
        if let (Some(Address { prefix, .. }), Basis::Network) = (self.address, self.basis) {
            names.retain(|name| name != "VLAN");
            names[0] += &lengths(prefix);
        }
        format!("{}{}", self.members(), names.join(", "))
    }

    /// What comes before the fields when packets of some protocols only belong to the set.
    fn members(&self) -> String {
        match self.protocols == Protocols::ALL {
            true => String::new(),
            false => format!("{}: ", self.protocols),
        }
    }
}

fn lengths([v4, v6]: [u8; 2]) -> String {
    format!(" /{v4} and /{v6}")
}

impl fmt::Display for PacketSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.fields == [0, 0] {
            return f.write_str("no fields");
        }
        if let Some(Address { whose, prefix }) = self.address {
            let whose = match whose {
                Whose::Inner => "inner",
                Whose::Outer => "outer",
                Whose::Source => "source",
                Whose::Destination => "destination",
            };
            return match self.basis {
                Basis::Link => write!(f, "{whose} MAC address, VLAN"),
                _ => write!(f, "{}{whose} address{}", self.members(), lengths(prefix)),
            };
        }
        if self.fields[0] == self.fields[1] {
            let names: Vec<_> = self.names(self.fields[0], 0).collect();
            return write!(f, "{}{}", self.members(), names.join(", "));
        }
        let (inside, outside) = (self.on_side(Side::Inside, 1), self.on_side(Side::Outside, 2));
        write!(f, "from inside {inside}; from outside {outside}")
    }
}

impl fmt::Debug for PacketSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PacketSet({self})")
    }
}
