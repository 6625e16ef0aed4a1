//! What of a packet names its flow, and whether it has one.

use rheostat_packet::{FlowKey, Headers, KeyMask, KeyParts, LinkType, Tuple, tuple};

use crate::orientation::{Oriented, Side};
use crate::packet_set::{Basis, PacketSet, Protocols, Whose};

/// Reads keys from packets and reduces them to the fields that name flows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Naming {
    reading: NamingReading,
    reduction: Option<Reduction>,
}

/// What is read from packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum NamingReading {
    /// Addresses and ports, of fragments by way of their tracker, of ICMP errors from what they quote.
    #[default]
    Tuples,
    /// Each packet's own addresses.
    Addresses,
    /// Whatever the packet has, with no other packet's help.
    Anything,
    /// MAC addresses, VLAN and Ethertype.
    Stations,
}

/// Leaves of an oriented key what names flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Reduction {
    /// The address that comes first, where one alone counts.
    whose: Option<Whose>,
    /// For keys of packets from inside and from outside.
    masks: [KeyMask; 2],
}

/// Which packets belong to flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Selection {
    /// From inside, from outside.
    sides: [bool; 2],
    protocols: Protocols,
}

impl Naming {
    pub(super) fn new(flow: &PacketSet) -> Naming {
        let reading = match flow.basis() {
            Basis::Nothing => NamingReading::Anything,
            Basis::Link => NamingReading::Stations,
            Basis::Network if !flow.has_ports() => NamingReading::Addresses,
            Basis::Network | Basis::Tuples | Basis::Discord => NamingReading::Tuples,
        };
        Naming { reading, reduction: Reduction::new(flow) }
    }

    pub(super) fn tuple(&self, data: &[u8], headers: &Headers, link: LinkType) -> Tuple {
        let key = match self.reading {
            NamingReading::Tuples => return Tuple::of_bytes(data, headers),
            NamingReading::Addresses => tuple::addresses(data, headers),
            NamingReading::Stations => tuple::stations(data, headers, link),
            NamingReading::Anything => match Tuple::of_bytes(data, headers) {
                Tuple::Flow(key) => Some(key),
                _ => {
                    addresses_alone(data, headers).or_else(|| tuple::stations(data, headers, link))
                }
            },
        };
        key.map_or(Tuple::None, Tuple::Flow)
    }

    #[inline(always)]
    pub(super) fn is_reduced(&self) -> bool {
        self.reduction.is_some()
    }

    #[inline(always)]
    pub(super) fn reduce(&self, oriented: Oriented) -> Oriented {
        match &self.reduction {
            None => oriented,
            Some(reduction) => reduction.apply(oriented),
        }
    }

    /// What is left of a key whichever side its packet is from.
    pub(super) fn of_either_side(&self, key: FlowKey) -> FlowKey {
        match &self.reduction {
            // What lies where an address of IP does is hashed of no frame: all of them come to one lane.
            _ if self.reading == NamingReading::Stations => FlowKey::NONE,
            None => key,
            Some(Reduction { masks, .. }) => key.masked(&masks[0]).masked(&masks[1]),
        }
    }

    pub(super) fn single_address(&self) -> Option<Whose> {
        self.reduction?.whose
    }
}

/// The packet's own addresses, without the protocol, which would promise ports that the packet does not show.
fn addresses_alone(data: &[u8], headers: &Headers) -> Option<FlowKey> {
    let (first, second) = ([32, 128], [32, 128]);
    let parts = KeyParts { first, second, zone: true, ..KeyParts::default() };
    tuple::addresses(data, headers).map(|key| key.masked(&KeyMask::new(&parts)))
}

impl Reduction {
    /// `None` where nothing is left out.
    fn new(flow: &PacketSet) -> Option<Reduction> {
        if let Some((whose, prefix)) = flow.single_address() {
            let parts = KeyParts { first: prefix, zone: true, ..KeyParts::default() };
            return Some(Reduction { whose: Some(whose), masks: [KeyMask::new(&parts); 2] });
        }
        let whole = PacketSet::five_tuple();
        let fields = [Side::Inside, Side::Outside].map(|side| flow.fields_of(side));
        let left = fields.map(|fields| match fields {
            // These packets have no flow, and are placed by all they have.
            0 => whole.parts(true),
            _ => flow.parts_of(fields),
        });
        let reduces = fields.iter().any(|f| *f != 0 && *f != whole.fields_of(Side::Inside));
        // All that a set of the link layer has lies in addresses.
        let masks = left.map(|parts| KeyMask::new(&parts));
        reduces.then_some(Reduction { whose: None, masks })
    }

    #[inline(always)]
    fn apply(&self, oriented: Oriented) -> Oriented {
        let Oriented { key, side, forward } = oriented;
        let turned = match self.whose {
            None | Some(Whose::Inner) => false,
            Some(Whose::Outer) => true,
            Some(Whose::Source) => !forward,
            Some(Whose::Destination) => forward,
        };
        let key = if turned { key.reversed() } else { key };
        Oriented { key: key.masked(&self.masks[index(side)]), side, forward }
    }
}

impl Selection {
    /// `None` where every packet belongs to a flow whose tuple names one.
    pub(super) fn new(flow: &PacketSet) -> Option<Selection> {
        let sides = [Side::Inside, Side::Outside].map(|side| flow.fields_of(side) != 0);
        let all = sides == [true, true] && flow.protocols() == Protocols::ALL;
        (!all).then(|| Selection { sides, protocols: flow.protocols() })
    }

    pub(super) fn admits(&self, key: &FlowKey, side: Side) -> bool {
        self.sides[index(side)] && self.protocols.contains(key.protocol(), key.family())
    }
}

const fn index(side: Side) -> usize {
    match side {
        Side::Inside => 0,
        Side::Outside => 1,
    }
}
