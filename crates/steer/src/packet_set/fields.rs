//! Header fields, as the packets of one device show them.

use std::ops::BitOr;

pub(crate) const INNER_ADDRESS: u8 = 1;
pub(crate) const OUTER_ADDRESS: u8 = 2;
pub(crate) const INNER_PORT: u8 = 4;
pub(crate) const OUTER_PORT: u8 = 8;
/// Above the network layer the protocol, above the link layer the Ethertype.
pub(crate) const PROTOCOL: u8 = 16;
pub(crate) const VLAN: u8 = 32;
/// All of them: nothing of a tuple is left out.
pub(crate) const EVERYTHING: u8 = 63;

/// Header fields in a packet's own direction, to be joined by `|`. Which of its ends is the inner one
/// depends on the side its device is on: see [`PacketSet::per_side`].
///
/// [`PacketSet::per_side`]: crate::PacketSet::per_side
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Fields(u8);

impl Fields {
    /// None: packets from there belong to no flow.
    pub const NONE: Fields = Fields(0);
    /// The address of the sender.
    pub const SOURCE: Fields = Fields(INNER_ADDRESS);
    /// The address of the receiver.
    pub const DESTINATION: Fields = Fields(OUTER_ADDRESS);
    /// The port of the sender. Ports of different protocols are distinguished, so this has the protocol with it.
    pub const SOURCE_PORT: Fields = Fields(INNER_PORT | PROTOCOL);
    /// The port of the receiver, likewise.
    pub const DESTINATION_PORT: Fields = Fields(OUTER_PORT | PROTOCOL);
    /// The protocol above IP.
    pub const PROTOCOL: Fields = Fields(PROTOCOL);
    /// The VLAN identifiers, all of them.
    pub const VLAN: Fields = Fields(VLAN);

    /// As fields of oriented keys: those of a packet from inside, whose source is the inner end.
    pub(crate) const fn of_inside(self) -> u8 {
        self.0
    }

    /// As fields of oriented keys: those of a packet from outside.
    pub(crate) const fn of_outside(self) -> u8 {
        swapped(self.0)
    }
}

impl BitOr for Fields {
    type Output = Fields;

    fn bitor(self, other: Fields) -> Fields {
        Fields(self.0 | other.0)
    }
}

/// The fields with their ends exchanged.
const fn swapped(fields: u8) -> u8 {
    let inner = fields & (INNER_ADDRESS | INNER_PORT);
    let outer = fields & (OUTER_ADDRESS | OUTER_PORT);
    fields & (PROTOCOL | VLAN) | inner << 1 | outer >> 1
}
